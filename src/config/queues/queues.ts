import { dirname, resolve } from 'node:path';
import pMap from 'p-map';
import { nextTurn } from '../../util/clock.ts';
import { fromPointer, type Located, type Problem } from '../../util/located.ts';
import { similar } from '../../util/nearest.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { isObject } from '../../util/json.ts';
import type { TakenData } from '../cric/cache-reader.ts';
import { mayNeedCric, type QueueOrigins, readOrigins } from './origins.ts';
import { moduleFrom } from './named-source.ts';
import type { PluginCatalogue, QueueConfig, QueueVerdict } from './queue-config.ts';
import { stateOf } from './queue-config.ts';
import { type QueueFileOptions, QueueReader } from './queue-reader.ts';
import { sections } from './queue-schema.ts';

export type {
  CredentialManagerChoice,
  PluginCatalogue,
  PluginChoice,
  QueueConfig,
  QueueState,
  QueueVerdict,
} from './queue-config.ts';
export { coresOf, parseSnapshot, siteFamilyOf, sizesOf } from './queue-config.ts';
export type { QueueFileOptions } from './queue-reader.ts';
export type { QueueOrigins } from './origins.ts';

export interface QueueFileResult {
  /** Every listed queue, each in one state. */
  readonly verdicts: readonly QueueVerdict[];
  /** Configurations of the ready ones. */
  readonly queues: readonly QueueConfig[];
  /** Names of queues with a mistake: they submit nothing, and the others go on. */
  readonly refused: readonly string[];
  /** Names of queues with a missing part: they submit nothing either. */
  readonly incomplete: readonly string[];
  readonly templates: readonly string[];
  /** Queues that `qconf.queueList` leaves out. */
  readonly unlisted: readonly string[];
  /** False if the file as a whole could not be read: then the wanted queues are unknown. */
  readonly readable: boolean;
  /** All of them, those of the file itself first. */
  readonly problems: readonly Problem[];
  /** The parts of the cacher's files that it took. */
  readonly taken?: TakenData;
  /** Names of the queues whose options are partly of CRIC. */
  readonly ofCric?: readonly string[];
}

/** The third-party modules that a queue file names, so that they can be imported before it is read in full. */
export async function modulesNamedIn(
  file: string,
  files: OperatorFiles,
  origins?: QueueOrigins,
): Promise<ReadonlySet<string>> {
  const modules = new Set<string>();
  for (const queue of (await readOrigins(file, { files, origins })).merged.queues) {
    for (const section of Object.keys(sections)) {
      const value = queue.values[section];
      if (isObject(value) && typeof value.module === 'string') modules.add(value.module);
    }
    const { demand } = queue.values;
    if (isObject(demand) && typeof demand.module === 'string')
      modules.add(moduleFrom(demand.module, dirname(resolve(file))));
  }
  return modules;
}

/** The modules of a configuration that workers were submitted with. */
export function modulesOf(config: QueueConfig): string[] {
  const source = config.source === undefined ? [] : [config.source.module];
  return [...Object.values(config.plugins).map(({ module }) => module), ...source];
}

/** Queues that wait for their templates and kubeconfigs side by side: one on a dead disk keeps the others not long. */
const judgedAtOnce = 8;

/** Reads a queue file whole. It judges every queue by itself, and names every mistake with its position. */
export async function readQueueFile(
  file: string,
  catalogue: PluginCatalogue,
  options: QueueFileOptions,
): Promise<QueueFileResult> {
  const { located, merged, taken, problems: ofCache, lacking } = await readOrigins(file, options);
  const known = new Map(merged.queues.map((queue) => [queue.name, queue]));
  const broken = merged.problems.filter(({ severity, queue }) => severity === 'error' && queue !== undefined);
  // Entries that are no objects at all never became queues; templates with a mistake are none either.
  const names = new Set([...known.keys(), ...broken.map(({ queue = '' }) => queue)]);
  for (const template of merged.templates) if (!known.has(template)) names.delete(template);
  const wanted = (name: string) => isListed(name, options.queueList);
  const found =
    located.value === undefined ? located.problems : [...located.problems, ...ofCache, ...merged.problems];
  const ofFile = found.map((problem) => withQueue(problem, names));
  const byQueue = Map.groupBy(ofFile, ({ queue }) => queue);
  const judge = async (name: string): Promise<QueueVerdict> => {
    // Thousands of queues, each a moment: all else has its turn between them.
    await nextTurn();
    const before = byQueue.get(name) ?? [];
    const queue = known.get(name);
    if (queue === undefined) return { name, state: stateOf(before), problems: before };
    const lacks = lacking !== undefined && mayNeedCric(queue, catalogue) ? [{ ...lacking, queue: name }] : [];
    return new QueueReader(queue, located, catalogue, options).read([...before, ...lacks]);
  };
  const verdicts = await pMap([...names].filter(wanted), judge, { concurrency: judgedAtOnce });
  const ofNoQueue = [
    ...(byQueue.get(undefined) ?? []),
    ...(isObject(located.value) ? unknownNames(options, names, merged.templates, located) : []),
  ];
  return {
    verdicts,
    queues: verdicts.flatMap(({ config }) => config ?? []),
    refused: verdicts.filter(({ state }) => state === 'refused').map(({ name }) => name),
    incomplete: verdicts.filter(({ state }) => state === 'incomplete').map(({ name }) => name),
    templates: merged.templates,
    unlisted: [...names].filter((name) => !wanted(name)),
    readable: isObject(located.value),
    problems: [...ofNoQueue, ...verdicts.flatMap(({ problems }) => problems)],
    ofCric: merged.ofCric,
    ...(taken && { taken }),
  };
}

/**
 * Judges each template of a queue file as a queue that uses it and sets no option itself. The verdicts are of
 * templates, not of queues.
 */
export async function judgeTemplates(
  file: string,
  catalogue: PluginCatalogue,
  options: QueueFileOptions,
): Promise<QueueVerdict[]> {
  const { located, merged } = await readOrigins(file, options);
  const verdicts: QueueVerdict[] = [];
  for (const template of merged.templatesAsQueues) {
    const { name, state, problems } = await new QueueReader(template, located, catalogue, options).read();
    verdicts.push({ name, state, problems });
  }
  return verdicts;
}

/** A problem of the file belongs to the queue whose entry has it; a problem in a template belongs to no single queue. */
function withQueue(problem: Problem, names: ReadonlySet<string>): Problem {
  const { queue: before, ...rest } = problem;
  const queue = before ?? fromPointer(problem.pointer)[0];
  return queue !== undefined && names.has(queue) ? { ...rest, queue } : rest;
}

/** Names in `qconf.queueList` that no queue has: a misspelt name would otherwise stay unnoticed. */
function unknownNames(
  { queueList = [], placeOfListed }: QueueFileOptions,
  names: ReadonlySet<string>,
  templates: readonly string[],
  { file }: Located,
): Problem[] {
  return queueList.flatMap((name, index): Problem[] => {
    if (everyName.includes(name) || names.has(name)) return [];
    const near = similar(name, names);
    const hint = templates.includes(name)
      ? ': it is a template there'
      : near.length > 0
        ? `; did you mean ${near.join(', ')}?`
        : '';
    const message = `qconf.queueList names "${name}", which is no queue of ${file}${hint}`;
    const place = placeOfListed?.(index) ?? { file, pointer: '', line: 1 };
    return [{ ...place, severity: 'warning', code: 'unknown-queue', message }];
  });
}

/** Words of `qconf.queueList` with which it leaves no queue out. */
const everyName: readonly string[] = ['ALL', 'DYNAMIC'];

/** Whether `qconf.queueList` has this queue. */
export function isListed(name: string, list: readonly string[] | undefined): boolean {
  return list === undefined || list.some((one) => everyName.includes(one)) || list.includes(name);
}
