import { nearest } from '../../util/nearest.ts';
import type { Problem } from '../../util/located.ts';
import { isObject, type JsonObject } from './merge.ts';
import { queueKeyEffect, queueKeys } from './queue-keys.ts';

/** A remark on one option. `pointer` is inside the object that was looked at. */
export interface Remark extends Pick<Problem, 'severity' | 'code' | 'message' | 'subject'> {
  readonly pointer: string;
}

/** Keys of a queue that nobody reads. */
export function unreadKeys(values: JsonObject): Remark[] {
  return Object.keys(values)
    .filter((key) => queueKeyEffect(key) === undefined)
    .map((key) => unread(key, key, values, queueKeys, `neither thresher nor Harvester reads "${key}"`));
}

/**
 * Options of a section that its plugin does not read. `known` is what it reads here and in Harvester; undefined where
 * that is not known. What came from `common` is meant for any of the plugins, not for each.
 */
export function unreadOptions(
  section: string,
  options: JsonObject,
  common: JsonObject,
  known: ReadonlySet<string> | undefined,
  plugin: string,
): Remark[] {
  if (known === undefined) return [];
  return Object.keys(options)
    .filter((key) => !known.has(key) && !Object.hasOwn(common, key))
    .map((key) => unread(key, `${section}.${key}`, options, [...known], `${plugin} does not read "${key}"`));
}

/** Options of `common` that none of the queue's plugins reads, nor anything that refers to them as `${common.X}`. */
export function unreadCommon(
  values: JsonObject,
  known: readonly (ReadonlySet<string> | undefined)[],
): Remark[] {
  const { common } = values;
  if (!isObject(common) || known.includes(undefined)) return [];
  const all = new Set(known.flatMap((names) => [...(names ?? [])]));
  const referring = JSON.stringify([values.credmanagers, values.file_syncer]);
  return Object.keys(common)
    .filter((key) => !all.has(key) && !referring.includes(`\${common.${key}}`))
    .map((key) => unread(key, `common.${key}`, common, [...all], `no plugin of this queue reads "${key}"`));
}

/** An option whose right spelling is set beside it was put aside by that name; otherwise a slip is dangerous. */
function unread(
  key: string,
  subject: string,
  beside: JsonObject,
  known: readonly string[],
  message: string,
): Remark {
  const meant = nearest(key, known);
  const slip = meant !== undefined && !Object.hasOwn(beside, meant);
  return {
    pointer: key,
    code: 'unread-option',
    severity: slip ? 'warning' : 'notice',
    message: slip ? `${message}; did you mean "${meant}"?` : message,
    subject,
  };
}
