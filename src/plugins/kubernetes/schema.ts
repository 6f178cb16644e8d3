import type { Static } from 'typebox';
import Type from '../../util/type.ts';
import type { ConnectionHost } from '../contracts/backend.ts';
import { withoutEffect } from '../contracts/without-effect.ts';

const text = (description: string) => Type.Optional(Type.String({ description }));
const filled = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
const percent = (description: string) => Type.Optional(Type.Number({ exclusiveMinimum: 0, description }));
const natural = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));
const atOnce = (description: string) => Type.Integer({ default: 32, minimum: 1, maximum: 256, description });

/** Which cluster and namespace: equal for submitter, monitor and sweeper, so put them into `common`. */
const where = {
  k8s_config_file: filled(
    'Kubeconfig. Relative paths count from the queue file. Default: the service account of the Pod that thresher runs in.',
  ),
  k8s_context: filled('Context of the kubeconfig. Default: its current one.'),
  k8s_namespace: text(
    'Namespace of the Jobs. Default, also for an empty one: `k8s.namespace`, else `default`.',
  ),
  'k8s.namespace': text("The same, under CRIC's name."),
  requestsPerSecond: Type.Optional(
    Type.Number({
      minimum: 1,
      description:
        'Requests per second to the API server, of all queues on that cluster together, after a burst of twice as many; the lowest value of these queues counts. Default: 200. thresher also obeys the server (429).',
    }),
  ),
};

/** Options with CRIC's names, which CRIC says where the queue file does not (docs/cric.md). */
const cric = {
  'k8s.host_image': filled('Image of the pilot, instead of the one in the template.'),
  'k8s.volumes.pilot_dir_mount': Type.String({
    default: '/pilotdir',
    pattern: '^/',
    description:
      'Directory of the pilot: its `HOME` and `TMPDIR` unless the template sets them, and the mount of `pilot-dir`.',
  }),
  'k8s.annotations.safe_to_evict': Type.Optional(
    Type.Boolean({ description: 'Lets the cluster autoscaler end the Pod to remove its node.' }),
  ),
  'k8s.scheduler.use_score_mcore_affinity': Type.Boolean({
    default: true,
    description:
      'Single-core pilots prefer nodes that have pilots, so that whole nodes stay free for multi-core ones.',
  }),
  'k8s.scheduler.use_score_mcore_anti_affinity': Type.Boolean({
    default: false,
    description: 'Single-core and multi-core pilots avoid each other.',
  }),
  'k8s.scheduler.priorityClassName': filled('Priority class of the Pods.'),
  'k8s.scheduler.priorityClassName.score': filled('Priority class of Pods with resource type SCORE.'),
  'k8s.scheduler.priorityClassName.score_himem': filled('Priority class of Pods with SCORE_HIMEM.'),
  'k8s.scheduler.priorityClassName.mcore': filled('Priority class of Pods with MCORE.'),
  'k8s.scheduler.priorityClassName.mcore_himem': filled('Priority class of Pods with MCORE_HIMEM.'),
  'k8s.resources.requests.cpu_scheduling_ratio': percent('Instead of `cpuAdjustRatio`, %.'),
  'k8s.resources.requests.memory_scheduling_ratio': percent('Instead of `memoryAdjustRatio`, %.'),
  'k8s.resources.limits.use_memory_limit': Type.Boolean({
    default: false,
    description: 'Limit the memory of the pilot: Kubernetes kills a pilot that exceeds it.',
  }),
  'k8s.resources.limits.memory_limit_safety_factor': Type.Number({
    default: 100,
    minimum: 100,
    description: 'The limit in % of `minRamCount`.',
  }),
  'k8s.resources.limits.memory_limit_min_offset': Type.Number({
    default: 0,
    minimum: 0,
    description: 'The limit is at least this much above `minRamCount`, MiB.',
  }),
  'k8s.resources.use_ephemeral_storage_resource_specs': Type.Boolean({
    default: true,
    description:
      'Request and limit ephemeral storage by `maxDiskCount`, and mount an emptyDir as the directory of the pilot.',
  }),
  'k8s.resources.ephemeral_storage_offset': Type.Number({
    default: 0,
    minimum: 0,
    description: 'Added to `maxDiskCount`, MiB.',
  }),
  'k8s.resources.limits.ephemeral_storage_limit_safety_factor': Type.Number({
    default: 100,
    minimum: 100,
    description: 'The limit in % of the request.',
  }),
  'k8s.use_active_deadline_seconds': Type.Boolean({
    default: true,
    description: 'Kubernetes ends the Pod after `maxWalltime`, counted from the moment its node took it.',
  }),
};

/** Harvester: `K8sSubmitter` of `pandaharvester.harvestersubmitter.k8s_submitter`. */
export const K8sSubmitterConfig = Type.Object({
  ...where,
  k8s_yaml_file: Type.String({
    minLength: 1,
    description: 'YAML template of the Job. Relative paths count from the queue file.',
  }),
  pilotContainer: filled("Name of the pilot's container in the template. Default: the first."),
  onlyPilotContainer: Type.Boolean({
    default: false,
    description:
      'Start the container of the pilot alone, as Harvester does; init containers are kept. Default: start all containers of the template.',
  }),
  proxySecretPath: filled('Path of the proxy inside the container, below the mount of a Secret.'),
  x509UserProxy: filled(
    'Proxy file on this machine, which the pilot gets as `proxyContent` through a Secret. Only if `proxySecretPath` is not set.',
  ),
  tokenDir: filled('Directory of PanDA tokens inside the container.'),
  pandaTokenFilename: filled('Name of the token in it.'),
  pandaTokenKeyFilename: filled("Name of the token's key in it."),
  cpuAdjustRatio: Type.Number({
    default: 100,
    exclusiveMinimum: 0,
    description: 'Cores requested in % of `nCore`. The limit is `nCore`.',
  }),
  memoryAdjustRatio: Type.Number({
    default: 100,
    exclusiveMinimum: 0,
    description: 'Memory requested in % of `minRamCount`.',
  }),
  nProcesses: atOnce('Jobs created at once.'),
  logBaseURL: filled(
    'Address to which pilots write logs and from which operators read them, where neither `logs_frontend_w` and `logs_frontend_r` nor `pandacon` of the settings has one. `$hostname` is the short name of this machine.',
  ),
  logs_frontend_w: filled(
    'Address to which pilots write logs. Default: by `pandacon` of the settings, else `logBaseURL`.',
  ),
  logs_frontend_r: filled(
    'Address from which logs are read. Default: by `pandacon` of the settings, else `logBaseURL`.',
  ),
  schedulerName: filled(
    'Scheduler of the Pods, such as `node-packing` (templates/kubernetes/node-packing/).',
  ),
  ttlSecondsAfterFinished: Type.Integer({
    default: 172_800,
    minimum: 3600,
    description:
      'Kubernetes removes an ended Job after this, s, if the sweeper has not: a safety net. It is long, since a Job that is gone before the monitor saw its end counts as missed.',
  }),
  pilotsStarterConfigMap: text(
    'ConfigMap of your own with a `pilots_starter.py`, mounted at `/scratch/executables` and started if the template has no command; `""`: none, and the image\'s own command runs. Default: thresher\'s own, if the template has no command or names `EXEC_DIR`.',
  ),
  pilot_url: filled('Address from which the wrapper gets the pilot.'),
  pilot_version: Type.String({ default: 'current', description: 'Version of the pilot.' }),
  python_version: Type.String({ default: '3', description: "The pilot's Python." }),
  ...cric,
});
export type K8sSubmitterConfig = Static<typeof K8sSubmitterConfig>;

/** Harvester: `K8sMonitor` of `pandaharvester.harvestermonitor.k8s_monitor`. */
export const K8sMonitorConfig = Type.Object({
  ...where,
  nProcesses: withoutEffect('one watch follows all workers'),
  cancelUnknown: withoutEffect('as in Harvester, a worker of unknown state stays as it was'),
  podQueueTimeLimit: Type.Integer({
    default: 172_800,
    minimum: 1,
    description: 'Seconds that a worker may wait for its pilot to start before thresher gives it up.',
  }),
  failedLogLines: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 200,
    description:
      "Number of last lines of a failed pilot's log that thresher keeps with the worker (at most 4 KiB): `thresher worker ID` shows them after the Pod is gone.",
  }),
  payloadType: filled('`atlas_pilot_wrapper`: thresher puts its exit statuses 1, 2, 64 and 80 into words.'),
  pendingRules: Type.Array(
    Type.Object(
      {
        reason: Type.String({ minLength: 1, description: 'Regular expression for the whole reason.' }),
        graceSeconds: Type.Integer({ minimum: 0, default: 0 }),
        then: Type.Union([Type.Literal('wait'), Type.Literal('fail')]),
      },
      { additionalProperties: false },
    ),
    {
      default: [],
      description:
        'Before the rules of docs/kubernetes-states.md: `{reason, graceSeconds, then}`, with `then` `fail` (after that many seconds) or `wait` (without end).',
    },
  ),
});
export type K8sMonitorConfig = Static<typeof K8sMonitorConfig>;

/** Harvester: `K8sSweeper` of `pandaharvester.harvestersweeper.k8s_sweeper`. */
export const K8sSweeperConfig = Type.Object({
  ...where,
  nProcesses: atOnce('Jobs deleted at once.'),
  killGrace: natural(
    "Seconds between TERM and KILL, if that is less than the Pod's own grace. Default: `terminationGracePeriodSeconds` of the template, else Kubernetes' 30.",
  ),
});
export type K8sSweeperConfig = Static<typeof K8sSweeperConfig>;

/** The daemon as one namespace sees it. */
export type K8sDaemon = ConnectionHost<K8sSubmitterConfig, K8sMonitorConfig, K8sSweeperConfig>;

/** Which cluster and namespace, by any of the three sections. */
export type Where = Pick<K8sSweeperConfig, keyof typeof where>;

/** An empty namespace is none: Harvester's examples have it. */
export function namespaceOf(config: Pick<Where, 'k8s_namespace' | 'k8s.namespace'>): string {
  return [config.k8s_namespace, config['k8s.namespace']].find((name) => name) ?? 'default';
}
