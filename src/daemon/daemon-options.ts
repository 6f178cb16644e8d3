import type { FactoryEvents } from '../agents/events.ts';
import type { Step } from '../agents/queue-runtime.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import type { Clock } from '../util/clock.ts';
import type { Events } from '../util/events.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import type { ThresherError } from '../worker/errors.ts';

/** All that a daemon is given from outside. */
export interface DaemonParts {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Shared with all else in this process that reads files of operators; default: its own. */
  readonly files?: OperatorFiles;
  /** Tells what happens to those who subscribed before the start, such as metrics; default: the daemon's own. */
  readonly events?: Events<FactoryEvents>;
  /** Hears that this daemon must end, and another one start: from now on it does nothing more. */
  readonly mustEnd?: (error: ThresherError) => void;
  /** Hears, about each second, that another daemon has this factory, and that this one waits to take over. */
  readonly waiting?: (holder: LeaseHolder, factoryId: string) => void;
  /** Ends the waiting: the start then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** For tests that stop the daemon dead at a certain moment. */
  readonly step?: (step: Step) => void;
}
