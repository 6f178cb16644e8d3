import type { Loop } from '../../agents/loop.ts';
import { Progress } from '../../agents/loop.ts';
import { NewsCourier } from '../../agents/sources/news-courier.ts';
import { SourceLife } from '../../agents/sources/source-life.ts';
import type { NewsPart } from '../../store/news.ts';
import type { Desk, Source } from '../../plugins/contracts/index.ts';
import { within } from '../../util/within.ts';
import type { Reason } from '../../worker/reason.ts';
import { contextFor } from '../agent-context.ts';
import { type LoopParts, watched } from '../queue-loops.ts';
import type { RunningSource, SourceSet } from '../source-set.ts';
import type { Sharing } from '../sharing/sharing.ts';
import type { Service, ServicePart } from './service.ts';

export interface SourceServiceParts extends LoopParts {
  readonly sources: Pick<SourceSet, 'all' | 'onChange'>;
  readonly deskFor: (kind: string) => Desk;
  /** The part of this daemon, where several share a factory. */
  readonly sharing?: Pick<Sharing, 'holdsSource' | 'queues'> | undefined;
  /** Called when the health of a source may have changed. */
  readonly changed: () => void;
}

/** How long the life of a source may take to end, ms: longer ones are left alone. */
const patience = 5000;

/** A source at work. */
interface AtWork {
  readonly source: Source;
  /** Whether its life was here when this was made. */
  readonly isHere: boolean;
  readonly problem: Reason | undefined;
  readonly life: SourceLife | undefined;
  readonly courier: NewsCourier | undefined;
  /** Brings the news. */
  readonly loop: Loop | undefined;
}

/** The sources that hear of their workers or live a life of their own. */
export class SourceService implements Service {
  readonly name = 'sources';
  readonly required = false;
  readonly #parts: SourceServiceParts;
  /** By kind. */
  readonly #atWork = new Map<string, AtWork>();
  /** By kind, the ends of earlier lives. */
  readonly #endings = new Map<string, Promise<void>>();
  /** By kind, lives that go on although they were told to end. */
  readonly #hanging = new Map<string, Set<SourceLife>>();
  /** By kind, how many news were dropped before the source took them. */
  readonly #dropped = new Map<string, number>();
  #stopped = false;

  constructor(parts: SourceServiceParts) {
    this.#parts = parts;
  }

  async begin(): Promise<void> {
    const { sources, context, changed } = this.#parts;
    const { events } = context;
    events.on('newsWritten', ({ kinds }) => {
      for (const kind of kinds) this.#atWork.get(kind)?.loop?.wake();
    });
    events.on('originsKnown', ({ kind, origins }) => {
      const { courier, loop } = this.#atWork.get(kind) ?? {};
      courier?.askedAgain(origins);
      loop?.wake();
    });
    events.on('passEnded', ({ loop }) => {
      if (loop.startsWith(newsLoop(''))) changed();
    });
    sources.onChange((now) => {
      this.#use(now);
    });
    this.#use(sources.all);
  }

  async stop(end: number): Promise<void> {
    this.#stopped = true;
    const time = Math.min(patience, Math.max(0, end - this.#parts.context.clock.monotonic()));
    const lives = [...this.#atWork].flatMap(([kind, { life }]) =>
      life === undefined ? [] : [{ kind, life }],
    );
    await Promise.all([
      ...lives.map(({ kind, life }) => this.#end(kind, life, time)),
      ...this.#endings.values(),
    ]);
  }

  health(): readonly ServicePart[] {
    return [...this.#atWork].flatMap(([kind, { problem, life, loop }]) => {
      if (problem === undefined && life === undefined && loop === undefined) return [];
      const trouble = problem ?? life?.failure ?? loop?.health.lastError;
      return [{ name: `source ${kind}`, trouble, note: this.#note(kind) }];
    });
  }

  /**
   * Lives begin and end with what this daemon has now. Comes when those that ended are over. @returns the kinds for which one that was
   * told to end still goes on, or news are still being brought
   */
  async sharesChanged(): Promise<ReadonlySet<string>> {
    const { sources, loops, context } = this.#parts;
    this.#use(sources.all);
    await Promise.all(this.#endings.values());
    const kinds = [...this.#atWork.keys()];
    const brought = Promise.all(kinds.map((kind) => loops.ended(newsLoop(kind)))).then(() => undefined);
    await within(context.clock, patience, brought);
    for (const { loop } of this.#atWork.values()) loop?.wake();
    return new Set(kinds.filter((kind) => this.#hanging.has(kind) || loops.isEnding(newsLoop(kind))));
  }

  /** Whether a source lives here, and not at another daemon. */
  livesHere(kind: string): boolean {
    const running = this.#parts.sources.all.find((one) => one.kind === kind);
    return running !== undefined && this.#isHere(running);
  }

  /** A source whose queues may be anywhere hears of those that are here; another one of all, where it lives. */
  #partOf(running: RunningSource, { queues }: Pick<Sharing, 'queues'>): NewsPart | undefined {
    const isHere = this.#isHere(running);
    if (running.definition.perQueue) return { queues, ofNoQueue: isHere };
    return isHere ? undefined : { queues: new Set(), ofNoQueue: false };
  }

  #isHere({ kind, definition }: Pick<RunningSource, 'kind' | 'definition'>): boolean {
    return this.#parts.sharing?.holdsSource(kind, definition.perQueue) ?? true;
  }

  /** Drops news that no source took for too long, and all but the newest of them where there are too many. */
  async dropOldNews(): Promise<void> {
    const { context, settings } = this.#parts;
    const { store, believed, log } = context;
    const { keepNews, mostNews } = settings.sweeper;
    const before = believed.now() - keepNews * 3_600_000;
    for (const [source, count] of await store.news.drop(before, mostNews)) {
      log.error('news that a source did not take were dropped', { source, count });
      this.#dropped.set(source, (this.#dropped.get(source) ?? 0) + count);
      this.#parts.changed();
    }
  }

  #note(kind: string): Reason | undefined {
    const count = this.#dropped.get(kind);
    if (count === undefined) return undefined;
    const message = `${count} news of its workers were dropped, because it did not take them for too long`;
    return { code: 'news-dropped', message };
  }

  /** These are at work from now on. One that was made anew takes the place of the former one. */
  #use(now: readonly RunningSource[]): void {
    if (this.#stopped) return;
    const { context, changed } = this.#parts;
    const before = new Map(this.#atWork);
    this.#atWork.clear();
    // Before anything is written of a worker: a change that is not listened to leaves no news.
    context.store.news.listen(new Set(now.flatMap(({ kind, source }) => (source.told ? [kind] : []))));
    for (const running of now) {
      const { kind, source } = running;
      const former = before.get(kind);
      before.delete(kind);
      const isSame = former?.source === source && former.isHere === this.#isHere(running);
      const next = isSame ? former : this.#make(running);
      this.#atWork.set(kind, next);
      if (next !== former) this.#exchange(kind, former, next);
    }
    for (const [kind, former] of before) this.#exchange(kind, former, undefined);
    changed();
  }

  #make(running: RunningSource): AtWork {
    const { kind, source, problem } = running;
    const { context, deskFor, changed, sharing } = this.#parts;
    const { clock, log } = context;
    const isHere = this.#isHere(running);
    const life =
      source.run === undefined || !isHere
        ? undefined
        : new SourceLife(kind, source, deskFor(kind), { clock, log, changed });
    if (source.told === undefined)
      return { source, isHere, problem, life, courier: undefined, loop: undefined };
    const progress = new Progress(clock);
    const part = sharing && (() => this.#partOf(running, sharing));
    const courier = new NewsCourier(kind, source, {
      ...contextFor(context, progress),
      ...(part && { part }),
    });
    const loop = this.#parts.loops.add({
      ...watched(this.#parts, progress),
      name: newsLoop(kind),
      // Woken by what is written, and never by time: a source without news costs no question.
      interval: Infinity,
      // A server that was down for long hears its news within a minute of its return.
      longestPause: 60_000,
      pass: (signal) => courier.pass(signal),
    });
    return { source, isHere, problem, life, courier, loop };
  }

  #exchange(kind: string, former: AtWork | undefined, next: AtWork | undefined): void {
    const loopsOf = (one: AtWork | undefined) => (one?.loop === undefined ? [] : [one.loop]);
    this.#parts.loops.replace(newsLoop(kind), loopsOf(former), loopsOf(next));
    const ended = former?.life === undefined ? undefined : this.#end(kind, former.life, patience);
    const before = Promise.all([this.#endings.get(kind), ended]);
    const start = before.then(() => {
      if (!this.#stopped && this.#atWork.get(kind) === next) next?.life?.start();
    });
    this.#endings.set(kind, start);
  }

  async #end(kind: string, life: SourceLife, time: number): Promise<void> {
    const { clock, log } = this.#parts.context;
    const over = life.stop();
    if (await within(clock, time, over)) return;
    log.warn('a source does not end; it is left alone', { source: kind, waited: time / 1000 });
    const hanging = this.#hanging.get(kind) ?? new Set();
    this.#hanging.set(kind, hanging.add(life));
    over.then(
      () => {
        hanging.delete(life);
        if (hanging.size === 0) this.#hanging.delete(kind);
      },
      () => undefined,
    );
  }
}

const newsLoop = (kind: string) => `news ${kind}`;
