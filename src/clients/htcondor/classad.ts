/** `cluster.proc` */
export interface JobId {
  readonly cluster: number;
  readonly proc: number;
}

export const jobIdText = ({ cluster, proc }: JobId): string => `${cluster}.${proc}`;

/** @returns undefined for what is no `cluster.proc` */
export function parseJobId(text: string): JobId | undefined {
  const [, cluster, proc] = /^(\d{1,9})\.(\d{1,9})$/.exec(text) ?? [];
  return cluster === undefined || proc === undefined
    ? undefined
    : { cluster: Number(cluster), proc: Number(proc) };
}

/**
 * A string in an expression that a tool of HTCondor gets in its arguments, or that stands behind `+attribute =` of a
 * submit file: whatever it contains, it ends only at its end. Tools read expressions as old ClassAds, in which a
 * backslash stands for itself unless a quote follows (seen: `size("\n")` is 2). A string that ends in a backslash can
 * only be computed: as the value of an attribute it stays an expression.
 * @throws RangeError for the end of a line, which would be the end of the expression, and a NUL: there is no way to
 * write them.
 */
export function classAdString(text: string): string {
  if (/[\0\n\r]/.test(text)) throw new RangeError('a ClassAd string cannot hold the end of a line, or a NUL');
  const quoted = text.replaceAll('"', '\\"');
  // As the last character it would take the closing quote with it.
  return text.endsWith('\\') ? `substr("${quoted} ", 0, -1)` : `"${quoted}"`;
}

/**
 * A reference to an attribute of a job.
 * @throws RangeError for what is no name of one, so that none changes the expression around it.
 */
export function classAdName(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new RangeError(`"${name}" is no name of an attribute`);
  return name;
}

/** The jobs whose attribute has this value: `=?=`, because others have no such attribute. */
export function whereIs(attribute: string, value: string | number): string {
  const literal = typeof value === 'number' ? `${value}` : classAdString(value);
  return `${classAdName(attribute)} =?= ${literal}`;
}

/** These jobs and no others; of none it is `false`. One term for each cluster, so that a schedd need not try each. */
export function whereJobs(jobs: readonly JobId[]): string {
  const clusters = Map.groupBy(jobs, ({ cluster }) => cluster);
  const terms = [...clusters].map(([cluster, members]) => {
    const procs = [...new Set(members.map(({ proc }) => proc))].sort((a, b) => a - b);
    return `(ClusterId == ${cluster} && ${amongProcs(procs)})`;
  });
  return terms.length === 0 ? 'false' : terms.join(' || ');
}

/**
 * Characters of the text of a value: no attribute that thresher asks for has more, as HTCondor writes it. So long ones in all attributes of a job
 * make no ad that is longer than one may be.
 */
const longestValue = 30_000;

/**
 * Jobs of which none of these attributes is long. One job can have values of megabytes, and HTCondor then sends no answer at all, or one
 * that cannot be read: who asks for the jobs of several users has to ask without such ones.
 */
export function whereShort(attributes: readonly string[]): string {
  // The text counts, and not what it evaluates to. Of an attribute that a job lacks it is empty, or undefined.
  const long = attributes.map((name) => `size(unparse(${name})) > ${longestValue}`).join(' || ');
  return `((${long}) =!= true)`;
}

function amongProcs(procs: readonly number[]): string {
  const first = procs[0] ?? 0;
  const last = procs.at(-1) ?? 0;
  if (last - first + 1 === procs.length) return `ProcId >= ${first} && ProcId <= ${last}`;
  return `member(ProcId, {${procs.join(',')}})`;
}
