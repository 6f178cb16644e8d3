import { execFile } from 'node:child_process';
import { chmodSync, chownSync, closeSync, mkdtempSync, openSync, readFileSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { HTCondorClient } from '../../src/clients/htcondor/client.ts';
import type { ScheddPlace } from '../../src/clients/htcondor/tools.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type PoolStatus, startPool, stopPool } from '../env/htcondor/pool.ts';
import { openDirectories, unpackPrograms } from '../env/htcondor/programs.ts';
import { recordOf } from '../env/kubernetes/processes.ts';
import { ownedPrefix, removeDirectory } from './temporary.ts';

const run = promisify(execFile);
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

export type ScheddKind = 'local' | 'remote';

/** A pool, and what a test needs of it. */
export interface Pool extends PoolStatus {
  readonly pool: string;
  readonly programs: string;
}

let shared: Promise<Pool> | undefined;

/** The pool that all tests share: started once, and kept as long as the process that started the tests needs it. Nothing in it may be stopped or configured. */
export function condorPool(): Promise<Pool> {
  shared ??= startShared();
  return shared;
}

async function startShared(): Promise<Pool> {
  await run(testEnv, ['htcondor', 'start', '--for', String(process.ppid)]);
  const { stdout } = await run(testEnv, ['htcondor', 'status']);
  return usable(JSON.parse(stdout) as PoolStatus);
}

/** A pool of a test's own, 3 s: one that may hang, or has other limits. @param settings lines of its configuration */
export async function ownPool(
  settings: readonly string[] = [],
): Promise<Pool & { readonly stop: () => Promise<void> }> {
  const environment = process.env['THRESHER_TEST_ENV'] ?? join(process.env['HOME'] ?? '/', '.cache/thresher');
  const { programs } = openDirectories(environment);
  await unpackPrograms(programs);
  const directory = openTemporary();
  const status = usable(await startPool(join(directory, 'pool'), programs, { more: settings }));
  const stop = async () => {
    await stopPool(status.directory);
    removeDirectory(directory);
  };
  return { ...status, stop };
}

function usable(status: PoolStatus): Pool {
  const { pool, programs } = status;
  if (pool === undefined || programs === undefined) throw new Error('the pool does not run');
  return { ...status, pool, programs };
}

/** How a schedd of a pool is reached. */
export function placeOf(pool: Pool, kind: ScheddKind): ScheddPlace {
  const { config, tokens, schedd } = pool[kind];
  const place = { configFile: config, tokenDirectory: tokens, toolDirectory: pool.programs };
  return kind === 'local' ? place : { ...place, name: schedd, pool: pool.pool };
}

/** What one test has to itself in a shared pool. */
export interface CondorSpace {
  /** Belongs to whoever the jobs are, so that their logs and output can be written there. */
  readonly directory: string;
  /** For the ClassAd `thresherFactory`. */
  readonly factory: string;
  /** The constraint of its jobs. */
  readonly mine: string;
}

const made: string[] = [];

export function condorSpace(pool: Pool): CondorSpace {
  const directory = openTemporary();
  chownSync(directory, pool.uid, pool.gid);
  made.push(directory);
  // Short enough for a daemon's own id.
  const factory = `test-${randomUUID().slice(0, 18)}`;
  return { directory, factory, mine: `thresherFactory =?= "${factory}"` };
}

/** A directory that daemons and jobs can enter, though a test's own usually cannot be. */
function openTemporary(): string {
  const directory = mkdtempSync(ownedPrefix());
  chmodSync(directory, 0o755);
  return directory;
}

/** Removes what spaces left: jobs of the shared pool would run on otherwise. */
export async function clearSpaces(pool: Pool, spaces: readonly CondorSpace[]): Promise<void> {
  const { signal } = new AbortController();
  for (const kind of ['local', 'remote'] as const) {
    for (const { mine } of spaces) await clientOf(pool, kind).act('remove', mine, 'the test is over', signal);
  }
  for (const directory of made.splice(0)) removeDirectory(directory);
}

export function clientOf(pool: Pool, kind: ScheddKind, change: Partial<ScheddPlace> = {}, patience?: number) {
  return new HTCondorClient({
    place: { ...placeOf(pool, kind), ...change },
    clock: systemClock,
    environment: process.env,
    ...(patience !== undefined && { timeLimits: { ask: patience, change: patience, transfer: patience } }),
  });
}

/** The process of a schedd, to be stopped for a while. */
export function scheddPid(pool: Pool, kind: ScheddKind): number {
  const children = readFileSync(`/proc/${pool.pid ?? 0}/task/${pool.pid ?? 0}/children`, 'utf8')
    .trim()
    .split(' ');
  const found = children.find((pid) => {
    const line = commandLineOf(pid);
    return line.startsWith('condor_schedd') && line.includes('REMOTE') === (kind === 'remote');
  });
  if (found === undefined || recordOf(Number(found)) === undefined) throw new Error(`no ${kind} schedd runs`);
  return Number(found);
}

/** Empty for a child that has ended since its id was read. */
function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Makes the jobs of a factory those of somebody else in the history: as if they were rotated away. */
export function forgetHistory(
  { directory }: Pool,
  kind: ScheddKind,
  { factory }: Pick<CondorSpace, 'factory'>,
): void {
  const history = join(directory, kind === 'local' ? 'spool' : 'spool-remote', 'history');
  const before = 'thresherFactory = "';
  const file = openSync(history, 'r+');
  // As long as it was: offsets of others stay what they are.
  for (const { index } of readFileSync(history, 'latin1').matchAll(new RegExp(`${before}${factory}"`, 'g')))
    writeSync(file, 'x'.repeat(factory.length), index + before.length, 'latin1');
  closeSync(file);
}
