import { expect } from 'chai';
import { Bed } from '../campaign/daemons/bed.ts';
import { expectKept } from '../campaign/daemons/promises.ts';
import { playRounds } from '../campaign/daemons/rounds.ts';
import { standby } from '../campaign/daemons/standby.ts';
import { type Plant, plantedIn } from '../campaign/plant.ts';

/** The sequence of strikes in the suite. Another one, and as many rounds as you like: `npm run campaign`. */
const seed = Number(process.env['THRESHER_CAMPAIGN_SEED'] ?? 20261125);
const rounds = 10;

describe('through random kills, pauses and cuts of two daemons on one database', function () {
  this.timeout(900_000);

  it('thresher starts no worker twice, exceeds no limit, forgets none, and one daemon acts at a time', async () => {
    await using bed = await Bed.open(standby);
    const report = await playRounds(bed, { seed, rounds });
    expectKept(report, seed);
    expect(report.rounds).to.equal(rounds);
  });

  const stands = /stands still beyond its lease/;
  const plants: readonly (readonly [plant: Plant, expected: RegExp])[] = [
    ['no-fence', /two leaders: .* changed workers/],
    ['always-acts', /two leaders: .* changed workers/],
    ['too-many', /promise 4: \w+ has more than \d Pods/],
  ];
  for (const [plant, expected] of plants)
    it(`the campaign finds out daemons with the planted fault ${plant}`, async () => {
      await using bed = await Bed.open(standby, plantedIn(plant));
      const report = await playRounds(bed, { seed, rounds: 40, only: stands, until: expected });
      expect(report.broken.join('\n')).to.match(expected);
    });
});
