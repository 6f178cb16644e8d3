import type { Desk, Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { within } from '../../../util/within.ts';
import { messageOf, ThresherError, toReason } from '../../../worker/errors.ts';
import { type HtcJobStatus, jobCount } from '../../../clients/htcjob/resource.ts';
import { attemptOf, fromRanges } from '../../../clients/htcjob/numbers.ts';
import { hasEnded, type JobFacts } from '../facts.ts';
import { hasEndedForGood, type Judgement } from '../judge.ts';
import type { Tracked } from '../tracked.ts';
import { Agenda } from '../agenda.ts';
import { withOutputs } from './output-status.ts';
import type { Outputs } from './outputs.ts';
import { directoryOf, type OutputPlace } from './place.ts';
import type { OnFiles } from './directory.ts';
import { type OutputBounds, unpack } from './unpack.ts';
import { WrongArchive } from './tar.ts';

export interface KeeperParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly desk: Pick<Desk, 'output' | 'dropOutputs' | 'find'>;
  readonly place: OutputPlace;
  readonly onFiles: OnFiles;
  readonly bounds: OutputBounds;
  /** Something new is known of the outputs of this resource. */
  readonly changed: (uid: string) => void;
}

/** How long a deletion waits for an output that is being brought, and whose end was asked for, ms. */
const longestRest = 10_000;
/** Outputs that are fetched at the same time. */
const atOnce = 4;
/** Pause before an output that could not be kept is fetched again, ms. */
const pauses = { first: 2000, longest: 60_000 };
/** How the runner of a job begins the line that says why there is no archive. */
const saidByRunner = 'thresher: ';
const nothingHeld = 'it was ended before it could leave one, or never ran';
/** Longest such line, bytes: an archive is longer. */
const longestLine = 511;

/** The outputs of one resource. */
interface Known {
  readonly parts: readonly string[];
  readonly name: string;
  readonly due: Map<number, number | undefined>;
  readonly kept: Set<number>;
  /** Workers whose output has its name since this daemon started, and that may still hold it. */
  readonly placed: Set<number>;
  /** Workers of attempts that another one followed: nobody wants what they left. */
  readonly replaced: Map<number, 'held' | 'dropped'>;
  /** By job number: why it has none. */
  readonly missing: Map<number, string>;
  /** Job and reason of the last failure. */
  trouble: string | undefined;
  pause: number;
  /** Ends what is being brought: the resource goes. */
  readonly over: AbortController;
}

/**
 * Brings the outputs of ended jobs into the directory of the operator, each once: an output that has its name there is whole. The
 * steps of a resource do not wait for it.
 */
export class OutputKeeper implements Outputs {
  readonly #parts: KeeperParts;
  readonly #known = new Map<string, Known>();
  readonly #agenda: Agenda;
  readonly #busy = new Map<string, Promise<void>>();

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#agenda = new Agenda(parts.clock);
  }

  /** Resolves when `signal` aborts and all is at rest. */
  run(signal: AbortSignal): Promise<void> {
    return this.#agenda.run(
      atOnce,
      async (uid) => {
        const work = this.#bring(uid, signal);
        this.#busy.set(uid, work);
        await work;
        this.#busy.delete(uid);
      },
      signal,
    );
  }

  /** Asks for the outputs of the jobs that have ended for good. */
  want(tracked: Tracked, { jobs }: Pick<Judgement, 'jobs'>): void {
    if (tracked.spec.output === undefined) return;
    const known = this.#of(tracked);
    let isNew = false;
    const lasts = lastsOf(tracked);
    for (const workerId of replaced(tracked, lasts)) {
      if (known.replaced.has(workerId)) continue;
      known.replaced.set(workerId, 'held');
      isNew = true;
    }
    for (const { number, outcome, facts: judged } of jobs) {
      if (!hasEndedForGood({ outcome })) {
        // It is run again, since its limit was raised: what an earlier attempt left is not its output.
        for (const told of [known.kept, known.missing, known.due]) told.delete(number);
        continue;
      }
      if (known.kept.has(number) || known.missing.has(number) || known.due.has(number)) continue;
      // A further attempt may have been asked for, and have ended before it had a worker.
      const facts = outcome === 'succeeded' ? judged : (lasts.get(number)?.facts ?? judged);
      known.due.set(number, facts?.workerId ?? undefined);
      isNew = true;
    }
    if (isNew) this.#agenda.add(tracked.uid);
  }

  inStatus(tracked: Tracked, status: HtcJobStatus): HtcJobStatus {
    if (tracked.spec.output === undefined) return status;
    const { parts, kept, missing, trouble } = this.#of(tracked);
    const facts = { directory: parts.join('/'), kept, missing, trouble, count: jobCount(tracked.spec) };
    return withOutputs(status, facts, this.#parts.clock.now());
  }

  isOpen({ uid, status, spec }: Tracked): boolean {
    if (spec.output === undefined) return false;
    const count = jobCount(spec);
    const said = [status?.outputIndexes, status?.outputMissing].map((text) => fromRanges(text, count).size);
    const isOpen = said.reduce((sum, one) => sum + one, 0) < count;
    // Nothing of thousands that are over is kept in memory.
    const isDropping = [...(this.#known.get(uid)?.replaced.values() ?? [])].includes('held');
    if (!isOpen && !isDropping) this.#known.delete(uid);
    return isOpen;
  }

  letGo({ uid }: Pick<Tracked, 'uid'>): void {
    this.#known.get(uid)?.over.abort();
    this.#known.delete(uid);
  }

  async remove(tracked: Tracked): Promise<void> {
    const { uid, meta, spec } = tracked;
    if (spec.output === undefined) return;
    this.letGo(tracked);
    const { desk, place, clock } = this.#parts;
    // A disk or a schedd that hangs ends nothing. The deletion says so, and comes back.
    if (!(await within(clock, longestRest, this.#busy.get(uid) ?? Promise.resolve())))
      throw new ThresherError(
        'output-awaited',
        'an output that is being brought has not come to its end yet',
      );
    // Of one that went without its finalizer workers may be left, and a sweep leaves those whose output is still needed.
    const workers = (await desk.find([{ uid }])).flatMap(({ worker }) => worker.workerId ?? []);
    await desk.dropOutputs(workers);
    await place.remove(directoryOf(meta, spec));
  }

  #of({ uid, meta, spec, status, name }: Tracked): Known {
    const before = this.#known.get(uid);
    if (before !== undefined) return before;
    const count = jobCount(spec);
    const known: Known = {
      parts: directoryOf(meta, spec),
      name,
      due: new Map(),
      placed: new Set(),
      replaced: new Map(),
      kept: fromRanges(status?.outputIndexes, count),
      missing: new Map([...fromRanges(status?.outputMissing, count)].map((number) => [number, ''])),
      trouble: undefined,
      pause: pauses.first,
      over: new AbortController(),
    };
    this.#known.set(uid, known);
    return known;
  }

  /** Brings all outputs of a resource that are due, one after the other. */
  async #bring(uid: string, ended: AbortSignal): Promise<void> {
    const known = this.#known.get(uid);
    if (known === undefined) return;
    const signal = AbortSignal.any([ended, known.over.signal]);
    const { log, changed, desk } = this.#parts;
    let undropped: string | undefined;
    try {
      const held = [...known.replaced].flatMap(([workerId, state]) => (state === 'held' ? [workerId] : []));
      if (held.length > 0) await desk.dropOutputs(held);
      for (const workerId of held) known.replaced.set(workerId, 'dropped');
    } catch (error) {
      log.warn('outputs of repeated jobs could not be dropped', { htcjob: known.name, ...toReason(error) });
      undropped = `repeated jobs, which is to be dropped: ${messageOf(error)}`;
    }
    for (const [number, workerId] of [...known.due]) {
      if (isAborted(signal)) return;
      try {
        await this.#bringOne(known, number, workerId, signal);
        if (known.due.get(number) === workerId) known.due.delete(number);
        known.trouble = undefined;
        if (undropped === undefined) known.pause = pauses.first;
      } catch (error) {
        if (isAborted(signal)) return;
        known.trouble = `job ${number}: ${messageOf(error)}`;
        log.warn('output of a HTCJob could not be kept', {
          htcjob: known.name,
          job: number,
          ...toReason(error),
        });
        changed(uid);
        this.#agenda.add(uid, known.pause);
        known.pause = Math.min(2 * known.pause, pauses.longest);
        return;
      }
    }
    known.trouble = undropped;
    changed(uid);
    if (undropped === undefined) return;
    // Nobody looks after them once the daemon was restarted: then a sweep drops them with their workers.
    this.#agenda.add(uid, known.pause);
    known.pause = Math.min(2 * known.pause, pauses.longest);
  }

  async #bringOne(
    known: Known,
    number: number,
    workerId: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { desk, place, log } = this.#parts;
    const { parts, name } = known;
    const isThere = await place.has(parts, String(number));
    const fetched =
      workerId === undefined
        ? 'its job never ran, or is no longer known'
        : known.placed.has(workerId)
          ? undefined
          : await this.#fetch(known, number, workerId, signal);
    // A daemon that was killed after it kept an output finds no other; what it kept of an earlier attempt is another one's.
    const isKept = fetched === undefined || (isThere && (workerId === undefined || fetched === nothingHeld));
    const why = isKept ? undefined : fetched;
    if (isThere && !isKept) await place.remove([...parts, String(number)]);
    if (fetched === undefined && workerId !== undefined) known.placed.add(workerId);
    // Once the status says it, nobody comes back to it.
    if (workerId !== undefined) {
      await desk.dropOutputs([workerId]);
      known.placed.delete(workerId);
    }
    if (!known.due.has(number) || known.due.get(number) !== workerId) return;
    if (why === undefined) {
      known.kept.add(number);
      return;
    }
    known.missing.set(number, why);
    log.info('a job of a HTCJob has no output', { htcjob: name, job: number, why });
  }

  /** @returns why there is none, for good */
  async #fetch(
    known: Known,
    number: number,
    workerId: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { desk, place, bounds, onFiles, log } = this.#parts;
    await using output = await desk.output(workerId, signal);
    if (output === undefined) return nothingHeld;
    if (output.bytes <= longestLine) return saidIn(await textOf(output.read()));
    if (output.bytes > 2 * bounds.bytes) return `it has more than the ${bounds.bytes} bytes that are kept`;
    const fill = (directory: string) => unpack(output.read(), directory, bounds, onFiles);
    try {
      const { leftOut } = await place.make(known.parts, String(number), fill);
      if (leftOut > 0)
        log.warn('links and special files in the output of a job are not kept', {
          htcjob: known.name,
          job: number,
          leftOut,
        });
      return undefined;
    } catch (error) {
      // It would be the same each time. A file that HTCondor is writing again is whole in a moment.
      if (error instanceof WrongArchive && !error.isCut) return error.message;
      throw error;
    }
  }
}

interface Attempt {
  readonly index: number;
  readonly facts: JobFacts;
}

/** The last attempt at each job that had a worker. One that is only wanted, or had none, replaces no other. */
function lastsOf({ attempts }: Pick<Tracked, 'attempts'>): ReadonlyMap<number, Attempt> {
  const lasts = new Map<number, Attempt>();
  for (const [index, facts] of attempts) {
    const { number } = attemptOf(index);
    if (facts.workerId != null && index > (lasts.get(number)?.index ?? -1))
      lasts.set(number, { index, facts });
  }
  return lasts;
}

/** Workers of attempts that have ended, and that another one with a worker followed. */
function replaced(
  { attempts }: Pick<Tracked, 'attempts'>,
  lasts: ReturnType<typeof lastsOf>,
): readonly number[] {
  return [...attempts].flatMap(([index, facts]) => {
    const isReplaced = index < (lasts.get(attemptOf(index).number)?.index ?? index);
    return isReplaced && hasEnded(facts) && facts.workerId != null ? [facts.workerId] : [];
  });
}

/** It may have become so while something else was waited for. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

/** The runner says why it left no archive; nothing else is so short. */
function saidIn(text: string): string {
  const [line = ''] = text.split('\n');
  return line.startsWith(saidByRunner) ? line.slice(saidByRunner.length) : 'it is no archive of tar';
}
