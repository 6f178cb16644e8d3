import { chmod, link, mkdir, open, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pMap from 'p-map';
import { ensureDirectory, hasCode } from '../../../util/files.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import { type BundledWorker, bundleName, bundleScript } from './bundle.ts';

/** The user who reads the bundles: whose the jobs are. */
export interface Reader {
  readonly uid: number;
  readonly gid: number;
}

/** Bundles that are written at once: each waits for the disk. */
const atOnce = 8;

/** An attempt at a worker. */
export type Attempt = Pick<WorkerToStart, 'workerId' | 'attempt'>;

/**
 * The bundles of the workers of one schedd: `WORKER.ATTEMPT/thresher-payload.sh` below its directory. A job in the queue needs
 * its bundle until it has ended, since HTCondor reads it at each start. A spooled job has a copy of its own.
 *
 * An attempt has a directory of its own, so that no removal of an earlier one can meet a later one.
 */
export class Bundles {
  readonly directory: string;
  /** Those that a submission needs which has not ended. Jobs of theirs may not be in the queue yet. */
  readonly #submitting = new Set<string>();

  constructor(directory: string) {
    this.directory = directory;
  }

  pathOf(attempt: Attempt): string {
    return join(this.directory, nameOf(attempt), bundleName);
  }

  /**
   * Writes the bundles of a submission. None of them counts as left over before `submitted` is called.
   * @param reader who may read them, if that is not the user of this process; only root can give files away
   * @throws ThresherError `htcondor-payload-unwritten`
   */
  async write(workers: readonly BundledWorker[], reader?: Reader): Promise<void> {
    for (const worker of workers) this.#submitting.add(nameOf(worker));
    const same = [...Map.groupBy(workers, (worker) => worker.payloadId ?? nameOf(worker)).values()];
    try {
      await ensureDirectory(dirname(this.directory));
      await makeOwn(this.directory, reader);
      await pMap(same, (some) => this.#writeSame(some, reader), { concurrency: atOnce });
    } catch (error) {
      throw new ThresherError(
        'htcondor-payload-unwritten',
        `the payload of a worker cannot be written for its job: ${messageOf(error)}`,
      );
    }
  }

  /** The submission of these has ended, whatever became of it. */
  submitted(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#submitting.delete(nameOf(attempt));
  }

  /** Removes these of which a submission has ended. */
  async drop(attempts: readonly Attempt[]): Promise<void> {
    await this.#remove(attempts.map(nameOf));
  }

  /** Removes all of these workers, but for those of a submission that runs. */
  async dropAll(workerIds: ReadonlySet<number>): Promise<void> {
    const names = await this.#names();
    await this.#remove(names.filter((name) => workerIds.has(attemptOf(name).workerId)));
  }

  /** Attempts that have a bundle and no submission that runs in this daemon: a job needs it, or it was left over. */
  async unsubmitted(): Promise<readonly Attempt[]> {
    const names = await this.#names();
    return names.filter((name) => !this.#submitting.has(name)).map(attemptOf);
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.directory)).filter((name) => /^\d+\.\d+$/.test(name));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    }
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (this.#submitting.has(name)) continue;
      await rm(join(this.directory, name), { recursive: true, force: true });
    }
  }

  /** One content on the disk for all workers of one payload. */
  async #writeSame(workers: readonly BundledWorker[], reader: Reader | undefined): Promise<void> {
    let written: string | undefined;
    for (const worker of workers) {
      const directory = join(this.directory, nameOf(worker));
      await rm(directory, { recursive: true, force: true });
      await makeOwn(directory, reader);
      const path = join(directory, bundleName);
      if (written === undefined || !(await linked(written, path)))
        await writeBundle(path, bundleScript(worker.payload), reader);
      written = path;
    }
  }
}

async function writeBundle(path: string, script: string, reader: Reader | undefined): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(script);
    if (reader !== undefined) await file.chown(reader.uid, reader.gid);
    // After a crash of the machine the job is still in the queue, and an empty script would be a success.
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Another user than ours may enter on the way to a file that is theirs, and list nothing. */
async function makeOwn(directory: string, reader: Reader | undefined): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
  if (reader !== undefined) await chmod(directory, 0o711);
}

function nameOf({ workerId, attempt }: Attempt): string {
  return `${workerId}.${attempt}`;
}

function attemptOf(name: string): Attempt {
  const [workerId = 0, attempt = 0] = name.split('.').map(Number);
  return { workerId, attempt };
}

/** @returns false where the file system links no further file */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'EMLINK', 'EPERM', 'ENOTSUP', 'EXDEV')) return false;
    throw error;
  }
}
