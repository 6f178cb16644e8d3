import type { Log, Source, WorkerNews } from '../../plugins/contracts/index.ts';
import type { NewsPart, NewsStore } from '../../store/news.ts';
import type { OriginStore } from '../../store/origins.ts';
import { nextTurn } from '../../util/clock.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { Step } from '../queue-runtime.ts';
import { keyOf } from '../submission/entries.ts';

export interface CourierParts {
  readonly log: Log;
  readonly calls: PluginCalls;
  readonly store: {
    readonly news: Pick<NewsStore, 'next' | 'taken'>;
    readonly origins: Pick<OriginStore, 'known'>;
  };
  /** The news that are this daemon's, where several share a factory. Default: all. */
  readonly part?: () => NewsPart | undefined;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/** News of one call. A source that takes none of them gets the same again, half as many: it may be slow. */
const mostAtOnce = 1000;

/**
 * Brings one source its news, in order, each at least once: they leave the database after the source took them. An answer to a
 * question (`known`) is not in the database; a crash loses it, and the source, which then asks again, gets it again.
 */
export class NewsCourier {
  readonly #kind: string;
  readonly #source: Pick<Source, 'told'>;
  readonly #parts: CourierParts;
  /** Origins that the source asked for again, by key. */
  readonly #askedAgain = new Map<string, OriginKey>();
  /** How many news the next call brings. It doubles with each call that succeeds. */
  #atOnce = mostAtOnce;

  constructor(kind: string, source: Pick<Source, 'told'>, parts: CourierParts) {
    this.#kind = kind;
    this.#source = source;
    this.#parts = parts;
  }

  /** The source asked for these, which have had their worker or were withdrawn: it is to hear of them. */
  askedAgain(origins: readonly OriginKey[]): void {
    for (const origin of origins) this.#askedAgain.set(keyOf(this.#kind, origin), origin);
  }

  /** Brings everything there is. @throws ThresherError `plugin-timeout`, or an error of the source: the same news come again */
  async pass(signal: AbortSignal): Promise<void> {
    const { calls, store, step } = this.#parts;
    while (!signal.aborted) {
      const atOnce = this.#atOnce;
      const asked = [...this.#askedAgain].slice(0, atOnce);
      const answers = asked.length === 0 ? [] : await this.#answers(asked);
      // A queue that leaves meanwhile is another daemon's: what is told of it here is told there once more.
      const part = this.#parts.part?.();
      const news = await store.news.next(this.#kind, atOnce, part);
      // An answer tells how it is now: news from before must not come after it.
      const batch = news.length < atOnce ? withAnswers(news, answers) : news;
      if (batch.length === 0) return;
      step('news:before-told');
      this.#atOnce = Math.ceil(atOnce / 2);
      await calls.call(`news of source ${this.#kind}`, async (end) => this.#source.told?.(batch, end));
      this.#atOnce = Math.min(mostAtOnce, atOnce * 2);
      step('news:before-taken');
      const last = news.at(-1);
      if (last !== undefined) await store.news.taken(this.#kind, last.sequence, part);
      if (news.length < atOnce) for (const [key] of asked) this.#askedAgain.delete(key);
      await nextTurn();
    }
  }

  #answers(asked: readonly (readonly [string, OriginKey])[]): Promise<WorkerNews[]> {
    return this.#parts.store.origins.known(
      this.#kind,
      asked.map(([, origin]) => origin),
    );
  }
}

/** News of an origin that has an answer, too, tell the same and later: its answer is left out. */
function withAnswers(news: readonly WorkerNews[], answers: readonly WorkerNews[]): readonly WorkerNews[] {
  if (answers.length === 0) return news;
  const told = new Set(news.map(({ origin }) => keyOf('', origin)));
  return [...news, ...answers.filter(({ origin }) => !told.has(keyOf('', origin)))];
}
