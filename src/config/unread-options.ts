import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { hasCode } from '../util/files.ts';
import { nearest } from '../util/nearest.ts';
import type { Problem } from '../util/located.ts';
import { isObject, type JsonObject } from './merge.ts';
import { type KnownOptions, knownOptions } from './plugin-options.ts';
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

/** What a plugin that is not there yet will need on this machine: files and directories that its options name. */
export function missingFiles(plugin: string, options: JsonObject, configDir: string): Remark[] {
  const { mustExist }: Pick<KnownOptions, 'mustExist'> = knownOptions(plugin) ?? { mustExist: {} };
  return Object.entries(mustExist).flatMap(([key, thing]): Remark[] => {
    const value = options[key];
    // An empty value switches the option off; a placeholder is only known to the daemon.
    if (value === undefined || value === null || value === '' || value === false) return [];
    if (typeof value !== 'string') {
      const message = `${key} is ${JSON.stringify(value)}; it must be the path of a ${thing}`;
      return [{ pointer: key, severity: 'error', code: 'wrong-type', message }];
    }
    if (value.includes('$')) return [];
    const path = resolve(configDir, value);
    const found = look(path);
    if (found === undefined || found === thing) return [];
    const message =
      found === 'nothing'
        ? `the ${thing} ${path} of ${key} does not exist`
        : `${path} of ${key} is a ${found}; it must be a ${thing}`;
    const code = found === 'nothing' ? 'file-unreadable' : 'wrong-type';
    return [{ pointer: key, severity: 'error', code, message, subject: `${key} ${path}` }];
  });
}

/** Undefined where this user may not look: the daemon's user may be allowed to. */
function look(path: string): 'file' | 'directory' | 'nothing' | undefined {
  try {
    return statSync(path).isDirectory() ? 'directory' : 'file';
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR') ? 'nothing' : undefined;
  }
}
