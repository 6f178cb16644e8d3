import type { KeptParts } from '../shared/parts.ts';
import type { Create } from './create.ts';
import type { Ends } from './ends.ts';
import type { Statuses } from './status.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['create', 'status', 'end'] as const;

/** All that was seen, before figures are made of it. */
export interface Measured {
  readonly create: Create;
  readonly status: Statuses;
  readonly end: Ends;
}

export interface MeasuredWith {
  readonly htcondor: string;
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, MeasuredWith>;
