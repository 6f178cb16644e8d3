import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

/** All queues of one daemon, whose jobs meet what jobs meet. */
describe('a daemon sees of HTCondor', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
    const queue = (name: string, heldTimeout?: number) =>
      condorQueue(pool, {
        template: `${name}.yaml`,
        ...(heldTimeout !== undefined && { monitor: { heldTimeout } }),
      });
    const endless = shellTemplate(space, 'exec sleep 1000');
    const go = join(space.directory, 'go');
    site = condorSite(
      {
        queues: {
          REMOVED: queue('endless'),
          RELEASED: queue('waits'),
          HELD: queue('endless', 0),
          INPUT: queue('input', 0),
          SIGNAL: queue('signal'),
        },
        settings: { master: { factoryId: space.factory } },
      },
      {
        'endless.yaml': endless,
        'waits.yaml': shellTemplate(space, `while ! test -e ${go}; do sleep 0.2; done`),
        'input.yaml': { ...endless, transfer_input_files: '/nonexistent/input' },
        'signal.yaml': shellTemplate(space, 'kill -SEGV $$'),
      },
    );
    site.start([], condorEnvironment(pool, site.directory));
  });

  after(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  /** The first worker of a queue, as soon as it is so. */
  const first = (queue: string, what: string, fits: (worker: WorkerView) => boolean) =>
    until(`the first of ${queue} ${what}`, async () => {
      const worker = (await site.workers({ queue })).at(-1);
      return worker !== undefined && fits(worker) && worker;
    });
  const runs = (queue: string) => first(queue, 'runs', ({ status }) => status === 'running');
  const ends = (queue: string) => first(queue, 'has ended', ({ endTime }) => endTime !== null);
  const act = (action: 'hold' | 'release' | 'remove', queue: string, { workerID }: WorkerView) => {
    const job = `${space.mine} && thresherQueue == "${queue}" && harvesterWorkerID == "${workerID}"`;
    return clientOf(pool, 'local').act(action, job, 'the operator says so', signal);
  };
  const inQueue = async ({ workerID }: WorkerView) => {
    const job = `${space.mine} && harvesterWorkerID == "${workerID}" && JobStatus =!= 3`;
    return (await clientOf(pool, 'local').queue(job, ['ClusterId'], signal)).length;
  };

  it('that a job was removed: cancelled, with the reason', async () => {
    await act('remove', 'REMOVED', await runs('REMOVED'));
    const end = await ends('REMOVED');
    expect(end).to.include({ status: 'cancelled', errorCode: 'htcondor-removed', nativeStatus: 'removed' });
    expect(end.diagMessage).to.match(/the operator says so/);
    expect(end.nativeExitCode).to.equal(null);
  });

  it('that a job was held and released: idle, running, and finished at its end', async () => {
    const worker = await runs('RELEASED');
    await act('hold', 'RELEASED', worker);
    const held = await first('RELEASED', 'is held', ({ nativeStatus }) => nativeStatus === 'held');
    expect(held).to.include({ workerID: worker.workerID, status: 'idle', endTime: null });
    await act('release', 'RELEASED', worker);
    await runs('RELEASED');
    writeFileSync(join(space.directory, 'go'), '');
    expect(await ends('RELEASED')).to.include({
      workerID: worker.workerID,
      status: 'finished',
      nativeExitCode: 0,
      errorCode: null,
      nativeStatus: 'completed',
    });
  });

  it('that a job is held for too long: cancelled, with the reason, and removed', async () => {
    await act('hold', 'HELD', await runs('HELD'));
    const end = await ends('HELD');
    expect(end).to.include({ status: 'cancelled', errorCode: 'htcondor-held' });
    expect(end.diagMessage).to.match(/the operator says so/);
    expect(await inQueue(end)).to.equal(0);
  });

  it('that a job is held because its input is missing: cancelled, with the file', async () => {
    const end = await ends('INPUT');
    expect(end).to.include({ status: 'cancelled', errorCode: 'htcondor-input' });
    expect(end.diagMessage).to.match(/\/nonexistent\/input/);
    expect(await inQueue(end)).to.equal(0);
  });

  it('that a job was ended by a signal: failed, as a shell would say', async () => {
    const end = await ends('SIGNAL');
    expect(end).to.include({ status: 'failed', errorCode: 'exit-status', nativeExitCode: 139 });
    expect(end.diagMessage).to.equal('ended by signal 11 (SIGSEGV)');
  });

  it('nothing but what happened: each worker that ran was started once', async () => {
    const ads = await clientOf(pool, 'local').history(space.mine, ['harvesterWorkerID'], 1000, signal);
    const ids = ads.map((ad) => ad['harvesterWorkerID']);
    expect(new Set(ids).size).to.equal(ids.length);
  });
});
