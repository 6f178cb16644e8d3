import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until.ts';
import { type Arena, type Fault, limits } from './arena.ts';
import { Dice } from './dice.ts';
import { Keeper } from './keeper.ts';
import { Observer } from './observer.ts';

export interface Plan {
  readonly seed: number;
  /** How long faults strike, ms. The healing after that takes its own time. */
  readonly forMs: number;
  /** They go on until the campaign has had so much of each, however slow the machine is. */
  readonly least?: Least;
  /** Called with each fault as it strikes. */
  readonly say?: (line: string) => void;
}

/** Numbers below which a campaign proves nothing. */
export interface Least {
  readonly kills: number;
  readonly faults: number;
  readonly workers: number;
  readonly looks: number;
}

export interface Report {
  readonly seed: number;
  readonly workers: number;
  readonly kills: number;
  readonly faults: ReadonlyMap<string, number>;
  /** How often the observer looked at the backend. */
  readonly looks: number;
  /** Each broken promise, with what struck before. Empty: all were kept. */
  readonly broken: readonly string[];
}

/** How long the factory may take to be whole again after the last fault, ms. */
const longestRecovery = 180_000;
/** How long faults strike at most on a machine that is too slow for `Plan.least`, ms. */
const longestStrikes = 300_000;

/**
 * Attacks a factory with random faults, and watches its backend meanwhile: no worker is started twice, no queue has more
 * workers than it may, a stop ends. Then it heals everything: the factory fills up again by itself, its books say what
 * lives, and nothing stays behind.
 */
export async function campaign(arena: Arena, plan: Plan): Promise<Report> {
  const dice = new Dice(plan.seed);
  const keeper = new Keeper(arena);
  const observer = new Observer(arena);
  const struck = new Map<string, number>();
  const all = [...keeper.faults, ...arena.faults];
  const hadLeast = ({ kills, faults, workers, looks }: Least) =>
    keeper.kills >= kills &&
    struck.values().reduce((sum, times) => sum + times, 0) >= faults &&
    arena.starts().size >= workers &&
    observer.looks >= looks;
  try {
    await until(
      'the first workers live',
      async () => ((await arena.living()) ?? []).length > 0,
      longestRecovery,
    );
    observer.begin();
    const begin = performance.now();
    const passed = () => performance.now() - begin;
    const isOver = () => passed() >= plan.forMs && (plan.least === undefined || hadLeast(plan.least));
    while (!isOver() && passed() < Math.max(plan.forMs, longestStrikes)) {
      await sleep(dice.between(0, 1500));
      const fault = dice.pickByWeight(all);
      if (fault === undefined) break;
      struck.set(fault.name, (struck.get(fault.name) ?? 0) + 1);
      const line = `${Math.round(passed() / 1000)} s: ${fault.name}`;
      plan.say?.(line);
      observer.strikes(line);
      await strike(fault, dice, observer);
    }
    await arena.heal();
    await recover(arena, observer);
  } finally {
    await observer.end();
    await keeper.close();
  }
  for (const output of keeper.endlessStops) observer.breaks(`promise 8: a stop did not end; ${output}`);
  if (observer.broken.length > 0) observer.broken.push(`the daemon's last words: ${keeper.output}`);
  const { broken, looks } = observer;
  return {
    seed: plan.seed,
    workers: arena.starts().size,
    kills: keeper.kills,
    faults: struck,
    looks,
    broken,
  };
}

async function strike(fault: Fault, dice: Dice, observer: Observer): Promise<void> {
  try {
    await fault.strike(dice);
  } catch (error) {
    observer.breaks(`the fault "${fault.name}" could not be made: ${String(error)}`);
  }
}

/** Nothing is wrong any more: the factory must show that it lost nothing and forgot nothing. */
async function recover(arena: Arena, observer: Observer): Promise<void> {
  const whole = Object.values(limits).reduce((sum, limit) => sum + limit, 0);
  const filled = async () => ((await arena.living()) ?? []).length === whole;
  if (arena.refills !== false)
    await until('all queues are full again', filled, longestRecovery).catch((error: unknown) => {
      observer.breaks(`the factory did not recover: ${String(error)}`);
    });
  arena.writeQueues({ queueStatus: 'offline' });
  const over = async () => {
    const living = await arena.living();
    const rows = await arena.site.workers();
    return living?.length === 0 && rows.every(({ endTime }) => endTime !== null);
  };
  await until('every worker has ended, and its row too', over, longestRecovery).catch(
    async (error: unknown) => {
      const living = (await arena.living()) ?? [];
      const open = (await arena.site.workers()).filter(({ endTime }) => endTime === null);
      const ids = open.map(({ workerID, status }) => `${workerID} ${status}`).join(', ');
      const seen = living.map(({ workerId }) => workerId).join(', ');
      observer.breaks(`promises 2 and 3: open rows: ${ids}; living: ${seen}; ${String(error)}`);
    },
  );
  const starts = arena.starts();
  for (const { workerID, status, errorCode } of await arena.site.workers()) {
    if (status === 'missed' && starts.has(workerID) && !arena.hidden.has(workerID))
      observer.breaks(`promise 5: worker ${workerID} ran, and is called missed (${errorCode ?? ''})`);
  }
  await arena.settle?.((what) => {
    observer.breaks(what);
  });
}
