import type { ChosenCe } from '../template/placeholders.ts';
import { ceName } from './ce-list.ts';
import { draw } from './schedds.ts';

/** Workers of a queue at one CE. */
export interface CeCounts {
  /** Waiting there now. */
  readonly queued: number;
  /** Running there now. */
  readonly running: number;
  /** Workers submitted within the last 6 hours: still waiting, running, finished. */
  readonly recent: { readonly queued: number; readonly running: number; readonly finished: number };
}

export interface WeightOptions {
  /** `nQueueLimitWorker` of the queue. */
  readonly queueLimit: number;
  /** Workers about to be submitted. */
  readonly newWorkers: number;
  /** `runMode: slave`: the server says how many, so what is queued counts instead of the limit where that is less. */
  readonly slave: boolean;
  /** `ce_fairshare_percent`. */
  readonly fairsharePercent: number;
}

const nothing: CeCounts = { queued: 0, running: 0, recent: { queued: 0, running: 0, finished: 0 } };
/** A CE that has enough still gets a little, so that it is not forgotten. */
const leastWeight = 2 ** -10;

/**
 * How much of a submission each CE deserves; the weights have no unit. A CE's part of what shall be queued is made of its
 * throughput (how many workers of late left its queue), an equal share, and its slots; its weight is what is missing of
 * that. A CE with more than the limit queued gets nothing, one where nothing runs the less the more is queued.
 * The same numbers as Harvester's get_ce_weighting, but for their common factor. Pure.
 */
export function ceWeights(
  endpoints: readonly string[],
  counts: ReadonlyMap<string, CeCounts>,
  options: WeightOptions,
): ReadonlyMap<string, number> {
  const of = (endpoint: string) => counts.get(endpoint) ?? nothing;
  const all = [...counts.values()];
  const sum = (what: (one: CeCounts) => number) => all.reduce((total, one) => total + what(one), 0);
  const began = sum(({ recent }) => recent.queued + recent.running + recent.finished);
  const average = Math.log1p(began) - Math.log1p(sum(({ recent }) => recent.queued));
  const queued = sum((one) => one.queued);
  const { queueLimit, newWorkers, slave } = options;
  const target = (slave ? Math.min(queued, queueLimit) : queueLimit) + newWorkers;
  const slots = endpoints.reduce((total, endpoint) => total + slotsOf(of(endpoint)), 0) || 1;
  const { fair, byThroughput, bySlots } = coefficients(options.fairsharePercent);
  const part = (endpoint: string): number => {
    const equal = 1 / endpoints.length;
    // Nothing left any queue of late: all are alike.
    if (average === 0) return equal;
    const own = of(endpoint);
    return byThroughput * (throughputOf(own) / average) + fair * equal + bySlots * (slotsOf(own) / slots);
  };
  const parts = endpoints.reduce((total, endpoint) => total + part(endpoint), 0);
  return new Map(
    endpoints.map((endpoint) => {
      const own = of(endpoint);
      if (own.queued > queueLimit) return [endpoint, 0];
      const missing = Math.max((target * part(endpoint)) / parts - own.queued, leastWeight);
      const penalty = own.running === 0 ? 1 + Math.log1p(own.queued) ** 2 : 1;
      return [endpoint, missing / penalty];
    }),
  );
}

function throughputOf({ recent }: CeCounts): number {
  return Math.log1p(recent.queued + recent.running + recent.finished) - Math.log1p(recent.queued);
}

/** Between what ran of late and what runs now. */
function slotsOf({ recent, running }: CeCounts): number {
  return (recent.running + recent.finished + running) / 2;
}

/** Parts of throughput, of the equal share and of the slots: together 1. */
function coefficients(percent: number) {
  const fair = Math.min(100, Math.max(0, percent)) / 100;
  const byThroughput = fair > 0.5 ? 1 - fair : fair;
  return { fair, byThroughput, bySlots: fair > 0.5 ? 0 : 1 - byThroughput - fair };
}

/**
 * Which CE each of the new workers goes to, in order: by weight, and each CE gets its part to one worker, so that a batch makes
 * one submission for each CE. Harvester draws for each worker, which gives the same shares in the long run. Where all have
 * more than enough, all are alike. `random`: from 0 up to 1, asked once. @returns none where there is no CE.
 */
export function shareAmongCes(
  ces: readonly ChosenCe[],
  counts: ReadonlyMap<string, CeCounts>,
  options: WeightOptions,
  random: () => number,
): ChosenCe[] {
  const weights = ceWeights(ces.map(ceName), counts, options);
  const allFull = [...weights.values()].every((weight) => weight === 0);
  const weightOf = (ce: ChosenCe) => (allFull ? 1 : (weights.get(ceName(ce)) ?? 0));
  // Evenly spaced from where chance begins: one worker alone is a draw like any other.
  const start = random();
  return Array.from({ length: options.newWorkers }, (_, index) => {
    const at = (start + index) / options.newWorkers;
    return draw(ces, weightOf, () => at);
  }).filter((ce) => ce !== undefined);
}
