import type { Clock } from '../../util/clock.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import type { Requirements } from '../../worker/worker.ts';
import type { PandaServer } from './panda-server.ts';

/** Structured log: a constant message, its facts beside it. Never a secret. */
export interface Log {
  debug(message: string, facts?: Readonly<Record<string, unknown>>): void;
  info(message: string, facts?: Readonly<Record<string, unknown>>): void;
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void;
  error(message: string, facts?: Readonly<Record<string, unknown>>): void;
}

/** Addresses of the PanDA log cache. */
export interface LogServer {
  /** Pilots write here. */
  readonly write: string;
  /** Operators read logs here. */
  readonly read: string;
}

/** Services of the daemon for every plugin: a plugin reads neither the clock nor the daemon's settings itself. */
export interface Host {
  /** Our mark. An object with another factory's mark is not ours. */
  readonly factoryId: string;
  /** Harvester's instance name, for the worker's environment. Never says whose an object is. */
  readonly harvesterId: string;
  /** Pilots leave their logs there, by the settings; absent where these say nothing. */
  readonly logServer?: LogServer;
  /** The daemon's state directory: a plugin keeps its files in a folder of its own in it. Absolute. */
  readonly stateDir: string;
  readonly clock: Clock;
  /** Reads files of the queue's options: template, kubeconfig. One per daemon, which no dead file system stops. */
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
}

/** Services and facts that the plugin of one configuration of a queue gets. */
export interface Context extends Host {
  readonly queue: string;
  /** Which configuration of the queue it is made for, as its workers carry it (`Worker.configId`). */
  readonly configId: number;
  /** Needs of one worker by the queue's configuration. Once a worker exists, its own needs count. */
  readonly requirements: Requirements;
  /** How many workers of the queue may be queued while so many run: `nQueueLimitWorker`, or its ratio of them. */
  readonly queueLimit: (running: number) => number;
  /** Whether a server says how many workers there are to be: `runMode: slave`. */
  readonly slave: boolean;
  /** Relative paths in the queue's options count from here. Absolute. */
  readonly configDir: string;
  /**
   * The PanDA server of the settings as a reload left it; undefined where they name none with a login. For plugins of thresher alone that
   * need it.
   */
  readonly pandaServer?: () => PandaServer | undefined;
}
