import type { Payload } from './payload.ts';
import type { Requirements } from './worker.ts';

/** `kind` of the origins of workers that operators ask for: the `uid` is the id of the request. */
export const operatorKind = 'request';

/** The most workers of one request. */
export const mostWorkers = 10_000;

/** A request as an operator left it in the database, by the command line or over HTTP. */
export interface OperatorRequest {
  readonly id: string;
  readonly queue: string;
  /** So many workers, with indexes from 0. */
  readonly count: number;
  readonly requirements?: Partial<Requirements>;
  readonly payload?: Payload;
}

/** A request that its operator took back: its workers are to be ended, and those that it still lacks never come. */
export interface WithdrawnRequest {
  readonly id: string;
  readonly count: number;
  readonly reason: string;
}
