import { isObject, type JsonObject } from '../../util/json.ts';
import { toPointer } from '../../util/located.ts';
import { mergedSections } from './queue-schema.ts';

/** A file that options of a queue come from. */
export interface LayerFile {
  readonly file: string;
  lineOf(pointer: string): number;
  /** Where it was fetched; absent for the local queue file. */
  readonly url?: string;
  /** Its name beside that of an entry, for `explain`; absent for the local queue file. */
  readonly label?: string;
}

/** The options that one entry of one file says. */
export interface Layer {
  readonly name: string;
  readonly values: JsonObject;
  readonly from: LayerFile;
}

/** Options that CRIC says of a queue, by their rank. */
export interface CricOptions {
  readonly from: LayerFile;
  /** The entry's name in that file. */
  readonly entry: string;
  /** Below all that queue files say. */
  readonly below: JsonObject;
  /** Above templates and the remote queue file, below the local queue's own. */
  readonly limits: JsonObject;
  /** Above everything. */
  readonly above: JsonObject;
}

/** The place of a value in one of the files. */
export interface Place {
  readonly file: string;
  readonly pointer: string;
  readonly line: number;
  /** The entry, with the file's label where it is not the local one. */
  readonly entry: string;
  readonly url?: string;
  readonly label?: string;
}

/** A queue after its template was merged in, and where each of its values came from. */
export interface MergedQueue {
  readonly name: string;
  /** The template, from which the queue takes the values that it does not set itself. */
  readonly template: string | undefined;
  readonly values: JsonObject;
  /** Whether CRIC has an entry for it; undefined for a template, and while there are no data of CRIC. */
  readonly knownToCric: boolean | undefined;
  /** From where a pointer inside `values` was taken: a pointer into its file. */
  sourceOf(pointer: string): string;
  /** The same with the file. */
  placeOf(pointer: string): Place;
}

/** A pointer into a file. A value of CRIC has no place of its own inside the entry. */
interface Source {
  readonly entry: string;
  readonly pointer: string;
  readonly from: LayerFile;
  readonly whole?: true;
}

export interface QueueLayers {
  readonly name: string;
  readonly template?: string | undefined;
  /** From the lowest to the highest: the template, the remote entry, the local one. The last is the queue's own. */
  readonly layers: readonly Layer[];
  /** Gives the values of CRIC for a queue of which the files say this. */
  readonly cric?: (values: JsonObject) => CricOptions | undefined;
}

/** Puts the layers of a queue one above the other, and copies `common` into every section that does not set the key itself. */
export function mergeLayers({ name, template, layers, cric }: QueueLayers): MergedQueue {
  const sources = new Map<string, Source>();
  // Without a prototype: a key "__proto__" is a key like any other.
  const values = Object.create(null) as Record<string, unknown>;
  for (const layer of layers) lay(layer, values, sources);
  copyCommon(values, sources);
  const own = layers.at(-1);
  const ownKeys = own?.name === name && own.from.url === undefined ? Object.keys(own.values) : [];
  const said = cric?.(values);
  if (said !== undefined) layCric(said, ownKeys, values, sources);
  const base: Source | undefined = own && {
    entry: own.name,
    pointer: toPointer([name]),
    from: own.from,
    ...(own.from.label === cricLabel && { whole: true as const }),
  };
  const find = (pointer: string): Source | undefined => {
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const found = sources.get(at);
      if (found !== undefined) return deeper(found, pointer.slice(at.length));
    }
    return base && deeper(base, pointer);
  };
  const sourceOf = (pointer: string) => find(pointer)?.pointer ?? toPointer([name]) + pointer;
  return {
    name,
    template,
    values,
    knownToCric: cric && said !== undefined,
    sourceOf,
    placeOf(pointer) {
      const found = find(pointer);
      const at = sourceOf(pointer);
      const { from, entry } = found ?? { from: undefined, entry: name };
      const { url, label } = from ?? {};
      return {
        file: from?.file ?? '',
        pointer: at,
        line: from?.lineOf(at) ?? 0,
        entry,
        ...(url !== undefined && { url }),
        ...(label !== undefined && { label }),
      };
    },
  };
}

/** The label of CRIC's file. */
export const cricLabel = 'CRIC';

function deeper(source: Source, rest: string): Source {
  return source.whole ? source : { ...source, pointer: source.pointer + rest };
}

function lay(layer: Layer, values: Record<string, unknown>, sources: Map<string, Source>): void {
  const { name: entry, from } = layer;
  const source = (...path: string[]): Source => ({ entry, from, pointer: toPointer([entry, ...path]) });
  for (const [key, value] of Object.entries(layer.values)) {
    if (key === 'isTemplateQueue' || key === 'templateQueueName') continue;
    const before = values[key];
    if (mergedSections.includes(key) && isObject(value)) {
      values[key] = { ...(isObject(before) ? before : {}), ...value };
      if (!isObject(before)) sources.set(toPointer([key]), source(key));
      for (const option of Object.keys(value)) sources.set(toPointer([key, option]), source(key, option));
    } else {
      values[key] = value;
      sources.set(toPointer([key]), source(key));
    }
  }
}

function copyCommon(values: Record<string, unknown>, sources: Map<string, Source>): void {
  const { common } = values;
  if (!isObject(common)) return;
  for (const section of mergedSections) {
    const into = values[section];
    if (section === 'common' || !isObject(into)) continue;
    values[section] = { ...common, ...into };
    for (const option of Object.keys(common)) {
      const from = sources.get(toPointer(['common', option]));
      if (!(option in into) && from !== undefined) sources.set(toPointer([section, option]), from);
    }
  }
}

/** CRIC adds options to the sections that a queue has, and adds no section: that would choose a plugin. */
function layCric(
  { from, entry, below, limits, above }: CricOptions,
  ownKeys: readonly string[],
  values: Record<string, unknown>,
  sources: Map<string, Source>,
): void {
  const source: Source = { entry, from, pointer: toPointer([entry]), whole: true };
  const set = (key: string, value: unknown) => {
    values[key] = value;
    sources.set(toPointer([key]), source);
  };
  for (const [key, value] of Object.entries(below)) {
    const there = values[key];
    if (mergedSections.includes(key)) {
      if (!isObject(value) || !isObject(there)) continue;
      values[key] = { ...value, ...there };
      for (const option of Object.keys(value))
        if (!(option in there)) sources.set(toPointer([key, option]), source);
    } else if (!(key in values)) set(key, value);
  }
  for (const [key, value] of Object.entries(limits)) if (!ownKeys.includes(key)) set(key, value);
  for (const [key, value] of Object.entries(above)) {
    const there = values[key];
    if (!isObject(value)) set(key, value);
    else if (isObject(there)) {
      values[key] = { ...there, ...value };
      for (const option of Object.keys(value)) sources.set(toPointer([key, option]), source);
    }
  }
}
