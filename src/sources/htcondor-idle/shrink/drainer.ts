import pMap from 'p-map';
import { type DrainAnswer, type DrainWish, harmlessDrain, noClaim } from '../../../clients/htcondor/drain.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { PoolLook, OwnStartd } from '../look/result.ts';
import { type Leave, type LeaveReason, surplusOf, type SurplusFacts } from './surplus.ts';
import { classAdString } from '../../../clients/htcondor/classad.ts';

/** What the drainer asks of a pool. */
export interface DrainablePool {
  /** @throws HTCondorError */
  drain(wish: DrainWish, signal: AbortSignal): Promise<DrainAnswer>;
}

export interface DrainerParts {
  readonly pool: DrainablePool;
  /** Id of this factory: no other factory's startd takes an order of ours. */
  readonly factory: string;
  readonly log: Log;
  /** ms UTC */
  now(): number;
  /** How old a look may be that still drains, ms. */
  readonly freshFor: number;
}

/** What came of one round of orders. */
export interface Shrunk {
  /** Workers that were told to leave, and took it. */
  readonly drained: readonly Leave[];
  /** Workers that have become busy since, or whose startd would end their jobs. They are asked again. */
  readonly refused: readonly Leave[];
  /** Orders without an answer. They are given again. */
  readonly failed: readonly { readonly leave: Leave; readonly reason: Reason }[];
}

const nothing: Shrunk = { drained: [], refused: [], failed: [] };

/** Orders of one look: each is a program that runs for some 50 ms. The next look gives the rest. */
const mostOrders = 50;
const ordersAtOnce = 4;

const words: Readonly<Record<LeaveReason, string>> = {
  'queue-drained': 'an operator drains its queue',
  'shape-gone': 'no queue asks for its shape any more',
  'over-most': 'its shape has more workers than its most',
  'over-queue-most': 'its queue has more workers than its most',
};

/**
 * Shrinks a pool on request, by orders to startds: a Pod is never picked through its backend, which does not know who is busy.
 *
 * It remembers nothing. A look shows who leaves already; an order that was lost, with a restarted startd or a lost answer, is given
 * again because the next look does not show it.
 */
export class Drainer {
  readonly #parts: DrainerParts;

  constructor(parts: DrainerParts) {
    this.#parts = parts;
  }

  /** Asks those to leave that are too many. Does nothing on a look that is old, or that does not know all startds. */
  async shrink(
    look: Pick<PoolLook, 'at' | 'startds' | 'unknown'>,
    facts: Omit<SurplusFacts, 'startds'>,
    signal: AbortSignal,
  ): Promise<Shrunk> {
    const { startds } = look;
    if (startds === undefined || !this.#isFresh(look)) return nothing;
    const leaves = surplusOf({ ...facts, startds }).slice(0, mostOrders);
    const drained: Leave[] = [];
    const refused: Leave[] = [];
    const failed: { leave: Leave; reason: Reason }[] = [];
    const order = async (leave: Leave) => {
      // The orders before this one may have taken their time.
      if (signal.aborted || !this.#isFresh(look)) return;
      try {
        const answer = await this.#order(leave, signal);
        (answer === 'draining' ? drained : refused).push(leave);
      } catch (error) {
        failed.push({ leave, reason: toReason(error) });
      }
    };
    await pMap(leaves, order, { concurrency: ordersAtOnce });
    this.#tell({ drained, refused, failed });
    return { drained, refused, failed };
  }

  #order({ startd, why }: Leave, signal: AbortSignal): Promise<DrainAnswer> {
    const { pool, factory } = this.#parts;
    const reason = `thresher ${factory}: ${words[why]}`;
    return pool.drain({ slot: startd.slot, check: drainCheck(factory, startd), reason }, signal);
  }

  /** A clock that was set back makes a look seem to come from the future: that is no fresh one either. */
  #isFresh({ at, unknown }: Pick<PoolLook, 'at' | 'unknown'>): boolean {
    const age = this.#parts.now() - at;
    const isWhole = unknown.every(({ part }) => part !== 'collector' && part !== 'slots');
    return isWhole && age >= 0 && age <= this.#parts.freshFor;
  }

  #tell({ drained, failed }: Shrunk): void {
    const { log } = this.#parts;
    for (const { startd, why } of drained) {
      const { workerId, queue, shape, claims } = startd;
      log.info('a worker leaves its pool', { workerId, queue, shape, claims, why: words[why] });
    }
    for (const { leave, reason } of failed) {
      const { workerId, slot } = leave.startd;
      log.warn('a worker could not be told to leave its pool', { workerId, slot, ...reason });
    }
  }
}

/**
 * The condition under which a startd takes the order to drain. The startd itself looks at all its slots when the order arrives, so
 * neither a look that is too old by then nor a startd that got the name or the address of another can cost a job.
 * @param factory the id of this factory
 * @param startd as the look showed it: without a claim there, it must have none now
 */
export function drainCheck(
  factory: string,
  { workerId, claims }: Pick<OwnStartd, 'workerId' | 'claims'>,
): string {
  const ours = `ThresherFactory =?= ${classAdString(factory)} && string(ThresherWorker) =?= "${workerId}"`;
  return `${ours} && (${claims === 0 ? noClaim : harmlessDrain})`;
}
