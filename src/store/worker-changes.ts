import type { WorkerStatus } from '../worker/status.ts';
import type { WorkerFacts } from './worker-facts.ts';

type Known<Facts> = { readonly [Fact in keyof Facts]?: NonNullable<Facts[Fact]> };

/** One change of one worker. Absent fields stay as they are. */
export interface WorkerChange extends Known<WorkerFacts> {
  readonly workerId: number;
  /** The status it must still have; otherwise the change is refused. */
  readonly from: WorkerStatus;
  readonly to: WorkerStatus;
  readonly at: number;
  readonly source: string;
  /** null forgets an error of an earlier attempt. */
  readonly error?: { readonly code: string; readonly message: string } | null;
  readonly batchId?: string;
  /** JSON texts. */
  readonly handle?: string;
  readonly detail?: string;
  /** Its payload, where the worker leaves `pending` by this change: it is wiped unless another pending worker needs it. */
  readonly payloadId?: string;
}
