import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../util/clock.ts';

/** What is waited for: a daemon. */
export interface Started {
  /** Whether each connection has shown its workers once, or could not. */
  readonly heard: boolean;
  onPass(tell: () => void): void;
}

/** A connection that is not heard of for so long keeps nobody waiting, ms. */
const patience = 120_000;

/**
 * Once the start is over, with its listings of all workers there are, gives back what they took, and takes less from then on.
 * Not before: a start is quicker where V8 may let garbage pile up.
 */
export function saveMemory(daemon: Started, clock: Clock, save: () => void = saveNow): void {
  const begun = clock.monotonic();
  let done = false;
  daemon.onPass(() => {
    if (done || (!daemon.heard && clock.monotonic() - begun < patience)) return;
    done = true;
    save();
  });
}

type Collect = (how: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

/**
 * V8 lets the heap grow to several times of what lives in it, and keeps each page that it then frees for good, but for a
 * collection of last resort. Source: `HeapGrowing` and `PagePool` of V8 13.6.
 */
function saveNow(): void {
  // Read at each collection. A V8 that no longer knows it says so and goes on.
  setFlagsFromString('--heap-growing-percent=25');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('globalThis.gc') as Collect | undefined;
  setFlagsFromString('--no-expose-gc');
  collect?.({ type: 'major', flavor: 'last-resort' });
}
