import { mergedSections, QueueOptions } from './queue-schema.ts';

/** What thresher does with a queue's own key. */
export interface KeyEffect {
  readonly read: boolean;
  /** Why a key that Harvester reads does nothing here; "" where it is read. */
  readonly why: string;
}

const pushOnly = 'is for the jobs of push queues; thresher takes no jobs yet';
const jobLimit = 'limits the jobs of push queues; thresher takes no jobs yet';
const events = 'is for event service jobs, which thresher does not feed';
const byPilot = 'says who reports the state of jobs; here the pilots do';
const bookkeeping = 'is set by Harvester itself, never by a file';
const otherMakers =
  "is for worker makers of jobs (MultiJobWorkerMaker); Harvester's SimpleWorkerMaker does not read it, and `maxWalltime` of the submitter says the wall time here";
const naming = 'is made from the name of the queue';

/**
 * Keys of Harvester without effect here, and why: they are accepted in silence, so that production files can be used as
 * they are, and `thresher explain` tells. Source: Harvester's queue_config_mapper and the readers of its queue configs.
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
  prioritizedProdSourceLabels: 'orders pilot types; here all pilots of a queue are of one type',
  walltimeLimit: otherMakers,
  resource: 'is read by the SAGA monitor only',
  file_syncer: 'is accepted but not applied yet',
  nNewWorkers: bookkeeping,
  configID: bookkeeping,
  uniqueName: bookkeeping,
  queueName: naming,
  siteName: naming,
  pandaQueueName: naming,
  resourceType: naming,
  jobType: naming,
};

/** Keys that have a reader of their own beside the schema of the queue's options. */
const readElsewhere: readonly string[] = [
  ...mergedSections,
  ...['isTemplateQueue', 'templateQueueName', 'credmanagers'],
];

const effects = new Map<string, KeyEffect>([
  ...Object.entries(keysWithoutEffect).map(([key, why]) => [key, { read: false, why }] as const),
  ...[...readElsewhere, ...Object.keys(QueueOptions.properties)].map(
    (key) => [key, { read: true, why: '' }] as const,
  ),
]);

/** Undefined for a key that neither thresher nor Harvester knows. */
export function queueKeyEffect(key: string): KeyEffect | undefined {
  return effects.get(key);
}

export const queueKeys: readonly string[] = [...effects.keys()];
