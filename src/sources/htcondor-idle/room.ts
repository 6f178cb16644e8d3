import type { Desk, OwnQueue, Reason } from '../../plugins/contracts/index.ts';
import { noTerms, type QueueTerms } from './demand.ts';
import type { IdleQueueOptions } from './options.ts';
import type { WrittenShape } from './shapes.ts';
import type { Wish } from './wishes.ts';

/** These let further workers through within a moment, so that no other queue need take over. */
const passing = new Set(['submission-rate', 'max-new-per-cycle', 'source-flood', 'shutting-down']);

/**
 * Why the workers of a queue are not all known yet: its backend was not listed since the start. Some may have no row, as after the loss
 * of the database, and a decision would take their places for free.
 */
export function whyUnlisted(queue: string, desk: Pick<Desk, 'reasons'>): Reason | undefined {
  return desk.reasons(queue).find(({ code }) => code === 'not-listed');
}

/**
 * Why a queue makes no workers now; undefined where it does. A queue shows it by the wishes of the last decision: the pass that left
 * one out has written down which limit did.
 */
export function whyClosed(
  queue: string,
  asked: readonly Wish[],
  desk: Pick<Desk, 'reasons'>,
): Reason | undefined {
  for (const { origin } of asked) {
    const [reason] = desk.reasons(queue, origin);
    if (reason !== undefined && !passing.has(reason.code)) return reason;
  }
  return undefined;
}

/** With shapes, `most` of the queue bounds them all together; otherwise it is that of its only shape. */
export function mostOfQueue({ shapes, most = Infinity }: IdleQueueOptions): number {
  return shapes === undefined ? Infinity : most;
}

/** `most` as a decision took it. */
export interface Bounds {
  readonly shapes: ReadonlyMap<string, number>;
  /** Of queues with several shapes. */
  readonly queues: ReadonlyMap<string, number>;
}

export function boundsOf(
  shapes: readonly Pick<WrittenShape, 'key' | 'most'>[],
  queues: readonly Pick<OwnQueue<IdleQueueOptions>, 'name' | 'options'>[],
): Bounds {
  return {
    shapes: new Map(shapes.map(({ key, most }) => [key, most])),
    queues: new Map(queues.map(({ name, options }) => [name, mostOfQueue(options)])),
  };
}

/** The terms of a queue, as its options and its limits have them. */
export function termsOf(
  { options }: Pick<OwnQueue<IdleQueueOptions>, 'options'>,
  closed: Reason | undefined,
): QueueTerms {
  const { perCycle = Infinity, pressure, nonePending } = options;
  return {
    ...noTerms,
    most: mostOfQueue(options),
    perCycle,
    pressure,
    nonePending,
    closed,
  };
}
