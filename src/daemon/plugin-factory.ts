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
  BackendDefinition,
  BackendKind,
  ConnectedQueue,
  ConnectionPlace,
  Context,
  CredentialManager,
  Host,
  Messenger,
  Monitor,
  OperatorRequests,
  OwnServices,
  PandaServer,
  PluginDefinition,
  SourceMemory,
  Submitter,
  Sweeper,
  Throttler,
} from '../plugins/contracts/index.ts';
import { check } from '../util/schema.ts';
import { ThresherError } from '../worker/errors.ts';
import { noRequirements } from '../worker/worker.ts';
import { BackendConnections, type ConnectionUse } from './backend-connections.ts';
import { memoriesToRead } from './source-memory.ts';
import { noRequests, type SettingsSources, SourceSet } from './source-set.ts';

/** A plugin that serves no queue has no workers. */
const ofNoQueue = {
  queue: '',
  configId: 0,
  queueLimit: () => 0,
  slave: false,
  requirements: noRequirements,
};

export interface PluginFactoryOptions extends Omit<Host, 'logServer'> {
  readonly logServer?: Host['logServer'] | undefined;
  /** Aborts when the daemon ends. */
  readonly ended?: AbortSignal;
  /** ms. */
  readonly maxStatusAge: number;
  /** Absent where no source is asked. */
  readonly sources?: SettingsSources;
  readonly requests?: OperatorRequests;
  /** Default: files of the state directory, which are only read. */
  readonly memoryOf?: (kind: string) => SourceMemory;
  /** For sources of thresher alone. */
  readonly ownServices?: OwnServices;
  /** Directory of the queue file. */
  readonly configDir?: string;
}

/** A section of a queue that names a backend, with its options. */
interface BackendChoice {
  readonly section: BackendKind;
  readonly definition: BackendDefinition;
  readonly config: PluginChoice['config'];
}

/** The connections that a runtime leads to. */
interface RuntimeUses {
  /** Where its workers may be. */
  readonly placed: readonly ConnectionUse[];
  /** Others that its submitter reaches: a schedd with weight 0, say. */
  readonly reached: readonly ConnectionUse[];
}

const noSettings: SettingsSources = { sources: [], modules: new Map(), refused: new Map() };

const backendSections: readonly BackendKind[] = ['submitter', 'monitor', 'sweeper'];

/** Makes plugins from configurations, and keeps what queues share. */
export class PluginFactory {
  readonly #options: PluginFactoryOptions;
  readonly #host: Host;
  readonly #backends: BackendConnections;
  /** The sources of the queues that run. */
  readonly sources: SourceSet;
  #catalogue: PluginCatalogue;
  #pandaServer: PandaServer | undefined;
  readonly #connections = new Map<string, Connection>();
  /** The connections that each runtime leads to. */
  readonly #usesOf = new WeakMap<QueueRuntime, RuntimeUses>();

  constructor(catalogue: PluginCatalogue, options: PluginFactoryOptions) {
    this.#catalogue = catalogue;
    this.#pandaServer = options.sources?.pandaServer;
    this.#options = options;
    const { factoryId, harvesterId, logServer, stateDir, clock, files, random, log } = options;
    const host = { factoryId, harvesterId, stateDir, clock, files, random, log };
    this.#host = logServer === undefined ? host : { ...host, logServer };
    const { memoryOf = memoriesToRead(stateDir) } = options;
    this.#backends = new BackendConnections(this.#host, options.ended, memoryOf);
    const { sources = noSettings, requests = noRequests, ownServices = {}, configDir = '/' } = options;
    const parts = { host: this.#host, requests, memoryOf, ownServices, configDir };
    this.sources = new SourceSet(catalogue, sources, parts);
  }

  /** From now on the factory makes plugins and sources from this catalogue. */
  use(catalogue: PluginCatalogue, sources?: SettingsSources): void {
    this.#catalogue = catalogue;
    if (sources !== undefined) this.#pandaServer = sources.pandaServer;
    this.sources.use(catalogue, sources);
  }

  /**
   * These run from now on, and no others, in the order of the queue file: connections are told of their queues, and those
   * without any are dropped. A queue that merely reaches a connection comes after all that place workers there: the first one
   * says how the connection is watched.
   */
  run(runtimes: readonly QueueRuntime[]): void {
    const uses = runtimes.flatMap((runtime) => this.#usesOf.get(runtime) ?? []);
    this.#backends.use([...uses.flatMap(({ placed }) => placed), ...uses.flatMap(({ reached }) => reached)]);
    const used = new Set(runtimes.flatMap(({ connected }) => [...connected.keys()]));
    for (const name of this.#connections.keys()) if (!used.has(name)) this.#connections.delete(name);
    this.sources.run(runtimes.map(({ config }) => config));
  }

  /** Whether each connection was listed, and has shown its workers or said why it cannot. */
  get heard(): boolean {
    return this.#connections.values().every(({ heard }) => heard);
  }

  /** The connections of a queue's workers. */
  placementsOf(config: QueueConfig): readonly string[] {
    const submitter = this.#backend(config, 'submitter');
    return submitter.definition.connections(submitter.config, this.#context(config, 0));
  }

  /** What a queue has in common with others: connections, and what connections share. @throws ThresherError as `placementsOf` */
  sharedOf(config: QueueConfig): { readonly keys: readonly string[]; readonly isBound: boolean } {
    const { definition, config: options } = this.#backend(config, 'submitter');
    const common = definition.common(options, this.#context(config, 0));
    return { keys: [...this.placementsOf(config), ...common], isBound: definition.onThisMachine };
  }

  /**
   * Makes the plugins of a queue, and the connections that it is the first to lead to. Connections know of it once it runs.
   * @throws ThresherError `unknown-plugin` when a snapshot names a plugin that is gone.
   */
  runtime(config: QueueConfig, configId: number, current: boolean): QueueRuntime {
    const context = this.#context(config, configId);
    const choices = backendSections.map((section) => this.#backend(config, section));
    const placements = this.placementsOf(config);
    const connected = new Map(
      placements.map((placement) => [placement, this.#connected(config, choices, placement)]),
    );
    const { submitter, reached } = this.#submitter(config, choices, placements, context);
    const { sources } = this;
    const runtime = {
      config,
      configId,
      current,
      requirements: requirementsOf(config),
      submitter,
      // Asked anew in each pass: another queue, or the settings, may bring a source for every queue.
      get sources() {
        return current ? sources.of(config) : [];
      },
      payload: this.#backend(config, 'submitter').definition.payload,
      messenger: this.#plugin(config, 'messenger', context) as Messenger | undefined,
      throttler: this.#plugin(config, 'throttler', context) as Throttler | undefined,
      connected,
    };
    const queue = { queue: config.name, configId, current, configDir: config.configDir };
    const beside = new Set(reached.filter((name) => !placements.includes(name)));
    this.#usesOf.set(runtime, {
      placed: usesOf(choices, new Set(placements), queue),
      reached: usesOf(choices, beside, queue),
    });
    return runtime;
  }

  /**
   * A monitor for the logs of a configuration that does not run; undefined where the configuration does not lead there. Its
   * connection is neither listed nor observed.
   * @throws ThresherError `unknown-plugin`
   */
  monitorAt(config: QueueConfig, placement: string, catalogue = this.#catalogue): Monitor | undefined {
    const choices = backendSections.map((section) => this.#backend(config, section, catalogue));
    const leads = choices.some(
      ({ section, definition, config: options }) =>
        section === 'submitter' &&
        definition.connections(options, this.#context(config, 0)).includes(placement),
    );
    return leads ? this.#at(config, choices, 'monitor', placement).monitor : undefined;
  }

  /** @throws ThresherError `unknown-plugin` */
  credentialManager({ name, module, config, configDir }: CredentialManagerChoice): CredentialManager {
    const definition = this.#catalogue.find('credmanager', module, name);
    if (definition === undefined)
      throw new ThresherError('unknown-plugin', `no credential manager is called ${name} of ${module}`);
    // The server has a login, which a third party's manager does not get.
    const isOurs = definition.module.startsWith('thresher/');
    const server = isOurs && definition.needsServer ? { pandaServer: () => this.#pandaServer } : {};
    const context = { ...this.#host, ...ofNoQueue, configDir, ...server };
    return definition.create(config, context) as CredentialManager;
  }

  #connected(config: QueueConfig, choices: readonly BackendChoice[], placement: string): ConnectedPlugins {
    const { clock, maxStatusAge } = this.#options;
    const connection = this.#connections.get(placement) ?? new Connection(placement, clock, maxStatusAge);
    this.#connections.set(placement, connection);
    const { monitor } = this.#at(config, choices, 'monitor', placement);
    const { sweeper } = this.#at(config, choices, 'sweeper', placement);
    return {
      connection,
      monitor: given<Monitor>(monitor, config, 'monitor'),
      sweeper: given<Sweeper>(sweeper, config, 'sweeper'),
    };
  }

  /** @returns also the connections that it reaches beside the placements */
  #submitter(
    config: QueueConfig,
    choices: readonly BackendChoice[],
    [placement]: readonly string[],
    context: Context,
  ): { submitter: Submitter; reached: readonly string[] } {
    if (placement === undefined)
      throw new ThresherError('worker-unreachable', `${config.name} leads nowhere: it has no connection`);
    const reached: string[] = [];
    const at = (name: string) => {
      reached.push(name);
      return this.#at(config, choices, 'submitter', name);
    };
    const options = choices.find(({ section }) => section === 'submitter')?.config;
    const submitter = at(placement).submitter?.(options, context, at);
    return { submitter: given<Submitter>(submitter, config, 'submitter'), reached };
  }

  /** The connection of a section's backend. */
  #at(config: QueueConfig, choices: readonly BackendChoice[], section: BackendKind, name: string) {
    const backend = choices.find((choice) => choice.section === section)?.definition.backend;
    if (backend === undefined) throw missing(config, section);
    // The submitter is the first of the sections: it says where the others look, too.
    const first = choices.find(({ definition }) => definition.backend === backend);
    const place: ConnectionPlace = { name, config: first?.config, configDir: config.configDir };
    return this.#backends.at(backend, place);
  }

  #backend(config: QueueConfig, section: BackendKind, catalogue = this.#catalogue): BackendChoice {
    const choice = config.plugins[section];
    if (choice === undefined) throw missing(config, section);
    const definition = catalogue.find(section, choice.module, choice.name);
    if (definition === undefined) throw unknown(config, section, choice);
    return { section, definition, config: optionsOf(definition, choice) };
  }

  #plugin(config: QueueConfig, section: SectionName, context: Context): unknown {
    const choice = config.plugins[section];
    if (choice === undefined) return undefined;
    const definition = this.#catalogue.find(sections[section].kind, choice.module, choice.name);
    if (definition === undefined || !('create' in definition)) throw unknown(config, section, choice);
    return definition.create(optionsOf(definition, choice), context);
  }

  #context(config: QueueConfig, configId: number): Context {
    return {
      ...this.#host,
      queue: config.name,
      configId,
      requirements: requirementsOf(config),
      queueLimit: (workers) => workerBound(config.limits, { ...noLoad, workers }).atMost,
      slave: config.options.runMode === 'slave',
      configDir: config.configDir,
    };
  }
}

/** Each backend hears of its own sections only. */
function usesOf(
  choices: readonly BackendChoice[],
  connections: ReadonlySet<string>,
  queue: Pick<ConnectedQueue, 'queue' | 'configId' | 'current' | 'configDir'>,
): ConnectionUse[] {
  return [...Map.groupBy(choices, ({ definition }) => definition.backend)].flatMap(([backend, own]) => {
    const options = Object.fromEntries(own.map(({ section, config }) => [section, config]));
    const connected: ConnectedQueue = { ...queue, ...options };
    return [...connections].map((connection) => ({ backend, connection, queue: connected }));
  });
}

/** A snapshot may be older than an option: it gets the option's default. */
function optionsOf({ config }: BackendDefinition | PluginDefinition, choice: PluginChoice) {
  const checked = check(config, choice.config);
  return checked.ok ? (checked.value as PluginChoice['config']) : choice.config;
}

function given<Part>(part: Part | undefined, config: QueueConfig, section: BackendKind): Part {
  if (part !== undefined) return part;
  const { name = '', module = '' } = config.plugins[section] ?? {};
  const message = `${config.name}: ${name} of ${module} is defined, and its connection gives no ${section}`;
  throw new ThresherError('unknown-plugin', message);
}

function missing(config: QueueConfig, section: SectionName): ThresherError {
  return new ThresherError('missing-section', `${config.name} has no ${section}`);
}

function unknown(config: QueueConfig, section: SectionName, { name, module }: PluginChoice): ThresherError {
  const message = `${config.name}: no ${section} is called ${name} of ${module} any more`;
  return new ThresherError('unknown-plugin', message);
}
