import { chmod, lstat, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { Age, type Clock } from '../../../util/clock.ts';
import { unlessAborted } from '../../../util/deadline.ts';
import { ensureDirectory, hasCode } from '../../../util/files.ts';
import { openPlainFile } from '../../../util/plain-file.ts';
import type { FileLane } from '../../../util/file-lane.ts';
import { removeTree } from '../../../util/remove-tree.ts';
import type { LogRequest } from '../../contracts/log-reader.ts';
import type { OutputFile } from '../output-file.ts';
import type { LeftOutput } from '../../contracts/output-reader.ts';

/** The user who writes the outputs: whose the jobs are. */
export interface Writer {
  readonly uid: number;
  readonly gid: number;
}

/** A worker whose source says whether it leaves an output, or that it needs what its template brings back. */
export interface Leaving {
  readonly workerId: number;
  readonly leaves: boolean | 'template';
}

/** End of the name of the file that says that HTCondor is writing an output, or was cut off in that. */
const partial = 'partial';

/** How long an output waits to be fetched, or for its source, ms: as long as HTCondor itself keeps a spooled job that has ended. */
const longestWait = 10 * 24 * 3_600_000;

/** A mark whose time differs by more from what has passed here is from another clock than the one of now, ms. */
const clocksDiffer = 60_000;

/** Ends of the names of the files with the words of a job: its output, its errors, and HTCondor's own log of it. */
const ends = { stdout: 'out', stderr: 'err', 'job-log': 'log' } as const;
const words = Object.values(ends);
/** End of the name of the file that says that an output was taken: each fetch of a log from the spool brings the output once more. */
const taken = 'taken';
/** End of the name of the file that says that the template's output is awaited; it has the time of the first fetch that failed, ms UTC. */
const awaited = 'awaited';
/** End of the name of the file with the time at which a sweep had to leave the worker for its output first, ms UTC. */
const kept = 'kept';

/**
 * Files of the workers of one schedd whose source says what they leave: `WORKER`, the output, and `WORKER.out`, `.err` and `.log`
 * beside it. They are there, and empty, before the job is submitted: its owner can then write these files, and make no others. An output
 * goes when its source took it, and all files go with the worker. `WORKER.awaited` stands for an output that lies where the template says.
 */
export class LeftOutputs {
  readonly directory: string;
  readonly #files: FileLane;
  /** The fetch that writes the output of a worker now: two at once would write the same file. */
  readonly #fetches = new Map<number, Promise<unknown>>();
  /** Of the times in marks, by path. */
  readonly #ages = new Map<string, Age>();

  constructor(directory: string, files: FileLane) {
    this.directory = directory;
    this.#files = files;
  }

  pathOf(workerId: number): string {
    return join(this.directory, String(workerId));
  }

  /** Makes the places of workers that are about to be submitted. @throws what the file system says */
  async make(workers: readonly Leaving[], writer?: Writer): Promise<void> {
    if (workers.length === 0) return;
    await this.#files.run(`making ${this.directory}`, async () => {
      await ensureDirectory(dirname(this.directory));
      await mkdir(this.directory, { mode: 0o700 }).catch((error: unknown) => {
        if (!hasCode(error, 'EEXIST')) throw error;
      });
      // Another user than ours may enter, and list nothing.
      if (writer !== undefined) await chmod(this.directory, 0o711);
    });
    for (const { workerId, leaves } of workers)
      await this.#files.run('making the places of an output', async () => {
        const path = this.pathOf(workerId);
        if (leaves === 'template') {
          await touch(`${path}.${awaited}`, undefined);
          return;
        }
        if (leaves) await touch(path, writer);
        for (const end of words) await touch(`${path}.${end}`, writer);
      });
  }

  /** Bytes of the output; 0: nothing has come; undefined: it was taken, the worker leaves none, or what it left is no file. */
  async bytesOf(workerId: number): Promise<number | undefined> {
    return (await this.#stat(workerId))?.size;
  }

  /** Waits while fetches write the outputs of these workers. @throws what the signal says */
  async settled(workerIds: readonly number[], signal: AbortSignal): Promise<void> {
    while (workerIds.some((workerId) => this.#fetches.has(workerId))) await this.#fetchOf(workerIds, signal);
  }

  /** Waits for the fetches that are under way now. @throws what the signal says */
  async #fetchOf(workerIds: readonly number[], signal: AbortSignal): Promise<void> {
    const fetches = workerIds.flatMap((workerId) => this.#fetches.get(workerId) ?? []);
    await unlessAborted(Promise.allSettled(fetches), signal);
  }

  /** Whether no fetch was cut off in it, or is under way. What HTCondor writes by itself, at the end of a job, is whole. */
  async isWhole(workerId: number): Promise<boolean> {
    return this.#files.run('a look at an output', async () => !(await isThere(this.#partialOf(workerId))));
  }

  /**
   * Fetches outputs anew, into their files: until one has come, it is not whole, also after a restart. It waits while another fetch writes
   * one of them.
   * @throws what the fetch does
   */
  async bring(workerIds: readonly number[], fetch: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const ours: number[] = [];
    for (const workerId of workerIds) if ((await this.#stat(workerId)) !== undefined) ours.push(workerId);
    // Nothing may come between the look and the fetch.
    while (ours.some((workerId) => this.#fetches.has(workerId))) await this.#fetchOf(ours, signal);
    const work = this.#bring(ours, fetch);
    for (const workerId of ours) this.#fetches.set(workerId, work);
    try {
      await work;
    } finally {
      for (const workerId of ours) this.#fetches.delete(workerId);
    }
  }

  async #bring(workerIds: readonly number[], fetch: () => Promise<void>): Promise<void> {
    for (const workerId of workerIds)
      await this.#files.run('marking an output', () => touch(this.#partialOf(workerId), undefined));
    await fetch();
    for (const workerId of workerIds)
      await this.#files.run('marking an output', () => rm(this.#partialOf(workerId), { force: true }));
  }

  #partialOf(workerId: number): string {
    return `${this.pathOf(workerId)}.${partial}`;
  }

  /**
   * Whether a sweep has to leave the worker for its source.
   * @param mayCome the spool may have an output that is not here yet
   */
  async isAwaited(
    workerId: number,
    clock: Pick<Clock, 'now' | 'monotonic'>,
    mayCome: boolean,
  ): Promise<boolean> {
    const found = await this.#stat(workerId);
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    if (found === undefined) {
      if (!mayCome) return false;
      const since = await this.#since(workerId, awaited, now, monotonic);
      return since !== undefined && now - since < longestWait;
    }
    if (found.size === 0 && !mayCome) return false;
    // The file is as old as the submission until its output comes, and that may come while no daemon runs.
    const since = (await this.#since(workerId, kept, now, monotonic)) ?? now;
    return now - Math.max(since, found.mtimeMs) < longestWait;
  }

  /** The time of the first look, which a mark keeps, ms UTC by the clock of now. Undefined: what the template brings back is not awaited. */
  async #since(workerId: number, mark: string, now: number, monotonic: number): Promise<number | undefined> {
    return this.#files.run('a look at an awaited output', async () => {
      const path = `${this.pathOf(workerId)}.${mark}`;
      let written = '';
      try {
        written = await readFile(path, 'utf8');
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error;
        if (mark === awaited) return undefined;
      }
      const first = Number(written);
      const age = this.#ages.get(path) ?? new Age();
      this.#ages.set(path, age);
      // A later one was written while the clock was ahead.
      const isOfPast = first > 0 && first <= now;
      if (!isOfPast) age.begin(now, monotonic);
      const since = isOfPast ? Math.round(now - age.of(first, now, monotonic)) : now;
      // One that was written while the clock was behind, too, counts by the clock of now, also after a restart.
      if (isOfPast && since - first < clocksDiffer) return since;
      // A source that needs no more what its template brings back has this mark removed. On a full disk the next look counts as the first one.
      const flag = mark === awaited ? 'r+' : 'w';
      await writeFile(path, String(since), { flag, mode: 0o600 }).catch(() => undefined);
      return since;
    });
  }

  /** @throws NotPlainFile, and what the file system says */
  async open(workerId: number, bytes: number): Promise<LeftOutput> {
    const file = await this.#files.run('opening an output', () =>
      openPlainFile(this.pathOf(workerId), 'refuse'),
    );
    const streams: Readable[] = [];
    const read = () => {
      const stream = file.createReadStream({ start: 0 });
      streams.push(stream);
      return stream;
    };
    const dispose = async () => {
      // A file that a stream still reads would not close.
      for (const stream of streams) stream.destroy();
      await file.close();
    };
    return { bytes, read, [Symbol.asyncDispose]: dispose };
  }

  /** Where the words of a job are; undefined: where the template of its queue says. */
  async wordsOf(workerId: number, stream: LogRequest['stream']): Promise<OutputFile | undefined> {
    const path = `${this.pathOf(workerId)}.${ends[stream]}`;
    const isOurs = await this.#files.run('a look at a log', () => isThere(path));
    return isOurs ? { directory: this.directory, name: basename(path) } : undefined;
  }

  /** The output is needed no more. */
  async drop(workerIds: readonly number[]): Promise<void> {
    for (const workerId of workerIds) {
      this.#forgetAges(workerId);
      for (const mark of [awaited, kept])
        await this.#files.run('removing a mark of an output', () =>
          rm(`${this.pathOf(workerId)}.${mark}`, { force: true }),
        );
      if ((await this.#stat(workerId)) === undefined) continue;
      const path = this.pathOf(workerId);
      await this.#files.run('removing an output', () => touch(`${path}.${taken}`, undefined));
      await this.#remove(path);
    }
  }

  /** Removes all files of a worker that goes. */
  async remove(workerId: number): Promise<void> {
    this.#forgetAges(workerId);
    const path = this.pathOf(workerId);
    await this.#remove(path);
    for (const end of [...words, taken, awaited, kept, partial]) await this.#remove(`${path}.${end}`);
  }

  #forgetAges(workerId: number): void {
    for (const mark of [awaited, kept]) this.#ages.delete(`${this.pathOf(workerId)}.${mark}`);
  }

  /** A job without a container may leave a directory where its output should be, and HTCondor then brings that. */
  #remove(path: string): Promise<void> {
    return removeTree(path, this.#files);
  }

  async #stat(workerId: number) {
    return this.#files.run('a look at an output', async () => {
      const path = this.pathOf(workerId);
      try {
        if (await isThere(`${path}.${taken}`)) return undefined;
        const found = await lstat(path);
        return found.isFile() ? found : undefined;
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return undefined;
        throw error;
      }
    });
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

async function touch(path: string, writer: Writer | undefined): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    if (writer !== undefined) await file.chown(writer.uid, writer.gid);
  } finally {
    await file.close();
  }
}
