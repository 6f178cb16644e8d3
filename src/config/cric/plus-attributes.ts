import type { JsonObject } from '../../util/json.ts';
import { paramsOf } from './entry.ts';
import { isUnsaid, shown } from './forms.ts';
import type { Report } from './report.ts';

const prefix = 'jdl.plusattr.';
/** Names that HTCondor knows: Harvester also lets through names with "-" and with a digit in front. */
const name = /^[A-Za-z_][A-Za-z0-9_.]*$/;
/** Source: Harvester's htcondor_submitter, since July 2026 with `<` and `>`. */
const expression = /^[A-Za-z_0-9.\-,=&|()!?<>" ]+$/;

/** Attributes that CRIC may add to the jobs of a queue: an honest entry has a few, and all are looked at with the options of the queue. */
const most = 200;

/**
 * The attributes that CRIC adds to the jobs of a queue, as ClassAd expressions. Harvester cuts `;`, `$`, `~` and backquotes out of
 * a value; here such a value is left out, since the rest may mean something else.
 */
export function plusAttributes(entry: JsonObject, report: Report): Record<string, string> {
  const found: Record<string, string> = {};
  let count = 0;
  for (const [key, value] of Object.entries(paramsOf(entry))) {
    if (!key.startsWith(prefix) || isUnsaid(value)) continue;
    if (++count > most) {
      report.missing(
        ['params'],
        `the entry has more than ${most} ${prefix}ATTRIBUTE in CRIC: the first ${most} count, and the others are left out`,
      );
      break;
    }
    const attribute = key.slice(prefix.length);
    const at = ['params', key] as const;
    const written = textOf(value);
    if (!name.test(attribute))
      report.leftOut(
        at,
        `the attribute is called ${shown(attribute)}`,
        'a letter or _, and then letters, digits, _ and dots',
      );
    else if (written === undefined || !expression.test(written))
      report.leftOut(
        at,
        `the value of ${attribute} is ${shown(value)}`,
        'an expression of letters, digits, blanks and _ . - , = & | ( ) ! ? < > "',
      );
    else found[attribute] = written;
  }
  return found;
}

/** A ClassAd knows `true` in any case of letters, as Python's `str` writes it. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}
