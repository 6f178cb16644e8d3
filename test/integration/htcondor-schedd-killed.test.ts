import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  clientOf,
  type CondorSpace,
  condorSpace,
  ownPool,
  type ScheddKind,
  scheddPid,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { stopInConversation, submitting } from '../support/htcondor-submits.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

describe('HTCondor, through crashes of the schedd', () => {
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let kind: ScheddKind;
  let wanted: number;
  let space: CondorSpace;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    pool = await ownPool();
  });
  after(() => pool.stop());
  function begin(which: ScheddKind, workers: number, more: Readonly<Record<string, unknown>> = {}): void {
    kind = which;
    wanted = workers;
    space = condorSpace(pool);
    const limits = { maxWorkers: workers, nQueueLimitWorker: workers };
    const queue = condorQueue(pool, { kind, template: 'pilot.sub.yaml', queue: limits });
    site = condorSite(
      {
        queues: { Q: queue },
        settings: {
          master: { factoryId: space.factory },
          monitor: { missingGrace: 1 },
          submitter: { maxNewWorkers: workers },
        },
      },
      { 'pilot.sub.yaml': shellTemplate(space, 'exec sleep 1000', more) },
    );
    daemon = site.start([], condorEnvironment(pool, site.directory));
  }
  afterEach(async () => {
    await site.clean();
    await clientOf(pool, kind).act('remove', space.mine, 'the test is over', signal);
  });

  /** Ends the schedd as a crash does, and waits for the next one: the master starts it. */
  async function crash(meanwhile: () => void = () => undefined): Promise<void> {
    const before = scheddPid(pool, kind);
    process.kill(before, 'SIGKILL');
    meanwhile();
    await until('the next schedd runs', () => scheddPid(pool, kind) !== before, 60_000);
  }

  const allAre = (status: 'submitted' | 'running') =>
    until(
      `all wanted workers are ${status}, and no intent is open`,
      async () => {
        const workers = await site.workers();
        const those = workers.filter((one) => one.status === status);
        const settled = workers.every((one) => one.status !== 'pending');
        return settled && those.length === wanted && those.map(({ workerID }) => workerID).sort();
      },
      90_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.output().slice(-3000)}`);
    });
  const inQueue = async () => {
    const jobs = await clientOf(pool, kind).queue(space.mine, ['harvesterWorkerID'], signal);
    return jobs.map((job) => Number(job['harvesterWorkerID'])).sort();
  };
  /** Workers of which more than one job was ever made. */
  async function twice(): Promise<string[]> {
    const ended = await clientOf(pool, kind).history(space.mine, ['harvesterWorkerID'], 1000, signal);
    const ids = [...ended.map((ad) => String(ad['harvesterWorkerID'])), ...(await inQueue()).map(String)];
    return ids.filter((id, index) => ids.indexOf(id) !== index);
  }

  // What is given to the remote one is spooled after that, which takes a second step.
  for (const which of ['local', 'remote'] as const) {
    it(`of the ${which} one in the middle of a submission makes no second job and loses none`, async () => {
      // So many that they take their time, and that nobody has a machine for.
      begin(which, 500, { requirements: 'false' });
      const pid = await until('a condor_submit has called it', () => {
        const [one] = submitting(site);
        return one !== undefined && one.connections > 0 && one.pid;
      });
      await stopInConversation(clientOf(pool, kind, {}, 1500), pid);
      await crash(() => process.kill(pid, 'SIGCONT'));
      const ids = await allAre('submitted');
      await untilSaid(daemon, /none of 500 was accepted: condor_submit for/);
      expect(await inQueue()).to.deep.equal(ids);
      expect(await twice()).to.deep.equal([]);
    });
  }

  it('hole 3: that comes back without its spool ends no worker and makes none anew, and goes on once it has it', async () => {
    begin('local', 5, { requirements: 'false' });
    const before = await allAre('submitted');
    const log = join(pool.directory, 'spool', 'job_queue.log');
    await crash(() => {
      renameSync(log, `${log}.kept`);
    });
    await untilSaid(daemon, /the job queue of .* was made at .* Mount the spool of the schedd again/);
    expect(await inQueue()).to.deep.equal([]);
    const [first = 0] = before;
    await site.run('kill', String(first));
    await untilSaid(daemon, /workers could not be ended .*code=htcondor-other-queue/);
    await until('status says it', async () =>
      /queue Q: .*the job queue of .*\[status-unknown\]/.test((await site.run('status')).stdout),
    );
    expect(
      (await site.workers({ status: 'submitted' })).map(({ workerID }) => workerID).sort(),
    ).to.deep.equal(before);
    await crash(() => {
      renameSync(`${log}.kept`, log);
    });
    await until('one is cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 1);
    const ids = await allAre('submitted');
    expect(ids.filter((id) => before.includes(id))).to.deep.equal(before.slice(1));
    expect(await inQueue()).to.deep.equal(ids);
    expect(await twice()).to.deep.equal([]);
  });

  it('while a part of a batch runs ends no worker and makes none anew', async () => {
    begin('local', 40);
    const running = () => site.workers({ status: 'running' });
    await until('some run', async () => (await running()).length > 0, 60_000);
    const before = (await site.workers()).map(({ workerID }) => workerID).sort();
    await crash();
    const ids = await allAre('running');
    expect(ids).to.deep.equal(before);
    expect(await inQueue()).to.deep.equal(ids);
    expect(await twice()).to.deep.equal([]);
    expect((await site.workers()).map(({ workerID }) => workerID).sort()).to.deep.equal(before);
    // And it still follows them.
    await site.run('kill', ...ids.slice(0, 5).map(String));
    await until('five are cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 5);
    await until('no submission is under way', () => submitting(site).length === 0);
  });
});
