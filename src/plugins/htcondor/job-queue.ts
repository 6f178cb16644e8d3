import { hostname } from 'node:os';
import { classAdString } from '../../clients/htcondor/classad.ts';
import type { HTCondorClient, QueueOfSchedd } from '../../clients/htcondor/client.ts';
import { HTCondorError, isHTCondorError } from '../../clients/htcondor/errors.ts';
import { type Clock, isoTime } from '../../util/clock.ts';
import { isObject } from '../../util/json.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { SourceMemory } from '../contracts/source.ts';
import { isOfMachine, type Schedd, submissionHostOf } from './place/schedds.ts';

/** How soon a schedd is asked again that has never said when its queue was made, and a place is tried again that took no text, ms. */
const tryAgain = 60_000;

type Place = Pick<Schedd, 'name' | 'pool'>;

export interface JobQueueParts {
  readonly client: Pick<HTCondorClient, 'jobQueue' | 'callAt'>;
  /** Another client, with the same identity, for a schedd of another name. */
  readonly clientAt: (place: Place) => Pick<HTCondorClient, 'jobQueue' | 'queue'>;
  readonly clock: Clock;
  readonly log: Log;
  /** As the settings name the schedd. */
  readonly place: Place;
  /** Constraint that our jobs fulfil. */
  readonly mine: string;
  /** Here stands which queue has the jobs of thresher. */
  readonly memory: SourceMemory;
  /** Names of all schedds that answered this daemon by them: those of one daemon share it. */
  readonly names: Map<string, NamedQueue>;
}

/** A schedd by a name of the settings to which it answered, and the queue that it said to have. */
export interface NamedQueue {
  readonly place: Place;
  /** s */
  readonly birth: number;
}

/** The queue that has the jobs of thresher. */
interface Kept {
  /** When it was made, s. */
  readonly birth: number;
  /** What the schedd called itself. Not known by earlier versions of thresher. */
  readonly name?: string;
}

/** Which schedd a question went to. */
export interface Asked {
  /** When it was started, s. */
  readonly started: number;
  /** The name by which it was called. */
  readonly name: string;
}

interface Said extends QueueOfSchedd {
  readonly kept: Kept;
  /** Nothing was kept before the question. */
  readonly isFirst: boolean;
}

/**
 * Whether a schedd has the queue that it had. One whose spool is not mounted makes an empty queue, and says of every job that there is none,
 * while all of them may run on, and are back with the spool; so does the schedd of another machine that has taken over. It also says when its
 * queue was made (`JobQueueBirthdate`), and thresher keeps what it said first beside its rows.
 *
 * A schedd that answers no more to the name that it had in the settings is called by another one of them, where it has the same queue: its jobs
 * are followed and ended as before, and it gets no more of them by the old name.
 */
export class JobQueue {
  readonly #parts: JobQueueParts;
  readonly #submissionHost: string;
  readonly #text: string;
  /** When the schedd was started, as it said last, s. */
  #started: number | undefined;
  /** The queue that could not be kept, and when that is tried again, monotonic ms. */
  #unkept: { readonly queue: Kept; readonly again: number } | undefined;
  /** Over once nothing is being written: one text is, after another. */
  #keeping: Promise<unknown> = Promise.resolve();
  /** When the schedd gave no answer, though nothing is known of it, monotonic ms. */
  #failedAt: number | undefined;
  /** Another queue that it has now, s. */
  #other: number | undefined;
  /** The other name by which it is called. */
  #calledAs: string | undefined;
  /** By that name it is on another machine than by its own. */
  #isElsewhere = false;

  constructor(parts: JobQueueParts) {
    this.#parts = parts;
    this.#submissionHost = submissionHostOf(parts.place);
    this.#text = `${encodeURIComponent(this.#submissionHost)}.json`;
  }

  /**
   * Whether the logs of job events may tell of the jobs of another queue: the schedd had another one when it was asked last, or its jobs are with
   * a schedd of another machine, and the one of the machine whose logs these are has jobs with the same numbers.
   */
  get logsAreOfOther(): boolean {
    return this.#other !== undefined || this.#isElsewhere;
  }

  /**
   * To be asked before the schedd is asked for jobs, and given to `require` after that. Undefined where it does not say when it was started.
   */
  async started(signal: AbortSignal): Promise<Asked | undefined> {
    if (this.#started === undefined)
      await this.#ask(signal).catch((error: unknown) => {
        if (!isHTCondorError(error) || signal.aborted) throw error;
      });
    return this.#started === undefined ? undefined : { started: this.#started, name: this.#name };
  }

  /**
   * To be asked after each answer by which a job would not be there. Nothing is known of a schedd that has never said when its queue was made.
   * @param before what `started` said before the question of which that was the answer
   * @throws ThresherError `htcondor-other-queue`; HTCondorError where the schedd does not say it, or was started again since or may have been, so
   *   that the answer may be that of the one before
   */
  async require(before: Asked | undefined, signal: AbortSignal): Promise<void> {
    const said = await this.#same(signal);
    if (said === undefined || (before === undefined && said.isFirst)) return;
    if (before?.started === said.started && before.name === this.#name) return;
    const message = `${this.#submissionHost} was started again while it was asked, or may have been: it has to be asked again`;
    throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
  }

  /**
   * To be asked before the schedd is given a job.
   * @throws ThresherError `htcondor-other-queue`, also where it is called by another name and does not answer to its own; HTCondorError where the
   *   schedd does not say it
   */
  async requireNow(signal: AbortSignal): Promise<void> {
    if (this.#calledAs !== undefined) await this.#callByOwnName(signal);
    await this.#same(signal);
    const why = this.otherName;
    if (why !== undefined) throw new ThresherError(why.code, why.message);
  }

  /**
   * Why no job is given to the schedd while it is called by another name: its own, by which jobs are given, may be that of another one. To be asked
   * again in the moment before a job is sent, which may be long after `requireNow`.
   */
  get otherName(): { readonly code: 'htcondor-other-queue'; readonly message: string } | undefined {
    if (this.#calledAs === undefined) return undefined;
    const message = `${this.#submissionHost} is called by its name ${this.#name} since a look at its jobs failed, and gets no more of them until it answers to its own`;
    return { code: 'htcondor-other-queue', message };
  }

  /**
   * To be called after a look that failed: where another name of the settings leads to the same queue now, the schedd is called by that one.
   * Whether a schedd that calls itself otherwise has the same queue, its jobs say: by `GlobalJobId` each names the schedd that took it.
   * @returns whether it is called by another name than before
   */
  async callOtherwise(signal: AbortSignal): Promise<boolean> {
    const { names, client, clientAt, log } = this.#parts;
    const kept = await this.#kept();
    if (kept?.name === undefined) return false;
    const others = [...names].filter(([host, { birth }]) => host !== this.#name && birth === kept.birth);
    // The look may have failed for another reason, such as the history.
    const answers = async () => (await client.jobQueue(signal)).birth === kept.birth;
    if (others.length === 0 || (await answers().catch(() => false))) return false;
    for (const [host, { place }] of others) {
      if (signal.aborted) return false;
      try {
        const other = clientAt(place);
        const said = await other.jobQueue(signal);
        if (said.birth !== kept.birth) continue;
        if (said.name !== kept.name && !(await this.#hasJobsOf(kept.name, other, signal))) continue;
      } catch {
        // It does not answer by this one, either, which its own connection says.
        continue;
      }
      this.#callAt(place);
      const facts = { submissionHost: this.#submissionHost, name: host };
      log.warn('the schedd is called by another of its names', facts);
      return true;
    }
    return false;
  }

  #callAt(place: Place): void {
    const { client, place: own } = this.#parts;
    const machineOf = ({ name }: Place) => name?.replace(/^.*@/, '') ?? hostname();
    const host = submissionHostOf(place);
    client.callAt(place);
    this.#calledAs = host === this.#submissionHost ? undefined : host;
    this.#isElsewhere = !isOfMachine({ name: machineOf(place) }, machineOf(own));
    [this.#started, this.#other] = [undefined, undefined];
  }

  /** @throws ThresherError `htcondor-other-queue` */
  async #callByOwnName(signal: AbortSignal): Promise<void> {
    const { clientAt, place } = this.#parts;
    const kept = await this.#kept();
    if (kept !== undefined) {
      const said = await clientAt(place)
        .jobQueue(signal)
        .catch(() => undefined);
      if (said?.birth !== kept.birth) {
        const message = `${this.#submissionHost} does not answer to this name, or has another job queue: its jobs are followed and ended by its name ${this.#name}, and no more are submitted. Give the schedd this name in the queues, too; if another schedd has the name ${this.#submissionHost} for good, remove ${this.#place} once no job of the former one is left`;
        throw new ThresherError('htcondor-other-queue', message);
      }
    }
    this.#callAt(place);
  }

  async #hasJobsOf(
    name: string,
    client: Pick<HTCondorClient, 'queue'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isOfName = `substr(GlobalJobId, 0, ${name.length + 1}) =?= ${classAdString(`${name}#`)}`;
    const jobs = await client.queue(`${this.#parts.mine} && ${isOfName}`, ['ClusterId', 'ProcId'], signal);
    return jobs.length > 0;
  }

  /** @returns undefined as `#ask` does */
  async #same(signal: AbortSignal): Promise<Said | undefined> {
    const said = await this.#ask(signal);
    if (said === undefined) return undefined;
    const { kept, birth, name } = said;
    if (kept.birth !== birth) {
      const was = kept.name === undefined ? '' : ` of ${kept.name}`;
      const message = `the job queue of ${this.#submissionHost} (${name}) was made at ${dateOf(birth)}, and is not the one${was} of ${dateOf(kept.birth)} that has the jobs of thresher: these may run, so nothing is concluded. Mount the spool of the schedd again and restart it; if another schedd has that queue, name that one in condorSchedd; if that queue is gone for good, remove ${this.#place}`;
      this.#tell(birth, message);
      throw new ThresherError('htcondor-other-queue', message);
    }
    this.#other = undefined;
    return said;
  }

  /** @returns undefined where the schedd has never said it, and does not now */
  async #ask(signal: AbortSignal): Promise<Said | undefined> {
    const { client, clock, log, names, place } = this.#parts;
    const kept = await this.#kept();
    // An operator gave up the queue that the other name leads to.
    if (kept === undefined && this.#calledAs !== undefined) {
      const facts = { submissionHost: this.#submissionHost, name: this.#name, place: this.#place };
      log.warn(
        'the schedd is called by its own name again: what is kept of its job queue was removed',
        facts,
      );
      this.#callAt(place);
    }
    const failedAt = this.#failedAt ?? -Infinity;
    if (kept === undefined && failedAt + tryAgain > clock.monotonic()) return undefined;
    try {
      const said = await client.jobQueue(signal);
      this.#started = said.started;
      if (this.#calledAs === undefined) names.set(this.#submissionHost, { place, birth: said.birth });
      const isKept = kept !== undefined && (kept.birth !== said.birth || kept.name === said.name);
      if (isKept && this.#unkept === undefined) return { ...said, kept, isFirst: false };
      const keeping = this.#keeping.then(() => this.#keep(said));
      this.#keeping = keeping.catch(() => undefined);
      return { ...said, kept: await keeping, isFirst: kept === undefined };
    } catch (error) {
      if (kept !== undefined || signal.aborted || !isHTCondorError(error)) throw error;
      if (this.#failedAt === undefined) {
        const facts = { submissionHost: this.#submissionHost, ...toReason(error) };
        log.warn('the schedd does not say which job queue it has', facts);
      }
      this.#failedAt = clock.monotonic();
      return undefined;
    }
  }

  #tell(birth: number, message: string): void {
    if (this.#other !== birth)
      this.#parts.log.warn('the schedd has another job queue', { code: 'htcondor-other-queue', message });
    this.#other = birth;
  }

  /** By which it is called. */
  get #name(): string {
    return this.#calledAs ?? this.#submissionHost;
  }

  /** For messages. */
  get #place(): string {
    return this.#parts.memory.placeOf(this.#text);
  }

  /** @throws ThresherError `htcondor-other-queue` where it cannot be read, or what the database says */
  async #kept(): Promise<Kept | undefined> {
    try {
      const text = await this.#parts.memory.read(this.#text);
      return text === undefined ? this.#unkept?.queue : keptOf(JSON.parse(text));
    } catch (error) {
      if (error instanceof ThresherError) throw error;
      const message = `${this.#place} cannot be read (${messageOf(error)}), so it is not known whether the schedd has the queue with the jobs of thresher. If condor_q shows them, remove it`;
      throw new ThresherError('htcondor-other-queue', message);
    }
  }

  /**
   * What could not be written is known all the same, and is written later.
   * @returns what is kept: another question may have been answered first
   */
  async #keep({ birth, name }: QueueOfSchedd): Promise<Kept> {
    const { log, clock, memory } = this.#parts;
    const before = await this.#kept();
    const queue = before === undefined || before.birth === birth ? { birth, name } : before;
    if ((this.#unkept?.again ?? -Infinity) > clock.monotonic()) return queue;
    try {
      await memory.write(
        this.#text,
        `${JSON.stringify({ jobQueueBirthdate: queue.birth, name: queue.name })}\n`,
      );
      this.#unkept = undefined;
    } catch (error) {
      log.warn('which job queue a schedd has is not kept', { place: this.#place, ...toReason(error) });
      this.#unkept = { queue, again: clock.monotonic() + tryAgain };
    }
    return queue;
  }
}

function dateOf(seconds: number): string {
  return isoTime(seconds * 1000);
}

/** @throws TypeError */
function keptOf(read: unknown): Kept {
  const { jobQueueBirthdate: birth, name } = isObject(read) ? read : {};
  if (typeof birth !== 'number' || (name !== undefined && typeof name !== 'string'))
    throw new TypeError('it is of another form');
  return { birth, ...(name !== undefined && { name }) };
}
