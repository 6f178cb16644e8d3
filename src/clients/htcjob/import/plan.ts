import { jobIdText, parseJobId } from '../../htcondor/classad.ts';
import type { ForeignJob } from '../../htcondor/foreign-job.ts';
import { fromRanges, toRanges } from '../numbers.ts';
import { finalizer, type HtcJob, type HtcJobStatus, isOfHtcOperator, jobCount } from '../resource.ts';
import { isoSeconds } from '../../../util/clock.ts';

/** A job by the table of htc-operator. */
export interface OldJob {
  readonly name: string;
  readonly jobId: string;
  readonly status: number;
  readonly directory: string;
  readonly submission: string;
}

/**
 * A job by all that is known of it.
 * - `living`: it is in the queue, and has not ended.
 * - `unreported`: it ended with exit status 0, which is that of the program that sends its event. The event did not reach the table.
 * - `lost`: neither queue nor history has it, and the table has no result.
 */
export type Fate = 'living' | 'unreported' | 'succeeded' | 'failed' | 'lost';

export interface PlannedJob {
  readonly number: number;
  readonly jobId: string;
  readonly fate: Fate;
  /** It gets the mark of this factory. */
  readonly toMark: ForeignJob | undefined;
}

/** The steps for one HTCJob. */
export interface Plan {
  /** NAME, or NAMESPACE/NAME where the resource is known. */
  readonly name: string;
  readonly resource: HtcJob | undefined;
  readonly jobs: readonly PlannedJob[];
  /** The status to write; undefined: nothing. */
  readonly status: HtcJobStatus | undefined;
  /** Why it is left alone; undefined: it is taken over, or was before. */
  readonly why: string | undefined;
}

export interface PlanOptions {
  readonly factory: string;
  /** The namespace of htc-operator. */
  readonly namespace: string | undefined;
  /** How jobs without a result count. Undefined: their HTCJob is left alone. */
  readonly unreported: 'succeeded' | 'failed' | undefined;
}

const removed = 3;
const completed = 4;

/** Decides for each HTCJob of the table. Pure. */
export function planImport(
  rows: readonly OldJob[],
  resources: readonly HtcJob[],
  seen: readonly ForeignJob[],
  options: PlanOptions,
): readonly Plan[] {
  const byId = Map.groupBy(seen, ({ id }) => jobIdText(id));
  const byName = Map.groupBy(resources, ({ metadata }) => metadata.name);
  return [...Map.groupBy(rows, ({ name }) => name)].map(([name, own]) => {
    const { namespace } = options;
    const there = (byName.get(name) ?? []).filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
    return planOne(name, own, there, byId, options);
  });
}

function planOne(
  name: string,
  rows: readonly OldJob[],
  resources: readonly HtcJob[],
  byId: ReadonlyMap<string, readonly ForeignJob[]>,
  options: PlanOptions,
): Plan {
  const [resource, another] = resources;
  const leave = (why: string, jobs: readonly PlannedJob[] = []): Plan => {
    const { namespace } = resource?.metadata ?? {};
    const full = namespace === undefined || another !== undefined ? name : `${namespace}/${name}`;
    return { name: full, resource, jobs, status: undefined, why };
  };
  if (resource === undefined) {
    const where = options.namespace === undefined ? 'the cluster' : `namespace ${options.namespace}`;
    return leave(`${where} has no HTCJob of this name; its jobs go on as they are`);
  }
  if (another !== undefined) {
    const namespaces = resources.map(({ metadata }) => metadata.namespace).join(', ');
    return leave(`several namespaces have one (${namespaces}); say by --namespace where htc-operator was`);
  }
  const { status = {} } = resource;
  if (status.factory !== undefined && status.factory !== options.factory)
    return leave(`factory ${status.factory} runs it`);
  if (status.factory !== undefined && status.takenOver !== true)
    return leave('thresher submitted its jobs itself');
  // Another one of the name, of another user perhaps, must not come by the jobs and the results of an earlier one.
  if (status.factory === undefined && !(isOfHtcOperator(status) && hasFinalizer(resource)))
    return leave(
      'htc-operator has counted no job of it: the table has the jobs of an earlier one of its name',
    );
  const wrong = whyWrong(rows, resource);
  if (wrong !== undefined) return leave(wrong);
  const jobs: PlannedJob[] = [];
  let earliest: number | undefined;
  for (const row of rows) {
    const all = byId.get(row.jobId) ?? [];
    const own = all.filter((job) => isOf(row, job));
    const [job, second] = own;
    if (job === undefined && all.length > 0)
      return leave(
        `job ${row.jobId} of the schedd is another one: neither its JOB_NAME nor its directory is that of the table; does the queue of thresher lead to the schedd of htc-operator?`,
      );
    if (second !== undefined) return leave(`several schedds have a job ${row.jobId} of it`);
    if (job?.factory !== undefined && job.factory !== options.factory)
      return leave(`job ${row.jobId} has the mark of factory ${job.factory}`);
    if (job?.isQueued === true && job.user !== undefined && job.owner !== job.user)
      return leave(
        `job ${row.jobId} is of user ${job.owner}, and thresher, as ${job.user}, follows no jobs of others; start it with a credential of ${job.owner}`,
      );
    const fate = fateOf(row, job, options);
    const isUnmarked = job?.isQueued === true && job.factory === undefined;
    jobs.push({
      number: parseJobId(row.jobId)?.proc ?? 0,
      jobId: row.jobId,
      fate,
      toMark: isUnmarked ? job : undefined,
    });
    if (job?.queuedAt !== undefined) earliest = Math.min(job.queuedAt, earliest ?? Infinity);
  }
  jobs.sort((one, other) => one.number - other.number);
  const created = Date.parse(resource.metadata.creationTimestamp ?? '') / 1000;
  // Clocks differ a little.
  if (earliest !== undefined && earliest < created - 300)
    return leave('its jobs are older than the resource: they are those of an earlier one of its name', jobs);
  const lost = jobs.find(({ fate }) => fate === 'lost');
  if (lost !== undefined)
    return leave(
      `job ${lost.jobId} is neither in the queue nor, with a result, in the history or the table; --unreported says how such jobs count`,
      jobs,
    );
  const { namespace } = resource.metadata;
  const next = statusOf(resource, jobs, earliest ?? created, options.factory);
  return { name: `${namespace}/${name}`, resource, jobs, status: next, why: undefined };
}

const hasFinalizer = ({ metadata }: HtcJob): boolean => metadata.finalizers?.includes(finalizer) === true;

/** Rows that cannot be those of this resource. */
function whyWrong(rows: readonly OldJob[], resource: HtcJob): string | undefined {
  const submissions = new Set(rows.map(({ submission }) => submission));
  if (submissions.size > 1)
    return `the table has jobs of ${submissions.size} submissions of it (uniqid ${[...submissions].join(', ')}), and thresher cannot tell which are its own`;
  const ids = rows.map(({ jobId }) => parseJobId(jobId));
  const bad = rows[ids.indexOf(undefined)];
  if (bad !== undefined)
    return `the table has ${JSON.stringify(bad.jobId)} as an id of a job; it must be CLUSTER.PROC`;
  const twice = rows.find(({ jobId }, index) => rows.findIndex((row) => row.jobId === jobId) < index);
  if (twice !== undefined) return `the table has job ${twice.jobId} twice`;
  const odd = rows.find(({ status }) => ![1, 4, 7].includes(status % 10));
  if (odd !== undefined)
    return `the table has status ${odd.status} for job ${odd.jobId}; it must be 1, 4 or 7, or 10 or 20 more`;
  const clusters = new Set(ids.map((id) => id?.cluster));
  if (clusters.size > 1)
    return `its jobs are of ${clusters.size} clusters, so the numbers of its jobs are unknown`;
  const count = jobCount(resource.spec);
  const numbers = new Set(ids.flatMap((id) => (id !== undefined && id.proc < count ? [id.proc] : [])));
  if (numbers.size === count) return undefined;
  return `the table has ${rows.length} jobs of it, and its spec asks for ${count}`;
}

/** A job of the same number on another schedd, or after a new start of the schedd's numbers, is a stranger. */
function isOf({ name, directory }: OldJob, job: ForeignJob): boolean {
  const variables = job.environment.split(/[\s;]+/);
  return (directory !== '' && job.directory === directory) || variables.includes(`JOB_NAME=${name}`);
}

/**
 * HTCondor's word decides how a job ended that did not end well. Its word for a good end is not enough: such a job ends with the exit
 * status of the program that sends the event, whatever the script's was.
 */
function fateOf({ status }: OldJob, job: ForeignJob | undefined, { unreported }: PlanOptions): Fate {
  if (job?.isQueued === true && job.status !== completed) return 'living';
  if (job !== undefined && (job.status === removed || (job.status === completed && !job.endedWell)))
    return 'failed';
  const result = status % 10;
  if (result === 4) return 'succeeded';
  if (result === 7) return 'failed';
  return unreported ?? (job?.isQueued === true ? 'unreported' : 'lost');
}

/** @returns undefined where the resource has it all */
function statusOf(
  { metadata, spec, status: before = {} }: HtcJob,
  jobs: readonly PlannedJob[],
  startedAt: number,
  factory: string,
): HtcJobStatus | undefined {
  const isFirst = before.factory === undefined;
  if (!isFirst && before.completionTime) return undefined;
  const count = jobCount(spec);
  const known = {
    succeeded: fromRanges(before.completedIndexes, count),
    failed: fromRanges(before.failedIndexes, count),
  };
  const numbers = (fate: 'succeeded' | 'failed') => {
    const other = fate === 'failed' ? known.succeeded : known.failed;
    const now = jobs.filter((job) => job.fate === fate && !other.has(job.number));
    return [...new Set([...known[fate], ...now.map(({ number }) => number)])];
  };
  const [succeeded, failed] = [numbers('succeeded'), numbers('failed')];
  const isNew = succeeded.length > known.succeeded.size || failed.length > known.failed.size;
  if (!isFirst && !isNew) return undefined;
  const ranges = { completedIndexes: toRanges(succeeded), failedIndexes: toRanges(failed) };
  const results = {
    ...(ranges.completedIndexes !== undefined && { completedIndexes: ranges.completedIndexes }),
    ...(ranges.failedIndexes !== undefined && { failedIndexes: ranges.failedIndexes }),
  };
  // The operator counts what follows from them.
  if (!isFirst) return { ...before, ...results };
  const ids = jobs.map(({ jobId }) => jobId);
  return {
    active: count - succeeded.length - failed.length,
    succeeded: succeeded.length,
    failed: failed.length,
    held: 0,
    jobid: ids,
    jobIds: ids,
    clusterId: ids[0]?.split('.')[0] ?? '',
    uniqId: metadata.uid,
    factory,
    takenOver: true,
    reason: 'Submitted',
    startTime: isoSeconds(startedAt * 1000),
    ...results,
  };
}
