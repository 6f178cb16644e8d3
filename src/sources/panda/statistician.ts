import type { PandaApi } from '../../clients/panda/api.ts';
import type { Census, Desk, Log, WorkerNews } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { LinkMemory } from './memory.ts';
import { type StatisticsReport, oldestOrder, reportsToKeep } from './orders.ts';
import { isDead, type ServerHealth } from './server-health.ts';
import { sitesOf } from './sites.ts';
import { statisticsOf } from './statistics.ts';

export interface StatisticianParts {
  readonly api: Pick<PandaApi, 'reportStatistics'>;
  readonly memory: LinkMemory;
  readonly clock: Clock;
  readonly log: Log;
  readonly health: ServerHealth;
  /** How far the server's clock is ahead of ours, ms; undefined while unknown. */
  readonly serverAhead: () => number | undefined;
  /** ms */
  readonly interval: number;
}

/** How well the difference of the two clocks is known, ms (`PandaClient.serverAhead`). */
const skew = 1000;
/** A site whose workers are still being made is not reported more often than so, ms. */
const betweenChanges = 30_000;
/** The reports of a site that was last reported so long ago are forgotten, ms. */
const forgottenAfter = 7 * 86_400_000;

/** A site as it was reported last. */
interface Reported {
  /** Monotonic ms. */
  readonly at: number;
  readonly living: number;
}

/**
 * Reports how many workers each site has. The server orders nothing for a site without statistics, so that a site without
 * workers reports zeros; and each report is the base of later orders, so that one follows each change of what was made.
 */
export class Statistician {
  readonly #parts: StatisticianParts;
  readonly #reported = new Map<string, Reported>();
  /** Sites that got workers since their last report. */
  readonly #changed = new Set<string>();
  /** Sites whose report is asked for at once. */
  readonly #asked = new Set<string>();
  /** Whether the sites of all living workers are known: the first count tells them, and then news do. */
  #counted = false;

  constructor(parts: StatisticianParts) {
    this.#parts = parts;
  }

  heard({ what, worker }: WorkerNews): void {
    if (what === 'added' && worker.computingSite !== null) this.#changed.add(worker.computingSite);
  }

  /** The server asks for a report of this site. */
  ask(site: string): void {
    this.#asked.add(site);
  }

  /** When statistics of a site were last taken, ms UTC. */
  lastOf(site: string): number | undefined {
    const { memory, clock } = this.#parts;
    const last = memory.reportsOf(site).at(-1);
    return last === undefined ? undefined : Math.min(last.countedAt, clock.now());
  }

  /**
   * Reports the sites that are due.
   * @param isMaking whether workers of a site's order are still to be made: its report need not come at once
   */
  async turn(desk: Desk, isMaking: (site: string) => boolean, signal: AbortSignal): Promise<void> {
    const own = sitesOf(desk.ownQueues());
    const due = this.#due(own, isMaking);
    if (due.length === 0 && this.#counted) return;
    const census = await desk.census();
    this.#counted = true;
    const living = Map.groupBy(
      census.living,
      ({ computingSite, queue }) => computingSite || computingSiteOf(queue),
    );
    const sites = new Set([...due, ...[...living.keys()].filter((site) => !this.#reported.has(site))]);
    const taken = new Map<string, StatisticsReport>();
    for (const site of sites) {
      if (signal.aborted) break;
      const report = await this.#report(site, living.get(site) ?? [], census, signal);
      if (report === 'dead') break;
      if (report !== undefined) taken.set(site, report);
    }
    await this.#remember(taken);
    this.#forget(own);
  }

  #due(own: readonly string[], isMaking: (site: string) => boolean): string[] {
    const now = this.#parts.clock.monotonic();
    const sites = new Set([...own, ...this.#reported.keys(), ...this.#asked, ...this.#changed]);
    return [...sites].filter((site) => {
      const last = this.#reported.get(site);
      if (last === undefined || this.#asked.has(site)) return true;
      const since = now - last.at;
      if (since >= this.#parts.interval) return true;
      return this.#changed.has(site) && (!isMaking(site) || since >= betweenChanges);
    });
  }

  async #report(
    site: string,
    living: Census['living'],
    { at, upTo }: Census,
    signal: AbortSignal,
  ): Promise<StatisticsReport | 'dead' | undefined> {
    const { api, memory, clock, health, serverAhead } = this.#parts;
    // News that come while the report is under way are for the next one.
    this.#changed.delete(site);
    const outcome = await api.reportStatistics(site, statisticsOf(living), signal);
    health.note('statistics', outcome);
    if (outcome.kind === 'failed') {
      this.#changed.add(site);
      return isDead(outcome) ? 'dead' : undefined;
    }
    this.#asked.delete(site);
    const workers = living.reduce((sum, one) => sum + one.workers, 0);
    this.#reported.set(site, { at: clock.monotonic(), living: workers });
    // After a clock was set back, workers of the last report have times that are still to come: they count as reported.
    const countedAt = Math.max(at, memory.reportsOf(site).at(-1)?.countedAt ?? 0);
    return { countedAt, upTo, storedBy: clock.now() + (serverAhead() ?? 0) + skew };
  }

  /** One write for all sites. A crash before it leaves an older base: orders then ask for fewer workers, never for more. */
  async #remember(taken: ReadonlyMap<string, StatisticsReport>): Promise<void> {
    if (taken.size === 0) return;
    const { memory, clock, log, serverAhead } = this.#parts;
    const oldest = clock.now() + (serverAhead() ?? 0) - oldestOrder;
    const added = [...taken].map(([site, report]) => [
      site,
      [...reportsToKeep([...memory.reportsOf(site), report], oldest)],
    ]);
    const written = memory.change((kept) => {
      const recent = Object.entries(kept.reports).filter(
        ([, reports]) => (reports.at(-1)?.countedAt ?? 0) > clock.now() - forgottenAfter,
      );
      const reports = Object.fromEntries([...recent, ...added]) as typeof kept.reports;
      return { ...kept, reports };
    });
    // No command is taken before all is written.
    await written.catch((error: unknown) => {
      log.error('the PanDA link cannot write its memory, and takes no commands until it can', {
        error: messageOf(error),
      });
    });
  }

  /** A site without queue and workers was reported as empty, and is none of ours any more. */
  #forget(own: readonly string[]): void {
    for (const [site, { living }] of this.#reported)
      if (living === 0 && !own.includes(site)) this.#reported.delete(site);
  }
}
