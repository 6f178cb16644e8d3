import pMap from 'p-map';
import type { GoneOutcome, Log } from '../../plugins/contracts/index.ts';
import { type BelievedClock, type Clock, eachGivingWay, givingWay } from '../../util/clock.ts';
import type { WorkerRecord } from '../../store/rows.ts';
import type { SweepBefore } from '../../store/workers.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { isFinal } from '../../worker/status.ts';
import { isObject } from '../../util/json.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import { fromOutside, reasonFromOutside } from '../../util/own-secrets.ts';
import type { WorkerError } from '../../worker/worker.ts';
import { absenceChange, noOutcome, observationChange } from '../ledger/outcomes.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { ConnectedPlugins, QueueRuntime, Step } from '../queue-runtime.ts';
import { isGivenBy } from '../submission/worker-maker.ts';

export interface SweeperParts {
  readonly harvesterId: string;
  readonly clock: Clock;
  /** Says which keep times are over. */
  readonly believed: Pick<BelievedClock, 'now'>;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

export interface SweeperOptions {
  /** How long ended workers are kept, ms, by final status. */
  readonly keep: SweepBefore;
}

/** Connections that get no other turn in a pass. */
interface Broken {
  /** Calls of these threw, and what. */
  readonly threw: Map<ConnectedPlugins, unknown>;
  /** A call of these failed late and for all of its workers: the next one would take as long. */
  readonly hung: Set<ConnectedPlugins>;
}

const noneBroken = (): Broken => ({ threw: new Map(), hung: new Set() });

/** How long a call takes, at least, that counts as hung if it fails for all of its workers, ms. */
const hangs = 5000;

/** Workers in one call. */
const atOnce = 500;
/** Connections that are asked at the same time: a hanging one delays others by its deadline only where so many hang. */
const connectionsAtOnce = 8;
/** How often, and with what pauses (ms), a pass asks again for ends that are not there yet: less often while none comes. */
const killTurns = 20;
const killPauses = { first: 500, longest: 2000 };
/** Workers that would not go, after which a pass ends. */
const mostStuck = 2000;

/** A submission that hangs is given up after minutes. */
const notSubmittedYet: Reason = {
  code: 'late-creation',
  message:
    'its submission is still under way: it is ended when the backend has answered, or when the call is given up',
};

/** Ends the workers of one queue that are to end, and removes what ended ones left. */
export class SweeperAgent {
  readonly #runtime: QueueRuntime;
  readonly #parts: SweeperParts;
  readonly #options: SweeperOptions;
  /** The last worker that was asked to end: the next turn begins after it, so that thousands that do not go keep no other from its turn. */
  #lastAsked = 0;
  /** The code of the reason that was told for a worker which does not end. */
  readonly #toldLate = new Map<number, string>();

  /** Workers that the backend keeps in their place on purpose, and why. */
  readonly #kept = new Map<number, WorkerError>();
  /** Workers that would not go, and where they are: they are asked again when all others have had their turn. */
  readonly #stuck = new Map<number, string>();
  /** Connections of workers to which this configuration does not lead: told once each. */
  readonly #beyond = new Set<string>();

  constructor(runtime: QueueRuntime, parts: SweeperParts, options: SweeperOptions) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#options = options;
  }

  async pass(signal: AbortSignal): Promise<void> {
    // A worker that takes some time to end is asked again in this pass; one that does not end at all waits for the next pass.
    const broken = noneBroken();
    const discarding = noneBroken();
    const asked = new Set<number>();
    const tried = new Set<number>();
    try {
      let pause = killPauses.first;
      for (let turn = 0; turn < killTurns && !signal.aborted; turn++) {
        const left = await this.#endSome(broken, asked);
        // If all fail, the backend is in trouble: the next pass asks again.
        if (left === 'none' || left === 'failures') break;
        // The sources of workers that have ended wait for their removal, and one worker that does not end may take all turns of a pass.
        await this.#sweepDiscarded(discarding, tried);
        await this.#parts.clock.sleep(pause, signal);
        pause = left === 'more' ? killPauses.first : Math.min(pause * 2, killPauses.longest);
      }
    } finally {
      await this.sweep(discarding);
    }
    throwFirst(broken);
  }

  /**
   * Ends workers that are to end, as many as one call takes.
   * @param asked those that were asked in this pass
   * @returns what is left: nothing, more to come, workers that were all asked before and none of which has ended, or nothing but failures.
   */
  async #endSome(broken: Broken, asked: Set<number>): Promise<'none' | 'more' | 'same' | 'failures'> {
    const { ledger, store, calls, clock, log, step } = this.#parts;
    const { config, configId } = this.#runtime;
    const from = this.#lastAsked;
    const except = this.#placesOf(broken);
    const next = await store.workers.toKill(config.name, configId, atOnce, { after: from, except });
    const room = atOnce - next.length;
    const first =
      from === 0 || room === 0 ? [] : await store.workers.toKill(config.name, configId, room, { except });
    const wanted = [...next, ...first.filter(({ workerId }) => workerId <= from)];
    this.#lastAsked = wanted.at(-1)?.workerId ?? from;
    const ready = wanted.filter(({ workerId }) => !ledger.inFlight.has(workerId));
    let hasMoved = ready.some(({ workerId }) => !asked.has(workerId));
    for (const { workerId } of ready) asked.add(workerId);
    for (const { workerId } of wanted)
      if (ledger.inFlight.has(workerId)) ledger.whyLeft.set(workerId, notSubmittedYet);
    // A longer list comes in parts.
    const isWhole = wanted.length < atOnce;
    let all = ready.length === wanted.length && isWhole;
    const failed = new Set<number>();
    const listed = new Set(wanted.map(({ workerId }) => workerId));
    if (isWhole && except.length === 0)
      for (const workerId of this.#toldLate.keys())
        if (!listed.has(workerId)) this.#toldLate.delete(workerId);
    await this.#onEach(ready, broken, async ({ monitor, sweeper }, workers) => {
      const outcomes = await calls
        .call(`kill of ${config.name}`, (signal) => sweeper.kill(workers, signal))
        .catch((error: unknown) => {
          for (const { workerId } of workers) ledger.whyLeft.set(workerId, toReason(error));
          throw error;
        });
      step('kill:after-kill');
      const gone = workers.filter(({ workerId }) => outcomes.get(workerId)?.kind === 'gone');
      all &&= gone.length === workers.length;
      const whys = await whysOf(workers, outcomes, clock);
      const its = this.#tell('workers could not be ended', whys);
      for (const workerId of its) failed.add(workerId);
      this.#tellLate(whys);
      if (gone.length === 0) return its.length < workers.length;
      hasMoved = true;
      // How it ended is looked up freshly: the monitor may be late, and what never started is seen by none.
      const results = await calls.call(`check of ${config.name}`, (signal) => monitor.check(gone, signal));
      const made = await eachGivingWay(givingWay(clock), gone, ({ workerId }) => {
        const result = results.get(workerId) ?? noOutcome;
        if (result.kind === 'observed') {
          const { status, nativeStatus } = result.observation;
          if (!isFinal(status)) {
            const message = `the backend has no such worker any more, and says of its end ${beginningFromOutside(nativeStatus, 100)}, which is none`;
            ledger.whyLeft.set(workerId, { code: 'end-unclear', message });
          }
          return [observationChange(result.observation, true)];
        }
        if (result.kind === 'absent') return [absenceChange(workerId, true, true, clock.now())];
        // It is asked to end again: its row says nothing of an end.
        ledger.whyLeft.set(workerId, reasonFromOutside(result.error));
        return [];
      });
      const ends = made.flat();
      await ledger.change(ends);
      const ended = ends.filter(({ to }) => isFinal(to)).length;
      if (ended > 0) log.info('ended workers on request', { queue: config.name, workers: ended });
      return true;
    });
    const lost = this.#placesOf(broken);
    const others = ready.filter(({ placement }) => !lost.includes(placement));
    if (all && others.length === ready.length) return 'none';
    // Those behind a connection that failed are in a longer list's later parts.
    if (others.length === 0 && ready.length > 0) return isWhole ? 'failures' : 'more';
    if (others.length > 0 && others.every(({ workerId }) => failed.has(workerId))) return 'failures';
    return hasMoved ? 'more' : 'same';
  }

  /** One line for all that failed alike. @returns who failed */
  #tell(message: string, whys: Whys): readonly number[] {
    const failures = whys.flatMap(({ worker: { workerId }, failed }) =>
      failed === undefined ? [] : [{ workerId, error: failed }],
    );
    for (const [, some] of Map.groupBy(failures, ({ error }) => error.code)) {
      const workerIds = some.slice(0, 10).map(({ workerId }) => workerId);
      this.#parts.log.warn(message, { workers: some.length, workerIds, ...some[0]?.error });
    }
    return failures.map(({ workerId }) => workerId);
  }

  /** Each reason once for each worker: a pass is made every few seconds. */
  #tellLate(whys: Whys): void {
    const told: (readonly [workerId: number, reason: Reason])[] = [];
    const { whyLeft } = this.#parts.ledger;
    for (const { worker, failed, reason } of whys) {
      const { workerId } = worker;
      const why = failed ?? reason;
      if (why === undefined) whyLeft.delete(workerId);
      else whyLeft.set(workerId, why);
      if (reason === undefined) this.#toldLate.delete(workerId);
      else if (this.#toldLate.get(workerId) !== reason.code) {
        this.#toldLate.set(workerId, reason.code);
        told.push([workerId, reason]);
      }
    }
    for (const [code, some] of Map.groupBy(told, ([, reason]) => reason.code)) {
      const workerIds = some.slice(0, 10).map(([workerId]) => workerId);
      const facts = { code, workers: some.length, workerIds, reason: some[0]?.[1].message };
      this.#parts.log.warn('workers that are asked to end have not ended yet', facts);
    }
  }

  /** Why workers whose keep time is over are kept; undefined where none is. */
  get kept(): string | undefined {
    const [reason] = this.#kept.values();
    return (
      reason &&
      `${this.#kept.size} workers of ${this.#runtime.config.name} are kept for now: ${reason.message}`
    );
  }

  /**
   * Removes the traces of workers whose keep time is over, and of those that their sources need no more.
   * @param discarding connections that have failed for those in this pass: they are asked for none of them again
   * @returns how many
   */
  async sweep(discarding = noneBroken()): Promise<number> {
    const { ledger, store, believed } = this.#parts;
    const { config, configId } = this.#runtime;
    let swept = 0;
    const before = new Set(this.#kept.keys());
    swept += await this.#sweepDiscarded(discarding);
    // A discarded worker that always hangs keeps no other of its connection from its turn.
    const broken = noneBroken();
    let mayBegin = this.#stuck.size > 0;
    for (const most = this.#stuck.size + mostStuck; this.#stuck.size <= most;) {
      const now = believed.now();
      const { finished, failed, cancelled, missed } = this.#options.keep;
      const endedBefore = {
        finished: now - finished,
        failed: now - failed,
        cancelled: now - cancelled,
        missed: now - missed,
      };
      const except = [...this.#stuck.keys(), ...ledger.discarded];
      const places = this.#placesOf(broken);
      const found = await store.workers.toSweep(config.name, configId, endedBefore, atOnce, {
        workers: except,
        places,
      });
      if (found.length > 0) mayBegin = false;
      // A submission under way may still bring about more of what it was seen to have made.
      const due = found.filter(({ workerId }) => !ledger.inFlight.has(workerId));
      const gone = new Set(await this.#remove(due, broken));
      swept += gone.size;
      for (const { workerId, placement } of found)
        if (!gone.has(workerId)) this.#stuck.set(workerId, placement);
      if (found.length < atOnce) {
        this.#endRound(this.#placesOf(broken));
        // Nothing was left of the round that an earlier pass began: the new one begins now.
        if (!mayBegin) break;
        mayBegin = false;
      }
    }
    const kept = [...this.#kept].filter(([workerId]) => !before.has(workerId));
    for (const [code, some] of Map.groupBy(kept, ([, reason]) => reason.code)) {
      const workerIds = some.slice(0, 10).map(([workerId]) => workerId);
      const facts = { code, workers: some.length, workerIds };
      this.#parts.log.info('ended workers are kept for now', { ...facts, reason: this.kept });
    }
    throwFirst(discarding);
    throwFirst(broken);
    return swept;
  }

  /** All had their turn, but those behind these places: the next pass begins anew, and goes on there. */
  #endRound(places: readonly string[]): void {
    const { discarded } = this.#parts.ledger;
    for (const workerId of this.#kept.keys())
      if (places.length === 0 && !this.#stuck.has(workerId) && !discarded.has(workerId))
        this.#kept.delete(workerId);
    for (const [workerId, placement] of this.#stuck)
      if (!places.includes(placement)) this.#stuck.delete(workerId);
  }

  /**
   * Those that their sources need no more.
   * @param tried those that had their turn, and get no other
   * @returns how many went
   */
  async #sweepDiscarded(broken: Broken, tried = new Set<number>()): Promise<number> {
    const { ledger, store } = this.#parts;
    const { config, configId } = this.#runtime;
    let swept = 0;
    const wanted = [...ledger.discarded].filter((workerId) => !tried.has(workerId));
    for (const workerId of wanted) tried.add(workerId);
    for (let start = 0; start < wanted.length; start += atOnce) {
      const asked = wanted.slice(start, start + atOnce);
      const found = new Map((await store.workers.byIds(asked)).map((worker) => [worker.workerId, worker]));
      for (const workerId of asked) if (found.get(workerId)?.sweptTime !== null) this.#forget(workerId);
      const due = asked
        .flatMap((workerId) => found.get(workerId) ?? [])
        .filter(
          ({ workerId, queue, configId: its, sweptTime }) =>
            queue === config.name && its === configId && sweptTime === null && !ledger.inFlight.has(workerId),
        );
      const byWish = Map.groupBy(due, ({ workerId }) => ledger.unwanted.has(workerId));
      for (const [isUnwanted, some] of byWish) {
        const gone = await this.#remove(some, broken, isUnwanted);
        for (const workerId of gone) this.#forget(workerId);
        swept += gone.length;
      }
    }
    return swept;
  }

  /** A discarded worker is gone. */
  #forget(workerId: number): void {
    const { ledger } = this.#parts;
    ledger.discarded.delete(workerId);
    ledger.unwanted.delete(workerId);
    ledger.whyLeft.delete(workerId);
  }

  /** Keeps in mind what stays on purpose, and notes it for operators. */
  async #keep(whys: Whys): Promise<void> {
    const notes: WorkerRecord[] = [];
    for (const { worker, failed, reason: kept } of whys) {
      const { workerId } = worker;
      if (kept === undefined) this.#kept.delete(workerId);
      else this.#kept.set(workerId, kept);
      this.#tellWhy(workerId, failed ?? kept);
      const detail = withKeptReason(worker.detail, kept?.message);
      if (detail !== undefined) notes.push({ ...worker, detail });
    }
    if (notes.length > 0) await this.#parts.ledger.noteDetails(notes);
  }

  /** Sources ask for discarded workers alone. */
  #tellWhy(workerId: number, reason: Reason | undefined): void {
    const { whyLeft, discarded } = this.#parts.ledger;
    if (reason !== undefined && discarded.has(workerId)) whyLeft.set(workerId, reason);
    else whyLeft.delete(workerId);
  }

  /** @returns ids of those of which nothing is left. */
  async #remove(
    due: readonly WorkerRecord[],
    broken: Broken,
    isUnwanted = false,
  ): Promise<readonly number[]> {
    const { ledger, calls, clock, log, step } = this.#parts;
    const { config, messenger } = this.#runtime;
    const removed: number[] = [];
    await this.#onEach(due, broken, async ({ sweeper }, workers) => {
      // Those that do not go stand behind the others in the next pass: a call that hangs keeps none of these from its turn.
      for (const { workerId } of workers)
        if (ledger.discarded.delete(workerId)) ledger.discarded.add(workerId);
      step('sweep:before-remove');
      const outcomes = await calls
        .call(`remove of ${config.name}`, (signal) => sweeper.remove(workers, signal, isUnwanted))
        .catch((error: unknown) => {
          for (const { workerId } of workers) this.#tellWhy(workerId, toReason(error));
          throw error;
        });
      step('sweep:after-remove');
      const whys = await whysOf(workers, outcomes, clock);
      const failed = this.#tell('workers could not be removed', whys);
      await this.#keep(whys);
      const swept: number[] = [];
      const gone = workers.filter(({ workerId }) => outcomes.get(workerId)?.kind === 'gone');
      const foreign = await this.#withForeignAccessPoints(gone);
      for (const { workerId, accessPoint } of gone) {
        try {
          if (accessPoint !== undefined && messenger !== undefined && !foreign.has(workerId)) {
            const what = `access point of ${workerId}`;
            await calls.call(what, () => messenger.remove(accessPoint, workerId));
          }
          swept.push(workerId);
        } catch (error) {
          this.#tellWhy(workerId, toReason(error));
          log.warn('access point could not be removed', { workerId, accessPoint, error: messageOf(error) });
        }
      }
      step('sweep:after-access-point');
      await ledger.markSwept(swept);
      step('sweep:after-mark');
      removed.push(...swept);
      return failed.length < workers.length;
    });
    if (removed.length > 0) log.info('swept workers', { queue: config.name, workers: removed.length });
    return removed;
  }

  /**
   * Those whose access point stays: the row was made of a mark, which anyone may have edited, and the configuration gives another one. A row of
   * our own intent may name a directory of an earlier configuration. A row without a history may be of either kind.
   */
  async #withForeignAccessPoints(workers: readonly WorkerRecord[]): Promise<ReadonlySet<number>> {
    const { harvesterId, store, clock, log } = this.#parts;
    const { config, messenger } = this.#runtime;
    const others = workers.filter(
      (worker) =>
        worker.accessPoint !== undefined &&
        messenger !== undefined &&
        !isGivenBy({ config, messenger, harvesterId }, worker),
    );
    if (others.length === 0) return new Set();
    const own = await store.workers.intended(others.map(({ workerId }) => workerId));
    const foreign = others.filter(({ workerId }) => !own.has(workerId));
    await eachGivingWay(givingWay(clock), foreign, ({ workerId, queue, accessPoint = '' }) => {
      log.warn('the access point of a worker is not removed', {
        code: 'access-point-foreign',
        workerId,
        queue,
        found: fromOutside(accessPoint),
        why: 'its row was made of a mark on the backend, and the configuration of its queue gives another one: look at it and remove it by hand',
      });
    });
    return new Set(foreign.map(({ workerId }) => workerId));
  }

  /**
   * Connections have nothing in common: each has its turn, and one that failed or hung has no other in this pass.
   * @param work gives whether it did or learned something of any worker
   */
  async #onEach(
    workers: readonly WorkerRecord[],
    { threw, hung }: Broken,
    work: (plugins: ConnectedPlugins, workers: readonly WorkerRecord[]) => Promise<boolean>,
  ): Promise<void> {
    const { clock } = this.#parts;
    const turns = [...this.#byConnection(workers)].filter(
      ([plugins]) => !threw.has(plugins) && !hung.has(plugins),
    );
    const turn = async ([plugins, some]: (typeof turns)[number]) => {
      const start = clock.monotonic();
      const isWell = await work(plugins, some).catch((error: unknown) => {
        threw.set(plugins, error);
        return false;
      });
      if (!isWell && clock.monotonic() - start >= hangs) hung.add(plugins);
    };
    await pMap(turns, turn, { concurrency: connectionsAtOnce });
  }

  /** The places that get no other turn in this pass. */
  #placesOf({ threw, hung }: Broken): readonly string[] {
    return [...this.#runtime.connected].flatMap(([placement, plugins]) =>
      threw.has(plugins) || hung.has(plugins) ? [placement] : [],
    );
  }

  #byConnection(workers: readonly WorkerRecord[]): Map<ConnectedPlugins, WorkerRecord[]> {
    const { connected } = this.#runtime;
    const known = workers.filter(({ placement }) => connected.has(placement));
    const unreachable = workers.filter(({ placement }) => !connected.has(placement));
    const message =
      'it is where no configuration leads: its queue has another cluster, namespace or schedd now';
    for (const { workerId } of unreachable)
      this.#parts.ledger.whyLeft.set(workerId, { code: 'worker-unreachable', message });
    for (const placement of new Set(unreachable.map((worker) => worker.placement))) {
      if (this.#beyond.has(placement)) continue;
      this.#beyond.add(placement);
      const facts = { code: 'worker-unreachable', queue: this.#runtime.config.name, placement };
      this.#parts.log.error('workers are where no configuration leads', facts);
    }
    return Map.groupBy(known, ({ placement }) => connected.get(placement) as ConnectedPlugins);
  }
}

/** Why workers are still there, as the backend says it and as it may be shown: the call failed, or it waits. */
type Whys = readonly {
  readonly worker: WorkerRecord;
  readonly failed?: WorkerError;
  readonly reason?: WorkerError;
}[];

function whysOf(
  workers: readonly WorkerRecord[],
  outcomes: ReadonlyMap<number, GoneOutcome>,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Whys> {
  return eachGivingWay(givingWay(clock), workers, (worker) => ({
    worker,
    ...whyOf(outcomes.get(worker.workerId)),
  }));
}

function whyOf(outcome: GoneOutcome | undefined): Omit<Whys[number], 'worker'> {
  if (outcome?.kind === 'failed') return { failed: reasonFromOutside(outcome.error) };
  return outcome?.kind === 'pending' && outcome.reason ? { reason: reasonFromOutside(outcome.reason) } : {};
}

/** The details of a worker with the reason for which it is kept, or without one; undefined: they have it right. */
function withKeptReason(detail: unknown, message: string | undefined): object | undefined {
  const { keptReason, ...others } = isObject(detail) ? detail : {};
  if (keptReason === message) return undefined;
  return message === undefined ? others : { ...others, keptReason: message };
}

/** @throws what failed first, after all others have had their turn */
function throwFirst({ threw }: Broken): void {
  for (const error of threw.values()) throw error instanceof Error ? error : new Error(messageOf(error));
}
