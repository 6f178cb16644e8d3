import { expect } from 'chai';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('a daemon whose queues are on HTCondor', function () {
  this.timeout(180_000);
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
});
