import pMap from 'p-map';
import type { Clock } from '../../util/clock.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { Known } from './living.ts';
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

/** Workers whose files are read or written side by side. */
const filesAtOnce = 16;
/** How often a killed group is looked at, ms. */
const killPoll = 50;
/** How long after its commands were killed a shim may take to write down how they ended, ms. */
const shimGrace = 1000;

/** Ends workers of one host, whatever became of their directories. */
export class Endings {
  readonly #host: EndingHost;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Since when a worker is being ended, ms of the monotonic clock. */
  readonly #since = new Map<number, number>();

  constructor(host: EndingHost, clock: Clock, log: Log) {
    this.#host = host;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Ends all processes of these workers: TERM, `grace`, KILL. The shim goes last, so that it can still write down how its
   * command ended. A `reason` is written down before the first signal, and the grace counts from then, over all calls;
   * without one (what a worker that ended by itself left running) it counts from this call.
   * @returns the ids of which nothing lives any more, after at most `patience`. A worker of which nothing can be read is not
   * in it.
   */
  async end(workers: readonly Known[], how: How, signal: AbortSignal): Promise<Set<number>> {
    const claims = await this.#claims(workers);
    const begun = this.#clock.monotonic();
    await this.#begin([...(await this.#host.processesOf(claims)).keys()], how.reason);
    const gone = new Set<number>();
    const sent = new Set<number>();
    for (;;) {
      const looked = this.#clock.monotonic();
      const living = await this.#host.processesOf(claims);
      const now = this.#clock.monotonic();
      for (const [workerId, claim] of claims) {
        const pids = living.get(workerId) ?? [];
        const since = how.reason === undefined ? begun : (this.#since.get(workerId) ?? begun);
        if (pids.length === 0) gone.add(workerId);
        else signalAll(pids, claim?.pid, now - since - how.grace, sent);
      }
      if (living.size === 0 || now - begun >= how.patience || signal.aborted) break;
      // A look at thousands of processes takes long: the daemon has other work.
      await this.#clock.sleep(Math.max(killPoll, 4 * (now - looked)), signal);
    }
    for (const workerId of gone) this.#since.delete(workerId);
    return gone;
  }

  /** The shim of each worker, or undefined for one that is known by its mark alone. */
  async #claims(workers: readonly Known[]): Promise<Map<number, ShimClaim | undefined>> {
    const claims = new Map<number, ShimClaim | undefined>();
    const unreadable: number[] = [];
    const readOne = async (worker: Known) => {
      try {
        claims.set(worker.workerId, await this.#host.processOf(worker));
      } catch (error) {
        unreadable.push(worker.workerId);
        this.#host.tellDamage({ path: this.#host.directory.path(worker.workerId), why: messageOf(error) });
      }
    };
    await pMap(workers, readOne, { concurrency: filesAtOnce });
    // Those with living processes end all the same. Without any nothing can be said.
    const marked = await this.#host.processesOf(new Map(unreadable.map((workerId) => [workerId, undefined])));
    for (const workerId of marked.keys()) claims.set(workerId, undefined);
    return claims;
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

/** TERM once to each; after the grace KILL to all but the shim, a second later to all. */
function signalAll(
  pids: readonly number[],
  shim: number | undefined,
  overdue: number,
  sent: Set<number>,
): void {
  if (overdue < 0) {
    for (const pid of pids) if (!sent.has(pid)) signalProcess(pid, 'SIGTERM');
    for (const pid of pids) sent.add(pid);
    return;
  }
  for (const pid of pids) if (pid !== shim || overdue > shimGrace) signalProcess(pid, 'SIGKILL');
}
