import { isoTime } from '../util/clock.ts';
import type { WorkerStatus } from '../worker/status.ts';
import type { Limit } from './limiters.ts';

export interface BlackHoleOptions {
  /** Workers that ran for less were swallowed, ms; 0: no guard. */
  readonly lifetime: number;
  /** Workers that failed sooner were swallowed, and running ones have proven nothing before, ms. Default, and least: `lifetime`. */
  readonly provenAfter?: number;
  /** How many of the last ones are looked at. */
  readonly workers: number;
  /** While all were swallowed one is tried in each such time, ms. */
  readonly pause: number;
}

/** An ended worker, as far as it tells whether the resource is any good. Times are ms UTC. */
export interface EndedWorker {
  readonly status: WorkerStatus;
  readonly startTime: number | null;
  readonly endTime: number | null;
}

export interface BlackHoleState {
  /** The last ended workers, newest first: as many as `workers` at most. */
  readonly ended: readonly EndedWorker[];
  /** Running ones that are over `provenAfter` already: they prove that the resource works. */
  readonly proven: number;
  /** Living ones that have not proven anything yet. */
  readonly unproven: number;
  /** When the newest worker of the queue was made; undefined when there is none. */
  readonly lastMade: number | undefined;
  readonly now: number;
}

/** So few are too few to judge by. */
const fewest = 5;

/** How long a worker has to live to prove anything by its life alone, ms. */
export function provenAfter({ lifetime, provenAfter: own = 0 }: BlackHoleOptions): number {
  return Math.max(lifetime, own);
}

/**
 * Whether a worker was swallowed: it ended by itself, and at once. An end on request says nothing about the resource. A failure may come
 * later: a worker that never joined its pool has to wait before it gives up.
 */
export function swallowed(
  { status, startTime, endTime }: EndedWorker,
  lifetime: number,
  failedWithin = lifetime,
): boolean {
  if (status !== 'finished' && status !== 'failed') return false;
  if (endTime === null) return false;
  const within = status === 'failed' ? failedWithin : lifetime;
  return startTime === null ? status === 'failed' : endTime - startTime < within;
}

/**
 * Guards against a resource that swallows pilots: where they end as soon as they start, a factory that keeps its queue full
 * would feed it thousands in an hour. Once half of the last ones were swallowed, only as many are tried as there are good ones
 * to twice their number; once all were, one in each `pause`. The limit lifts itself: each good worker lets through two more.
 */
export function blackHole(state: BlackHoleState, options: BlackHoleOptions): Limit | undefined {
  const { lifetime, workers, pause } = options;
  const failedWithin = provenAfter(options);
  const bad = state.ended.filter((ended) => swallowed(ended, lifetime, failedWithin)).length;
  const good = state.ended.length - bad + state.proven;
  if (lifetime === 0 || bad < fewest || bad < good) return undefined;
  const failed = failedWithin > lifetime ? `, or failed within ${failedWithin / 1000} s` : '';
  const what = `${bad} of the last ${state.ended.length} workers ended within ${lifetime / 1000} s${failed}`;
  if (good === 0 && bad >= workers) {
    const next = (state.lastMade ?? 0) + pause;
    const due = state.now >= next && state.unproven === 0;
    const tried = state.unproven > 0 ? `${state.unproven} under way` : `the next at ${isoTime(next)}`;
    const message = `${what}: one is tried every ${pause / 1000} s, ${tried}`;
    return { atMost: due ? 1 : 0, reason: { code: 'black-hole-pause', message } };
  }
  const allowed = Math.max(1, 2 * good);
  const message = `${what}: no more than ${allowed} are tried at once`;
  return { atMost: Math.max(0, allowed - state.unproven), reason: { code: 'black-hole', message } };
}
