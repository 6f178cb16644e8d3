import type { Reason } from '../worker/reason.ts';

/** An operator's order to a queue; it survives restarts. */
export interface Control {
  readonly mode: 'paused' | 'draining';
  readonly reason: string;
  readonly since: number;
}

/** States of a queue in which it has no configuration to make workers of. */
export const unconfiguredStates = ['refused', 'incomplete', 'removed'] as const;

/** The last state of a queue that the daemon wrote down. */
export interface QueueReport {
  readonly queue: string;
  /** The `queueStatus` that counts; for a queue without a configuration, one of `unconfiguredStates`. */
  readonly queueStatus: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly reasons: readonly Reason[];
  readonly reportTime: number | null;
  readonly control?: Control;
}

/** Whether workers could be made of the configuration of this queue. */
export function isConfigured({ queueStatus }: Pick<QueueReport, 'queueStatus'>): boolean {
  return !unconfiguredStates.some((state) => state === queueStatus);
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
