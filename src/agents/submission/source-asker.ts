import type { Log, Request, RequestSeries, Source, SourceQueue } from '../../plugins/contracts/index.ts';
import type { OriginStore } from '../../store/origins.ts';
import { type Clock, givingWay } from '../../util/clock.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Emit } from '../events.ts';
import type { PluginCalls } from '../plugin-calls.ts';
import type { QueueRuntime, QueueSource } from '../queue-runtime.ts';
import { type Answered, hasOrigin, readAnswer } from './check-wanted.ts';
import { type Entry, entriesOf, keyOf, partOfSlot, withoutOrigins } from './entries.ts';
import { type Refusal, summaryOf, whyMalformed, whyRefused } from './refusals.ts';
import {
  type Brought,
  type BroughtRequest,
  type JudgedRequests,
  lacksPayload,
  namedIn,
  partsOf,
} from './payloads.ts';
import type { Waiting } from './why-waiting.ts';
import { scaleDemand } from './worker-maker.ts';

export interface AskerParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly calls: PluginCalls;
  readonly events: Emit;
  readonly store: { readonly origins: Pick<OriginStore, 'known'> };
  /** To be awaited between the parts of passes: those of many queues may begin at one moment. */
  readonly giveWay: () => Promise<void>;
}

/** The workers that the sources of a queue ask for, before any limit. */
export interface Wanted {
  /** In the order of service. */
  readonly entries: readonly Entry[];
  /** Why sources that ask for workers ask for no more of them. */
  readonly reasons: readonly Reason[];
  /** Why sources ask for nothing, or why some of their requests get no worker: true after the submission, too. */
  readonly standing: readonly Reason[];
  /** Requests that no limit holds back and that get no worker all the same. */
  readonly refused: readonly Waiting[];
  /** How many requests wait beyond those in `entries`, by source. */
  readonly beyond: ReadonlyMap<string, number>;
  /** Requests wait that this pass had no turn for, and room for them became free: the next pass is due at once. */
  readonly again: boolean;
}

/** So many requests of one source count in one pass: a pass must stay short, whatever a source asks for. */
export const mostRequests = 10_000;
/**
 * Of requests in series so many more count than there is room for: one of each series counts in any case, and this many of further ones, so
 * that a limit that holds back one kind of needs leaves its room to others.
 */
const mostBeyondRoom = 1000;

/**
 * The first pause of a source that fails, and the longest, ms. A pause is at least so many times as long as the failure took: a source
 * that hangs would delay its queues by a whole deadline after each short pause.
 */
const pauses = { first: 1000, longest: 300_000, timesTheCost: 5 };

/** An origin that a source asked for in the last pass. */
interface Remembered {
  /** Whether the database was asked about it. */
  asked: boolean;
  /** Whether it has had its worker, or was withdrawn: it is left out without any further question. */
  known: boolean;
  readonly request: unknown;
  readonly refusal: Reason | undefined;
  /** Whether its payload was refused, also one of an earlier request of this origin. */
  readonly hadWrongPayload: boolean;
}

interface Named extends Judged {
  readonly kind: string;
}

/** Asks the sources of one queue what they want, and leaves out what cannot or must not get a worker. */
export class SourceAsker {
  readonly #runtime: QueueRuntime;
  readonly #parts: AskerParts;
  /** By kind, as they were asked last. */
  #asked: ReadonlyMap<string, AskedSource> = new Map();

  constructor(runtime: QueueRuntime, parts: AskerParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  /**
   * Side by side, so that a source that hangs delays no other by more than its own deadline; and this one pauses after it.
   * @param room how many workers the limits may let through at most
   * @throws ThresherError `shutting-down`
   */
  async ask(room: () => Promise<number>): Promise<Wanted> {
    const { config, requirements, sources } = this.#runtime;
    const { mapType, runMode } = config.options;
    const { wholeSlots = false, noPilotsWhenNoActiveJobs = false } = config.worker;
    const facts = { requirements, wholeSlots, noPilotsWhenNoActiveJobs, mapType, runMode };
    const asked = new Map(sources.map((source) => [source, this.#askedOf(source)]));
    this.#asked = new Map([...asked].map(([{ kind }, one]) => [kind, one]));
    const parts = await Promise.all(
      [...asked].map(([{ own, options }, one]) =>
        one.ask({ name: config.name, ...facts, own, options }, room),
      ),
    );
    return {
      entries: parts.flatMap(({ entries }) => entries),
      reasons: parts.flatMap(({ entries, reasons }) => (entries.length > 0 ? reasons : [])),
      standing: parts.flatMap(({ entries, reasons, standing }) => [
        ...standing,
        ...(entries.length > 0 ? [] : reasons),
      ]),
      refused: parts.flatMap(({ refused }) => refused),
      beyond: new Map(parts.flatMap(({ kind, beyond }) => (beyond > 0 ? [[kind, beyond] as const] : []))),
      again: parts.some(({ again }) => again),
    };
  }

  /**
   * Looks at payloads that are there: at those of workers that are about to be made and at no others, since thousands may wait that are
   * long. Where some are refused, those behind them have their room.
   * @param letThrough entries as far as the limits let them through
   */
  async judge(
    entries: readonly Entry[],
    letThrough: (entries: readonly Entry[]) => readonly Entry[],
  ): Promise<JudgedRequests> {
    const giveWay = givingWay(this.#parts.clock);
    const judged = new Set<Request>();
    const refusals: Named[] = [];
    let left = entries;
    let isNews = false;
    for (let open = letThrough(left); ; open = letThrough(left)) {
      const due = named(open).filter(({ request }) => !judged.has(request));
      if (due.length === 0) break;
      // Each round goes over all that wait: where many are refused, it looks at twice as many as the one before.
      const further = due.length < refusals.length ? named(left) : [];
      const others = further.filter(({ request }) => !judged.has(request)).slice(0, refusals.length);
      const refused = new Set<string>();
      for (const { kind, request } of [...due, ...others]) {
        if (judged.has(request)) continue;
        judged.add(request);
        const found = this.#asked.get(kind)?.judge(request);
        await giveWay();
        if (found === undefined) continue;
        refused.add(keyOf(kind, request.origin));
        refusals.push({ kind, ...found });
        isNews ||= found.isNews;
      }
      left = withoutOrigins(left, refused);
    }
    return {
      judged,
      refused: refusals.map(({ kind, request, reason }) => ({ kind, requests: [request], reason })),
      reasons: [...Map.groupBy(refusals, ({ kind }) => kind)].flatMap(([kind, some]) =>
        summaryOf(kind, some),
      ),
      isNews,
    };
  }

  /** Brings the payloads that follow. Requests that get none are left out. @throws ThresherError `shutting-down` */
  async bring(entries: readonly Entry[]): Promise<Brought> {
    const kinds = Map.groupBy(entries, ({ kind }) => kind);
    const parts = await Promise.all(
      [...kinds].map(async ([kind, some]) => {
        const requests = some.flatMap(namedIn).filter(lacksPayload);
        return requests.length === 0 ? undefined : this.#asked.get(kind)?.bring(requests);
      }),
    );
    const all = parts.filter((part) => part !== undefined);
    return {
      outcomes: new Map(all.flatMap(({ outcomes }) => [...outcomes])),
      refused: all.flatMap(({ refused }) => refused),
      reasons: all.flatMap(({ reasons }) => reasons),
      isNews: all.some(({ isNews }) => isNews),
    };
  }

  /** These got their rows: a source may go on to ask for them, and hears of them by its news. */
  recorded(kind: string, origins: readonly OriginKey[]): void {
    this.#asked.get(kind)?.remember(origins);
  }

  /** A source that was made anew is asked as one of which nothing is known. */
  #askedOf({ kind, source }: QueueSource): AskedSource {
    const asked = this.#asked.get(kind);
    return asked?.source === source ? asked : new AskedSource(kind, source, this.#runtime, this.#parts);
  }

  /** The database refused these, because another pass was faster or they were withdrawn meanwhile. */
  conflicted(kind: string, origins: readonly OriginKey[]): void {
    this.recorded(kind, origins);
    const keys = origins.map(({ uid, index }) => ({ uid, index }));
    this.#parts.events.emit('originsKnown', { kind, origins: keys });
  }
}

interface Judged extends Refusal {
  readonly request: Request;
  readonly isNews: boolean;
}

/** The share of one source in what a queue wants. */
interface Share {
  readonly kind: string;
  readonly entries: readonly Entry[];
  readonly reasons: readonly Reason[];
  readonly standing: readonly Reason[];
  readonly refused: readonly Waiting[];
  readonly beyond: number;
  readonly again: boolean;
}

/** The requests of one answer, as far as they were looked at. */
interface Sorted {
  readonly candidates: readonly Remembered[];
  readonly refusals: readonly Refusal[];
  /** How many wait for a later pass because there are too many. */
  readonly beyond: number;
  /** How many of series were not looked at, since there is no room for them. */
  readonly unmade: number;
  /** Whether there is room for one of those. */
  readonly isRoom: boolean;
}

/** One source as it is asked about one queue. */
class AskedSource {
  readonly source: Source;
  readonly #kind: string;
  readonly #runtime: QueueRuntime;
  readonly #parts: AskerParts;
  /** By key; the origins of the last pass alone, so that it does not grow beyond what a source asks for. */
  #memory = new Map<string, Remembered>();
  /** How many origins the database knew already of those that the last pass asked it about. */
  #foundKnown = 0;
  #failures = 0;
  #failure: Reason | undefined;
  /** Monotonic ms. */
  #pausedUntil = -Infinity;

  constructor(kind: string, source: Source, runtime: QueueRuntime, parts: AskerParts) {
    this.#kind = kind;
    this.source = source;
    this.#runtime = runtime;
    this.#parts = parts;
  }

  async ask(queue: SourceQueue, room: () => Promise<number>): Promise<Share> {
    const { clock, calls } = this.#parts;
    const kind = this.#kind;
    if (this.#failure !== undefined && clock.monotonic() < this.#pausedUntil)
      return this.#nothing(this.#failure);
    const begun = clock.monotonic();
    let answer: unknown;
    try {
      answer = await calls.call(`source ${kind} for ${queue.name}`, (signal) =>
        this.source.wanted(queue, signal),
      );
    } catch (error) {
      // The daemon stops: that is no failure of the source, and the pass must not go on without its requests.
      if (error instanceof ThresherError && error.code === 'shutting-down') throw error;
      return this.#fail(toReason(error).message, begun);
    }
    const read = readAnswer(answer);
    if (typeof read === 'string') return this.#fail(read, begun);
    const { requests, series = [] } = read;
    const most = series.length === 0 ? 0 : await room();
    let sorted: Sorted;
    try {
      sorted = await this.#sort(requests, series, most);
    } catch (error) {
      return this.#fail(toReason(error).message, begun);
    }
    this.#recover();
    return this.#take(read, sorted);
  }

  /** These are left out from now on. */
  remember(origins: readonly OriginKey[]): void {
    for (const origin of origins) {
      const remembered = this.#memory.get(keyOf(this.#kind, origin));
      if (remembered !== undefined) remembered.known = true;
    }
  }

  /** @returns why no worker can have the payload of a request, and whether that is new; undefined where one can */
  judge(request: Request): Judged | undefined {
    const reason = whyRefused(request, this.#runtime);
    return reason && { request, reason, isNews: this.#refuse(request, reason) };
  }

  async bring(requests: readonly Request[]): Promise<Brought> {
    const kind = this.#kind;
    const begun = this.#parts.clock.monotonic();
    let payloads: unknown;
    try {
      payloads = await this.#parts.calls.call(
        `payloads of source ${kind}`,
        (signal) =>
          this.source.payloads?.(requests, signal) ??
          Promise.reject(new Error('its requests say payloadFollows, and it has no method payloads')),
      );
      if (!(payloads instanceof Map)) throw new Error('its payloads are no Map');
    } catch (error) {
      if (error instanceof ThresherError && error.code === 'shutting-down') throw error;
      const { standing } = this.#fail(toReason(error).message, begun);
      return {
        outcomes: new Map(requests.map((request) => [request, 'left'])),
        refused: [],
        reasons: standing,
        isNews: false,
      };
    }
    const outcomes = new Map<Request, BroughtRequest>();
    const refusals: (Refusal & { readonly request: Request })[] = [];
    const giveWay = givingWay(this.#parts.clock);
    let isNews = false;
    for (const request of requests) {
      await giveWay();
      const payload = (payloads as ReadonlyMap<Request, Request['payload']>).get(request);
      const complete = payload === undefined ? undefined : { ...partsOf(request), payload };
      const reason = complete === undefined ? undefined : whyRefused(complete, this.#runtime);
      outcomes.set(request, reason === undefined ? (complete ?? 'left') : 'refused');
      if (reason === undefined) continue;
      refusals.push({ request, reason });
      if (this.#refuse(request, reason)) isNews = true;
    }
    const refused = refusals.map(({ request, reason }) => ({ kind, requests: [request], reason }));
    return { outcomes, refused, reasons: summaryOf(kind, refusals), isNews };
  }

  /** It is left out until the source asks for it with another request. @returns whether its payload was not refused before */
  #refuse({ origin }: Request, refusal: Reason): boolean {
    const key = keyOf(this.#kind, origin);
    const remembered = this.#memory.get(key);
    if (remembered === undefined) return false;
    this.#memory.set(key, { ...remembered, refusal, hadWrongPayload: true });
    return !remembered.hadWrongPayload;
  }

  async #take(
    { groups, reasons }: Answered,
    { candidates, refusals, beyond, unmade, isRoom }: Sorted,
  ): Promise<Share> {
    const kind = this.#kind;
    const { config, requirements } = this.#runtime;
    const known = await this.#leaveOutKnown(candidates);
    this.#foundKnown = known;
    const wanted = candidates.filter(({ refusal, known }) => !known && refusal === undefined);
    const named = wanted.map(({ request }) => request as Request);
    const counted = scaleDemand(groups, config.worker).map((group) => ({
      ...group,
      requirements: partOfSlot(group.requirements, requirements, config.worker),
      kind,
    }));
    const all = [
      ...refusals,
      ...candidates.flatMap(({ request, refusal, known }) =>
        refusal === undefined || known ? [] : [{ request, reason: refusal }],
      ),
    ];
    return {
      kind,
      entries: [...entriesOf(kind, named, requirements, config.worker), ...counted],
      reasons,
      standing: [...summaryOf(kind, all), ...(beyond > 0 ? [flood(kind, beyond)] : [])],
      refused: all.flatMap(({ request, reason }) =>
        hasOrigin(request) ? [{ kind, requests: [request as Request], reason }] : [],
      ),
      beyond: beyond + unmade,
      again: (beyond > 0 || (unmade > 0 && isRoom)) && known > 0,
    };
  }

  /**
   * Goes through all requests, in their order, and takes the first of those that may still get a worker. Of a series it makes no more than there
   * may be room for, and one: the limit that holds it back is to say so.
   */
  async #sort(requests: readonly unknown[], series: readonly RequestSeries[], room: number): Promise<Sorted> {
    const kind = this.#kind;
    const memory = new Map<string, Remembered>();
    const candidates: Remembered[] = [];
    const refusals: Refusal[] = [];
    let [beyond, unmade] = [0, 0];
    /** Candidates that may get a worker: refused ones take no turn from those behind them. */
    let takers = 0;
    const take = (request: unknown) => {
      if (!hasOrigin(request)) {
        refusals.push({ request, reason: whyMalformed(request) ?? unnamed });
        return;
      }
      const key = keyOf(kind, request.origin);
      const before = this.#memory.get(key);
      if (memory.has(key)) {
        if (before?.known !== true) refusals.push({ request, reason: twice(request.origin) });
      } else if (before?.known === true) memory.set(key, before);
      else if (takers >= mostRequests) beyond++;
      else {
        const remembered = before?.request === request ? before : look(request, before);
        memory.set(key, remembered);
        candidates.push(remembered);
        if (remembered.refusal === undefined && !remembered.hadWrongPayload) takers++;
      }
    };
    if (requests.length + series.length > 0) await this.#parts.giveWay();
    for (const request of requests) take(request);
    let spare = room + mostBeyondRoom;
    // Where the last pass met workers that were made already, there may be many: each pass goes further, so that it takes few of them.
    const turns = room + 2 * this.#foundKnown;
    // A pass stays short where a whole series is refused.
    const mostPassedOver = candidates.length + refusals.length - takers + mostRequests;
    for (const { count, requests: its } of series) {
      await this.#parts.giveWay();
      const before = takers;
      const enough = Math.max(1, Math.min(turns + 1, spare));
      let made = 0;
      if (count > 0 && takers < mostRequests)
        for (const request of its) {
          take(request);
          if (++made >= count || takers >= mostRequests || takers - before >= enough) break;
          if (candidates.length + refusals.length - takers >= mostPassedOver) break;
        }
      spare -= takers - before;
      unmade += count - made;
    }
    this.#memory = memory;
    return { candidates, refusals, beyond, unmade, isRoom: room > 0 };
  }

  /** One question for all new origins; @returns how many were known. */
  async #leaveOutKnown(candidates: readonly Remembered[]): Promise<number> {
    const kind = this.#kind;
    const fresh = candidates.filter(({ asked }) => !asked);
    if (fresh.length === 0) return 0;
    const asked = fresh.map(({ request }) => (request as Request).origin);
    const known = await this.#parts.store.origins.known(kind, asked);
    for (const candidate of fresh) candidate.asked = true;
    const origins = known.map(({ origin }) => origin);
    this.remember(origins);
    if (origins.length > 0) this.#parts.events.emit('originsKnown', { kind, origins });
    return origins.length;
  }

  /** @param begun monotonic ms, when it was asked */
  #fail(why: string, begun: number): Share {
    const { clock, log } = this.#parts;
    const kind = this.#kind;
    const message = `source ${kind}: ${why}`;
    this.#failures++;
    const now = clock.monotonic();
    const grown = pauses.first * 2 ** Math.min(this.#failures - 1, 20);
    this.#pausedUntil = now + Math.min(Math.max(grown, pauses.timesTheCost * (now - begun)), pauses.longest);
    if (this.#failure?.message !== message)
      log.error('a source failed', { queue: this.#runtime.config.name, source: kind, error: why });
    this.#failure = { code: 'source-failed', message };
    return this.#nothing(this.#failure);
  }

  #recover(): void {
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#failures = 0;
    const facts = { queue: this.#runtime.config.name, source: this.#kind };
    this.#parts.log.info('a source that failed answers again', facts);
  }

  #nothing(reason: Reason): Share {
    const kind = this.#kind;
    return { kind, entries: [], reasons: [], standing: [reason], refused: [], beyond: 0, again: false };
  }
}

/** A request that the source asks for the first time, or asks for anew. */
function look(request: unknown, before: Remembered | undefined): Remembered {
  const asked = before?.asked ?? false;
  const hadWrongPayload = before?.hadWrongPayload ?? false;
  return { asked, known: false, request, refusal: whyMalformed(request), hadWrongPayload };
}

/** All named workers of entries, in their order. */
function named(entries: readonly Entry[]) {
  return entries.flatMap((entry) => namedIn(entry).map((request) => ({ kind: entry.kind, request })));
}

const unnamed: Reason = { code: 'request-refused', message: 'a request has no origin' };

function twice({ uid, index }: OriginKey): Reason {
  const message = `the source asks twice at once for index ${index} of ${uid}: the first of the two counts`;
  return { code: 'request-refused', message };
}

function flood(kind: string, beyond: number): Reason {
  const message = `source ${kind} asks for more than ${mostRequests} workers at once: ${beyond} requests wait for a later pass`;
  return { code: 'source-flood', message };
}
