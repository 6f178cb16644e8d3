import type { Machine } from '../core/machine.ts';
import type { Live } from './live.ts';
import type { Submission } from './submission.ts';
import type { Sweep } from './sweep.ts';

/** What can be measured by itself, in the order in which all are. */
export const parts = ['submission', 'sweep', 'live'] as const;
export type Part = (typeof parts)[number];

/** All that was seen, before anything is made of it. */
export interface Measured {
  readonly submission: Submission;
  readonly sweep: Sweep;
  readonly live: Live;
}

/** When a part was measured, and on what. */
export interface Circumstances {
  readonly date: string;
  readonly machine: Machine;
  /** Version of the API server. */
  readonly kubernetes: string;
  readonly clientGo: string;
  /** Of the machine, over a minute: before this part, and after it with the benchmark's own. */
  readonly loads: readonly [number, number];
}

/** What is kept: each part as it was measured last. */
export type Kept = { readonly [One in Part]?: Circumstances & { readonly measured: Measured[One] } };
