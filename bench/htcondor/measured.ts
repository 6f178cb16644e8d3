import type { KeptParts } from '../shared/parts.ts';
import type { Ends } from './ends.ts';
import type { Poll } from './poll.ts';
import type { Submission } from './submission.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['submission', 'poll', 'ends'] as const;

/** All that was seen, before anything is made of it. */
export interface Measured {
  readonly submission: Submission;
  readonly poll: Poll;
  readonly ends: Ends;
}

export interface MeasuredWith {
  readonly htcondor: string;
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, MeasuredWith>;
