import { expect } from 'chai';
import { PandaSite } from '../support/panda-site.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('the link to a real PanDA server', () => {
  let panda: PandaSite;
  let daemon: RunningDaemon;

  before(async () => {
    panda = await PandaSite.start({ queues: { Q: {}, OTHER: {} } });
    daemon = panda.site.start();
  });

  after(() => panda.clean());

  const ofQueue = (queue: string) =>
    panda.serverWorkers().filter(({ computingsite }) => computingsite === panda.siteOf(queue));
  const untilQueueHas = (queue: string, count: number, status: string) =>
    until(
      () =>
        `${count} workers of ${queue} are ${status}: ${JSON.stringify(ofQueue(queue))} ${daemon.output()}`,
      () => {
        const workers = ofQueue(queue);
        return workers.length === count && workers.every((worker) => worker.status === status) && workers;
      },
    );

  it('reports zeros for a new queue, or the server would never order anything', async () => {
    await until('statistics of both queues', () => panda.statistics('Q') && panda.statistics('OTHER'));
    expect(panda.statistics('Q')).to.include({ running: 0, submitted: 0 });
  });

  it('announces which commands it takes', async () => {
    const announced = () =>
      panda.at
        .rows<{ command: string; computingsite: string }>(
          `SELECT command, computingsite FROM harvester_command_lock WHERE harvester_id = '${panda.id}'`,
        )
        .map(({ command, computingsite }) => `${command} ${computingsite}`);
    await until('the server has the commands', () => announced().length === 4);
    expect(announced()).to.include.members([
      `SET_N_WORKERS_JOBTYPE ${panda.siteOf('Q')}`,
      `REPORT_WORKER_STATS ${panda.siteOf('OTHER')}`,
    ]);
  });

  it('makes the workers of an order, of the types that it names, and reports statistics at once', async () => {
    panda.order({ SCORE: 2, MCORE: 1 });
    const workers = await untilQueueHas('Q', 3, 'running');
    expect(workers.map(({ resourcetype }) => resourcetype).sort()).to.deep.equal(['MCORE', 'SCORE', 'SCORE']);
    await until('the statistics have them', () => {
      const { running = 0, submitted = 0 } = panda.statistics() ?? {};
      return running + submitted === 3;
    });
    expect(panda.commands().filter(({ status }) => status === 'new')).to.deep.equal([]);
  });

  it('ends the workers that KILL_WORKERS means, and no others', async () => {
    panda.order({ SCORE: 1 }, 'OTHER');
    await untilQueueHas('OTHER', 1, 'running');
    panda.command('KILL_WORKERS', {
      status: ['running'],
      computingSite: [panda.siteOf('Q')],
      computingElement: 'ALL',
      submissionHost: [],
    });
    await untilQueueHas('Q', 3, 'cancelled');
    await untilQueueHas('OTHER', 1, 'running');
  });

  it('ends the workers that SYNC_WORKERS_KILL names', async () => {
    const [worker] = ofQueue('OTHER');
    panda.command('SYNC_WORKERS_KILL', [worker?.workerid]);
    await untilQueueHas('OTHER', 1, 'cancelled');
  });

  it('says of a queue why it gets nothing', async () => {
    const reasonsOf = async (queue: string) =>
      (await panda.site.queue(panda.siteOf(queue))).reasons.map(({ code }) => code);
    await until('the order is fulfilled', async () =>
      (await reasonsOf('Q')).includes('panda-order-fulfilled'),
    );
    panda.order({ SCORE: 0 });
    await until('the order says 0', async () => (await reasonsOf('Q')).includes('panda-order-zero'));
  });
});
