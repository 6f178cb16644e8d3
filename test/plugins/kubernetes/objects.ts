import type {
  Condition,
  ContainerState,
  ContainerStatus,
  Job,
  Pod,
} from '../../../src/plugins/kubernetes/state/types.ts';

/** Times of the tests: seconds after midnight, as the API writes them and as ms. */
export const at = (seconds: number): string => new Date(ms(seconds)).toISOString().replace('.000Z', 'Z');
export const ms = (seconds: number): number => Date.UTC(2026, 0, 1) + seconds * 1000;

export function condition(type: string, reason?: string, changes: Partial<Condition> = {}): Condition {
  return { type, status: 'True', lastTransitionTime: at(100), ...(reason && { reason }), ...changes };
}

export function job(conditions: readonly Condition[] = [], changes: Partial<Job> = {}): Job {
  return {
    metadata: { name: 'factory-1', uid: 'job-uid', creationTimestamp: at(0), ...changes.metadata },
    spec: { backoffLimit: 0, completions: 1, ...changes.spec },
    status: { conditions, startTime: at(0), ...changes.status },
  };
}

interface PodParts {
  readonly name?: string;
  readonly created?: number;
  readonly deleted?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly Condition[];
  readonly containers?: readonly ContainerStatus[];
  readonly init?: readonly (ContainerStatus & { readonly sidecar?: boolean })[];
  /** Order of the specification; default: that of the statuses. */
  readonly order?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export function pod(phase: string, parts: PodParts = {}): Pod {
  const { created = 1, deleted, reason, message, conditions = [], containers = [], init = [] } = parts;
  const names = parts.order ?? (containers.length > 0 ? containers.map(({ name }) => name) : ['pilot']);
  return {
    metadata: {
      name: parts.name ?? 'factory-1-abcde',
      creationTimestamp: at(created),
      ...(parts.annotations && { annotations: parts.annotations }),
      ...(deleted !== undefined && { deletionTimestamp: at(deleted) }),
    },
    spec: {
      nodeName: 'wn1',
      containers: names.map((name) => ({ name })),
      initContainers: init.map(({ name, sidecar }) => ({
        name,
        ...(sidecar && { restartPolicy: 'Always' }),
      })),
    },
    status: {
      phase,
      conditions,
      containerStatuses: containers,
      initContainerStatuses: init,
      startTime: at(2),
      ...(reason && { reason }),
      ...(message && { message }),
    },
  };
}

const container = (name: string, state: ContainerState): ContainerStatus => ({
  name,
  restartCount: 0,
  state,
});

export const running = (name = 'pilot') => container(name, { running: { startedAt: at(10) } });
export const waiting = (reason: string, name = 'pilot', message?: string) =>
  container(name, { waiting: { reason, ...(message && { message }) } });
export const ended = (exitCode: number, reason = exitCode === 0 ? 'Completed' : 'Error', name = 'pilot') =>
  container(name, { terminated: { exitCode, reason, startedAt: at(10), finishedAt: at(70) } });
