import type { PandaApi } from '../../clients/panda/api.ts';
import { isObject } from '../../util/json.ts';
import type { Clock } from '../../util/clock.ts';
import { mostOfOneOrder } from './order-book.ts';
import type { ServerHealth } from './server-health.ts';

export interface ActiveJobsParts {
  readonly api: Pick<PandaApi, 'activeJobs' | 'resourceTypes'>;
  readonly clock: Clock;
  readonly health: ServerHealth;
  /** ms */
  readonly interval: number;
}

/** The activated jobs of a site, and when the server counted them, ms UTC. */
export interface JobCount {
  readonly activated: number;
  readonly at: number;
}

/** A count that could not be had again is used for so long, ms. */
const usedFor = 3_600_000;

/** The activated jobs of all sites, for queues that count them themselves. One question for all of them. */
export class ActiveJobs {
  readonly #parts: ActiveJobsParts;
  #counts: { readonly bySite: Readonly<Record<string, unknown>>; readonly at: number } | undefined;
  /** Monotonic ms. */
  #dueAt = -Infinity;

  constructor(parts: ActiveJobsParts) {
    this.#parts = parts;
  }

  /** A site without jobs is not in the server's answer. Undefined where no count can be trusted, or that of the site is no number. */
  of(site: string): JobCount | undefined {
    const counts = this.#counts;
    if (counts === undefined || this.#parts.clock.now() - counts.at > usedFor) return undefined;
    const { bySite, at } = counts;
    const ofSite = Object.hasOwn(bySite, site) ? bySite[site] : {};
    if (!isObject(ofSite)) return undefined;
    const { activated = 0 } = ofSite;
    return typeof activated === 'number' && activated >= 0 && Number.isFinite(activated)
      ? { activated, at }
      : undefined;
  }

  /** @returns whether there is a new count */
  async turn(signal: AbortSignal): Promise<boolean> {
    const { clock, health, interval } = this.#parts;
    if (clock.monotonic() < this.#dueAt) return false;
    const at = clock.now();
    const outcome = await this.#ask(signal);
    health.note('jobs', outcome);
    this.#dueAt = clock.monotonic() + interval;
    if (outcome.kind === 'failed') return false;
    this.#counts = { bySite: outcome.data, at };
    return true;
  }

  /**
   * A server without any job answers as one whose database is down, so a second call says which of the two it is.
   * Source: panda-server 1.0.4, `statistics_api.py`.
   */
  async #ask(signal: AbortSignal): ReturnType<PandaApi['activeJobs']> {
    const { api } = this.#parts;
    const outcome = await api.activeJobs(signal);
    const isEmpty =
      outcome.kind === 'ok' ? Object.keys(outcome.data).length === 0 : outcome.code === 'panda-database';
    if (!isEmpty) return outcome;
    const alive = await api.resourceTypes(signal);
    if (alive.kind === 'ok') return { kind: 'ok', data: {} };
    return outcome.kind === 'failed' ? outcome : alive;
  }
}

export interface JobDemand {
  readonly activated: number;
  /** A number; `auto` is 1, since one instance serves the queue here. */
  readonly factor: number | 'auto';
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
  const wanted = Math.max(Math.trunc(activated * (factor === 'auto' ? 1 : factor)), least);
  return Math.max(0, Math.min(wanted - queued, mostOfOneOrder));
}
