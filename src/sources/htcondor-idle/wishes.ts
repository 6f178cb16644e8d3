import { randomUUID } from 'node:crypto';
import type { OriginKey } from '../../plugins/contracts/index.ts';

/** One worker that was asked for and that has no row yet, as far as is known. */
export interface Wish {
  readonly origin: OriginKey;
  /** Key of its shape. */
  readonly shape: string;
}

/** Stands between the key of a shape and the random part of an origin. Neither a queue's name nor a shape's has it. */
const separator = ' ';

/** The shape that a worker was asked for; undefined for an origin of another form. */
export function shapeOfOrigin({ uid }: Pick<OriginKey, 'uid'>): string | undefined {
  const at = uid.lastIndexOf(separator);
  return at <= 0 ? undefined : uid.slice(0, at);
}

/**
 * The origins that were handed out and may still get a worker.
 *
 * A pass of a queue may be under way with the wishes of an earlier decision. So an origin is kept until its worker is known, and the
 * next decision uses it again, first of all: all passes together can never make more workers of a shape than its list has origins,
 * and the list grows only up to what one decision asked for. Forgotten origins would be doubled by such a pass.
 */
export class Wishes {
  /** By shape, oldest first. */
  readonly #open = new Map<string, Wish[]>();
  /** By shape: how many of these are asked for. */
  readonly #asked = new Map<string, number>();
  readonly #random: () => string;

  /** @param random gives a text that it never gave before */
  constructor(random: () => string = randomUUID) {
    this.#random = random;
  }

  /** From now on so many workers are asked for, by the keys of shapes. */
  ask(counts: ReadonlyMap<string, number>): void {
    this.#asked.clear();
    for (const [shape, count] of counts) {
      if (count <= 0) continue;
      const open = this.#open.get(shape) ?? [];
      this.#open.set(shape, open);
      while (open.length < count)
        open.push({ origin: { uid: `${shape}${separator}${this.#random()}`, index: 0 }, shape });
      this.#asked.set(shape, count);
    }
  }

  /** Asks for nothing any more; what is under way may still come. */
  askNothing(): void {
    this.#asked.clear();
  }

  /** The wishes of a shape that are asked for, oldest first. */
  of(shape: string): readonly Wish[] {
    return (this.#open.get(shape) ?? []).slice(0, this.#asked.get(shape) ?? 0);
  }

  /** How many origins of a shape may still get a worker, those among them that are not asked for now. */
  open(shape: string): number {
    return this.#open.get(shape)?.length ?? 0;
  }

  /** These have, or had, their worker. */
  served(origins: Iterable<OriginKey>): void {
    const byShape = Map.groupBy(origins, (origin) => shapeOfOrigin(origin));
    for (const [shape, served] of byShape) {
      const open = shape === undefined ? undefined : this.#open.get(shape);
      if (shape === undefined || open === undefined) continue;
      const uids = new Set(served.map(({ uid }) => uid));
      const isServed = ({ origin }: Wish) => uids.has(origin.uid);
      const asked = this.#asked.get(shape) ?? 0;
      // What is left of the decision: it asked for so many workers, and these have come.
      this.#asked.set(shape, asked - open.slice(0, asked).filter(isServed).length);
      const rest = open.filter((wish) => !isServed(wish));
      if (rest.length === 0) this.#open.delete(shape);
      else this.#open.set(shape, rest);
    }
  }
}
