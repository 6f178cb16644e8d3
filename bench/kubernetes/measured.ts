import type { Circumstances as OfAll, KeptParts } from '../shared/parts.ts';
import type { Live } from './live.ts';
import type { Submission } from './submission.ts';
import type { Sweep } from './sweep.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['submission', 'sweep', 'live'] as const;
export type Part = (typeof parts)[number];

/** All that was seen, before anything is made of it. */
export interface Measured {
  readonly submission: Submission;
  readonly sweep: Sweep;
  readonly live: Live;
}

export interface MeasuredWith {
  /** Version of the API server. */
  readonly kubernetes: string;
  readonly clientGo: string;
}

export type Circumstances = OfAll & MeasuredWith;

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, MeasuredWith>;
