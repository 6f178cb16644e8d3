import { chmod, mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ensureDirectory, hasCode } from '../../../util/files.ts';
import { openPlainFile } from '../../../util/plain-file.ts';
import type { FileLane } from '../../../util/file-lane.ts';
import type { LeftOutput } from '../../contracts/output-reader.ts';

/** The user who writes the outputs: whose the jobs are. */
export interface Writer {
  readonly uid: number;
  readonly gid: number;
}

/** How long an output waits for its source, ms: as long as HTCondor itself keeps a spooled job that has ended. */
const longestWait = 10 * 24 * 3_600_000;

/**
 * Files that the workers of one schedd left for their sources: `WORKER` below its directory. The file is there, and empty, before the
 * job is submitted: its owner can then write this file, and make no other. It goes when its source took it, so a file that is there is
 * still needed.
 */
export class LeftOutputs {
  readonly directory: string;
  readonly #files: FileLane;

  constructor(directory: string, files: FileLane) {
    this.directory = directory;
    this.#files = files;
  }

  pathOf(workerId: number): string {
    return join(this.directory, String(workerId));
  }

  /** Makes the places of workers that are about to be submitted. @throws what the file system says */
  async make(workerIds: readonly number[], writer?: Writer): Promise<void> {
    if (workerIds.length === 0) return;
    await this.#files.run(`making ${this.directory}`, async () => {
      await ensureDirectory(dirname(this.directory));
      await mkdir(this.directory, { mode: 0o700 }).catch((error: unknown) => {
        if (!hasCode(error, 'EEXIST')) throw error;
      });
      // Another user than ours may enter, and list nothing.
      if (writer !== undefined) await chmod(this.directory, 0o711);
      for (const workerId of workerIds) {
        const file = await open(this.pathOf(workerId), 'a', 0o600);
        try {
          if (writer !== undefined) await file.chown(writer.uid, writer.gid);
        } finally {
          await file.close();
        }
      }
    });
  }

  /** Bytes of the output; 0: nothing has come; undefined: it was taken, or the worker leaves none. */
  async bytesOf(workerId: number): Promise<number | undefined> {
    return (await this.#stat(workerId))?.size;
  }

  /**
   * Whether a sweep has to leave the worker for its source.
   * @param now ms UTC
   * @param mayCome the spool may have an output that is not here yet
   */
  async isAwaited(workerId: number, now: number, mayCome: boolean): Promise<boolean> {
    const found = await this.#stat(workerId);
    return found !== undefined && (found.size > 0 || mayCome) && now - found.mtimeMs < longestWait;
  }

  /** @throws NotPlainFile, and what the file system says */
  async open(workerId: number, bytes: number): Promise<LeftOutput> {
    const file = await this.#files.run('opening an output', () =>
      openPlainFile(this.pathOf(workerId), 'refuse'),
    );
    return { bytes, read: () => file.createReadStream(), [Symbol.asyncDispose]: () => file.close() };
  }

  async drop(workerIds: readonly number[]): Promise<void> {
    for (const workerId of workerIds)
      await this.#files.run('removing an output', () => rm(this.pathOf(workerId), { force: true }));
  }

  async #stat(workerId: number) {
    return this.#files.run('a look at an output', async () => {
      try {
        return await stat(this.pathOf(workerId));
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return undefined;
        throw error;
      }
    });
  }
}
