import { Connection } from '../agents/observation/connection.ts';
import type { ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import { requirementsOf } from '../agents/submission/worker-maker.ts';
import { noLoad, workerBound } from '../limits/formulas.ts';
import type {
  CredentialManagerChoice,
  PluginCatalogue,
  PluginChoice,
  QueueConfig,
} from '../config/queues/queues.ts';
import { type SectionName, sections } from '../config/queues/queue-schema.ts';
import type {
  AnyDefinition,
  Context,
  CredentialManager,
  DemandSource,
  Log,
  LogServer,
  Messenger,
  Monitor,
  Submitter,
  Sweeper,
  Throttler,
} from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { check } from '../util/schema.ts';
import { ThresherError } from '../worker/errors.ts';

/** What serves no queue has no workers. */
const ofNoQueue = {
  queue: '',
  configId: 0,
  connection: '',
  queueLimit: () => 0,
  slave: false,
  requirements: {
    nCore: 1,
    minRamCount: 0,
    maxDiskCount: 0,
    maxWalltime: 0,
    resourceType: '',
    jobType: '',
    pilotType: '',
    prodSourceLabel: '',
  },
};

export interface WiringOptions {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly logServer?: LogServer | undefined;
  readonly stateDir: string;
  /** ms. */
  readonly maxStatusAge: number;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
}

/** Makes plugins from configurations, and keeps what queues share. */
export class Wiring {
  readonly #options: WiringOptions;
  #catalogue: PluginCatalogue;
  readonly #shared = new Map<string, unknown>();
  readonly #connections = new Map<string, Connection>();

  constructor(catalogue: PluginCatalogue, options: WiringOptions) {
    this.#catalogue = catalogue;
    this.#options = options;
  }

  /** What plugins are made from from now on. */
  use(catalogue: PluginCatalogue): void {
    this.#catalogue = catalogue;
  }

  /** Whether each connection was listed, and has shown its workers or said why it cannot. */
  get heard(): boolean {
    return this.#connections.values().every(({ heard }) => heard);
  }

  /** The connections of a queue's workers. */
  placementsOf(config: QueueConfig): readonly string[] {
    const { definition, choice } = this.#choose(config, 'submitter');
    return definition.connections(choice.config, this.#context(config, 0, ''));
  }

  /** @throws ThresherError `unknown-plugin` when a snapshot names a plugin that is gone. */
  runtime(config: QueueConfig, configId: number, current: boolean): QueueRuntime {
    const demand = this.#catalogue.find('demand', 'thresher/demand', config.demand);
    if (demand === undefined)
      throw new ThresherError('unknown-plugin', `no demand is called ${config.demand}`);
    const placements = this.placementsOf(config);
    const connected = new Map(
      placements.map((placement) => [placement, this.#connected(config, configId, placement)]),
    );
    return {
      config,
      configId,
      current,
      requirements: requirementsOf(config),
      submitter: this.#create(config, configId, 'submitter', placements[0] ?? '') as Submitter,
      demand: demand.create({}, this.#context(config, configId, '')) as DemandSource,
      messenger:
        config.plugins.messenger === undefined
          ? undefined
          : (this.#create(config, configId, 'messenger', '') as Messenger),
      throttler:
        config.plugins.throttler === undefined
          ? undefined
          : (this.#create(config, configId, 'throttler', '') as Throttler),
      connected,
    };
  }

  /**
   * A monitor for the logs of a configuration that does not run, with what its connection shares here; undefined where the
   * configuration does not lead there. Its connection is neither listed nor observed.
   * @throws ThresherError `unknown-plugin`
   */
  monitorAt(
    config: QueueConfig,
    configId: number,
    placement: string,
    catalogue = this.#catalogue,
  ): Monitor | undefined {
    const { definition, choice } = this.#choose(config, 'submitter', catalogue);
    const leads = definition
      .connections(choice.config, this.#context(config, configId, ''))
      .includes(placement);
    return leads ? (this.#create(config, configId, 'monitor', placement, catalogue) as Monitor) : undefined;
  }

  /** @throws ThresherError `unknown-plugin` */
  credentialManager({ name, module, config, configDir }: CredentialManagerChoice): CredentialManager {
    const definition = this.#catalogue.find('credmanager', module, name);
    if (definition === undefined)
      throw new ThresherError('unknown-plugin', `no credential manager is called ${name} of ${module}`);
    const { factoryId, harvesterId, stateDir, clock, files, random, log } = this.#options;
    return definition.create(config, {
      factoryId,
      harvesterId,
      stateDir,
      clock,
      files,
      random,
      log,
      configDir,
      ...ofNoQueue,
      share: <T>(key: string, make: () => T): T => this.#share(key, make),
    }) as CredentialManager;
  }

  #share<T>(key: string, make: () => T): T {
    if (!this.#shared.has(key)) this.#shared.set(key, make());
    return this.#shared.get(key) as T;
  }

  #connected(config: QueueConfig, configId: number, placement: string): ConnectedPlugins {
    const { clock, maxStatusAge } = this.#options;
    let connection = this.#connections.get(placement);
    if (connection === undefined) {
      connection = new Connection(placement, clock, maxStatusAge);
      this.#connections.set(placement, connection);
    }
    return {
      connection,
      monitor: this.#create(config, configId, 'monitor', placement) as Monitor,
      sweeper: this.#create(config, configId, 'sweeper', placement) as Sweeper,
    };
  }

  #create(
    config: QueueConfig,
    configId: number,
    section: SectionName,
    connection: string,
    catalogue = this.#catalogue,
  ): unknown {
    const { definition, choice } = this.#choose(config, section, catalogue);
    return definition.create(choice.config, this.#context(config, configId, connection));
  }

  #choose(
    config: QueueConfig,
    section: SectionName,
    catalogue = this.#catalogue,
  ): { definition: AnyDefinition; choice: PluginChoice } {
    const choice = config.plugins[section];
    if (choice === undefined) throw new ThresherError('missing-section', `${config.name} has no ${section}`);
    const definition = catalogue.find(sections[section].kind, choice.module, choice.name);
    if (definition === undefined) {
      const message = `${config.name}: no ${section} is called ${choice.name} of ${choice.module} any more`;
      throw new ThresherError('unknown-plugin', message);
    }
    // A snapshot may be older than an option: it gets the option's default.
    const checked = check(definition.config, choice.config);
    return {
      definition,
      choice: checked.ok ? { ...choice, config: checked.value as PluginChoice['config'] } : choice,
    };
  }

  #context(config: QueueConfig, configId: number, connection: string): Context {
    const { factoryId, harvesterId, logServer, stateDir, clock, files, random, log } = this.#options;
    return {
      ...(logServer && { logServer }),
      factoryId,
      harvesterId,
      connection,
      stateDir,
      clock,
      files,
      random,
      log,
      queue: config.name,
      configId,
      requirements: requirementsOf(config),
      queueLimit: (workers) => workerBound(config.limits, { ...noLoad, workers }).atMost,
      slave: config.options.runMode === 'slave',
      configDir: config.configDir,
      share: <T>(key: string, make: () => T): T => this.#share(key, make),
    };
  }
}
