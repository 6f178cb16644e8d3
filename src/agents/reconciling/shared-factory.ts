import type { Found } from '../../plugins/contracts/index.ts';
import type { Reason } from '../../worker/reason.ts';

/** How long it is told after the last such worker came, ms. */
const toldFor = 3_600_000;
/** Ids that are named. */
const named = 3;

/**
 * Workers that another daemon with this factory's id made while this one ran. Rows are written before workers are made, so
 * a worker without one is of an earlier database, or of another daemon. It is the other's when it was not there in the
 * listing before, and its id is above all that was given out before this daemon started.
 * @param before places of the listing before; undefined at the first
 */
export function madeElsewhere(
  listed: readonly { readonly found: Found; readonly hasRow: boolean }[],
  before: ReadonlySet<string> | undefined,
  idFloor: number,
): number[] {
  if (before === undefined) return [];
  return listed.flatMap(({ found: { identity, place }, hasRow }) =>
    // The first attempt of a daemon is 1; a job that another program submitted was given its mark later.
    identity !== undefined &&
    identity.attempt > 0 &&
    !hasRow &&
    identity.workerId >= idFloor &&
    !before.has(place)
      ? [identity.workerId]
      : [],
  );
}

/** The traces of another daemon in one connection's listings. */
export class SharedFactory {
  readonly #connection: string;
  readonly #factoryId: string;
  #before: ReadonlySet<string> | undefined;
  #seen: { readonly at: number; readonly workers: number; readonly ids: readonly number[] } | undefined;

  constructor(connection: string, factoryId: string) {
    this.#connection = connection;
    this.#factoryId = factoryId;
  }

  /** Takes a complete listing with its rows; @returns the ids of workers that only another daemon can have made. */
  take(
    listed: readonly { readonly found: Found; readonly hasRow: boolean }[],
    idFloor: number,
    now: number,
  ): readonly number[] {
    const ids = madeElsewhere(listed, this.#before, idFloor);
    this.#before = new Set(listed.map(({ found }) => found.place));
    if (ids.length > 0) this.#seen = { at: now, workers: (this.#seen?.workers ?? 0) + ids.length, ids };
    return ids;
  }

  /** @param now of a clock that no administrator sets, ms */
  note(now: number): Reason | undefined {
    if (this.#seen === undefined || now - this.#seen.at > toldFor) return undefined;
    const { workers, ids } = this.#seen;
    const which = `${ids.slice(0, named).join(', ')}${ids.length > named ? ' ...' : ''}`;
    const message = `another daemon with the factory id ${this.#factoryId} makes workers on ${this.#connection}, ${workers} so far (${which}): limits hold for each of the two alone`;
    return { code: 'factory-shared', message };
  }
}
