import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';
import { freePort } from '../kubernetes/ports.ts';
import type { Holder } from '../kubernetes/state.ts';
import {
  isAlive,
  killAll,
  processesNaming,
  type Recorded,
  recordOf,
  startDetached,
} from '../kubernetes/processes.ts';
import { clientConfiguration, localSchedd, poolConfiguration, remoteSchedd } from './settings.ts';

const run = promisify(execFile);

interface State {
  readonly port: number;
  readonly process: Recorded;
  readonly programs: string;
  readonly holders: readonly Holder[];
}

/** How one of the schedds is reached. */
export interface ScheddAccess {
  readonly schedd: string;
  /** For CONDOR_CONFIG. */
  readonly config: string;
  /** With a token of the identity "pilot". */
  readonly tokens: string;
}

/** What `test-env htcondor status` prints. */
export interface PoolStatus {
  readonly running: boolean;
  readonly directory: string;
  /** "127.0.0.1:19618", for -pool. */
  readonly pool?: string;
  readonly pid?: number;
  /** Of the tools, for PATH. */
  readonly programs?: string;
  /** Is found without a name. */
  readonly local: ScheddAccess;
  /** Is found by name and pool. */
  readonly remote: ScheddAccess;
  /** Whose the jobs are on this machine. */
  readonly uid: number;
  readonly gid: number;
  readonly eventLog: string;
}

const placesIn = (root: string) => {
  const at = (name: string) => join(root, name);
  return {
    config: at('condor_config'),
    localConfig: at('local_config'),
    remoteConfig: at('remote_config'),
    users: at('users'),
    keys: at('keys'),
    log: at('log'),
    output: at('master.out'),
    state: at('state.json'),
  };
};

/** Jobs are never root's: HTCondor does not let them be. */
const nobody = { uid: 65_534, gid: 65_534, name: 'nobody' } as const;

function whose(): { readonly uid: number; readonly gid: number; readonly name: string } {
  const { uid, gid, username } = userInfo();
  return uid === 0 ? nobody : { uid, gid, name: username };
}

/** A command as whoever the daemons are. */
function asOwner(command: string, ...args: readonly string[]): [string, string[]] {
  const { uid, gid } = whose();
  if (process.getuid?.() !== 0) return [command, [...args]];
  return ['setpriv', ['--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups', command, ...args]];
}

export interface PoolStart {
  /** Lines of configuration that count last. */
  readonly more?: readonly string[];
  /** A process that needs it; else it was started by hand. */
  readonly holder?: number;
}

/** A pool of its own, with all its files in `directory`. One that runs already stays, unless all its holders have ended. */
export async function startPool(
  directory: string,
  programs: string,
  { more = [], holder }: PoolStart = {},
): Promise<PoolStatus> {
  let before = readState(directory);
  const asked = holder === undefined ? 'by hand' : recordOf(holder);
  if (asked === undefined) throw new Failure(`--for is ${holder ?? ''}: there is no such process`);
  if (
    holder !== undefined &&
    before !== undefined &&
    before.holders.every((one) => one !== 'by hand' && !isAlive(one))
  ) {
    await stopPool(directory);
    before = undefined;
  }
  if (before !== undefined && isAlive(before.process)) {
    writeState(directory, { ...before, holders: [...othersThan(before.holders, holder), asked] });
    await answers(directory, before.process);
    return poolStatus(directory);
  }
  const places = placesIn(directory);
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o755);
  const { uid, gid, name: owner } = whose();
  const port = await freePort(19_618);
  const ids = `${uid}.${gid}`;
  const settings = { programs, directory, port, ids, owner, more };
  for (const name of ['log', 'spool', 'spool-remote', 'execute', 'lock', 'run', 'keys', 'tokens']) {
    mkdirSync(join(directory, name), { mode: name === 'keys' || name === 'tokens' ? 0o700 : 0o755 });
    chownSync(join(directory, name), uid, gid);
  }
  for (const name of ['remote', 'no-keys']) mkdirSync(join(directory, name));
  writeFileSync(join(places.keys, 'POOL'), randomBytes(48).toString('base64'), { mode: 0o600 });
  chownSync(join(places.keys, 'POOL'), uid, gid);
  writeFileSync(places.config, poolConfiguration(settings));
  writeFileSync(places.localConfig, clientConfiguration('local', settings));
  writeFileSync(places.remoteConfig, clientConfiguration('remote', settings));
  await writeToken(directory, programs, 'pilot', places.users);
  const bin = `${programs}/usr`;
  // No variable of whoever calls this reaches the daemons, and so none reaches a job.
  const environment = [
    `PATH=${bin}/bin:${bin}/sbin:/usr/sbin:/usr/bin:/sbin:/bin`,
    'HOME=/',
    `CONDOR_CONFIG=${places.config}`,
  ];
  const [command, args] = asOwner('env', '-i', ...environment, `${bin}/sbin/condor_master`, '-f');
  const master = await startDetached(command, args, places.output, '/');
  writeState(directory, { port, process: master, programs, holders: [asked] });
  await answers(directory, master);
  return poolStatus(directory);
}

/** Ends the daemons and the jobs under them, and removes their files; with `holder` only if nobody else needs them. */
export async function stopPool(directory: string, holder?: number): Promise<void> {
  const state = readState(directory);
  if (holder !== undefined && state !== undefined) {
    const holders = othersThan(state.holders, holder);
    if (holders.length > 0) {
      writeState(directory, { ...state, holders });
      return;
    }
  }
  if (state !== undefined && isAlive(state.process)) {
    const under = descendants(state.process.pid);
    // The master would start again what ends before it.
    await killAll([state.process]);
    await killAll(under);
  }
  // A master that was killed alone leaves daemons that notice it only after a while.
  await killAll(
    processesNaming(placesIn(directory).config).filter(({ program }) => program.startsWith('condor_')),
  );
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

export function poolStatus(directory: string): PoolStatus {
  const places = placesIn(directory);
  const state = readState(directory);
  const running = state !== undefined && isAlive(state.process);
  const access = (schedd: string, config: string): ScheddAccess => ({ schedd, config, tokens: places.users });
  const { uid, gid } = whose();
  return {
    running,
    directory,
    uid,
    gid,
    eventLog: join(places.log, 'EventLog'),
    ...(running && {
      pool: `127.0.0.1:${state.port}`,
      pid: state.process.pid,
      programs: join(state.programs, 'usr/bin'),
    }),
    local: access(localSchedd, places.localConfig),
    remote: access(remoteSchedd, places.remoteConfig),
  };
}

/** Writes a token that the pool has signed, where only the caller can read it: HTCondor silently skips any other. */
export async function writeToken(
  root: string,
  programs: string,
  identity: string,
  directory: string,
): Promise<void> {
  const create = [
    'condor_token_create',
    '-identity',
    `${identity}@pool.test`,
    '-lifetime',
    '864000',
  ] as const;
  const [command, args] = asOwner(join(programs, 'usr/bin', create[0]), ...create.slice(1));
  const env = { PATH: process.env['PATH'] ?? '', CONDOR_CONFIG: placesIn(root).config };
  try {
    const { stdout } = await run(command, args, { env, cwd: '/' });
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(join(directory, identity), stdout, { mode: 0o600 });
  } catch (error) {
    throw new Failure(`no token of the pool: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Waits until the collector knows of the negotiator, both schedds and the startd. */
async function answers(directory: string, master: Recorded): Promise<void> {
  const { config, log, output } = placesIn(directory);
  const status = join(readState(directory)?.programs ?? '', 'usr/bin/condor_status');
  const end = performance.now() + 60_000;
  for (;;) {
    const env = { PATH: process.env['PATH'] ?? '', CONDOR_CONFIG: config };
    const { stdout } = await run(status, ['-any', '-af', 'MyType', 'Name'], { env }).catch(() => ({
      stdout: '',
    }));
    if (
      ['Negotiator ', `Scheduler ${localSchedd}`, `Scheduler ${remoteSchedd}`].every((one) =>
        stdout.includes(one),
      ) &&
      /^(Machine|Slot) /m.test(stdout)
    ) {
      return;
    }
    if (!isAlive(master))
      throw new Failure(`condor_master ended at once: ${readFileSync(output, 'utf8').trim()}`);
    if (performance.now() > end) throw new Failure(`the pool does not answer; its logs are in ${log}`);
    await sleep(100);
  }
}

/** All processes below one: daemons, and the jobs of starters. */
function descendants(pid: number): Recorded[] {
  const parents = new Map<number, number[]>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const parent = parentOf(entry);
    if (parent !== undefined) parents.set(parent, [...(parents.get(parent) ?? []), Number(entry)]);
  }
  const below = (one: number): number[] =>
    (parents.get(one) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid).flatMap((one) => recordOf(one) ?? []);
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

/** Those who still need it. */
function othersThan(holders: readonly Holder[], pid: number | undefined): Holder[] {
  return holders.filter((one) => (one === 'by hand' ? pid !== undefined : isAlive(one) && one.pid !== pid));
}

function writeState(directory: string, state: State): void {
  const { state: file } = placesIn(directory);
  writeFileSync(`${file}.new`, JSON.stringify(state));
  renameSync(`${file}.new`, file);
}

function readState(directory: string): State | undefined {
  try {
    return JSON.parse(readFileSync(placesIn(directory).state, 'utf8')) as State;
  } catch {
    return undefined;
  }
}
