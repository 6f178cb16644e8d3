import type { Live } from './live.ts';
import type { Submission } from './submission.ts';
import type { Sweep } from './sweep.ts';

/** All that was seen, before anything is made of it. */
export interface Measured {
  readonly submission: Submission;
  readonly sweep: Sweep;
  readonly live: Live;
  /** Of the machine, over a minute: before each part, and at the end. The benchmark's own load is in all but the first. */
  readonly loads: readonly number[];
}
