import type { PluginKind } from '../../plugins/contracts/index.ts';
import { fromPointer, type Located, toPointer } from '../../util/located.ts';
import { readJsonFile } from '../../util/located-file.ts';
import { connectionsOf } from './connections.ts';
import type { Limits } from './limits.ts';
import { isObject, type JsonObject, type MergedQueue, mergeQueues } from './merge.ts';
import { knownOptions } from '../harvester/plugin-options.ts';
import { runsManagers } from './credential-managers.ts';
import type { PluginCatalogue, QueueState, QueueVerdict } from './queue-config.ts';
import { queueKeyEffect } from './queue-keys.ts';
import { type QueueFileOptions, QueueReader, readByDaemon } from './queue-reader.ts';
import { mergedSections, QueueOptions, type SectionName, sections } from './queue-schema.ts';
import { withoutSecrets } from '../settings/secrets.ts';

/** One value of a merged queue and where it is from. */
export interface ExplainedValue {
  /** Inside the queue, as `submitter.templateFile`. */
  readonly option: string;
  readonly value: unknown;
  /** The entry of the file it stands in, `common` named with it; `default` for what no entry says. */
  readonly from: string;
  /** null for a default. */
  readonly line: number | null;
  /** What it does not do, or what became of it; "" where it counts as it is. */
  readonly note: string;
}

export interface ExplainedPlugin {
  readonly section: string;
  readonly name: string;
  readonly module: string;
  /** The plugin of thresher that it is; null where there is none. */
  readonly resolved: string | null;
}

export interface Explanation {
  readonly queue: string;
  readonly file: string;
  readonly line: number;
  readonly template: string | null;
  readonly verdict: QueueVerdict;
  readonly demand: { readonly value: 'fill' | 'none'; readonly why: string } | null;
  readonly plugins: readonly ExplainedPlugin[];
  /** What the submitter speaks to. */
  readonly connections: readonly string[];
  readonly values: readonly ExplainedValue[];
}

/** What became of one queue of a file, value by value; undefined for what is no queue with sections. */
export async function explainQueue(
  file: string,
  catalogue: PluginCatalogue,
  options: QueueFileOptions,
  name: string,
): Promise<Explanation | undefined> {
  const located = await readJsonFile(options.files, file, 'queues');
  const queue = mergeQueues(located).queues.find((one) => one.name === name);
  if (queue === undefined) return undefined;
  const reader = new QueueReader(queue, located, catalogue, options);
  const verdict = await reader.read();
  const { demand } = verdict;
  const submitter = reader.plugins.submitter;
  return {
    queue: name,
    file: located.file,
    line: located.lineOf(toPointer([name])),
    template: queue.template ?? null,
    verdict,
    demand: demand === undefined ? null : { value: demand.demand, why: demand.why },
    plugins: pluginsOf(queue.values, catalogue),
    connections: connectionsOf(submitter, reader.context) ?? [],
    values: [...writtenValues(queue, located, reader, verdict), ...defaults(queue, reader)],
  };
}

function pluginsOf(values: JsonObject, catalogue: PluginCatalogue): ExplainedPlugin[] {
  return mergedSections.flatMap((section) => {
    const value = values[section];
    if (!isObject(value) || section === 'common') return [];
    const name = String(value.name);
    const module = String(value.module);
    return [{ section, name, module, resolved: resolvedTo(section, module, name, catalogue) }];
  });
}

function resolvedTo(
  section: string,
  module: string,
  name: string,
  catalogue: PluginCatalogue,
): string | null {
  const kind: PluginKind | undefined = Object.hasOwn(sections, section)
    ? sections[section as SectionName].kind
    : undefined;
  const found = kind && catalogue.find(kind, module, name);
  if (found === undefined) return null;
  if (section === 'workerMaker') return "the daemon's own work";
  return kind === 'inert' ? 'accepted, does nothing' : `${found.name} of ${found.module}`;
}

/** Every value the file has for this queue: sections option by option, everything else as a whole. */
function writtenValues(
  queue: MergedQueue,
  located: Located,
  reader: QueueReader,
  { limits: clampedLimits, state }: QueueVerdict,
): ExplainedValue[] {
  const explain = (path: readonly string[], value: unknown, note: string): ExplainedValue => {
    const pointer = queue.sourceOf(toPointer(path));
    const [entry = '', section] = fromPointer(pointer);
    const from = section === 'common' && path[0] !== 'common' ? `${entry} common` : entry;
    const shown = withoutSecrets(path.at(-1) ?? '', value);
    return { option: path.join('.'), value: shown, from, line: located.lineOf(pointer), note };
  };
  return Object.entries(queue.values).flatMap(([key, value]) => {
    // What is copied out of `common` is shown where it arrives.
    if (mergedSections.includes(key) && isObject(value)) {
      return Object.entries(value).map(([option, inner]) =>
        explain([key, option], inner, sectionNote(key, option, value, reader)),
      );
    }
    const isLimit = /^(maxWorkers|maxNewWorkersPerCycle|nQueueLimitWorker\w*)$/.test(key);
    const note = isLimit && clampedLimits !== undefined ? limitNote(key, value, clampedLimits) : '';
    const ofManagers = key === 'credmanagers' ? managersNote(queue.values, state, reader) : '';
    return [explain([key], value, [note, ofManagers, keyNote(key, value)].find((one) => one !== '') ?? '')];
  });
}

/** What a limit counts as, where that is not what is written. */
function limitNote(key: string, value: unknown, limits: Limits): string {
  // It has no number of its own afterwards: it is one of those that nQueueLimitWorker is the least of.
  const name = key === 'nQueueLimitWorkerMax' ? 'nQueueLimitWorker' : key;
  const effective = Object.hasOwn(limits, name) ? limits[name as keyof Limits] : undefined;
  if (value === null || effective === value) return '';
  return effective === undefined
    ? 'no effect: for pull queues only (mapType NoJob)'
    : `counts as ${effective}`;
}

/** What becomes of a queue's credential managers. */
function managersNote({ queueStatus }: JsonObject, state: QueueState, { managers }: QueueReader): string {
  if (managers.length === 0) return '';
  const names = [...new Set(managers.map(({ name }) => name))].join(', ');
  if (!runsManagers(String(queueStatus)))
    return `${names}: not run while queueStatus is ${String(queueStatus)}, as in Harvester`;
  return state === 'ready'
    ? `the daemon runs ${names} from its start on, whatever the demand`
    : `${names}: not run while the queue is ${state}`;
}

function keyNote(key: string, value: unknown): string {
  const effect = queueKeyEffect(key);
  if (effect === undefined) return 'read by nobody';
  if (effect.read && value === null) return 'counts as not written';
  return effect.read ? '' : `no effect: ${effect.why}`;
}

function sectionNote(section: string, option: string, value: JsonObject, reader: QueueReader): string {
  if (option === 'name' || option === 'module' || section === 'common') return '';
  const chosen = Object.hasOwn(sections, section) ? reader.plugins[section as SectionName] : undefined;
  const own = (chosen?.definition.config as { properties?: object } | undefined)?.properties ?? {};
  if (Object.hasOwn(own, option) || readByDaemon(section).includes(option)) return '';
  const harvesters = knownOptions(String(value.name));
  if (harvesters?.includes(option)) return chosen === undefined ? '' : 'no effect here';
  // What a plugin reads that is not here, nor in the table, is not known.
  const unknown = harvesters === undefined && (chosen === undefined || chosen.definition.kind === 'inert');
  return unknown ? '' : 'not read by this plugin';
}

/** What nobody wrote: defaults of the queue's own keys and of the plugins that thresher has. */
function defaults(queue: MergedQueue, reader: QueueReader): ExplainedValue[] {
  const of = (properties: object, prefix: string, written: JsonObject) =>
    Object.entries(properties as Record<string, { default?: unknown }>)
      .filter(([key, schema]) => schema.default !== undefined && (written[key] ?? undefined) === undefined)
      .map(([key, schema]) => ({
        ...{ option: `${prefix}${key}`, value: schema.default, from: 'default', line: null, note: '' },
      }));
  return [
    ...of(QueueOptions.properties, '', queue.values),
    ...Object.entries(reader.plugins).flatMap(([section, { definition }]) => {
      const written = queue.values[section];
      const { properties = {} } = definition.config as { properties?: object };
      return of(properties, `${section}.`, isObject(written) ? written : {});
    }),
  ];
}
