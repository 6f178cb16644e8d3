import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import { toReason } from '../../../worker/errors.ts';
import { isFinal } from '../../../worker/status.ts';
import type { Worker, WorkerError } from '../../../worker/worker.ts';
import { inQueue, queuedOf, whereSame } from '../look-up.ts';
import type { Job } from '../marks.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import type { HTCondorDaemon, HTCondorMonitorConfig } from '../schema.ts';
import { stateOf } from '../state/job-state.ts';

export interface SpoolParts {
  readonly schedd: HTCondorSchedd;
  readonly daemon: Pick<HTCondorDaemon, 'clock'>;
  /** The monitor options of a job's queue. */
  readonly options: (
    queue: string | undefined,
    configId: number | undefined,
  ) => Pick<HTCondorMonitorConfig, 'heldTimeout'>;
}

const completed = 4;
/** Outputs that are fetched by one command, and how long a quick one takes, ms: then the next has twice as many. */
const portion = { most: 50, quick: 15_000 };
/** How long a command may take, ms. What one output alone has beyond it is fetched beside the portions, with a turn of its own. */
const longest = { portions: 60_000, slow: 600_000 };
type Lane = keyof typeof longest;
/** How long a removal waits for what is being fetched for it, ms: its other workers are not to wait longer. */
const patience = 15_000;
/**
 * So long after its first failure, ms, an output is given up that has failed so often, in commands of its own or in any: a moment without the
 * schedd, a log directory that is away, or a full disk must cost no log, whatever HTCondor calls it.
 */
const enough = { time: 3_600_000, alone: 10, any: 300 };
/** Failures of single outputs after which no portion is divided until the next call: the files of all jobs may be the matter. */
const mostAlone = 5;
/** How long an output counts as given up, ms: before a removal that comes later it is tried once more. */
const verdict = 60_000;

/** Those of the workers whose jobs have ended, with their output in the spool. @throws HTCondorError */
async function spooledOf(
  { schedd, daemon, options }: SpoolParts,
  workers: readonly Pick<Worker, 'workerId' | 'handle'>[],
  signal: AbortSignal,
): Promise<readonly Job[]> {
  const which = `JobStatus == ${completed} && StageInFinish > 0`;
  const started = await schedd.jobQueue.started(signal);
  const { ours: spooled } = await queuedOf(schedd, workers, which, signal);
  // A job of another queue that has the number of a worker would bring its own output.
  if (spooled.length > 0) await schedd.jobQueue.require(started, signal);
  return spooled.filter(({ ad, workerId = 0, queue, configId }) => {
    const { heldTimeout } = options(queue, configId);
    return isFinal(
      stateOf(workerId, ad, daemon.clock.now(), { heldTimeout, queued: true })?.observation.status ?? 'idle',
    );
  });
}

/** What a worker left in the spool. */
interface Spooled {
  readonly workerId: number;
  /** One job, or two where a lost answer had it submitted twice. */
  readonly jobs: readonly Pick<Job, 'id' | 'queuedAt'>[];
}

function byWorker(jobs: readonly Job[]): Spooled[] {
  const groups = Map.groupBy(jobs, ({ workerId = 0 }) => workerId);
  return [...groups].map(([workerId, some]) => ({
    workerId,
    jobs: some.map(({ id, queuedAt }) => ({ id, queuedAt })),
  }));
}

async function transfer(
  { schedd }: SpoolParts,
  outputs: readonly Spooled[],
  signal: AbortSignal,
): Promise<void> {
  const these = whereSame(outputs.flatMap(({ jobs }) => jobs));
  const workerIds = outputs.map(({ workerId }) => workerId);
  const fetch = () => schedd.client.transferData(`${schedd.mine} && (${these})`, signal);
  await schedd.outputs.bring(workerIds, fetch, signal);
}

/**
 * Brings the output of spooled jobs that have ended to where it was submitted from. Others are left alone.
 * @param workers few: what came before the time is over has come for good
 * @throws HTCondorError
 */
export async function fetchSpooled(
  parts: SpoolParts,
  workers: readonly Pick<Worker, 'workerId' | 'handle'>[],
  signal: AbortSignal,
): Promise<void> {
  const over = await spooledOf(parts, workers, signal);
  if (over.length > 0) await transfer(parts, byWorker(over), signal);
}

interface SpooledParts extends SpoolParts {
  readonly daemon: Pick<HTCondorDaemon, 'clock' | 'log' | 'ended'>;
}

/** What became of the outputs of some workers. Those of all others have come, or there are none. */
export interface Fetched {
  /** Those whose output is given up, and why. It is tried again as long as its job is there. */
  readonly givenUp: ReadonlyMap<number, WorkerError>;
  /** Those whose output is still to come, and what it waits for. */
  readonly open: ReadonlyMap<number, string>;
  /** Those of which the schedd did not say whether they have an output. */
  readonly unanswered: ReadonlyMap<number, WorkerError>;
}

/** How a fetch ended. */
interface End {
  /** Monotonic ms. */
  readonly at: number;
  /** Why the output has not come. */
  readonly reason?: WorkerError;
  /** It is given up; the schedd was away, which says nothing of the output; or neither. */
  readonly kind?: 'given-up' | 'unanswered';
}

/** What is known of an output that could not be fetched yet. */
interface Missed {
  /** Of its first failure, monotonic ms. */
  readonly since: number;
  /** Failures of commands that were to fetch it, and of those that were to fetch it alone. */
  readonly any: number;
  readonly alone: number;
  /** Whether it was given up: each further failure is no news. */
  readonly isOver: boolean;
  /** Whether it was tried once more after that. */
  readonly isRetried: boolean;
}

/**
 * The output of spooled jobs that are about to be removed. It is fetched beside the removals, each once: a large one, or one that hangs,
 * keeps no other job from its removal.
 */
export class SpooledOutputs {
  readonly #parts: SpooledParts;
  /** Outputs whose turn is still to come, by worker. */
  readonly #queue = new Map<number, Spooled>();
  /** Those that took longer than a portion may, and have a turn of their own. */
  readonly #slow = new Map<number, Spooled>();
  /** Workers that had such a turn before. */
  readonly #wasSlow = new Set<number>();
  /** Workers whose output is being fetched, or waits for its turn. */
  readonly #open = new Set<number>();
  /** Workers whose output has come, or has failed and was not told of yet. */
  readonly #ended = new Map<number, End>();
  readonly #missed = new Map<number, Missed>();
  #atOnce = portion.most;
  #alone = 0;
  readonly #busy: Record<Lane, boolean> = { portions: false, slow: false };
  #news = Promise.withResolvers<undefined>();

  constructor(parts: SpooledParts) {
    this.#parts = parts;
  }

  /** The worker is no more. */
  forget(workerId: number): void {
    for (const known of [this.#queue, this.#slow, this.#open, this.#ended, this.#missed, this.#wasSlow])
      known.delete(workerId);
  }

  /** The output of spooled jobs goes with them. It waits for a moment; what comes later is there at the next call. */
  async fetch(workers: readonly Worker[], signal: AbortSignal): Promise<Fetched> {
    const ids = workers.map(({ workerId }) => workerId);
    for (const workerId of ids) {
      const end = this.#ended.get(workerId);
      if (end?.reason !== undefined && !this.#isFinal(workerId, end)) this.#ended.delete(workerId);
    }
    const fresh = workers.filter(({ workerId }) => !this.#open.has(workerId) && !this.#ended.has(workerId));
    const unanswered = new Map<number, WorkerError>();
    let spooled: readonly Job[] = [];
    try {
      if (fresh.length > 0) spooled = await spooledOf(this.#parts, fresh, signal);
      this.#take(spooled);
    } catch (error) {
      for (const { workerId } of fresh) unanswered.set(workerId, toReason(error));
    }
    /** Those that have none, or of which the schedd did not say it. */
    const without = new Set(fresh.map(({ workerId }) => workerId));
    for (const { workerId = 0 } of spooled) without.delete(workerId);
    await this.#settled(ids, signal);
    const [givenUp, open] = [new Map<number, WorkerError>(), new Map<number, string>()];
    for (const workerId of ids.filter((id) => !without.has(id))) {
      const end = this.#ended.get(workerId);
      if (end === undefined) {
        // It is open, or its end was told to another call, and what has not come must not be taken for come here.
        open.set(workerId, `the output of worker ${workerId} is being fetched, or waits for its turn`);
        continue;
      }
      const { kind, reason } = end;
      if (reason === undefined) continue;
      // The next call tries it again.
      this.#ended.delete(workerId);
      if (kind === undefined)
        open.set(workerId, `the output of worker ${workerId} cannot be fetched yet: ${reason.message}`);
      else (kind === 'given-up' ? givenUp : unanswered).set(workerId, reason);
    }
    return { givenUp, open, unanswered };
  }

  /** Whether a failure, of which no call was told yet, is the last one. One of long ago is not: what was the matter may be over. */
  #isFinal(workerId: number, { kind, at }: End): boolean {
    const missed = this.#missed.get(workerId);
    if (kind !== 'given-up' || missed === undefined) return false;
    if (missed.isRetried || this.#parts.daemon.clock.monotonic() - at <= verdict) return true;
    this.#missed.set(workerId, { ...missed, isRetried: true });
    return false;
  }

  #take(jobs: readonly Job[]): void {
    for (const output of byWorker(jobs)) {
      const { workerId } = output;
      // Another call may have asked for it meanwhile.
      if (this.#open.has(workerId) || this.#ended.has(workerId)) continue;
      (this.#wasSlow.has(workerId) ? this.#slow : this.#queue).set(workerId, output);
      this.#open.add(workerId);
    }
    this.#alone = 0;
    this.#start();
  }

  #start(): void {
    const { log } = this.#parts.daemon;
    const works = [
      this.#work('portions', () => this.#next(this.#queue)),
      this.#work('slow', () => this.#next(this.#slow, 1)),
    ];
    Promise.all(works).catch((error: unknown) => {
      log.error('the output of spooled jobs is not fetched', { ...toReason(error) });
    });
  }

  /** Those that failed most seldom come first, and none of them together with one that has never failed alone. */
  #next(outputs: Map<number, Spooled>, most?: number): readonly Spooled[] {
    const sorted = [...outputs.values()].sort(
      (one, other) => this.#failuresOf(one) - this.#failuresOf(other),
    );
    const isBad = sorted[0] !== undefined && this.#failuresOf(sorted[0]) > 0;
    const some = sorted
      .slice(0, most ?? (isBad ? portion.most : this.#atOnce))
      .filter((output) => this.#failuresOf(output) > 0 === isBad);
    for (const { workerId } of some) outputs.delete(workerId);
    return some;
  }

  #failuresOf({ workerId }: Spooled): number {
    return this.#missed.get(workerId)?.alone ?? 0;
  }

  async #settled(workerIds: readonly number[], signal: AbortSignal): Promise<void> {
    const isOpen = () => workerIds.some((workerId) => this.#open.has(workerId));
    const done = new AbortController();
    const over = new AbortController();
    const { clock } = this.#parts.daemon;
    const late = clock.sleep(patience, AbortSignal.any([done.signal, signal])).then(() => {
      over.abort();
    });
    while (isOpen() && !over.signal.aborted) await Promise.race([this.#news.promise, late]);
    done.abort();
  }

  async #work(lane: Lane, next: () => readonly Spooled[]): Promise<void> {
    if (this.#busy[lane]) return;
    this.#busy[lane] = true;
    try {
      for (let some = next(); some.length > 0; some = next()) await this.#bring(some, lane);
    } finally {
      this.#busy[lane] = false;
    }
  }

  /** @returns why the schedd does not answer, if it does not */
  async #bring(outputs: readonly Spooled[], lane: Lane): Promise<WorkerError | undefined> {
    // Some may have been settled or forgotten meanwhile.
    const some = outputs.filter(({ workerId }) => this.#open.has(workerId));
    if (some.length === 0) return undefined;
    const { clock, ended } = this.#parts.daemon;
    const begun = clock.monotonic();
    const [done, late] = [new AbortController(), new AbortController()];
    const over = clock.sleep(longest[lane], done.signal).then(() => {
      if (!done.signal.aborted) late.abort();
    });
    over.catch(() => undefined);
    try {
      await transfer(this.#parts, some, AbortSignal.any([late.signal, ended]));
      if (lane === 'portions') this.#alone = 0;
      if (clock.monotonic() - begun < portion.quick) this.#atOnce = Math.min(2 * this.#atOnce, portion.most);
      this.#settle(some, {});
      return undefined;
    } catch (error) {
      const isLate = late.signal.aborted || isHTCondorError(error, 'condor-timeout');
      return await this.#afterFailure(some, lane, { isLate, reason: toReason(error) });
    } finally {
      done.abort();
    }
  }

  async #afterFailure(
    some: readonly Spooled[],
    lane: Lane,
    { isLate, reason }: { readonly isLate: boolean; readonly reason: WorkerError },
  ): Promise<WorkerError | undefined> {
    if (this.#parts.daemon.ended.aborted) {
      this.#settle(some, { reason });
      return undefined;
    }
    const isOfSchedd = isLate ? some.length === 1 : !isOfFiles(reason.code);
    const away = isOfSchedd ? await this.#away(some) : undefined;
    if (away !== undefined) {
      // Each portion would wait for that.
      for (const waiting of [some, [...this.#queue.values()], [...this.#slow.values()]])
        this.#settle(waiting, { kind: 'unanswered', reason: away });
      this.#queue.clear();
      this.#slow.clear();
      return away;
    }
    const half = Math.ceil(some.length / 2);
    const isDivided = some.length > 1 && this.#alone < mostAlone;
    const isNew = !isDivided && some.some((output) => this.#failuresOf(output) === 0);
    // Those that were not divided have fewer neighbours the next time, unless each of them is known to be bad.
    if (some.length > 1 && (isLate || isNew)) this.#atOnce = half;
    if (isDivided) {
      // The command ends at the first file that it cannot write: the others must not wait for that one.
      const why = await this.#bring(some.slice(0, half), lane);
      const others = some.slice(half);
      if (why === undefined) return this.#bring(others, lane);
      this.#settle(others, { kind: 'unanswered', reason: why });
      return why;
    }
    if (some.length === 1 && lane === 'portions') this.#alone++;
    if (isLate && some.length === 1 && lane === 'portions') this.#slowDown(some);
    else this.#miss(some, isLate ? tooLong(longest[lane]) : reason);
    return undefined;
  }

  #slowDown(some: readonly Spooled[]): void {
    for (const output of some) {
      const { workerId } = output;
      // It may have been forgotten meanwhile.
      if (!this.#open.has(workerId)) continue;
      this.#slow.set(workerId, output);
      this.#wasSlow.add(workerId);
    }
    this.#start();
  }

  /** Why the schedd does not answer, if it does not: then no output is the fault of the failure. */
  async #away(some: readonly Spooled[]): Promise<WorkerError | undefined> {
    const { schedd, daemon } = this.#parts;
    try {
      await inQueue(schedd, whereSame(some.flatMap(({ jobs }) => jobs)), daemon.ended, [
        'ClusterId',
        'ProcId',
      ]);
      return undefined;
    } catch (error) {
      return toReason(error);
    }
  }

  #miss(some: readonly Spooled[], reason: WorkerError): void {
    const now = this.#parts.daemon.clock.monotonic();
    const [fresh, over]: [number[], number[]] = [[], []];
    for (const output of some) {
      const { workerId } = output;
      if (!this.#open.has(workerId)) continue;
      const before = this.#missed.get(workerId);
      const { since, isRetried, ...was } = before ?? nothingMissed(now);
      const [any, alone] = [was.any + 1, was.alone + Number(some.length === 1)];
      const isOver =
        now - since >= enough.time && (alone >= enough.alone || (any >= enough.any && alone > 0));
      this.#missed.set(workerId, { since, any, alone, isOver, isRetried });
      if (before === undefined) fresh.push(workerId);
      if (isOver && !was.isOver) over.push(workerId);
      this.#settle([output], { reason, ...(isOver && { kind: 'given-up' }) });
    }
    this.#tell('output of spooled jobs could not be fetched, and is tried again', fresh, reason);
    this.#tell(
      'output of spooled jobs could not be fetched, and is given up unless a source awaits it',
      over,
      reason,
    );
  }

  #settle(some: readonly Spooled[], how: Omit<End, 'at'>): void {
    const end = { ...how, at: this.#parts.daemon.clock.monotonic() };
    for (const { workerId } of some) {
      // It may have been forgotten meanwhile.
      if (!this.#open.delete(workerId)) continue;
      this.#ended.set(workerId, end);
      if (end.reason === undefined) this.#missed.delete(workerId);
    }
    this.#news.resolve(undefined);
    this.#news = Promise.withResolvers();
  }

  #tell(what: string, workerIds: readonly number[], { code, message }: WorkerError): void {
    if (workerIds.length === 0) return;
    const { schedd, daemon } = this.#parts;
    daemon.log.warn(what, {
      schedd: schedd.submissionHost,
      workers: workerIds.length,
      workerIds: workerIds.slice(0, 10),
      code,
      message,
    });
  }
}

const nothingMissed = (since: number): Missed => ({
  since,
  any: 0,
  alone: 0,
  isOver: false,
  isRetried: false,
});

function tooLong(limit: number): WorkerError {
  return {
    code: 'condor-timeout',
    message: `condor_transfer_data did not bring it within ${limit / 1000} s`,
  };
}

/** Whether the schedd answered, and the files of some job were the matter. */
function isOfFiles(code: string): boolean {
  return code === 'condor-failed' || code === 'condor-disk-full';
}
