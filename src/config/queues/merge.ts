import { brief } from '../../util/beginning.ts';
import { dynamicQueues, type DynamicQueue } from '../cric/dynamic-queues.ts';
import type { CachedFile, QueueData } from '../cric/queue-data.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { fromPointer, type Located, type Problem, toPointer } from '../../util/located.ts';
import { cricFile, cricOptionsOf, withUrl } from './cric-options.ts';
import { findTemplates, looksLikeQueue } from './find-templates.ts';
import { type Layer, type LayerFile, type MergedQueue, mergeLayers } from './layers.ts';

export type { MergedQueue } from './layers.ts';

export interface MergeResult {
  readonly queues: readonly MergedQueue[];
  /** Names of the entries that are templates, in the order of the file. */
  readonly templates: readonly string[];
  /** Each template as a queue that used it and said nothing itself. */
  readonly templatesAsQueues: readonly MergedQueue[];
  readonly problems: readonly Problem[];
  /** Names of the queues whose options are partly of CRIC. */
  readonly ofCric: readonly string[];
}

/** Files beside the local queue file. */
export interface MoreFiles {
  /** Harvester's `queues_config_file`. */
  readonly remote?: CachedFile | undefined;
  readonly queueData?: QueueData | undefined;
  readonly harvesterId: string;
  /** Whether the queues that CRIC gives to this instance are queues here. */
  readonly dynamic: boolean;
  readonly defaultTemplate?: string | undefined;
  /** Whether queues that CRIC gives to another instance are closed. */
  readonly closesOthers: boolean;
}

/** Characters of a circle that are told: it may be of thousands of entries, each of which is told of it. */
const longestWay = 1000;

/** The label of the remote queue file. */
const remoteLabel = 'queues_config_file';

/** The entries of one queue file, by what they are. */
interface QueueFile {
  readonly from: LayerFile;
  readonly entries: ReadonlyMap<string, JsonObject>;
  readonly templates: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

/**
 * Merges queues with their templates, from the local queue file, the remote one and CRIC. A template is an entry with
 * `isTemplateQueue: true`, with a name that ends in `_TEMPLATE`, or one that a queue of the same file names (with a notice or a
 * warning; Harvester drops that queue instead). A template of the local file stands in for a remote one. A queue is its template,
 * then the remote entry, then CRIC's limits of a `DYNAMIC` queue, then the local entry: plugin sections merge key by key,
 * everything else is overwritten. The rest that CRIC says is below all of it. Comes back between two queues, of which there may be thousands.
 * Source: Harvester's queue_config_mapper.
 */
export function* mergeQueues(
  located: Located,
  more?: MoreFiles,
): Generator<undefined, MergeResult, undefined> {
  const nothing = { queues: [], templates: [], templatesAsQueues: [], ofCric: [] };
  const local = readEntries(located, located);
  if (!isObject(located.value)) return { ...nothing, problems: local.problems };
  const { remote: cached, queueData, dynamic = false, harvesterId = '' } = more ?? {};
  const remote =
    cached === undefined
      ? undefined
      : readEntries(cached, {
          file: cached.file,
          url: cached.url,
          label: remoteLabel,
          lineOf: (pointer) => cached.lineOf(pointer),
        });
  const files = [local, ...(remote === undefined ? [] : [remote])];
  const problems = files.flatMap((file) => file.problems);
  const problem = (from: LayerFile, pointer: string, code: Problem['code'], message: string) => {
    problems.push(problemAt(from, pointer, 'error', code, message));
  };
  // Local templates stand in for remote ones of the same name.
  const templates = new Map<string, Layer>();
  for (const { from, entries, templates: own } of files)
    for (const name of own)
      if (!templates.has(name)) templates.set(name, { name, values: entries.get(name) ?? {}, from });
  const found = dynamic && queueData ? dynamicQueues(queueData, harvesterId, more?.defaultTemplate) : [];
  const dynamics = new Map(found.map((one) => [one.name, one]));

  // An entry that its own file has and that is no template there is part of a circle, which is said.
  const isInCircle = (name: string, from: LayerFile) =>
    !templates.has(name) && files.some((file) => file.from === from && file.entries.has(name));
  const queues: MergedQueue[] = [];
  const ofCric: string[] = [];
  const use = queueData && {
    data: queueData,
    dynamic,
    ...(more?.closesOthers === true && { closesOthersOf: harvesterId }),
  };
  const names = files.flatMap(({ entries }) => [...entries.keys()]);
  for (const name of new Set([...names, ...dynamics.keys()])) {
    yield;
    // The remote one first: the local one is above it.
    const own = files.toReversed().flatMap(({ entries, templates: notQueues, from }): Layer[] => {
      const values = notQueues.has(name) ? undefined : entries.get(name);
      return values === undefined ? [] : [{ name, values, from }];
    });
    if (own.length === 0 && !dynamics.has(name)) continue;
    const asked = own.flatMap(({ values, from }) => {
      const { templateQueueName: wanted } = values;
      if (wanted === undefined || wanted === null) return [];
      const pointer = toPointer([name, 'templateQueueName']);
      if (typeof wanted !== 'string')
        problem(from, pointer, 'wrong-type', 'templateQueueName must be the name of another entry');
      else if (isInCircle(wanted, from)) return [];
      else if (!templates.has(wanted)) {
        const isThere = files.some(({ entries }) => entries.has(wanted));
        const where = remote === undefined ? 'in this file' : 'in the queue files';
        const what = isThere ? 'no template there: give it "isTemplateQueue": true' : `not ${where}`;
        problem(
          from,
          pointer,
          'unknown-template-queue',
          `templateQueueName is "${brief(wanted)}", which is ${what}`,
        );
      } else return [wanted];
      return [];
    });
    const ofDynamic = dynamics.get(name);
    const layers = [...own];
    if (ofDynamic !== undefined && queueData !== undefined) {
      const { template: wanted } = ofDynamic;
      const isGood = wanted !== undefined && templates.has(wanted);
      // An entry of a queue file needs no template; without both there is no queue.
      if (own.length === 0 && !isGood) {
        problem(cricFile(queueData), toPointer([name]), 'cric-template', withoutTemplate(ofDynamic));
        continue;
      }
      const isLocal = own.at(-1)?.from === local.from;
      const namesOne = own.some(
        ({ values, from }) => from === local.from && isText(values.templateQueueName),
      );
      if (isGood && !namesOne) asked.push(wanted);
      // The local entry stays the last: it is the queue's own.
      const entry = { name, values: {}, from: cricFile(queueData) };
      layers.splice(isLocal ? layers.length - 1 : layers.length, 0, entry);
    }
    const template = templates.get(asked.at(-1) ?? '');
    const cric = (values: JsonObject) => {
      const said = use && cricOptionsOf(name, values, use);
      if (said === undefined) return undefined;
      for (const one of said.problems) problems.push(one);
      ofCric.push(name);
      return said.options;
    };
    const all = template === undefined ? layers : [template, ...layers];
    queues.push(mergeLayers({ name, template: template?.name, layers: all, ...(use && { cric }) }));
  }
  const templatesAsQueues = [...templates.values()].map((template) =>
    mergeLayers({ name: template.name, layers: [template] }),
  );
  return { queues, templates: [...templates.keys()], templatesAsQueues, problems, ofCric };
}

function withoutTemplate({ name, template, why }: DynamicQueue): string {
  if (template === undefined)
    return `CRIC gives ${name} to this instance without harvester_template, type or workflow, and qconf.defaultTemplateQueueName is not set`;
  return `CRIC gives ${name} to this instance, and there is no template "${brief(template)}" (${brief(why)}): write one, with "isTemplateQueue": true`;
}

function isText(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function problemAt(
  from: LayerFile,
  pointer: string,
  severity: Problem['severity'],
  code: Problem['code'],
  said: string,
): Problem {
  const [queue] = fromPointer(pointer);
  const message = withUrl(said, from.url);
  const place = { file: from.file, pointer, line: from.lineOf(pointer) };
  return { ...place, severity, code, message, ...(queue !== undefined && { queue }) };
}

/** The entries of a queue file, and the mistakes in them that concern templates. */
function readEntries({ value }: Located, from: LayerFile): QueueFile {
  const problems: Problem[] = [];
  const entries = new Map<string, JsonObject>();
  const problem = (
    pointer: string,
    severity: Problem['severity'],
    code: Problem['code'],
    message: string,
  ) => {
    problems.push(problemAt(from, pointer, severity, code, message));
  };
  if (!isObject(value)) {
    problem('', 'error', 'wrong-type', 'the queue file must be an object { "QUEUE": { ... }, ... }');
    return { from, entries, templates: new Set(), problems };
  }
  for (const [name, entry] of Object.entries(value)) {
    if (isObject(entry)) entries.set(name, entry);
    else problem(toPointer([name]), 'error', 'wrong-type', `the queue ${name} must be an object { ... }`);
  }
  for (const [name, { isTemplateQueue }] of entries) {
    if (isTemplateQueue === undefined || isTemplateQueue === null || typeof isTemplateQueue === 'boolean')
      continue;
    // Nothing tells whether it is a queue or a template, so it must not submit.
    const message = `isTemplateQueue is ${brief(JSON.stringify(isTemplateQueue))}; it must be true or false`;
    problem(toPointer([name, 'isTemplateQueue']), 'error', 'wrong-type', message);
  }
  const { templates, users, circles } = findTemplates(entries);
  for (const [name, user] of users) {
    const message = `${name} is used as a template by ${user} and so counts as one: it submits nothing itself`;
    const severity = looksLikeQueue(name, entries.get(name) ?? {}) ? 'warning' : 'notice';
    problem(toPointer([name]), severity, 'implicit-template', message);
  }
  for (const circle of circles) {
    const way = brief([...circle, circle[0] ?? ''].join(' names '), longestWay);
    const message = `${way} as its template, which is a circle; what they share belongs into an entry with "isTemplateQueue": true`;
    for (const name of circle)
      problem(toPointer([name, 'templateQueueName']), 'error', 'template-circle', message);
  }
  for (const name of templates) {
    if ((entries.get(name)?.templateQueueName ?? undefined) === undefined) continue;
    const message = `the template ${name} names a template itself; that one is not followed`;
    problem(toPointer([name, 'templateQueueName']), 'warning', 'nested-template', message);
  }
  // In the order of the file.
  const inOrder = [...entries.keys()].filter((name) => templates.has(name));
  return { from, entries, templates: new Set(inOrder), problems };
}
