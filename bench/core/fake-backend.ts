/**
 * A backend with instant answers, loaded by its path as any third party's: 100,000 workers in a few bytes each, so that
 * what is measured is the daemon. It has no clock of its own: whoever runs the benchmark imports this module, which is
 * the same instance the daemon got, and says through `backend` what happens when.
 */
import Type from 'typebox';
import { defineBackend } from '../../src/plugins/contracts/index.ts';
import type {
  BackendConnection,
  CheckResult,
  ConnectionHost,
  Context,
  FindOutcome,
  Found,
  GoneOutcome,
  Monitor,
  Observation,
  ObservationSink,
  Preflight,
  Requirements,
  Submitter,
  SubmitOutcome,
  Sweeper,
  Worker,
} from '../../src/plugins/contracts/index.ts';

/** A worker's state is its index; 0: there is none. */
const states = ['', 'submitted', 'running', 'idle'] as const;
export type FakeStatus = Exclude<(typeof states)[number], ''>;

/** Native words and node names are made once: a real backend has few of them, too. */
const nativeStatuses = { submitted: 'Submitted', running: 'Running', idle: 'Evicted' } as const;
const nodes = Array.from({ length: 500 }, (_, index) => `node-${index}.example.org`);

/** The workers, for another process. */
export interface Snapshot {
  readonly first: number;
  readonly count: number;
  readonly queues: readonly string[];
  /** base64 */
  readonly states: string;
  readonly queueOf: string;
}

/** All workers of all connections, by the distance of their ids from the first one's. */
class FakeBackend {
  /** Workers that each queue may have. */
  room = 0;
  /** Called with the queue at each submission. */
  onSubmit: (queue: string) => void = () => undefined;
  /** Called with the connection when everything on it was listed. */
  onList: (connection: string) => void = () => undefined;
  /** Called when a connection showed all its workers. */
  onShown: () => void = () => undefined;
  #first = 0;
  #count = 0;
  #states = new Uint8Array(1024);
  #queueOf = new Uint8Array(1024);
  readonly #queues: string[] = [];
  readonly #workers: number[] = [];
  readonly #connectionOf = new Map<string, string>();
  readonly #requirements = new Map<string, Requirements>();
  readonly #sinks = new Map<string, ObservationSink>();

  /** Bytes it keeps of all workers. */
  get bytes(): number {
    return this.#states.byteLength + this.#queueOf.byteLength;
  }

  get workers(): number {
    return this.#workers.reduce((sum, count) => sum + count, 0);
  }

  /** Connections that are being watched. */
  get watched(): number {
    return this.#sinks.size;
  }

  roomIn(queue: string): number {
    return Math.max(0, this.room - (this.#workers[this.#queueIndex(queue)] ?? 0));
  }

  join(queue: string, connection: string): void {
    this.#connectionOf.set(queue, connection);
    this.#queueIndex(queue);
  }

  submit({ workerId, queue, requirements }: Worker): void {
    if (this.#count === 0) this.#first = workerId;
    const at = workerId - this.#first;
    this.#reach(at);
    if (this.#states[at] !== 0) return;
    const index = this.#queueIndex(queue);
    this.#states[at] = 1;
    this.#queueOf[at] = index;
    this.#workers[index] = (this.#workers[index] ?? 0) + 1;
    this.#requirements.set(queue, requirements);
  }

  has(workerId: number): boolean {
    return (this.#states[workerId - this.#first] ?? 0) !== 0;
  }

  /** Follows a connection until the signal aborts; it begins with everything there is. */
  async watch(connection: string, sink: ObservationSink, signal: AbortSignal): Promise<void> {
    this.#sinks.set(connection, sink);
    this.#show(connection, sink);
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
    this.#sinks.delete(connection);
  }

  /** One full pass over every connection: what a monitor that polls does each time. */
  show(): void {
    for (const [connection, sink] of this.#sinks) this.#show(connection, sink);
  }

  /** Shows something of ours that nobody knows: the daemon then lists the connection again. */
  showStrangers(): void {
    const observedAt = Date.now();
    for (const sink of this.#sinks.values())
      sink.observe({ workerId: 1, status: 'running', nativeStatus: 'Running', observedAt });
  }

  /** Changes these workers, by their order of submission, without a word. */
  change(from: number, to: number, status: FakeStatus): void {
    const state = states.indexOf(status);
    for (let at = from; at < to; at++) if (this.#states[at] !== 0) this.#states[at] = state;
  }

  /** Shows only these, as a watch does. */
  announce(from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const queue = this.#queues[this.#queueOf[at] ?? 0] ?? '';
      this.#sinks.get(this.#connectionOf.get(queue) ?? '')?.observe(this.#observation(at));
    }
  }

  /** Worker ids of these, by order of submission. */
  ids(from: number, to: number): number[] {
    return Array.from({ length: to - from }, (_, index) => this.#first + from + index);
  }

  observationOf(workerId: number): Observation {
    return this.#observation(workerId - this.#first);
  }

  list(connection: string, factoryId: string): Found[] {
    const found: Found[] = [];
    for (let at = 0; at < this.#count; at++) {
      const queue = this.#queueAt(at, connection);
      if (queue === undefined) continue;
      const workerId = this.#first + at;
      found.push({
        place: `${connection}#${workerId}`,
        handle: { batchID: batchId(workerId) },
        identity: {
          workerId,
          name: `${factoryId}-${workerId}`,
          queue,
          computingSite: queue,
          origin: { kind: 'fill', uid: queue, index: workerId },
          requirements: this.#requirements.get(queue) ?? noRequirements,
          attempt: 1,
        },
        observation: this.#observation(at),
      });
    }
    return found;
  }

  save(): Snapshot {
    return {
      first: this.#first,
      count: this.#count,
      queues: this.#queues,
      states: Buffer.from(this.#states.subarray(0, this.#count)).toString('base64'),
      queueOf: Buffer.from(this.#queueOf.subarray(0, this.#count)).toString('base64'),
    };
  }

  load({ first, count, queues, states: itsStates, queueOf }: Snapshot): void {
    this.#first = first;
    this.#count = count;
    this.#states = Uint8Array.from(Buffer.from(itsStates, 'base64'));
    this.#queueOf = Uint8Array.from(Buffer.from(queueOf, 'base64'));
    for (const queue of queues) this.#queueIndex(queue);
    for (let at = 0; at < count; at++) {
      const index = this.#queueOf[at] ?? 0;
      if (this.#states[at] !== 0) this.#workers[index] = (this.#workers[index] ?? 0) + 1;
    }
  }

  #show(connection: string, sink: ObservationSink): void {
    sink.begin();
    for (let at = 0; at < this.#count; at++)
      if (this.#queueAt(at, connection) !== undefined) sink.observe(this.#observation(at));
    sink.complete();
    this.onShown();
  }

  /** The queue of a worker, when there is one and it is on this connection. */
  #queueAt(at: number, connection: string): string | undefined {
    if (this.#states[at] === 0) return undefined;
    const queue = this.#queues[this.#queueOf[at] ?? 0];
    return queue !== undefined && this.#connectionOf.get(queue) === connection ? queue : undefined;
  }

  #observation(at: number): Observation {
    const status = states[this.#states[at] ?? 0] || 'submitted';
    const common = {
      workerId: this.#first + at,
      status,
      nativeStatus: nativeStatuses[status],
      observedAt: Date.now(),
    };
    if (status === 'submitted') return common;
    return { ...common, node: nodes[at % nodes.length] ?? '', startTime: firstStart + at };
  }

  #queueIndex(queue: string): number {
    const known = this.#queues.indexOf(queue);
    if (known >= 0) return known;
    this.#workers.push(0);
    return this.#queues.push(queue) - 1;
  }

  #reach(at: number): void {
    this.#count = Math.max(this.#count, at + 1);
    while (this.#states.length < this.#count) {
      this.#states = doubled(this.#states);
      this.#queueOf = doubled(this.#queueOf);
    }
  }
}

/** The one backend of this process. */
export const backend = new FakeBackend();

/** When the first worker began, ms UTC. */
const firstStart = Date.UTC(2026, 0, 1);
const noRequirements: Requirements = {
  nCore: 1,
  minRamCount: 0,
  maxDiskCount: 0,
  maxWalltime: 0,
  resourceType: 'SCORE',
  jobType: 'managed',
  pilotType: 'PR',
  prodSourceLabel: 'managed',
};

function batchId(workerId: number): string {
  return `fake-${workerId}`;
}

function doubled(array: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(array.length * 2);
  larger.set(array);
  return larger;
}

class FakeSubmitter implements Submitter {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  async preflight(): Promise<Preflight> {
    const workers = backend.roomIn(this.#context.queue);
    return { problems: [], room: { workers, reason: { code: 'backend-full', message: 'it is full' } } };
  }

  async submit(workers: readonly Worker[]) {
    for (const worker of workers) backend.submit(worker);
    backend.onSubmit(this.#context.queue);
    return new Map(
      workers.map(({ workerId }): [number, SubmitOutcome] => [
        workerId,
        { kind: 'accepted', handle: { batchID: batchId(workerId) } },
      ]),
    );
  }

  async find(workers: readonly Worker[]) {
    return new Map(
      workers.map(({ workerId }): [number, FindOutcome] =>
        backend.has(workerId)
          ? [workerId, { kind: 'found', handle: { batchID: batchId(workerId) } }]
          : [workerId, { kind: 'absent' }],
      ),
    );
  }
}

class FakeConnection implements BackendConnection, Monitor, Sweeper {
  readonly monitor = this;
  readonly sweeper = this;
  readonly #daemon: ConnectionHost;

  constructor(daemon: ConnectionHost) {
    this.#daemon = daemon;
  }

  submitter(_config: unknown, context: Context): Submitter {
    backend.join(context.queue, this.#daemon.connection);
    return new FakeSubmitter(context);
  }

  async observe(sink: ObservationSink, signal: AbortSignal) {
    await backend.watch(this.#daemon.connection, sink, signal);
  }

  async check(workers: readonly Worker[]) {
    return new Map(
      workers.map(({ workerId }): [number, CheckResult] =>
        backend.has(workerId)
          ? [workerId, { kind: 'observed', observation: backend.observationOf(workerId) }]
          : [workerId, { kind: 'absent' }],
      ),
    );
  }

  /** Nothing is ever killed or removed in this benchmark. */
  async kill(workers: readonly Worker[]) {
    return new Map(workers.map(({ workerId }): [number, GoneOutcome] => [workerId, { kind: 'pending' }]));
  }

  async remove(workers: readonly Worker[]) {
    return new Map(workers.map(({ workerId }): [number, GoneOutcome] => [workerId, { kind: 'gone' }]));
  }

  async list(): Promise<Found[]> {
    const found = backend.list(this.#daemon.connection, this.#daemon.factoryId);
    backend.onList(this.#daemon.connection);
    return found;
  }

  async removeOrphan(): Promise<GoneOutcome> {
    return { kind: 'gone' };
  }
}

const section = {
  config: Type.Object({ connection: Type.String() }),
  connections: ({ connection }: { connection: string }) => [`fake:${connection}`],
};

export const plugins = defineBackend({
  name: 'Fake',
  module: 'fake',
  submitter: section,
  monitor: section,
  sweeper: section,
  connect: (_place, daemon) => new FakeConnection(daemon),
});
