import type { Log } from '../../plugins/contracts/index.ts';
import { toReason } from '../../worker/errors.ts';
import type { Looker, Template } from './look/result.ts';
import type { Need } from './model.ts';

/** Needs that are explained after one look, each by a program: those with most jobs come first, the others after later looks. */
const mostAtOnce = 5;

/** A need without an answer is asked about again after so many looks, so that it does not keep the place of another. */
const looksBetween = 20;

export interface CausesParts {
  readonly looker: Pick<Looker, 'explain'>;
  readonly log: Log;
}

/** Why needs are unservable, for the metrics: the condition that fails, by the keys of needs. */
export class Causes {
  readonly #parts: CausesParts;
  #known = new Map<string, string>();
  /** By key of a need without an answer: the look after which it is asked about again. */
  #silentUntil = new Map<string, number>();
  #looks = 0;
  /** The slot ads for which they hold. */
  #ads = '';
  #running: Promise<void> | undefined;

  constructor(parts: CausesParts) {
    this.#parts = parts;
  }

  /** `RequestGpus >= 2` by the key of a need; nothing of needs that were not explained yet. */
  get all(): ReadonlyMap<string, string> {
    return this.#known;
  }

  /**
   * Takes over the needs of a look, and explains some of them beside the life of the source: an analysis may take minutes, and the next
   * look must not wait for a metric. While earlier ones are being explained, no others are.
   */
  explain(unservable: readonly Need[], templates: readonly Template[], signal: AbortSignal): void {
    this.#looks += 1;
    const ads = templates.map(({ ad }) => ad).join('\0');
    const kept = new Set(ads === this.#ads ? unservable.map(({ key }) => key) : []);
    this.#known = new Map([...this.#known].filter(([key]) => kept.has(key)));
    this.#silentUntil = new Map([...this.#silentUntil].filter(([key]) => kept.has(key)));
    this.#ads = ads;
    const open = unservable.filter(
      ({ key }) => !this.#known.has(key) && (this.#silentUntil.get(key) ?? 0) <= this.#looks,
    );
    if (this.#running !== undefined || open.length === 0) return;
    const first = open.toSorted((one, other) => other.count - one.count).slice(0, mostAtOnce);
    this.#running = this.#explainAll(first, templates, ads, signal).finally(
      () => (this.#running = undefined),
    );
  }

  /** Comes back once nothing is being explained. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #explainAll(
    needs: readonly Need[],
    templates: readonly Template[],
    ads: string,
    signal: AbortSignal,
  ): Promise<void> {
    for (const need of needs) {
      const cause = await this.#causeOf(need, templates, signal);
      // By other slot ads another condition may fail.
      if (signal.aborted || ads !== this.#ads) return;
      if (cause === undefined) this.#silentUntil.set(need.key, this.#looks + looksBetween);
      else this.#known.set(need.key, cause);
    }
  }

  async #causeOf(
    need: Need,
    templates: readonly Template[],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      const found = await this.#parts.looker.explain(need, templates, signal);
      if (found === undefined) return undefined;
      const { conditions, sentence } = found;
      return conditions.length > 0 ? conditions.join(' && ') : sentence;
    } catch (error) {
      if (!signal.aborted)
        this.#parts.log.warn('jobs that nothing takes could not be explained', {
          schedd: need.schedd,
          jobs: need.count,
          ...toReason(error),
        });
      return undefined;
    }
  }
}
