import { fillPlaceholders, type PlaceholderValues } from '../../../util/placeholders.ts';
import { withoutEnd } from '../../../util/without-end.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import { labelOfPilot } from '../../contracts/pilot-options.ts';
import {
  type FillOptions,
  identityNames,
  inert,
  logUrlOf,
  pilotEnvironment,
  placeholdersOf,
  referenceIn,
} from './environment.ts';
import {
  isLabelValue,
  labelOf,
  logAnnotation,
  marksOf,
  pilotAnnotation,
  proxySecretLabel,
  starterLabel,
} from '../marks.ts';
import { payloadDirectory, payloadVolume, type Volume, withPayload } from './payload.ts';
import { fillResources, storageOf } from './resources.ts';
import { affinityOf, priorityClassOf, resourceTypeLabel } from './scheduling.ts';
import { namespaceOf } from '../schema.ts';
import { executableDirectory, starterCommand, starterName, starterOf, type StarterUse } from './starter.ts';
import { isShell } from './template-checks.ts';
import type { ContainerShape, EnvEntry, JobShape, PodSpecShape } from './template-shape.ts';
import type { KubernetesTemplate } from './template.ts';

/** The API server refuses unknown keys in no way that matters: this is what is sent. */
export type FilledJob = JobShape & {
  readonly metadata: { readonly name: string; readonly namespace: string };
};

const safeToEvict = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
const defaultContainer = 'kubectl.kubernetes.io/default-container';

/**
 * The Job of one worker. thresher keeps the operator's text, but for: the name, which is the worker's; the namespace,
 * which is the queue's; thresher's marks; variables that say who the worker is; placeholders; and the image, where the
 * queue has `k8s.host_image`. Pure: the same worker and options always give the same Job.
 */
export function fill(template: KubernetesTemplate, worker: WorkerToStart, options: FillOptions): FilledJob {
  const { config } = options;
  const job = fillTexts(template.job, placeholdersOf(worker, options)) as JobShape;
  const marks = marksOf(worker, options.factoryId);
  const { resourceType } = worker.requirements;
  const pods = job.spec.template;
  const logUrl = logUrlOf(worker, options);
  const log = logUrl === undefined ? {} : { [logAnnotation]: logUrl };
  // Harvester's labels, by which its dashboards and its affinity find Pods.
  const usual = {
    [resourceTypeLabel]: resourceType,
    prodSourceLabel: labelOfPilot(worker.requirements),
    pq: worker.queue,
  };
  return {
    ...job,
    metadata: {
      ...job.metadata,
      name: worker.name,
      namespace: namespaceOf(config),
      labels: {
        ...labels({ ...usual, ...job.metadata?.labels }),
        ...marks.labels,
        // By which the sweeper knows that its Secret is still needed.
        ...(options.proxySecret && { [proxySecretLabel]: options.proxySecret.name }),
        ...(starterIn(template, config)?.ours && { [starterLabel]: starterName }),
      },
      annotations: { ...job.metadata?.annotations, ...marks.annotations, ...log },
    },
    spec: {
      ttlSecondsAfterFinished: config.ttlSecondsAfterFinished,
      ...job.spec,
      template: {
        ...pods,
        metadata: {
          ...pods.metadata,
          labels: { ...labels({ ...usual, ...pods.metadata?.labels }), ...marks.labels },
          annotations: {
            ...autoscaling(config['k8s.annotations.safe_to_evict']),
            [defaultContainer]: template.pilot,
            ...pods.metadata?.annotations,
            ...marks.annotations,
            ...log,
            [pilotAnnotation]: template.pilot,
          },
        },
        spec: fillPodSpec(template, job, worker, options),
      },
    },
  };
}

function fillPodSpec(
  template: KubernetesTemplate,
  job: JobShape,
  worker: WorkerToStart,
  options: FillOptions,
): PodSpecShape {
  const { config } = options;
  const { requirements } = worker;
  const written = template.job.spec.template.spec;
  const spec = job.spec.template.spec;
  const storage = storageOf(requirements, config);
  const environment = pilotEnvironment(worker, options, {
    ...(storage && { storageRequestMiB: String(storage.request), storageLimitMiB: String(storage.limit) }),
  });
  const values = placeholdersOf(worker, options);
  const resolve = (name: string): Omit<EnvEntry, 'name'> => {
    const { value, valueFrom } = environment.get(name) ?? { value: inert(String(values[name] ?? '')) };
    return valueFrom === undefined ? { value: value ?? '' } : { valueFrom };
  };
  const containers = (filled: readonly ContainerShape[], raw: readonly ContainerShape[]) =>
    filled.map((one, index) => {
      if (raw[index]?.env === undefined) return one;
      return { ...one, env: fillReferences(one.env ?? [], raw[index].env, resolve) };
    });
  const dirs = config['k8s.resources.use_ephemeral_storage_resource_specs'];
  const starter = starterIn(template, config);
  const files = payloadVolume(
    worker,
    spec,
    spec.containers.find(({ name }) => name === template.pilot),
  );
  const added: Added[] = [
    ...(dirs
      ? [{ volume: { name: 'pilot-dir', emptyDir: {} }, mountPath: config['k8s.volumes.pilot_dir_mount'] }]
      : []),
    ...(starter === undefined
      ? []
      : [
          {
            volume: { name: starterName, configMap: { name: starter.configMap } },
            mountPath: executableDirectory,
          },
        ]),
    ...(files === undefined ? [] : [{ volume: files, mountPath: payloadDirectory }]),
  ];
  const main = containers(spec.containers, written.containers).map((one) =>
    one.name === template.pilot
      ? fillPilot(one, { environment, added, starter, hasFiles: files !== undefined }, worker, options)
      : one,
  );
  const priorityClassName = priorityClassOf(requirements.resourceType, config);
  const affinity = affinityOf(requirements.resourceType, config);
  // A deadline of the Job would count its time in the queue too.
  const deadline =
    config['k8s.use_active_deadline_seconds'] &&
    job.spec.activeDeadlineSeconds === undefined &&
    requirements.maxWalltime > 0
      ? requirements.maxWalltime
      : undefined;
  const volumes = [
    ...(spec.volumes ?? []),
    ...added
      .map(({ volume }) => volume)
      .filter(({ name }) => !spec.volumes?.some((one) => one.name === name)),
  ];
  return {
    ...(priorityClassName !== undefined && { priorityClassName }),
    ...(affinity !== undefined && { affinity }),
    ...(deadline !== undefined && { activeDeadlineSeconds: deadline }),
    ...(config.schedulerName !== undefined && { schedulerName: config.schedulerName }),
    ...spec,
    ...(spec.initContainers && {
      initContainers: containers(spec.initContainers, written.initContainers ?? []),
    }),
    containers: main,
    ...(volumes.length > 0 && { volumes }),
  };
}

interface Added {
  readonly volume: Volume;
  readonly mountPath: string;
}

interface PilotParts {
  readonly environment: ReadonlyMap<string, EnvEntry>;
  readonly added: readonly Added[];
  readonly starter: StarterUse | undefined;
  /** The directory of the payload is mounted. */
  readonly hasFiles: boolean;
}

/** The starter that the pilot of a template needs, by its own words and the queue's. */
export function starterIn(
  { job, pilot }: Pick<KubernetesTemplate, 'job' | 'pilot'>,
  { pilotsStarterConfigMap }: Pick<FillOptions['config'], 'pilotsStarterConfigMap'>,
): StarterUse | undefined {
  const { spec } = job.spec.template;
  const container = spec.containers.find(({ name }) => name === pilot);
  return container && starterOf(spec, container, pilotsStarterConfigMap);
}

function fillPilot(
  pilot: ContainerShape,
  { environment, added, starter, hasFiles }: PilotParts,
  worker: WorkerToStart,
  { config }: FillOptions,
): ContainerShape {
  const env = (pilot.env ?? []) as EnvEntry[];
  const there = new Set(env.map(({ name }) => name));
  const own = env.map((entry) => {
    const ours = environment.get(entry.name);
    const empty = entry.value === undefined && entry.valueFrom === undefined;
    return ours !== undefined && (identityNames.has(entry.name) || empty) ? { ...ours } : entry;
  });
  const mounts = (pilot.volumeMounts ?? []).map(({ name, mountPath }) => ({ name, mountPath }));
  const missing = added.filter(
    ({ volume, mountPath }) =>
      !mounts.some(
        (one) => one.name === volume.name || withoutEnd(one.mountPath, '/') === withoutEnd(mountPath, '/'),
      ),
  );
  const volumeMounts = [
    ...(pilot.volumeMounts ?? []),
    ...missing.map(({ volume, mountPath }) => ({ name: volume.name, mountPath })),
  ];
  const filled: ContainerShape = {
    ...pilot,
    ...(config['k8s.host_image'] !== undefined && { image: config['k8s.host_image'] }),
    ...(starter !== undefined && pilot.command === undefined && starterCommand(starter)),
    // Ours first: the kubelet expands `$(workerID)` only in variables that come later.
    env: [...environment.values().filter(({ name }) => !there.has(name)), ...own],
    resources: fillResources(pilot.resources, worker.requirements, config),
    ...(volumeMounts.length > 0 && { volumeMounts }),
  };
  return withPayload(filled, worker.payload, hasFiles);
}

/** Variables that are exactly `$name`, in place. It is decided by what the operator wrote, so that no value is read as one. */
function fillReferences(
  filled: readonly { readonly name: string; readonly value?: unknown }[],
  written: readonly { readonly value?: unknown }[],
  resolve: (name: string) => Omit<EnvEntry, 'name'>,
): EnvEntry[] {
  return filled.map((entry, index) => {
    const raw = written[index]?.value;
    const reference = typeof raw === 'string' ? referenceIn(raw) : undefined;
    return (reference === undefined ? entry : { name: entry.name, ...resolve(reference) }) as EnvEntry;
  });
}

/** A copy with all `${name}` replaced. In what the kubelet expands, values stay inert. */
function fillTexts(value: unknown, values: PlaceholderValues, expanded = false): unknown {
  if (typeof value === 'string') {
    if (!value.includes('${')) return value;
    if (!expanded) return fillPlaceholders(value, values);
    const safe = Object.entries(values).map(([name, one]) => [name, inert(String(one))] as const);
    return fillPlaceholders(value, Object.fromEntries(safe));
  }
  if (Array.isArray(value)) return value.map((item) => fillTexts(item, values, expanded));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      fillTexts(inner, values, expanded || key === 'env' || isShell(key, inner)),
    ]),
  );
}

/** Encodes each text that is no label's value by now, since a placeholder stood in it. */
function labels(written: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(written).map(([key, value]) => [key, isLabelValue(value) ? value : labelOf(value)]),
  );
}

function autoscaling(safe: boolean | undefined): Record<string, string> {
  return safe === undefined ? {} : { [safeToEvict]: String(safe) };
}
