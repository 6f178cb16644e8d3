import pMap from 'p-map';
import type { Clock } from '../../util/clock.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { Known } from './living.ts';
import { hasCode } from '../../util/files.ts';
import type { Reason } from '../../worker/reason.ts';
import { signalProcess } from './processes.ts';
import type { Damage, WorkDirectory } from './work-directory.ts';
import type { EndReason, ShimClaim } from './worker-files.ts';

/** How workers are ended. All times in ms. */
export interface How {
  readonly reason?: EndReason;
  readonly grace: number;
  readonly patience: number;
}

/** The part of a host that ends workers. */
export interface EndingHost {
  readonly directory: WorkDirectory;
  tellDamage(damage: Damage): void;
  /** @throws where nothing can be read of the worker and nothing else is known */
  processOf(worker: Known): Promise<ShimClaim | undefined>;
  processesOf(
    claims: ReadonlyMap<number, ShimClaim | undefined>,
  ): Promise<ReadonlyMap<number, readonly number[]>>;
}

/** What is left of a worker, and why, where that is not its grace alone. */
export interface Left {
  readonly why?: Reason;
}

/** Workers whose files are read or written side by side. */
const filesAtOnce = 16;
/** How often a killed group is looked at, ms. */
const killPoll = 50;
/** How long after its grace a worker counts as one that does not end, ms. */
const lateAfter = 10_000;
/** Processes that a reason names. */
const mostNamed = 10;
/** How long after its commands were killed a shim may take to write down how they ended, ms. */
const shimGrace = 1000;

/** Ends workers of one host, whatever became of their directories. */
export class Endings {
  readonly #host: EndingHost;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Since when a worker is being ended, ms of the monotonic clock. */
  readonly #since = new Map<number, number>();
  /** Since when a worker lives on though its grace is over, over all calls; ms as above. */
  readonly #overdueSince = new Map<number, number>();

  constructor(host: EndingHost, clock: Clock, log: Log) {
    this.#host = host;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Ends all processes of these workers: TERM, `grace`, KILL. The shim goes last, so that it can still write down how its
   * command ended. A `reason` is written down before the first signal, and the grace counts from then, over all calls;
   * without one (what a worker that ended by itself left running) it counts from this call.
   * @returns the workers of which something still lives, or of which nothing can be read, after at most `patience`
   */
  async end(workers: readonly Known[], how: How, signal: AbortSignal): Promise<ReadonlyMap<number, Left>> {
    const { claims, unreadable } = await this.#claims(workers);
    const begun = this.#clock.monotonic();
    await this.#begin([...(await this.#host.processesOf(claims)).keys()], how.reason);
    const left = new Map<number, Left>();
    const sent = new Set<number>();
    for (;;) {
      const looked = this.#clock.monotonic();
      const living = await this.#host.processesOf(claims);
      const now = this.#clock.monotonic();
      for (const [workerId, claim] of claims) {
        const pids = living.get(workerId);
        if (pids === undefined) {
          left.delete(workerId);
          continue;
        }
        const since = how.reason === undefined ? begun : (this.#since.get(workerId) ?? begun);
        const overdue = now - since - how.grace;
        const refused = signalAll(pids, claim?.pid, overdue, sent);
        if (overdue >= 0 && !this.#overdueSince.has(workerId)) this.#overdueSince.set(workerId, now);
        const isLate = now - (this.#overdueSince.get(workerId) ?? now) >= lateAfter;
        left.set(workerId, isLate ? { why: whyLeft(workerId, pids, refused) } : {});
      }
      if (living.size === 0 || now - begun >= how.patience || signal.aborted) break;
      // A look at thousands of processes takes long: the daemon has other work.
      await this.#clock.sleep(Math.max(killPoll, 4 * (now - looked)), signal);
    }
    for (const workerId of claims.keys().filter((id) => !left.has(id))) {
      this.#since.delete(workerId);
      this.#overdueSince.delete(workerId);
    }
    return new Map([...left, ...unreadable]);
  }

  /** The shim of each worker, or undefined for one that is known by its mark alone. */
  async #claims(workers: readonly Known[]): Promise<{
    readonly claims: ReadonlyMap<number, ShimClaim | undefined>;
    readonly unreadable: ReadonlyMap<number, Left>;
  }> {
    const claims = new Map<number, ShimClaim | undefined>();
    const unreadable = new Map<number, Left>();
    const readOne = async (worker: Known) => {
      try {
        claims.set(worker.workerId, await this.#host.processOf(worker));
      } catch (error) {
        const path = this.#host.directory.path(worker.workerId);
        const message = `${path} cannot be read, so nothing says whether the worker lives: ${messageOf(error)}`;
        unreadable.set(worker.workerId, { why: { code: 'local-directory-damaged', message } });
        this.#host.tellDamage({ path, why: messageOf(error) });
      }
    };
    await pMap(workers, readOne, { concurrency: filesAtOnce });
    // Those with living processes end all the same. Without any nothing can be said.
    const unknown = new Map(unreadable.keys().map((workerId) => [workerId, undefined]));
    for (const workerId of (await this.#host.processesOf(unknown)).keys()) {
      claims.set(workerId, undefined);
      unreadable.delete(workerId);
    }
    return { claims, unreadable };
  }

  /** Writes down why workers end, and since when. A disk that takes no reason must not keep a worker from being ended. */
  async #begin(workerIds: readonly number[], reason: EndReason | undefined): Promise<void> {
    if (reason === undefined) return;
    const { directory } = this.#host;
    let hangs = false;
    const begin = async (workerId: number) => {
      const now = this.#clock.monotonic();
      this.#since.set(workerId, now);
      if (hangs) return;
      try {
        await directory.markEnded(workerId, reason);
        const since = (await directory.endedBy(workerId))?.at;
        // A daemon before this one may have begun, and its clock was another.
        const age = since === undefined ? 0 : Math.max(0, this.#clock.now() - since);
        this.#since.set(workerId, now - age);
      } catch (error) {
        hangs = error instanceof ThresherError;
        const facts = { workerId, reason, ...toReason(error) };
        this.#log.warn('why a worker was ended could not be written down', facts);
      }
    };
    const first = workerIds.filter((workerId) => !this.#since.has(workerId));
    await pMap(first, begin, { concurrency: filesAtOnce });
  }
}

/**
 * TERM once to each; after the grace KILL to all but the shim, a second later to all.
 * @returns those that take no signal: a program that became another user, as sudo does
 */
function signalAll(
  pids: readonly number[],
  shim: number | undefined,
  overdue: number,
  sent: Set<number>,
): readonly number[] {
  const due =
    overdue < 0
      ? pids.filter((pid) => !sent.has(pid))
      : pids.filter((pid) => pid !== shim || overdue > shimGrace);
  const refused = due.filter((pid) => !wasSignalled(pid, overdue < 0 ? 'SIGTERM' : 'SIGKILL'));
  if (overdue < 0) for (const pid of due) sent.add(pid);
  return refused;
}

function wasSignalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    signalProcess(pid, signal);
    return true;
  } catch (error) {
    if (hasCode(error, 'EPERM')) return false;
    throw error;
  }
}

/** It says the same at each call, as far as nothing changed: it is kept in the database. */
function whyLeft(workerId: number, pids: readonly number[], refused: readonly number[]): Reason {
  const some = refused.length > 0 ? refused : pids;
  const what =
    refused.length > 0
      ? 'are of another user, and take no signal from thresher'
      : 'live on after its grace, though they were killed';
  const named = some.slice(0, mostNamed).join(', ');
  const more = some.length > mostNamed ? ` and ${some.length - mostNamed} more` : '';
  const message = `processes ${named}${more} of worker ${workerId} ${what}`;
  return { code: 'local-not-ending', message };
}
