import { nearest } from '../../util/nearest.ts';

/** A plugin that Harvester has, or had. */
export interface HarvesterPlugin {
  /** The section that names it; `credmanager` for the entries of a queue's `credmanagers`. */
  readonly kind: HarvesterKind;
  readonly module: string;
  readonly name: string;
  /** Harvester itself dropped it. */
  readonly gone: boolean;
}

export type HarvesterKind = keyof typeof present;

/** Per section: last part of the module, and class. Source: Harvester 0.7.5, August 2026. */
const present = {
  submitter: {
    act_submitter: 'ACTSubmitter',
    cobalt_submitter: 'CobaltSubmitter',
    dummy_mcore_submitter: 'DummyMcoreSubmitter',
    dummy_singleton_submitter: 'DummySingletonSubmitter',
    dummy_submitter: 'DummySubmitter',
    gitlab_submitter: 'GitlabSubmitter',
    globus_compute_slurm_submitter: 'GlobusComputeSlurmSubmitter',
    globus_compute_submitter: 'GlobusComputeSubmitter',
    htcondor_submitter: 'HTCondorSubmitter',
    k8s_submitter: 'K8sSubmitter',
    lsf_submitter: 'LSFSubmitter',
    pbs_submitter: 'PBSSubmitter',
    saga_submitter: 'SAGASubmitter',
    slurm_submitter: 'SlurmSubmitter',
    slurm_submitter_jinja: 'SlurmSubmitterJinja',
    slurm_submitter_rubin: 'SlurmSubmitter',
    superfacility_submitter: 'SuperfacilitySubmitter',
  },
  monitor: {
    act_monitor: 'ACTMonitor',
    cobalt_monitor: 'CobaltMonitor',
    dummy_mcore_monitor: 'DummyMcoreMonitor',
    dummy_monitor: 'DummyMonitor',
    gitlab_monitor: 'GitlabMonitor',
    globus_compute_monitor: 'GlobusComputeMonitor',
    globus_compute_slurm_monitor: 'GlobusComputeSlurmMonitor',
    htcondor_monitor: 'HTCondorMonitor',
    k8s_monitor: 'K8sMonitor',
    lsf_monitor: 'LSFMonitor',
    pbs_monitor: 'PBSMonitor',
    saga_monitor: 'SAGAMonitor',
    slurm_bulk_monitor: 'SlurmBulkMonitor',
    slurm_monitor: 'SlurmMonitor',
    slurm_squeue_monitor: 'SlurmSqueueMonitor',
    superfacility_monitor: 'SuperfacilityMonitor',
  },
  sweeper: {
    act_sweeper: 'ACTSweeper',
    cobalt_sweeper: 'CobaltSweeper',
    dummy_sweeper: 'DummySweeper',
    gitlab_sweeper: 'GitlabSweeper',
    htcondor_sweeper: 'HTCondorSweeper',
    k8s_sweeper: 'K8sSweeper',
    lsf_sweeper: 'LSFSweeper',
    pbs_sweeper: 'PBSSweeper',
    saga_sweeper: 'SAGASweeper',
    slurm_sweeper: 'SlurmSweeper',
    superfacility_sweeper: 'SuperfacilitySweeper',
  },
  messenger: {
    act_messenger: 'ACTMessenger',
    http_server_messenger: 'HttpServerMessenger',
    k8s_messenger: 'K8sMessenger',
    shared_file_messenger: 'SharedFileMessenger',
  },
  workerMaker: {
    dummy_dynamic_worker_maker: 'DummyDynamicWorkerMaker',
    multijob_worker_maker: 'MultiJobWorkerMaker',
    multinode_worker_maker: 'MultiNodeWorkerMaker',
    simple_bf_es_worker_maker: 'SimpleBackfillESWorkerMaker',
    simple_worker_maker: 'SimpleWorkerMaker',
  },
  preparator: {
    analysis_aux_preparator: 'AnalysisAuxPreparator',
    aux_preparator: 'AuxPreparator',
    dummy_bulk_preparator: 'DummyBulkPreparator',
    dummy_preparator: 'DummyPreparator',
    go_bulk_preparator: 'GlobusBulkPreparator',
    go_preparator: 'GoPreparator',
    gridftp_preparator: 'GridFtpPreparator',
    pilotmover_mt_preparator: 'PilotmoverMTPreparator',
    pilotmover_mt_preparator_kari: 'PilotmoverMTPreparator',
    pilotmover_preparator: 'PilotmoverPreparator',
    rse_direct_preparator: 'RseDirectPreparator',
    rucio_preparator: 'RucioPreparator',
    xrdcp_preparator: 'XrdcpPreparator',
  },
  stager: {
    act_stager: 'ACTStager',
    dummy_bulk_stager: 'DummyBulkStager',
    dummy_stager: 'DummyStager',
    fts_stager: 'FtsStager',
    go_bulk_stager: 'GlobusBulkStager',
    go_rucio_stager: 'GlobusRucioStager',
    go_stager: 'GlobusStager',
    gridftp_stager: 'GridFtpStager',
    rse_direct_stager: 'RseDirectStager',
    rucio_rse_direct_stager: 'RucioRseDirectStager',
    rucio_stager: 'RucioStager',
    rucio_stager_hpc: 'RucioStagerHPC',
    rucio_stager_hpc_minikui: 'RucioStagerHPC',
    xrdcp_stager: 'XrdcpStager',
    yoda_rse_direct_stager: 'YodaRseDirectStager',
    yoda_rucio_rse_direct_stager: 'YodaRucioRseDirectStager',
  },
  zipper: {
    dummy_zipper: 'DummyZipper',
    simple_zipper: 'SimpleZipper',
    ssh_zipper: 'SshZipper',
  },
  extractor: {
    analysis_extractor: 'AnalysisExtractor',
    aux_extractor: 'AuxExtractor',
  },
  throttler: {
    simple_throttler: 'SimpleThrottler',
    tiny_throttler: 'TinyThrottler',
  },
  credmanager: {
    arcproxy_cred_manager: 'ArcproxyCredManager',
    dummy_cred_manager: 'DummyCredManager',
    grid_cred_manager: 'GridCredManager',
    iam_token_cred_manager: 'IamTokenCredManager',
    iam_token_cred_manager_globus_compute: 'IamTokenCredManagerRemoteGlobusCompute',
    k8s_secret_cred_manager: 'K8sSecretCredManager',
    no_voms_cred_manager: 'NoVomsCredManager',
    proxy_cache_cred_manager: 'ProxyCacheCredManager',
    superfacility_cred_manager: 'SuperfacilityCredManager',
    token_key_cred_manager: 'TokenKeyCredManager',
  },
} as const;

/** Plugins that older files may still name. Source: Harvester's history. */
const dropped: Partial<Record<HarvesterKind, Readonly<Record<string, string>>>> = {
  submitter: {
    apfgrid_submitter: 'APFGridSubmitter',
    arc_submitter: 'ARCSubmitter',
    cloud_google_submitter: 'GoogleSubmitter',
    cloud_openstack_submitter: 'CloudOpenstackSubmitter',
    lancium_submitter: 'LanciumSubmitter',
  },
  monitor: {
    apfgrid_monitor: 'APFGridMonitor',
    arc_monitor: 'ARCMonitor',
    cloud_google_monitor: 'GoogleMonitor',
    cloud_openstack_monitor: 'CloudOpenstackMonitor',
    lancium_monitor: 'LanciumMonitor',
  },
  sweeper: {
    apfgrid_sweeper: 'APFGridSweeper',
    arc_sweeper: 'ARCSweeper',
    cloud_google_sweeper: 'GoogleSweeper',
    cloud_openstack_sweeper: 'CloudOpenstackSweeper',
    lancium_sweeper: 'LanciumSweeper',
  },
  messenger: { arc_messenger: 'ARCMessenger' },
  credmanager: { lancium_cred_manager: 'LanciumCredManager' },
};

/** Folders whose name is not "harvester" and the section's name. */
const folders: Partial<Record<HarvesterKind, string>> = { workerMaker: 'workermaker' };

/** All plugins of Harvester; the dropped ones come last. */
export const harvesterPlugins: readonly HarvesterPlugin[] = [
  ...listed(present, false),
  ...listed(dropped, true),
];

function listed(table: Partial<Record<string, Readonly<Record<string, string>>>>, gone: boolean) {
  return Object.entries(table).flatMap(([key, plugins = {}]) => {
    const kind = key as HarvesterKind;
    const folder = `pandaharvester.harvester${folders[kind] ?? kind}`;
    return Object.entries(plugins).map(([module, name]) => ({
      kind,
      module: `${folder}.${module}`,
      name,
      gone,
    }));
  });
}

export function harvesterPlugin(
  kind: HarvesterKind,
  module: string,
  name: string,
): HarvesterPlugin | undefined {
  return harvesterPlugins.find(
    (plugin) => plugin.kind === kind && plugin.module === module && plugin.name === name,
  );
}

/** The kind this pair would be right for, where it stands in the section of another. */
export function kindOf(module: string, name: string): HarvesterKind | undefined {
  return harvesterPlugins.find((plugin) => plugin.module === module && plugin.name === name)?.kind;
}

/**
 * The one of `pairs` that a `module` and `name` probably stand for, if the two do not belong together or one is
 * misspelt. If modules have several classes alike, the class whose module is right, or nearest, counts.
 */
export function meantPlugin<Pair extends { readonly module: string; readonly name: string }>(
  module: string,
  name: string,
  pairs: readonly Pair[],
): Pair | undefined {
  const sameModule = pairs.filter((pair) => pair.module === module);
  const nearName = nearest(
    name,
    sameModule.map((pair) => pair.name),
  );
  // A module with one class has named it already.
  const sure = sameModule.length === 1 ? sameModule[0] : sameModule.find((pair) => pair.name === nearName);
  if (sure !== undefined) return sure;
  const meantName = pairs.some((pair) => pair.name === name)
    ? name
    : nearest(
        name,
        pairs.map((pair) => pair.name),
      );
  if (meantName === undefined) return undefined;
  const named = pairs.filter((pair) => pair.name === meantName);
  const meantModule = nearest(
    module,
    named.map((pair) => pair.module),
  );
  return named.find((pair) => pair.module === meantModule) ?? named[0];
}
