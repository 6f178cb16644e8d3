import { messageOf, toReason } from '../../../worker/errors.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { TrackedPod } from './tracked-pod.ts';

/** The longest pause between two looks at a Pod, ms: one whose end is to be shown, and one that is to be removed. */
const longest = { ending: 10_000, deleted: 60_000 } as const;

/** Part of the time that a Pod has waited, after which it is looked at again. */
const part = 1 / 4;

/** ms, from a clock that only grows. */
interface Turn {
  readonly first: number;
  readonly next: number;
}

/**
 * Looks less and less often at a Pod with which nothing goes on, and tells of one trouble of many Pods once: when it begins, and when it
 * has ended.
 */
export class Pace {
  readonly #log: Log;
  /** ms. */
  readonly #shortest: number;
  readonly #turns = new WeakMap<TrackedPod, Turn>();
  /** Pods that a look is under way at: a file that hangs holds its own Pod alone. */
  readonly #looking = new WeakSet<TrackedPod>();
  /** By code. */
  readonly #troubles = new Map<string, Set<string>>();

  constructor(shortest: number, log: Log) {
    this.#shortest = shortest;
    this.#log = log;
  }

  isDue(pod: TrackedPod, now: number): boolean {
    const turn = this.#turns.get(pod);
    return !this.#looking.has(pod) && (turn === undefined || !waits(pod) || now >= turn.next);
  }

  /** Looks at a Pod, unless a look is under way. Never rejects. @param now ms, from a clock that only grows */
  async look(pod: TrackedPod, now: () => number, work: () => Promise<void>): Promise<void> {
    if (this.#looking.has(pod)) return;
    this.#looking.add(pod);
    try {
      await work();
      this.#tell(pod, undefined);
    } catch (error) {
      this.#tell(pod, error);
    } finally {
      this.#looking.delete(pod);
      if (waits(pod)) this.#turns.set(pod, this.#after(pod, now()));
      else this.#turns.delete(pod);
    }
  }

  #after(pod: TrackedPod, now: number): Turn {
    const { first } = this.#turns.get(pod) ?? { first: now };
    const most = pod.isDeleted ? longest.deleted : longest.ending;
    const pause = Math.min(Math.max((now - first) * part, this.#shortest), most);
    return { first, next: now + pause };
  }

  #tell({ record: { uid } }: TrackedPod, error: unknown): void {
    const code = error === undefined ? undefined : toReason(error).code;
    for (const [other, pods] of this.#troubles) {
      if (other === code || !pods.delete(uid) || pods.size > 0) continue;
      this.#troubles.delete(other);
      this.#log.info('Pods are looked after again', { code: other });
    }
    if (code === undefined) return;
    const pods = this.#troubles.get(code);
    if (pods !== undefined) pods.add(uid);
    else {
      this.#troubles.set(code, new Set([uid]));
      this.#log.warn('a Pod could not be looked after', { pod: uid, code, error: messageOf(error) });
    }
  }
}

/** Whether its files are to come, or to go. */
function waits({ isDeleted, ending }: TrackedPod): boolean {
  return isDeleted || ending !== undefined;
}
