import { highestForeignId } from '../../worker/identity.ts';
import type { Found, Log, Sweeper } from '../../plugins/contracts/index.ts';
import type { Orphan } from '../../store/orphans.ts';
import type { Fate } from '../../store/workers.ts';
import { isFinal } from '../../worker/status.ts';
import type { Handle, Worker } from '../../worker/worker.ts';
import type { Connection } from '../observation/connection.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import { observationChange } from '../ledger/outcomes.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Emit } from '../events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type Clock, eachGivingWay, givingWay } from '../../util/clock.ts';
import { fromOutside, withoutOwn } from '../../util/own-secrets.ts';
import { type AccessPoints, isGivenBy, workerOfMark } from '../submission/worker-maker.ts';
import { SharedFactory } from './shared-factory.ts';
import { copiesOf, hasLogin, isMarked, outdoneOf, whyTaken } from './strangers.ts';

/** The judgement of an object that carries our mark. */
export type Verdict =
  /** Its row knows it. */
  | { readonly kind: 'known' }
  /** It has no row: it gets one. */
  | { readonly kind: 'adopt'; readonly worker: Worker }
  | {
      readonly kind: 'orphan';
      readonly why: string;
      /** It may be a worker all the same, so that nobody but a person removes it. */
      readonly doubtful?: boolean;
    };

/**
 * Holds what lives on a connection against the rows. `configId` gives a configuration of the queue that leads to this connection.
 * An ended worker that waits for its sweep is known; one that was swept and is still there is an orphan.
 */
export function judge(
  found: Found,
  row: Fate | undefined,
  placement: string,
  configId: (queue: string) => number | undefined,
  factoryId: string,
): Verdict {
  const { identity, handle, observation } = found;
  if (identity === undefined) {
    const why = found.damage ?? 'its mark does not say which worker it is';
    return { kind: 'orphan', why, ...(found.isDoubtful === true && { doubtful: true }) };
  }
  if (row !== undefined) {
    const over = observation !== undefined && isFinal(observation.status);
    if (row.swept) return { kind: 'orphan', why: `its worker was ${row.status} and swept` };
    if (isFinal(row.status) && observation !== undefined && !over) {
      return { kind: 'orphan', why: `its worker is ${row.status}, but it lives` };
    }
    return { kind: 'known' };
  }
  // It is not adopted, and may be a worker all the same: nobody but a person removes it.
  const config = configId(identity.queue);
  const home = { factoryId, connection: placement, isConfigured: config !== undefined };
  if (hasLogin({ ...found, identity }, home))
    return { kind: 'orphan', why: 'a login of this daemon is in its mark', doubtful: true };
  if (config === undefined) return { kind: 'orphan', why: `its queue ${identity.queue} is not configured` };
  return { kind: 'adopt', worker: { ...identity, placement, configId: config, handle } };
}

interface Judged {
  readonly found: Found;
  /** By which it was judged. */
  readonly row?: Fate | undefined;
  readonly verdict: Verdict;
}

/** The configurations that one pass adopts workers with. Each is followed until the pass releases it. */
export interface PassHomes {
  /**
   * A configuration of this queue by which what is found on the connection can be ended and removed; undefined where the
   * queue is not configured. Its current one may lead elsewhere: an operator moved the queue.
   */
  configFor(queue: string): Promise<number | undefined>;
  /** The parts of such a configuration that give access points. Absent: no queue has any. */
  runtimeOf?(configId: number): Pick<QueueRuntime, 'config' | 'messenger'> | undefined;
  release(): void;
}

export interface ReconcilerParts {
  readonly factoryId: string;
  readonly harvesterId: string;
  /** Below all ids that were given out since the start. */
  readonly idFloor: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly calls: PluginCalls;
  readonly events: Emit;
}

export interface ReconcilerOptions {
  /** For a pass that begins. */
  homes(): PassHomes;
  /** These workers lived here before the listing began, and it does not show them. */
  notListed(workerIds: readonly number[]): void;
}

/** More rows that the database refuses in one listing would hold up the listing of all others. */
const mostRefused = 1000;

/** Matches everything with our mark to rows: at the start, before anything is submitted, and from time to time. */
export class ReconcilerAgent {
  readonly #sweeper: Sweeper;
  readonly #connection: Connection;
  readonly #parts: ReconcilerParts;
  readonly #options: ReconcilerOptions;
  readonly #shared: SharedFactory;
  /** How many the last listing found: only a change is news. */
  #orphans = 0;

  constructor(sweeper: Sweeper, connection: Connection, parts: ReconcilerParts, options: ReconcilerOptions) {
    this.#sweeper = sweeper;
    this.#connection = connection;
    this.#parts = parts;
    this.#options = options;
    this.#shared = new SharedFactory(connection.name, parts.factoryId);
  }

  async pass(): Promise<void> {
    try {
      await this.#withHomes((homes) => this.#reconcile(homes));
    } catch (error) {
      this.#connection.listFailed(toReason(error));
      throw error;
    }
  }

  /** The orphans of the last listing, freshly listed, for their removal: those without doubt. */
  async orphans(): Promise<readonly { found: Found; row?: Fate | undefined; why: string }[]> {
    return this.#withHomes(async (homes) =>
      (await this.#judgeAll(homes)).flatMap(({ found, row, verdict }) => {
        const isSure = verdict.kind === 'orphan' && verdict.doubtful !== true;
        return isSure ? [{ found, row, why: verdict.why }] : [];
      }),
    );
  }

  /** @returns how many orphans are gone. */
  async removeOrphans(): Promise<number> {
    let removed = 0;
    const handles = new Map<number, Handle>();
    for (const { found, row, why } of await this.orphans()) {
      // The removals before this one may have taken long.
      if (await this.#isOfWorker(found, row, handles)) {
        const facts = { place: found.place, why: 'it is that of a worker by now, or has the number of one' };
        this.#parts.log.info('orphan not removed', facts);
        continue;
      }
      const what = `removal of orphan ${found.place}`;
      const outcome = await this.#parts.calls.call(what, (signal) =>
        this.#sweeper.removeOrphan(found, signal),
      );
      if (outcome.kind === 'gone') removed++;
      this.#parts.log.info('orphan removed', { place: found.place, why, outcome: outcome.kind });
    }
    await this.#withHomes((homes) => this.#reconcile(homes));
    return removed;
  }

  /**
   * Whether a row says something else of an orphan than when it was judged, or a living worker has its handle. Another connection may lead to the
   * same place, so that a mark that cannot be read may be that of a worker there.
   * @param handles of living workers, as far as they are known; takes up the others
   */
  async #isOfWorker(
    { identity, handle }: Found,
    row: Fate | undefined,
    handles: Map<number, Handle>,
  ): Promise<boolean> {
    const { store, ledger } = this.#parts;
    if (identity !== undefined) {
      const now = (await this.#stored(store.workers.fates([identity.workerId]))).get(identity.workerId);
      if (now?.status !== row?.status || now?.swept !== row?.swept) return true;
    }
    const here = () => [...ledger.live.on(this.#connection.name)].map(({ workerId }) => workerId);
    const living = new Set(identity === undefined ? ledger.live.ids() : here());
    const unknown = [...living].filter((workerId) => !handles.has(workerId));
    for (const record of unknown.length === 0 ? [] : await this.#stored(store.workers.byIds(unknown)))
      if (record.handle !== undefined) handles.set(record.workerId, record.handle);
    const called = Object.entries(handle);
    return handles
      .entries()
      .some(([workerId, own]) => living.has(workerId) && called.every(([key, value]) => own[key] === value));
  }

  async #withHomes<T>(pass: (homes: PassHomes) => Promise<T>): Promise<T> {
    const homes = this.#options.homes();
    try {
      return await pass(homes);
    } finally {
      homes.release();
    }
  }

  async #judgeAll(homes: PassHomes): Promise<Judged[]> {
    const { store } = this.#parts;
    const { live } = this.#parts.ledger;
    // A worker that is confirmed only while the listing is under way may be younger than the listing.
    const before = [...live.on(this.#connection.name)].filter(({ status }) => status !== 'pending');
    const first = await this.#list();
    const shown = new Set(first.map(({ identity }) => identity?.workerId));
    this.#options.notListed(before.flatMap(({ workerId }) => (shown.has(workerId) ? [] : [workerId])));
    const ids = first.flatMap(({ identity }) => (identity === undefined ? [] : [identity.workerId]));
    // Ids given out from now on are above everything that was ever seen, but for ids that leave no room.
    const highest = ids.reduce((last, id) => (id <= highestForeignId ? Math.max(last, id) : last), 0);
    await this.#stored(store.ids.raise(highest + 1));
    const rows = await this.#stored(store.workers.fates(ids));
    const rowOf = ({ identity }: Found) => identity && rows.get(identity.workerId);
    const strangers = first.filter((found) => rowOf(found) === undefined);
    const configs = await configsOf(strangers, homes);
    const marked = first.filter(isMarked);
    const { factoryId } = this.#parts;
    const home = { factoryId, connection: this.#connection.name, isConfigured: true };
    const couldBeAdopted = marked.filter(
      (found) =>
        rowOf(found) === undefined &&
        configs.get(found.identity.queue) !== undefined &&
        !hasLogin(found, home),
    );
    const known = marked.filter((found) => rowOf(found) !== undefined);
    const outdone = new Map([
      ...(await this.#stored(copiesOf(store.workers, known))),
      ...(await this.#stored(outdoneOf(store.origins, factoryId, couldBeAdopted))),
    ]);
    const judgeOne = (found: Found): Judged => {
      const beaten = outdone.get(found.place);
      const row = rowOf(found);
      if (beaten !== undefined) return { found, row, verdict: { kind: 'orphan', ...beaten } };
      const configOf = (queue: string) => configs.get(queue);
      return { found, row, verdict: judge(found, row, this.#connection.name, configOf, factoryId) };
    };
    this.#lookForAnother(first.map((found) => ({ found, hasRow: rowOf(found) !== undefined })));
    const judged = first.map(judgeOne);
    // The rows were read after the listing: who ended or was swept in between only looks like an orphan. What is listed
    // again, after the rows, is one.
    const suspects = new Set(
      judged.filter(({ found, verdict }) => verdict.kind === 'orphan' && rowOf(found) !== undefined),
    );
    if (suspects.size === 0) return judged;
    const second = new Map((await this.#list()).map((found) => [found.place, judgeOne(found)]));
    return judged.flatMap((one) => (suspects.has(one) ? (second.get(one.found.place) ?? []) : [one]));
  }

  /** A second daemon of this factory is told of, and nothing else: its workers are followed like all others. */
  #lookForAnother(listed: readonly { readonly found: Found; readonly hasRow: boolean }[]): void {
    const { clock, idFloor, log } = this.#parts;
    const workerIds = this.#shared.take(listed, idFloor, clock.monotonic());
    if (workerIds.length === 0) return;
    log.warn('another daemon with our factory id makes workers', {
      code: 'factory-shared',
      connection: this.#connection.name,
      factory: this.#parts.factoryId,
      workerIds: workerIds.slice(0, 10),
    });
  }

  #list(): Promise<readonly Found[]> {
    const what = `list of ${this.#connection.name}`;
    const isAlive = (workerId: number) => this.#parts.ledger.live.get(workerId) !== undefined;
    return this.#parts.calls.call(what, (signal) => this.#sweeper.list(signal, isAlive));
  }

  async #reconcile(homes: PassHomes): Promise<void> {
    const { ledger, store, log, clock, events } = this.#parts;
    const all = await this.#judgeAll(homes);
    const adopted = all.flatMap(({ found: { observation }, verdict }) =>
      verdict.kind === 'adopt'
        ? [{ worker: this.#asFollowed(verdict.worker, homes), seen: observation !== undefined }]
        : [],
    );
    const workers = (seen: boolean) => adopted.filter((one) => one.seen === seen).map(({ worker }) => worker);
    const refused = new Map<number, string>();
    const seen = await this.#adopt(workers(true), 'submitted', refused);
    // The submitter settles these: a late start of them must be fenced before anything is concluded.
    const unseen = await this.#adopt(workers(false), 'pending', refused);
    if (seen.size + unseen.size > 0) {
      log.warn('adopted workers without a row', {
        connection: this.#connection.name,
        workers: seen.size + unseen.size,
      });
    }
    const giveWay = givingWay(clock);
    await this.#tellAccessPoints(
      giveWay,
      all.filter(({ verdict }) => {
        if (verdict.kind !== 'adopt' || verdict.worker.accessPoint === undefined) return false;
        const { workerId } = verdict.worker;
        return (seen.has(workerId) || unseen.has(workerId)) && !this.#isGiven(verdict.worker, homes);
      }),
    );
    // Two that were listed at once may have the same origin.
    const judged = all.map((one): Judged => {
      if (one.verdict.kind !== 'adopt') return one;
      const { workerId } = one.verdict.worker;
      if (seen.has(workerId) || unseen.has(workerId)) return one;
      const why = refused.get(workerId) ?? whyTaken(undefined);
      return { found: one.found, verdict: { kind: 'orphan', why } };
    });
    const observed = await eachGivingWay(giveWay, judged, ({ found, verdict }) =>
      verdict.kind === 'adopt' && found.observation !== undefined
        ? [observationChange(found.observation, false)]
        : [],
    );
    await ledger.change(observed.flat());
    const orphans = judged.flatMap(({ found, verdict }): Orphan[] => {
      if (verdict.kind !== 'orphan') return [];
      const { workerId = null, queue = null } = found.identity ?? {};
      const { place } = found;
      return [
        {
          connection: this.#connection.name,
          place,
          workerId,
          queue: queue === null ? null : withoutOwn(queue),
          why: verdict.why,
          seenTime: clock.now(),
        },
      ];
    });
    await this.#stored(store.orphans.replace(this.#connection.name, orphans));
    if (orphans.length > 0 && orphans.length !== this.#orphans) {
      log.warn('orphans found', { connection: this.#connection.name, orphans: orphans.length });
    }
    this.#orphans = orphans.length;
    const opened = this.#connection.listed(() => this.#shared.note(clock.monotonic()));
    if (opened) events.emit('connectionOpened', { connection: this.#connection.name });
  }

  #homeOf({ configId }: Worker, homes: PassHomes): AccessPoints | undefined {
    const runtime = homes.runtimeOf?.(configId);
    return runtime && { ...runtime, harvesterId: this.#parts.harvesterId };
  }

  #asFollowed(worker: Worker, homes: PassHomes): Worker {
    return workerOfMark(worker, this.#homeOf(worker, homes));
  }

  #isGiven(worker: Worker, homes: PassHomes): boolean {
    return isGivenBy(this.#homeOf(worker, homes), worker);
  }

  /** Once for each object: its worker has a row from now on. */
  async #tellAccessPoints(giveWay: () => Promise<void>, refused: readonly Judged[]): Promise<void> {
    await eachGivingWay(giveWay, refused, ({ found }) => {
      this.#parts.log.warn('the access point in a mark is not the one of its queue and is left alone', {
        code: 'access-point-foreign',
        connection: this.#connection.name,
        place: found.place,
        workerId: found.identity?.workerId,
        found: fromOutside(found.identity?.accessPoint ?? ''),
      });
    });
  }

  /**
   * One whose row the database refuses for what is in it keeps no other from being adopted. @param refused takes up why, by id
   * @throws ThresherError where it is the database that is at fault
   */
  async #adopt(
    workers: readonly Worker[],
    status: 'pending' | 'submitted',
    refused: Map<number, string>,
  ): Promise<ReadonlySet<number>> {
    try {
      return await this.#parts.ledger.adopt(workers, status);
    } catch (error) {
      if (!(error instanceof ThresherError) || error.code !== 'store-row') throw error;
      const [first] = workers;
      if (first === undefined || refused.size >= mostRefused) throw error;
      if (workers.length === 1) {
        refused.set(
          first.workerId,
          `it cannot have a row, and thresher does not remove it as an orphan: ${error.message}`,
        );
        return new Set();
      }
    }
    const half = Math.ceil(workers.length / 2);
    const before = await this.#adopt(workers.slice(0, half), status, refused);
    return new Set([...before, ...(await this.#adopt(workers.slice(half), status, refused))]);
  }

  /** What the store is asked for fails with a code of the store. */
  async #stored<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#parts.store.errorOf(error);
    }
  }
}

/** By queue, the configuration that workers without a row are adopted with. */
async function configsOf(
  strangers: readonly Found[],
  homes: PassHomes,
): Promise<ReadonlyMap<string, number | undefined>> {
  const configs = new Map<string, number | undefined>();
  for (const queue of new Set(strangers.flatMap(({ identity }) => identity?.queue ?? [])))
    configs.set(queue, await homes.configFor(queue));
  return configs;
}
