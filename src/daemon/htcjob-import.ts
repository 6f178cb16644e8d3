import { makeWorker, requirementsOf } from '../agents/submission/worker-maker.ts';
import { type OldJob, type Plan, planImport, type PlannedJob } from '../clients/htcjob/import/plan.ts';
import type { ForeignJob } from '../clients/htcondor/foreign-job.ts';
import { htcJobSource, type HtcJob } from '../clients/htcjob/resource.ts';
import type { HtcJobReader } from '../clients/htcjob/reading.ts';
import { isKubernetesError } from '../clients/kubernetes/errors.ts';
import { readQueueFile, type QueueConfig } from '../config/queues/queues.ts';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { isError, type LoadedSettings } from '../config/settings/settings.ts';
import { ForeignJobs } from '../plugins/htcondor/foreign-jobs.ts';
import { readHtcOperator } from '../store/sqlite/htc-operator.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import type { Problem } from '../util/located.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError, toReason } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import type { Worker } from '../worker/worker.ts';
import { readConfiguration } from './configuration.ts';

export interface ImportOptions {
  /** The table of htc-operator. */
  readonly file: string;
  readonly queue?: string | undefined;
  readonly namespace?: string | undefined;
  readonly unreported?: 'succeeded' | 'failed' | undefined;
  readonly dryRun: boolean;
}

export interface ImportParts {
  readonly settings: LoadedSettings;
  readonly stateDir: string | undefined;
  readonly factoryId: string;
  readonly store: Pick<Store, 'ids'>;
  readonly reader: HtcJobReader;
  readonly clock: Clock;
  readonly files: OperatorFiles;
}

/** A plan for a HTCJob, and why it was not carried out. */
export interface ImportResult {
  readonly plan: Plan;
  readonly trouble: Reason | undefined;
}

/** How often a HTCJob is planned anew that another writer changed meanwhile. */
const mostTries = 3;

/**
 * Takes over the jobs of htc-operator. Nothing is changed before all has been read: the table, the resources, and the queue and history of
 * each schedd. Each step may be repeated: a job keeps the mark that it has, and the status is written last.
 * @throws ThresherError `htcjob-import-file`, `htcjob-import-queue`, and the errors of API server and schedds
 */
export async function importHtcJobs(
  options: ImportOptions,
  parts: ImportParts,
  signal: AbortSignal,
): Promise<readonly ImportResult[]> {
  const { settings, factoryId, reader } = parts;
  const rows: readonly OldJob[] = readHtcOperator(options.file);
  const config = await queueOf(options.queue, parts);
  const where = (config.plugins.submitter?.config ?? {}) as unknown as ConstructorParameters<
    typeof ForeignJobs
  >[0];
  const jobs = new ForeignJobs(where, config.configDir, parts.clock);
  const seen = await jobs.look(
    rows.map(({ jobId }) => jobId),
    signal,
  );
  const choices = { factory: factoryId, namespace: options.namespace, unreported: options.unreported };
  const plans = planImport(rows, await reader.listStored(undefined, signal), seen, choices);
  if (options.dryRun) return plans.map((plan) => ({ plan, trouble: undefined }));
  const harvesterId = harvesterIdOf(settings.values.master);
  const mark = async ({ metadata }: HtcJob, job: PlannedJob, seenJob: ForeignJob) => {
    const worker = await workerFor(config, { ...parts, harvesterId }, metadata.uid, job.number, seenJob);
    await jobs.mark(seenJob, worker, { factoryId, harvesterId }, signal);
  };
  const again = (resource: HtcJob, { jobs: planned }: Plan) => {
    const ids = new Set(planned.map(({ jobId }) => jobId));
    const own = rows.filter(({ name, jobId }) => name === resource.metadata.name && ids.has(jobId));
    return planImport(own, [resource], seen, choices)[0];
  };
  const results: ImportResult[] = [];
  for (const plan of plans) {
    let trouble: Reason | undefined;
    try {
      await carryOut(plan, { reader, mark, again }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      trouble = toReason(error);
    }
    results.push({ plan, trouble });
  }
  return results;
}

interface Steps {
  readonly reader: HtcJobReader;
  readonly mark: (resource: HtcJob, job: PlannedJob, seen: ForeignJob) => Promise<void>;
  readonly again: (resource: HtcJob, plan: Plan) => Plan | undefined;
}

async function carryOut(first: Plan, { reader, mark, again }: Steps, signal: AbortSignal): Promise<void> {
  const { resource, why } = first;
  if (resource === undefined || why !== undefined) return;
  // Once the status says that thresher has it, its jobs have their marks.
  for (const job of first.jobs) if (job.toMark !== undefined) await mark(resource, job, job.toMark);
  let plan: Plan | undefined = first;
  for (let tries = 1; plan?.resource !== undefined && plan.status !== undefined; tries++) {
    try {
      await reader.writeStatus(plan.resource, plan.status, signal);
      return;
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-conflict') || tries >= mostTries) throw error;
      const { namespace, name, uid }: HtcJob['metadata'] = plan.resource.metadata;
      const now: HtcJob = await reader.oneStored(`${namespace}/${name}`, signal);
      plan = now.metadata.uid === uid ? again(now, plan) : undefined;
    }
  }
}

async function workerFor(
  config: QueueConfig,
  {
    factoryId,
    harvesterId,
    store,
  }: Pick<ImportParts, 'factoryId' | 'store'> & { readonly harvesterId: string },
  uid: string,
  index: number,
  { connection }: ForeignJob,
): Promise<Worker> {
  const request = { origin: { uid, index }, groupId: uid };
  const worker = makeWorker(await store.ids.take(1), {
    factoryId,
    harvesterId,
    config,
    request,
    configId: 0,
    placement: connection,
    originKind: htcJobSource,
    requirements: requirementsOf(config),
    messenger: undefined,
  });
  // No daemon made an attempt at it.
  return { ...worker, attempt: 0 };
}

/** The queue that follows the jobs. @throws ThresherError `htcjob-import-queue` */
async function queueOf(name: string | undefined, parts: ImportParts): Promise<QueueConfig> {
  const { settings, stateDir, files } = parts;
  const { queueFile } = await readConfiguration(settings.file, stateDir, files);
  if (queueFile === undefined) throw refused(`${settings.file} names no queue file that can be read`);
  const { verdicts } = await readQueueFile(queueFile.file, queueFile.catalogue, queueFile.options);
  const own = verdicts.filter(({ demand }) => demand?.demand === htcJobSource);
  const choice = own.length === 0 ? 'none does' : `these do: ${own.map((one) => one.name).join(', ')}`;
  const found = name === undefined && own.length === 1 ? own[0] : own.find((one) => one.name === name);
  if (name === undefined && found === undefined)
    throw refused(`--queue must name a queue that takes HTCJobs; ${choice}`);
  if (found === undefined) throw refused(`no queue ${name ?? ''} takes HTCJobs; ${choice}`);
  const { config, problems } = found;
  if (config === undefined) {
    const [first] = problems.filter((problem: Problem) => isError(problem));
    throw refused(`queue ${found.name} is not ready: ${first?.message ?? 'see thresher check-config'}`);
  }
  const { submitter } = config.plugins;
  const definition = submitter && queueFile.catalogue.find('submitter', submitter.module, submitter.name);
  if (definition?.backend.name === 'HTCondor') return config;
  throw refused(`queue ${found.name} is none of HTCondor`);
}

function refused(message: string): ThresherError {
  return new ThresherError('htcjob-import-queue', message);
}
