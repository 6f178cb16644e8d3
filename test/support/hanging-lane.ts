import type { Lane } from '../../src/util/file-lane.ts';
import { ThresherError } from '../../src/worker/errors.ts';

/** A lane in which nothing happens but what a test lets go on: as a file system that answers late, or never. */
export class HangingLane implements Lane {
  /** What the calls are that wait, oldest first. */
  readonly asked: string[] = [];
  readonly #open: { readonly begin: () => Promise<void>; readonly fail: (error: Error) => void }[] = [];

  run<T>(what: string, call: () => Promise<T>): Promise<T> {
    this.asked.push(what);
    return new Promise<T>((resolve, reject) => {
      const begin = () => call().then(resolve, reject);
      this.#open.push({ begin, fail: reject });
    });
  }

  get waiting(): number {
    return this.#open.length;
  }

  /** Lets the oldest call go on to its end. */
  async next(): Promise<void> {
    await this.#open.shift()?.begin();
  }

  /** Gives all calls up that wait, as at their deadline. */
  giveUp(why: string): void {
    for (const { fail } of this.#open.splice(0)) fail(new ThresherError('file-timeout', why));
  }
}
