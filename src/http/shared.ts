import type { QueueView } from '../daemon/view.ts';
import type { LogTails } from './log-tail.ts';

/** The parts that all routes share. */
export interface Shared {
  /** All queues, as they were a second ago at most. */
  readonly queues: () => Promise<readonly QueueView[]>;
  readonly tails: LogTails;
}
