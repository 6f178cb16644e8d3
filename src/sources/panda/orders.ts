/** Numbers of workers by resource type. */
export type ByType = ReadonlyMap<string, number>;

/** A command of the server to make new workers on one queue. A newer one takes the place of an older one. */
export interface Order {
  /** When the server made it, ms UTC by the server's clock. */
  readonly createdAt: number;
  readonly wanted: ByType;
}

/** A report of statistics that the server took. */
export interface StatisticsReport {
  /** When the workers were counted, ms UTC by our clock: later ones are not in it. */
  readonly countedAt: number;
  /** The latest time at which the server may have stored it, ms UTC by the server's clock. */
  readonly storedBy: number;
}

/** New workers of the queue, whichever source asked for them: the server counts them all. */
export interface MadeWorkers {
  /** ms UTC by our clock. */
  readonly at: number;
  readonly type: string;
  readonly count: number;
}

/**
 * How many workers an order still wants.
 *
 * The server counts an order's new workers from the statistics that it has at that moment. It does not know of workers that were made
 * since these statistics were counted, and so orders them a second time. An order therefore wants what it says less all workers
 * made since the newest count that the server certainly had. The same subtraction counts the order down as its own workers are
 * made, so no state but the workers' rows is needed, and a crash loses nothing.
 *
 * Where it is not certain that the server had a count, an earlier one is taken: too few workers are corrected by the
 * next order, too many never are.
 *
 * Source: panda-server 1.0.4, `worker_module.py`, `ups_new_worker_distribution`; Harvester takes the order's number as it is.
 */
export function stillWanted(
  order: Order,
  reports: readonly StatisticsReport[],
  made: readonly MadeWorkers[],
): ByType {
  const since = knownCount(order, reports);
  const later = new Map<string, number>();
  for (const { at, type, count } of made) if (at > since) later.set(type, (later.get(type) ?? 0) + count);
  return new Map(
    [...order.wanted].map(([type, wanted]) => [type, Math.max(0, wanted - (later.get(type) ?? 0))]),
  );
}

/** When the workers were counted last that the server knew of when it made the order, ms UTC by our clock. */
export function knownCount({ createdAt }: Order, reports: readonly StatisticsReport[]): number {
  return reports.reduce(
    (newest, { countedAt, storedBy }) => (storedBy <= createdAt ? Math.max(newest, countedAt) : newest),
    -Infinity,
  );
}

/** The reports that a later order may still be counted from: the newest that a given time makes certain, and all after it. */
export function reportsToKeep(
  reports: readonly StatisticsReport[],
  orderedAt: number,
): readonly StatisticsReport[] {
  const base = knownCount({ createdAt: orderedAt, wanted: new Map() }, reports);
  return reports.filter(({ countedAt }) => countedAt >= base);
}
