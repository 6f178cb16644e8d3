import type { Container, RetrievedPodData } from '../../../clients/interlink/wire.ts';
import type { Payload, Requirements } from '../../../plugins/contracts/index.ts';
import { payloadBounds } from '../../../worker/payload-check.ts';
import { annotationsOf } from './annotations.ts';
import { containerText, type ContainerContext, writersOf } from './container.ts';
import { disabledIn } from './disabled.ts';
import { environmentText, expander, mostDollars, TooLong, variablesOf } from './environment.ts';
import { imageLines, imageOf, loginsOf, type PodImage } from './images.ts';
import { optionsOf } from './job-config.ts';
import { fieldsOf, lineOf } from './lines.ts';
import { nameProblems } from './names.ts';
import { type Findings, type PodProblem, problem } from './problem.ts';
import { type PodNeeds, needsOf, unknownResources } from './resources.ts';
import { startsOnce } from './once.ts';
import { podScripts } from './runner.ts';
import { payloadProblems, take, TooLarge, tooLarge, tooLong, tooManyBinds, tooMuchIn } from './too-much.ts';
import { leftOutOf } from './left-out.ts';
import { packedVolumes, volumesOf } from './volumes.ts';

export type { PodProblem } from './problem.ts';

/** The operator's part in how Pods become jobs. */
export interface PlanContext {
  /** apptainer, singularity or the path of either: SingularityPath. */
  readonly runtime: string;
  /** Options of it for each container. The operator's word: unchecked. */
  readonly options: readonly string[];
  /** Directories of the machine that a Pod may mount. */
  readonly hostPaths: readonly string[];
  /** Directories of the machine that have images. */
  readonly imagePaths: readonly string[];
  /** A directory that the jobs' machines share, for images that were pulled. */
  readonly imageCache?: string;
  /** Containers that do not say whether their root file system is read-only have one that is. */
  readonly readOnlyImages: boolean;
  /** The image "host" runs a command on the machine itself. */
  readonly host: boolean;
  /** Pods may have commands that run on the machine before their containers. */
  readonly preExec: boolean;
  /** A script of interLink's script builder takes the place of the containers. */
  readonly jobScript: boolean;
  /** Shell text of the operator: CommandPrefix. */
  readonly commandPrefix: string;
  readonly exportPodData: boolean;
  /** Commands of a submit description that Pods may give. */
  readonly submitCommands: readonly string[];
  /** Bytes of the log of one container. A longer log loses its begin. */
  readonly logBytes: number;
  /** Where the job sends its report while it runs, with its token. Absent: the report comes back with the job alone. */
  readonly reportTo?: (uid: string) => { readonly url: string; readonly token: string };
}

/** A Pod as one job. */
export interface PodPlan {
  readonly payload: Payload;
  readonly requirements: Partial<Requirements>;
  /** Names of all containers of the job: init containers come first. */
  readonly containers: readonly string[];
  /** Whole sentences: parts of the Pod that the job does not have. */
  readonly warnings: readonly string[];
}

/** Kubernetes' own default, seconds. */
const defaultGrace = 30;

/** Pure: the same Pod always becomes the same job. */
export function planOf(data: RetrievedPodData, context: PlanContext): PodPlan | readonly PodProblem[] {
  const wrong = [...tooMuchIn(data.pod), ...nameProblems(data.pod)];
  if (wrong.length > 0) return wrong;
  const findings: Findings = { problems: [], warnings: [] };
  try {
    return planned(data, context, findings);
  } catch (error) {
    if (error instanceof TooLong) return [tooLong];
    // Smaller it would still have the other mistakes.
    if (error instanceof TooLarge) return findings.problems.length > 0 ? findings.problems : [tooLarge];
    throw error;
  }
}

/** @throws TooLong, TooLarge */
function planned(
  data: RetrievedPodData,
  context: PlanContext,
  findings: Findings,
): PodPlan | readonly PodProblem[] {
  const { pod } = data;
  const { spec } = pod;
  const listed = jobContainers(pod, findings);
  const needs = needsOf(listed, findings);
  const annotations = annotationsOf(pod, context, findings);
  const crowded = tooManyBinds(
    listed.map(({ container }) => container),
    annotations.binds.length,
  );
  if (crowded.length > 0) return [...findings.problems, ...crowded];
  const volumes = volumesOf(data, mountedBy(listed), context, findings);
  const pullSecrets = new Set((spec.imagePullSecrets ?? []).map(({ name }) => name));
  const secrets = context.exportPodData ? (data.container ?? []).flatMap((one) => one.secrets ?? []) : [];
  const pulling = secrets.filter(({ metadata }) => pullSecrets.has(metadata?.name));
  // Each container brings the same ones.
  const logins = loginsOf([...new Map(pulling.map((secret) => [secret.metadata?.name, secret])).values()]);
  const script = data.jobScript ?? '';
  if (script !== '' && !context.jobScript)
    findings.problems.push(
      problem('/jobScript', 'the script would run on the machine itself, which the operator does not allow'),
    );

  const options = [...context.options, ...optionsOf(data.jobConfig, context.runtime, findings)];
  const images: PodImage[] = [];
  const room = { left: payloadBounds.bytes };
  const dollars = { left: mostDollars };
  const filesRoom = { left: payloadBounds.bytes };
  /** All that comes from a Pod is for the job's user alone: any of it may hold a secret. */
  const file = (name: string, text: string) => {
    take(filesRoom, Buffer.byteLength(text));
    return { name, mode: 0o600, content: Buffer.from(text).toString('base64'), secret: true };
  };
  const made = listed.map(({ container, at, isInit }) => {
    const variables = variablesOf(container, at, findings);
    const ip = annotations.podIp;
    if (ip !== undefined && !variables.has('POD_IP')) variables.set('POD_IP', ip);
    return { container, at, isInit, variables, expand: expander(variables, room, dollars) };
  });
  // Init containers run one after the other, and before all others.
  const writers = made.flatMap(({ container, isInit, expand }) =>
    isInit ? [] : writersOf(container, { volumes, annotations, expand, options }),
  );
  const containerFiles = made.flatMap(({ container, at, isInit, variables, expand }, index) => {
    const image =
      script === ''
        ? imageOf(container, `${at}/image`, { root: annotations.imageRoot, logins }, context)
        : ({ kind: 'host' } as const);
    if ('message' in image) findings.problems.push(image);
    else images.push(image);
    if (isInit && container.restartPolicy === 'Always')
      findings.problems.push(
        problem(
          `${at}/restartPolicy`,
          `the init container ${container.name} is a sidecar, which a job does not have: make it a container`,
        ),
      );
    for (const name of unknownResources(container))
      findings.warnings.push(`container ${container.name}: HTCondor is not asked for the resource ${name}`);
    const hasActions = !isInit && script === '';
    const { readOnlyImages } = context;
    const isEntered = hasActions && hasAction(container);
    const given: ContainerContext = {
      at,
      writers: isInit ? [] : writers.filter((one) => isEntered || one.container !== container.name),
      hasActions,
      variables,
      expand,
      volumes,
      annotations,
      options,
      readOnlyImages,
      pod: spec,
    };
    return [
      file(
        `c${index}`,
        containerText(container, 'message' in image || script !== '' ? undefined : image, given, findings),
      ),
      file(`e${index}`, environmentText(variables)),
    ];
  });
  if (spec.restartPolicy === 'Always' || spec.restartPolicy === 'OnFailure')
    findings.warnings.push(`restartPolicy is ${spec.restartPolicy}: a job runs each container once`);
  findings.warnings.push(...leftOutOf(spec));
  const payload = payloadOf();
  const problems = [...findings.problems, ...(findings.problems.length > 0 ? [] : payloadProblems(payload))];
  if (problems.length > 0) return problems;
  return {
    payload,
    requirements: requirementsOf(needs, spec.activeDeadlineSeconds ?? 0),
    containers: listed.map(({ container }) => container.name),
    warnings: [...new Set(findings.warnings)],
  };

  function payloadOf(): Payload {
    const packed = packedVolumes(volumes);
    const reportTo = context.reportTo?.(pod.metadata.uid ?? '');
    const grace = graceOf(spec.terminationGracePeriodSeconds);
    const lines = [
      fieldsOf('version', 1),
      lineOf('runtime', context.runtime),
      fieldsOf('grace', grace),
      fieldsOf('log-bytes', context.logBytes),
      fieldsOf('deadline', Math.max(0, spec.activeDeadlineSeconds ?? 0)),
      // Only the machine of the job knows where a link of these directories leads.
      ...context.hostPaths.map((path) => lineOf('host-path', path)),
      ...context.imagePaths.map((path) => lineOf('image-path', path)),
      ...[...volumes]
        .filter(([, { kind }]) => kind === 'files' || kind === 'empty')
        .map(([name]) => fieldsOf('volume', name)),
      ...packed.lines,
      ...listed.map(({ container, isInit }) =>
        fieldsOf('container', container.name, isInit ? 'init' : 'main'),
      ),
      ...imageLines(images),
    ];
    return {
      argv: ['./run.sh'],
      files: [
        ...podScripts().runner,
        file('pod', `${lines.join('\n')}\n`),
        ...containerFiles,
        ...images.flatMap((image, index) =>
          image.kind === 'remote' && image.login !== undefined
            ? [
                file(
                  `l${index}`,
                  `${lineOf('user', image.login.username)}\n${lineOf('password', image.login.password)}\n`,
                ),
              ]
            : [],
        ),
        ...(packed.lines.length === 0
          ? []
          : [{ name: 'volumes', mode: 0o600, content: packed.content, secret: true }]),
        ...(context.commandPrefix === '' ? [] : [file('prefix', `${context.commandPrefix}\n`)]),
        ...(annotations.preExec === '' ? [] : [file('pre-exec', annotations.preExec)]),
        ...(script === '' ? [] : [file('job-script', script)]),
        ...(reportTo === undefined
          ? []
          : [podScripts().sendReport, file('report-to', `${reportTo.url}\n${reportTo.token}\n`)]),
      ],
      ...(annotations.podIp === undefined ? {} : { env: { POD_IP: annotations.podIp } }),
      submit: {
        ...requests(needs),
        job_max_vacate_time: String(grace + 15),
        ...startsOnce(annotations.submit),
      },
    };
  }
}

interface JobContainer {
  readonly container: Container;
  readonly at: string;
  readonly isInit: boolean;
}

/** Init containers come first. */
function jobContainers(pod: RetrievedPodData['pod'], { problems }: Findings): readonly JobContainer[] {
  const of = (key: 'initContainers' | 'containers') => {
    const disabled = disabledIn(pod, key);
    return (pod.spec[key] ?? []).flatMap((container, index) =>
      disabled.has(container.name)
        ? []
        : [{ container, at: `/pod/spec/${key}/${index}`, isInit: key === 'initContainers' }],
    );
  };
  const containers = of('containers');
  if (containers.length === 0)
    problems.push(problem('/pod/spec/containers', 'the Pod has no container for a job'));
  return [...of('initContainers'), ...containers];
}

/** Whether it may be entered again by a probe or a hook, which mounts all of its volumes anew. */
function hasAction({ startupProbe, livenessProbe, readinessProbe, lifecycle }: Container): boolean {
  return [startupProbe, livenessProbe, readinessProbe, lifecycle].some(Boolean);
}

/** interLink sends the data of a volume only if a container of the job mounts it. */
function mountedBy(listed: readonly JobContainer[]): ReadonlySet<string> {
  return new Set(listed.flatMap(({ container }) => (container.volumeMounts ?? []).map(({ name }) => name)));
}

/** Seconds; a job is never without an end. */
function graceOf(seconds: number | null | undefined): number {
  return Math.min(Math.max(0, seconds ?? defaultGrace), 86_400);
}

function requests({ cpus, memory, disk, gpus }: PodNeeds): Record<string, string> {
  return {
    ...(cpus === undefined ? {} : { request_cpus: String(cpus) }),
    ...(memory === undefined ? {} : { request_memory: String(memory) }),
    ...(disk === undefined ? {} : { request_disk: String(disk) }),
    ...(gpus === undefined ? {} : { request_gpus: String(gpus) }),
  };
}

function requirementsOf({ cpus, memory, disk }: PodNeeds, deadline: number): Partial<Requirements> {
  return {
    ...(cpus === undefined ? {} : { nCore: cpus }),
    ...(memory === undefined ? {} : { minRamCount: memory }),
    ...(disk === undefined ? {} : { maxDiskCount: Math.ceil(disk / 1024) }),
    ...(deadline > 0 ? { maxWalltime: deadline } : {}),
  };
}

export function isPlan(plan: PodPlan | readonly PodProblem[]): plan is PodPlan {
  return !Array.isArray(plan);
}
