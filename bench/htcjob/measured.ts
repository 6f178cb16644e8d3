import type { KeptParts } from '../shared/parts.ts';
import type { Ends } from './ends.ts';
import type { Finished } from './finished.ts';
import type { Submission } from './submission.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['submission', 'ends', 'finished'] as const;

/** All that was seen, before figures are made of it. */
export interface Measured {
  readonly submission: Submission;
  readonly ends: Ends;
  readonly finished: Finished;
}

export interface MeasuredWith {
  readonly htcondor: string;
  readonly kubernetes: string;
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, MeasuredWith>;
