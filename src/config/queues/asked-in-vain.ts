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
  if (asksBy === undefined || knownToCric !== false) return [];
  const about = { pointer: toPointer(['submitter', asksBy]), code: 'cric-not-there' } as const;
  if (isRead) {
    const message = `CRIC has no queue ${name}, so ${asksBy} brings no options`;
    return [{ ...about, severity: 'warning', message }];
  }
  // The submitter itself says that its CEs are missing.
  if (gridCes) return [];
  const message = `${asksBy} brings no options, since CRIC is not read: ${howFromCric}`;
  return [{ ...about, severity: 'notice', message, subject: `submitter.${asksBy}` }];
}
