import type { LiveRow } from '../../store/workers.ts';
import type { Observation } from '../../worker/observation.ts';
import { isFinal, type WorkerStatus } from '../../worker/status.ts';

/** `seenIn` of a worker of which only the database tells: since the start of this daemon no monitor has shown it. */
export const notSeenYet = -2;
/** `seenIn` of a worker that a monitor showed and then called gone. */
export const goneSinceSeen = -1;

/** A living worker in memory. Small: there may be 100,000. */
export interface LiveWorker {
  readonly workerId: number;
  readonly queue: string;
  readonly placement: string;
  /** By which it is followed: another one where its own leads elsewhere. */
  configId: number;
  status: WorkerStatus;
  killed: boolean;
  /** Digest of the last observation written, so that an equal one costs nothing. */
  fingerprint: number;
  /** The listing of its connection in which it was last shown. */
  seenIn: number;
}

/**
 * The living workers of this factory, as the database has them: changed only after the database was. Lets a monitor's pass
 * over unchanged workers do without SQL.
 */
export class LiveTable {
  readonly #workers = new Map<number, LiveWorker>();
  /** Ids of those of which no handle is known: few, and asked for in every pass. */
  readonly #unconfirmed = new Set<number>();

  /** How many submissions of these brought no answer, since the start of this daemon. */
  readonly #unanswered = new Map<number, number>();

  /** Ids of those that were tried more than once: few. */
  readonly #triedAgain = new Set<number>();

  /** Payloads of those that may still be started. */
  readonly #payloads = new Map<number, string>();

  get size(): number {
    return this.#workers.size;
  }

  load(rows: readonly LiveRow[]): void {
    for (const row of rows) {
      const { workerId, queue, placement, configId, status, killed, nativeStatus } = row;
      const fingerprint = digest({ ...row, nativeStatus: nativeStatus ?? '' });
      this.add(
        { workerId, queue, placement, configId, status, killed, fingerprint, seenIn: notSeenYet },
        row.confirmed,
        row.payloadId ?? undefined,
      );
      if (row.attempt > 1) this.#triedAgain.add(workerId);
    }
  }

  get(workerId: number): LiveWorker | undefined {
    return this.#workers.get(workerId);
  }

  add(worker: LiveWorker, confirmed: boolean, payloadId?: string): void {
    this.#workers.set(worker.workerId, worker);
    if (payloadId !== undefined && worker.status === 'pending')
      this.#payloads.set(worker.workerId, payloadId);
    if (!confirmed) this.#unconfirmed.add(worker.workerId);
  }

  /** Forgets the workers of these queues: another daemon has them. */
  forget(queues: ReadonlySet<string>): void {
    for (const { workerId, queue } of this.#workers.values()) {
      if (!queues.has(queue)) continue;
      this.#workers.delete(workerId);
      this.#unconfirmed.delete(workerId);
      this.#unanswered.delete(workerId);
      this.#triedAgain.delete(workerId);
      this.#payloads.delete(workerId);
    }
  }

  /** Follows a change that is in the database; a worker that ended is forgotten. */
  update(workerId: number, status: WorkerStatus, confirmed: boolean): void {
    if (confirmed || isFinal(status)) {
      this.#unconfirmed.delete(workerId);
      this.#unanswered.delete(workerId);
    }
    if (status !== 'pending') this.#payloads.delete(workerId);
    if (isFinal(status)) {
      this.#workers.delete(workerId);
      this.#triedAgain.delete(workerId);
    } else {
      const worker = this.#workers.get(workerId);
      if (worker !== undefined) worker.status = status;
    }
  }

  /** A submission of this worker brought no answer. */
  noteUnanswered(workerId: number): void {
    this.#unanswered.set(workerId, this.unanswered(workerId) + 1);
  }

  /** How many submissions of this worker brought no answer, since the start of this daemon. */
  unanswered(workerId: number): number {
    return this.#unanswered.get(workerId) ?? 0;
  }

  /** This worker gets, or had, another attempt after its first. */
  noteTriedAgain(workerId: number): void {
    if (this.#workers.has(workerId)) this.#triedAgain.add(workerId);
  }

  /**
   * Whether the sweeper alone may say that this worker has ended: its end was asked for, and an earlier attempt may still be on its way
   * to the backend. Only the sweeper's `gone` says that none of them can begin any more.
   */
  isSweepersToEnd(workerId: number): boolean {
    return this.#triedAgain.has(workerId) && this.#workers.get(workerId)?.killed === true;
  }

  /** The payload that this worker may still need: only a pending one is ever started. */
  payloadOf(workerId: number): string | undefined {
    return this.#payloads.get(workerId);
  }

  /**
   * Workers of this configuration of which the submitter does not know what became of them. A monitor may have seen them
   * meanwhile; what the backend calls them is still to be asked.
   */
  unconfirmed(queue: string, configId: number): LiveWorker[] {
    return [...this.#unconfirmed]
      .map((workerId) => this.#workers.get(workerId))
      .filter((worker) => worker?.queue === queue && worker.configId === configId) as LiveWorker[];
  }

  /** Only ever called for what an operator asks. */
  all(): Iterable<LiveWorker> {
    return this.#workers.values();
  }

  /** Only ever called after a pass over a whole connection: everything else asks by id. */
  *on(placement: string): Iterable<LiveWorker> {
    for (const worker of this.#workers.values()) if (worker.placement === placement) yield worker;
  }

  /** Of all connections. */
  ids(): Iterable<number> {
    return this.#workers.keys();
  }
}

export function fingerprintOf(observation: Observation): number {
  return digest(observation);
}

/** The facts that are worth a write, as an observation or a row has them. */
interface Facts {
  readonly status: WorkerStatus;
  readonly nativeStatus: string;
  readonly node?: string | null;
  readonly computingElement?: string | null;
  readonly startTime?: number | null;
}

/** FNV-1a. 31 bits, so that it is stored without a heap object. */
function digest({ status, nativeStatus, node, computingElement, startTime }: Facts): number {
  let hash = 0x811c9dc5;
  const text = `${status}\0${nativeStatus}\0${node ?? ''}\0${computingElement ?? ''}\0${startTime ?? 0}`;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash & 0x3fffffff;
}
