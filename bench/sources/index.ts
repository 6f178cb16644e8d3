import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { condorQueue } from '../../test/support/htcondor-site.ts';
import { pluginsOf } from '../htcondor/daemon.ts';
import { bareDescription, neverMatches, pilotTemplate, writeWrapper } from '../htcondor/pilot.ts';
import { type BenchPool, openDirectory, startBenchPool } from '../htcondor/pool.ts';
import { runChild } from '../shared/children.ts';
import { measureParts, type Options } from '../shared/parts.ts';
import { progressOf } from '../shared/progress.ts';
import type { CoreLoad } from './core-load.ts';
import { type Measured, parts } from './measured.ts';
import { pageOf } from './page.ts';
import type { Ways } from './ways.ts';

export { parts } from './measured.ts';

const run = promisify(execFile);
const progress = progressOf('sources');
const programOf = (name: string) => join(import.meta.dirname, name);
/** Rounds of a daemon with a source and of one without, in turns. */
const rounds = 3;
const requests = { local: 200, htcondor: 100 } as const;

/** Sources: the results go to `results/sources.json` and `results/sources.md`. */
export async function benchSources(options: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  try {
    await measureParts<Measured, object>({
      benchmark: 'sources',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: {},
      measure: { core: () => measureCore(directory), ways: () => measureWays(directory) },
    });
  } finally {
    remove();
    process.off('exit', remove);
  }
}

async function measureCore(directory: string): Promise<Measured['core']> {
  const loads = { named: [] as CoreLoad[], counted: [] as CoreLoad[] };
  for (let round = 1; round <= rounds; round++) {
    for (const mode of ['counted', 'named'] as const) {
      progress(`core, ${mode}, round ${round} of ${rounds}`);
      const own = join(directory, `${mode}-${round}`);
      loads[mode].push(await runChild<CoreLoad>(programOf('core-load.ts'), own, mode));
      rmSync(own, { recursive: true });
    }
  }
  const complaints = [...loads.named, ...loads.counted].flatMap((load) => load.complaints);
  return { ...loads, complaints };
}

async function measureWays(directory: string): Promise<Measured['ways']> {
  progress('the way on the local backend');
  const local = await runChild<Ways>(
    programOf('way-local.ts'),
    join(directory, 'local'),
    String(requests.local),
  );
  progress('a pool of its own');
  const pool = await startBenchPool();
  try {
    progress('the way on HTCondor');
    const site = join(directory, 'htcondor');
    const { queue, bare, environment } = prepare(pool, site);
    // The child has the environment of this process.
    Object.assign(process.env, environment);
    const count = requests.htcondor;
    const htcondor = await runChild<Ways>(
      programOf('way-htcondor.ts'),
      site,
      String(count),
      JSON.stringify(queue),
    );
    const condorSubmit: number[] = [];
    for (let nth = 0; nth < count; nth++) {
      const start = performance.now();
      await run('condor_submit', [bare], { env: { ...process.env, ...environment } });
      condorSubmit.push(performance.now() - start);
    }
    return { local, htcondor, condorSubmit, complaints: [...local.complaints, ...htcondor.complaints] };
  } finally {
    await pool.stop();
  }
}

/** The same pilot for the daemon and by hand. */
function prepare({ pool, directory: open, environment }: BenchPool, site: string) {
  const jobs = join(open, 'ways');
  openDirectory(pool, jobs);
  const executableFile = writeWrapper(jobs);
  const bare = join(jobs, 'one.sub');
  writeFileSync(bare, bareDescription(jobs, executableFile, 1));
  mkdirSync(site, { recursive: true, mode: 0o755 });
  writeFileSync(
    join(site, 'pilot.yaml'),
    stringify(pilotTemplate(jobs, { ...neverMatches, initialdir: jobs })),
  );
  const submitter = { executableFile, eventLog: pool.eventLog };
  const plugins = pluginsOf(
    condorQueue(pool, { template: 'pilot.yaml', submitter, monitor: { pollInterval: 10 } }),
  );
  const queue = { queueStatus: 'online', mapType: 'NoJob', demand: 'none', maxWorkers: 1000, ...plugins };
  return { queue, bare, environment: { HOME: jobs, ...environment } };
}
