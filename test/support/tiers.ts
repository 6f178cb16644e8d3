import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob, resolve } from 'node:path';

const checkout = resolve(import.meta.dirname, '../..');

/** The tiers of the suite, the quickest first. `scripts/test TIER` runs one, and `scripts/test` all of them. */
export const tierNames = ['unit', 'promises', 'systems'] as const;
export type Tier = (typeof tierNames)[number];

/** Tests that need the Kubernetes, the HTCondor or the PanDA server of scripts/test-env. */
const systems: readonly string[] = [
  'test/integration/{kubernetes,htcondor,panda,campaign-kubernetes,campaign-htcondor}*.test.ts',
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
  'test/daemon/{daemon,factory-file,logging}.test.ts',
  'test/plugins/credentials/kerberos{,-secret}.test.ts',
  'test/plugins/documented-source.test.ts',
  'test/plugins/htcondor/{sweeper,submitting/submits}.test.ts',
  'test/plugins/kubernetes/{pool-image-entrypoint,starter/script}.test.ts',
  'test/plugins/local/{contract,damaged-directories,lost-directories,namespace-failures,payload,pid-namespace}.test.ts',
  'test/plugins/local/{processes,snapshots,wall-time}.test.ts',
  'test/sources/htcjob/{job-output,job-run,send-event}.test.ts',
  'test/sources/interlink/pod/run{,-apptainer,-around}.test.ts',
  'test/store/{load,news,origins,payloads,queues,requests,retention,source-memory,worker-counts,workers}.test.ts',
];

/** Each file belongs to the first tier that names it, and all that no tier names are unit tests. */
export function tierOf(file: string): Tier {
  const isIn = (patterns: readonly string[]) => patterns.some((pattern) => matchesGlob(file, pattern));
  if (isIn(systems)) return 'systems';
  return isIn(promises) ? 'promises' : 'unit';
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
