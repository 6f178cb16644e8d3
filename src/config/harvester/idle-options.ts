/** An effect that an option lacks here, and whether the queue therefore behaves differently than with Harvester. */
export interface Idle {
  readonly why: string;
  readonly missed: boolean;
}

const naming = 'the names are made from the name of the queue';
const noMiddleware = 'it belongs to a middleware, and thresher has none';
const pushOnly = 'it is for the jobs of push queues, and thresher takes no jobs yet';
const elsewhere = 'only the HTCondor backend sends workers to computing elements';

/**
 * Options of plugin sections that Harvester reads and no plugin of thresher does, whatever plugin the section names.
 * One that is missing here is told without a reason.
 */
const reasons: Readonly<Record<string, string>> = {
  siteName: naming,
  queueName: naming,
  original_config: noMiddleware,
  bareFunctions: noMiddleware,
  ceEndpoint: elsewhere,
  logBaseURL: 'this backend makes no addresses of logs',
  proxySecretPathAnalysis: 'all pilots of a queue have one proxy; set proxySecretPath',
  nJobsPerWorker: pushOnly,
  nWorkersPerJob: pushOnly,
  nReadyResources: pushOnly,
  maxWorkersPerJobInTotal: pushOnly,
  maxWorkersPerJobPerCycle: pushOnly,
  jobSpecFileFormat: pushOnly,
  jobSpecFileName: pushOnly,
  stripJobParams: pushOnly,
  scanInPostProcess: pushOnly,
  leftOverPatterns: pushOnly,
  leftOverZipPatterns: pushOnly,
  postProcessInSubDir: pushOnly,
  outputSubDir: pushOnly,
  subTarballName: pushOnly,
  maxWorkersForZip: pushOnly,
  worker_heartbeat: pushOnly,
};

/** Why an option that Harvester reads does nothing here. */
export function whyIdle(option: string): Idle {
  const why = Object.hasOwn(reasons, option) ? reasons[option] : undefined;
  return { why: why ?? 'thresher does not read it', missed: false };
}

/**
 * Why `middleware` does nothing. Harvester takes the block of the queue that it names for the plugin, and lets that one work on
 * another machine; a name that the queue has no block for is ignored there too. Source: Harvester's queue_config_mapper.
 */
export function whyNoMiddleware(named: unknown, queue: Readonly<Record<string, unknown>>): Idle {
  const there = typeof named === 'string' && Object.hasOwn(queue, named);
  if (!there) return { why: `the queue has no block ${JSON.stringify(named)}`, missed: false };
  const why = `thresher has no middleware: where Harvester works through "${named}", thresher works on this machine`;
  return { why, missed: true };
}
