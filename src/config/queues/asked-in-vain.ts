import { howFromCric } from '../../plugins/contracts/cric.ts';
import { toPointer } from '../../util/located.ts';
import { queueFacts } from '../cric/queue-facts.ts';
import type { MergedQueue } from './merge.ts';
import type { Remark } from './unread-options.ts';

/** A queue that asks for CRIC, and gets nothing from it. @param isRead whether the settings name a file of CRIC's queues */
export function askedInVain(
  { name, values, knownToCric }: Pick<MergedQueue, 'name' | 'values' | 'knownToCric'>,
  isRead: boolean,
): Remark[] {
  const { asksBy, gridCes } = queueFacts(values);
  if (asksBy === undefined || knownToCric === true) return [];
  const pointer = toPointer(['submitter', asksBy]);
  if (isRead) {
    // A template is no queue of CRIC, and data that were never fetched are said to be missing.
    if (knownToCric === undefined) return [];
    const message = `CRIC has no queue ${name}, so ${asksBy} brings no options`;
    return [{ pointer, code: 'cric-not-there', severity: 'warning', message }];
  }
  // The submitter itself says that its CEs are missing.
  if (gridCes) return [];
  const subject = `submitter.${asksBy}`;
  const message = `${subject} has no effect, since CRIC is not read: ${howFromCric}`;
  return [{ pointer, code: 'option-without-effect', severity: 'notice', message, subject }];
}
