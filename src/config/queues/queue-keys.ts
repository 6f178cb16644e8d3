import { mergedSections, QueueOptions } from './queue-schema.ts';

/** The use that thresher makes of a queue's own key. */
export interface KeyEffect {
  readonly read: boolean;
  /** Why a key that Harvester reads does nothing here; "" where it is read. */
  readonly why: string;
  /** Whether the queue behaves otherwise than with Harvester, and its operator has something to do. */
  readonly missed: boolean;
}

const pushOnly = 'it is for the jobs of push queues, and thresher takes no jobs yet';
const jobLimit = 'it limits the jobs of push queues, and thresher takes no jobs yet';
const events = 'it is for event service jobs, which thresher does not feed';
const byPilot = 'it says who reports the state of jobs; here the pilots do';
const bookkeeping = 'Harvester itself sets it, never a file';
const otherMakers =
  "it is for worker makers of jobs (MultiJobWorkerMaker); Harvester's SimpleWorkerMaker does not read it, and `maxWalltime` of the submitter says the wall time here";
const naming = 'thresher makes it from the name of the queue';

/**
 * Keys of Harvester without effect here, and why. They are accepted, so that production files can be used as they are;
 * `check-config` and `explain` name them. Source: Harvester's queue_config_mapper and the readers of its queue configs.
 */
export const keysWithoutEffect: Readonly<Record<string, string>> = {
  truePilot: byPilot,
  noHeartbeat: byPilot,
  prefetchEvents: events,
  initEventsMultipler: events,
  scatteredEvents: events,
  zipPerMB: pushOnly,
  allowJobMixture: pushOnly,
  useJobLateBinding: pushOnly,
  getJobCriteria: pushOnly,
  ddmEndpointIn: pushOnly,
  nQueueLimitJob: jobLimit,
  nQueueLimitJobMax: jobLimit,
  nQueueLimitJobRatio: jobLimit,
  nQueueLimitJobMin: jobLimit,
  nQueueLimitJobCores: jobLimit,
  nQueueLimitJobCoresRatio: jobLimit,
  nQueueLimitJobCoresMin: jobLimit,
  prioritizedProdSourceLabels: 'it orders pilot types by a number that the PanDA server would set',
  walltimeLimit: otherMakers,
  resource: 'the SAGA monitor alone reads it',
  file_syncer: 'thresher fetches no files from git: keep them up to date by other means',
  nNewWorkers: bookkeeping,
  configID: bookkeeping,
  uniqueName: bookkeeping,
  queueName: naming,
  siteName: naming,
  pandaQueueName: naming,
  resourceType: naming,
  jobType: naming,
  masterQueue:
    'the key is reserved for queues that share a PanDA queue, and thresher has none yet: each queue is a PanDA queue of its own',
};

/** Keys that have a reader of their own beside the schema of the queue's options. */
const readElsewhere: readonly string[] = [
  ...[...mergedSections, 'isTemplateQueue', 'templateQueueName', 'credmanagers'],
];
const missedKeys: readonly string[] = ['file_syncer'];

const effects = new Map<string, KeyEffect>([
  ...Object.entries(keysWithoutEffect).map(
    ([key, why]) => [key, { read: false, why, missed: missedKeys.includes(key) }] as const,
  ),
  ...[...readElsewhere, ...Object.keys(QueueOptions.properties)].map(
    (key) => [key, { read: true, why: '', missed: false }] as const,
  ),
]);

/** Undefined for a key that neither thresher nor Harvester knows. */
export function queueKeyEffect(key: string): KeyEffect | undefined {
  return effects.get(key);
}

export const queueKeys: readonly string[] = [...effects.keys()];
