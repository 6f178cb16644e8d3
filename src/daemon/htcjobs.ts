import { dirname } from 'node:path';
import { crd } from '../clients/htcjob/crd.ts';
import { deployment, rights, settings as settingsManifests } from '../clients/htcjob/manifests.ts';
import { HtcJobReader, jobNumberOf, type ReaderParts } from '../clients/htcjob/reading.ts';
import { fromRanges } from '../clients/htcjob/numbers.ts';
import { type HtcJob, htcJobSource, jobCount } from '../clients/htcjob/resource.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import type { WorkerNews } from '../worker/news.ts';

export { type HtcJob, type HtcJobReader, jobNumberOf };

/** Documents of Kubernetes by the subcommand that prints them. */
export const htcJobDocuments = {
  crd: { summary: 'print the CustomResourceDefinition of HTCJobs', made: () => [crd()] },
  rbac: { summary: 'print the rights of the operator and of users', made: rights },
  manifests: {
    summary: 'print everything that an operator in the cluster needs',
    made: () => [...settingsManifests(), crd(), ...rights(), ...deployment()],
  },
} as const;

/** Reads the HTCJobs of the cluster that the settings name. @throws ThresherError `wrong-type` */
export function htcJobReader(
  { file, values }: Pick<LoadedSettings, 'file' | 'values'>,
  parts: Omit<ReaderParts, 'configDir'>,
): HtcJobReader {
  const written = Object.entries(values.sources[htcJobSource] ?? {});
  const options = Object.fromEntries(written.filter(([key]) => key !== 'module'));
  return new HtcJobReader(options, { ...parts, configDir: dirname(file) });
}

/** The same for a daemon; undefined where its settings name no cluster of HTCJobs, or name it wrongly, which the source itself says. */
export function htcJobsOf(
  settings: Pick<LoadedSettings, 'file' | 'values'>,
  parts: Omit<ReaderParts, 'configDir'>,
): HtcJobReader | undefined {
  if (settings.values.sources[htcJobSource] === undefined) return undefined;
  try {
    return htcJobReader(settings, parts);
  } catch (error) {
    if (error instanceof ThresherError) return undefined;
    throw error;
  }
}

/** The workers of a HTCJob that are kept, oldest first. */
function originsOf(store: Pick<Store, 'origins'>, uid: string): Promise<readonly WorkerNews[]> {
  return store.origins.find(htcJobSource, [{ uid }]);
}

/** The workers of a HTCJob, as the command line and the HTTP server show them. */
export async function workersOf(store: Pick<Store, 'origins'>, { metadata }: HtcJob) {
  const found = await originsOf(store, metadata.uid);
  return found.map(({ origin, worker }) => ({
    job: jobNumberOf(origin.index),
    workerID: worker.workerId,
    status: worker.status,
    batchID: worker.batchId,
    exitCode: worker.exitCode,
    diagMessage: worker.diagMessage,
  }));
}

/** The worker of the last attempt at a job. @throws ThresherError `no-such-worker`, with the reason */
export async function workerOfJob(
  store: Pick<Store, 'origins' | 'workers'>,
  job: HtcJob,
  number: number,
): Promise<WorkerRecord> {
  const { metadata, spec } = job;
  const name = `${metadata.namespace}/${metadata.name}`;
  const count = jobCount(spec);
  if (number >= count) {
    const jobs = count === 1 ? 'its only job is 0' : `its jobs are 0 to ${count - 1}`;
    throw new ThresherError('no-such-worker', `HTCJob ${name} has no job ${number}: ${jobs}`);
  }
  const found = await originsOf(store, metadata.uid);
  const last = found
    .filter(({ origin, worker }) => worker.workerId !== null && jobNumberOf(origin.index) === number)
    .toSorted((one, other) => one.origin.index - other.origin.index)
    .at(-1)?.worker.workerId;
  const worker = last == null ? undefined : await store.workers.byId(last);
  if (worker !== undefined) return worker;
  throw new ThresherError(
    'no-such-worker',
    `job ${number} of HTCJob ${name} has no worker: ${whyNone(job, number)}`,
  );
}

function whyNone({ spec, status }: HtcJob, number: number): string {
  const { outputDirectory, outputIndexes, completedIndexes, failedIndexes, conditions } = status ?? {};
  // One with a mistake has failed, and none of its jobs ever had a worker.
  const invalid = conditions?.find(({ type, status: is, reason }) => {
    return type === 'Failed' && is === 'True' && reason === 'Invalid';
  });
  if (invalid !== undefined) return `the HTCJob is invalid, and none of its jobs ran: ${invalid.message}`;
  const isIn = (ranges: string | undefined) => fromRanges(ranges, jobCount(spec)).has(number);
  if (isIn(outputIndexes))
    return `it has ended, and its row was deleted; its output with _condor_stdout is in ${outputDirectory ?? ''}/${number} of outputDir`;
  if (isIn(completedIndexes) || isIn(failedIndexes)) return 'it has ended, and its row was deleted';
  const holding = conditions?.find((one) => one.status === 'True' && one.type !== 'OutputKept');
  return holding?.message ?? 'it was not submitted yet';
}
