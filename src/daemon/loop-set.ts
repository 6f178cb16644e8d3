import { requireLease } from '../agents/lease.ts';
import { Loop, type LoopHealth, type LoopOptions } from '../agents/loop.ts';

export type QueueLoopKind = 'submit' | 'sweep';

/** The parts that all loops of a daemon share. */
type Shared = Pick<LoopOptions, 'clock' | 'random' | 'log' | 'events'>;

export interface LoopSetParts extends Shared {
  /** Whether the daemon may act now: passes that would begin meanwhile fail. Default: always. */
  readonly mayAct?: () => boolean;
}

/** All loops of a daemon, and which to wake for which queue. */
export class LoopSet {
  readonly #shared: Shared;
  readonly #mayAct: (() => boolean) | undefined;
  readonly #loops = new Set<Loop>();
  /** Loops that were taken out and have a pass under way. */
  readonly #ending = new Set<Promise<void>>();
  /** By slot, the end of the loops that were there. */
  readonly #slots = new Map<string, Promise<unknown>>();
  #started = false;
  #stopped = false;
  readonly #byQueue: Record<QueueLoopKind, Map<string, Loop[]>> = { submit: new Map(), sweep: new Map() };

  constructor({ mayAct, ...shared }: LoopSetParts) {
    this.#shared = shared;
    this.#mayAct = mayAct;
  }

  add(options: Omit<LoopOptions, keyof Shared>): Loop {
    const pass: LoopOptions['pass'] = async (signal) => {
      requireLease(this.#mayAct);
      await options.pass(signal);
    };
    const loop = new Loop({ ...this.#shared, ...options, pass });
    this.#loops.add(loop);
    return loop;
  }

  /** A queue has one loop of a kind for each of its configurations that are in use. */
  addForQueue(kind: QueueLoopKind, queue: string, options: Omit<LoopOptions, keyof Shared>): Loop {
    const loop = this.add(options);
    this.#byQueue[kind].set(queue, [...(this.#byQueue[kind].get(queue) ?? []), loop]);
    return loop;
  }

  wake(kind: QueueLoopKind, queue: string): void {
    for (const loop of this.#byQueue[kind].get(queue) ?? []) loop.wake();
  }

  /** Wakes the loop of this name, if there is one. */
  wakeNamed(name: string): void {
    for (const loop of this.#loops) if (loop.name === name) loop.wake();
  }

  wakeAll(kind: QueueLoopKind): void {
    for (const queue of this.#byQueue[kind].keys()) this.wake(kind, queue);
  }

  start(): void {
    this.#started = true;
    for (const loop of this.#loops) loop.start();
  }

  /** Starts loops that were added to a running set, once `before` has come to its end. */
  startAfter(before: Promise<unknown> | undefined, loops: readonly Loop[]): void {
    if (!this.#started) return;
    const start = () => {
      if (this.#stopped) return;
      for (const loop of loops) loop.start();
    };
    (before ?? Promise.resolve()).then(start, start);
  }

  /**
   * Replaces loops. The new ones start only after all earlier loops of the same slot have ended: two submitters of a queue must
   * never work side by side, however fast one reload follows the other.
   */
  replace(slot: string, outgoing: readonly Loop[], incoming: readonly Loop[]): void {
    const ended = Promise.all([this.#slots.get(slot), ...outgoing.map((loop) => this.end(loop))]);
    this.#slots.set(slot, ended);
    ended.then(
      () => {
        if (this.#slots.get(slot) === ended) this.#slots.delete(slot);
      },
      () => undefined,
    );
    this.startAfter(ended, incoming);
  }

  /** Comes when no loop that was taken out of this slot has a pass under way. */
  async ended(slot: string): Promise<void> {
    await this.#slots.get(slot);
  }

  /** Whether loops that were taken out of this slot have a pass under way. */
  isEnding(slot: string): boolean {
    return this.#slots.has(slot);
  }

  /** Takes a loop out and ends it after the pass under way. */
  end(loop: Loop): Promise<void> {
    this.#loops.delete(loop);
    for (const byQueue of Object.values(this.#byQueue)) {
      for (const [queue, loops] of byQueue) {
        const rest = loops.filter((one) => one !== loop);
        if (rest.length === 0) byQueue.delete(queue);
        else byQueue.set(queue, rest);
      }
    }
    const ended = loop.stop().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
    return ended;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...[...this.#loops].map((loop) => loop.stop()), ...this.#ending]);
  }

  /** How many queues have loops. */
  get queues(): number {
    return this.#byQueue.submit.size;
  }

  get health(): LoopHealth[] {
    return [...this.#loops].map((loop) => loop.health);
  }
}
