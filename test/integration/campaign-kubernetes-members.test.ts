import { expect } from 'chai';
import { Bed } from '../campaign/daemons/bed.ts';
import { members } from '../campaign/daemons/members.ts';
import { expectKept } from '../campaign/daemons/promises.ts';
import { playRounds } from '../campaign/daemons/rounds.ts';
import { type Plant, plantedIn } from '../campaign/plant.ts';

/** The sequence of strikes in the suite. Another one, and as many rounds as you like: `npm run campaign`. */
const seed = Number(process.env['THRESHER_CAMPAIGN_SEED'] ?? 20261126);
const rounds = 10;

describe('through random kills, pauses and cuts of three daemons that share queues out', function () {
  this.timeout(900_000);

  it('thresher starts no worker twice, exceeds no limit, forgets none, and one member at a time acts for a queue', async () => {
    await using bed = await Bed.open(members);
    const report = await playRounds(bed, { seed, rounds });
    expectKept(report, seed);
    expect(report.rounds).to.equal(rounds);
  });

  const plants: readonly (readonly [plant: Plant, only: RegExp, expected: RegExp])[] = [
    [
      'no-epoch',
      /a member stands still beyond its lease$/,
      /a void lease: .* changed workers|two members: .* changed workers/,
    ],
    ['takes-living', /stopped, and stays? away/, /two members: .* changed workers/],
    ['splits-families', /stopped, and stays? away/, /promise 4: the family PAIR has more than 3 Pods/],
  ];
  for (const [plant, only, expected] of plants)
    it(`the campaign finds out members with the planted fault ${plant}`, async () => {
      await using bed = await Bed.open(members, plantedIn(plant));
      const report = await playRounds(bed, { seed, rounds: 40, only, until: expected });
      expect(report.broken.join('\n')).to.match(expected);
    });
});
