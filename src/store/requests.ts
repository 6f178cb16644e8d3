import type { OperatorRequest, WithdrawnRequest } from '../worker/operator-request.ts';
import type { PayloadPart } from '../worker/payload.ts';
import type { Requirements } from '../worker/worker.ts';
import type { WorkerStatus } from '../worker/status.ts';
import type { WorkerRecord } from './rows.ts';

export type AskedBy = 'command-line' | 'http';

/** A request that an operator leaves. */
export interface NewRequest extends OperatorRequest {
  readonly by: AskedBy;
  /** The asker's own name for it: a second request with this name is the same one, or an error. */
  readonly key?: string;
}

/** A request without its content, which is wiped once all its workers have rows. */
export interface RequestRecord {
  readonly id: string;
  readonly queue: string;
  readonly count: number;
  readonly requirements: Partial<Requirements>;
  /** The parts of its payload. */
  readonly parts: readonly PayloadPart[];
  readonly by: AskedBy;
  /** ms UTC, as all times here. */
  readonly creationTime: number;
  readonly withdrawnTime: number | null;
  readonly withdrawReason: string | null;
  /** When all its workers had rows. */
  readonly servedTime: number | null;
  /** Its workers in the database by status. */
  readonly workers: Readonly<Partial<Record<WorkerStatus, number>>>;
}

export interface RequestFilter {
  readonly queue?: string | undefined;
  /** Only those that may still get workers. */
  readonly open?: boolean | undefined;
  readonly limit: number;
}

/** The requests that may still get workers, as far as they differ from those that the caller knows. */
export interface OpenRequests {
  /** Oldest first. */
  readonly ids: readonly string[];
  readonly added: readonly OperatorRequest[];
}

/** Requests of operators wait here until the daemon takes them up: they outlive both sides. */
export interface RequestStore {
  /**
   * @returns false where a request with this key and the same content was there before; the id is that one's
   * @throws ThresherError `request-key-taken`: one with this key asks for something else; `requests-full`
   */
  add(request: NewRequest, at: number): Promise<{ readonly id: string; readonly isNew: boolean }>;
  byId(id: string): Promise<RequestRecord | undefined>;
  /** How many may still get workers. */
  countOpen(): Promise<number>;
  /** Newest first. */
  list(filter: RequestFilter): Promise<RequestRecord[]>;
  workersOf(id: string, limit: number): Promise<WorkerRecord[]>;
  open(known: ReadonlySet<string>): Promise<OpenRequests>;
  /** All its workers have rows: wipes the content. */
  served(ids: readonly string[], at: number): Promise<void>;
  /** Takes a request back, and wipes its content. @returns false where it was taken back before, or all its workers have ended */
  withdraw(id: string, reason: string, at: number): Promise<boolean>;
  /** Those taken back whose workers were not asked to end yet. */
  toEnd(): Promise<WithdrawnRequest[]>;
  ended(ids: readonly string[], at: number): Promise<void>;
  /**
   * Deletes requests that were over before this time, and have no workers left; those with a key only where they were made before
   * `keysBefore`. @returns how many
   */
  prune(before: number, keysBefore: number): Promise<number>;
}
