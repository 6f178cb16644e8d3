import { expect } from 'chai';
import type { BedOptions, PoolBed } from './bed.ts';
import type { Caps } from './caps-kept.ts';
import type { RoundsReport } from './rounds.ts';

/** A bed on which workers come and go within seconds. */
export const quickBed: BedOptions = { interval: 0.4, joinTimeout: 5, worker: { noClaim: 3 } };

/** Both queues have the same small shape, so that each can take the jobs of the other. */
export const usualCaps: Caps = { Q: { small: 3, big: 2 }, R: { small: 2 } };

/** ms */
export const usualPace = 250;

/** A campaign in which nothing happened would keep every promise. */
export function expectKept(report: RoundsReport, seed: number, bed: PoolBed): void {
  const { broken, rounds, inVain, jobs, workers, looks } = report;
  const told = [`seed ${seed}`, ...broken, JSON.stringify(Object.fromEntries(bed.written))];
  expect(broken, told.join('\n')).to.deep.equal([]);
  expect(inVain, 'rounds that reached no schedd').to.be.at.most(rounds / 10);
  expect(jobs, 'jobs').to.be.at.least(rounds / 10);
  expect(workers, 'workers').to.be.at.least(rounds / 20);
  expect(looks, 'looks at living workers').to.be.at.least(rounds / 5);
}
