import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Subscribe } from '../../agents/events.ts';
import type { Clock } from '../../util/clock.ts';

/** A daemon, as far as its start is waited for. */
export interface Started {
  /** Whether each connection was listed, and has shown its workers or said why it cannot. */
  readonly heard: boolean;
  readonly events: Subscribe;
}

/** A silent connection delays the saving for no longer than this, ms. */
const patience = 120_000;

/**
 * Once the start is over, with its listings of all workers there are, gives back what they took, and takes less from then on;
 * again after a reload has brought connections that had to be listed. Not before: a start is quicker where V8 may let
 * garbage pile up.
 */
export function saveMemory(daemon: Started, clock: Clock, save: () => void = saveNow): void {
  let waitingSince: number | undefined = clock.monotonic();
  let wasHeard = false;
  daemon.events.on('passEnded', () => {
    const { heard } = daemon;
    if (wasHeard && !heard) waitingSince = clock.monotonic();
    wasHeard = heard;
    if (waitingSince === undefined || (!heard && clock.monotonic() - waitingSince < patience)) return;
    waitingSince = undefined;
    save();
  });
}

type Collect = (how: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

/**
 * V8 lets the heap grow to several times of what lives in it, and keeps pages that it freed until it collects in order to
 * save memory, which a daemon at rest may never bring about. Such a collection takes some tenths of a second where there
 * are 100,000 workers. Source: `node --trace-gc` ("pooled") with V8 13.6.
 */
function saveNow(): void {
  // Read at each collection. A V8 that no longer knows it says so and goes on.
  setFlagsFromString('--heap-growing-percent=25');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('globalThis.gc') as Collect | undefined;
  setFlagsFromString('--no-expose-gc');
  collect?.({ type: 'major', flavor: 'last-resort' });
}
