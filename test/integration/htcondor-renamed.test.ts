import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  clientOf,
  type CondorSpace,
  condorSpace,
  type Pool,
  ownPool,
  scheddPid,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { onPostgresql } from '../support/postgresql.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
const wanted = 2;

/** Where the workers of the queue go. */
type Where = { readonly condorSchedd?: string; readonly condorPool?: string; readonly useSpool?: boolean };

interface How {
  /** How many workers. */
  readonly most?: number;
  /** s */
  readonly heldTimeout?: number;
}

describe('hole 5: a schedd that the settings call otherwise', () => {
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let space: CondorSpace;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    pool = await ownPool();
  });
  after(() => pool.stop());
  afterEach(() => site.clean());

  function queuesAt(where: Where, how: How = {}): Record<string, Record<string, unknown>> {
    const { most = wanted, heldTimeout } = how;
    const queue = condorQueue(pool, {
      template: 'pilot.sub.yaml',
      queue: { maxWorkers: most, nQueueLimitWorker: most },
    });
    const sections = ['submitter', 'monitor', 'sweeper'] as const;
    for (const section of sections) queue[section] = { ...(queue[section] as object), ...where };
    if (heldTimeout !== undefined) queue['monitor'] = { ...(queue['monitor'] as object), heldTimeout };
    return { Q: queue };
  }

  function begin(where: Where, more: Readonly<Record<string, unknown>> = {}, how: How = {}): void {
    space = condorSpace(pool);
    const settings = { master: { factoryId: space.factory }, monitor: { missingGrace: 1 }, ...more };
    site = condorSite(
      { queues: queuesAt(where, how), settings },
      { 'pilot.sub.yaml': shellTemplate(space, 'exec sleep 1000', { requirements: 'false' }) },
    );
  }

  const submitted = (most = wanted) =>
    until(
      'all wanted workers are in the queue',
      async () => {
        const ids = (await site.workers({ status: 'submitted' })).map(({ workerID }) => workerID);
        return ids.length === most && ids.sort((a, b) => a - b);
      },
      60_000,
    );
  const inQueue = async (of: Pool, kind: 'local' | 'remote', name?: string) => {
    const client = clientOf(of, kind, name === undefined ? {} : { name });
    const jobs = await client.queue(space.mine, ['harvesterWorkerID'], signal);
    return jobs.map((job) => Number(job['harvesterWorkerID'])).sort((a, b) => a - b);
  };
  const whereAll = (ids: readonly number[]) =>
    `${space.mine} && (${ids.map((id) => `harvesterWorkerID == "${id}"`).join(' || ')})`;
  const untilSpooled = (name: string, ids: readonly number[]) =>
    until('the schedd has all their files', async () => {
      const client = clientOf(pool, 'remote', { name });
      const jobs = await client.queue(`${whereAll(ids)} && JobStatus == 1`, ['ClusterId', 'ProcId'], signal);
      return jobs.length === ids.length;
    });
  async function hold(name: string, ...ids: readonly number[]): Promise<void> {
    await untilSpooled(name, ids);
    const held = await clientOf(pool, 'remote', { name }).act('hold', whereAll(ids), 'by the test', signal);
    expect(held).to.include({ succeeded: ids.length });
  }
  async function endAll(ids: readonly number[]): Promise<void> {
    expect(await site.run('kill', ...ids.map(String))).to.include({ status: 0 });
    await until(
      'they are cancelled',
      async () => {
        const ended = (await site.workers({ status: 'cancelled' })).map(({ workerID }) => workerID);
        return ids.every((id) => ended.includes(id));
      },
      60_000,
    );
  }

  it('and that answers to its old name no more is called by the new one for its old workers, which are followed and ended', async () => {
    const { schedd: old } = pool.remote;
    const at = { condorPool: pool.pool, useSpool: true };
    begin({ ...at, condorSchedd: old }, {}, { heldTimeout: 1 });
    daemon = site.start([], condorEnvironment(pool, site.directory));
    const ids = await submitted();
    expect(await inQueue(pool, 'remote')).to.deep.equal(ids);
    await untilSpooled(old, ids);
    const config = join(pool.directory, 'condor_config');
    writeFileSync(config, readFileSync(config, 'utf8').replaceAll(old, 'renamed@pool.test'));
    const before = scheddPid(pool, 'remote');
    // It takes its old name with it when it ends.
    process.kill(before, 'SIGQUIT');
    await until('the next schedd runs', () => scheddPid(pool, 'remote') !== before, 60_000);
    const more = { most: 2 * wanted, heldTimeout: 86_400 };
    site.writeQueues(queuesAt({ ...at, condorSchedd: 'renamed@pool.test' }, more));
    daemon.process.kill('SIGHUP');
    await untilSaid(daemon, /the schedd is called by another of its names .*renamed@pool\.test/);
    // Those of before count: none is made in place of them.
    const all = await submitted(2 * wanted);
    expect(all).to.include.members(ids);
    const [former = 0] = ids;
    const [present = 0] = all.filter((id) => !ids.includes(id));
    // Each configuration judges its own: the former one gives up a held job after a second.
    await hold('renamed@pool.test', former, present);
    await until('the former one is given up', async () => {
      const ended = await site.workers({ status: 'cancelled' });
      return ended.some(({ workerID }) => workerID === former);
    });
    const left = await inQueue(pool, 'remote', 'renamed@pool.test');
    expect([left.includes(former), left.includes(present)]).to.deep.equal([false, true]);
    await endAll(ids.slice(1));
    const next = await submitted(2 * wanted);
    expect(next).to.include(present);
    expect(await inQueue(pool, 'remote', 'renamed@pool.test')).to.deep.equal(next);
    expect(next.some((id) => ids.includes(id))).to.equal(false);
  });

  it('of the machine that takes over has other jobs, so that none is lost or made anew, and the former one is reached by its name', async () => {
    const other = await ownPool(['TRUST_DOMAIN = second.test']);
    try {
      begin({}, await onPostgresql());
      daemon = site.start([], condorEnvironment(pool, site.directory));
      const ids = await submitted();
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      const elsewhere = temporaryDirectory();
      // It may call both pools.
      copyFileSync(join(pool.local.tokens, 'pilot'), join(other.local.tokens, 'first'));
      const environment = condorEnvironment(other, elsewhere);
      const args = ['--config', site.config, '--state-dir', join(elsewhere, 'state'), 'run'];
      daemon = site.startWith(args, environment);
      await untilSaid(daemon, /the job queue of LOCAL .* name that one in condorSchedd/);
      expect(await submitted()).to.deep.equal(ids);
      expect(await inQueue(other, 'local')).to.deep.equal([]);
      site.writeQueues(queuesAt({ condorSchedd: pool.local.schedd, condorPool: pool.pool }));
      daemon.process.kill('SIGHUP');
      await untilSaid(daemon, /the schedd is called by another of its names/);
      expect(await inQueue(pool, 'local')).to.deep.equal(ids);
      await endAll(ids);
      expect(await inQueue(other, 'local')).to.deep.equal([]);
    } finally {
      await other.stop();
    }
  });
});
