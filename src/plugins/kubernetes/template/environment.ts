import { hostnameFor, withHostname } from '../../../util/hostname.ts';
import type { LogServer } from '../../contracts/context.ts';
import type { Requirements, Worker, WorkerToStart } from '../../../worker/worker.ts';
import { pilotOptions } from '../../contracts/pilot-options.ts';
import {
  identityPlaceholders,
  payloadPlaceholders,
  requirementPlaceholders,
  workerPlaceholders,
} from '../../contracts/placeholders.ts';
import type { K8sSubmitterConfig } from '../schema.ts';
import { executableDirectory } from './starter.ts';
import type { EnvEntry } from './template-shape.ts';

/** Values that fill a Job beside its worker. */
export interface FillOptions {
  /** Our mark. */
  readonly factoryId: string;
  readonly harvesterId: string;
  /** Host name of this machine, for `${hostname}`. */
  readonly hostname: string;
  readonly config: K8sSubmitterConfig;
  /** The log server of the settings. */
  readonly logServer?: LogServer;
  /** Secret with the proxy, and the key of it, where the pilot gets the proxy's content. */
  readonly proxySecret?: { readonly name: string; readonly key: string };
}

/** The names that `${name}` may use. */
export const knownPlaceholders: ReadonlySet<string> = new Set([
  ...identityPlaceholders,
  'jobName',
  ...requirementPlaceholders,
]);

export function placeholdersOf(worker: WorkerToStart, options: FillOptions): Record<string, string | number> {
  return {
    ...workerPlaceholders(worker, { ...options, hostname: hostnameFor({}, options.hostname) }),
    jobName: worker.name,
    ...payloadPlaceholders(worker.payload),
  };
}

/** Variables that say who the worker is: the template may name their place, not their value. */
export const identityNames: ReadonlySet<string> = new Set([
  ...['workerID', 'HARVESTER_WORKER_ID', 'HARVESTER_ID', 'PANDA_JSID', 'K8S_JOB_ID', 'THRESHER_FACTORY'],
]);

/** Every variable that a pilot may get: what `$name` may stand for beside the placeholders. */
const variableNames = [
  ...[...identityNames],
  ...['computingSite', 'pandaQueueName', 'resourceType', 'prodSourceLabel', 'jobType', 'pilotType'],
  ...['pilotUrlOpt', 'pythonOption', 'pilotVersion', 'proxySecretPath', 'proxyContent'],
  ...['PANDA_AUTH_ORIGIN', 'PANDA_AUTH_DIR', 'PANDA_AUTH_TOKEN', 'PANDA_AUTH_TOKEN_KEY'],
  ...['logs_frontend_w', 'logs_frontend_r', 'submit_mode', 'EXEC_DIR', 'TMPDIR', 'HOME', 'PANDA_HOSTNAME'],
  ...['storageRequestMiB', 'storageLimitMiB', 'nCore', 'minRamCount', 'maxWalltime', 'accessPoint'],
] as const;
export const knownNames: ReadonlySet<string> = new Set([...variableNames, ...knownPlaceholders]);

/** The name in a value that is exactly `$name`, as Harvester's templates have it. */
export function referenceIn(value: string): string | undefined {
  return /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1];
}

/**
 * The environment Harvester gives a pilot on Kubernetes, and what other backends of thresher give too. Every variable of it is
 * the same for the same worker. `$` in a value is doubled, since the kubelet expands `$(name)`.
 * Source: Harvester's k8s_utils and k8s_submitter.
 */
export function pilotEnvironment(
  worker: Worker,
  options: FillOptions,
  storage: Readonly<Record<string, string>>,
): Map<string, EnvEntry> {
  const { config } = options;
  const id = String(worker.workerId);
  const values: Record<string, string | undefined> = {
    HARVESTER_ID: options.harvesterId,
    HARVESTER_WORKER_ID: id,
    PANDA_JSID: `harvester-${options.harvesterId}`,
    THRESHER_FACTORY: options.factoryId,
    K8S_JOB_ID: worker.name,
    workerID: id,
    computingSite: worker.computingSite,
    pandaQueueName: worker.queue,
    resourceType: worker.requirements.resourceType,
    ...pilotVariables(worker.requirements, config),
    proxySecretPath: config.proxySecretPath,
    PANDA_AUTH_ORIGIN: 'atlas.pilot',
    PANDA_AUTH_DIR: config.tokenDir,
    PANDA_AUTH_TOKEN: config.pandaTokenFilename,
    PANDA_AUTH_TOKEN_KEY: config.pandaTokenKeyFilename,
    ...logPlaces(options),
    submit_mode: 'PULL',
    EXEC_DIR: executableDirectory,
    TMPDIR: config['k8s.volumes.pilot_dir_mount'],
    HOME: config['k8s.volumes.pilot_dir_mount'],
    nCore: String(worker.requirements.nCore),
    minRamCount: String(worker.requirements.minRamCount),
    maxWalltime: String(worker.requirements.maxWalltime),
    accessPoint: worker.accessPoint,
    ...storage,
  };
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, { name, value: inert(value) }] as const],
  );
  const { proxySecret } = options;
  const nodeName = { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } };
  return new Map<string, EnvEntry>([
    ...given,
    ['PANDA_HOSTNAME', { name: 'PANDA_HOSTNAME', valueFrom: nodeName }],
    ...(proxySecret === undefined
      ? []
      : [
          [
            'proxyContent',
            { name: 'proxyContent', valueFrom: { secretKeyRef: { ...proxySecret } } },
          ] as const,
        ]),
  ]);
}

/**
 * The places for writing and reading a pilot's log: by the queue's own options, else by `[pandacon]` of the settings, else by `logBaseURL`.
 * Source: Harvester's k8s_submitter, which reads `[pandacon]` alone. Queues have `logBaseURL` for other submitters, and it may take no uploads.
 */
export function logPlaces({ config, hostname, logServer }: FillOptions): {
  readonly logs_frontend_w: string | undefined;
  readonly logs_frontend_r: string | undefined;
} {
  const { logBaseURL } = config;
  const place = (url: string | undefined) =>
    url === undefined ? undefined : withHostname(url, hostnameFor({}, hostname));
  return {
    logs_frontend_w: place(config.logs_frontend_w ?? logServer?.write ?? logBaseURL),
    logs_frontend_r: place(config.logs_frontend_r ?? logServer?.read ?? logBaseURL),
  };
}

/** The address of a worker's log, by the name that Harvester's starter gives it. */
export function logUrlOf({ workerId }: Worker, options: FillOptions): string | undefined {
  const { logs_frontend_r: base } = logPlaces(options);
  return base === undefined ? undefined : `${base}/${options.harvesterId}_${workerId}_gz.out`;
}

/** Text that the kubelet hands on as it is. Source: Kubernetes' third_party/forked/golang/expansion. */
export function inert(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** The type alone decides on Kubernetes: thresher draws no chance, so that the same intent gives the same Job. */
function pilotVariables(requirements: Requirements, config: K8sSubmitterConfig): Record<string, string> {
  const pilot = pilotOptions(requirements, config, () => 1);
  return {
    prodSourceLabel: pilot.jobLabel,
    jobType: pilot.jobType,
    pilotType: pilot.pilotType,
    pilotUrlOpt: pilot.urlOption,
    pythonOption: pilot.pythonOption,
    pilotVersion: pilot.version,
  };
}
