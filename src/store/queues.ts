import type { Reason } from '../worker/reason.ts';

/** An operator's order to a queue; it survives restarts. */
export interface Control {
  readonly mode: 'paused' | 'draining';
  readonly reason: string;
  readonly since: number;
}

/** The last state of a queue that the daemon wrote down. */
export interface QueueReport {
  readonly queue: string;
  readonly queueStatus: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly reasons: readonly Reason[];
  readonly reportTime: number | null;
  readonly control?: Control;
}

/** Queues as operators steer them, their last report, and the configurations workers were submitted with. */
export interface QueueStore {
  /** The id of this configuration of this queue, which is taken up now; equal ones share it. */
  configId(queue: string, snapshot: string, at: number): Promise<number>;
  snapshot(configId: number): Promise<{ queue: string; snapshot: string } | undefined>;
  /** All configurations that are kept of a queue, the last one used first. */
  snapshotsOf(queue: string): Promise<{ configId: number; snapshot: string }[]>;
  report(report: Omit<QueueReport, 'control'>): Promise<void>;
  all(): Promise<QueueReport[]>;
  control(queue: string): Promise<Control | undefined>;
  /** Pauses, drains or (null) resumes a queue; @returns false when there is no such queue. */
  setControl(queue: string, control: Control | null): Promise<boolean>;
  /** Forgets a queue that is neither configured nor in use. */
  forget(queue: string): Promise<void>;
}
