import { appendFileSync, chmodSync, chownSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  forgetHistory,
  ownPool,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
/** Looks after the first one would come too late for any test: what is seen is seen in the log, and of ends the queue is asked whether it agrees. */
const never = { pollInterval: 10_000, listInterval: 10_000 };

describe('a daemon that reads what HTCondor writes of its jobs', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    space = condorSpace(pool);
  });
  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  /** The state directory is one to which the owner of the jobs can write: usually that is the daemon itself. */
  function makeSite(
    script: string,
    options: {
      where?: Pool;
      count?: number;
      monitor?: Record<string, unknown>;
      submitter?: Record<string, unknown>;
    } = {},
  ): Site {
    const { where = pool, count = 1, monitor = never, submitter = {} } = options;
    const queue = { maxWorkers: count, nQueueLimitWorker: count, maxNewWorkersPerCycle: count };
    site = condorSite(
      {
        queues: { Q: condorQueue(where, { template: 'pilot.yaml', queue, monitor, submitter }) },
        settings: {
          master: { factoryId: space.factory },
          monitor: { missingGrace: 1, maxStatusAge: 20_000 },
        },
      },
      { 'pilot.yaml': shellTemplate(space, script) },
    );
    const events = join(site.stateDir, 'htcondor', 'events');
    mkdirSync(events, { recursive: true });
    for (const directory of [site.stateDir, join(site.stateDir, 'htcondor'), events])
      chmodSync(directory, 0o755);
    chownSync(events, where.uid, where.gid);
    return site;
  }
  const start = (where = pool) => (daemon = site.start([], condorEnvironment(where, site.directory)));
  const ownLog = () => join(site.stateDir, 'htcondor', 'events', 'LOCAL.log');
  const seen = (what: string, condition: () => Promise<unknown>) =>
    until(what, condition).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.output().slice(-3000)}`);
    });
  /** Fills the queue once. */
  async function submitted(count: number) {
    await seen(`${count} are submitted`, async () => (await site.workers()).length >= count);
    await site.run('pause', 'Q', '--reason', 'enough');
    return site.workers();
  }
  const states = async () =>
    (await site.workers())
      .map(
        ({ status, nativeExitCode, errorCode }) => `${status} ${String(nativeExitCode)} ${String(errorCode)}`,
      )
      .sort();

  it('sees every end in its own log, and asks for nothing but whether the queue agrees', async () => {
    makeSite(
      'case $((HARVESTER_WORKER_ID % 4)) in 0) exit 0;; 1) exit 3;; 2) kill -9 $$;; 3) exec sleep 1000;; esac',
      { count: 4 },
    );
    start();
    const workers = await submitted(4);
    const [running] = workers.filter(({ workerID }) => workerID % 4 === 3);
    const is = (status: 'running' | 'idle') => async () =>
      (await site.workers({ status })).some(({ workerID }) => workerID === running?.workerID);
    await seen('one runs', is('running'));
    const job = `${space.mine} && harvesterWorkerID == "${running?.workerID ?? 0}"`;
    const client = clientOf(pool, 'local');
    await client.act('hold', job, 'for a while', signal);
    await seen('it is held', is('idle'));
    await client.act('release', job, 'go on', signal);
    await seen('it runs again', is('running'));
    const ended = async (kind: number) =>
      (await site.workers()).some(({ workerID, endTime }) => workerID % 4 === kind && endTime !== null);
    for (const kind of [0, 1, 2])
      await seen(`the pilot of kind ${kind} has ended by itself`, () => ended(kind));
    // Of those that came before the pause another may sleep.
    await client.act('remove', space.mine, 'enough', signal);
    await seen('all have ended', async () => (await site.workers()).every(({ endTime }) => endTime !== null));
    // Those that ended before the pause have successors.
    expect([...new Set(await states())]).to.deep.equal([
      'cancelled null htcondor-removed',
      'failed 137 exit-status',
      'failed 3 exit-status',
      'finished 0 null',
    ]);
    const [finished] = await site.workers({ status: 'finished' });
    expect(finished?.nodeID).to.be.a('string').that.is.not.empty;
  });

  it('learns of the end of a pilot that the schedd has forgotten while it was down', async () => {
    const go = join(space.directory, 'go');
    // Two looks keep how far the log was read.
    makeSite(`while ! test -e ${go}; do sleep 0.2; done; exit 5`, {
      monitor: { pollInterval: 0.5, listInterval: 0.5 },
    });
    const first = start();
    await submitted(1);
    await seen('it runs', async () => (await site.workers({ status: 'running' })).length === 1);
    await seen('how far the log was read is kept', () =>
      Promise.resolve(readdirSync(join(site.stateDir, 'htcondor')).includes('positions')),
    );
    first.process.kill('SIGKILL');
    await first.ended;
    writeFileSync(go, '');
    const client = clientOf(pool, 'local');
    await seen(
      'it left the queue',
      async () => (await client.queue(space.mine, ['ClusterId'], signal)).length === 0,
    );
    forgetHistory(pool, 'local', space);
    start();
    await seen('it has ended', async () => (await site.workers()).every(({ endTime }) => endTime !== null));
    expect(await states()).to.deep.equal(['failed 5 exit-status']);
  });

  it('asks where the log has half a record, or is not there any more', async () => {
    const go = join(space.directory, 'go');
    // Looks come soon after something that the log cannot tell, and else not at all.
    const monitor = { pollInterval: 0.5, listInterval: 10_000 };
    makeSite(`while ! test -e ${go}.$HARVESTER_WORKER_ID; do sleep 0.2; done`, { count: 3, monitor });
    start();
    const [first, second, third] = await submitted(3);
    await seen('all run', async () => (await site.workers({ status: 'running' })).length === 3);
    const end = async (worker: typeof first, what: string) => {
      writeFileSync(`${go}.${worker?.workerID ?? 0}`, '');
      await seen(`the end is seen ${what}`, async () =>
        (await site.workers({ status: 'finished' })).some(({ workerID }) => workerID === worker?.workerID),
      );
    };
    // A shadow that died in the middle of its record, and one whose disk was full.
    appendFileSync(ownLog(), '005 (7.000.000) 2026-11-21 20:');
    await end(first, 'behind half a record');
    appendFileSync(ownLog(), '\u0000\u0001 no event\n{ "EventTypeNumber": 5, \n...\n');
    await end(second, 'behind rubbish');
    rmSync(ownLog());
    await end(third, 'without the log');
    await untilSaid(daemon, 'records in a log of job events cannot be read');
  });

  it('hole 1: takes the reason of a hold for the end of no other job', async () => {
    makeSite('exec sleep 1000', { count: 2, monitor: { pollInterval: 0.5, listInterval: 10_000 } });
    start();
    await submitted(2);
    await seen('both run', async () => (await site.workers({ status: 'running' })).length === 2);
    const [first, second] = await site.workers();
    const [cluster = '', proc = '0'] = (first?.batchID ?? '').split('.');
    const reason = `x 009 (${cluster}.${proc}.000) 2026-10-01 00:00:00 Job was aborted.`;
    const client = clientOf(pool, 'local');
    const job = `${space.mine} && harvesterWorkerID == "${second?.workerID ?? 0}"`;
    for (let at = 0; at < 3; at++) {
      await client.act('hold', job, reason, signal);
      await seen('it is held', async () => (await site.workers({ status: 'idle' })).length === 1);
      await client.act('release', job, 'go on', signal);
      await seen('both run again', async () => (await site.workers({ status: 'running' })).length === 2);
    }
    await untilSaid(daemon, 'records in a log of job events cannot be read');
    expect((await site.workers()).map(({ workerID, endTime }) => [workerID, endTime])).to.deep.equal([
      [first?.workerID, null],
      [second?.workerID, null],
    ]);
  });

  it("reads the pool's own log through its rotations", async () => {
    const own = await ownPool(['EVENT_LOG_MAX_SIZE = 20000', 'EVENT_LOG_MAX_ROTATIONS = 5']);
    try {
      const count = 60;
      makeSite('exit $((HARVESTER_WORKER_ID % 2))', {
        where: own,
        count,
        submitter: { eventLog: own.eventLog },
      });
      start(own);
      await submitted(count);
      await seen('all have ended', async () =>
        (await site.workers()).every(({ endTime }) => endTime !== null),
      );
      for (const { workerID, status } of await site.workers())
        expect(status, String(workerID)).to.equal(workerID % 2 === 0 ? 'finished' : 'failed');
      expect(
        readdirSync(join(own.eventLog, '..')).filter((name) => name.startsWith('EventLog.')),
      ).to.not.deep.equal([]);
      expect(readdirSync(join(site.stateDir, 'htcondor', 'events'))).to.deep.equal([]);
    } finally {
      await site.run('kill', '--queue', 'Q');
      await own.stop();
    }
  });
});
