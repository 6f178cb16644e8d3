import { dirname, resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import type { AnyDefinition, PluginKind } from '../plugins/contracts/index.ts';
import { type Located, type Problem, readJsonFile, toPointer } from '../util/located.ts';
import { check } from '../util/schema.ts';
import { clampLimits, type Limits } from './limits.ts';
import { isObject, type JsonObject, type MergedQueue, mergeQueues } from './merge.ts';
import {
  QueueOptions,
  SectionHead,
  type SectionName,
  sections,
  WorkerMakerOptions,
  WorkerOptions,
} from './queue-schema.ts';

/** One plugin of a queue: which, and its options as its schema left them. JSON: part of the snapshot. */
export interface PluginChoice {
  readonly name: string;
  readonly module: string;
  readonly config: JsonObject;
}

/** A queue that is ready to run. JSON all through: this is the snapshot that workers are followed with. */
export interface QueueConfig {
  readonly name: string;
  readonly options: QueueOptions;
  readonly limits: Limits;
  /** What its workers are like. */
  readonly worker: WorkerOptions;
  readonly workerMaker: WorkerMakerOptions;
  readonly demand: 'fill' | 'none';
  /** Directory of the queue file: relative paths in options count from it. */
  readonly configDir: string;
  readonly plugins: Readonly<Partial<Record<SectionName, PluginChoice>>>;
}

/** What the configuration needs to know of the plugins, without knowing the plugins. */
export interface PluginCatalogue {
  find(kind: PluginKind, module: string, name: string): AnyDefinition | undefined;
  names(kind: PluginKind): string[];
  /** Why a third-party module could not be imported. */
  failure(module: string): string | undefined;
}

export interface QueueFileOptions {
  readonly stateDir: string;
  readonly defaultDemand: 'fill' | 'none' | undefined;
  readonly queueList: readonly string[] | undefined;
}

export interface QueueFileResult {
  /** Queues without an error. */
  readonly queues: readonly QueueConfig[];
  /** Queues with an error: they submit nothing, and the others go on. */
  readonly refused: readonly string[];
  /** False when the file as a whole could not be read: nothing is known of what it should say. */
  readonly readable: boolean;
  readonly problems: readonly Problem[];
}

/** The third-party modules that a queue file names, so that they can be imported before it is read in full. */
export function modulesNamedIn(file: string): ReadonlySet<string> {
  const modules = new Set<string>();
  for (const queue of mergeQueues(readJsonFile(file)).queues) {
    for (const section of Object.keys(sections)) {
      const value = queue.values[section];
      if (isObject(value) && typeof value.module === 'string') modules.add(value.module);
    }
  }
  return modules;
}

/** A configuration that was written down, perhaps by an earlier version that knew less of a queue. */
export function parseSnapshot(text: string): QueueConfig {
  return {
    worker: {},
    workerMaker: {},
    ...(JSON.parse(text) as Omit<QueueConfig, 'worker' | 'workerMaker'>),
  };
}

/** The family a queue counts in. Source: Harvester's queue_config_mapper, which falls back to the site. */
export function siteFamilyOf({ name, options }: QueueConfig): string {
  return options.siteFamily ?? computingSiteOf(name);
}

/** Harvester's `site/resourceType` queues are of the site before the slash. */
export function computingSiteOf(queue: string): string {
  return queue.split('/')[0] ?? queue;
}

/** The modules of a configuration that workers were submitted with. */
export function modulesOf(config: QueueConfig): string[] {
  return Object.values(config.plugins).map(({ module }) => module);
}

/** Reads a queue file whole: every queue is judged by itself, and every mistake is named with its place. */
export function readQueueFile(
  file: string,
  catalogue: PluginCatalogue,
  options: QueueFileOptions,
): QueueFileResult {
  const located = readJsonFile(file);
  if (located.value === undefined)
    return { queues: [], refused: [], readable: false, problems: located.problems };
  const merged = mergeQueues(located);
  const problems = [...located.problems, ...merged.problems];
  const broken = new Set(
    merged.problems.filter(({ severity }) => severity === 'error').map(({ queue }) => queue),
  );
  const queues: QueueConfig[] = [];
  const refused: string[] = [];
  for (const queue of merged.queues) {
    if (!isListed(queue.name, options.queueList)) continue;
    const reader = new QueueReader(queue, located, catalogue, options);
    const config = reader.read();
    problems.push(...reader.problems);
    if (config === undefined || broken.has(queue.name)) refused.push(queue.name);
    else queues.push(config);
  }
  const names = new Set(merged.queues.map(({ name }) => name));
  // Entries that are no objects at all never became queues.
  for (const name of broken) {
    if (name !== undefined && !names.has(name) && isListed(name, options.queueList)) refused.push(name);
  }
  problems.push(...unknownNames(options.queueList ?? [], names, located));
  return { queues, refused, readable: true, problems };
}

/** Names in `qconf.queueList` that no queue has: a slip of the pen that would otherwise only be silence. */
function unknownNames(list: readonly string[], names: ReadonlySet<string>, { file }: Located): Problem[] {
  return list
    .filter((name) => name !== 'ALL' && !names.has(name))
    .map((name) => {
      const message = `qconf.queueList names "${name}", which is no queue of this file`;
      return { file, pointer: '', line: 1, severity: 'warning', code: 'unknown-queue', message };
    });
}

function isListed(name: string, list: readonly string[] | undefined): boolean {
  return list === undefined || list.includes('ALL') || list.includes(name);
}

/** Reads one merged queue. */
class QueueReader {
  readonly problems: Problem[] = [];
  readonly #queue: MergedQueue;
  readonly #located: Located;
  readonly #catalogue: PluginCatalogue;
  readonly #options: QueueFileOptions;
  readonly #configDir: string;

  constructor(queue: MergedQueue, located: Located, catalogue: PluginCatalogue, options: QueueFileOptions) {
    this.#queue = queue;
    this.#located = located;
    this.#catalogue = catalogue;
    this.#options = options;
    this.#configDir = dirname(resolve(located.file));
  }

  read(): QueueConfig | undefined {
    const { name, values } = this.#queue;
    const checked = check(QueueOptions, pick(values, Object.keys(QueueOptions.properties)));
    if (!checked.ok)
      for (const { pointer, message } of checked.problems) this.#problem(pointer, 'wrong-type', message);
    const worker = this.#part('submitter', WorkerOptions);
    const workerMaker = this.#part('workerMaker', WorkerMakerOptions);
    const plugins: Partial<Record<SectionName, PluginChoice>> = {};
    const definitions: Partial<Record<SectionName, AnyDefinition>> = {};
    for (const section of Object.keys(sections) as SectionName[]) {
      const found = this.#plugin(section);
      if (found === undefined) continue;
      plugins[section] = found.choice;
      definitions[section] = found.definition;
    }
    this.#connections(plugins, definitions);
    if (!checked.ok || this.problems.some((problem) => problem.severity === 'error')) return undefined;
    return {
      name,
      options: checked.value,
      limits: clampLimits(checked.value),
      worker: worker ?? {},
      workerMaker: workerMaker ?? {},
      demand:
        checked.value.demand ?? this.#options.defaultDemand ?? definitions.submitter?.defaultDemand ?? 'none',
      configDir: this.#configDir,
      plugins,
    };
  }

  /** What a section says that the daemon reads itself, whatever the plugin. */
  #part<T extends TSchema & { properties: object }>(section: SectionName, schema: T): Static<T> | undefined {
    const value = this.#queue.values[section];
    const own = pick(isObject(value) ? value : {}, Object.keys(schema.properties));
    const checked = check(schema, own);
    if (checked.ok) return checked.value;
    for (const { pointer, message } of checked.problems)
      this.#problem(toPointer([section]) + pointer, 'wrong-type', message);
    return undefined;
  }

  #plugin(section: SectionName): { choice: PluginChoice; definition: AnyDefinition } | undefined {
    const value = this.#queue.values[section];
    const pointer = toPointer([section]);
    const { kind, needed } = sections[section];
    if (value === undefined) {
      if (needed)
        this.#problem('', 'missing-section', `the section "${section}" is missing, with "name" and "module"`);
      return undefined;
    }
    const head = check(SectionHead, value);
    if (!head.ok) {
      for (const problem of head.problems)
        this.#problem(pointer + problem.pointer, 'wrong-type', problem.message);
      return undefined;
    }
    const { name, module } = head.value;
    const definition = this.#catalogue.find(kind, module, name);
    if (definition === undefined) {
      const failure = this.#catalogue.failure(module);
      if (failure !== undefined) {
        this.#problem(
          `${pointer}/module`,
          'plugin-not-loaded',
          `the module ${module} could not be used: ${failure}`,
        );
      } else {
        const known = this.#catalogue.names(kind).join(', ');
        const message = `no ${section} is called ${name} of ${module}; there are ${known}`;
        this.#problem(`${pointer}/name`, 'unknown-plugin', message);
      }
      return undefined;
    }
    return this.#configure(section, definition, value as JsonObject);
  }

  #configure(section: SectionName, definition: AnyDefinition, value: JsonObject) {
    const pointer = toPointer([section]);
    const { name, module, ...options } = value;
    const known = Object.keys((definition.config as { properties?: object }).properties ?? {});
    const shared = section === 'submitter' ? Object.keys(WorkerOptions.properties) : [];
    const checked = check(definition.config, pick(options, known));
    if (!checked.ok) {
      for (const problem of checked.problems)
        this.#problem(pointer + problem.pointer, 'wrong-type', problem.message);
      return undefined;
    }
    const context = { queue: this.#queue.name, stateDir: this.#options.stateDir, configDir: this.#configDir };
    for (const problem of definition.check(checked.value, context)) {
      if (problem.file === undefined) {
        this.#problem(pointer + problem.pointer, problem.code, problem.message, problem.severity);
      } else {
        const { file, line = 0, code, message, severity = 'error' } = problem;
        const { name: queue } = this.#queue;
        this.problems.push({ file, pointer: problem.pointer, line, severity, code, message, queue });
      }
    }
    const common = this.#queue.values.common;
    for (const key of definition.kind === 'inert' ? [] : Object.keys(options)) {
      // What came from `common` is meant for any of the plugins, not for each.
      if (known.includes(key) || shared.includes(key) || (isObject(common) && key in common)) continue;
      this.#problem(
        toPointer([section, key]),
        'unread-option',
        `${definition.name} does not read "${key}"`,
        'notice',
      );
    }
    const choice = { name: String(name), module: String(module), config: checked.value as JsonObject };
    return { choice, definition };
  }

  /** The submitter's connections must be seen by the monitor and the sweeper, or its workers would never be found. */
  #connections(
    plugins: Partial<Record<SectionName, PluginChoice>>,
    definitions: Partial<Record<SectionName, AnyDefinition>>,
  ): void {
    const context = { queue: this.#queue.name, stateDir: this.#options.stateDir, configDir: this.#configDir };
    const of = (section: SectionName) => definitions[section]?.connections(plugins[section]?.config, context);
    const placements = of('submitter');
    if (placements === undefined) return;
    for (const section of ['monitor', 'sweeper'] as const) {
      const seen = of(section);
      if (seen === undefined || placements.every((placement) => seen.includes(placement))) continue;
      const message = `the submitter works on ${placements.join(', ')}, the ${section} looks at ${seen.join(', ')}`;
      this.#problem(toPointer([section]), 'connection-not-shared', message);
    }
  }

  #problem(
    pointer: string,
    code: Problem['code'],
    message: string,
    severity: Problem['severity'] = 'error',
  ): void {
    const source = this.#queue.sourceOf(pointer);
    const { file } = this.#located;
    const line = this.#located.lineOf(source);
    // A value from a template is named with the queue it spoils: the same line may be right for another.
    const { name: queue } = this.#queue;
    this.problems.push({ file, pointer: source, line, severity, code, message, queue });
  }
}

function pick(values: JsonObject, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.filter((key) => values[key] !== undefined).map((key) => [key, values[key]]));
}
