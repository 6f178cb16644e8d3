import { isObject, type JsonObject } from '../../util/json.ts';
import { coreFactor, paramsOf } from './entry.ts';
import { rules } from './derived.ts';
import { type CricField, cricFields } from './fields.ts';
import { isUnsaid, shown } from './forms.ts';
import type { CricLayer } from './queue-data.ts';
import { queueFacts } from './queue-facts.ts';
import { Report } from './report.ts';

/** The queue that an entry of CRIC is for, and where the entry stands. */
export interface CricQueue {
  readonly name: string;
  /** Its options as the queue file and its template have them, merged: they name its backend. */
  readonly values: JsonObject;
  /** The file of the entry, for problems. */
  readonly file: string;
  /** The id of this instance: a queue that CRIC gives to another one is closed. Absent: the entry's id is not looked at. */
  readonly harvesterId?: string;
}

/** Sections that a backend has of its own, which must agree about the cluster. */
const backendSections = ['submitter', 'monitor', 'sweeper'] as const;

/**
 * The options that an entry of CRIC stands for, as the queue file could have them. A value of a wrong form is left out with a
 * warning, so that no mistake in CRIC refuses a queue. Pure. Source of the fields: docs/cric.md.
 */
export function cricLayer(entry: JsonObject, queue: CricQueue): CricLayer {
  const report = new Report(queue.file, queue.name);
  const facts = queueFacts(queue.values);
  const own: Record<string, unknown> = {};
  const sections: Record<string, Record<string, unknown>> = {};
  const add = (section: string, options: JsonObject = {}) => {
    if (facts.sections.has(section)) Object.assign((sections[section] ??= {}), options);
  };
  if (!isUnsaid(entry.params) && !isObject(entry.params)) report.wrong(['params'], entry.params, 'an object');
  for (const field of cricFields) {
    const value = facts.reaches.has(field.reach) ? valueOf(field, entry, report) : undefined;
    if (value === undefined) continue;
    if (field.section === 'queue') own[field.option] = value;
    else add(field.section, { [field.option]: value });
  }
  for (const rule of rules) {
    const derived = rule.derive(entry, facts, report, { harvesterId: queue.harvesterId });
    Object.assign(own, derived.queue);
    add('submitter', derived.submitter);
    for (const section of backendSections) add(section, derived.backend);
  }
  const filled = Object.entries(sections).filter(([, options]) => Object.keys(options).length > 0);
  const above = coresAbove(sections.submitter, facts.submitter, report);
  return { values: { ...own, ...Object.fromEntries(filled) }, above, problems: report.problems };
}

/**
 * Cores of CRIC that count before those of the queue file. Harvester's SimpleWorkerMaker reads the cores of CRIC alone: files of sites have
 * numbers in `nCore` that never counted. In `nCorePerNode` a number below 1 leaves the node to CRIC; another one is the node's.
 */
function coresAbove(said: JsonObject = {}, written: JsonObject, report: Report): JsonObject {
  const { nCore, nCorePerNode } = said;
  const above: Record<string, unknown> = {};
  if (nCore !== undefined && written.nCore !== undefined) {
    above.nCore = nCore;
    if (written.nCore !== nCore && typeof written.nCore === 'number' && written.nCore > 0)
      report.differs(
        ['corecount'],
        `a worker has ${shown(nCore)} cores by CRIC, as in Harvester, and nCore of the queue file, ${shown(written.nCore)}, does not count: remove it there`,
      );
  }
  const { nCorePerNode: node } = written;
  const isLeftToCric = node === null || (typeof node === 'number' && node < 1);
  if (nCorePerNode !== undefined && isLeftToCric) above.nCorePerNode = nCorePerNode;
  return Object.keys(above).length === 0 ? {} : { submitter: above };
}

/** The value of one field in the form of its option; undefined where the entry does not say it rightly. */
function valueOf(
  { field, form, perCore = false, zeroIsUnsaid = false }: CricField,
  entry: JsonObject,
  report: Report,
) {
  const [first, second] = field;
  const value = second === undefined ? entry[first] : paramsOf(entry)[second];
  if (isUnsaid(value) || (zeroIsUnsaid && value === 0)) return undefined;
  const formed = form(perCore && typeof value === 'number' ? value * coreFactor(entry) : value);
  if (formed.ok) return formed.value;
  report.wrong(field, value, formed.form);
  return undefined;
}
