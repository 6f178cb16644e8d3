import type { QueueConfig } from '../config/queues/queues.ts';
import type {
  DemandSource,
  Log,
  Messenger,
  Monitor,
  Submitter,
  Sweeper,
  Throttler,
} from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { type Deadline, withDeadline } from '../util/deadline.ts';
import type { Requirements } from '../worker/worker.ts';
import type { Connection } from './observation/connection.ts';
import type { CredentialBoard } from './credentials/credential-board.ts';
import type { FactoryLimits } from './submission/factory-limits.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Metrics } from './metrics.ts';

/** One connection as a queue uses it. */
export interface ConnectedPlugins {
  readonly connection: Connection;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
}

/** One configuration of one queue with its plugins: the current one, or an older one that workers are followed with. */
export interface QueueRuntime {
  readonly config: QueueConfig;
  readonly configId: number;
  /** Whether new workers may be made of it. */
  readonly current: boolean;
  readonly requirements: Requirements;
  readonly submitter: Submitter;
  readonly demand: DemandSource;
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
  | 'kill:after-kill'
  | 'sweep:before-remove'
  | 'sweep:after-remove'
  | 'sweep:after-access-point'
  | 'sweep:after-mark';

/** What every agent gets. */
export interface AgentContext {
  readonly factoryId: string;
  readonly harvesterId: string;
  /** Below all ids that were given out since the start. */
  readonly idFloor: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly factoryLimits: FactoryLimits;
  readonly metrics: Metrics;
  readonly credentials: CredentialBoard;
  /** No worker is submitted with a credential that ends sooner, ms. */
  readonly credentialLifetime: number;
  /** For one call of a plugin, ms. */
  readonly pluginTimeout: number;
  /** Aborts when calls under way are to be given up: later than the loops' own stop. */
  readonly giveUp: AbortSignal;
  /** That something came back: the pass is not stuck. */
  readonly progress: () => void;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/** How long a call that is over its time may take to bring in what it has done so far, ms. */
const bringIn = 1000;

/** One call of a plugin, bounded in time. */
export function callPlugin<T>(
  context: AgentContext,
  what: string,
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs = context.pluginTimeout,
): Promise<T> {
  const deadline: Deadline = {
    clock: context.clock,
    what,
    timeoutMs,
    graceMs: bringIn,
    signal: context.giveUp,
  };
  return withDeadline(deadline, call).finally(context.progress);
}
