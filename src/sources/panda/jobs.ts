import type { PandaQueueOptions } from './options.ts';
import type { PandaApi } from '../../clients/panda/api.ts';
import { isObject } from '../../util/json.ts';
import type { Clock } from '../../util/clock.ts';
import { mostOfOneOrder } from './order-book.ts';
import type { ServerHealth } from './server-health.ts';

export interface ActiveJobsParts {
  readonly api: Pick<PandaApi, 'activeJobs' | 'resourceTypes' | 'workerStatistics'>;
  readonly clock: Clock;
  readonly health: ServerHealth;
  readonly harvesterId: string;
  /** ms */
  readonly interval: number;
}

/** The activated jobs of a site, and when the server counted them, ms UTC. */
export interface JobCount {
  readonly activated: number;
  readonly at: number;
}

/** An answer about all sites, and when it was asked for, ms UTC. */
interface SiteAnswer {
  readonly bySite: Readonly<Record<string, unknown>>;
  readonly at: number;
}

/** An answer that could not be had again is used for so long, ms. */
const usedFor = 3_600_000;

/** The activated jobs of all sites, for queues that count them themselves, and who shares them. One question for all sites. */
export class ActiveJobs {
  readonly #parts: ActiveJobsParts;
  #counts: SiteAnswer | undefined;
  #statistics: SiteAnswer | undefined;
  /** By what the last answers say of a site, which may name tens of thousands: passes ask for it, and the status is asked for all the time. */
  readonly #instances = new WeakMap<object, number>();
  #asksForInstances = false;
  /** Monotonic ms. */
  #dueAt = -Infinity;

  constructor(parts: ActiveJobsParts) {
    this.#parts = parts;
  }

  /** A site without jobs is not in the server's answer. Undefined where no count can be trusted, or that of the site is no number. */
  of(site: string): JobCount | undefined {
    const ofSite = this.#ofSite(this.#counts, site);
    if (ofSite === undefined || this.#counts === undefined) return undefined;
    const { activated = 0 } = ofSite;
    return typeof activated === 'number' && activated >= 0 && Number.isFinite(activated)
      ? { activated, at: this.#counts.at }
      : undefined;
  }

  /**
   * How many instances report workers of a site, this one among them. Undefined where no answer can be trusted.
   * Source: Harvester's worker_adjuster, `get_activate_worker_factor`, which counts those that the server names.
   */
  instancesOf(site: string): number | undefined {
    const ofSite = this.#ofSite(this.#statistics, site);
    if (ofSite === undefined) return undefined;
    const known = this.#instances.get(ofSite);
    if (known !== undefined) return known;
    const others = Object.keys(ofSite).length;
    const instances = Object.hasOwn(ofSite, this.#parts.harvesterId) ? others : others + 1;
    this.#instances.set(ofSite, instances);
    return instances;
  }

  #ofSite(answer: SiteAnswer | undefined, site: string): Readonly<Record<string, unknown>> | undefined {
    if (answer === undefined || this.#parts.clock.now() - answer.at > usedFor) return undefined;
    const ofSite = Object.hasOwn(answer.bySite, site) ? answer.bySite[site] : {};
    return isObject(ofSite) ? ofSite : undefined;
  }

  /** From now on the server is asked which instances share the jobs of a site. */
  askForInstances(): void {
    if (this.#asksForInstances) return;
    this.#asksForInstances = true;
    this.#dueAt = -Infinity;
  }

  /** @returns whether there is a new answer */
  async turn(signal: AbortSignal): Promise<boolean> {
    const { api, clock, interval } = this.#parts;
    if (clock.monotonic() < this.#dueAt) return false;
    const counts = await this.#ask('jobs', () => api.activeJobs(signal), signal);
    // After the jobs: of jobs that came with another instance, this one would else take the whole.
    const statistics = this.#asksForInstances
      ? await this.#ask('worker-statistics', () => api.workerStatistics(signal), signal)
      : undefined;
    this.#dueAt = clock.monotonic() + interval;
    this.#statistics = statistics ?? this.#statistics;
    this.#counts = counts ?? this.#counts;
    return counts !== undefined || statistics !== undefined;
  }

  /**
   * A server that has nothing to tell answers as one whose database is down, so a second call says which of the two it is.
   * Source: panda-server 1.0.4, `statistics_api.py`, `harvester_api.py`.
   */
  async #ask(
    name: 'jobs' | 'worker-statistics',
    call: () => ReturnType<PandaApi['activeJobs']>,
    signal: AbortSignal,
  ): Promise<SiteAnswer | undefined> {
    const { api, clock, health } = this.#parts;
    const at = clock.now();
    const first = await call();
    const isEmpty =
      first.kind === 'ok' ? Object.keys(first.data).length === 0 : first.code === 'panda-database';
    const alive = isEmpty ? await api.resourceTypes(signal) : undefined;
    const isNone = alive?.kind === 'ok';
    const outcome = isNone ? { kind: 'ok' as const, data: {} } : alive && first.kind === 'ok' ? alive : first;
    health.note(name, outcome);
    return outcome.kind === 'failed' ? undefined : { bySite: outcome.data, at };
  }
}

export interface JobDemand {
  /** The part of them that this instance serves. */
  readonly activated: number;
  /** Workers per job. */
  readonly factor: number;
  readonly noneWithoutJobs: boolean;
  /** Workers of the queue that are queued, intents among them. */
  readonly queued: number;
}

/**
 * How many new workers activated jobs ask for. The limits of the queue cut them as they cut every demand. One worker stays queued
 * without any job, so that a queue shows that it works. It asks for as many at a time as one order of the server may.
 * Source: Harvester's worker_adjuster, `define_num_workers`.
 */
export function workersForJobs({ activated, factor, noneWithoutJobs, queued }: JobDemand): number {
  const least = noneWithoutJobs ? 0 : 1;
  const wanted = Math.max(Math.trunc(activated * factor), least);
  return Math.max(0, Math.min(wanted - queued, mostOfOneOrder));
}

/**
 * Whether a queue without activated jobs gets no worker at all. Source: Harvester's worker_adjuster
 * (`get_queue_no_pilots_when_no_active_jobs`), where true counts in either place; the queue's `demand` section is thresher's own.
 */
export function getsNoneWithoutJobs(
  demand: Pick<PandaQueueOptions, 'noPilotsWhenNoActiveJobs'>,
  submitter: { readonly noPilotsWhenNoActiveJobs?: boolean },
  settings: { readonly noPilotsWhenNoActiveJobs: boolean },
): boolean {
  const ofHarvester = [submitter, settings].some((one) => one.noPilotsWhenNoActiveJobs === true);
  return demand.noPilotsWhenNoActiveJobs ?? ofHarvester;
}
