/** How a key of interLink's plugins is read. */
export type KeyType = 'text' | 'boolean' | 'texts' | 'port' | 'socket' | 'taints';

export interface MappedKey {
  /** Option of `sources.interlink`. */
  readonly option: string;
  readonly type: KeyType;
}

/**
 * Keys of interLink's plugins, and the options that they are here. A later key does not replace an earlier one.
 * Source: SidecarConfig.yaml of its HTCondor plugin, SlurmConfig.yaml of its slurm plugin f8451d9.
 */
export const mappedKeys: Readonly<Record<string, MappedKey>> = {
  CommandPrefix: { option: 'commandPrefix', type: 'text' },
  ExportPodData: { option: 'exportPodData', type: 'boolean' },
  DataRootFolder: { option: 'dataRoot', type: 'text' },
  SingularityPath: { option: 'runtime', type: 'text' },
  SingularityDefaultOptions: { option: 'runtimeOptions', type: 'texts' },
  SidecarPort: { option: 'port', type: 'port' },
  Socket: { option: 'socket', type: 'socket' },
  Taints: { option: 'taints', type: 'taints' },
  ClusterResourcesScript: { option: 'capacityScript', type: 'text' },
  ResourceScriptPath: { option: 'capacityScript', type: 'text' },
  ImagePrefix: { option: 'imagePrefix', type: 'text' },
  SingularityPrefix: { option: 'imagePrefix', type: 'text' },
  EnableProbes: { option: 'probes', type: 'boolean' },
};

const commands = 'thresher runs the commands of HTCondor that PATH leads to; remove the key';
const tunnel = 'thresher makes no tunnel; write its commands into CommandPrefix';
const sizes = 'Pods ask by their resources, and thresher.submit has submit commands for all jobs';
const runtime = 'containers run by apptainer; write its options into SingularityDefaultOptions';

/** Keys of interLink's plugins that do nothing here, and what to do instead. */
export const keysWithoutEffect: Readonly<Record<string, string>> = {
  BashPath: 'jobs run by /bin/sh; remove the key',
  SbatchPath: commands,
  ScancelPath: commands,
  SqueuePath: commands,
  SinfoPath: commands,
  Tsocks: tunnel,
  TsocksPath: tunnel,
  TsocksLoginNode: tunnel,
  Namespace: 'thresher takes the Pods of all namespaces; remove the key',
  VKConfigPath: 'thresher does not read the configuration of the virtual kubelet; remove the key',
  Flavors: sizes,
  DefaultFlavor: sizes,
  DefaultUID: 'jobs belong to the user of the daemon; remove the key, or start thresher as another user',
  EnrootDefaultOptions: runtime,
  EnrootPrefix: runtime,
  EnrootPath: runtime,
  SidecarURL:
    'it belongs to the configuration of interLink; Socket or SidecarPort says where thresher listens',
  InterlinkAddress: 'it belongs to the configuration of interLink; remove the key',
  InterlinkPort: 'it belongs to the configuration of interLink; remove the key',
};
