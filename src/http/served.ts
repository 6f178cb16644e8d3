import type { LoopHealth } from '../agents/loop.ts';
import type { LoadedSettings } from '../config/settings.ts';
import type { DaemonMetrics } from '../daemon/metrics.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';

/** What the HTTP server shows. It changes nothing: its connection to the database can only read. */
export interface Served {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly store: Store;
  readonly metrics: DaemonMetrics;
  readonly factoryId: string;
  readonly version: string;
  health(): readonly LoopHealth[];
  /** Whether the daemon is on its way to its end. */
  stopping(): boolean;
}
