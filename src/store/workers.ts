import type { FinalStatus, WorkerStatus } from '../worker/status.ts';
import type { Worker, WorkerToStart } from '../worker/worker.ts';
import type { ConfigPlace } from './config-places.ts';
import type { WorkerRecord } from './rows.ts';
import type { TransitionRow } from './tables.ts';
import type { WorkerChange } from './worker-changes.ts';

/** A living worker, with the columns that a running daemon keeps in memory. */
export interface LiveRow {
  readonly workerId: number;
  readonly queue: string;
  readonly placement: string;
  readonly configId: number;
  readonly status: WorkerStatus;
  readonly attempt: number;
  readonly killed: boolean;
  /** Whether the backend's handle is known. */
  readonly confirmed: boolean;
  readonly nativeStatus: string | null;
  readonly node: string | null;
  readonly computingElement: string | null;
  readonly startTime: number | null;
  readonly payloadId: string | null;
}

/** The workers of an adoption that have rows now, by id. */
export interface Adopted {
  readonly recorded: ReadonlySet<number>;
  /** Those among them whose end was asked for, because their origin was withdrawn. */
  readonly ended: ReadonlySet<number>;
}

export interface WorkerFilter {
  readonly queue?: string | undefined;
  readonly statuses?: readonly WorkerStatus[] | undefined;
  /** The newest so many. */
  readonly limit?: number | undefined;
}

/** Which living workers are to end. */
export interface KillFilter extends WorkerFilter {
  readonly ids?: readonly number[] | undefined;
  /** None that were recorded later, ms UTC. */
  readonly madeUntil?: number | undefined;
}

/** The columns of a worker that a listing is compared with. */
export interface Fate {
  readonly status: WorkerStatus;
  readonly swept: boolean;
}

/** How long ended workers of each final status are kept before they are swept, as the time they must have ended before. */
export type SweepBefore = Readonly<Record<'finished' | 'failed' | 'cancelled' | 'missed', number>>;

export interface QueueCount {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly workers: number;
}

/** An ended worker, as far as its times tell what kind of end it was. Times are ms UTC. */
export interface EndedWorker {
  readonly workerId: number;
  readonly status: FinalStatus;
  readonly submitTime: number | null;
  readonly startTime: number | null;
  /** Without an end of its own, the time of its last change. */
  readonly endTime: number;
}

/** A count of missed workers covers one queue, one site or one computing element. */
export type MissedScope =
  { readonly queue: string } | { readonly computingSite: string } | { readonly computingElement: string };

/** The history's name for what records intents. */
export const intentSource = 'submitter';

/** Workers and their history. */
export interface WorkerStore {
  /**
   * Records these intents with their payloads: when this returns they survive a power cut. Left out are those whose origin has
   * had its worker or was withdrawn. All others are recorded, or none.
   * @returns the ids of those that were recorded
   */
  insert(
    workers: readonly WorkerToStart[],
    status: WorkerStatus,
    at: number,
    source: string,
  ): Promise<ReadonlySet<number>>;
  /**
   * Records workers that live without a row. Left out are those whose origin has another worker. The end of those whose
   * origin was withdrawn is asked for at once.
   */
  adopt(workers: readonly Worker[], status: WorkerStatus, at: number): Promise<Adopted>;
  /** Writes all changes at once, with their history; @returns the ids whose status was not `from` any more. */
  apply(changes: readonly WorkerChange[]): Promise<number[]>;
  /** Counts a further attempt, before it is made; @returns those that may have one: still pending, no end asked for. */
  nextAttempt(workerIds: readonly number[], at: number): Promise<ReadonlySet<number>>;
  /** Asks for the end of these living workers; @returns those without an earlier request. */
  requestKill(filter: KillFilter, reason: string, at: number): Promise<{ workerId: number; queue: string }[]>;
  markSwept(workerIds: readonly number[], at: number): Promise<void>;
  /** Gives another configuration to the living and unswept workers of one at one place; @returns their ids. */
  moveConfig(from: ConfigPlace, to: number): Promise<number[]>;

  byId(workerId: number): Promise<WorkerRecord | undefined>;
  /** The oldest first. */
  byIds(workerIds: readonly number[]): Promise<WorkerRecord[]>;
  /** The newest first. */
  list(filter: WorkerFilter): Promise<WorkerRecord[]>;
  /** @param queues only the workers of these */
  liveRows(queues?: ReadonlySet<string>): Promise<LiveRow[]>;
  /** The living workers whose end was asked for. */
  asked(): Promise<{ workerId: number; queue: string }[]>;
  /** The status of these workers, and whether they are swept. Few columns: whole listings are compared with them. */
  fates(workerIds: readonly number[]): Promise<Map<number, Fate>>;
  /**
   * Living workers of this configuration for which an end was asked, by their ids.
   * @param which only with larger ids than `after`, and not at these places
   */
  toKill(
    queue: string,
    configId: number,
    limit: number,
    which?: { readonly after?: number; readonly except?: readonly string[] },
  ): Promise<WorkerRecord[]>;
  /** Those among these workers whose intents thresher recorded itself. The rows of the others were made of marks. */
  intended(workerIds: readonly number[]): Promise<ReadonlySet<number>>;
  /** Ended workers whose keep time is over and of which something may be left. @param except who is not looked for */
  toSweep(
    queue: string,
    configId: number,
    before: SweepBefore,
    limit: number,
    except?: { readonly workers: readonly number[]; readonly places: readonly string[] },
  ): Promise<WorkerRecord[]>;
  /** Every (queue, configuration) that still has living or unswept workers, and where these are. */
  configsInUse(): Promise<ConfigPlace[]>;

  /** All workers of all queues by status, ended ones included. */
  countAll(): Promise<QueueCount[]>;
  /** The workers of a queue that ended last in one of these statuses (absent: in any), newest end first. */
  lastEnded(queue: string, limit: number, statuses?: readonly FinalStatus[]): Promise<EndedWorker[]>;
  /** How many of these were missed at or after `since`, ms UTC; without those whose end has an unknown time. */
  missedSince(scope: MissedScope, since: number): Promise<number>;

  history(workerId: number): Promise<Omit<TransitionRow, 'id'>[]>;
  /** The newest transitions after that with id `after`, oldest first, with their queues. */
  transitionsSince(after: number, limit: number): Promise<(TransitionRow & { queue: string })[]>;
}
