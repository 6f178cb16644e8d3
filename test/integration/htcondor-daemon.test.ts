import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  forgetHistory,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('a daemon whose queues are on HTCondor', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site | undefined;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    space = condorSpace(pool);
  });
  afterEach(async () => {
    await site?.clean();
    site = undefined;
    await clearSpaces(pool, [space]);
  });

  for (const kind of ['local', 'remote'] as const) {
    it(`submits to a ${kind} schedd, and its pilots finish and fail`, async () => {
      const limits = { maxWorkers: 3, nQueueLimitWorker: 3 };
      site = condorSite(
        {
          queues: {
            GOOD: condorQueue(pool, { kind, template: 'good.yaml', queue: limits }),
            BAD: condorQueue(pool, { kind, template: 'bad.yaml', queue: limits }),
          },
          settings: { master: { factoryId: space.factory } },
        },
        {
          'good.yaml': shellTemplate(space, 'echo hello; sleep 1'),
          'bad.yaml': shellTemplate(space, 'echo sorry >&2; exit 3'),
        },
      );
      const daemon = site.start([], condorEnvironment(pool, site.directory));
      const ended = async (status: 'finished' | 'failed', queue: string) =>
        (await site?.workers({ status, queue })) ?? [];
      await until(
        'pilots finish and fail',
        async () =>
          (await ended('finished', 'GOOD')).length >= 3 && (await ended('failed', 'BAD')).length >= 3,
        90_000,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${daemon.output()}`);
      });
      const [good] = await ended('finished', 'GOOD');
      const [bad] = await ended('failed', 'BAD');
      expect(good).to.include({ nativeExitCode: 0, nativeStatus: 'completed' });
      expect(good?.batchID).to.match(/^\d+\.\d+$/);
      expect(good?.nodeID).to.be.a('string').that.is.not.empty;
      expect(bad).to.include({ nativeExitCode: 3, errorCode: 'exit-status' });
    });
  }

  for (const forgotten of [false, true]) {
    const what = forgotten ? 'missed, if the history has forgotten it' : 'finished, by the history';
    it(`says of a pilot that ended while it was down that it is ${what}`, async () => {
      const go = join(space.directory, 'go');
      site = condorSite(
        {
          queues: { Q: condorQueue(pool, { template: 'pilot.sub.yaml' }) },
          settings: { master: { factoryId: space.factory }, monitor: { missingGrace: 1 } },
        },
        { 'pilot.sub.yaml': shellTemplate(space, `while ! test -e ${go}; do sleep 0.2; done`) },
      );
      const environment = condorEnvironment(pool, site.directory);
      const first = site.start([], environment);
      const workers = async (status: 'running' | 'finished' | 'missed') =>
        (await site?.workers({ status })) ?? [];
      const [worker] = await until('it runs', async () => {
        const running = await workers('running');
        return running.length > 0 && running;
      });
      first.process.kill('SIGKILL');
      await first.ended;
      writeFileSync(go, '');
      const client = clientOf(pool, 'local');
      await until('it left the queue', async () => {
        return (await client.queue(space.mine, ['ClusterId'], AbortSignal.timeout(60_000))).length === 0;
      });
      if (forgotten) forgetHistory(pool, 'local', space);
      site.writeQueues({
        Q: condorQueue(pool, { template: 'pilot.sub.yaml', queue: { queueStatus: 'offline' } }),
      });
      const daemon = site.start([], environment);
      const status = forgotten ? 'missed' : 'finished';
      await until(`it is ${status}`, async () => {
        return (await workers(status)).some(({ workerID }) => workerID === worker?.workerID);
      }).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${daemon.output()}`);
      });
    });
  }

  it('shares a batch among schedds by their weights', async () => {
    const limits = { maxWorkers: 12, nQueueLimitWorker: 12 };
    const submitter = { condorHostConfig: 'schedds.json', minBulkToRandomizedSchedd: 1, useSpool: true };
    const where = { condorSchedd: undefined, condorPool: undefined };
    site = condorSite(
      {
        queues: {
          Q: condorQueue(pool, {
            template: 'pilot.sub.yaml',
            kind: 'remote',
            submitter: { ...where, ...submitter },
            queue: limits,
          }),
        },
        settings: { master: { factoryId: space.factory } },
      },
      {
        'pilot.sub.yaml': shellTemplate(space, 'exec sleep 1000'),
        'schedds.json': JSON.stringify({
          [pool.local.schedd]: { pool: pool.pool, weight: 1 },
          [pool.remote.schedd]: { pool: pool.pool, weight: 3 },
        }),
      },
    );
    const daemon = site.start([], condorEnvironment(pool, site.directory));
    await until('all run', async () => (await site?.workers({ status: 'running' }))?.length === 12).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}\n${daemon.output()}`);
      },
    );
    const jobs = await Promise.all(
      (['local', 'remote'] as const).map((kind) =>
        clientOf(pool, kind).queue(space.mine, ['ClusterId'], AbortSignal.timeout(60_000)),
      ),
    );
    expect(jobs.map(({ length }) => length)).to.deep.equal([3, 9]);
  });

  it('follows its workers on a schedd that gets nothing more', async () => {
    const go = join(space.directory, 'go');
    const where = { condorSchedd: undefined, condorPool: undefined };
    const submitter = { ...where, condorHostConfig: 'schedds.json', useSpool: true };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { template: 'pilot.sub.yaml', submitter }) },
        settings: { master: { factoryId: space.factory } },
      },
      { 'pilot.sub.yaml': shellTemplate(space, `while ! test -e ${go}; do sleep 0.2; done; sleep 2`) },
    );
    const hosts = (weights: { local: number; remote: number }) => {
      const entry = (weight: number) => ({ pool: pool.pool, weight });
      const both = { [pool.local.schedd]: entry(weights.local), [pool.remote.schedd]: entry(weights.remote) };
      writeFileSync(join(site?.directory ?? '', 'schedds.json'), JSON.stringify(both));
    };
    hosts({ local: 0, remote: 1 });
    const environment = condorEnvironment(pool, site.directory);
    const first = site.start([], environment);
    const workers = async () => (await site?.workers()) ?? [];
    const at = async (kind: 'local' | 'remote') => {
      const ads = await clientOf(pool, kind).queue(
        space.mine,
        ['harvesterWorkerID'],
        AbortSignal.timeout(60_000),
      );
      return ads.map((ad) => Number(ad['harvesterWorkerID']));
    };
    const [worker] = await until('it runs', async () => {
      const running = (await workers()).filter(({ status }) => status === 'running');
      return running.length > 0 && running;
    });
    expect(await at('remote')).to.deep.equal([worker?.workerID]);
    first.process.kill('SIGTERM');
    await first.ended;
    hosts({ local: 1, remote: 0 });
    const second = site.start([], environment);
    await until('the next daemon runs', () => second.output().includes('started'));
    writeFileSync(go, '');
    await until('it has finished, and another is elsewhere', async () => {
      const all = await workers();
      const isOld = ({ workerID }: { workerID: number }) => workerID === worker?.workerID;
      return all.find(isOld)?.status === 'finished' && all.some((one) => !isOld(one) && one.batchID !== null);
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${second.output().slice(-2000)}`);
    });
    const [old, others] = [await at('remote'), await at('local')];
    expect(old.filter((id) => id !== worker?.workerID)).to.deep.equal([]);
    expect(others).to.not.include(worker?.workerID);
    expect((await workers()).filter(({ workerID }) => workerID !== worker?.workerID)).to.not.deep.equal([]);
  });

  it('ends 200 pilots in one submission, each as it should', async () => {
    const script =
      'case $((HARVESTER_WORKER_ID % 4)) in 0) exit 0;; 1) exit 3;; 2) kill -9 $$;; 3) exec sleep 1000;; esac';
    const limits = { maxWorkers: 200, nQueueLimitWorker: 200, maxNewWorkersPerCycle: 200 };
    const queue = (more: object) =>
      condorQueue(pool, { template: 'mixed.yaml', queue: { ...limits, ...more } });
    site = condorSite(
      { queues: { Q: queue({}) }, settings: { master: { factoryId: space.factory } } },
      { 'mixed.yaml': shellTemplate(space, script) },
    );
    const daemon = site.start([], condorEnvironment(pool, site.directory));
    const all = async () => (await site?.workers()) ?? [];
    await until('200 are submitted', async () => (await all()).length >= 200);
    await site.run('pause', 'Q', '--reason', 'enough');
    const count = async (status: string) => (await all()).filter((one) => one.status === status).length;
    await until(
      'three quarters have ended',
      async () => (await count('finished')) + (await count('failed')) >= ((await all()).length * 3) / 4 - 3,
      100_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.output().slice(-2000)}`);
    });
    const running = (await all()).filter(({ workerID }) => workerID % 4 === 3);
    await site.run('kill', ...running.map(({ workerID }) => String(workerID)));
    await until('all have ended', async () => (await all()).every(({ endTime }) => endTime !== null), 60_000);
    const expected = ['finished 0 null', 'failed 3 exit-status', 'failed 137 exit-status', 'cancelled'];
    for (const { workerID, status, nativeExitCode, errorCode } of await all()) {
      const seen = `${status} ${String(nativeExitCode)} ${String(errorCode)}`;
      expect(seen.startsWith(expected[workerID % 4] ?? ''), `${workerID}: ${seen}`).to.equal(true);
    }
    // Some ended, and were replaced, before the queue was paused.
    const first = (await all()).sort((a, b) => a.workerID - b.workerID).slice(0, 200);
    const clusters = new Set(first.map(({ batchID }) => batchID?.split('.')[0]));
    expect(clusters.size).to.be.at.most(3);
  });
});
