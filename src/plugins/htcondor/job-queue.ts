import { dirname } from 'node:path';
import type { HTCondorClient } from '../../clients/htcondor/client.ts';
import { HTCondorError, isHTCondorError } from '../../clients/htcondor/errors.ts';
import { type Clock, isoTime } from '../../util/clock.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { isObject } from '../../util/json.ts';
import { readPlainFile } from '../../util/plain-file.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';

/** How soon a schedd is asked again that has never said when its queue was made, and a disk is tried again that took no file, ms. */
const tryAgain = 60_000;
/** bytes */
const longestFile = 4096;

export interface JobQueueParts {
  readonly client: Pick<HTCondorClient, 'jobQueue'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly submissionHost: string;
  /** In the state directory: when the queue was made that has the jobs of thresher. */
  readonly file: string;
}

interface Said {
  /** When the queue was made that has the jobs of thresher, s. */
  readonly kept: number;
  /** When the one was made that it has now, s. */
  readonly birth: number;
  /** When it was started, s. */
  readonly started: number;
  /** Nothing was kept before the question. */
  readonly isFirst: boolean;
}

/**
 * Whether a schedd has the queue that it had. One whose spool is not mounted makes an empty queue, and says of every job that there is none,
 * while all of them may run on, and are back with the spool. It also says when its queue was made (`JobQueueBirthdate`), and thresher writes
 * down what it said first.
 */
export class JobQueue {
  readonly #parts: JobQueueParts;
  /** When the schedd was started, as it said last, s. */
  #started: number | undefined;
  /** The queue that the disk did not take, s, and when it is tried again, monotonic ms. */
  #unkept: { readonly birth: number; readonly again: number } | undefined;
  /** Over once no birth is being written: they are, one after another. */
  #keeping: Promise<unknown> = Promise.resolve();
  /** When the schedd gave no answer, though nothing is known of it, monotonic ms. */
  #failedAt: number | undefined;
  /** Another queue that it has now, s. */
  #other: number | undefined;

  constructor(parts: JobQueueParts) {
    this.#parts = parts;
  }

  /** Whether it had another queue when it was asked last. */
  get isOther(): boolean {
    return this.#other !== undefined;
  }

  /**
   * When the schedd was started, s: to be asked before it is asked for jobs, and given to `require` after that. Undefined where it does not
   * say so.
   */
  async started(signal: AbortSignal): Promise<number | undefined> {
    if (this.#started === undefined)
      await this.#ask(signal).catch((error: unknown) => {
        if (!isHTCondorError(error) || signal.aborted) throw error;
      });
    return this.#started;
  }

  /**
   * To be asked after each answer by which a job would not be there. Nothing is known of a schedd that has never said when its queue was made.
   * @param before what `started` said before the question of which that was the answer
   * @throws ThresherError `htcondor-other-queue`; HTCondorError where the schedd does not say it, or was started again since or may have been, so
   *   that the answer may be that of the one before
   */
  async require(before: number | undefined, signal: AbortSignal): Promise<void> {
    const said = await this.#same(signal);
    if (said === undefined || before === said.started || (before === undefined && said.isFirst)) return;
    const { submissionHost } = this.#parts;
    const message = `${submissionHost} was started again while it was asked, or may have been: it has to be asked again`;
    throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
  }

  /**
   * To be asked before the schedd is given a job.
   * @throws ThresherError `htcondor-other-queue`; HTCondorError where the schedd does not say it
   */
  async requireNow(signal: AbortSignal): Promise<void> {
    await this.#same(signal);
  }

  /** @returns undefined as `#ask` does */
  async #same(signal: AbortSignal): Promise<Said | undefined> {
    const { submissionHost, file } = this.#parts;
    const said = await this.#ask(signal);
    if (said === undefined) return undefined;
    const { kept, birth } = said;
    if (kept !== birth) {
      const message = `the job queue of ${submissionHost} was made at ${dateOf(birth)}, and is not the one of ${dateOf(kept)} that has the jobs of thresher: these may run, so nothing is concluded. Mount the spool of the schedd again and restart it; if that queue is gone for good, remove ${file}`;
      this.#tell(birth, message);
      throw new ThresherError('htcondor-other-queue', message);
    }
    this.#other = undefined;
    return said;
  }

  /** @returns undefined where the schedd has never said it, and does not now */
  async #ask(signal: AbortSignal): Promise<Said | undefined> {
    const { client, clock } = this.#parts;
    const kept = await this.#kept();
    const failedAt = this.#failedAt ?? -Infinity;
    if (kept === undefined && failedAt + tryAgain > clock.monotonic()) return undefined;
    try {
      const { birth, started } = await client.jobQueue(signal);
      this.#started = started;
      if (kept !== undefined && this.#unkept === undefined) return { kept, birth, started, isFirst: false };
      const keeping = this.#keeping.then(() => this.#keep(kept ?? birth));
      this.#keeping = keeping.catch(() => undefined);
      return { kept: await keeping, birth, started, isFirst: kept === undefined };
    } catch (error) {
      if (kept !== undefined || signal.aborted || !isHTCondorError(error)) throw error;
      const { log, submissionHost } = this.#parts;
      if (this.#failedAt === undefined)
        log.warn('the schedd does not say which job queue it has', { submissionHost, ...toReason(error) });
      this.#failedAt = clock.monotonic();
      return undefined;
    }
  }

  #tell(birth: number, message: string): void {
    if (this.#other !== birth)
      this.#parts.log.warn('the schedd has another job queue', { code: 'htcondor-other-queue', message });
    this.#other = birth;
  }

  async #kept(): Promise<number | undefined> {
    return (await readKept(this.#parts.file)) ?? this.#unkept?.birth;
  }

  /**
   * What is not on the disk is known all the same, and is written later.
   * @returns what is kept: another question may have been answered first
   */
  async #keep(said: number): Promise<number> {
    const { file, log, clock } = this.#parts;
    const birth = (await this.#kept()) ?? said;
    if ((this.#unkept?.again ?? -Infinity) > clock.monotonic()) return birth;
    try {
      await ensureDirectory(dirname(file));
      await writeFileAtomically(file, `${JSON.stringify({ jobQueueBirthdate: birth })}\n`);
      this.#unkept = undefined;
    } catch (error) {
      log.warn('which job queue a schedd has is not kept', { file, ...toReason(error) });
      this.#unkept = { birth, again: clock.monotonic() + tryAgain };
    }
    return birth;
  }
}

function dateOf(seconds: number): string {
  return isoTime(seconds * 1000);
}

/** @throws ThresherError `htcondor-other-queue` where it cannot be read */
async function readKept(file: string): Promise<number | undefined> {
  try {
    const { bytes } = await readPlainFile(file, { largest: longestFile, links: 'refuse' });
    const read: unknown = JSON.parse(bytes.toString('utf8'));
    const birth = isObject(read) ? read['jobQueueBirthdate'] : undefined;
    if (typeof birth !== 'number') throw new TypeError('it is of another form');
    return birth;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    const message = `${file} cannot be read (${messageOf(error)}), so it is not known whether the schedd has the queue with the jobs of thresher. If condor_q shows them, remove the file`;
    throw new ThresherError('htcondor-other-queue', message);
  }
}
