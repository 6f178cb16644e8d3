import type { BackendConnection } from '../contracts/backend.ts';
import type { Context } from '../contracts/context.ts';
import { defaultsOf } from '../../util/schema-defaults.ts';
import { HTCondorSchedd } from './schedd.ts';
import { HTCondorMonitor, type OptionsOf } from './monitor.ts';
import { absolutePaths } from './paths.ts';
import { CeTally } from './place/ce-tally.ts';
import { type HTCondorDaemon, HTCondorMonitorConfig, type HTCondorSubmitterConfig } from './schema.ts';
import { HTCondorSubmitter } from './submitter.ts';
import { HTCondorSweeper } from './sweeper.ts';
import { connectionName, everywhere, scheddOfConnection, schedds } from './where.ts';

/** The workers of a queue that does not lead here (it was removed, say) are looked at, and not given up. */
const onlyLook = (): HTCondorMonitorConfig => ({
  ...defaults(),
  heldTimeout: Number.MAX_SAFE_INTEGER,
  queueTimeLimit: 0,
});
const defaults = defaultsOf(HTCondorMonitorConfig);

/** One schedd with all that submits, follows and ends jobs there. */
export class HTCondorConnection implements BackendConnection<HTCondorSubmitterConfig, HTCondorConnection> {
  readonly schedd: HTCondorSchedd;
  readonly monitor: HTCondorMonitor;
  readonly sweeper: HTCondorSweeper;
  readonly #daemon: HTCondorDaemon;
  readonly #tally: CeTally;

  constructor(name: string, daemon: HTCondorDaemon) {
    this.#daemon = daemon;
    this.#tally = daemon.share(everywhere, () => new CeTally());
    const schedd = new HTCondorSchedd(scheddOfConnection(name), daemon);
    this.schedd = schedd;
    const options: OptionsOf = (queue, configId) => daemon.queue(queue, configId)?.monitor ?? onlyLook();
    this.monitor = new HTCondorMonitor({ schedd, daemon, options, tally: this.#tally });
    this.sweeper = new HTCondorSweeper({ schedd, daemon, options });
  }

  submitter(
    config: HTCondorSubmitterConfig,
    context: Context,
    at: (name: string) => HTCondorConnection,
  ): HTCondorSubmitter {
    const read = schedds(config, context);
    const named = read.ok ? read.schedds : [];
    // All of them from the beginning, those with weight 0 among them: jobs of the queue may still be there.
    const reached = new Map(named.map((one) => [connectionName(one), at(connectionName(one)).schedd]));
    return new HTCondorSubmitter({
      config,
      context,
      tally: this.#tally,
      schedds: named,
      scheddAt: (name) => reached.get(name) ?? at(name).schedd,
    });
  }

  queuesChanged(): void {
    this.schedd.followLogs(
      this.#daemon.queues.flatMap(({ submitter, configDir }) => {
        if (submitter === undefined) return [];
        const { eventLog: poolLog, useSpool: spooled } = absolutePaths(submitter, configDir);
        return [{ poolLog, spooled }];
      }),
    );
  }
}
