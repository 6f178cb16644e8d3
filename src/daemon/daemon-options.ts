import type { Metrics } from '../agents/metrics.ts';
import type { Step } from '../agents/queue-runtime.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';

/** All that a daemon is given from outside. */
export interface DaemonParts {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Shared with all else in this process that reads files of operators; default: its own. */
  readonly files?: OperatorFiles;
  /** Who counts; default: nobody. */
  readonly metrics?: Metrics;
  /** For tests that stop the daemon dead at a certain moment. */
  readonly step?: (step: Step) => void;
}
