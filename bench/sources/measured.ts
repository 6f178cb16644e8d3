import type { KeptParts } from '../shared/parts.ts';
import type { CoreLoad } from './core-load.ts';
import type { Ways } from './ways.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['core', 'ways'] as const;

/** All that was seen, before figures are made of it. */
export interface Measured {
  /** Rounds in turns: a daemon whose workers a source named and hears of, and one without. */
  readonly core: {
    readonly named: readonly CoreLoad[];
    readonly counted: readonly CoreLoad[];
    readonly complaints: readonly string[];
  };
  readonly ways: {
    readonly local: Ways;
    readonly htcondor: Ways;
    /** ms of single `condor_submit` of the same pilot. */
    readonly condorSubmit: readonly number[];
    readonly complaints: readonly string[];
  };
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, object>;
