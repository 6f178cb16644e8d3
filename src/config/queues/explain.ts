import type { TSchema } from 'typebox';
import type { PluginKind } from '../../plugins/contracts/index.ts';
import { fromPointer, toPointer } from '../../util/located.ts';
import { withoutSecrets } from '../../util/secrets.ts';
import { connectionsOf } from './connections.ts';
import type { Limits } from '../../limits/limits.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { cricLabel } from './layers.ts';
import { type MergedQueue } from './merge.ts';
import { readOrigins } from './origins.ts';
import { runsManagers } from './credential-managers.ts';
import type { ChosenSource, PluginCatalogue, QueueState, QueueVerdict } from './queue-config.ts';
import type { OptionEffect } from './option-effects.ts';
import { type QueueFileOptions, QueueReader } from './queue-reader.ts';
import { mergedSections, QueueOptions, type SectionName, sections } from './queue-schema.ts';

/** One value of a merged queue and where it is from. */
export interface ExplainedValue {
  /** Inside the queue, as `submitter.templateFile`. */
  readonly option: string;
  readonly value: unknown;
  /** The entry of the file it stands in, `common` named with it; `default` for what no entry says. */
  readonly from: string;
  /** null for a default. */
  readonly line: number | null;
  /** The missing effect of a value, or its fate; "" if it counts as it is. */
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
  readonly demand: { readonly value: string; readonly why: string } | null;
  readonly plugins: readonly ExplainedPlugin[];
  /** The connections of the submitter. */
  readonly connections: readonly string[];
  readonly values: readonly ExplainedValue[];
}

/** The fate of one queue of a file, value by value; undefined for an entry that is no queue with sections. */
export async function explainQueue(
  file: string,
  catalogue: PluginCatalogue,
  options: QueueFileOptions,
  name: string,
): Promise<Explanation | undefined> {
  const { located, merged } = await readOrigins(file, options);
  const queue = merged.queues.find((one) => one.name === name);
  if (queue === undefined) return undefined;
  const reader = new QueueReader(queue, located, catalogue, options);
  const verdict = await reader.read();
  const { demand } = verdict;
  const submitter = reader.plugins.submitter;
  return {
    queue: name,
    file: queue.placeOf('').file,
    line: queue.placeOf('').line,
    template: queue.template ?? null,
    verdict,
    demand: demand === undefined ? null : { value: demand.demand, why: demand.why },
    plugins: pluginsOf(queue.values, catalogue),
    connections: connectionsOf(submitter, reader.context) ?? [],
    values: [...writtenValues(queue, reader, verdict), ...defaults(queue, reader, demand?.source)],
  };
}

function pluginsOf(values: JsonObject, catalogue: PluginCatalogue): ExplainedPlugin[] {
  return mergedSections.flatMap((section) => {
    const value = values[section];
    if (!isObject(value) || section === 'common' || section === 'demand') return [];
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
  reader: QueueReader,
  { limits: clampedLimits, state }: QueueVerdict,
): ExplainedValue[] {
  const { effects } = reader;
  const noteOf = (path: readonly string[], value: unknown): string =>
    path.at(0) === 'common' ? '' : noteOn(effects.get(toPointer(path)), value, path.length > 1);
  const explain = (path: readonly string[], value: unknown, note: string): ExplainedValue => {
    const { pointer, entry, line, label } = queue.placeOf(toPointer(path));
    const [, section] = fromPointer(pointer);
    const within = section === 'common' && path[0] !== 'common' ? `${entry} common` : entry;
    const shown = withoutSecrets(path.at(-1) ?? '', value);
    const isCric = label === cricLabel;
    const from = isCric ? label : label === undefined ? within : `${within} (${label})`;
    // A line of CRIC's file has a whole entry.
    return { option: path.join('.'), value: shown, from, line: isCric ? null : line, note };
  };
  return Object.entries(queue.values).flatMap(([key, value]) => {
    // A value copied out of `common` is shown in its target section.
    if (mergedSections.includes(key) && isObject(value)) {
      return Object.entries(value).map(([option, inner]) =>
        explain([key, option], inner, noteOf([key, option], inner)),
      );
    }
    const isLimit = /^(maxWorkers|maxNewWorkersPerCycle|nQueueLimitWorker\w*)$/.test(key);
    const counts = isLimit && clampedLimits !== undefined ? limitNote(key, value, clampedLimits) : '';
    const status = key === 'queueStatus' ? statusNote(value) : '';
    const ofManagers = key === 'credmanagers' ? managersNote(queue.values, state, reader) : '';
    const note = [counts, status, ofManagers].find((one) => one !== '');
    return [explain([key], value, note ?? noteOf([key], value))];
  });
}

/** The effective value of a limit, if that differs from the written one. */
function limitNote(key: string, value: unknown, limits: Limits): string {
  // `nQueueLimitWorkerMax` is folded into `nQueueLimitWorker` and no longer has a value of its own.
  const name = key === 'nQueueLimitWorkerMax' ? 'nQueueLimitWorker' : key;
  const effective = Object.hasOwn(limits, name) ? limits[name as keyof Limits] : undefined;
  if (value === null || effective === value) return '';
  return effective === undefined
    ? 'no effect: for pull queues only (mapType NoJob)'
    : `counts as ${effective}`;
}

/** Whether a queue's credential managers run. */
function managersNote({ queueStatus }: JsonObject, state: QueueState, { managers }: QueueReader): string {
  if (managers.length === 0) return '';
  const names = [...new Set(managers.map(({ name }) => name))].join(', ');
  const status = String(queueStatus).toLowerCase();
  if (!runsManagers(status)) return `${names}: not run while queueStatus is ${status}, as in Harvester`;
  return state === 'ready'
    ? `the daemon runs ${names} from its start on, whatever the demand`
    : `${names}: not run while the queue is ${state}`;
}

function statusNote(value: unknown): string {
  return typeof value === 'string' && value !== value.toLowerCase() ? `counts as ${value.toLowerCase()}` : '';
}

/** The same as `check-config` says of the option. */
function noteOn(effect: OptionEffect | undefined, value: unknown, ofPlugin: boolean): string {
  switch (effect?.kind) {
    case 'idle':
      return `no effect: ${effect.why.replaceAll('`', '')}`;
    case 'unread':
      return ofPlugin ? 'not read by this plugin' : `${effect.who} it`;
    case 'read':
      return value === null ? 'counts as not written' : '';
    case 'unknown':
    case undefined:
      return '';
  }
}

/** Values that no file sets: defaults of the queue's own keys and of the plugins that thresher has. */
function defaults(
  queue: MergedQueue,
  reader: QueueReader,
  source: ChosenSource | undefined,
): ExplainedValue[] {
  const of = (properties: object, prefix: string, written: JsonObject) =>
    Object.entries(properties as Record<string, { default?: unknown }>)
      .filter(([key, schema]) => schema.default !== undefined && (written[key] ?? undefined) === undefined)
      .map(([key, schema]) => ({
        option: `${prefix}${key}`,
        value: schema.default,
        from: 'default',
        line: null,
        note: '',
      }));
  const ofSection = (section: string, schema: TSchema) => {
    const written = queue.values[section];
    const { properties = {} } = schema as { properties?: object };
    return of(properties, `${section}.`, isObject(written) ? written : {});
  };
  return [
    ...of(QueueOptions.properties, '', queue.values),
    ...Object.entries(reader.plugins).flatMap(([section, { definition }]) =>
      ofSection(section, definition.config),
    ),
    ...(source === undefined ? [] : ofSection('demand', source.definition.queueConfig)),
  ];
}
