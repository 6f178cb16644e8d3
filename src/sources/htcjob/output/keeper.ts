import type { Desk, Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { within } from '../../../util/within.ts';
import { messageOf, ThresherError, toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import { type HtcJobStatus, jobCount } from '../../../clients/htcjob/resource.ts';
import { attemptOf, fromRanges } from '../../../clients/htcjob/numbers.ts';
import { hasEnded, type JobFacts } from '../facts.ts';
import { hasEndedForGood, type Judgement } from '../judge.ts';
import type { Tracked } from '../tracked.ts';
import { Agenda } from '../agenda.ts';
import { withOutputs } from './output-status.ts';
import type { Outputs, OutputsLeft } from './outputs.ts';
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
/** Resources whose outputs are removed at the same time: one of them may have 100,000 files, and one file system takes two calls at a time. */
const removedAtOnce = 2;
/** Pauses before an output that could not be kept is fetched again, or outputs that could not be removed are, ms: each is twice the one before. */
const pauses = {
  first: 2000,
  /** Where the backend or the file system said no: it may be back at any time. */
  longest: 60_000,
  /** Where the output itself is not whole: each fetch of it costs as much as a whole one. */
  longestUnwhole: 3_600_000,
};
/** Fetches of a cut archive of one size before it counts as damaged: a quarter of an hour, in which HTCondor would have gone on writing. */
const mostCutFetches = 10;
/** Outputs in a row that the backend or the file system refuses before the others wait, too. */
const mostRefused = 3;
/** How the runner of a job begins the line that says why there is no archive. */
const saidByRunner = 'thresher: ';
const nothingHeld = 'it was ended before it could leave one, or never ran';
/** Longest such line, bytes: an archive is longer. */
const longestLine = 511;

/** Why an output that is due could not be kept yet. */
interface Failure {
  readonly message: string;
  /** When it is fetched again, monotonic ms. */
  readonly again: number;
  /** From the failure to that time, ms. */
  readonly pause: number;
  /** Bytes of a cut archive, and in how many fetches in a row it had as many. */
  readonly cut: { readonly bytes: number; readonly fetches: number } | undefined;
}

/** An output that is to be brought. */
interface Due {
  readonly workerId: number | undefined;
  failure: Failure | undefined;
}

/** An archive whose end is missing. It may be whole later. */
class CutOutput extends Error {
  readonly bytes: number;

  constructor(message: string, bytes: number) {
    super(message);
    this.name = 'CutOutput';
    this.bytes = bytes;
  }
}

/** The outputs of one resource. */
interface Known {
  readonly parts: readonly string[];
  readonly name: string;
  readonly due: Map<number, Due>;
  readonly kept: Set<number>;
  /** Workers whose output has its name since this daemon started, and that may still hold it. */
  readonly placed: Set<number>;
  /** Workers of attempts that another one followed: nobody wants what they left. */
  readonly replaced: Map<number, 'held' | 'dropped'>;
  /** By job number: why it has none. */
  readonly missing: Map<number, string>;
  /** Why outputs of repeated jobs could not be dropped. */
  undropped: string | undefined;
  /** Before the next look where all of a resource has to wait, ms. */
  pause: number;
  /** Ends what is being brought: the resource goes. */
  readonly over: AbortController;
}

/** The outputs of one resource that goes. */
interface Leaving {
  readonly tracked: Tracked;
  state: 'left' | 'asked' | 'removed';
  /** Why the last try failed. */
  why: Reason | undefined;
  /** Before the next try, ms. */
  pause: number;
}

/**
 * Brings the outputs of ended jobs into the directory of the operator, each once: an output that has its name there is whole. Removes
 * those of resources that go. The steps of a resource wait for neither.
 */
export class OutputKeeper implements Outputs {
  readonly #parts: KeeperParts;
  readonly #known = new Map<string, Known>();
  readonly #agenda: Agenda;
  readonly #busy = new Map<string, Promise<void>>();
  /** What is known of those that go, as long as their steps go on. */
  readonly #leaving = new WeakMap<Tracked, Leaving>();
  /** Those whose removal waits for its turn. */
  readonly #asked = new Map<string, Leaving>();
  readonly #removals: Agenda;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#agenda = new Agenda(parts.clock);
    this.#removals = new Agenda(parts.clock);
  }

  /** Resolves when `signal` aborts and all is at rest. */
  async run(signal: AbortSignal): Promise<void> {
    const bring = async (uid: string) => {
      const work = this.#bring(uid, signal);
      this.#busy.set(uid, work);
      await work;
      this.#busy.delete(uid);
    };
    const remove = (uid: string) => this.#removeAsked(uid, signal);
    await Promise.all([
      this.#agenda.run(atOnce, bring, signal),
      this.#removals.run(removedAtOnce, remove, signal),
    ]);
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
      known.due.set(number, { workerId: facts?.workerId ?? undefined, failure: undefined });
      isNew = true;
    }
    if (isNew) this.#agenda.add(tracked.uid);
  }

  inStatus(tracked: Tracked, status: HtcJobStatus): HtcJobStatus {
    if (tracked.spec.output === undefined) return status;
    const known = this.#of(tracked);
    const { parts, kept, missing } = known;
    const count = jobCount(tracked.spec);
    const facts = { directory: parts.join('/'), kept, missing, trouble: troubleOf(known), count };
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

  remove(tracked: Tracked): OutputsLeft | undefined {
    const { uid, spec } = tracked;
    if (spec.output === undefined) return undefined;
    this.letGo(tracked);
    const leaving = this.#leaving.get(tracked) ?? { tracked, state: 'left', why: undefined, pause: 0 };
    if (leaving.state === 'removed') return undefined;
    this.#leaving.set(tracked, leaving);
    if (leaving.state === 'left') {
      leaving.state = 'asked';
      this.#asked.set(uid, leaving);
      this.#removals.add(uid, leaving.pause);
    }
    return leaving;
  }

  async #removeAsked(uid: string, ended: AbortSignal): Promise<void> {
    const leaving = this.#asked.get(uid);
    this.#asked.delete(uid);
    // It may be there again, with what it has brought since.
    if (leaving === undefined || this.#leaving.get(leaving.tracked) !== leaving) return;
    const { log, changed } = this.#parts;
    const { tracked, pause } = leaving;
    try {
      await this.#remove(tracked);
      leaving.state = 'removed';
    } catch (error) {
      if (ended.aborted) return;
      leaving.why = toReason(error);
      leaving.state = 'left';
      leaving.pause = pause === 0 ? pauses.first : Math.min(2 * pause, pauses.longest);
      log.warn('outputs of a deleted HTCJob could not be removed', { htcjob: tracked.name, ...leaving.why });
    }
    changed(uid);
  }

  async #remove({ uid, meta, spec }: Tracked): Promise<void> {
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

  #of(tracked: Tracked): Known {
    const { uid, meta, spec, status, name } = tracked;
    const before = this.#known.get(uid);
    if (before !== undefined) return before;
    // One that is there after all: what was removed says nothing of what comes.
    this.#leaving.delete(tracked);
    const count = jobCount(spec);
    const known: Known = {
      parts: directoryOf(meta, spec),
      name,
      due: new Map(),
      placed: new Set(),
      replaced: new Map(),
      kept: fromRanges(status?.outputIndexes, count),
      missing: new Map([...fromRanges(status?.outputMissing, count)].map((number) => [number, ''])),
      undropped: undefined,
      pause: pauses.first,
      over: new AbortController(),
    };
    this.#known.set(uid, known);
    return known;
  }

  /** Brings all outputs of a resource that are due, one after the other. One that cannot be kept holds no other up. */
  async #bring(uid: string, ended: AbortSignal): Promise<void> {
    const known = this.#known.get(uid);
    if (known === undefined) return;
    const signal = AbortSignal.any([ended, known.over.signal]);
    const { changed, clock } = this.#parts;
    await this.#dropReplaced(known);
    let refused = 0;
    for (const [number, due] of freshFirst(known.due)) {
      if (isAborted(signal)) return;
      if ((due.failure?.again ?? 0) > clock.monotonic()) continue;
      try {
        await this.#bringOne(known, number, due, signal);
        if (known.due.get(number) === due) known.due.delete(number);
        if (known.undropped === undefined) known.pause = pauses.first;
        refused = 0;
      } catch (error) {
        if (isAborted(signal)) return;
        this.#fail(known, number, due, error);
        changed(uid);
        if (isUnwhole(error)) continue;
        refused++;
        if (refused === mostRefused) break;
      }
    }
    changed(uid);
    this.#lookAgain(uid, known, refused === mostRefused);
  }

  async #dropReplaced(known: Known): Promise<void> {
    const { log, desk } = this.#parts;
    const held = [...known.replaced].flatMap(([workerId, state]) => (state === 'held' ? [workerId] : []));
    known.undropped = undefined;
    try {
      if (held.length > 0) await desk.dropOutputs(held);
      for (const workerId of held) known.replaced.set(workerId, 'dropped');
    } catch (error) {
      log.warn('outputs of repeated jobs could not be dropped', { htcjob: known.name, ...toReason(error) });
      known.undropped = `repeated jobs, which is to be dropped: ${messageOf(error)}`;
    }
  }

  #fail(known: Known, number: number, due: Due, error: unknown): void {
    const { log, clock } = this.#parts;
    const before = due.failure;
    const cut = error instanceof CutOutput ? cutAfter(before, error) : before?.cut;
    // One that grows is being written.
    const isOther = cut?.bytes !== before?.cut?.bytes;
    const longest = isUnwhole(error) ? pauses.longestUnwhole : pauses.longest;
    const pause = before === undefined || isOther ? pauses.first : Math.min(2 * before.pause, longest);
    due.failure = { message: messageOf(error), again: clock.monotonic() + pause, pause, cut };
    log.warn('output of a HTCJob could not be kept', {
      htcjob: known.name,
      job: number,
      ...toReason(error),
    });
  }

  /** @param isRefused the backend or the file system refuses all */
  #lookAgain(uid: string, known: Known, isRefused: boolean): void {
    const now = this.#parts.clock.monotonic();
    let next = Infinity;
    if (!isRefused)
      for (const { failure } of known.due.values()) next = Math.min(next, failure?.again ?? now);
    let after = Math.max(0, next - now);
    // Nobody looks after those of repeated jobs once the daemon was restarted: then a sweep drops them with their workers.
    if (isRefused || known.undropped !== undefined) {
      after = Math.min(after, known.pause);
      known.pause = Math.min(2 * known.pause, pauses.longest);
    }
    if (after < Infinity) this.#agenda.add(uid, after);
  }

  async #bringOne(known: Known, number: number, due: Due, signal: AbortSignal): Promise<void> {
    const { desk, place, log } = this.#parts;
    const { workerId, failure } = due;
    const { parts, name } = known;
    const isThere = await place.has(parts, String(number));
    const fetched =
      workerId === undefined
        ? 'its job never ran, or is no longer known'
        : known.placed.has(workerId)
          ? undefined
          : await this.#fetch(known, { number, workerId, failure }, signal);
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
    if (known.due.get(number) !== due) return;
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
    { number, workerId, failure }: { number: number; workerId: number; failure: Failure | undefined },
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
      if (!(error instanceof WrongArchive)) throw error;
      // It would be the same each time.
      if (!error.isCut) return error.message;
      // A file that HTCondor is writing again is whole in a moment. One whose fetch was cut off has not come here: its backend refuses it.
      const cut = new CutOutput(error.message, output.bytes);
      if (cutAfter(failure, cut).fetches < mostCutFetches) throw cut;
      return `${error.message}, after the same ${output.bytes} bytes in each of ${mostCutFetches} fetches`;
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

/** Outputs that failed come last: a long list of them would keep the others waiting. */
function freshFirst(due: Known['due']): readonly (readonly [number: number, due: Due])[] {
  const isFresh = ([, { failure }]: readonly [number, Due]) => failure === undefined;
  return [...[...due].filter(isFresh), ...[...due].filter((one) => !isFresh(one))];
}

/** The output of this job is not whole: no other output waits for what this one waits for. */
function isUnwhole(error: unknown): boolean {
  return error instanceof CutOutput || toReason(error).code === 'output-awaited';
}

function cutAfter(before: Failure | undefined, { bytes }: CutOutput): NonNullable<Failure['cut']> {
  return { bytes, fetches: before?.cut?.bytes === bytes ? before.cut.fetches + 1 : 1 };
}

/** Why outputs cannot be kept now: of the first job that is concerned, and how many others are. */
function troubleOf({ due, undropped }: Known): string | undefined {
  let first: string | undefined;
  let others = -1;
  for (const [number, { failure }] of due) {
    if (failure === undefined) continue;
    first ??= `job ${number}: ${failure.message}`;
    others++;
  }
  if (first === undefined) return undropped;
  return others > 0 ? `${first}; and that of ${others} other jobs` : first;
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
