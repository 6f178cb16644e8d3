import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
import type { Ad } from '../../src/clients/htcondor/json-objects.ts';
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
import {
  expectPayloads,
  expectToys,
  showPayload,
  toyQueue,
  toySettings,
  toySteps,
} from '../support/toy-site.ts';

const { signal } = new AbortController();

/** The other steps of a submission are in htcondor-payload-crash-points.test.ts. */
const cases = [
  ['submit:before-intent', 'kept', 'remote'],
  ['submit:before-intent', 'removed', 'local'],
  ['news:before-told', 'kept', 'local'],
  ['news:before-told', 'removed', 'remote'],
  ['news:before-taken', 'kept', 'remote'],
  ['news:before-taken', 'removed', 'local'],
] as const satisfies readonly (readonly [Step, 'kept' | 'removed', 'local' | 'remote'])[];

describe('on HTCondor a source of a third party that names three workers', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;

  before(async () => {
    pool = await condorPool();
  });

  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  for (const [step, database, kind] of cases) {
    const description = new Map(toySteps.map(([words, name]) => [name, words])).get(step) ?? step;
    it(`gets each once, and hears of it, through SIGKILL ${description}, the database ${database}`, async () => {
      space = condorSpace(pool);
      const script = `${showPayload(space.directory)} exec sleep 1000`;
      site = condorSite(
        {
          queues: { Q: condorQueue(pool, { kind, template: 'pilot.sub.yaml', queue: toyQueue }) },
          settings: { ...toySettings, master: { factoryId: space.factory } },
        },
        { 'pilot.sub.yaml': shellTemplate(space, script) },
      );
      // The jobs are those of the pool's user, who reads the payloads below the state directory.
      for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
      chmodSync(site.stateDir, 0o711);
      chownSync(site.path('logs'), pool.uid, pool.gid);
      const environment = condorEnvironment(pool, site.directory);
      const crashed = site.startCrashingAt(step, environment);
      expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
      if (database === 'removed') site.removeDatabase();

      const ids = await expectToys(site, site.start([], environment), database);
      await expectPayloads(space.directory);
      const attributes = ['harvesterWorkerID', 'ClusterId'];
      const ads: Ad[] = await clientOf(pool, kind).queue(
        `${space.mine} && JobStatus =!= 3`,
        attributes,
        signal,
      );
      // Each living row has its job, and each job its row.
      expect(ads.map((ad) => Number(ad['harvesterWorkerID'])).sort()).to.deep.equal(ids);
    });
  }
});
