import { expect } from 'chai';
import { PoolBed } from '../campaign/pool/bed.ts';
import { JobBook } from '../campaign/pool/book.ts';
import { Census } from '../campaign/pool/census.ts';
import { type Plant, plantedIn } from '../campaign/plant.ts';
import { expectKept, quickBed, usualCaps, usualPace } from '../campaign/pool/promises.ts';
import { playRounds } from '../campaign/pool/rounds.ts';
import { untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

/** The sequence of changes in the suite. Another one, and as many rounds as you like: `npm run campaign`. */
const seed = Number(process.env['THRESHER_CAMPAIGN_SEED'] ?? 20261123);
const rounds = 40;

describe('through random changes of a pool', function () {
  this.timeout(300_000);
  let bed: PoolBed;

  before(async () => {
    bed = await PoolBed.start(quickBed);
  });
  after(() => bed[Symbol.asyncDispose]());

  it(`htcondor-idle ends no busy worker and makes none above a cap`, async () => {
    const report = await playRounds(bed, { seed, rounds, caps: usualCaps, pace: usualPace });
    expectKept(report, seed, bed);
    expect(report.rounds).to.equal(rounds);
  });

  describe('a daemon with a planted fault', () => {
    const job = { cpus: 1, memory: 128, seconds: 600 };

    /** Starts it with room for so many workers, and as many jobs as it can take. */
    async function jobsRun(plant: Plant, room: number, jobs: number) {
      bed.writeCaps({ Q: { small: room } });
      const daemon = bed.startDaemon(plantedIn(plant));
      await untilSaid(daemon, /INFO +started/);
      const book = new JobBook(bed);
      const census = new Census(bed);
      census.begin();
      for (let nth = 0; nth < jobs; nth++) await book.submit('local', job, true);
      return {
        book,
        census,
        async [Symbol.asyncDispose]() {
          await census.end();
          daemon.process.kill('SIGTERM');
          await daemon.ended;
          await bed.empty();
        },
      };
    }

    it('in its caps is found out by the census', async () => {
      await using played = await jobsRun('no-caps', 1, 3);
      const broken = /worker \d+ of Q\/small came beside .+: its cap was 1/;
      await until('the census has it', async () =>
        (await played.census.broken()).some((line) => broken.test(line)),
      );
    });

    it('in whom it drains is found out by the book of jobs', async () => {
      await using played = await jobsRun('busy-first', 2, 2);
      await until('both jobs run', async () => (await bed.running()) === 2);
      bed.writeCaps({ Q: { small: 1 } });
      await until('the book has it', async () =>
        (await played.book.broken()).some((line) => /job \d+ (was evicted|lost its machine)/.test(line)),
      );
    });
  });
});
