import { isObject } from '../../util/json.ts';
import { mostOfJob } from '../../worker/worker.ts';

/** The value of a field in the form that its option takes; or the form that it should have had. */
export type Formed =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly form: string };
/** Reads a value that is there: an absent one, null and an empty text say nothing in CRIC and reach no form. */
export type Form = (value: unknown) => Formed;

const right = (value: unknown): Formed => ({ ok: true, value });
const wrong = (form: string): Formed => ({ ok: false, form });

export const text: Form = (value) => (isLine(value) ? right(value) : wrong('a text of one line'));

/** A version is a number in some entries. Python's `str` makes a text of it. */
export const version: Form = (value) =>
  isLine(value) || Number.isFinite(value) ? right(String(value)) : wrong('a text of one line');

export const path: Form = (value) =>
  isLine(value) && value.startsWith('/') ? right(value) : wrong('an absolute path');

/** A second line would be a statement of its own in a submit description. */
export function isLine(value: unknown): value is string {
  return typeof value === 'string' && !/[\u0000-\u001f\u007f]/.test(value);
}

/** Harvester would take the text "false" for true. */
export const flag: Form = (value) => (typeof value === 'boolean' ? right(value) : wrong('true or false'));

export const integer: Form = (value) => (Number.isSafeInteger(value) ? right(value) : wrong('an integer'));

/**
 * A size. Fractions are rounded up, so that a worker never gets less than the entry says.
 * @param most what no machine has more of
 */
export function size(most: number = Number.MAX_SAFE_INTEGER): Form {
  const form = most === Number.MAX_SAFE_INTEGER ? 'a number of 0 or more' : `a number from 0 to ${most}`;
  return (value) =>
    isNumber(value) && value >= 0 && Math.ceil(value) <= most ? right(Math.ceil(value)) : wrong(form);
}

export const cores: Form = (value) =>
  isCores(value) || value === 0 ? right(value) : wrong(`an integer from 0 to ${mostOfJob.cpus}`);

/** Whether a machine may have so many. */
export function isCores(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= mostOfJob.cpus;
}

export function numberFrom(least: number, most = Infinity): Form {
  const form = most === Infinity ? `a number of ${least} or more` : `a number from ${least} to ${most}`;
  return (value) => (isNumber(value) && value >= least && value <= most ? right(value) : wrong(form));
}

export const positive: Form = (value) =>
  isNumber(value) && value > 0 ? right(value) : wrong('a number above 0');

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Whether a field says nothing. */
export function isUnsaid(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** The value of a message: short, and without the insides of an object. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  const written = JSON.stringify(value);
  return written.length > 80 ? `${written.slice(0, 77)}...` : written;
}
