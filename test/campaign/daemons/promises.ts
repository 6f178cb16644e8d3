import { expect } from 'chai';
import type { DaemonsReport } from './rounds.ts';

/** A campaign in which nothing happened would keep every promise. */
export function expectKept(report: DaemonsReport, seed: number): void {
  const { broken, rounds, moves, workers, events, acts } = report;
  expect(broken, `seed ${seed}\n${broken.join('\n')}`).to.deep.equal([]);
  expect(moves, 'moves from daemon to daemon').to.be.at.least(rounds / 5);
  expect(workers, 'workers').to.be.at.least(rounds);
  expect(events, 'events at which limits were judged').to.be.at.least(4 * workers);
  expect(acts, 'changes of workers').to.be.at.least(workers);
}
