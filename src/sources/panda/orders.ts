/** Numbers of workers by resource type. */
export type ByType = ReadonlyMap<string, number>;

/** A report of statistics that the server took. */
export interface StatisticsReport {
  /** When the workers were counted, ms UTC by our clock: later ones are not in it. It never goes back, though the clock may. */
  readonly countedAt: number;
  /** The highest worker id of that moment: no later worker has a lower one. */
  readonly upTo: number;
  /** The latest time at which the server may have stored it, ms UTC by the server's clock. */
  readonly storedBy: number;
}

/** A call with statistics without an answer: the server may carry it out until it has surely ended it, also after later ones. */
export interface StatisticsCall extends Pick<StatisticsReport, 'countedAt' | 'upTo'> {
  /** ms UTC by our clock. */
  readonly until: number;
}

/**
 * How many workers an order still wants.
 *
 * The server counts an order's new workers from the statistics that it has at that moment. It does not know of workers that were made
 * since these statistics were counted, and so orders them a second time. An order therefore wants what it says less all workers
 * of the site that were made since the newest count that the server certainly had (`knownReport`).
 *
 * Source: panda-server 1.0.4, `worker_module.py`, `ups_new_worker_distribution`; Harvester takes the order's number as it is.
 * @param made workers made since that count, also those that have ended
 */
export function stillWanted(wanted: ByType, made: ByType): ByType {
  return new Map([...wanted].map(([type, count]) => [type, Math.max(0, count - (made.get(type) ?? 0))]));
}

/**
 * The server reads the statistics of all sites, and then makes the order of one site after the other. An order was counted from
 * statistics of up to so long before it, ms. Far below the 300 s between two orders: else each would be reckoned against the last.
 * Source: panda-server 1.0.4, `pilotStreaming.py`.
 */
const readBefore = 120_000;

/**
 * The newest count that the server certainly had when it made an order. Where that is not certain of a count, an earlier one
 * is taken: the next order corrects too few workers, and no order takes back too many. The place in the list says which is newer:
 * a clock may be set back between two reports.
 * @param createdAt when the server made the order, ms UTC by its clock
 */
export function knownReport(
  createdAt: number,
  reports: readonly StatisticsReport[],
): StatisticsReport | undefined {
  return reports.findLast(({ storedBy }) => storedBy <= createdAt - readBefore);
}

/** Orders may have waited at the server for so long, ms: reports from before are needed for them. */
export const oldestOrder = 3_600_000;

/** Reports that are kept of one site. */
const mostReports = 40;
/** The last of them, of which each is kept. */
const lastReports = 10;

/**
 * The reports that an order made at this time or later may be counted from: the newest that is certain then, and all after it. If these are
 * too many, those go that have the nearest neighbours: an order of any age finds one that is not much older than it.
 */
export function reportsToKeep(
  reports: readonly StatisticsReport[],
  orderedAt: number,
): readonly StatisticsReport[] {
  const base = knownReport(orderedAt, reports);
  const kept = reports.slice(base === undefined ? 0 : reports.indexOf(base));
  while (kept.length > mostReports) {
    let [nearest, gap] = [1, Infinity];
    for (let place = 1; place < kept.length - lastReports; place++) {
      const between = (kept[place + 1]?.storedBy ?? 0) - (kept[place - 1]?.storedBy ?? 0);
      if (between < gap) [nearest, gap] = [place, between];
    }
    kept.splice(nearest, 1);
  }
  return kept;
}
