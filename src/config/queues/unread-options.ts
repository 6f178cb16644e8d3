import { nearest } from '../../util/nearest.ts';
import { fromPointer, type Problem } from '../../util/located.ts';
import { isObject } from '../../util/json.ts';
import { cricLabel } from './layers.ts';
import { type MergedQueue } from './merge.ts';
import type { OptionEffect } from './option-effects.ts';

/** A remark on one option. `pointer` is inside the queue. */
export interface Remark extends Pick<Problem, 'severity' | 'code' | 'message' | 'subject'> {
  readonly pointer: string;
}

/** Remarks on options that do nothing: one for each, at the line that has it. */
export function remarksOn(
  effects: ReadonlyMap<string, OptionEffect>,
  { values, sourceOf, placeOf }: Pick<MergedQueue, 'values' | 'sourceOf' | 'placeOf'>,
): Remark[] {
  return [...effects].flatMap(([pointer, effect]): Remark[] => {
    const path = fromPointer(pointer);
    // An option from `common` is meant for any of the plugins, not for each.
    const copied = path[0] !== 'common' && fromPointer(sourceOf(pointer))[1] === 'common';
    if (copied && path.length === 2) return [];
    // CRIC speaks to every factory: that this one has no use for a field is no remark on the queue.
    if (placeOf(pointer).label === cricLabel) return [];
    const subject = path.join('.');
    if (effect.kind === 'idle') {
      const { why, missed } = effect;
      const message = `${subject} has no effect: ${why.replaceAll('`', '')}`;
      const severity = missed ? 'warning' : 'notice';
      return [{ pointer, code: 'option-without-effect', severity, message, subject }];
    }
    return effect.kind === 'unread'
      ? [unread(pointer, subject, effect, valueAt(values, path.slice(0, -1)))]
      : [];
  });
}

/** An option whose right spelling is set beside it was put aside by that name; otherwise a slip is dangerous. */
function unread(
  pointer: string,
  subject: string,
  { who, known }: Extract<OptionEffect, { kind: 'unread' }>,
  beside: unknown,
): Remark {
  const key = fromPointer(pointer).at(-1) ?? '';
  const meant = nearest(key, known);
  const slip = meant !== undefined && !(isObject(beside) && Object.hasOwn(beside, meant));
  const message = `${who} "${key}"`;
  return {
    pointer,
    code: 'unread-option',
    severity: slip ? 'warning' : 'notice',
    message: slip ? `${message}; did you mean "${meant}"?` : message,
    subject,
  };
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[key] : undefined,
    value,
  );
}
