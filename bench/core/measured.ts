import type { LiveResult } from './live.ts';
import type { RestartResult } from './restart.ts';

/** All that the children reported, before anything is made of it. */
export interface Measured {
  readonly live: LiveResult;
  readonly restarts: readonly RestartResult[];
  /** Each: ms from the process' start to the rows in memory. */
  readonly bareReads: readonly number[];
}
