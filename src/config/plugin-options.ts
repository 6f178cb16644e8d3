/** What a value of an option names on this machine, so that it can be looked for. */
export type NamedThing = 'file' | 'directory';

/** Options of a plugin of Harvester. */
export interface KnownOptions {
  readonly names: readonly string[];
  /** Those whose value must exist here before a worker can be submitted. */
  readonly mustExist: Readonly<Record<string, NamedThing>>;
}

/** What Harvester puts into or reads from any section. Source: queue_config_mapper, plugin_factory. */
const everySection: readonly string[] = [
  ...['name', 'module', 'siteName', 'queueName', 'middleware', 'original_config', 'bareFunctions'],
];

/** What other parts of Harvester read from any submitter's section: adjuster, throttlers, APFMon, worker makers. */
const everySubmitter: readonly string[] = [
  ...[
    'nCoreFactor',
    'noPilotsWhenNoActiveJobs',
    'computingElements',
    'ceEndpoint',
    'nCorePerNode',
    'logBaseURL',
  ],
  // Read here instead of CRIC: the size of a worker.
  ...['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'],
];

const kubernetes: readonly string[] = ['k8s_config_file', 'k8s_namespace'];

/**
 * Plugins of Harvester with the options that their code reads, so that misspelt and stale ones are found also where the
 * plugin itself does not exist here yet. A plugin that is not in this table may have any options.
 * Source: Harvester 0.7.5, August 2026. `k8s_namespace` is read through `${common.k8s_namespace}` of credmanagers.
 */
const table: Readonly<Record<string, Partial<KnownOptions>>> = {
  HTCondorSubmitter: {
    names: [
      ...everySubmitter,
      ...['nProcesses', 'nNode', 'executableFile', 'logDir', 'templateFile', 'CEtemplateDir'],
      ...['x509UserProxy', 'x509UserProxyAnalysis', 'tokenDir', 'tokenDirAnalysis', 'useAnalysisCredentials'],
      ...['pandaTokenFilename', 'pandaTokenDir', 'pandaTokenKeyPath'],
      ...['useCRIC', 'useAtlasCRIC', 'useAtlasAGIS', 'useCRICGridCE', 'useAtlasGridCE'],
      ...['condorSchedd', 'condorPool', 'condorHostConfig', 'useSpool', 'minBulkToRandomizedSchedd'],
      // The last is known to submit templates only; files that do without CRIC set it.
      ...['rcPilotRandomWeightPermille', 'ceHostname', 'ceQueueName', 'ceARCGridType'],
    ],
    mustExist: {
      templateFile: 'file',
      executableFile: 'file',
      x509UserProxy: 'file',
      x509UserProxyAnalysis: 'file',
      condorHostConfig: 'file',
      CEtemplateDir: 'directory',
      tokenDir: 'directory',
      tokenDirAnalysis: 'directory',
      pandaTokenDir: 'directory',
    },
  },
  HTCondorMonitor: {
    names: [
      ...['nProcesses', 'cancelUnknown', 'heldTimeout', 'useCondorHistory', 'useCondorHistoryMaxAge'],
      ...['submissionHost_list', 'condorHostConfig_list', 'payloadType'],
    ],
  },
  HTCondorSweeper: { names: ['preparatorBasePath'] },
  // `tokenDir` and `proxySecretPath` are paths inside the Pod: nothing to look for here.
  K8sSubmitter: {
    names: [
      ...[...everySubmitter, ...kubernetes, 'k8s_yaml_file', 'nProcesses', 'tokenDir', 'pandaTokenFilename'],
      ...['pandaTokenKeyFilename', 'proxySecretPath', 'proxySecretPathAnalysis'],
    ],
    mustExist: { k8s_yaml_file: 'file', k8s_config_file: 'file' },
  },
  K8sMonitor: {
    names: [...kubernetes, 'nProcesses', 'cancelUnknown', 'podQueueTimeLimit', 'payloadType'],
    mustExist: { k8s_config_file: 'file' },
  },
  K8sSweeper: { names: kubernetes, mustExist: { k8s_config_file: 'file' } },
  SharedFileMessenger: {
    names: [
      ...['accessPoint', 'jobSpecFileFormat', 'jobSpecFileName', 'stripJobParams', 'scanInPostProcess'],
      ...['leftOverPatterns', 'leftOverZipPatterns', 'postProcessInSubDir', 'outputSubDir', 'subTarballName'],
      ...['maxWorkersForZip', 'worker_heartbeat'],
    ],
  },
  SimpleWorkerMaker: {
    names: [
      ...['jobAttributesToUse', 'pilotTypeRandomWeightsPermille', 'nJobsPerWorker', 'nWorkersPerJob'],
      ...['nReadyResources', 'maxWorkersPerJobInTotal', 'maxWorkersPerJobPerCycle'],
    ],
  },
  SimpleThrottler: { names: ['logicType', 'rulesForMissed'] },
  TinyThrottler: {
    names: [
      ...['logicType', 'rulesForMissed', 'rulesForSiteFamilySubmitted', 'rulesForSiteFamilyRunning'],
      'rulesForSiteFamilySubmittedRunning',
    ],
  },
};

/** What Harvester reads from this section whatever plugin it names. */
export function readAnyway(section: string): readonly string[] {
  return section === 'submitter' ? [...everySection, ...everySubmitter] : everySection;
}

/** Undefined where it is not known what the plugin reads. */
export function knownOptions(plugin: string): KnownOptions | undefined {
  if (!Object.hasOwn(table, plugin)) return undefined;
  const { names = [], mustExist = {} } = table[plugin] ?? {};
  return { names: [...everySection, ...names], mustExist };
}
