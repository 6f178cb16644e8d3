import { Loop, type LoopHealth } from '../agents/loop.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';

export type QueueLoopKind = 'submit' | 'sweep';

/** All loops of a daemon, and which to wake for which queue. */
export class LoopSet {
  readonly #shared: { readonly clock: Clock; readonly random: () => number; readonly log: Log };
  readonly #loops: Loop[] = [];
  readonly #byQueue: Record<QueueLoopKind, Map<string, Loop[]>> = { submit: new Map(), sweep: new Map() };

  constructor(shared: { readonly clock: Clock; readonly random: () => number; readonly log: Log }) {
    this.#shared = shared;
  }

  /** `interval` in ms. */
  add(
    name: string,
    interval: number,
    pass: (signal: AbortSignal) => Promise<void>,
    longestPause?: number,
  ): Loop {
    const loop = new Loop({
      ...this.#shared,
      name,
      interval,
      pass,
      ...(longestPause !== undefined && { longestPause }),
    });
    this.#loops.push(loop);
    return loop;
  }

  /** A queue has one loop of a kind for each of its configurations that are in use. */
  addForQueue(
    kind: QueueLoopKind,
    queue: string,
    title: string,
    interval: number,
    pass: (signal: AbortSignal) => Promise<void>,
  ): void {
    const loop = this.add(`${kind} ${title}`, interval, pass);
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

  get health(): LoopHealth[] {
    return this.#loops.map((loop) => loop.health);
  }
}
