import pMap from 'p-map';
import { closureOf } from '../../../clients/htcondor/ad-text.ts';
import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import type { Clock } from '../../../util/clock.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Matching, Need } from '../model.ts';
import { explainJob } from './explain.ts';
import { freeOfLimits, limitsInTurns } from './limits.ts';
import { MatchTable } from './matching.ts';
import { lastNegotiation } from './negotiation.ts';
import { askOwnStartds } from './own-startds.ts';
import { amountsCompared, type PoolSlots, SlotReader } from './pool-slots.ts';
import type { Explanation, Looker, PoolLook, Template, Unknown } from './result.ts';
import { foreignTo, represent, type Represented, type Seen, seenTemplate } from './represented.ts';
import { leftOut, type ScheddLook, ScheddNeeds, type ScheddQuestion } from './schedd-needs.ts';
import { type KnownSchedd, ScheddList } from './schedds.ts';

export interface PoolLookerParts {
  readonly pool: Pool;
  readonly clock: Clock;
  /** Workers with this `ThresherFactory` are ours; empty: none are. */
  readonly factoryId: string;
  /** Those whose jobs count; default: all of the collector. */
  readonly schedds?: readonly string[];
}

/** Schedds asked at once. */
const scheddsAtOnce = 4;

/** Explanations that are kept. */
const mostExplanations = 2000;

/** Reads a pool, and remembers from one look to the next what need not be asked again. */
export class PoolLooker implements Looker {
  readonly #parts: PoolLookerParts;
  readonly #list: ScheddList;
  readonly #schedds = new Map<string, ScheddNeeds>();
  readonly #slots: SlotReader;
  readonly #matches: MatchTable;
  /** By address of the negotiator: the start of its last cycle that is known. */
  readonly #cycles = new Map<string, number>();
  readonly #explanations = new Map<string, Explanation>();
  /** Of the last look. */
  #represented: ReadonlyMap<string, Represented> = new Map();
  /** What conditions of the last look's jobs rest on. */
  #wanted: ReadonlySet<string> = new Set();
  #byAmount: ReadonlySet<string> = new Set();

  constructor(parts: PoolLookerParts) {
    this.#parts = parts;
    this.#list = new ScheddList(parts.schedds);
    this.#slots = new SlotReader(parts.pool, parts.factoryId);
    this.#matches = new MatchTable(parts.pool.matchmaker, () => parts.clock.monotonic());
  }

  async look(templates: readonly Template[], signal: AbortSignal): Promise<PoolLook> {
    const { pool, clock } = this.#parts;
    const at = clock.now();
    const unknown: Unknown[] = [];
    const attempt = async <T>(part: Unknown['part'], ask: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await ask();
      } catch (error) {
        signal.throwIfAborted();
        unknown.push({ part, name: '', reason: toReason(error) });
        return undefined;
      }
    };
    const seen = templates.map(seenTemplate);
    const foreign = new Set(seen.flatMap(({ signed }) => [...foreignTo(signed.ad)]));
    const resources = [...new Set(templates.flatMap(({ shape }) => [...shape.resources.keys()]))];
    // Slots before jobs: a job that takes a slot in between is no demand. The other way round it would be, and its slot gone.
    const [startedAt, own, first, list] = await Promise.all([
      attempt('collector', () => collectorStart(pool, signal)),
      attempt('slots', () => askOwnStartds(pool, this.#parts.factoryId, resources, signal)),
      attempt('slots', () => this.#slots.read(this.#wanted, this.#byAmount, signal)),
      this.#list.look(pool, clock.monotonic(), signal),
    ]);
    unknown.push(...list.unknown);
    const negotiation = await lastNegotiation(pool, this.#cycles, signal);
    if ('part' in negotiation) unknown.push(negotiation);
    const cycle = 'part' in negotiation ? undefined : negotiation.startedAt;
    const looks =
      cycle === undefined
        ? []
        : await this.#askSchedds(
            list.schedds,
            { cycle, foreign, ofSlots: first?.foreign ?? new Set() },
            unknown,
            signal,
          );
    let slots = first;
    if (this.#learn(looks, resources) && first !== undefined)
      slots = await attempt('slots', () => this.#slots.read(this.#wanted, this.#byAmount, signal));
    const all = represent(looks, new Set([...foreign, ...(slots?.foreign ?? [])]));
    const represented = await this.#match(all, seen, slots, unknown, signal);
    const judged = new Set(represented);
    for (const { name, look } of looks) {
      const missing = all.filter((one) => one.need.schedd === name && !judged.has(one));
      const jobs = missing.reduce((sum, { need }) => sum + need.count, look.leftOut);
      if (jobs > 0) unknown.push(leftOut(name, jobs));
    }
    const needs = represented.map(({ need }) => need);
    const negotiators = 'part' in negotiation ? new Map<string, string>() : negotiation.negotiators;
    const limits = await freeOfLimits(pool, negotiators, limitsInTurns(needs), signal);
    unknown.push(...limits.unknown);
    this.#represented = new Map(represented.map((one) => [one.need.key, one]));
    return {
      at,
      needs,
      fresh: looks.reduce((sum, { look }) => sum + look.fresh, 0),
      spaces: own === undefined || slots === undefined ? undefined : [...own.spaces, ...slots.spaces],
      startds: own?.startds,
      collectorStartedAt: startedAt,
      matching: this.#matching(represented, seen, slots),
      concurrency: limits.free,
      unknown,
    };
  }

  async explain(
    need: Need,
    templates: readonly Template[],
    signal: AbortSignal,
  ): Promise<Explanation | undefined> {
    const represented = this.#represented.get(need.key);
    if (represented === undefined) return undefined;
    const shapes = templates.map(seenTemplate).map(({ key, signed }) => ({ key, ad: signed.ad, signed }));
    const key = [represented.signed.signature, ...shapes.map(({ signed }) => signed.signature)].join(' ');
    const known = this.#explanations.get(key);
    if (known !== undefined) return known;
    let explanation: Explanation | undefined;
    try {
      explanation = await this.#parts.pool.matchmaker.withJobs([represented.representative.ad], (job) =>
        explainJob(job, shapes, signal),
      );
    } catch {
      // An analysis that crashes, or takes too long, is no answer.
      signal.throwIfAborted();
      return undefined;
    }
    if (this.#explanations.size >= mostExplanations) this.#explanations.clear();
    if (explanation !== undefined) this.#explanations.set(key, explanation);
    return explanation;
  }

  async #askSchedds(
    schedds: readonly KnownSchedd[],
    question: Omit<ScheddQuestion, 'startedAt'>,
    unknown: Unknown[],
    signal: AbortSignal,
  ): Promise<{ readonly name: string; readonly look: ScheddLook }[]> {
    const names = new Set(schedds.map(({ name }) => name));
    for (const name of this.#schedds.keys()) if (!names.has(name)) this.#schedds.delete(name);
    const ask = async ({ name, startedAt }: KnownSchedd) => {
      const { pool, clock } = this.#parts;
      const needs =
        this.#schedds.get(name) ??
        new ScheddNeeds(pool.schedd(name), pool.matchmaker, () => clock.monotonic());
      this.#schedds.set(name, needs);
      try {
        const look = await needs.look({ ...question, startedAt }, signal);
        return [{ name, look }];
      } catch (error) {
        signal.throwIfAborted();
        unknown.push({ part: 'schedd', name, reason: toReason(error) });
        return [];
      }
    };
    return (await pMap(schedds, ask, { concurrency: scheddsAtOnce })).flat();
  }

  /** @returns whether jobs look for attributes of slots for which the slots have not been asked */
  #learn(looks: readonly { readonly look: ScheddLook }[], resources: readonly string[]): boolean {
    const wanted = new Set<string>();
    const byAmount = new Set<string>();
    for (const { representative } of looks.flatMap(({ look }) => look.needs)) {
      for (const name of closureOf(representative.ad, ['requirements']).other) wanted.add(name);
      const requirements = representative.ad.get('requirements') ?? '';
      for (const name of amountsCompared(requirements, resources)) byAmount.add(name);
    }
    const isNew =
      [...wanted].some((name) => !this.#wanted.has(name)) ||
      [...byAmount].some((name) => !this.#byAmount.has(name));
    this.#wanted = wanted;
    this.#byAmount = byAmount;
    return isNew;
  }

  /** @returns without those that HTCondor cannot match */
  async #match(
    all: readonly Represented[],
    seen: readonly Seen[],
    slots: PoolSlots | undefined,
    unknown: Unknown[],
    signal: AbortSignal,
  ): Promise<readonly Represented[]> {
    const kinds = slots?.kinds ?? [];
    const { failures, hopeless, unasked } = await this.#matches.fill(
      all.map(({ need, signed, representative }) => ({
        ...signed,
        owner: `${need.schedd} ${representative.owner}`,
      })),
      seen.map(({ signed }) => signed),
      kinds.map(({ signed }) => signed),
      signal,
    );
    for (const { need, signed, representative } of all) {
      const schedd = this.#schedds.get(need.schedd);
      if (hopeless.has(signed.signature)) schedd?.leaveOut(representative);
      else if (unasked.has(signed.signature)) schedd?.passOver(representative, need.owners.keys());
    }
    for (const { key, signed } of seen) {
      const reason = failures.get(signed.signature);
      if (reason !== undefined) unknown.push({ part: 'template', name: key, reason });
    }
    const reason = kinds.flatMap(({ signed }) => failures.get(signed.signature) ?? [])[0];
    if (reason !== undefined) unknown.push({ part: 'slots', name: '', reason });
    return all.filter(({ signed }) => !hopeless.has(signed.signature) && !unasked.has(signed.signature));
  }

  #matching(
    represented: readonly Represented[],
    seen: readonly Seen[],
    slots: PoolSlots | undefined,
  ): Matching {
    const matches = this.#matches;
    const jobs = new Map(represented.map(({ need, signed }) => [need.key, signed.signature]));
    const shapes = new Map(seen.map(({ key, signed }) => [key, signed.signature]));
    const kinds = new Map(slots?.kinds.map((kind) => [kind.kind, kind]));
    const answer = (slot: string | undefined, { key }: Need) => {
      const job = jobs.get(key);
      return slot === undefined || job === undefined ? undefined : matches.answer(slot, job);
    };
    return {
      shape: (need, { key }) => answer(shapes.get(key), need),
      space: (need, { kind, shape }) =>
        // A worker of a shape that no queue has any more takes what it gets: nothing is counted on it.
        shape === undefined
          ? answer(kinds.get(kind)?.signed.signature, need)
          : shapes.has(shape)
            ? answer(shapes.get(shape), need)
            : false,
      pool: (need) => {
        if (slots === undefined) return undefined;
        let isKnown = slots.leftOut === 0;
        for (const { signed, wholes } of kinds.values()) {
          const matched = answer(signed.signature, need);
          if (
            matched === true &&
            wholes.some((whole) => [...need.exact].every(([name, n]) => n <= (whole.get(name) ?? Infinity)))
          )
            return true;
          if (matched === undefined) isKnown = false;
        }
        return isKnown ? false : undefined;
      },
    };
  }
}

/** ms UTC; undefined where the collector does not say. */
async function collectorStart(pool: Pool, signal: AbortSignal): Promise<number | undefined> {
  const attributes = ['StatsLastUpdateTime', 'StatsLifetime'];
  const [ad] = await pool.ads('collector', { attributes }, (one) => one, signal);
  const { StatsLastUpdateTime: updated, StatsLifetime: lifetime } = ad ?? {};
  return typeof updated === 'number' && typeof lifetime === 'number'
    ? (updated - lifetime) * 1000
    : undefined;
}
