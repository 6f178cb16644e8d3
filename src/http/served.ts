import type { KnownCredential } from '../agents/credentials/credential-board.ts';
import type { LoopHealth } from '../agents/loop.ts';
import type { WaitingCount } from '../agents/sources/waiting-board.ts';
import type { DaemonMetrics } from '../daemon/metrics/daemon-metrics.ts';
import type { HtcJobReader } from '../daemon/htcjobs.ts';
import type { PandaView } from '../daemon/panda-view.ts';
import type { OperatorDesk } from '../daemon/requests/operator-desk.ts';
import type { ServiceHealth } from '../daemon/services/service.ts';
import type {
  Log,
  LogReader,
  SourceGauge,
  SourceHttpAnswer,
  SourceHttpRequest,
} from '../plugins/contracts/index.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';

export type HtcJobs = Pick<HtcJobReader, 'list' | 'one' | 'events'>;

/**
 * The data that the HTTP server shows, and the one thing that it changes: requests for workers, which go through the daemon. Its
 * own connection to the database can only read.
 */
export interface Served {
  /** By which names a browser may call it without a token: the address it listens on, and this machine's. */
  readonly ownNames: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  readonly metrics: DaemonMetrics;
  readonly factoryId: string;
  readonly version: string;
  readonly requests: Pick<OperatorDesk, 'ask' | 'withdraw' | 'reasonsOf'>;
  /** @throws ThresherError `no-log` */
  logsOf(worker: WorkerRecord): Promise<LogReader>;
  /** The job of a worker as its backend got it, without secrets. @throws ThresherError `no-render` and those of its files */
  renderedOf(worker: WorkerRecord): Promise<string>;
  health(): readonly LoopHealth[];
  credentials(): readonly KnownCredential[];
  services(): readonly ServiceHealth[];
  /** How many requests of which source wait at which queue. */
  waiting(): readonly WaitingCount[];
  /** Numbers that sources show. */
  gauges(): readonly SourceGauge[];
  /** Answer of a source at its door; undefined where no such source has one. */
  askSource(kind: string, request: SourceHttpRequest): Promise<SourceHttpAnswer | undefined>;
  /** The HTCJobs of the operator's cluster; undefined where this daemon is no operator. */
  readonly htcJobs?: HtcJobs | undefined;
  /** The link to the PanDA server. */
  panda(): Promise<PandaView>;
  /** Who has the factory, while this daemon waits for it. */
  leader(): LeaseHolder | undefined;
  /** Whether the daemon is on its way to its end. */
  stopping(): boolean;
}
