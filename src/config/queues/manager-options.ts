import { nearest } from '../../util/nearest.ts';
import { toPointer } from '../../util/pointer.ts';
import type { ChoiceProblem } from './manager-entry.ts';

/** Items of the parallel lists and what Harvester itself reads of every manager: not each has a use for each. */
const harvesterKeys: readonly string[] = [
  'inCertFile',
  'certFile',
  'outCertFile',
  'voms',
  'sleepTime',
  'setup_name',
  // Of IamTokenCredManager: when Harvester looks again.
  'check_interval',
];

/** An option that a credential manager does not read. */
export function unreadOption(manager: string, key: string, own: readonly string[]): ChoiceProblem {
  const pointer = toPointer([key]);
  if (harvesterKeys.includes(key)) {
    const message = `${key} has no effect: ${manager} does not need it`;
    return { pointer, code: 'option-without-effect', severity: 'notice', message };
  }
  const meant = nearest(key, own);
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  const message = `${manager} does not read "${key}"${hint}`;
  return { pointer, code: 'unread-option', severity: 'warning', message };
}
