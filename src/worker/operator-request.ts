import type { Payload } from './payload.ts';
import type { Requirements } from './worker.ts';

/** A request as an operator left it in the database, by the command line or over HTTP. */
export interface OperatorRequest {
  readonly id: string;
  readonly queue: string;
  /** So many workers, with indexes from 0. */
  readonly count: number;
  readonly requirements?: Partial<Requirements>;
  readonly payload?: Payload;
}
