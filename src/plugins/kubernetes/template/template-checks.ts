import { similar } from '../../../util/nearest.ts';
import { isObject } from '../../../util/json.ts';
import { toPointer } from '../../../util/located.ts';
import { withoutEnd } from '../../../util/without-end.ts';
import { unknownInTemplate } from '../../contracts/placeholders.ts';
import { identityNames, knownNames, knownPlaceholders, referenceIn } from './environment.ts';
import { factoryLabel, isLabelValue, queueLabel, workerIdLabel } from '../marks.ts';
import { ownController } from '../state/pod-facts.ts';
import { payloadDirectory, payloadVolumeName } from './payload.ts';
import { quantityOf } from '../../../clients/kubernetes/quantity.ts';
import { executableDirectory, namesStarter, starterOf } from './starter.ts';
import type { ContainerShape, JobShape } from './template-shape.ts';

/** A problem of a template, with its place. */
export interface Finding {
  readonly at: readonly (string | number)[];
  readonly message: string;
  readonly code?: 'template-wrong' | 'template-risky' | 'unknown-placeholder';
}

export interface TemplateOptions {
  /** Name of the pilot's container; default: the first. */
  readonly pilotContainer?: string;
  /** Other containers of the template are left out. */
  readonly onlyPilotContainer?: boolean;
  /** Image that the queue gives the pilot, whatever the template says. */
  readonly hostImage?: string;
  /** Namespace of the queue. */
  readonly namespace?: string;
  /** ConfigMap with a starter of the operator's, or "" for no starter. */
  readonly pilotsStarterConfigMap?: string;
}

type Path = readonly (string | number)[];
const podSpec: Path = ['spec', 'template', 'spec'];
const containersAt: Path = [...podSpec, 'containers'];

const risky = (at: Path, message: string): Finding => ({ at, message, code: 'template-risky' });

/** Everything that would make the API server refuse the Job, or a worker other than it is meant to be. */
export function checkTemplate(job: JobShape, options: TemplateOptions): Finding[] {
  return [
    ...checkPods(job),
    ...checkMetadata(job, options),
    ...checkContainers(job, options),
    ...checkPlaceholders(job, []).filter(({ at }) => isSent(at, job, options)),
  ];
}

/** Name of the pilot's container. */
export function pilotOf({ spec }: JobShape, { pilotContainer }: TemplateOptions): string {
  return pilotContainer ?? spec.template.spec.containers[0]?.name ?? '';
}

/** Whether a place is in none of the containers that the queue leaves out. */
function isSent(at: Path, job: JobShape, options: TemplateOptions): boolean {
  const index = at[containersAt.length];
  const isContainer = containersAt.every((key, position) => at[position] === key);
  if (options.onlyPilotContainer !== true || !isContainer || typeof index !== 'number') return true;
  return job.spec.template.spec.containers[index]?.name === pilotOf(job, options);
}

/** Finds fields that make more than one Pod of one worker. */
function checkPods({ spec }: JobShape): Finding[] {
  const {
    parallelism = 1,
    completions = 1,
    backoffLimit,
    backoffLimitPerIndex,
    podReplacementPolicy,
    podFailurePolicy,
    ttlSecondsAfterFinished,
    managedBy = ownController,
  } = spec;
  const { restartPolicy } = spec.template.spec;
  const findings: Finding[] = [];
  const one = 'a worker is one Pod';
  if (parallelism !== 1) {
    findings.push(risky(['spec', 'parallelism'], `parallelism is ${parallelism}, but ${one}: write 1`));
  }
  if (completions !== 1) {
    findings.push(risky(['spec', 'completions'], `completions is ${completions}, but ${one}: write 1`));
  }
  // Both limits count, and the Pod of a worker has the one index that there is.
  const repeats = backoffLimit !== 0 && backoffLimitPerIndex !== 0;
  if (repeats) {
    const name = backoffLimitPerIndex === undefined ? 'backoffLimit' : 'backoffLimitPerIndex';
    const limit = backoffLimitPerIndex ?? backoffLimit;
    const is = limit === undefined ? 'is not there, which counts as 6' : `is ${limit}`;
    const message = `${name} ${is}, so a pilot that failed is started again as another Pod: write 0`;
    findings.push(risky(['spec', name], message));
  }
  for (const [index, rule] of rulesOf(podFailurePolicy).entries()) {
    if (rule.action !== 'Ignore') continue;
    const message =
      'a failure that this rule ignores counts as none, so Kubernetes starts the pilot again as another Pod, whatever backoffLimit says: take the rule out, or write FailJob';
    findings.push(risky(['spec', 'podFailurePolicy', 'rules', index, 'action'], message));
  }
  // With no retries a Pod on its way out has failed the Job already. A failure policy makes `Failed` the default.
  const replaces = repeats && podFailurePolicy === undefined;
  if (replaces && podReplacementPolicy !== 'Failed') {
    const message =
      'podReplacementPolicy is not Failed, so a Pod that is being ended may have a second one beside it: write Failed';
    findings.push(risky(['spec', 'podReplacementPolicy'], message));
  }
  const at = [...podSpec, 'restartPolicy'];
  if (restartPolicy === 'OnFailure') {
    const message =
      'restartPolicy is OnFailure, so a pilot that failed is started again in its Pod: write Never';
    findings.push(risky(at, message));
  } else if (restartPolicy !== 'Never') {
    const is =
      restartPolicy === undefined ? 'not there, which counts as Always' : JSON.stringify(restartPolicy);
    findings.push({ at, message: `restartPolicy is ${is}; Kubernetes refuses that for a Job: write Never` });
  }
  if (ttlSecondsAfterFinished !== undefined && ttlSecondsAfterFinished < 3600) {
    const message = `ttlSecondsAfterFinished is ${ttlSecondsAfterFinished}: a Job that is removed before its end was seen counts as missed; write 3600 or more, or leave it to the queue`;
    findings.push(risky(['spec', 'ttlSecondsAfterFinished'], message));
  }
  if (managedBy !== ownController) {
    const message = `managedBy is ${managedBy}: Kubernetes makes no Pod, and thresher knows of the worker what that controller writes into the status of the Job; there are no logs and no nodes`;
    findings.push(risky(['spec', 'managedBy'], message));
  }
  for (const key of ['selector', 'manualSelector']) {
    if (!Object.hasOwn(spec, key)) continue;
    const message = `${key} would be the same for all workers; Kubernetes makes one for each: remove it`;
    findings.push({ at: ['spec', key], message });
  }
  return findings;
}

/** What else is wrong with them, the API server says. */
function rulesOf(policy: JobShape['spec']['podFailurePolicy']): readonly { readonly action?: unknown }[] {
  const { rules } = policy ?? {};
  return Array.isArray(rules) ? rules.map((rule: unknown) => (isObject(rule) ? rule : {})) : [];
}

function checkMetadata({ metadata, spec }: JobShape, { namespace }: TemplateOptions): Finding[] {
  const findings: Finding[] = [];
  if (namespace !== undefined && metadata?.namespace !== undefined && metadata.namespace !== namespace) {
    const message = `namespace is ${metadata.namespace}, and the queue's is ${namespace}, which counts: remove it here`;
    findings.push(risky(['metadata', 'namespace'], message));
  }
  const places = [
    [['metadata', 'labels'], metadata?.labels],
    [['spec', 'template', 'metadata', 'labels'], spec.template.metadata?.labels],
  ] as const;
  for (const [at, labels = {}] of places) {
    for (const [key, value] of Object.entries(labels)) {
      const here = [...at, key];
      // With a placeholder it is only known later, and encoded then.
      if (!isLabelValue(value) && !value.includes('${')) {
        const message = `label ${key} is ${JSON.stringify(value)}; it must be at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends`;
        findings.push({ at: here, message });
      }
      if ([factoryLabel, workerIdLabel, queueLabel].includes(key)) {
        findings.push(risky(here, `label ${key} is thresher's mark and is replaced: remove it`));
      }
      if (/^(batch\.kubernetes\.io\/)?(controller-uid|job-name)$/.test(key)) {
        findings.push({ at: here, message: `label ${key} is for Kubernetes to set: remove it` });
      }
    }
  }
  return findings;
}

function checkContainers(job: JobShape, options: TemplateOptions): Finding[] {
  const { spec } = job;
  const { containers, initContainers = [], volumes = [], resources } = spec.template.spec;
  const at = containersAt;
  if (containers.length === 0) {
    return [{ at, message: 'containers is empty; the first container, or the named one, is the pilot' }];
  }
  const names = containers.map(({ name }) => name);
  const pilotContainer = pilotOf(job, options);
  const findings: Finding[] = [];
  if (!names.includes(pilotContainer)) {
    const message = `there is no container ${pilotContainer}, which the queue names as the pilot's; there is ${names.join(', ')}`;
    findings.push({ at, message });
  }
  const all = [
    ...initContainers.map((one, index) => ({ one, at: [...podSpec, 'initContainers', index] })),
    ...containers
      .map((one, index) => ({ one, at: [...at, index] }))
      .filter((container) => isSent(container.at, job, options)),
  ];
  const known = new Set([...volumes.map(({ name }) => name), 'pilot-dir']);
  const seen = new Set<string>();
  for (const { one, at } of all) {
    const pilot = one.name === pilotContainer && containers.includes(one);
    if (seen.has(one.name)) findings.push({ at, message: `a second container has the name ${one.name}` });
    seen.add(one.name);
    if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(one.name)) {
      const message = `container name ${one.name} must be at most 63 small letters, digits and inner dashes`;
      findings.push({ at, message });
    }
    if (one.image === undefined && !(pilot && options.hostImage !== undefined)) {
      findings.push({ at, message: `container ${one.name} has no image` });
    }
    findings.push(...checkEnv(one, at, pilot), ...checkResources(one.resources, [...at, 'resources']));
    for (const [index, mount] of (one.volumeMounts ?? []).entries()) {
      if (known.has(mount.name)) continue;
      const near = similar(mount.name, [...known])[0];
      const hint = near === undefined ? '' : `; did you mean ${near}?`;
      const message = `container ${one.name} mounts ${mount.name}, which is none of the volumes${hint}`;
      findings.push({ at: [...at, 'volumeMounts', index], message });
    }
    if (!pilot && containers.includes(one) && names.includes(pilotContainer)) {
      const message = `container ${one.name} runs beside the pilot, and the Pod ends when both have ended (Harvester starts the first container alone): if it is to end with the pilot, write it as an init container with restartPolicy Always; if it is not wanted, take it out, or give the queue onlyPilotContainer`;
      findings.push(risky(at, message));
    }
    if (pilot) findings.push(...checkStarter(one, spec.template.spec, at, options), ...checkPayload(one, at));
  }
  for (const [index, volume] of volumes.entries()) {
    const { emptyDir } = volume as { emptyDir?: { sizeLimit?: unknown } };
    const sizeLimit = emptyDir?.sizeLimit;
    if (sizeLimit === undefined || quantityOf(sizeLimit) !== undefined) continue;
    const here = [...podSpec, 'volumes', index, 'emptyDir', 'sizeLimit'];
    findings.push({ at: here, message: noQuantity('sizeLimit', sizeLimit) });
  }
  return [...findings, ...checkResources(resources, [...podSpec, 'resources'])];
}

/** Harvester starts its `pilots_starter.py` where a template has no command, and so does thresher. */
function checkStarter(
  container: ContainerShape,
  spec: JobShape['spec']['template']['spec'],
  at: Path,
  { pilotsStarterConfigMap }: TemplateOptions,
): Finding[] {
  const starter = starterOf(spec, container, pilotsStarterConfigMap);
  const { command, args } = container;
  if (starter !== undefined && command === undefined && args !== undefined) {
    const message =
      'args stand without a command: as with Harvester the starter of pilots runs, and not these args; write the command, or give the queue pilotsStarterConfigMap "" to run the image\'s own';
    return [risky([...at, 'args'], message)];
  }
  const mounted = container.volumeMounts?.some(({ mountPath }) => mountPath.startsWith(executableDirectory));
  if (starter !== undefined || mounted || !namesStarter(container)) return [];
  const message = `the pilot is started from EXEC_DIR (${executableDirectory}), and the queue's pilotsStarterConfigMap "" mounts nothing there: leave that option out`;
  return [risky([...at, args === undefined ? 'command' : 'args'], message)];
}

/** The files of a payload have a place of their own. */
function checkPayload({ volumeMounts = [] }: ContainerShape, at: Path): Finding[] {
  return volumeMounts.flatMap(({ name, mountPath }, index) => {
    if (name !== payloadVolumeName && withoutEnd(mountPath, '/') !== payloadDirectory) return [];
    const message = `${name} at ${mountPath}: the volume ${payloadVolumeName} at ${payloadDirectory} is for the files that a worker gets with its request; choose another name and place`;
    return [{ at: [...at, 'volumeMounts', index], message }];
  });
}

function checkEnv({ name: container, env = [] }: ContainerShape, at: Path, pilot: boolean): Finding[] {
  const seen = new Set<string>();
  return env.flatMap(({ name, value, valueFrom }, index): Finding[] => {
    const here = [...at, 'env', index];
    const findings: Finding[] = [];
    if (seen.has(name)) {
      findings.push(risky(here, `${name} stands twice in env of ${container}; the last one counts`));
    }
    seen.add(name);
    if (value !== undefined && typeof value !== 'string') {
      const message = `${name} has the value ${JSON.stringify(value)}; it must be a string: write it in quotes`;
      return [...findings, { at: [...here, 'value'], message }];
    }
    if (value !== undefined && value !== '' && valueFrom !== undefined) {
      findings.push({ at: here, message: `${name} has both value and valueFrom; it must be one of them` });
    }
    const reference = value === undefined ? undefined : referenceIn(value);
    if (reference !== undefined && !knownNames.has(reference)) {
      const near = similar(reference, [...knownNames])[0];
      const hint = near === undefined ? '' : `; did you mean $${near}?`;
      const message = `${name} is "$${reference}", which is no known name${hint} For a variable of the container write $(${reference})`;
      findings.push({
        at: [...here, 'value'],
        message: message.replace(/([^?]) For/, '$1; for'),
        code: 'unknown-placeholder',
      });
    }
    const written = valueFrom !== undefined || (value !== undefined && value !== '');
    if (pilot && identityNames.has(name) && written && reference === undefined && !value?.includes('${')) {
      findings.push(
        risky(here, `${name} says who the worker is and is replaced: write "$${name}", or remove it`),
      );
    }
    return findings;
  });
}

function checkResources(resources: ContainerShape['resources'], at: Path): Finding[] {
  const { requests = {}, limits = {} } = resources ?? {};
  const findings: Finding[] = [];
  for (const [kind, quantities] of Object.entries({ requests, limits })) {
    for (const [resource, quantity] of Object.entries(quantities)) {
      const value = quantityOf(quantity);
      if (value !== undefined && value >= 0) continue;
      findings.push({ at: [...at, kind, resource], message: noQuantity(resource, quantity) });
    }
  }
  for (const [resource, request] of Object.entries(requests)) {
    const limit = quantityOf(limits[resource]);
    const wanted = quantityOf(request);
    if (limit === undefined || wanted === undefined || wanted <= limit) continue;
    const message = `${resource} is requested with ${String(request)}, more than its limit ${String(limits[resource])}`;
    findings.push({ at: [...at, 'requests', resource], message });
  }
  return findings;
}

function noQuantity(name: string, written: unknown): string {
  return `${name} is ${JSON.stringify(written)}; it must be a quantity such as 2, 500m, 4Gi or 4G`;
}

/** Unknown `${name}` everywhere but in what a shell may read. */
function checkPlaceholders(value: unknown, at: Path): Finding[] {
  if (typeof value === 'string') {
    return unknownInTemplate(value, knownPlaceholders).map((name) => ({
      at,
      code: 'unknown-placeholder',
      message: `"\${${name}}" is not a placeholder; known ones are ${[...knownPlaceholders].join(', ')}; "$\${" stands for "\${"`,
    }));
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => checkPlaceholders(item, [...at, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value)
    .filter(([key, inner]) => !isShell(key, inner))
    .flatMap(([key, inner]) => checkPlaceholders(inner, [...at, key]));
}

/** Command and arguments: an unknown `${name}` is the shell's there, and stays. */
export function isShell(key: string, value: unknown): boolean {
  return (key === 'command' || key === 'args') && Array.isArray(value);
}

export function pointerOf({ at }: Finding): string {
  return toPointer(at);
}
