import type { QueueRuntime } from '../agents/queue-runtime.ts';
import type { PassHomes } from '../agents/reconciling/reconciler-agent.ts';
import { parseSnapshot, type QueueConfig } from '../config/queues/queues.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { QueueStore } from '../store/queues.ts';
import type { Clock } from '../util/clock.ts';
import { toReason } from '../worker/errors.ts';
import { HeldConfigs, type Hold } from './held-configs.ts';

export interface HomesParts {
  readonly queues: Pick<QueueStore, 'configId' | 'snapshotsOf'>;
  readonly clock: Clock;
  readonly log: Log;
  /** @throws ThresherError where a plugin of it is gone */
  placementsOf(config: QueueConfig): readonly string[];
  /** The configurations that run now, the current ones first. */
  running(): readonly QueueRuntime[];
  /** Follows workers with this configuration from now on; undefined where its plugins cannot be made. */
  follow(config: QueueConfig, configId: number): QueueRuntime | undefined;
}

/**
 * Finds a configuration for workers that are where their queue leads no more: an operator moved the queue, and the database
 * that knew its former configuration was lost or is older. Without one thresher could see these workers, and neither end nor
 * remove them. The first of these that leads to the connection:
 *
 * 1. a configuration of the queue that runs;
 * 2. an earlier configuration of the queue, the last one used first;
 * 3. the queue's own, with the submitter, monitor and sweeper of another queue that is there. It only ends workers.
 */
export class Homes {
  /** The configurations that listings were given. */
  readonly held = new HeldConfigs();
  readonly #parts: HomesParts;

  constructor(parts: HomesParts) {
    this.#parts = parts;
  }

  /** For one pass of a connection's listing, which adopts workers of configured queues only. */
  forPass(connection: string, isConfigured: (queue: string) => boolean): PassHomes {
    const hold = this.held.open();
    return {
      configFor: async (queue) => (isConfigured(queue) ? this.configFor(queue, connection, hold) : undefined),
      runtimeOf: (configId) => this.#parts.running().find((one) => one.configId === configId),
      release: () => {
        hold.release();
      },
    };
  }

  /**
   * @param hold keeps the configuration that was found followed from that moment on
   * @returns undefined where nothing leads there
   */
  async configFor(queue: string, connection: string, hold?: Pick<Hold, 'keep'>): Promise<number | undefined> {
    // Without a pause after the look at what runs: a reload may come in each.
    const kept = (configId: number) => {
      hold?.keep(configId);
      return configId;
    };
    const { queues, clock, log } = this.#parts;
    const running = this.#parts.running();
    const own = running.filter(({ config }) => config.name === queue);
    const there = own.find(({ connected }) => connected.has(connection));
    if (there !== undefined) return kept(there.configId);
    for (const { configId, snapshot } of await queues.snapshotsOf(queue)) {
      const config = parseSnapshot(snapshot);
      if (!this.#leads(config, connection)) continue;
      if (this.#parts.follow(config, configId) !== undefined) return kept(configId);
    }
    const lender = running.find(({ connected }) => connected.has(connection))?.config;
    if (lender === undefined) return undefined;
    const lent = lentConfig(queue, own[0]?.config, lender);
    const configId = await queues.configId(queue, JSON.stringify(lent), clock.now());
    if (this.#parts.follow(lent, configId) === undefined) return undefined;
    log.warn('workers are followed with the plugins of another queue', {
      queue,
      connection,
      lender: lender.name,
      configId,
    });
    return kept(configId);
  }

  #leads(config: QueueConfig, connection: string): boolean {
    try {
      return this.#parts.placementsOf(config).includes(connection);
    } catch (error) {
      // A plugin of it is gone: it leads nowhere.
      this.#parts.log.debug('an earlier configuration cannot be used', {
        queue: config.name,
        ...toReason(error),
      });
      return false;
    }
  }
}

/** The lender's plugins end and remove workers; the rest, such as access points, comes from the queue itself. */
function lentConfig(queue: string, own: QueueConfig | undefined, lender: QueueConfig): QueueConfig {
  const { submitter, monitor, sweeper } = lender.plugins;
  const config: QueueConfig = own ?? lender;
  return {
    ...config,
    name: queue,
    configDir: lender.configDir,
    credmanagers: [],
    plugins: {
      ...config.plugins,
      ...(submitter && { submitter }),
      ...(monitor && { monitor }),
      ...(sweeper && { sweeper }),
    },
  };
}
