import type { TSchema } from 'typebox';
import { whyWithoutEffect } from '../../plugins/contracts/without-effect.ts';
import { toPointer } from '../../util/located.ts';
import { nearest } from '../../util/nearest.ts';
import { whyIdle, whyNoMiddleware } from '../harvester/idle-options.ts';
import { knownOptions, readAnyway } from '../harvester/plugin-options.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { queueKeyEffect, queueKeys } from './queue-keys.ts';
import { mergedSections, WorkerMakerOptions, WorkerOptions } from './queue-schema.ts';
import { unreadInside } from './unread-inside.ts';

/**
 * The effect of one option of a queue. `read`: thresher honours it. `idle`: Harvester reads it, or thresher accepts it,
 * and it does nothing here. `unread`: neither reads it. `unknown`: only a missing plugin could tell.
 */
export type OptionEffect =
  | { readonly kind: 'read' }
  /** `whatever`: the plugin does nothing here and its options are unknown, so a misspelt one gets the same verdict. */
  | { readonly kind: 'idle'; readonly why: string; readonly missed: boolean; readonly whatever?: true }
  /** `known`: the options among which a misspelt one is looked for. */
  | { readonly kind: 'unread'; readonly who: string; readonly known: readonly string[] }
  | { readonly kind: 'unknown' };

/** The plugins and parts that read a section. */
export interface SectionReader {
  readonly plugin: string;
  /** `here`: a plugin of thresher. `inert`: one that is accepted and does nothing. `absent`: one that thresher lacks. */
  readonly state: 'here' | 'inert' | 'absent';
  /** The options of its schema. */
  readonly own: Readonly<Record<string, TSchema>>;
}

const read = { kind: 'read' } as const;
const unknown = { kind: 'unknown' } as const;

/**
 * The effect of every option of a queue, by pointers inside it: of its own keys, of the options of its sections, and of keys
 * inside options that no schema has. The one source of what `check-config` names and `explain` marks.
 */
export function optionEffects(
  values: JsonObject,
  readers: ReadonlyMap<string, SectionReader>,
): ReadonlyMap<string, OptionEffect> {
  const effects = new Map<string, OptionEffect>();
  for (const [key, value] of Object.entries(values)) {
    if (key === 'common') continue;
    effects.set(toPointer([key]), keyEffect(key, value, values));
    if (!mergedSections.includes(key) || !isObject(value)) continue;
    const reader = readers.get(key);
    for (const [option, inner] of Object.entries(value)) {
      effects.set(toPointer([key, option]), sectionEffect(key, option, inner, values, reader));
      const schema = reader?.own[option] ?? readByDaemon(key)[option];
      if (schema === undefined || whyWithoutEffect(schema) !== undefined) continue;
      for (const { pointer, known } of unreadInside(schema, inner)) {
        const who = `${reader?.plugin ?? key} does not read`;
        effects.set(toPointer([key, option]) + pointer, { kind: 'unread', who, known });
      }
    }
  }
  const { common } = values;
  if (isObject(common)) {
    effects.set('/common', read);
    for (const option of Object.keys(common))
      effects.set(toPointer(['common', option]), commonEffect(option, values, effects));
  }
  return effects;
}

function keyEffect(key: string, value: unknown, queue: JsonObject): OptionEffect {
  const effect = queueKeyEffect(key);
  if (effect?.read === true) return read;
  if (effect !== undefined) return asksForNothing(value) ? read : { kind: 'idle', ...effect };
  const user = mergedSections.find((section) => {
    const options = queue[section];
    return isObject(options) && options.middleware === key;
  });
  if (user !== undefined)
    return { kind: 'idle', why: `it is the middleware of ${user}, and thresher has none`, missed: false };
  return { kind: 'unread', who: 'neither thresher nor Harvester reads', known: queueKeys };
}

function sectionEffect(
  section: string,
  option: string,
  value: unknown,
  queue: JsonObject,
  reader: SectionReader | undefined,
): OptionEffect {
  if (option === 'name' || option === 'module') return read;
  if (reader === undefined) return unknown;
  const schema = reader.own[option] ?? readByDaemon(section)[option];
  const harvesters = knownOptions(reader.plugin);
  const anyway = readAnyway(section).includes(option);
  if (schema === undefined && !anyway && harvesters?.includes(option) !== true) {
    if (harvesters === undefined && reader.state === 'absent') return unknown;
    if (harvesters === undefined && reader.state === 'inert')
      return { kind: 'idle', why: `${reader.plugin} has nothing to do here`, missed: false, whatever: true };
    const known = [...Object.keys(reader.own), ...Object.keys(readByDaemon(section)), ...readAnyway(section)];
    return {
      kind: 'unread',
      who: `${reader.plugin} does not read`,
      known: [...known, ...(harvesters ?? [])],
    };
  }
  if (asksForNothing(value)) return read;
  if (schema !== undefined) {
    const why = whyWithoutEffect(schema);
    return why === undefined ? read : { kind: 'idle', why, missed: false };
  }
  if (option === 'middleware') return { kind: 'idle', ...whyNoMiddleware(value, queue) };
  // Its plugin is missing, which is said.
  if (!anyway && reader.state === 'absent') return unknown;
  return { kind: 'idle', ...whyIdle(option) };
}

/** An option of `common` is meant for any of the plugins, not for each; a credential manager may refer to it. */
function commonEffect(
  option: string,
  queue: JsonObject,
  effects: ReadonlyMap<string, OptionEffect>,
): OptionEffect {
  const refersTo = (key: string) => JSON.stringify([queue[key] ?? null]).includes(`\${common.${option}}`);
  if (refersTo('credmanagers')) return read;
  const copies = mergedSections.flatMap((section) => effects.get(toPointer([section, option])) ?? []);
  const known = copies.flatMap((copy) => (copy.kind === 'unread' ? copy.known : []));
  // A plugin that takes any option must not hide a slip in an option of another plugin.
  const isSlip = nearest(option, known) !== undefined;
  const counting = copies.filter((copy) => !(copy.kind === 'idle' && copy.whatever && isSlip));
  const found = (['read', 'idle'] as const).flatMap((kind) => counting.filter((copy) => copy.kind === kind));
  if (found[0] !== undefined) return found[0];
  if (refersTo('file_syncer'))
    return {
      kind: 'idle',
      why: 'file_syncer alone refers to it, and thresher fetches no files',
      missed: false,
    };
  // One that thresher lacks may read it, and is named with its section.
  const isSure = copies.every((copy) => copy.kind !== 'unknown');
  const who = `no plugin of this queue${isSure ? '' : ' that thresher has'} reads`;
  return { kind: 'unread', who, known: [...new Set(known)] };
}

/** A flag that is off, and an option that is taken back: doing nothing is all they ask for. */
function asksForNothing(value: unknown): boolean {
  return value === false || value === null;
}

/** Options that the daemon reads itself, whatever the plugin. */
export function readByDaemon(section: string): Readonly<Record<string, TSchema>> {
  if (section === 'submitter') return WorkerOptions.properties;
  return section === 'workerMaker' ? WorkerMakerOptions.properties : {};
}
