import { expect } from 'chai';
import type { Arena } from './arena.ts';
import { campaign } from './campaign.ts';

/** The sequence of faults in the suite. Another one, for as long as you like: `npm run campaign`. */
const seed = Number(process.env['THRESHER_CAMPAIGN_SEED'] ?? 20261122);

/** As long as the suite can spare; `npm run campaign` is for longer runs. */
const forMs = 45_000;

/** Faults for a while, in which the factory was really struck and really worked. */
export async function keepsItsPromises(arena: Arena): Promise<void> {
  const report = await campaign(arena, { seed, forMs });
  expect(report.broken, `seed ${seed}\n${report.broken.join('\n')}`).to.deep.equal([]);
  expect(report.kills, 'kill -9').to.be.greaterThan(3);
  expect(report.workers, 'workers').to.be.greaterThan(5);
  expect(report.looks, 'looks of the observer').to.be.greaterThan(50);
}
