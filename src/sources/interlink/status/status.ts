import type { ContainerState, ContainerStatus, PodStatus } from '../../../clients/interlink/wire.ts';
import { hasEnded, isAtWork, isHeld, type PodFacts } from '../pods/facts.ts';
import type { NamedImage } from '../pods/pod-record.ts';
import { type ContainerReport, type PodReport, toldToEnd } from '../pod/report.ts';
import type { PodIdentity } from '../identity.ts';
import { withoutOwn } from '../../../util/own-secrets.ts';

export interface ShownContainer extends NamedImage {
  /** The Pod keeps it in the cluster. */
  readonly isOff?: true;
}

/** The parts of a Pod that its status names. */
export interface ShownPod extends PodIdentity {
  readonly containers: readonly ShownContainer[];
  readonly initContainers: readonly ShownContainer[];
}

/** The exit code of a container that was killed, or whose fate is unknown: never 0, which would be a success. */
const killed = 137;
/** The exit code of a container that never started because another one failed. */
const neverStarted = 1;

/** The words for an end that no container told. The first match counts. */
const endReasons: readonly { readonly status: PodFacts['status']; readonly reason: string }[] = [
  { status: 'cancelled', reason: 'Cancelled' },
  { status: 'withdrawn', reason: 'Cancelled' },
  { status: 'missed', reason: 'ContainerStatusUnknown' },
  { status: 'failed', reason: 'Error' },
  { status: 'finished', reason: 'ContainerStatusUnknown' },
];

/**
 * The state of a Pod as the virtual kubelet takes it. It lists each container, since an empty list would mean success, and a container
 * ends with 0 only if its own end was seen to be 0.
 * @param facts of its job; undefined where none is known yet
 * @param why the reason for which the job waits
 * @param unfetched why the files of its job, which has ended, are not here yet
 * @param show a message as the virtual kubelet writes it into the Pod. It may be of HTCondor, of an API server, or of the job
 */
export function statusOf(
  pod: ShownPod,
  report: PodReport | undefined,
  facts: PodFacts | undefined,
  why?: string,
  unfetched?: string,
  show: (message: string) => string = withoutOwn,
): PodStatus {
  const { name, uid, namespace, containers, initContainers } = pod;
  const failedInit = failedInitOf(initContainers, report);
  const of = (isInit: boolean) => {
    // One for all containers of the list: a look at all others for each of them would take the square of their count.
    const off = stateOff(pod, report, facts, isInit);
    return (container: ShownContainer): ContainerStatus => {
      const told = reportedOf(report, container.name);
      const state =
        container.isOff === true ? off : stateOf({ told, facts, why, unfetched, isInit, failedInit });
      return {
        name: container.name,
        state: withShownWords(state, show),
        ready: state.running !== undefined || (isInit && state.terminated?.exitCode === 0),
        restartCount: 0,
        image: container.image,
        imageID: container.image,
        started: state.running !== undefined,
      };
    };
  };
  return {
    name,
    UID: uid,
    namespace,
    JID: facts?.batchId ?? '',
    containers: containers.map(of(false)),
    initContainers: initContainers.map(of(true)),
  };
}

function withShownWords(
  { waiting, terminated, ...others }: ContainerState,
  show: (message: string) => string,
): ContainerState {
  const masked = <State extends { readonly message?: string }>(state: State): State =>
    state.message === undefined ? state : { ...state, message: show(state.message) };
  return {
    ...others,
    ...(waiting && { waiting: masked(waiting) }),
    ...(terminated && { terminated: masked(terminated) }),
  };
}

/** The state of a Pod with a job that left no trace: its job was accepted once, and nothing of it is known any more. */
export function vanished(pod: ShownPod, jid: string, message: string): PodStatus {
  const facts: PodFacts = {
    workerId: null,
    status: 'missed',
    native: null,
    exitCode: null,
    message,
    batchId: jid,
    startTime: null,
    endTime: null,
  };
  return statusOf(pod, undefined, facts);
}

interface Known {
  readonly told: ContainerReport | undefined;
  readonly facts: PodFacts | undefined;
  readonly why: string | undefined;
  readonly unfetched: string | undefined;
  readonly isInit: boolean;
  readonly failedInit: { readonly name: string; readonly exitCode: number } | undefined;
}

function stateOf(known: Known): ContainerState {
  const { told, facts } = known;
  // A container's own end is the truth, whatever became of the job afterwards.
  if (told?.state === 'terminated' && (isOwnEnd(told) || hasEnded(facts)))
    return { terminated: endOf(told, facts) };
  if (hasEnded(facts)) return { terminated: endWithout(known) };
  if (known.unfetched !== undefined) return awaited(known.unfetched);
  if (facts !== undefined && isAtWork(facts)) return running(known, facts);
  return waiting(known);
}

/** HTCondor tells a job to end that it evicts, and starts it again elsewhere: such an end is none until the job has ended. */
function isOwnEnd({ exitCode, reason }: ContainerReport): boolean {
  return exitCode !== undefined && reason !== toldToEnd;
}

/**
 * The state of a container that the Pod keeps out of the job. It is listed, since interLink takes a container that is missing for one
 * that ended well; it runs as long as any of the others.
 */
function stateOff(
  { containers }: ShownPod,
  report: PodReport | undefined,
  facts: PodFacts | undefined,
  isInit: boolean,
): ContainerState {
  const others = containers.filter(({ isOff }) => isOff !== true).map(({ name }) => reportedOf(report, name));
  const ended = others.filter((told) => told?.state === 'terminated' && isOwnEnd(told));
  const haveEnded = hasEnded(facts) || (others.length > 0 && ended.length === others.length);
  if (isInit || haveEnded) {
    const last = ended.flatMap((told) => told?.finishedAt ?? []).toSorted();
    const finishedAt = isInit ? undefined : (last.at(-1) ?? timeText(facts?.endTime));
    const message = 'the Pod keeps this container out of the job';
    return { terminated: { exitCode: 0, reason: 'Completed', message, ...times(undefined, finishedAt) } };
  }
  return facts !== undefined && isAtWork(facts) ? startedBy(facts) : waiting({ facts, why: undefined });
}

function startedBy({ startTime }: PodFacts): ContainerState {
  return { running: { startedAt: timeText(startTime) ?? timeText(0) ?? '' } };
}

function endOf(told: ContainerReport, facts: PodFacts | undefined) {
  const { exitCode = killed, signal, reason, startedAt, finishedAt } = told;
  // The job knows why it was told to end.
  const message = (reason === toldToEnd ? facts?.message : undefined) ?? told.message;
  // The job of a container that was killed by a signal may say 0 only by mistake.
  const code = exitCode === 0 && signal !== undefined ? 128 + signal : exitCode;
  return {
    exitCode: code,
    ...(signal !== undefined && { signal }),
    reason: reason ?? (code === 0 ? 'Completed' : 'Error'),
    ...(message !== undefined && { message }),
    ...times(startedAt, finishedAt ?? timeText(facts?.endTime)),
  };
}

/** The end of a container that reported none: it is no success, whatever the job's own exit code is. */
function endWithout({ told, facts, isInit, failedInit }: Known) {
  const job = facts?.message ?? undefined;
  if (!isInit && failedInit !== undefined && told?.state !== 'running') {
    const { name, exitCode } = failedInit;
    const message = `init container ${name} ended with ${exitCode}, so this container never started`;
    return {
      exitCode: neverStarted,
      reason: 'Error',
      message,
      ...times(undefined, timeText(facts?.endTime)),
    };
  }
  const reason = endReasons.find(({ status }) => status === facts?.status)?.reason ?? 'Error';
  const exitCode = facts?.exitCode ?? null;
  const message = job ?? 'the job ended, and did not say how this container ended';
  return {
    exitCode: exitCode === null || exitCode <= 0 ? killed : exitCode,
    reason,
    message,
    ...times(told?.startedAt ?? timeText(facts?.startTime), timeText(facts?.endTime)),
  };
}

function running({ told, isInit }: Known, facts: PodFacts): ContainerState {
  if (told === undefined) return startedBy(facts);
  const { startedAt, ready, message } = told;
  const more = message !== undefined && { message };
  const hasStarted = told.state === 'running' || (told.state === 'terminated' && startedAt !== undefined);
  if (!hasStarted) {
    const reason = told.state === 'terminated' ? undefined : told.reason;
    return { waiting: { reason: reason ?? 'PodInitializing', ...more } };
  }
  // The virtual kubelet takes every running container for a ready one. One that was told to end is as ready as it was.
  if (ready || isInit || told.state === 'terminated')
    return startedAt === undefined ? startedBy(facts) : { running: { startedAt } };
  return { waiting: { reason: 'Waiting for probes to be ready.', ...more } };
}

/** The end is in the files: to show another one would be wrong for good. */
function awaited(why: string): ContainerState {
  const message = `the job has ended, and its files have not come yet: ${why}`;
  return { waiting: { reason: 'OutputAwaited', message } };
}

function waiting({ facts, why }: Pick<Known, 'facts' | 'why'>): ContainerState {
  const message = why ?? facts?.message ?? undefined;
  return {
    waiting: {
      reason: isHeld(facts) ? 'JobHeld' : 'ContainerCreating',
      ...(message !== undefined && { message }),
    },
  };
}

function failedInitOf(inits: readonly NamedImage[], report: PodReport | undefined): Known['failedInit'] {
  for (const { name } of inits) {
    const told = reportedOf(report, name);
    if (told?.state === 'terminated' && told.exitCode !== 0)
      return { name, exitCode: told.exitCode ?? killed };
  }
  return undefined;
}

function reportedOf(report: PodReport | undefined, name: string): ContainerReport | undefined {
  return report !== undefined && Object.hasOwn(report.containers, name) ? report.containers[name] : undefined;
}

function times(startedAt: string | undefined, finishedAt: string | undefined) {
  return { ...(startedAt !== undefined && { startedAt }), ...(finishedAt !== undefined && { finishedAt }) };
}

/** Kubernetes' form: UTC, whole seconds. */
function timeText(ms: number | null | undefined): string | undefined {
  return ms === null || ms === undefined ? undefined : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
