/** Chance that repeats itself: the same seed gives the same throws. The generator is mulberry32. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1. */
  throw(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.throw() * (most - least + 1));
  }

  /** Undefined for an empty list. */
  pick<T>(list: readonly T[]): T | undefined {
    return list[this.between(0, list.length - 1)];
  }

  pickByWeight<T extends { readonly weight: number }>(list: readonly T[]): T | undefined {
    let left = this.throw() * list.reduce((sum, { weight }) => sum + weight, 0);
    return list.find(({ weight }) => (left -= weight) < 0);
  }
}
