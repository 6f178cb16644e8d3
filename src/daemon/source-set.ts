import type { QueueSource } from '../agents/queue-runtime.ts';
import { findSource, type SourceModules } from '../config/queues/named-source.ts';
import type { PluginCatalogue, QueueConfig } from '../config/queues/queues.ts';
import type { ConfiguredSource, SourcesOfSettings } from '../config/queues/sources.ts';
import type {
  Host,
  OperatorRequests,
  OwnServices,
  PandaServer,
  Source,
  SourceDefinition,
  SourceMemory,
  Wanted,
} from '../plugins/contracts/index.ts';
import { builtInSources, defineSource, noOptions } from '../plugins/contracts/source.ts';
import { check } from '../util/schema.ts';
import { ThresherError, toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';

/** A source as it runs: one per kind and daemon. */
export interface RunningSource {
  /** `kind` of the origins of its workers. */
  readonly kind: string;
  readonly source: Source;
  readonly definition: SourceDefinition;
  /** Why it could not be made: it asks for nothing, and its queues say so. */
  readonly problem?: Reason;
}

/** The sources of the settings, and the modules from which they are. */
export interface SettingsSources {
  readonly sources: readonly ConfiguredSource[];
  readonly modules: SourceModules;
  /** Why some of them do not run, by name. */
  readonly refused: SourcesOfSettings['refused'];
  /** For thresher's own sources. */
  readonly pandaServer?: PandaServer;
}

export interface SourceSetParts {
  readonly host: Host;
  readonly requests: OperatorRequests;
  readonly memoryOf: (kind: string) => SourceMemory;
  /** For thresher's own sources. */
  readonly ownServices?: OwnServices;
  /** Directory of the queue file: from there count the paths in options of sources that the settings do not name. */
  readonly configDir: string;
}

/** A source that is to run, with what is wrong with its options. */
interface WantedSource extends ConfiguredSource {
  readonly wrong?: string;
}

interface Made extends RunningSource {
  /** Changes with everything that it was made of. */
  readonly key: string;
}

/** Operators can leave no requests: for those who wire queues without a daemon. */
export const noRequests: OperatorRequests = {
  open: async () => [],
  served: async () => undefined,
  withdrawn: (signal) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve([]);
      });
    }),
  ended: async () => undefined,
};

/**
 * The sources that run. One is made when the settings or a queue name it, or when thresher brings it for every queue; it is
 * made anew when its options change, and goes when none of these names it any more.
 */
export class SourceSet {
  readonly #parts: SourceSetParts;
  readonly #made = new Map<string, Made>();
  readonly #listeners: ((now: readonly RunningSource[]) => void)[] = [];
  #catalogue: PluginCatalogue;
  #settings: SettingsSources;

  constructor(catalogue: PluginCatalogue, settings: SettingsSources, parts: SourceSetParts) {
    this.#catalogue = catalogue;
    this.#settings = settings;
    this.#parts = parts;
  }

  /** From now on sources are of this catalogue, and have these options. The next `run` makes them anew where that differs. */
  use(catalogue: PluginCatalogue, settings = this.#settings): void {
    this.#catalogue = catalogue;
    this.#settings = settings;
  }

  /** A source of this kind that ran here before is made anew by the next `run`: meanwhile another daemon had it. */
  forget(kind: string): void {
    this.#made.delete(kind);
  }

  /** Those that run, the ones asked about every queue first. */
  get all(): readonly RunningSource[] {
    return [...this.#made.values()];
  }

  /** Calls this after each change of `all`, with all of them. */
  onChange(listener: (now: readonly RunningSource[]) => void): void {
    this.#listeners.push(listener);
  }

  /** These configurations run from now on, and no others: the older ones among them have workers whose news a source hears. */
  run(configs: readonly QueueConfig[]): void {
    const wanted = this.#wanted(configs);
    for (const [kind, why] of this.#absent(configs))
      if (!wanted.has(kind)) wanted.set(kind, absentSource(kind, why, this.#parts.configDir));
    const before = this.all;
    const now = [...wanted].map(([kind, named]) => this.#sourceOf(kind, named));
    this.#made.clear();
    for (const made of now) this.#made.set(made.kind, made);
    const isSame = before.length === now.length && now.every((made, at) => made === before[at]);
    if (!isSame) for (const listener of this.#listeners) listener(this.all);
  }

  /** The sources that are asked about a queue, in the order in which it serves them: its own comes last. */
  of({ demand, source }: Pick<QueueConfig, 'demand' | 'source'>): readonly QueueSource[] {
    const queueSource = (made: RunningSource, own: boolean): QueueSource => ({
      kind: made.kind,
      source: made.source,
      own,
      runsJobs: made.definition.runsJobs,
      options: optionsFor(made.definition, own ? (source?.config ?? {}) : {}),
    });
    const others = this.all.filter(({ kind, definition }) => kind !== demand && definition.everyQueue);
    const own = this.#made.get(demand);
    // A queue that runs was not handed to `run` yet, or its source has gone from the files.
    return [
      ...others.map((made) => queueSource(made, false)),
      ...(own === undefined ? [] : [queueSource(own, true)]),
    ];
  }

  #wanted(configs: readonly QueueConfig[]): Map<string, WantedSource> {
    const { sources, modules, refused } = this.#settings;
    const { configDir } = this.#parts;
    const named = new Map(sources.map((one) => [one.definition.name, one]));
    const wanted = new Map<string, WantedSource>();
    const add = (definition: SourceDefinition) => {
      const { name } = definition;
      if (wanted.has(name)) return;
      const problem = refused.get(name);
      if (problem !== undefined)
        wanted.set(name, { definition, config: {}, configDir, wrong: problem.message });
      else wanted.set(name, named.get(name) ?? withDefaults(definition, configDir));
    };
    for (const definition of this.#catalogue.sources)
      if (definition.everyQueue && definition.module === builtInSources) add(definition);
    for (const { definition } of sources) add(definition);
    for (const name of refused.keys()) {
      const found = findSource({ name, module: modules.get(name) }, 'sources', this.#catalogue, modules);
      if (found.definition !== undefined) add(found.definition);
    }
    for (const { demand, source } of configs) {
      const found = findSource({ name: demand, module: source?.module }, 'demand', this.#catalogue, modules);
      if (found.definition !== undefined) add(found.definition);
    }
    return wanted;
  }

  /** Sources that files name and that cannot be had, with the reason. Without them their workers would leave no news. */
  #absent(configs: readonly QueueConfig[]): Map<string, string> {
    const { modules } = this.#settings;
    const ofQueues = configs.map(({ demand, source }) => ({ name: demand, module: source?.module }));
    const ofSettings = [...modules].map(([name, module]) => ({ name, module }));
    return new Map(
      [...ofQueues, ...ofSettings].flatMap((named) => {
        const found = findSource(named, 'the source', this.#catalogue, modules);
        return found.definition === undefined ? [[named.name, found.message] as const] : [];
      }),
    );
  }

  #sourceOf(kind: string, { definition, config, configDir, wrong }: WantedSource): Made {
    const { pandaServer } = this.#settings;
    const isOurs = definition.module === builtInSources;
    // Requests of operators hold secret files, and a server has a login: a third party's source gets neither.
    const server = isOurs && definition.needsServer && pandaServer !== undefined ? { pandaServer } : {};
    const key = JSON.stringify([definition.module, config, configDir, wrong, server]);
    const made = this.#made.get(kind);
    if (made?.key === key) return made;
    const { host, requests, memoryOf, ownServices } = this.#parts;
    const idle = (message: string): Made => {
      const problem = {
        code: 'source-not-made' as const,
        message: `the source ${kind} could not be made: ${message}`,
      } as const;
      host.log.error('source could not be made', { source: kind, error: message });
      return { kind, source: new IdleSource(problem), definition, key, problem };
    };
    if (wrong !== undefined) return idle(wrong);
    const own = isOurs ? { ...ownServices, requests, ...server } : {};
    try {
      return {
        kind,
        source: definition.create(config, { ...host, ...own, memory: memoryOf(kind), kind, configDir }),
        definition,
        key,
      };
    } catch (error) {
      return idle(toReason(error).message);
    }
  }
}

/** In the place of a source that could not be made: it asks for nothing, and the news of its workers wait. */
class IdleSource implements Source {
  readonly #problem: { readonly code: 'source-not-made'; readonly message: string };

  constructor(problem: { readonly code: 'source-not-made'; readonly message: string }) {
    this.#problem = problem;
  }

  async wanted(): Promise<Wanted> {
    return { requests: [], groups: [], reasons: [this.#problem] };
  }

  async told(): Promise<void> {
    const { code, message } = this.#problem;
    throw new ThresherError(code, message);
  }
}

/** A source that the settings do not name. A snapshot may name one that needs options. */
function withDefaults(definition: SourceDefinition, configDir: string): WantedSource {
  const checked = check(definition.config, {});
  if (checked.ok) return { definition, config: checked.value as ConfiguredSource['config'], configDir };
  const wrong = checked.problems.map(({ message }) => message).join('; ');
  return { definition, config: {}, configDir, wrong };
}

/** A source that fails to be made. */
function absentSource(name: string, why: string, configDir: string): ConfiguredSource {
  const create = () => {
    throw new Error(why);
  };
  const absent = defineSource({ name: 'absent', module: why, config: noOptions, create });
  return { definition: { ...absent, name }, config: {}, configDir };
}

/** A snapshot may be older than an option: it gets the option's default. */
function optionsFor(
  { queueConfig }: SourceDefinition,
  written: ConfiguredSource['config'],
): ConfiguredSource['config'] {
  const checked = check(queueConfig, written);
  return checked.ok ? (checked.value as ConfiguredSource['config']) : written;
}
