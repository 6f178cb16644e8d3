/**
 * The keys of Harvester's own `panda_harvester.cfg`, which distinguish a key that thresher does not read from a
 * spelling mistake. Source: Harvester 0.7.5, its template of the file and every place in its code that reads a setting.
 */
import { isObject } from '../../../util/json.ts';

/** Keys of the sections that thresher has too. */
const sharedSections: Readonly<Record<string, readonly string[]>> = {
  master: [
    ...['uname', 'gname', 'loggername', 'harvester_id', 'debugger_port', 'dynamic_plugin_change'],
    'extraPluginConfigs',
  ],
  qconf: [
    ...['configFile', 'configFromCacher', 'queueList', 'resolverModule', 'resolverClass', 'resolverConfig'],
    ...['autoBlacklist', 'pilotVersion', 'updateInterval', 'checkInterval', 'defaultTemplateQueueName'],
  ],
  submitter: [
    ...['nThreads', 'nQueues', 'lookupTime', 'queueLockInterval', 'lockInterval', 'checkInterval'],
    ...['minSubmissionInterval', 'sleepTime', 'maxNewWorkers', 'respectSleepTime', 'activateWorkerFactor'],
    'noPilotsWhenNoActiveJobs',
  ],
  monitor: [
    ...['nThreads', 'maxWorkers', 'lockInterval', 'checkInterval', 'checkTimeout', 'sleepTime'],
    ...['fifoEnable', 'fifoModule', 'fifoClass', 'fifoSleepTimeMilli', 'fifoCheckInterval'],
    ...['fifoCheckDuration', 'fifoForceEnqueueInterval', 'fifoMaxWorkersToPopulate'],
    ...['fifoMaxWorkersPerChunk', 'fifoMaxPreemptInterval', 'fifoProtectiveDequeue'],
    ...['pluginCacheEnable', 'pluginCacheRefreshInterval', 'workerQueueTimeLimit', 'postProcessTimeout'],
    ...['eventBasedEnable', 'eventBasedPlugins', 'eventBasedCheckInterval', 'eventBasedTimeWindow'],
    ...['eventBasedCheckMaxEvents', 'eventBasedEventLifetime', 'eventBasedRemoveMaxEvents'],
  ],
  sweeper: [
    ...['nThreads', 'maxWorkers', 'checkInterval', 'sleepTime', 'keepFinished', 'keepFailed'],
    ...['keepCancelled', 'keepMissed', 'keepPending', 'diskCleanUpInterval', 'diskHighWatermark'],
  ],
  credmanager: [
    ...['moduleName', 'className', 'inCertFile', 'certFile', 'outCertFile', 'voms', 'pluginConfigs'],
    'sleepTime',
  ],
  cacher: ['data', 'refreshInterval', 'sleepTime'],
  commandmanager: ['commands_bulk_size', 'sleepTime'],
  propagator: [
    ...['nThreads', 'maxJobs', 'nJobsInBulk', 'maxWorkers', 'nWorkersInBulk', 'maxDialogs'],
    ...['minMessageLevel', 'lockInterval', 'updateInterval', 'sleepTime'],
  ],
  pandacon: [
    ...[
      'timeout',
      'nConnections',
      'auth_type',
      'auth_token',
      'auth_origin',
      'ca_cert',
      'cert_file',
      'key_file',
    ],
    ...['pandaURL', 'pandaURLSSL', 'server_api_url', 'server_api_url_ssl', 'cache_api_url_ssl', 'iddsURL'],
    ...[
      'pandaCacheURL',
      'pandaCacheURL_W',
      'pandaCacheURL_R',
      'pandaCacheURL_W_path',
      'pandaCacheURL_R_path',
    ],
    ...['verbose', 'useInspect', 'getEventsChunkSize', 'multihost_auth_config'],
  ],
};

/** Sections that thresher does not read at all. */
export const unreadSections: readonly string[] = [
  ...['db', 'fifo', 'communicator', 'jobfetcher', 'preparator'],
  ...['stager', 'zipper', 'eventfeeder', 'payload_interaction', 'frontend', 'watcher', 'apfmon'],
  ...['service_monitor', 'googlecloud', 'file_syncer', 'log_level'],
];

export const harvesterSections: readonly string[] = [...Object.keys(sharedSections), ...unreadSections];

/** Harvester's keys of a section that thresher has too. */
export function harvesterKeys(section: string): readonly string[] {
  return sharedSections[section] ?? [];
}

/** Something that Harvester would do and thresher does not: more than a key without effect. */
interface Missed {
  /** Whether the value asks for it. */
  readonly when: (value: unknown) => boolean;
  readonly message: string;
}

/**
 * By `section.key`. Each would start more workers or other queues than its operator expects, keep workers for another time, or submit and
 * look in another way.
 */
export const missedSettings: Readonly<Record<string, Missed>> = {
  'master.extraPluginConfigs': {
    when: (value) => isObject(value) && Object.keys(value).length > 0,
    message:
      'a queue says this itself, by ceARCGridType in its submitter section (for HTCondorSubmitter.submit_arc_grid_type) and useCondorHistory in its monitor section (for HTCondorMonitor.use_condor_history)',
  },
  'qconf.pilotVersion': {
    when: (value) => value !== null,
    message: 'queues whose pilot_version in CRIC is another one are not left out',
  },
  'submitter.minSubmissionInterval': {
    when: (value) => value !== 0 && value !== null,
    message: 'there is no pause between submissions to a queue; submitter.submissionRate limits their rate',
  },
  'monitor.workerQueueTimeLimit': {
    when: (value) => value !== 172_800 && value !== null,
    message:
      'the limit is an option of each queue, 172800 (s) by default; set it in the monitor sections, as queueTimeLimit of HTCondorMonitor and podQueueTimeLimit of K8sMonitor',
  },
};

/** Keys that the link to the PanDA server needs no setting for, and why. By `section.key`. */
export const needlessSettings: Readonly<Record<string, string>> = {
  'pandacon.pandaURL': 'it asks the PanDA server by HTTPS alone',
  'pandacon.server_api_url': 'it asks the PanDA server by HTTPS alone',
  'pandacon.cache_api_url_ssl': 'it uploads no files of jobs',
  'pandacon.nConnections': 'it keeps the few connections that it needs',
  'pandacon.verbose': 'log.level is for the whole log',
  'pandacon.useInspect': 'log.level is for the whole log',
  'pandacon.getEventsChunkSize': 'it fetches no jobs',
  'monitor.workerQueueTimeLimit':
    'this is the default of queueTimeLimit of HTCondorMonitor and podQueueTimeLimit of K8sMonitor',
  'propagator.nThreads': 'one loop reports all workers',
  'propagator.maxJobs': 'it fetches no jobs',
  'propagator.nJobsInBulk': 'it fetches no jobs',
  'propagator.maxWorkers': 'all changes are reported',
  'propagator.lockInterval': 'one loop reports all workers',
  'propagator.sleepTime': 'changes are reported as they come',
};

/** Settings that only some logins need: an unset one is judged with the login, and not by itself. */
export const loginSettings: ReadonlySet<string> = new Set(
  ['cert_file', 'key_file', 'auth_token', 'auth_origin', 'ca_cert', 'multihost_auth_config'].map(
    (key) => `pandacon.${key}`,
  ),
);
