import { cores, flag, type Form, integer, numberFrom, path, positive, size, text, version } from './forms.ts';
import { mostOfDisk, mostOfJob } from '../../worker/worker.ts';

/**
 * The queues whose options a field becomes. `any`: whatever the backend. `htcondor`: queues that ask for CRIC
 * (`useCRIC`), as in Harvester.
 */
export type Reach = 'any' | 'kubernetes' | 'htcondor';

/** One field of an entry that becomes one option as it is. */
export interface CricField {
  /** Its way in the entry. */
  readonly field: readonly [string] | readonly ['params', string];
  /** The option: of the queue itself, or of its submitter. */
  readonly section: 'queue' | 'submitter';
  readonly option: string;
  readonly reach: Reach;
  readonly form: Form;
  /** It is that of one core where the entry's `catchall` has `per_core_attr`. */
  readonly perCore?: boolean;
  /** 0 says nothing, as an absent field does. */
  readonly zeroIsUnsaid?: boolean;
}

const ofSlot = (
  field: string,
  option: string,
  form: Form,
  about: Pick<CricField, 'perCore'> = {},
): CricField => ({
  field: [field],
  section: 'submitter',
  option,
  reach: 'any',
  form,
  zeroIsUnsaid: true,
  ...about,
});
const limit = (name: string): CricField => ({
  field: ['params', name],
  section: 'queue',
  option: name,
  reach: 'any',
  form: integer,
});
const ofEntry = (field: string, option: string, reach: Reach, form: Form): CricField => ({
  field: [field],
  section: 'submitter',
  option,
  reach,
  form,
});
const param = (name: string, reach: Reach, form: Form, option = name): CricField => ({
  field: ['params', name],
  section: 'submitter',
  option,
  reach,
  form,
});

/** Source: Harvester's simple_worker_maker and info_utils. */
const sizes: readonly CricField[] = [
  ofSlot('corecount', 'nCore', cores),
  ofSlot('maxrss', 'minRamCount', size(mostOfJob.memory), { perCore: true }),
  ofSlot('maxwdir', 'maxDiskCount', size(mostOfDisk), { perCore: true }),
  ofSlot('maxtime', 'maxWalltime', size()),
];

/** Source: Harvester's queue_config_mapper, `queue_limit_attrs`, but for the limits of jobs: thresher takes no jobs. */
const limits: readonly CricField[] = [
  ...['maxWorkers', 'maxNewWorkersPerCycle'],
  ...['nQueueLimitWorker', 'nQueueLimitWorkerMax', 'nQueueLimitWorkerRatio', 'nQueueLimitWorkerMin'],
  ...['nQueueLimitWorkerCores', 'nQueueLimitWorkerCoresRatio', 'nQueueLimitWorkerCoresMin'],
  ...['nQueueLimitWorkerMemory', 'nQueueLimitWorkerMemoryRatio', 'nQueueLimitWorkerMemoryMin'],
].map(limit);

/** Source: Harvester's k8s_submitter and info_utils_k8s. */
const kubernetes: readonly CricField[] = [
  ofEntry('pilot_version', 'pilot_version', 'kubernetes', version),
  ofEntry('python_version', 'python_version', 'kubernetes', version),
  param('pilot_url', 'kubernetes', text),
  param('k8s.host_image', 'kubernetes', text),
  param('k8s.volumes.pilot_dir_mount', 'kubernetes', path),
  param('k8s.annotations.safe_to_evict', 'kubernetes', flag),
  param('k8s.scheduler.use_score_mcore_affinity', 'kubernetes', flag),
  param('k8s.scheduler.use_score_mcore_anti_affinity', 'kubernetes', flag),
  param('k8s.scheduler.priorityClassName', 'kubernetes', text),
  param('k8s.scheduler.priorityClassName.score', 'kubernetes', text),
  param('k8s.scheduler.priorityClassName.score_himem', 'kubernetes', text),
  param('k8s.scheduler.priorityClassName.mcore', 'kubernetes', text),
  param('k8s.scheduler.priorityClassName.mcore_himem', 'kubernetes', text),
  // Under the names that queue files have: under CRIC's own they would count before those of the file.
  param('k8s.resources.requests.cpu_scheduling_ratio', 'kubernetes', positive, 'cpuAdjustRatio'),
  param('k8s.resources.requests.memory_scheduling_ratio', 'kubernetes', positive, 'memoryAdjustRatio'),
  param('k8s.resources.limits.use_memory_limit', 'kubernetes', flag),
  param('k8s.resources.limits.memory_limit_safety_factor', 'kubernetes', numberFrom(100)),
  param('k8s.resources.limits.memory_limit_min_offset', 'kubernetes', numberFrom(0)),
  param('k8s.resources.use_ephemeral_storage_resource_specs', 'kubernetes', flag),
  param('k8s.resources.ephemeral_storage_offset', 'kubernetes', numberFrom(0)),
  param('k8s.resources.limits.ephemeral_storage_limit_safety_factor', 'kubernetes', numberFrom(100)),
  param('k8s.use_active_deadline_seconds', 'kubernetes', flag),
];

/** Source: Harvester's htcondor_submitter. */
const htcondor: readonly CricField[] = [
  ofEntry('pilot_version', 'pilot_version', 'htcondor', version),
  ofEntry('python_version', 'python_version', 'htcondor', version),
  ofEntry('panda_site', 'panda_site', 'htcondor', text),
  param('pilot_url', 'htcondor', text),
  param('pilot_args', 'htcondor', text),
  param('ce_fairshare_percent', 'htcondor', numberFrom(0, 100)),
];

/** Every field that becomes one option as it is. `derived.ts` has those that need a rule. */
export const cricFields: readonly CricField[] = [...limits, ...sizes, ...kubernetes, ...htcondor];

/**
 * Words of the form of an entry: the fields that thresher reads, and the value among those that it compares that is no plain word. None of them
 * is a login of ours, whatever has it as its password: without them no queue would be ours.
 */
export const cricWords: ReadonlySet<string> = new Set([
  ...cricFields.flatMap(({ field }) => field),
  ...['panda_resource', 'pilot_manager', 'harvester', 'harvester_template', 'status', 'type', 'workflow'],
  ...['capability', 'catchall', 'resource_type', 'special_par', 'params', 'k8s.namespace', 'queues'],
  ...['ce_endpoint', 'ce_flavour', 'ce_state', 'ce_queue_name', 'ce_jobmanager', 'ce_version'],
  'htcondor-ce',
]);
