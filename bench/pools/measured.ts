import type { KeptParts } from '../shared/parts.ts';
import type { Asked } from './asked.ts';
import type { Decisions } from './decision.ts';
import type { FirstWorker } from './first-worker.ts';
import type { Packing } from './packing.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['decision', 'packing', 'asked', 'worker'] as const;

/** All that was seen, before figures are made of it. */
export interface Measured {
  readonly decision: Decisions;
  readonly packing: Packing;
  readonly asked: Asked;
  readonly worker: FirstWorker;
}

export interface MeasuredWith {
  readonly htcondor: string;
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, MeasuredWith>;
