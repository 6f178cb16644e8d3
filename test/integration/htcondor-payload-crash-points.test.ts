import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
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
import { heard, taskOf } from '../support/toy-source.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
const wanted = 3;

/** The remote schedd spools, so that it has the payload as soon as the job. */
const cases = [
  ['after the rows', 'submit:after-intent', 'kept', 'local'],
  ['after the rows', 'submit:after-intent', 'kept', 'remote'],
  ['after the rows', 'submit:after-intent', 'removed', 'local'],
  ['before the outcomes are written', 'submit:before-outcome', 'kept', 'remote'],
  ['before the outcomes are written', 'submit:before-outcome', 'removed', 'local'],
  ['after the outcomes are written', 'submit:after-outcome', 'kept', 'local'],
  ['after the outcomes are written', 'submit:after-outcome', 'removed', 'remote'],
] as const satisfies readonly (readonly [string, Step, 'kept' | 'removed', 'local' | 'remote'])[];

describe('a source that names three workers with payloads, on HTCondor', function () {
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

  function makeSite(kind: 'local' | 'remote'): void {
    space = condorSpace(pool);
    // Room for more than the source asks for: a worker too many would not be kept away by a limit.
    const queue = { maxWorkers: 10, nQueueLimitWorker: 10, demand: 'toy' };
    const shown = `cp "$THRESHER_PAYLOAD_DIR/task" "${space.directory}/task.$TOY.$HARVESTER_WORKER_ID"`;
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind, template: 'pilot.yaml', queue }) },
        settings: {
          master: { factoryId: space.factory },
          sources: {
            toy: { module: join(import.meta.dirname, '../support/toy-source.ts'), journal: 'journal' },
          },
        },
      },
      { 'pilot.yaml': shellTemplate(space, `${shown}; exec sleep 1000`) },
    );
    // The jobs are those of the pool's user, who reads the payloads below the state directory.
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
  }

  function bundles(): string[] {
    const directory = site.path('state', 'htcondor', 'payloads');
    if (!existsSync(directory)) return [];
    return readdirSync(directory).flatMap((schedd) => readdirSync(join(directory, schedd)));
  }

  /** Texts that workers got, by the index that the source gave them. */
  function tasks(index: number): string[] {
    const names = readdirSync(space.directory).filter((name) => name.startsWith(`task.${index}.`));
    return names.map((name) => readFileSync(join(space.directory, name), 'utf8'));
  }

  for (const [description, step, database, kind] of cases) {
    it(`gives each its own once, through SIGKILL ${description}, the database ${database}, a ${kind} schedd`, async () => {
      makeSite(kind);
      const environment = condorEnvironment(pool, site.directory);
      const crashed = site.startCrashingAt(step, environment);
      expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
      if (database === 'removed') site.removeDatabase();
      const daemon = site.start([], environment);
      const running = await until(
        'all its workers run',
        async () => {
          const workers = (await site.workers()).filter(({ status }) => status === 'running');
          return workers.length === wanted && workers;
        },
        90_000,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${daemon.output().slice(-3000)}`);
      });
      const shown = () => Array.from({ length: wanted }, (_, index) => tasks(index));
      await until('each worker has shown its payload', () =>
        shown().every(([text]) => text !== undefined && text !== ''),
      );
      expect(shown()).to.deep.equal(Array.from({ length: wanted }, (_, index) => [taskOf(index)]));
      expect(await site.workers(), 'a worker beside the three').to.have.length(wanted);

      const jobs = await clientOf(pool, kind).queue(space.mine, ['ClusterId', 'harvesterWorkerID'], signal);
      const ids = running.map(({ workerID }) => workerID).sort();
      expect(jobs.map((ad) => Number(ad['harvesterWorkerID'])).sort()).to.deep.equal(ids);
      // They are one group.
      expect(new Set(jobs.map((ad) => ad['ClusterId'])).size).to.equal(1);
      await until('the source heard of all three that they run', () => {
        const said = heard(site.path('journal')).filter(({ status }) => status === 'running');
        return new Set(said.map(({ index }) => index)).size === wanted;
      });

      // What the crash left is removed, and each job on this machine's schedd keeps its own.
      const needed = kind === 'local' ? ids.map(String) : [];
      await until('no other payload is left', () => {
        const left = bundles().map((name) => name.split('.')[0]);
        return left.length === needed.length && left.sort().join() === needed.join();
      });
      await clientOf(pool, kind).act('remove', space.mine, 'the test says so', signal);
      await until('the payloads of ended jobs are gone', () => bundles().length === 0);
    });
  }
});
