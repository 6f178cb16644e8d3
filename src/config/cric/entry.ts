import { isCores } from './forms.ts';
import { isObject, type JsonObject } from '../../util/json.ts';

/** The associated parameters of an entry. */
export function paramsOf({ params }: JsonObject): JsonObject {
  return isObject(params) ? params : {};
}

/** The queue takes all resource types. */
export function isUnified({ capability }: JsonObject): boolean {
  return capability === 'ucore';
}

/** The words between the commas of `catchall`. */
export function inCatchall({ catchall }: JsonObject, word: RegExp): boolean {
  return typeof catchall === 'string' && catchall.split(',').some((one) => word.test(one.trim()));
}

/** Cores of a whole slot; undefined where the entry does not say. */
export function slotCores({ corecount }: JsonObject): number | undefined {
  return isCores(corecount) ? corecount : undefined;
}

/**
 * The number by which fields that are those of one core are multiplied. Source: Harvester's `use_per_core_attr`, which takes a word that
 * begins so, and none behind a blank.
 */
export function coreFactor(entry: JsonObject): number {
  const { catchall } = entry;
  const words = typeof catchall === 'string' ? catchall.split(',') : [];
  return words.some((word) => word.startsWith('per_core_attr')) ? (slotCores(entry) ?? 1) : 1;
}
