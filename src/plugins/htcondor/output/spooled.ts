import { whereJobs } from '../../../clients/htcondor/classad.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import { toReason } from '../../../worker/errors.ts';
import { isFinal } from '../../../worker/status.ts';
import type { Worker, WorkerError } from '../../../worker/worker.ts';
import { queuedOf } from '../look-up.ts';
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
/** Jobs whose output is fetched by one command, and how long that may take, ms; what one job alone has beyond it is fetched beside the others. */
const portion = { jobs: 50, time: 60_000, quick: 15_000 };
/** For the output of one job, ms. */
const longest = 600_000;
/** How long a removal waits for what is being fetched for it, ms: its other workers are not to wait longer. */
const patience = 15_000;
/** How long a job waits for a schedd that gives no output away, ms; after a pause in its failures, ms, that time begins anew. */
const longestAway = 3_600_000;
const sameAway = 1_200_000;
/** Failures of single jobs after which the files of all jobs are the matter, such as a full disk. */
const mostAlone = 5;

/** Those of the workers whose jobs have ended, with their output in the spool. @throws HTCondorError */
async function spooledOf(
  { schedd, daemon, options }: SpoolParts,
  workers: readonly Pick<Worker, 'workerId' | 'handle'>[],
  signal: AbortSignal,
): Promise<readonly Job[]> {
  const which = `JobStatus == ${completed} && StageInFinish > 0`;
  const { ours: spooled } = await queuedOf(schedd, workers, which, signal);
  return spooled.filter(({ ad, workerId = 0, queue, configId }) => {
    const { heldTimeout } = options(queue, configId);
    return isFinal(
      stateOf(workerId, ad, daemon.clock.now(), { heldTimeout, queued: true })?.observation.status ?? 'idle',
    );
  });
}

async function transfer({ schedd }: SpoolParts, jobs: readonly Job[], signal: AbortSignal): Promise<void> {
  const these = whereJobs(jobs.map(({ id }) => id));
  const workerIds = jobs.flatMap(({ workerId }) => workerId ?? []);
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
  if (over.length > 0) await transfer(parts, over, signal);
}

interface SpooledParts extends SpoolParts {
  readonly daemon: Pick<HTCondorDaemon, 'clock' | 'log' | 'ended'>;
}

/** What became of the outputs of some workers. Those of all others have come, or there are none. */
export interface Fetched {
  /** Those whose output could not be fetched, and why. */
  readonly failed: ReadonlyMap<number, WorkerError>;
  /** Those whose output is still to come, and what it waits for. */
  readonly open: ReadonlyMap<number, string>;
}

/**
 * The output of spooled jobs that are about to be removed. It is fetched beside the removals, each once: a large one, or one that hangs,
 * keeps no other job from its removal.
 */
export class SpooledOutputs {
  readonly #parts: SpooledParts;
  /** Jobs whose turn is still to come, by worker. */
  readonly #queue = new Map<number, Job>();
  /** Jobs that took longer than a portion may, and have a turn of their own. */
  readonly #slow = new Map<number, Job>();
  /** Workers that had such a turn before. */
  readonly #wasSlow = new Set<number>();
  /** Workers whose output is being fetched, or waits for its turn. */
  readonly #open = new Set<number>();
  /** Workers whose output was fetched; an error says why it could not be. */
  readonly #done = new Map<number, WorkerError | undefined>();
  /** Workers whose output could not be fetched by a command of its own: their turn is last. */
  readonly #unfetchable = new Set<number>();
  /** Workers whose own output was the fault of the last failure. */
  readonly #atFault = new Set<number>();
  /** By worker: since when, and when last, fetches failed for no fault of its output, monotonic ms. */
  readonly #away = new Map<number, { readonly since: number; readonly last: number }>();
  #atOnce = portion.jobs;
  #alone = 0;
  readonly #busy = { portions: false, slow: false };
  #news = Promise.withResolvers<undefined>();

  constructor(parts: SpooledParts) {
    this.#parts = parts;
  }

  /** The worker is no more. */
  forget(workerId: number): void {
    for (const known of [this.#queue, this.#slow, this.#open, this.#done, this.#away]) known.delete(workerId);
    for (const known of [this.#unfetchable, this.#wasSlow, this.#atFault]) known.delete(workerId);
  }

  /** The output of spooled jobs goes with them. It waits for a moment; what comes later is there at the next call. */
  async fetch(workers: readonly Worker[], signal: AbortSignal): Promise<Fetched> {
    const ids = workers.map(({ workerId }) => workerId);
    for (const workerId of ids) {
      const reason = this.#done.get(workerId);
      if (reason !== undefined && this.#isToRepeat(workerId)) this.#done.delete(workerId);
    }
    const fresh = workers.filter(({ workerId }) => !this.#open.has(workerId) && !this.#done.has(workerId));
    const reasons = new Map<number, WorkerError>();
    try {
      this.#take(fresh.length === 0 ? [] : await spooledOf(this.#parts, fresh, signal));
    } catch (error) {
      for (const { workerId } of fresh) reasons.set(workerId, toReason(error));
    }
    await this.#settled(ids, signal);
    const open = new Map<number, string>();
    for (const workerId of ids) {
      const reason = this.#done.get(workerId);
      if (this.#open.has(workerId))
        open.set(workerId, `the output of worker ${workerId} is being fetched, or waits for its turn`);
      if (reason === undefined) continue;
      reasons.set(workerId, reason);
      // The next call tries it again.
      this.#done.delete(workerId);
    }
    const failed = new Map<number, WorkerError>();
    for (const [workerId, reason] of reasons)
      if (this.#isToRepeat(workerId))
        open.set(workerId, `the output of worker ${workerId} cannot be fetched yet: ${reason.message}`);
      else failed.set(workerId, reason);
    for (const workerId of failed.keys()) this.#atFault.delete(workerId);
    this.#tell(reasons);
    return { failed, open };
  }

  /**
   * A failure that is no fault of the output is repeated for an hour, and beyond it where the daemon has ended: a moment without the schedd, or
   * a full disk, must cost no log.
   */
  #isToRepeat(workerId: number): boolean {
    if (this.#atFault.has(workerId)) return false;
    const { daemon } = this.#parts;
    const now = daemon.clock.monotonic();
    const before = this.#away.get(workerId);
    const since = before === undefined || now - before.last > sameAway ? now : before.since;
    this.#away.set(workerId, { since, last: now });
    return now - since < longestAway || daemon.ended.aborted;
  }

  #take(jobs: readonly Job[]): void {
    const late = ({ workerId = 0 }: Job) => Number(this.#unfetchable.has(workerId));
    for (const job of jobs.toSorted((one, other) => late(one) - late(other))) {
      const { workerId = 0 } = job;
      (this.#wasSlow.has(workerId) ? this.#slow : this.#queue).set(workerId, job);
      this.#open.add(workerId);
    }
    this.#start();
  }

  #start(): void {
    const { log } = this.#parts.daemon;
    const works = [
      this.#work('portions', () => takeFrom(this.#queue, this.#atOnce), portion.time),
      this.#work('slow', () => takeFrom(this.#slow, 1), longest),
    ];
    Promise.all(works).catch((error: unknown) => {
      log.error('the output of spooled jobs is not fetched', { ...toReason(error) });
    });
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

  async #work(which: 'portions' | 'slow', next: () => readonly Job[], limit: number): Promise<void> {
    if (this.#busy[which]) return;
    this.#busy[which] = true;
    try {
      for (let some = next(); some.length > 0; some = next()) await this.#bring(some, limit);
    } finally {
      this.#busy[which] = false;
      if (which === 'portions') this.#alone = 0;
    }
  }

  async #bring(some: readonly Job[], limit: number): Promise<void> {
    const { clock } = this.#parts.daemon;
    const begun = clock.monotonic();
    const [done, late] = [new AbortController(), new AbortController()];
    const over = clock.sleep(limit, done.signal).then(() => {
      if (!done.signal.aborted) late.abort();
    });
    over.catch(() => undefined);
    try {
      await transfer(this.#parts, some, AbortSignal.any([late.signal, this.#parts.daemon.ended]));
      if (limit === portion.time) this.#alone = 0;
      if (clock.monotonic() - begun < portion.quick) this.#atOnce = Math.min(2 * this.#atOnce, portion.jobs);
      this.#settle(some, undefined);
    } catch (error) {
      const isLate = late.signal.aborted || isHTCondorError(error, 'condor-timeout');
      const reason = toReason(error);
      const isDivided = some.length > 1 && (isLate || (isOfFiles(reason.code) && this.#alone < mostAlone));
      if (this.#parts.daemon.ended.aborted || !(isDivided || isLate)) this.#fail(some, reason);
      else if (isDivided) {
        // The command ends at the first file that it cannot write: the others must not wait for that one.
        const half = Math.ceil(some.length / 2);
        if (isLate) this.#atOnce = half;
        await this.#bring(some.slice(0, half), limit);
        await this.#bring(some.slice(half), limit);
      } else if (limit === longest) this.#fail(some, tooLong);
      else {
        for (const job of some) {
          const { workerId = 0 } = job;
          // It may have been forgotten meanwhile.
          if (!this.#open.has(workerId)) continue;
          this.#slow.set(workerId, job);
          this.#wasSlow.add(workerId);
        }
        this.#start();
      }
    } finally {
      done.abort();
    }
  }

  #fail(some: readonly Job[], reason: WorkerError): void {
    const [{ workerId = 0 } = {}] = some;
    if (some.length === 1 && isOfFiles(reason.code)) this.#alone++;
    if (some.length === 1 && this.#open.has(workerId)) {
      this.#unfetchable.add(workerId);
      if (reason.code === 'condor-failed') this.#atFault.add(workerId);
    }
    if (some.length > 1 && reason.code === 'condor-unreachable') {
      // It would let each portion wait for that.
      this.#settle([...this.#queue.values()], reason);
      this.#queue.clear();
    }
    this.#settle(some, reason);
  }

  #settle(some: readonly Job[], reason: WorkerError | undefined): void {
    for (const { workerId = 0 } of some) {
      // It may have been forgotten meanwhile.
      if (!this.#open.delete(workerId)) continue;
      this.#done.set(workerId, reason);
      if (reason !== undefined) continue;
      this.#unfetchable.delete(workerId);
      this.#away.delete(workerId);
    }
    this.#news.resolve(undefined);
    this.#news = Promise.withResolvers();
  }

  #tell(failed: ReadonlyMap<number, WorkerError>): void {
    const { schedd, daemon } = this.#parts;
    for (const [code, some] of Map.groupBy(failed, ([, reason]) => reason.code)) {
      const workerIds = some.slice(0, 10).map(([workerId]) => workerId);
      daemon.log.warn('output of spooled jobs could not be fetched', {
        schedd: schedd.submissionHost,
        workers: some.length,
        workerIds,
        code,
        message: some[0]?.[1].message,
      });
    }
  }
}

function takeFrom(jobs: Map<number, Job>, most: number): readonly Job[] {
  const some = [...jobs.values().take(most)];
  for (const { workerId = 0 } of some) jobs.delete(workerId);
  return some;
}

const tooLong: WorkerError = {
  code: 'condor-timeout',
  message: `condor_transfer_data did not bring it within ${longest / 1000} s`,
};

/** Whether the schedd answered, and the files of some job were the matter. */
function isOfFiles(code: string): boolean {
  return code === 'condor-failed' || code === 'condor-disk-full';
}
