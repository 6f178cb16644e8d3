import { Loop, type LoopHealth, type LoopOptions } from '../agents/loop.ts';

export type QueueLoopKind = 'submit' | 'sweep';

/** What all loops of a daemon have in common. */
type Shared = Pick<LoopOptions, 'clock' | 'random' | 'log' | 'passed'>;

/** All loops of a daemon, and which to wake for which queue. */
export class LoopSet {
  readonly #shared: Shared;
  readonly #loops: Loop[] = [];
  readonly #byQueue: Record<QueueLoopKind, Map<string, Loop[]>> = { submit: new Map(), sweep: new Map() };

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  add(options: Omit<LoopOptions, keyof Shared>): Loop {
    const loop = new Loop({ ...this.#shared, ...options });
    this.#loops.push(loop);
    return loop;
  }

  /** A queue has one loop of a kind for each of its configurations that are in use. */
  addForQueue(kind: QueueLoopKind, queue: string, options: Omit<LoopOptions, keyof Shared>): void {
    const loop = this.add(options);
    this.#byQueue[kind].set(queue, [...(this.#byQueue[kind].get(queue) ?? []), loop]);
  }

  wake(kind: QueueLoopKind, queue: string): void {
    for (const loop of this.#byQueue[kind].get(queue) ?? []) loop.wake();
  }

  wakeAll(kind: QueueLoopKind): void {
    for (const queue of this.#byQueue[kind].keys()) this.wake(kind, queue);
  }

  start(): void {
    for (const loop of this.#loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  /** How many queues have loops. */
  get queues(): number {
    return this.#byQueue.submit.size;
  }

  get health(): LoopHealth[] {
    return this.#loops.map((loop) => loop.health);
  }
}
