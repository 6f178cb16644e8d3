import { brief } from '../../util/beginning.ts';
import { dirname, resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import type { AnyDefinition, CheckContext, SourceDefinition } from '../../plugins/contracts/index.ts';
import { type Located, type Problem, toPointer } from '../../util/located.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { builtInSources } from '../../plugins/contracts/source.ts';
import { check } from '../../util/schema.ts';
import { judgeAbsent } from './absent-plugin.ts';
import { chooseOfQueue } from './credential-managers.ts';
import { type ChosenPlugin, type ChosenPlugins, unsharedConnections } from './connections.ts';
import { type HarvesterKind, kindOf } from '../harvester/plugins.ts';
import {
  doubtfulLabelWeights,
  doubtfulStatus,
  uncountedJobs,
  wholeSlotWithoutOrders,
} from './doubtful-values.ts';
import { clampLimits } from './limits.ts';
import { demandOf, lackedParts, linkOff, whyStanding } from './demand.ts';
import { findSource, moduleFrom, type SourceModules } from './named-source.ts';
import { type SourcesOfSettings, withoutSettings } from './sources.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { type MergedQueue } from './merge.ts';
import type { QueueOrigins } from './origins.ts';
import { withUrl } from './cric-options.ts';
import { type OptionEffect, optionEffects, type SectionReader } from './option-effects.ts';
import {
  type ChosenDemand,
  type ChosenSource,
  type CredentialManagerChoice,
  type PluginCatalogue,
  type QueueConfig,
  type QueueVerdict,
  type SourceChoice,
  sizesOf,
  stateOf,
} from './queue-config.ts';
import {
  QueueOptions,
  SectionHead,
  type SectionName,
  sections,
  WorkerMakerOptions,
  WorkerOptions,
} from './queue-schema.ts';
import { type Remark, remarksOn } from './unread-options.ts';
import { askedInVain } from './asked-in-vain.ts';

export interface QueueFileOptions {
  readonly stateDir: string;
  readonly files: OperatorFiles;
  readonly defaultDemand: string | undefined;
  /** The position of `submitter.defaultDemand` in the settings. */
  readonly placeOfDefaultDemand?: () => Pick<Problem, 'file' | 'pointer' | 'line'>;
  /** The modules of sources that the settings bring. */
  readonly sourceModules?: SourceModules;
  /** The sources that the settings name, as far as they are right. */
  readonly sources?: Pick<SourcesOfSettings, 'sources' | 'refused' | 'pandaServer' | 'linkIsOff'>;
  readonly queueList: readonly string[] | undefined;
  /** For `${harvesterID}` in credential managers. */
  readonly harvesterId?: string;
  /** From `[pandacon]`: the PanDA server for which credential managers get tokens. */
  readonly pandaURLSSL?: string | undefined;
  /** Where queues come from beside the file. */
  readonly origins?: QueueOrigins;
  /** The position of an item of that list in the settings. */
  readonly placeOfListed?: (index: number) => Pick<Problem, 'file' | 'pointer' | 'line'>;
}

/** Sections with nothing of their kind here, and what Harvester looks for in them. */
const foreignSections: Readonly<Record<string, HarvesterKind>> = {
  zipper: 'zipper',
  extractor: 'extractor',
  aux_preparator: 'preparator',
};

/** Characters of what is said of one option: a plugin may put all of a value into it. */
const longestMessage = 2000;

/** Reads one merged queue. */
export class QueueReader {
  /** Which plugin each section resolved to; for `thresher explain`. */
  readonly plugins: ChosenPlugins = {};
  readonly #problems: Problem[] = [];
  /** Place and message of each of them. */
  readonly #told = new Set<string>();
  /** Its credential managers, as far as thresher has them and their options are right. */
  readonly managers: CredentialManagerChoice[] = [];
  readonly #queue: MergedQueue;
  readonly #catalogue: PluginCatalogue;
  readonly #options: QueueFileOptions;
  readonly #configDir: string;
  #worker: WorkerOptions | undefined;
  readonly #readers = new Map<string, SectionReader>();

  constructor(queue: MergedQueue, located: Located, catalogue: PluginCatalogue, options: QueueFileOptions) {
    this.#queue = queue;
    this.#catalogue = catalogue;
    this.#options = options;
    this.#configDir = dirname(resolve(located.file));
  }

  /** The effect of each of the queue's options, by pointers inside it; known once the queue was read. */
  get effects(): ReadonlyMap<string, OptionEffect> {
    return optionEffects(this.#queue.values, this.#readers);
  }

  /** The facts about this queue that a plugin's definition may use. */
  get context(): CheckContext {
    const { name: queue, values } = this.#queue;
    const { stateDir, files } = this.#options;
    const requirements = this.#worker && sizesOf(this.#worker);
    const { computingElements } = this.#worker ?? {};
    return {
      queue,
      stateDir,
      files,
      configDir: this.#configDir,
      pull: values.mapType === 'NoJob',
      ...(requirements && { requirements }),
      ...(computingElements && { computingElements }),
    };
  }

  /** `before` are problems that reading the file found for this queue already. */
  async read(before: readonly Problem[] = []): Promise<QueueVerdict> {
    const { name, values } = this.#queue;
    if (name === '')
      this.#problem('', 'wrong-type', 'the name of the queue is empty; it must be that of a PanDA queue');
    const checked = check(QueueOptions, ownKeys(values));
    if (!checked.ok)
      for (const { pointer, message } of checked.problems) this.#problem(pointer, 'wrong-type', message);
    else this.#remarks([...doubtfulStatus(checked.value), ...doubtfulLabelWeights(checked.value)]);
    const worker = (this.#worker = this.#part('submitter', WorkerOptions));
    const workerMaker = this.#part('workerMaker', WorkerMakerOptions);
    const { common = null } = values;
    if (common !== null && !isObject(common)) {
      const message = `common is ${brief(JSON.stringify(common))}; it must be an object { ... } with options for all plugin sections`;
      this.#problem('/common', 'wrong-type', message);
    }
    for (const section of Object.keys(sections) as SectionName[]) {
      const found = await this.#plugin(section);
      if (found !== undefined) this.plugins[section] = found;
    }
    for (const [section, kind] of Object.entries(foreignSections)) this.#foreign(section, kind);
    await this.#credentials();
    for (const { section, message } of unsharedConnections(this.plugins, this.context))
      this.#problem(toPointer([section]), 'connection-not-shared', message);
    const demand = checked.ok ? await this.#demand(checked.value) : undefined;
    if (checked.ok && worker !== undefined)
      this.#remarks([
        ...uncountedJobs(worker, checked.value, demand?.source?.definition),
        ...wholeSlotWithoutOrders(checked.value, worker, this.#queue.knownToCric),
      ]);
    this.#remarks(remarksOn(this.effects, this.#queue));
    this.#remarks(askedInVain(this.#queue, this.#options.origins?.cache.hasQueueData ?? false));
    const waits = before.some(({ code }) => code === 'cache-missing' || code === 'cache-damaged');
    const found = waits
      ? this.#problems.filter((problem) => !this.#mayComeFromCric(problem))
      : this.#problems;
    const problems = [...before, ...found];
    const { template } = this.#queue;
    const about = template === undefined ? {} : { template };
    const judgement = { name, state: stateOf(problems), problems, ...about };
    if (!checked.ok || demand === undefined) return judgement;
    const limits = clampLimits(checked.value);
    const { defaultDemand } = this.#options;
    const isDecided = (this.plugins.submitter ?? checked.value.demand ?? defaultDemand) !== undefined;
    const standing = whyStanding(checked.value, limits, demand.source, worker ?? {}, isDecided);
    const judged = { ...judgement, limits, demand, standing };
    if (judged.state === 'refused') return judged;
    const chosen = Object.entries(this.plugins).map(([section, { choice }]) => [section, choice] as const);
    const config: QueueConfig = {
      name,
      options: checked.value,
      limits,
      worker: worker ?? {},
      workerMaker: workerMaker ?? {},
      demand: demand.demand,
      configDir: this.#configDir,
      plugins: Object.fromEntries(chosen),
      credmanagers: this.managers,
    };
    const source = demand.source === undefined ? undefined : sourceInSnapshot(demand.source);
    const draft = source === undefined ? config : { ...config, source };
    return { ...judged, draft, ...(judged.state === 'ready' && { config: draft }) };
  }

  /** Whether the file of CRIC may bring the missing option. Until that file is there, its absence is the only cause to be named. */
  #mayComeFromCric({ code }: Problem): boolean {
    const { submitter } = this.#queue.values;
    const hasOwnCes = isObject(submitter) && (submitter['ceList'] ?? undefined) !== undefined;
    return code === 'size-not-said' || (code === 'ce-list-missing' && !hasOwnCes);
  }

  /** The source that asks for its workers, which its own backend must be able to serve. */
  async #demand(options: QueueOptions): Promise<ChosenDemand> {
    const { defaultDemand, placeOfDefaultDemand, sourceModules } = this.#options;
    const submitter = this.plugins.submitter?.definition;
    const { pandaServer, linkIsOff = false } = this.#options.sources ?? {};
    const server = linkIsOff ? 'off' : pandaServer;
    const chosen = demandOf(options, defaultDemand, submitter, this.#catalogue, server);
    const written = options.demand;
    const section = isObject(written) ? written : undefined;
    const module = section?.module === undefined ? undefined : moduleFrom(section.module, this.#configDir);
    const isDefault = written === undefined && defaultDemand !== undefined;
    const what = isDefault ? 'submitter.defaultDemand' : section === undefined ? 'demand' : 'demand.name';
    const found = findSource({ name: chosen.demand, module }, what, this.#catalogue, sourceModules);
    const { definition } = found;
    if (definition === undefined) {
      const place = isDefault ? placeOfDefaultDemand?.() : undefined;
      if (place === undefined) this.#problem('/demand', found.code, found.message);
      else {
        const about = { severity: 'error', code: found.code, message: found.message } as const;
        this.#problems.push({ ...place, ...about, queue: this.#queue.name });
      }
      return chosen;
    }
    await this.#judgeSource(definition);
    const config = this.#sourceOptions(definition, section);
    if (config === undefined) return chosen;
    for (const problem of await definition.checkQueue(config, this.context)) {
      const { code, severity, file, line = 0, pointer } = problem;
      const message = brief(problem.message, longestMessage);
      if (file === undefined) this.#problem(`/demand${pointer}`, code, message, severity);
      else {
        const about = { severity: severity ?? 'error', code, message, queue: this.#queue.name } as const;
        this.#problems.push({ file, pointer, line, ...about });
      }
    }
    if (submitter !== undefined) {
      const lacked = lackedParts(definition, submitter);
      const message = `${definition.name} may give its workers ${lacked.join(', ')}, which ${submitter.name} cannot pass on to them`;
      if (lacked.length > 0) this.#problem('/demand', 'payload-unsupported', message);
    }
    return { ...chosen, source: { definition, choice: { module: definition.module, config } } };
  }

  /** A source with wrong options for the daemon does not run: its queue would wait for ever. */
  async #judgeSource(definition: SourceDefinition): Promise<void> {
    const { sources, files } = this.#options;
    const { name } = definition;
    const refused = sources?.refused.get(name);
    const { name: queue } = this.#queue;
    if (refused !== undefined) {
      const message = `demand is ${name}, which does not run: ${refused.message}`;
      this.#problems.push({ ...refused, message, queue });
      return;
    }
    if (definition.needsServer && sources?.pandaServer === undefined) {
      const why = sources?.linkIsOff
        ? linkOff
        : 'the settings name no PanDA server with a login: see pandacon there';
      const message = `demand is ${name}, and ${why}`;
      this.#problem('/demand', 'panda-server-off', message);
    }
    if (sources?.sources.some((one) => one.definition.name === name) === true) return;
    for (const problem of await withoutSettings(definition, this.#configDir, files)) {
      const { code, severity = 'error', file, line = 0, pointer } = problem;
      const message = `demand is ${name}: ${problem.message}`;
      if (file === undefined) this.#problem('/demand', code, message, severity);
      else this.#problems.push({ file, pointer, line, severity, code, message, queue });
    }
  }

  /** The options of the section `demand`, checked. Undefined where they are wrong. */
  #sourceOptions(definition: SourceDefinition, section: JsonObject | undefined): JsonObject | undefined {
    const { properties: own = {} } = definition.queueConfig as { properties?: Record<string, TSchema> };
    if (section !== undefined) this.#readers.set('demand', { plugin: definition.name, state: 'here', own });
    const checked = check(definition.queueConfig, pick(section ?? {}, Object.keys(own)));
    if (checked.ok) return checked.value as JsonObject;
    for (const { pointer, message } of checked.problems)
      this.#problem(`/demand${pointer}`, 'wrong-type', message);
    return undefined;
  }

  /** Options of a section that the daemon reads itself, with any plugin. */
  #part<T extends TSchema & { properties: object }>(section: SectionName, schema: T): Static<T> | undefined {
    const value = this.#queue.values[section];
    const own = pick(isObject(value) ? value : {}, Object.keys(schema.properties));
    const checked = check(schema, own);
    if (checked.ok) return checked.value;
    for (const { pointer, message } of checked.problems)
      this.#problem(toPointer([section]) + pointer, 'wrong-type', message);
    return undefined;
  }

  async #plugin(section: SectionName): Promise<ChosenPlugin | undefined> {
    const value = this.#queue.values[section];
    const { kind, needed } = sections[section];
    if (value === undefined || value === null) {
      if (needed)
        this.#problem('', 'missing-section', `the section "${section}" is missing, with "name" and "module"`);
      return undefined;
    }
    const head = this.#head(section, value);
    if (head === undefined) return undefined;
    const { name, module } = head;
    const definition = this.#catalogue.find(kind, module, name);
    // One kind here for what are several in Harvester: a stager is no preparator.
    const misplaced = kind === 'inert' && (kindOf(module, name) ?? section) !== section;
    if (definition !== undefined && !misplaced)
      return await this.#configure(section, definition, value as JsonObject);
    this.#absent({ section, harvesterKind: section, kind, ...head });
    return undefined;
  }

  /** A section that thresher has no plugins for: Harvester's are known all the same. */
  #foreign(section: string, harvesterKind: HarvesterKind): void {
    const value = this.#queue.values[section];
    if (value === undefined || value === null) return;
    const head = this.#head(section, value);
    if (head !== undefined) this.#absent({ section, harvesterKind, kind: undefined, ...head });
  }

  #head(section: string, value: unknown): { name: string; module: string } | undefined {
    const head = check(SectionHead, value);
    if (head.ok) return { name: head.value.name, module: head.value.module };
    for (const { pointer, message } of head.problems)
      this.#problem(toPointer([section]) + pointer, 'wrong-type', message);
    return undefined;
  }

  #absent(asked: Omit<Parameters<typeof judgeAbsent>[0], 'pull'>): void {
    const { section, name } = asked;
    const pull = this.#queue.values.mapType === 'NoJob';
    const finding = judgeAbsent({ ...asked, pull }, this.#catalogue);
    // A section without a finding names a plugin whose task is to do nothing.
    this.#readers.set(section, { plugin: name, state: finding === undefined ? 'inert' : 'absent', own: {} });
    if (finding === undefined) return;
    const { pointer, code, message, severity, subject } = finding;
    this.#problem(toPointer([section]) + pointer, code, message, severity, subject);
  }

  async #configure(
    section: SectionName,
    definition: AnyDefinition,
    value: JsonObject,
  ): Promise<ChosenPlugin | undefined> {
    const pointer = toPointer([section]);
    const { name, module, ...options } = value;
    const { properties: own = {} } = definition.config as { properties?: Record<string, TSchema> };
    // Harvester's name, where the section has one: its options are known by that.
    const plugin = String(name);
    this.#readers.set(section, { plugin, state: definition.kind === 'inert' ? 'inert' : 'here', own });
    const checked = check(definition.config, pick(options, Object.keys(own)));
    if (!checked.ok) {
      for (const problem of checked.problems)
        this.#problem(pointer + problem.pointer, 'wrong-type', problem.message);
      return undefined;
    }
    for (const problem of await definition.check(checked.value, this.context)) {
      if (problem.file === undefined) {
        this.#problem(pointer + problem.pointer, problem.code, problem.message, problem.severity);
      } else {
        const { file, line = 0, code, severity = 'error' } = problem;
        const message = brief(problem.message, longestMessage);
        const { name: queue } = this.#queue;
        this.#problems.push({ file, pointer: problem.pointer, line, severity, code, message, queue });
      }
    }
    const whole = (await definition.withFiles(checked.value, this.context)) as JsonObject;
    return { choice: { name: plugin, module: String(module), config: whole }, definition };
  }

  /**
   * thresher accepts a credential that it has no manager for, so that files work as they are: other programs must renew
   * it.
   */
  async #credentials(): Promise<void> {
    const { credmanagers } = this.#queue.values;
    if (credmanagers === undefined || credmanagers === null) return;
    if (!Array.isArray(credmanagers)) {
      this.#problem('/credmanagers', 'wrong-type', 'credmanagers must be a list [ ... ]');
      return;
    }
    const names = {
      queueName: this.#queue.name,
      harvesterID: this.#options.harvesterId ?? '',
      common: isObject(this.#queue.values.common) ? this.#queue.values.common : {},
    };
    const { pandaURLSSL, sources } = this.#options;
    const surroundings = { ...this.context, pandaURLSSL, sources };
    for (const [at, value] of (credmanagers as unknown[]).entries()) {
      const pointer = toPointer(['credmanagers', at]);
      const { choice, problems } = await chooseOfQueue(value, names, surroundings, this.#catalogue);
      for (const { code, message, severity, subject, ...inside } of problems)
        this.#problem(pointer + inside.pointer, code, message, severity, subject);
      if (choice !== undefined) this.managers.push(choice);
    }
  }

  #remarks(remarks: readonly Remark[]): void {
    for (const { pointer, code, message, severity, subject } of remarks)
      this.#problem(pointer, code, message, severity, subject);
  }

  #problem(
    pointer: string,
    code: Problem['code'],
    said: string,
    severity: Problem['severity'] = 'error',
    subject?: string,
  ): void {
    const { file, pointer: source, line, url } = this.#queue.placeOf(pointer);
    const message = withUrl(brief(said, longestMessage), url);
    // An option of `common` reaches several sections: it is named once.
    const key = `${source}\n${message}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    // A value from a template is named with the queue it spoils: the same line may be right for another.
    const { name: queue } = this.#queue;
    const about = subject === undefined ? {} : { subject };
    this.#problems.push({ file, pointer: source, line, severity, code, message, queue, ...about });
  }
}

/** A built-in source without options has nothing to write down but its name. */
function sourceInSnapshot({ definition, choice }: ChosenSource): SourceChoice | undefined {
  const isPlain = definition.module === builtInSources && Object.keys(choice.config).length === 0;
  return isPlain ? undefined : choice;
}

/** Options of the queue itself. Harvester writes its status in small letters, whatever the file has. */
function ownKeys(values: JsonObject): Record<string, unknown> {
  const own = pick(values, Object.keys(QueueOptions.properties));
  const { queueStatus } = own;
  return typeof queueStatus === 'string' ? { ...own, queueStatus: queueStatus.toLowerCase() } : own;
}

/** null counts as not written: so a queue takes back what its template says, as in Harvester. */
function pick(values: JsonObject, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    keys.filter((key) => (values[key] ?? undefined) !== undefined).map((key) => [key, values[key]]),
  );
}
