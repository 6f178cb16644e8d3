import type { KeptParts } from '../shared/parts.ts';
import type { Answer } from './answers.ts';
import type { Orders } from './orders.ts';
import type { ReportLoad } from './report-load.ts';

/** The parts that can be measured by themselves, in the order in which all are. */
export const parts = ['reports', 'orders', 'answers'] as const;

/** All that was seen, before figures are made of it. */
export interface Measured {
  readonly reports: {
    readonly workers: number;
    readonly linked: readonly ReportLoad[];
    /** A daemon whose workers change alike, without a link. */
    readonly alone: ReportLoad;
    /** ms that the server took for the same batches of a bare client, in turns with the daemon. */
    readonly bare: readonly number[];
    readonly complaints: readonly string[];
  };
  readonly orders: Orders;
  readonly answers: { readonly forms: readonly Answer[]; readonly complaints: readonly string[] };
}

/** Each part as it was measured last. */
export type Kept = KeptParts<Measured, object>;
