import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { Command } from './statements.ts';

/**
 * A `grid_resource` may begin with these; `pbs` to `blah` are other names of `batch`. Source: `validate_gridtype` of `submit_utils.cpp`,
 * HTCondor 23.9 and 25.14, but for `naregi`, which the gridmanager knows no more.
 */
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

/**
 * Why HTCondor refuses a `grid_resource` for its type, the first word of it; undefined for a type that it takes, and for one that only
 * `condor_submit` knows: behind a macro or a placeholder other than the queue's `ceARCGridType`.
 */
export function gridTypeRefusal(
  command: Command,
  { ceARCGridType }: Partial<HTCondorSubmitterConfig>,
): string | undefined {
  const { names } = command;
  const values = Object.fromEntries(names.map((name) => [name, other]));
  const [first = ''] = command.render({ ...values, ceARCGridType: ceARCGridType ?? other }).split(/\s+/);
  const type = first.toLowerCase();
  if (known.includes(type) || !/^\w+$/.test(type) || type.includes(other)) return undefined;
  if (isGone(type)) {
    const release = Object.hasOwn(dropped, type) ? dropped[type] : undefined;
    const since = release === undefined ? 'long ago' : `in ${release}`;
    const right = instead[type] ?? `it must be one of ${known.join(', ')}`;
    return `HTCondor dropped the grid type ${type} ${since}, and condor_submit refuses such a job; ${right}`;
  }
  return `grid_resource begins with ${first}, which is no grid type of HTCondor; it must be one of ${known.join(', ')}`;
}

/** Stands for the value of a placeholder. No grid type has it in its name. */
const other = 'placeholder';

function isGone(type: string): boolean {
  return Object.hasOwn(dropped, type) || longGone.includes(type);
}
