import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { PandaSite } from '../support/panda-site.ts';
import { type RunningDaemon, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('the link to a real PanDA server', () => {
  let panda: PandaSite;
  let daemon: RunningDaemon;

  before(async () => {
    // A queue that is its own master keeps one worker queued without any job. Here each starts at once, so there would be no end of them.
    const demand = { name: 'panda', noPilotsWhenNoActiveJobs: true };
    panda = await PandaSite.start({
      queues: {
        Q: {},
        OTHER: {},
        SELF: { runMode: 'self', demand, nQueueLimitWorker: 2 },
        SHARED: {
          runMode: 'self',
          demand: { ...demand, activateWorkerFactor: 'auto' },
          nQueueLimitWorker: 2,
        },
      },
      link: { jobsInterval: 1 },
    });
    daemon = panda.site.start();
  });

  after(() => panda.clean());

  const ofQueue = async (queue: string) =>
    (await panda.serverWorkers()).filter(({ computingsite }) => computingsite === panda.siteOf(queue));
  const untilQueueHas = (queue: string, count: number, status: string) => {
    let workers: Awaited<ReturnType<typeof ofQueue>> = [];
    return until(
      () => `${count} workers of ${queue} are ${status}: ${JSON.stringify(workers)} ${daemon.output()}`,
      async () => {
        workers = await ofQueue(queue);
        return workers.length === count && workers.every((worker) => worker.status === status) && workers;
      },
    );
  };

  it('reports zeros for a new queue, or the server would never order anything', async () => {
    await until('statistics of both queues', async () => {
      return (await panda.statistics('Q')) && (await panda.statistics('OTHER'));
    });
    expect(await panda.statistics('Q')).to.include({ running: 0, submitted: 0 });
  });

  it('announces which commands it takes', async () => {
    const announced = async () => {
      const rows = await panda.at.rows<{ command: string; computingsite: string }>(
        `SELECT command, computingsite FROM harvester_command_lock WHERE harvester_id = '${panda.id}'`,
      );
      return rows.map(({ command, computingsite }) => `${command} ${computingsite}`);
    };
    await until('the server has the commands', async () => (await announced()).length >= 4);
    expect(await announced()).to.include.members([
      `SET_N_WORKERS_JOBTYPE ${panda.siteOf('Q')}`,
      `REPORT_WORKER_STATS ${panda.siteOf('OTHER')}`,
    ]);
  });

  it('makes the workers of an order, of the types that it names, and reports statistics at once', async () => {
    panda.order({ SCORE: 2, MCORE: 1 });
    const workers = await untilQueueHas('Q', 3, 'running');
    expect(workers.map(({ resourcetype }) => resourcetype).sort()).to.deep.equal(['MCORE', 'SCORE', 'SCORE']);
    await until('the statistics have them', async () => {
      const { running = 0, submitted = 0 } = (await panda.statistics()) ?? {};
      return running + submitted === 3;
    });
    const commands = await panda.commands();
    expect(commands.filter(({ status }) => status === 'new')).to.deep.equal([]);
  });

  it('ends the workers that KILL_WORKERS means, and no others', async () => {
    panda.order({ SCORE: 1 }, 'OTHER');
    await untilQueueHas('OTHER', 1, 'running');
    // The server makes such a list itself. It means no worker (hole 4).
    panda.command('KILL_WORKERS', {
      status: 'ALL',
      computingSite: 'ALL',
      computingElement: [],
      submissionHost: 'ALL',
    });
    await until('it is carried out', async () =>
      /KILL_WORKERS .*no worker is meant: computingElement/.test((await panda.site.run('panda')).stdout),
    );
    await untilQueueHas('Q', 3, 'running');
    panda.command('KILL_WORKERS', {
      status: ['running'],
      computingSite: [panda.siteOf('Q')],
      computingElement: 'ALL',
      submissionHost: 'ALL',
    });
    await untilQueueHas('Q', 3, 'cancelled');
    await untilQueueHas('OTHER', 1, 'running');
  });

  it('reports the statistics of a queue again at REPORT_WORKER_STATS', async () => {
    const site = panda.siteOf('OTHER');
    panda.at.admin('sql', `DELETE FROM harvester_worker_stats WHERE computingsite = '${site}'`);
    panda.command(`REPORT_WORKER_STATS:${site}`);
    await until(
      'the server has them again',
      async () => (await panda.statistics('OTHER'))?.['running'] === 1,
    );
  });

  it('reports the workers again that SYNC_WORKERS_ACTIVATE names', async () => {
    const [worker] = await ofQueue('OTHER');
    const ofInstance = `harvesterid = '${panda.id}' AND workerid = ${String(worker?.workerid)}`;
    panda.at.admin('sql', `UPDATE harvester_workers SET status = 'submitted' WHERE ${ofInstance}`);
    panda.command('SYNC_WORKERS_ACTIVATE', [worker?.workerid]);
    await untilQueueHas('OTHER', 1, 'running');
  });

  it('ends the workers that SYNC_WORKERS_KILL names', async () => {
    const [worker] = await ofQueue('OTHER');
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

  it('keeps what it knows through a restart, and makes nothing twice where its memory is lost', async () => {
    const before = (await ofQueue('Q')).length;
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    writeFileSync(panda.site.path('state/panda/link.json'), '{"half');
    daemon = panda.site.start();
    await untilSaid(daemon, 'the memory of the PanDA link is lost');
    await until('it takes commands again', async () => {
      const { reasons } = await panda.site.queue(panda.siteOf('Q'));
      return reasons.some(({ code }) => code === 'panda-no-order');
    });
    expect(await ofQueue('Q')).to.have.length(before);
    expect(panda.starts()).to.equal((await panda.serverWorkers()).length);
  });

  it('asks by itself for as many workers as there are activated jobs where the queue is its own master', async () => {
    panda.at.admin('site', panda.siteOf('SELF'), '--harvester', panda.id);
    panda.at.admin('job', panda.siteOf('SELF'), '--n', '3');
    // Three jobs, and no more than two queued: as long as none runs. Each that runs makes room for another.
    await until('three workers were made', async () => (await ofQueue('SELF')).length >= 3);
  });

  it('D3: asks for its share of the jobs where other instances report workers of the site too', async () => {
    const site = panda.siteOf('SHARED');
    const rows = ['other1', 'other2'].map(
      (id) => `('${id}', '${site}', 'SCORE', 'running', 1, now() AT TIME ZONE 'UTC', 'managed')`,
    );
    panda.at.admin(
      'sql',
      `INSERT INTO harvester_worker_stats (harvester_id, computingsite, resourcetype, status, n_workers, lastupdate, jobtype)
       VALUES ${rows.join()}`,
    );
    panda.at.admin('site', site, '--harvester', panda.id);
    panda.at.admin('job', site, '--n', '2');
    const messages = async () => (await panda.site.queue(site)).reasons.map(({ message }) => message);
    await until('the share of two jobs is none', async () =>
      (await messages()).some(
        (text) => text.includes('had 2 activated jobs at') && text.includes('which 3 instances share'),
      ),
    );
    expect(await ofQueue('SHARED')).to.deep.equal([]);
    await until('the link shows it', async () =>
      /SHARED.* 2, for 3 instances/.test((await panda.site.run('panda')).stdout),
    );
    panda.at.admin('sql', `DELETE FROM harvester_worker_stats WHERE harvester_id LIKE 'other_'`);
    await until('it has the site alone', async () => (await ofQueue('SHARED')).length >= 2);
  });
});
