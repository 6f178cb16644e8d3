import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../clients/kubernetes/objects.ts';
import { collectionPath, objectPath } from '../../clients/kubernetes/paths.ts';
import type { Log, SourceHost } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { toReason } from '../../worker/errors.ts';
import { fieldManager } from '../../clients/htcjob/resource.ts';

const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };

/** ms. Sources: the defaults of client-go's leader election, made a little longer. `left`: the duration that a holder gives it at its end. */
const times = { duration: 20_000, left: 1000, renewWithin: 14_000, retry: 2000, renew: 4000 };

export interface LeasePlace {
  readonly namespace: string;
  readonly name: string;
  /** The factory: after its restart it goes on at once. */
  readonly holder: string;
}

interface Lease extends KubernetesObject {
  readonly spec?: {
    readonly holderIdentity?: string | null;
    readonly leaseDurationSeconds?: number | null;
    readonly renewTime?: string | null;
    readonly leaseTransitions?: number | null;
  };
}

export interface LeaseParts {
  readonly client: Pick<KubernetesClient, 'get' | 'create' | 'patch'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when it is held from now on, and when it is no more. */
  readonly changed: () => void;
  /** Which Lease was held when: what is made under one is made after that is on record. */
  readonly history: Pick<LeaseHistory, 'note' | 'isLast'>;
}

/**
 * One operator claims HTCJobs at a time: the holder of a Lease. What a factory has claimed stays with this factory, whichever holds the
 * Lease. A Lease counts as left once it has not changed for its whole duration by the clock of the one who waits, so clocks that differ do
 * no harm.
 */
export class LeaseHolder {
  readonly #place: LeasePlace;
  readonly #parts: LeaseParts;
  /** Monotonic ms up to which it is ours. */
  #until = -Infinity;
  /** Monotonic ms up to which it is another operator's, and one that this factory held last. */
  #othersUntil = -Infinity;
  #seen: { readonly version: string | undefined; readonly at: number } | undefined;
  #other: string | undefined;
  /** The uid of the one that is held, or was held last. */
  #uid: string | undefined;
  #trouble: string | undefined;
  /** The last word of the log on why it is not held; undefined while it is held. */
  #told: string | undefined;

  constructor(place: LeasePlace, parts: LeaseParts) {
    this.#place = place;
    this.#parts = parts;
  }

  get isHeld(): boolean {
    return this.#parts.clock.monotonic() < this.#until;
  }

  /**
   * Whether another operator holds it now, and this factory held it before: the server has the HTCJobs that this factory has claimed, and
   * these go on.
   */
  get isWithOther(): boolean {
    return !this.isHeld && this.#parts.clock.monotonic() < this.#othersUntil;
  }

  /** Why it is not held, as a sentence. */
  get why(): string {
    const { namespace, name } = this.#place;
    const lease = `the Lease ${namespace}/${name}`;
    if (this.#trouble !== undefined) return `${lease} cannot be had: ${this.#trouble}`;
    if (this.#other !== undefined) return `another operator, factory ${this.#other}, holds ${lease}`;
    return `${lease} is being asked for`;
  }

  /** Resolves when `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    const ended = () => signal.aborted;
    let wasHeld = false;
    let wasWithOther = false;
    while (!ended()) {
      const until = this.#until;
      try {
        await this.#try(signal);
        this.#trouble = undefined;
      } catch (error) {
        if (ended()) return;
        // Another operator changed it at the same moment: the next look says who.
        if (!isKubernetesError(error, 'kubernetes-conflict', 'kubernetes-already-exists'))
          this.#trouble = toReason(error).message;
      }
      const { isHeld, isWithOther } = this;
      // It may have run out for a moment, between two looks or during one: steps of that moment were left out.
      const ranOut = wasHeld && clock.monotonic() >= until;
      if (wasHeld !== isHeld || wasWithOther !== isWithOther || ranOut) this.#parts.changed();
      if (isHeld && (!wasHeld || ranOut))
        log.info('this daemon is the operator of HTCJobs', { ...this.#place });
      this.#tell(isHeld ? undefined : this.why);
      wasHeld = isHeld;
      wasWithOther = isWithOther;
      await clock.sleep(isHeld ? times.renew : times.retry, signal);
    }
  }

  /**
   * Leaves it to others, once this operator has ended: they need not wait for its whole duration. It still names this holder, which goes on
   * at once after a restart. Where the server does not take that, others wait.
   */
  async release(): Promise<void> {
    if (!this.isHeld) return;
    const { client, log } = this.#parts;
    const { namespace, name, holder } = this.#place;
    const path = objectPath(leases, namespace, name);
    const options = { signal: new AbortController().signal, timeout: 2000 };
    try {
      const { metadata, spec }: Lease = await client.get(path, options);
      if (spec?.holderIdentity !== holder) return;
      const { resourceVersion } = metadata ?? {};
      const left = { ...this.#spec(spec.leaseTransitions ?? 0), leaseDurationSeconds: times.left / 1000 };
      const patch = { metadata: { ...(resourceVersion !== undefined && { resourceVersion }) }, spec: left };
      this.#until = -Infinity;
      await client.patch(path, patch, { ...options, kind: 'merge', fieldManager });
    } catch (error) {
      log.info('the Lease of HTCJobs is not given back, and others wait for its end', { ...toReason(error) });
    }
  }

  /** Each reason for which it is not held once, from the moment when it is not. */
  #tell(why: string | undefined): void {
    if (why !== undefined && why !== this.#told) this.#parts.log.warn('HTCJobs wait for the Lease', { why });
    this.#told = why;
  }

  async #try(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#parts;
    const { namespace, name, holder } = this.#place;
    const path = objectPath(leases, namespace, name);
    const begun = clock.monotonic();
    const options = { signal, timeout: 5000 };
    let lease: Lease;
    try {
      lease = await client.get(path, options);
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-not-found')) throw error;
      const metadata = { name, namespace };
      const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: this.#spec(0) };
      const wasHeld = this.isHeld;
      const made = await client.create(collectionPath(leases, namespace), object, options);
      await this.#note(made, { knew: false, isRemade: wasHeld });
      this.#held(begun);
      return;
    }
    const { resourceVersion: version } = lease.metadata ?? {};
    const { holderIdentity, leaseTransitions, leaseDurationSeconds } = lease.spec ?? {};
    if (this.#seen?.version !== version) this.#seen = { version, at: begun };
    const isOurs = holderIdentity === holder;
    const duration = leaseDurationSeconds ? leaseDurationSeconds * 1000 : times.duration;
    const isLeft = !holderIdentity || begun - (this.#seen?.at ?? begun) > duration;
    if (!isOurs && !isLeft) {
      this.#other = holderIdentity;
      this.#until = -Infinity;
      const isKnown = await this.#parts.history.isLast(lease.metadata?.uid ?? '');
      this.#othersUntil = isKnown ? begun + times.renewWithin : -Infinity;
      return;
    }
    const spec = this.#spec((leaseTransitions ?? 0) + (isOurs ? 0 : 1));
    const patch = { metadata: { ...(version !== undefined && { resourceVersion: version }) }, spec };
    // Before our own renewal takes the place of the last one, which says in what state the server is.
    await this.#note(lease, { knew: isOurs, isRemade: false });
    await client.patch(path, patch, { ...options, kind: 'merge', fieldManager });
    this.#held(begun);
  }

  #spec(leaseTransitions: number): NonNullable<Lease['spec']> & { readonly acquireTime?: string } {
    const now = new Date(this.#parts.clock.now()).toISOString().replace('Z', '000Z');
    return {
      holderIdentity: this.#place.holder,
      leaseDurationSeconds: times.duration / 1000,
      renewTime: now,
      leaseTransitions,
      ...(!this.isHeld && { acquireTime: now }),
    };
  }

  /** @throws Error of the memory: it is not held before it is on record */
  async #note({ metadata, spec }: Lease, how: Pick<HeldLease, 'knew' | 'isRemade'>): Promise<void> {
    const uid = metadata?.uid ?? '';
    const renewedAt = Date.parse(spec?.renewTime ?? '');
    if (this.#uid !== uid) await this.#parts.history.note({ uid, renewedAt, ...how });
    this.#uid = uid;
  }

  #held(begun: number): void {
    this.#other = undefined;
    this.#othersUntil = -Infinity;
    this.#until = begun + times.renewWithin;
  }
}

/** The most times that are remembered. */
const mostEras = 1000;
/** No pass of a queue makes workers so long after the last renewal of the Lease, ms. */
const longestPass = 120_000;

/** A Lease that is held from now on. */
export interface HeldLease {
  readonly uid: string;
  /** It named this holder when it was read. */
  readonly knew: boolean;
  /** This holder made it in the place of one that was deleted while it was held. */
  readonly isRemade: boolean;
  /** When any holder had renewed it last before that, ms UTC; NaN where it does not say. */
  readonly renewedAt: number;
}

interface Era {
  /** Of the Lease. */
  readonly uid: string;
  /** ms UTC. */
  readonly from: number;
}

/**
 * Which Lease was held when. The settings may name another cluster from one start to the next: workers from the time of another Lease
 * have their HTCJobs elsewhere, and whether these are gone is not seen from here.
 */
export class LeaseHistory {
  static readonly #name = 'leases.json';
  readonly #host: Pick<SourceHost, 'memory' | 'clock' | 'log'>;
  #eras: readonly Era[] | undefined;
  /** As an earlier process left them. */
  #recorded: readonly Era[] | undefined;
  readonly #latestMade: () => Promise<number>;
  /** The last change of the record. */
  #change: Promise<void> = Promise.resolve();

  /** @param latestMade when the last of all workers that live was made, ms UTC: later than now where a clock ran ahead */
  constructor(host: Pick<SourceHost, 'memory' | 'clock' | 'log'>, latestMade: () => Promise<number>) {
    this.#host = host;
    this.#latestMade = latestMade;
  }

  /**
   * Notes a Lease that is held from now on.
   * @throws Error of the memory, and of the database
   */
  note(held: HeldLease): Promise<void> {
    return this.#inTurn(() => this.#note(held));
  }

  /** Each change begins with what the one before it left. */
  #inTurn(change: () => Promise<void>): Promise<void> {
    const changed = this.#change.then(change);
    this.#change = changed.catch(() => undefined);
    return changed;
  }

  async #note(held: HeldLease): Promise<void> {
    const { memory, clock } = this.#host;
    const before = this.#eras ?? (await this.#read());
    const last = before?.at(-1);
    const { uid, renewedAt } = held;
    const now = clock.now();
    const anew = await this.#fromNow(now);
    // Versions before this memory had only what the Lease says.
    const from = before === undefined && held.knew ? 0 : anew;
    const kept = before ?? [];
    const eras =
      last?.uid === uid
        ? this.#eras === undefined
          ? withoutUnheld(kept, { uid, renewedAt, now, anew })
          : kept
        : held.isRemade && last !== undefined
          ? [...kept.slice(0, -1), { ...last, uid }]
          : [...kept, { uid, from }].slice(-mostEras);
    if (eras !== before) await memory.write(LeaseHistory.#name, JSON.stringify(eras));
    this.#eras = eras;
  }

  /** Whether this Lease, by its uid, is the one that this factory held last. @throws Error of the memory */
  async isLast(uid: string): Promise<boolean> {
    return (await this.#known()).at(-1)?.uid === uid;
  }

  async #known(): Promise<readonly Era[]> {
    return this.#eras ?? (this.#recorded ??= (await this.#read()) ?? []);
  }

  /** Undefined where nothing was ever noted. */
  async #read(): Promise<readonly Era[] | undefined> {
    const { memory, log } = this.#host;
    const text = await memory.read(LeaseHistory.#name);
    if (text === undefined) return undefined;
    try {
      const eras: unknown = JSON.parse(text);
      if (Array.isArray(eras) && eras.every(isEra)) return eras;
    } catch {
      // Said below.
    }
    log.warn('the record of Leases cannot be read, and begins anew: jobs from before run on', {
      file: memory.placeOf(LeaseHistory.#name),
    });
    return [];
  }

  /**
   * From now on nothing counts as made here that was made before: the server is in an earlier state than it was, or another one at the same address.
   * @throws Error of the memory, and of the database
   */
  beginAnew(): Promise<void> {
    return this.#inTurn(() => this.#beginAnew());
  }

  async #beginAnew(): Promise<void> {
    const { memory, clock } = this.#host;
    const before = await this.#known();
    const uid = before.at(-1)?.uid;
    if (uid === undefined) return;
    const now = clock.now();
    const closed = before.map((era) => (era.uid === uid ? { ...era, uid: `${uid} until ${now}` } : era));
    const eras = [...closed, { uid, from: await this.#fromNow(now) }].slice(-mostEras);
    await memory.write(LeaseHistory.#name, JSON.stringify(eras));
    // While another operator holds it, the time since the start of this process is not noted yet.
    if (this.#eras === undefined) this.#recorded = eras;
    else this.#eras = eras;
  }

  /** From when on nothing has been made before now, also by a clock that ran ahead then, ms UTC. */
  async #fromNow(now: number): Promise<number> {
    return Math.max(now, (await this.#latestMade()) + 1);
  }

  /** Whether what was made at this time, ms UTC, was made while the Lease that was noted last was held. */
  covers(at: number): boolean {
    const eras = this.#eras ?? [];
    return eras.findLast(({ from }) => from <= at)?.uid === eras.at(-1)?.uid && eras.length > 0;
  }
}

/**
 * A start after a time in which the Lease was not renewed, by its own word. Nothing is made in such a time: what was made in it all the same has
 * its HTCJob in a later state of the server than there is now, since its etcd was restored.
 */
function withoutUnheld(
  eras: readonly Era[],
  {
    uid,
    renewedAt,
    now,
    anew,
  }: Pick<HeldLease, 'uid' | 'renewedAt'> & { readonly now: number; readonly anew: number },
): readonly Era[] {
  // By a clock that ran ahead: when it was held is not known.
  const from = renewedAt > now + longestPass ? 0 : Math.min(renewedAt + longestPass || now, now);
  // What has a time from the future was made by such a clock, too.
  if (from === anew) return eras;
  const before = eras.filter((era) => era.from < from);
  return [...before, { uid: `${uid} not held`, from }, { uid, from: anew }].slice(-mostEras);
}

function isEra(value: unknown): value is Era {
  const { uid, from } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof uid === 'string' && typeof from === 'number';
}
