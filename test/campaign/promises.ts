import { expect } from 'chai';
import type { Arena } from './arena.ts';
import { campaign, type Least } from './campaign.ts';

/** The sequence of faults in the suite. Another one, for as long as you like: `npm run campaign`. */
const seed = Number(process.env['THRESHER_CAMPAIGN_SEED'] ?? 20261122);

/** As long as the suite can spare; `npm run campaign` is for longer runs. */
const forMs = 30_000;

/** A busy machine makes fewer faults a second: a campaign of the suite lasts until it has had these. */
const least: Least = { kills: 4, faults: 12, workers: 6, looks: 51 };

/** Faults for a while, in which the factory was really struck and really worked. */
export async function keepsItsPromises(arena: Arena): Promise<void> {
  const report = await campaign(arena, { seed, forMs, least });
  expect(report.broken, `seed ${seed}\n${report.broken.join('\n')}`).to.deep.equal([]);
  expect(report.kills, 'kill -9').to.be.at.least(least.kills);
  expect(report.workers, 'workers').to.be.at.least(least.workers);
  expect(report.looks, 'looks of the observer').to.be.at.least(least.looks);
}
