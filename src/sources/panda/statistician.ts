import type { PandaApi, WorkerStatistics } from '../../clients/panda/api.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { Census, Desk, Log, WorkerNews } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { LinkMemory } from './memory.ts';
import { type StatisticsCall, type StatisticsReport, oldestOrder, reportsToKeep } from './orders.ts';
import { callsEndWithin } from './reporter.ts';
import { isDead, type ServerHealth } from './server-health.ts';
import { sitesOf } from './sites.ts';
import type { OriginCount } from '../../worker/news.ts';
import type { WorkerStatus } from '../../worker/status.ts';

export interface StatisticianParts {
  readonly api: Pick<PandaApi, 'reportStatistics'>;
  readonly memory: LinkMemory;
  readonly clock: Clock;
  readonly log: Log;
  readonly health: ServerHealth;
  /** undefined while unknown. */
  readonly serverAhead: () => ClockDifference | undefined;
  /** ms */
  readonly interval: number;
}

/** The difference of the two clocks while the server has said nothing of it. */
const unknownDifference: ClockDifference = { ahead: 0, within: 1000 };
/** A site whose workers are still being made is not reported more often than so, ms. */
const betweenChanges = 30_000;
/** The reports of a site that was last reported so long ago are forgotten, ms. */
const forgottenAfter = 7 * 86_400_000;
/** A call whose end the daemon did not live to see is taken for one that ended within this time, ms: its own time limit is in it. */
const unseenEndsWithin = 2 * callsEndWithin;
/** Calls of a site that may be carried out still and are told from each other; later ones are taken together. */
const mostCalls = 10;
/** Sites of one turn at most. */
const atOnce = 50;
/** So long a turn begins with further sites, ms: the commands of all sites wait for it. */
const turnLasts = 5000;
/** A site whose workers are being made comes before others that waited up to so much longer, ms. */
const advance = 60_000;
/** A site that was never tried waits as if it were for so long, ms. */
const longAgo = 86_400_000;

/** A site as it was reported last. */
interface Reported {
  /** Monotonic ms. */
  readonly at: number;
  readonly living: number;
}

/** What became of the call for a site, and when that was known, ms UTC. */
interface Told {
  readonly outcome: PandaOutcome<null>;
  readonly at: number;
}

/**
 * Reports how many workers each site has. The server orders nothing for a site without statistics, so that a site without
 * workers reports zeros; and each report is the base of later orders, so that one follows each change of what was made.
 *
 * A call without an answer may be carried out after later ones, and the server then counts by the older statistics. So the calls are
 * written down before they are sent; until one without an answer has surely ended, no count is known that is newer than its
 * own; and then the site is reported once more.
 */
export class Statistician {
  readonly #parts: StatisticianParts;
  readonly #reported = new Map<string, Reported>();
  /** Sites that got workers since their last report. */
  readonly #changed = new Set<string>();
  /** Sites whose report is asked for at once. */
  readonly #asked = new Set<string>();
  /** When each site was last tried, monotonic ms. */
  readonly #tried = new Map<string, number>();
  /** Whether the last turn left sites for the next. */
  #hasMore = false;
  #isStored = true;
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

  /** Whether sites are due that the last turn had no time for. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /**
   * Reports sites that are due, as many as there is time for: those whose workers are being made and those that waited longest first.
   * @param isMaking whether workers of a site's order are still to be made: its report need not come at once
   */
  async turn(desk: Desk, isMaking: (site: string) => boolean, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    this.#hasMore = false;
    const own = sitesOf(desk.ownQueues());
    const due = this.#due(own, isMaking);
    if (due.length === 0 && this.#counted) return;
    const census = await desk.census();
    this.#counted = true;
    const living = Map.groupBy(
      census.living,
      ({ computingSite, queue }) => computingSite || computingSiteOf(queue),
    );
    const all = new Set([...due, ...[...living.keys()].filter((site) => !this.#reported.has(site))]);
    const waitsSince = new Map(
      [...all].map((site) => [site, (this.#tried.get(site) ?? -longAgo) - (isMaking(site) ? advance : 0)]),
    );
    const sites = [...all].sort((a, b) => (waitsSince.get(a) ?? 0) - (waitsSince.get(b) ?? 0));
    const now = sites.slice(0, atOnce);
    if (!(await this.#announce(now, census))) return;
    const told = new Map<string, Told>();
    const over = clock.monotonic() + turnLasts;
    let isServerDead = false;
    for (const site of now) {
      if (signal.aborted || isServerDead || (told.size > 0 && clock.monotonic() >= over)) break;
      this.#tried.set(site, clock.monotonic());
      const outcome = await this.#report(site, living.get(site) ?? [], signal);
      isServerDead = isDead(outcome);
      told.set(site, { outcome, at: clock.now() });
    }
    await this.#remember(now, told);
    // Sites that fail are due all the time, and are no reason to ask without a pause.
    const tried = clock.monotonic() - betweenChanges;
    this.#hasMore = !isServerDead && sites.some((site) => (this.#tried.get(site) ?? -longAgo) <= tried);
    this.#forget(own);
  }

  #due(own: readonly string[], isMaking: (site: string) => boolean): string[] {
    const { memory, clock, interval } = this.#parts;
    const now = clock.monotonic();
    const sites = new Set([...own, ...this.#reported.keys(), ...this.#asked, ...this.#changed]);
    return [...sites].filter((site) => {
      const last = this.#reported.get(site);
      if (last === undefined || this.#asked.has(site)) return true;
      // Whichever of its calls the server carried out last, it did so before now.
      if (memory.callsOf(site).some(({ until }) => until <= clock.now())) return true;
      const since = now - last.at;
      if (since >= interval) return true;
      return this.#changed.has(site) && (!isMaking(site) || since >= betweenChanges);
    });
  }

  async #report(site: string, living: Census['living'], signal: AbortSignal): Promise<PandaOutcome<null>> {
    const { api, clock, health } = this.#parts;
    // News that come while the report is under way are for the next one.
    this.#changed.delete(site);
    const outcome = await api.reportStatistics(site, statisticsOf(living), signal);
    health.note('statistics', outcome);
    if (outcome.kind === 'failed') {
      this.#changed.add(site);
      return outcome;
    }
    this.#asked.delete(site);
    const workers = living.reduce((sum, one) => sum + one.workers, 0);
    this.#reported.set(site, { at: clock.monotonic(), living: workers });
    return outcome;
  }

  /** Writes down the calls that are about to be made. @returns whether that survives a crash */
  async #announce(sites: readonly string[], { at, upTo }: Census): Promise<boolean> {
    const { memory, clock } = this.#parts;
    const now = clock.now();
    const calls = sites.map((site): [string, StatisticsCall[]] => {
      // After a clock was set back, a time may be far ahead.
      const before = memory
        .callsOf(site)
        .map((call) => ({ ...call, until: Math.min(call.until, now + unseenEndsWithin) }));
      const [last, previous] = [before.at(-1), before.at(-2)];
      if (before.length > mostCalls && last !== undefined && previous !== undefined)
        before.splice(-2, 2, { ...previous, until: Math.max(previous.until, last.until) });
      return [site, [...before, { countedAt: at, upTo, until: now + unseenEndsWithin }]];
    });
    return this.#write((kept) => ({ ...kept, calls: { ...kept.calls, ...Object.fromEntries(calls) } }));
  }

  /** One write for all sites. A crash before it leaves an older base: orders then ask for fewer workers, never for more. */
  async #remember(sites: readonly string[], told: ReadonlyMap<string, Told>): Promise<void> {
    const { memory, clock, serverAhead } = this.#parts;
    const { ahead, within } = serverAhead() ?? unknownDifference;
    const oldest = clock.now() + ahead - oldestOrder;
    const reports: Record<string, StatisticsReport[]> = {};
    const calls: Record<string, StatisticsCall[]> = {};
    for (const site of sites) {
      const all = memory.callsOf(site);
      const [own, earlier] = [all.at(-1), all.slice(0, -1)];
      if (own === undefined) continue;
      const one = told.get(site);
      const isUnknown = one?.outcome.kind === 'failed' && one.outcome.maybeDone;
      if (one?.outcome.kind !== 'ok') {
        calls[site] = [...earlier, ...(isUnknown ? [{ ...own, until: one.at + callsEndWithin }] : [])];
        continue;
      }
      const begun = own.until - unseenEndsWithin;
      const open = earlier.filter(({ until }) => until > begun);
      calls[site] = open;
      const before = memory.reportsOf(site);
      const countedAt = Math.min(own.countedAt, ...open.map((call) => call.countedAt));
      const upTo = Math.min(own.upTo, ...open.map((call) => call.upTo));
      // After a clock was set back, workers of the last report have times that are still to come: they count as reported.
      const known = { countedAt: Math.max(countedAt, before.at(-1)?.countedAt ?? 0), upTo };
      const report = { ...known, storedBy: one.at + ahead + within };
      reports[site] = [...reportsToKeep([...before, report], oldest)];
    }
    const recently = clock.now() - forgottenAfter;
    await this.#write((kept) => ({
      ...kept,
      reports: {
        ...ofSites(kept.reports, (all) => (all.at(-1)?.countedAt ?? 0) > recently),
        ...reports,
      },
      calls: ofSites({ ...kept.calls, ...calls }, (all) => (all.at(-1)?.until ?? 0) > recently),
    }));
  }

  /** @returns whether it survives a crash: no command is taken before all is written */
  async #write(change: Parameters<LinkMemory['change']>[0]): Promise<boolean> {
    const { memory, log } = this.#parts;
    try {
      await memory.change(change);
      this.#isStored = true;
    } catch (error) {
      if (this.#isStored)
        log.error('the PanDA link cannot write its memory, and takes no commands until it can', {
          error: messageOf(error),
        });
      this.#isStored = false;
    }
    return this.#isStored;
  }

  /** A site without queue and workers was reported as empty, and is none of ours any more. */
  #forget(own: readonly string[]): void {
    for (const [site, { living }] of this.#reported)
      if (living === 0 && !own.includes(site)) this.#reported.delete(site);
    for (const site of this.#tried.keys())
      if (!this.#reported.has(site) && !own.includes(site)) this.#tried.delete(site);
  }
}

function ofSites<Value>(
  bySite: Readonly<Record<string, Value>>,
  isKept: (value: Value) => boolean,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(bySite).filter(([, value]) => isKept(value)));
}

/** Statuses as the server counts them: it does not see `idle`, and an intent is as good as submitted. */
const words: Readonly<Partial<Record<WorkerStatus, 'submitted' | 'ready' | 'running'>>> = {
  pending: 'submitted',
  submitted: 'submitted',
  idle: 'submitted',
  ready: 'ready',
  running: 'running',
};

const none = { running: 0, submitted: 0, ready: 0, to_submit: 0 } as const;

/**
 * The statistics of a site's living workers. The server takes each report for the whole site, so that every resource type stands in
 * it; and it orders nothing for a site without any, so that a new one reports zeros.
 * Source: panda-server 1.0.4, `worker_module.py`; Harvester seeds `{"managed": {"SCORE": ...}}` alike.
 */
export function statisticsOf(
  counts: readonly Pick<OriginCount, 'jobType' | 'resourceType' | 'status' | 'workers'>[],
): WorkerStatistics {
  type Numbers = Record<keyof typeof none, number>;
  const statistics = new Map<string, Map<string, Numbers>>([['managed', new Map([['SCORE', { ...none }]])]]);
  for (const { jobType, resourceType, status, workers } of counts) {
    const word = words[status];
    if (word === undefined) continue;
    const byType = statistics.get(jobType) ?? new Map<string, Numbers>();
    const numbers = byType.get(resourceType) ?? { ...none };
    numbers[word] += workers;
    byType.set(resourceType, numbers);
    statistics.set(jobType, byType);
  }
  return Object.fromEntries([...statistics].map(([job, byType]) => [job, Object.fromEntries(byType)]));
}
