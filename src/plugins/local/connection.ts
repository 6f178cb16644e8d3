import type { BackendConnection } from '../contracts/backend.ts';
import type { Context } from '../contracts/context.ts';
import type { LocalHost } from './host.ts';
import { LocalMonitor } from './monitor.ts';
import type { LocalDaemon, LocalSubmitterConfig } from './schema.ts';
import { LocalSubmitter } from './submitter.ts';
import { LocalSweeper } from './sweeper.ts';

/** One work directory with all that starts, follows and ends workers there. */
export class LocalConnection implements BackendConnection<LocalSubmitterConfig> {
  readonly host: LocalHost;
  readonly monitor: LocalMonitor;
  readonly sweeper: LocalSweeper;

  constructor(host: LocalHost, daemon: LocalDaemon) {
    this.host = host;
    this.monitor = new LocalMonitor(host, daemon);
    this.sweeper = new LocalSweeper(host, daemon);
  }

  submitter(config: LocalSubmitterConfig, context: Context): LocalSubmitter {
    return new LocalSubmitter(this.host, config, context);
  }
}
