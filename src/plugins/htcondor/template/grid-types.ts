import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { Command } from './statements.ts';

/** A `grid_resource` may begin with these; `pbs` to `blah` are other names of `batch`. Source: condor_submit 23.9. */
const known = ['condor', 'batch', 'arc', 'ec2', 'gce', 'azure', 'pbs', 'lsf', 'sge', 'nqs', 'blah'];

/** Grid types that HTCondor once had, and the release that dropped them. Source: the version history of its manual. */
const dropped: Readonly<Record<string, string>> = {
  gt2: '9.0.2 (GRAM)',
  gt5: '9.0.2 (GRAM)',
  cream: '9.0.0',
  unicore: '9.0.0',
  nordugrid: '9.3.0 (the GridFTP interface of ARC)',
};
/** Dropped earlier than any release that is still in use. */
const longGone: readonly string[] = ['gt3', 'gt4', 'globus', 'naregi', 'amazon', 'deltacloud', 'boinc'];

const instead: Readonly<Record<string, string>> = {
  nordugrid: 'write arc, which speaks to the REST interface of the same CE',
  cream: 'such a CE needs another front end, such as an HTCondor-CE or ARC',
};

/** The grid type that a `grid_resource` begins with, also where the queue's `ceARCGridType` is its first word. */
export function gridTypeOf(
  { text, names }: Command,
  { ceARCGridType }: Partial<HTCondorSubmitterConfig>,
): string | undefined {
  const [written = ''] = text.trim().toLowerCase().split(/\s+/);
  if (known.includes(written) || isGone(written)) return written;
  return names[0] === 'ceARCGridType' ? ceARCGridType : undefined;
}

/** Why HTCondor refuses a grid type; undefined if it did not drop the type. */
export function goneGridType(type: string): string | undefined {
  if (!isGone(type)) return undefined;
  const release = Object.hasOwn(dropped, type) ? dropped[type] : undefined;
  const since = release === undefined ? 'long ago' : `in ${release}`;
  const right = instead[type] ?? `it would be one of ${known.join(', ')}`;
  return `HTCondor dropped the grid type ${type} ${since}, and its later versions refuse such a job; ${right}`;
}

function isGone(type: string): boolean {
  return Object.hasOwn(dropped, type) || longGone.includes(type);
}
