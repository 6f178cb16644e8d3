import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import { Dice } from '../dice.ts';
import type { Bed } from './bed.ts';
import type { Strike } from './strikes.ts';

export interface RoundsOptions {
  readonly seed: number;
  readonly rounds: number;
  /** Only strikes whose names this matches. Default: all. */
  readonly only?: RegExp;
  /** Ends at once when a promise was broken so: nothing is brought to an end then. Default: goes on. */
  readonly until?: RegExp;
  /** Called with each strike as it is made. */
  readonly say?: (line: string) => void;
}

export interface DaemonsReport {
  readonly rounds: number;
  /** How often each strike was made. */
  readonly made: ReadonlyMap<string, number>;
  /** Daemons that were killed. */
  readonly kills: number;
  /** How often the factory, or a queue of it, went from one daemon to another. */
  readonly moves: number;
  /** By code, how often a daemon ended by itself. */
  readonly ends: ReadonlyMap<string, number>;
  /** Workers that had a Job. */
  readonly workers: number;
  /** Events of Jobs and Pods at which limits were judged. */
  readonly events: number;
  /** Changes of workers of which the database noted who made them. */
  readonly acts: number;
  /** ms from the end of a strike until workers that were wanted after it had their Pods: the worst. */
  readonly slowest: number;
  /** Each broken promise, with what struck before. Empty: all were kept. */
  readonly broken: readonly string[];
}

/** How long the factory may take to work again, and to bring all of its workers to their ends, ms. */
const longest = 120_000;
/** After so many rounds all workers that there are must come to their ends. */
const roundsUntilSettled = 20;

/** Strikes the daemons again and again, and says which promises were broken. */
export async function playRounds(bed: Bed, options: RoundsOptions): Promise<DaemonsReport> {
  const { seed, rounds, only = /./, say, until: found } = options;
  // How a strike goes depends on what it finds: another seed keeps the sequence of strikes the same.
  const [sequence, dice] = [new Dice(seed), new Dice(seed + 1)];
  const strikes = bed.division.strikes(bed).filter(({ name }) => only.test(name));
  const made = new Map<string, number>();
  const last: string[] = [];
  const broken: string[] = [];
  let kills = 0;
  let slowest = 0;
  let played = 0;
  const told = new Set<string>();
  const breaks = (what: string) => {
    if (told.has(what)) return;
    told.add(what);
    broken.push(`${what}\n  before it: ${last.slice(-5).join('; ')}`);
    say?.(`BROKEN: ${what}`);
  };
  const tries = async (work: () => Promise<unknown>) => {
    await work().catch((error: unknown) => {
      breaks(String(error));
    });
  };
  bed.census.onBroken = breaks;
  await until('the first workers live', () => bed.census.started.size > 0);
  const begun = performance.now();
  const isFound = () => found !== undefined && broken.some((what) => found.test(what));
  for (; played < rounds && !isFound(); played++) {
    const strike = sequence.pickByWeight(strikes);
    if (strike === undefined) throw new Error('no strike has this name');
    const isAwaited = sequence.throw() < bed.division.awaited;
    const pause = sequence.between(0, 2000);
    const line = `${Math.round((performance.now() - begun) / 1000)} s: round ${played + 1}: ${strike.name}`;
    last.push(line);
    say?.(line);
    await tries(() => strike.make(dice));
    note(strike);
    const since = Date.now();
    if (isAwaited) {
      await tries(() => worksAgain(bed, since));
      slowest = Math.max(slowest, Date.now() - since);
      (await bed.acts.broken()).forEach(breaks);
    } else await sleep(pause);
    if ((played + 1) % roundsUntilSettled === 0) {
      await tries(() => worksAgain(bed, since));
      await tries(() => allEnd(bed, since));
    }
  }
  if (!isFound()) await end();
  const { acts, moves } = await bed.acts.counts();
  const ends = new Map<string, number>();
  for (const { service } of bed.machines)
    for (const [code, times] of service.ends) ends.set(code, (ends.get(code) ?? 0) + times);
  const { events, workers } = bed.census;
  return {
    rounds: played,
    made,
    kills,
    moves,
    ends,
    workers: workers.size,
    events,
    acts,
    slowest,
    broken,
  };

  /** Nothing is wrong any more: each daemon gets its part, all workers come to their ends, and so do the daemons. */
  async function end(): Promise<void> {
    await tries(() => allSettle(bed));
    await tries(() => worksAgain(bed, Date.now()));
    bed.writeQueues({ queueStatus: 'offline' });
    await tries(() => allEnd(bed, Infinity));
    for (const { service } of bed.machines) {
      await service.close('stop');
      service.broken.forEach(breaks);
    }
    (await wrongBooks(bed)).forEach(breaks);
  }

  function note({ name, kills: killed = 0 }: Strike): void {
    made.set(name, (made.get(name) ?? 0) + 1);
    kills += killed;
  }
}

/** Waits until workers that were wanted since then have their Pods. */
async function worksAgain(bed: Bed, since: number): Promise<void> {
  let at: ReadonlySet<string> = new Set();
  await until(
    () =>
      `new workers have their Pods; so far those of ${[...at].join(', ') || 'no queue'}: ${lastWords(bed)}`,
    async () => {
      const { started } = bed.census;
      const fresh = (await bed.rows()).filter(({ id, created }) => created > since && started.has(id));
      at = new Set(fresh.map(({ queue }) => queue));
      return bed.division.worksAgain(at);
    },
    longest,
  );
}

async function allSettle(bed: Bed): Promise<void> {
  await until(
    () => `each daemon has its part: ${lastWords(bed)}`,
    async () => (await bed.division.isSettled?.(bed)) ?? true,
    longest,
  );
}

/** Waits until all workers from before then have ended, with their rows, Jobs and Pods. */
async function allEnd(bed: Bed, before: number): Promise<void> {
  let left: string[] = [];
  await until(
    () => `promises 2 and 3: all workers have ended; left are ${left.join(', ')}: ${lastWords(bed)}`,
    async () => {
      const { present } = bed.census;
      const rows = (await bed.rows()).filter(({ created }) => created <= before);
      left = [
        ...rows.filter(({ ended }) => ended === null).map(({ id, status }) => `row ${id} ${status}`),
        ...rows.filter(({ id }) => present.has(id)).map(({ id }) => `objects of ${id}`),
      ];
      if (before === Infinity && rows.length > 0) left.push(...strangers(present, rows));
      return left.length === 0;
    },
    longest,
  );
}

const strangers = (ids: ReadonlySet<number>, rows: readonly { readonly id: number }[]): string[] => {
  const known = new Set(rows.map(({ id }) => id));
  return [...ids].filter((id) => !known.has(id)).map((id) => `objects of ${id}, which has no row`);
};

/** What the books say in the end that is not so. */
async function wrongBooks(bed: Bed): Promise<string[]> {
  const { started, workers } = bed.census;
  const rows = await bed.rows();
  return [
    ...strangers(workers, rows).map((one) => `promise 3: there were ${one}`),
    ...rows
      .filter(({ id, status }) => status === 'missed' && started.has(id))
      .map(({ id }) => `promise 5: worker ${id} ran, and is called missed`),
    ...(await bed.acts.broken()),
  ];
}

const lastWords = (bed: Bed): string =>
  bed.machines.map(({ service }, index) => `daemon ${index + 1}: ${service.output}`).join('\n');
