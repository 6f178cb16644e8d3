import type { QueueConfig } from '../config/queues/queues.ts';
import type {
  Messenger,
  Monitor,
  PayloadPart,
  Source,
  Submitter,
  Sweeper,
  Throttler,
} from '../plugins/contracts/index.ts';
import type { Requirements } from '../worker/worker.ts';
import type { Connection } from './observation/connection.ts';

/** One connection as a queue uses it. */
export interface ConnectedPlugins {
  readonly connection: Connection;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
}

/** A source as one queue is served by it. */
export interface QueueSource {
  /** `kind` of the origins of its workers. */
  readonly kind: string;
  readonly source: Source;
  /** Whether the queue names it as its `demand`. */
  readonly own: boolean;
  /** Whether its workers are jobs, and no pilots. Default: no. */
  readonly runsJobs?: boolean;
  /** `SourceQueue.options`. */
  readonly options: unknown;
}

/** One configuration of one queue with its plugins: the current one, or an older one that workers are followed with. */
export interface QueueRuntime {
  readonly config: QueueConfig;
  readonly configId: number;
  /** Whether new workers may be made of it. */
  readonly current: boolean;
  /**
   * Set once the queue runs by another configuration, or not at all: a pass under way records no further intent, since its limits are no
   * longer those of the queue.
   */
  replaced?: boolean;
  readonly requirements: Requirements;
  readonly submitter: Submitter;
  /** The sources that are asked about it now, in the order in which they are served. None of an older configuration. */
  readonly sources: readonly QueueSource[];
  /** The parts of a payload that its workers can get. */
  readonly payload: readonly PayloadPart[];
  readonly messenger: Messenger | undefined;
  readonly throttler: Throttler | undefined;
  /** By placement. */
  readonly connected: ReadonlyMap<string, ConnectedPlugins>;
}

/** Moments at which a test may stop the daemon dead. */
export type Step =
  | 'submit:before-intent'
  | 'submit:after-intent'
  | 'submit:before-outcome'
  | 'submit:after-outcome'
  | 'news:before-told'
  | 'news:before-taken'
  | 'kill:after-kill'
  | 'sweep:before-remove'
  | 'sweep:after-remove'
  | 'sweep:after-access-point'
  | 'sweep:after-mark'
  | 'share:before-take'
  | 'share:after-take'
  | 'share:before-work'
  | 'share:before-give'
  | 'share:after-give';
