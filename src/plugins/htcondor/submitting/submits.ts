import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { ensureDirectory, hasCode } from '../../../util/files.ts';
import type { Clock } from '../../../util/clock.ts';
import { messageOf, ThresherError, toReason } from '../../../worker/errors.ts';
import type { WorkerError } from '../../../worker/worker.ts';

/** A `condor_submit` that was started. The pid alone is no identity: it is given to others later. */
interface Submit {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTicks: number;
  readonly bootId: string;
  readonly host: string;
  readonly workerIds: readonly number[];
}

/** One that is about to be started. */
export interface BegunSubmit {
  /** Writes down which process it is. @throws if it cannot be written; the process is ended then. */
  readonly onStart: (pid: number) => void;
  /** It has ended, and nothing of it needs to be remembered. */
  readonly over: () => Promise<void>;
}

/** How long a process may take to vanish after KILL, ms: the kernel may first have to end a disk access. */
const killWait = 5000;
const killInterval = 20;

/**
 * Every `condor_submit` that runs, each in a file: one outlives the daemon that started it, and submits as soon as a
 * schedd that hung goes on. The file is on the disk before the process gets the first byte of what it shall submit (it
 * is written in `onStart`, synchronously, and the text goes to its standard input after that): a daemon that is killed
 * before leaves one that has nothing to submit, and one that is killed later leaves a file by which it is ended.
 */
export class Submits {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  /** Files of the submissions that this daemon began. */
  readonly #own = new Set<string>();
  #earlierEnded = false;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /**
   * @param mayStart is asked when the process is there and has nothing to submit yet; it throws where nothing may be submitted any more
   * @throws what the file system says
   */
  async begin(workerIds: readonly number[], mayStart: () => void = () => undefined): Promise<BegunSubmit> {
    await ensureDirectory(this.#directory);
    const file = join(this.#directory, `${randomUUID()}.json`);
    return {
      onStart: (pid) => {
        try {
          mayStart();
          const startTicks = statOf(pid)?.startTicks ?? 0;
          const submit: Submit = { pid, startTicks, bootId: this.#bootId, host: hostname(), workerIds };
          this.#own.add(file);
          writeToDisk(file, JSON.stringify(submit));
        } catch (error) {
          killGroup(pid);
          throw error;
        }
      },
      over: async () => {
        await rm(file, { force: true });
        this.#own.delete(file);
      },
    };
  }

  /**
   * Ends every one that an earlier daemon left, whichever workers it has to do with: a database that was lost has no rows of these
   * workers, and a source would get a second worker for the origin of one that arrives after the first listing. One on
   * another machine is left to `end`.
   * @throws ThresherError `htcondor-submit-lives` as long as one does not end
   */
  async endEarlier(signal: AbortSignal): Promise<void> {
    if (this.#earlierEnded) return;
    for (const file of await this.#files()) {
      if (this.#own.has(file)) continue;
      const submit = await readSubmit(file);
      if (submit === undefined || submit.host !== hostname()) continue;
      await this.#endOne(submit, file, signal);
    }
    this.#earlierEnded = true;
  }

  /**
   * Ends every one that still runs and has to do with these workers.
   * @returns `htcondor-submit-elsewhere` or `htcondor-submit-lives` of those of which that cannot be made sure.
   */
  async end(workerIds: ReadonlySet<number>, signal: AbortSignal): Promise<ReadonlyMap<number, WorkerError>> {
    const failed = new Map<number, WorkerError>();
    for (const file of await this.#files()) {
      const submit = await readSubmit(file);
      const concerned = submit?.workerIds.filter((id) => workerIds.has(id)) ?? [];
      if (submit === undefined || concerned.length === 0) continue;
      try {
        await this.#endOne(submit, file, signal);
        await rm(file, { force: true });
      } catch (error) {
        for (const id of concerned) failed.set(id, toReason(error));
      }
    }
    return failed;
  }

  /** Why of these workers something may still be submitted: a `condor_submit` of theirs runs, or may run elsewhere. */
  async unfinished(workerIds: ReadonlySet<number>): Promise<ReadonlyMap<number, WorkerError>> {
    const found = new Map<number, WorkerError>();
    for (const file of await this.#files()) {
      const submit = await readSubmit(file);
      const concerned = submit?.workerIds.filter((id) => workerIds.has(id)) ?? [];
      if (submit === undefined || concerned.length === 0) continue;
      const { pid, host, bootId } = submit;
      const isHere = host === hostname();
      if (isHere && (bootId !== this.#bootId || !isAlive(submit))) continue;
      const message = `condor_submit (process ${pid} on ${host}) may still submit the worker`;
      const elsewhere = `${message}: end it, then remove ${file}`;
      for (const id of concerned)
        found.set(
          id,
          isHere
            ? { code: 'late-creation', message }
            : { code: 'htcondor-submit-elsewhere', message: elsewhere },
        );
    }
    return found;
  }

  async #files(): Promise<string[]> {
    try {
      const names = await readdir(this.#directory);
      return names.filter((name) => name.endsWith('.json')).map((name) => join(this.#directory, name));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    }
  }

  async #endOne(submit: Submit, file: string, signal: AbortSignal): Promise<void> {
    const { pid, host, bootId } = submit;
    if (host !== hostname()) {
      const message = `condor_submit was started as process ${pid} on ${host} and may still run there: end it, then remove ${file}`;
      throw new ThresherError('htcondor-submit-elsewhere', message, { host, pid, file });
    }
    // The machine was booted since: nothing of before is left.
    if (bootId !== this.#bootId) return;
    const deadline = this.#clock.monotonic() + killWait;
    while (isAlive(submit)) {
      killGroup(pid);
      if (signal.aborted || this.#clock.monotonic() > deadline) {
        const message = `condor_submit of an earlier attempt (process ${pid}) does not end; nothing is tried again before it has`;
        throw new ThresherError('htcondor-submit-lives', message, { pid, file });
      }
      await this.#clock.sleep(killInterval, signal);
    }
  }
}

/** @returns undefined for one that is gone by now, and for half a file: its process never got anything to submit. */
async function readSubmit(file: string): Promise<Submit | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw new ThresherError('htcondor-submit-lives', `${file} cannot be read: ${messageOf(error)}`);
  }
  try {
    const { pid, startTicks, bootId, host, workerIds } = JSON.parse(text) as Submit;
    return Array.isArray(workerIds) ? { pid, startTicks, bootId, host, workerIds } : undefined;
  } catch {
    return undefined;
  }
}

/** The file and its name are on the disk before it returns: what comes next is not to be undone. */
function writeToDisk(path: string, content: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** A zombie does not live: it only waits for a parent that may never look. */
function isAlive({ pid, startTicks }: Submit): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTicks === startTicks && stat.state !== 'Z' && stat.state !== 'X';
}

/** The fields after the command's name, which may hold blanks and brackets itself. Source: proc_pid_stat(5). */
function statOf(pid: number): { readonly state: string; readonly startTicks: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    // Or it is of another user by now, and `/proc` is mounted with `hidepid`.
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined;
    throw error;
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', startTicks: Number(fields[19]) };
}

/** It leads a group of its own. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}
