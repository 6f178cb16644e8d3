import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob, resolve } from 'node:path';

const checkout = resolve(import.meta.dirname, '../..');

/** The tiers of the suite, the quickest first. `scripts/test TIER` runs one, and `scripts/test` all of them. */
export const tierNames = ['unit', 'promises', 'systems'] as const;
export type Tier = (typeof tierNames)[number];

/** Tests that need the Kubernetes, the HTCondor or the PanDA server of scripts/test-env. */
const systems: readonly string[] = [
  'test/integration/{kubernetes,htcondor,panda,campaign-kubernetes,campaign-htcondor,campaign-panda}*.test.ts',
  'test/support/panda-proxy.test.ts',
  'test/cli/render.test.ts',
  'test/plugins/kubernetes/render.test.ts',
  'test/support/fault-proxy.test.ts',
];

/** Tests that start the program, a Kerberos realm, a PostgreSQL server, the tools of scripts/test, or jobs, which have the machine's clock. */
const promises: readonly string[] = [
  'test/integration/*.test.ts',
  'test/checks/{ledger,planted-violations,scripts,sweep,units}.test.ts',
  'test/cli/{command-line,completion,db,hang-ups,program,smoke}.test.ts',
  'test/clients/credentials/ccache.test.ts',
  'test/clients/program.test.ts',
  'test/daemon/{daemon,factory-file,logging}.test.ts',
  'test/plugins/credentials/kerberos{,-secret}.test.ts',
  'test/plugins/documented-source.test.ts',
  'test/plugins/htcondor/{sweeper,submitting/submits}.test.ts',
  'test/plugins/kubernetes/{pool-image-entrypoint,starter/script}.test.ts',
  'test/plugins/local/{contract,damaged-directories,lost-directories,namespace-failures,other-factory,payload,pid-namespace}.test.ts',
  'test/plugins/local/{processes,snapshots,wall-time}.test.ts',
  'test/sources/htcjob/{job-output,job-run,send-event}.test.ts',
  'test/sources/interlink/pod/run{,-apptainer,-around}.test.ts',
  'test/support/slow-disk.test.ts',
  'test/store/{load,news,origins,payloads,queues,requests,retention,source-memory,worker-counts,workers}.test.ts',
];

/**
 * Files that a landing does not wait for: `scripts/test soak` runs them with all others. They are campaigns, faults of a system that has its own
 * file, crash points of what has them on each backend already, more of a feature whose main path has a file in the gate, and what only such a
 * change can break as has its own files in the gate too.
 */
const soak: readonly string[] = [
  'test/checks/planted-violations.test.ts',
  'test/integration/campaign-*.test.ts',
  'test/integration/{interlink,source}-crash-points.test.ts',
  'test/integration/{cacher,kerberos-env,local-namespaces,moved-queue,package}.test.ts',
  'test/integration/postgresql-{failover,faults,versions}.test.ts',
  'test/integration/panda-{crash-points,faults,pilot,production,server-down}.test.ts',
  'test/integration/htcondor-{env,followed-log,idle-faults,operator-requests,payload-crash-points,schedd-killed,source}.test.ts',
  'test/integration/htcondor-htcjob-{resource,restarts}.test.ts',
  'test/integration/htcondor-interlink-{crash,down,fetch,life,pods-life}.test.ts',
  'test/integration/kubernetes-{clock,env,etcd-restored,kerberos-secret,mounted-proxy,node-workers,operator-requests,pilot}.test.ts',
  'test/integration/kubernetes-{htcjob,members,source}-crash-points.test.ts',
  'test/integration/kubernetes-{pool-demand,pool-image,pool-node,shares,source,standby,standby-pause,thresher}.test.ts',
  'test/plugins/local/damaged-directories.test.ts',
];

/** Set for what a landing runs, and not for the soak, nor where files are named. */
export const gateVariable = 'THRESHER_TEST_GATE';

/**
 * Cases of a test that a landing runs: of the real kills at each step those between what the backend has done and what is written. That the steps are right
 * on every database `crash-points.test.ts` shows in this process, and the soak runs all.
 * @throws where no case is left
 */
export function ofGate<T>(
  cases: readonly T[],
  isKept: (one: T) => boolean,
  environment: NodeJS.ProcessEnv = process.env,
): readonly T[] {
  if (environment[gateVariable] === undefined) return cases;
  const kept = cases.filter(isKept);
  if (kept.length === 0) throw new Error('a landing would run none of these cases');
  return kept;
}

/** What assigns files, by its name: each pattern must name a file. */
export const assignments: Readonly<Record<string, readonly string[]>> = { systems, promises, soak };

const isIn = (file: string, patterns: readonly string[]) =>
  patterns.some((pattern) => matchesGlob(file, pattern));

/** Whether a landing does without it. */
export function isLeftToSoak(file: string): boolean {
  return isIn(file, soak);
}

/** Each file belongs to the first tier that names it, and all that no tier names are unit tests. */
export function tierOf(file: string): Tier {
  if (isIn(file, systems)) return 'systems';
  return isIn(file, promises) ? 'promises' : 'unit';
}

/** Seconds of test files, as `scripts/test --keep-durations` measured them. Files of less than a second are left out. */
export function keptDurations(root = checkout): ReadonlyMap<string, number> {
  const text = readFileSync(join(root, 'test/support/durations.json'), 'utf8');
  return new Map(Object.entries(JSON.parse(text) as Record<string, number>));
}

/** Seconds that are assumed of a file that was never measured: a long file that begins last would prolong the whole run. */
const assumed: Readonly<Record<Tier, number>> = { unit: 0, promises: 10, systems: 20 };

/** All test files by their path in the checkout. */
export function testFiles(root = checkout): string[] {
  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
    .sort();
}

/**
 * The test files of a tier, or of all, the longest first: mocha's workers take the next file whenever one ends, so what is left
 * for the end is short.
 * @throws for a tier that does not exist
 */
export function filesInOrder(tier: string | undefined, root = checkout): string[] {
  if (tier !== undefined && !(tierNames as readonly string[]).includes(tier))
    throw new Error(`there is no tier ${tier}; there are ${tierNames.join(', ')}`);
  const kept = keptDurations(root);
  const seconds = (file: string) => kept.get(file) ?? assumed[tierOf(file)];
  return testFiles(root)
    .filter((file) => tier === undefined || tierOf(file) === tier)
    .sort((one, other) => seconds(other) - seconds(one));
}
