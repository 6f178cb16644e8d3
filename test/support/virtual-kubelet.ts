/**
 * Takes the answers of a plugin as interLink and its virtual kubelet take them. The names and the types are those of Go's structs, and
 * nothing may be left over; the phases are those that follow from a status. A wrong answer throws: the real programs would leave the Pod
 * as it is for ever, end it as a success, or crash.
 * Source: pkg/interlink/types.go, pkg/interlink/api and pkg/virtualkubelet/execute.go of interLink 0.6.2; `k8s.io/api/core/v1`.
 */
import type { TSchema } from 'typebox';
import type { ContainerStatus, CreateStruct, PodStatus } from '../../src/clients/interlink/wire.ts';
import { check } from '../../src/util/schema.ts';
import Type from '../../src/util/type.ts';
import type { Answered } from './interlink-client.ts';

export type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

interface Named {
  readonly name: string;
}

export interface KubeletPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    annotations: Record<string, string>;
  };
  readonly spec: {
    readonly containers: readonly Named[];
    readonly initContainers?: readonly Named[] | null;
  };
}

export type Ask = (method: 'GET' | 'POST', path: string, body: unknown) => Promise<Answered>;

const exact = (properties: Record<string, TSchema>) =>
  Type.Object(properties, { additionalProperties: false });
/** Go takes no other text for a time, and drops the whole answer then. */
const time = Type.String({
  pattern: '^\\d{4}-(0[1-9]|1[0-2])-([0-2]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\dZ$',
});
const text = Type.String();
const int32 = (minimum: number) => Type.Integer({ minimum, maximum: 2 ** 31 - 1 });

const Status = exact({
  name: text,
  state: exact({
    waiting: Type.Optional(exact({ reason: text, message: Type.Optional(text) })),
    running: Type.Optional(exact({ startedAt: time })),
    terminated: Type.Optional(
      exact({
        exitCode: int32(-(2 ** 31)),
        signal: Type.Optional(int32(0)),
        reason: text,
        message: Type.Optional(text),
        startedAt: Type.Optional(time),
        finishedAt: Type.Optional(time),
      }),
    ),
  }),
  ready: Type.Boolean(),
  restartCount: int32(0),
  image: text,
  imageID: text,
  started: Type.Optional(Type.Boolean()),
});

const schemas = {
  create: exact({ PodUID: text, PodJID: text }),
  status: Type.Array(
    exact({
      name: text,
      UID: text,
      namespace: text,
      JID: text,
      containers: Type.Array(Status),
      initContainers: Type.Array(Status),
    }),
  ),
  ping: exact({
    status: Type.Optional(text),
    message: Type.Optional(text),
    resources: Type.Optional(
      exact({
        cpu: Type.Optional(text),
        memory: Type.Optional(text),
        pods: Type.Optional(text),
        accelerators: Type.Optional(Type.Array(exact({ resourceType: text, available: text }))),
      }),
    ),
    taints: Type.Optional(Type.Array(exact({ key: text, value: Type.Optional(text), effect: text }))),
  }),
} as const;

/** The value in an answer, as Go reads it. @throws Error for an answer that Go would not take, or would take by halves */
export function decoded(what: keyof typeof schemas, body: string): unknown {
  const checked = check(schemas[what], JSON.parse(body));
  if (checked.ok) return checked.value;
  throw new Error(
    `${checked.problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ')}: ${body}`,
  );
}

/** A virtual kubelet with interLink before it. It asks for one Pod after the other, each in a request of its own. */
export class VirtualKubelet {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  async create(pod: KubeletPod, more: object = {}): Promise<TrackedByKubelet> {
    const tracked = new TrackedByKubelet(pod);
    const jobConfig = { SingularityHubProxy: {}, ApptainerOptions: {}, Volumes: {} };
    const { status, text: body } = await this.#ask('POST', '/create', {
      pod,
      container: null,
      jobConfig,
      ...more,
    });
    tracked.created(status, body);
    return tracked;
  }

  /** One round of its loop: whatever is no 200 is asked again in the next one. */
  async look(pods: readonly TrackedByKubelet[]): Promise<void> {
    for (const tracked of pods) {
      if (tracked.isOver) continue;
      const { status, text: body } = await this.#ask('GET', '/status', [tracked.pod]);
      if (status === 200) tracked.heard(body);
    }
  }

  /** It forgets the Pod, whatever the answer is. */
  async remove({ pod }: TrackedByKubelet): Promise<number> {
    return (await this.#ask('POST', '/delete', pod)).status;
  }
}

/** A Pod as the virtual kubelet knows it. */
export class TrackedByKubelet {
  readonly pod: KubeletPod;
  phase: Phase = 'Pending';
  message = '';
  /** By name: containers, and then init containers. The virtual kubelet begins with all containers of the Pod. */
  readonly #containers = new Map<string, ContainerStatus | undefined>();

  constructor(pod: KubeletPod) {
    this.pod = pod;
    for (const { name } of pod.spec.containers) this.#containers.set(name, undefined);
  }

  /** It asks for a Pod until then. */
  get isOver(): boolean {
    return this.phase === 'Succeeded' || this.phase === 'Failed';
  }

  created(status: number, body: string): void {
    if (status !== 200) {
      this.phase = 'Failed';
      this.message = body;
      return;
    }
    const { PodUID, PodJID } = decoded('create', body) as CreateStruct;
    if (PodUID === this.pod.metadata.uid) this.pod.metadata.annotations['JobID'] = PodJID;
  }

  heard(body: string): void {
    const [status] = decoded('status', body) as PodStatus[];
    if (status === undefined) throw new Error('the list is empty: the Pod stays as it is for ever');
    const { name, namespace, uid } = this.pod.metadata;
    if (status.UID !== uid || status.name !== name || status.namespace !== namespace)
      throw new Error(`it is the status of another Pod: ${body}`);
    const shown = [...status.containers, ...status.initContainers];
    for (const { state } of shown)
      if (Object.keys(state).length !== 1) throw new Error(`a container has no state, or two: ${body}`);
    this.#take(status);
  }

  #take({ containers, initContainers }: PodStatus): void {
    const ended = (list: readonly ContainerStatus[]) =>
      list.filter(({ state }) => state.terminated !== undefined);
    const inInit = initContainers.some(({ state }) => state.running !== undefined);
    const beforeInit =
      ended(initContainers).length < initContainers.length &&
      initContainers.some(({ state }) => state.waiting !== undefined);
    // Containers count for nothing while init containers are to come, whatever the plugin says of them.
    const counted = inInit || beforeInit ? [] : containers;
    for (const one of containers) this.#containers.set(one.name, counted.length > 0 ? one : undefined);
    if (ended(counted).length === containers.length) {
      const codes = [...ended(counted), ...ended(initContainers)].map(
        ({ state }) => state.terminated?.exitCode,
      );
      this.phase = codes.every((code) => code === 0) ? 'Succeeded' : 'Failed';
      const left = [...this.#containers].filter(([, one]) => one?.state.terminated === undefined);
      if (left.length > 0)
        throw new Error(
          `it ended without ${left.map(([name]) => name).join(', ')}: the virtual kubelet crashes`,
        );
    } else if (inInit || beforeInit) this.phase = 'Pending';
    else if (counted.some(({ state }) => state.running !== undefined)) this.phase = 'Running';
  }
}
