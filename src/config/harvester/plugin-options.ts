/** Options that Harvester writes into or reads from any section. Source: queue_config_mapper, plugin_factory. */
const everySection: readonly string[] = [
  ...['name', 'module', 'siteName', 'queueName', 'middleware', 'original_config', 'bareFunctions'],
];

/**
 * Options that other parts of Harvester read from any submitter's section: adjuster, throttlers, APFMon, worker makers.
 */
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
const table: Readonly<Record<string, readonly string[]>> = {
  HTCondorSubmitter: [
    ...everySubmitter,
    ...['nProcesses', 'nNode', 'executableFile', 'logDir', 'templateFile', 'CEtemplateDir'],
    ...['x509UserProxy', 'x509UserProxyAnalysis', 'tokenDir', 'tokenDirAnalysis', 'useAnalysisCredentials'],
    ...['pandaTokenFilename', 'pandaTokenDir', 'pandaTokenKeyPath'],
    ...['useCRIC', 'useAtlasCRIC', 'useAtlasAGIS', 'useCRICGridCE', 'useAtlasGridCE'],
    ...['condorSchedd', 'condorPool', 'condorHostConfig', 'useSpool', 'minBulkToRandomizedSchedd'],
    // The last is known to submit templates only; files that do without CRIC set it.
    ...['rcPilotRandomWeightPermille', 'ceHostname', 'ceQueueName', 'ceARCGridType'],
  ],
  HTCondorMonitor: [
    ...['nProcesses', 'cancelUnknown', 'heldTimeout', 'useCondorHistory', 'useCondorHistoryMaxAge'],
    ...['submissionHost_list', 'condorHostConfig_list', 'payloadType'],
  ],
  HTCondorSweeper: ['preparatorBasePath'],
  K8sSubmitter: [
    ...[...everySubmitter, ...kubernetes, 'k8s_yaml_file', 'nProcesses', 'tokenDir', 'pandaTokenFilename'],
    ...['pandaTokenKeyFilename', 'proxySecretPath', 'proxySecretPathAnalysis'],
  ],
  K8sMonitor: [...kubernetes, 'nProcesses', 'cancelUnknown', 'podQueueTimeLimit', 'payloadType'],
  K8sSweeper: kubernetes,
  SharedFileMessenger: [
    ...['accessPoint', 'jobSpecFileFormat', 'jobSpecFileName', 'stripJobParams', 'scanInPostProcess'],
    ...['leftOverPatterns', 'leftOverZipPatterns', 'postProcessInSubDir', 'outputSubDir', 'subTarballName'],
    ...['maxWorkersForZip', 'worker_heartbeat'],
  ],
  SimpleWorkerMaker: [
    ...['jobAttributesToUse', 'pilotTypeRandomWeightsPermille', 'nJobsPerWorker', 'nWorkersPerJob'],
    ...['nReadyResources', 'maxWorkersPerJobInTotal', 'maxWorkersPerJobPerCycle'],
  ],
  // They do nothing in Harvester either, and read no option of their own.
  DummyPreparator: [],
  DummyBulkPreparator: [],
  DummyStager: [],
  DummyBulkStager: [],
  DummyZipper: [],
  SimpleThrottler: ['logicType', 'rulesForMissed'],
  TinyThrottler: [
    ...['logicType', 'rulesForMissed', 'rulesForSiteFamilySubmitted', 'rulesForSiteFamilyRunning'],
    'rulesForSiteFamilySubmittedRunning',
  ],
};

/** Options that Harvester reads from this section with any plugin. */
export function readAnyway(section: string): readonly string[] {
  return section === 'submitter' ? [...everySection, ...everySubmitter] : everySection;
}

/** Options that a plugin of Harvester reads. Undefined if they are not known. */
export function knownOptions(plugin: string): readonly string[] | undefined {
  return Object.hasOwn(table, plugin) ? [...everySection, ...(table[plugin] ?? [])] : undefined;
}
