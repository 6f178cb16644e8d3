import { expect } from 'chai';
import fc from 'fast-check';
import type { Desk, SourceQueue } from '../../../src/plugins/contracts/index.ts';
import { linkOptions, type PandaQueueOptions } from '../../../src/sources/panda/options.ts';
import { type LinkParts, PandaLink } from '../../../src/sources/panda/link.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { PandaSimulation, type Simulated } from '../../support/panda-simulation.ts';
import { ownQueue, recordingLog } from '../../support/samples.ts';

const target = 100;
/** Seconds: five orders at least. */
const duration = 1900;
/** Of the drawn phases: a failure can be played again. */
const seed = 16;

async function play(options: Simulated): Promise<PandaSimulation> {
  const simulation = new PandaSimulation(options);
  await simulation.run(duration);
  await simulation.stop();
  return simulation;
}

describe('the link against the rule of the PanDA server, each with a clock of 300 s', () => {
  /** Seconds. The server reads all statistics, and then makes the order of one site after the other. */
  const phases = fc.record({
    serverPhase: fc.integer({ min: 0, max: 299 }),
    serverDelay: fc.integer({ min: 0, max: 110 }),
    start: fc.integer({ min: 1, max: 299 }),
    newsDelay: fc.constantFrom(0, 350),
    ahead: fc.constantFrom(0, 0, 600, 3900, -3900),
  });
  const rates: readonly (readonly [speed: string, rate: number])[] = [
    ['at once', 1000],
    ['in 20 s', 5],
    ['in 400 s', 0.25],
  ];
  for (const [speed, rate] of rates) {
    it(`makes no worker twice where all are made ${speed}, whichever phases the clocks have`, async () => {
      const property = fc.asyncProperty(phases, async (drawn) => {
        const { queued, orders, workers } = await play({ ...drawn, rate });
        expect(workers.length, `orders ${orders.join()}`).to.be.at.most(target);
        expect(queued, `orders ${orders.join()}`).to.equal(target);
      });
      await fc.assert(property, { seed, numRuns: 25 });
    });
  }

  it('never has more workers queued than the server wants while workers start and end', async () => {
    const speeds = fc.record({
      rate: fc.constantFrom(0.25, 5, 1000),
      lasts: fc.integer({ min: 5, max: 400 }),
    });
    const property = fc.asyncProperty(phases, speeds, async (drawn, speed) => {
      const simulation = new PandaSimulation({ ...drawn, ...speed });
      let most = 0;
      await simulation.run(duration, () => {
        most = Math.max(most, simulation.queued);
      });
      await simulation.stop();
      expect(most).to.be.within(1, target);
    });
    await fc.assert(property, { seed, numRuns: 25 });
  });

  for (const [whose, change] of [
    ['clock is', (ahead: number) => ({ ahead })],
    ['answers have a date that is', (saidAhead: number) => ({ saidAhead })],
  ] as const)
    for (const seconds of [0, 60, 600, 3900, 86_400, -60, -600, -3900, -86_400])
      it(`hole 7: replaces workers that ended, and makes none twice, while the server's ${whose} ${seconds} s ahead`, async () => {
        const usual = { serverPhase: 50, start: 10, rate: 1000, lasts: 60 };
        const simulation = new PandaSimulation({ ...usual, ...change(seconds) });
        let most = 0;
        await simulation.run(duration, () => {
          most = Math.max(most, simulation.queued);
        });
        await simulation.stop();
        // Four orders ask for all of them: the statistics between those tell of workers that are queued still.
        expect({ most, made: simulation.workers.length }).to.deep.equal({ most: target, made: 4 * target });
        const tells = simulation.log.lines.filter(({ message }) => message.includes('is not believed'));
        expect(tells).to.have.length(seconds > 300 ? 1 : 0);
      });

  it('B1: makes no worker twice where calls with statistics get no answer, and are carried out up to 300 s later', async () => {
    const late = fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 295 })), {
      minLength: 1,
      maxLength: 6,
    });
    const speeds = fc.constantFrom(0.25, 5, 1000);
    const property = fc.asyncProperty(phases, speeds, late, async (drawn, rate, calls) => {
      const { queued, orders, workers } = await play({ ...drawn, rate, lateStatistics: new Map(calls) });
      expect(workers.length, `orders ${orders.join()}`).to.be.at.most(target);
      expect(queued, `orders ${orders.join()}`).to.be.greaterThan(0);
    });
    await fc.assert(property, { seed, numRuns: 60 });
  });

  it('B1: replaces workers that ended though a call with statistics had no answer', async () => {
    const usual = { serverPhase: 50, start: 10, rate: 1000, lasts: 60 };
    const { workers } = await play({ ...usual, lateStatistics: new Map([[2, 200]]) });
    expect(workers.length).to.be.within(3 * target, 4 * target);
  });

  it('loses and doubles nothing when the daemon dies before or after any effect', async () => {
    const options = { serverPhase: 50, start: 10, rate: 7 };
    const whole = new PandaSimulation(options);
    await whole.run(120);
    await whole.stop();
    expect(whole.queued, 'without a death').to.equal(target);
    for (let effect = 1; effect <= whole.effects; effect++)
      for (const when of ['before', 'after'] as const) {
        const simulation = new PandaSimulation(options);
        await simulation.run(options.start);
        simulation.deathAt = { effect, when };
        const again = () => {
          if (simulation.isDead) simulation.start();
        };
        await simulation.run(110, again);
        const lost = simulation.isOrderLost ? 0 : target;
        expect(simulation.workers.length, `${when} effect ${effect}`).to.equal(lost);
        // A lost order is made up for by the next.
        await simulation.run(400, again);
        await simulation.stop();
        expect(simulation.queued, `${when} effect ${effect}, after the next order`).to.equal(target);
      }
  });
});

describe('a queue whose workers follow the activated jobs of its site', () => {
  const types = [
    { resource_name: 'SCORE', mincore: 1, maxcore: 1, minrampercore: null, maxrampercore: 2000 },
    { resource_name: 'SCORE_HIMEM', mincore: 1, maxcore: 1, minrampercore: 2001, maxrampercore: null },
    { resource_name: 'MCORE', mincore: 2, maxcore: null, minrampercore: null, maxrampercore: 2000 },
    { resource_name: 'MCORE_HIMEM', mincore: 2, maxcore: null, minrampercore: 2001, maxrampercore: null },
  ];

  /** What the link wants for a queue of a site with so many activated jobs. */
  async function wanted(
    activated: number,
    changes: Partial<SourceQueue<PandaQueueOptions>> = {},
    ofSettings = false,
  ) {
    const queue = ownQueue('S');
    const nothing = async () => undefined;
    const clock = new ManualClock();
    const parts = {
      memory: { load: nothing, types },
      life: { isReady: true, startedAt: 0 },
      health: { whyNoOrders: undefined },
      orders: { resume: nothing },
      commands: { resume: nothing },
      jobs: { of: () => ({ activated, at: 0 }) },
      reporter: {},
      beside: [],
      clock,
      log: recordingLog(),
      harvesterId: 'H',
      options: {
        ...linkOptions({ heartbeatInterval: 1, statisticsInterval: 1, jobsInterval: 1 }),
        noPilotsWhenNoActiveJobs: ofSettings,
      },
    };
    const link = new PandaLink(parts as unknown as LinkParts);
    const desk = { ownQueues: () => [queue], queued: async () => 0, living: async () => [] };
    await link.run(desk as unknown as Desk, AbortSignal.abort());
    return link.wanted({ ...queue, options: {}, own: true, ...changes });
  }

  for (const [what, changes, ofSettings, count] of [
    ['says nothing', {}, false, 1],
    ['is told by its submitter', { noPilotsWhenNoActiveJobs: true }, false, 0],
    ['is told by the settings', {}, true, 0],
    ['is told by both', { noPilotsWhenNoActiveJobs: false }, true, 0],
    [
      'is told otherwise by its demand',
      { noPilotsWhenNoActiveJobs: true, options: { noPilotsWhenNoActiveJobs: false } },
      ...([true, 1] as const),
    ],
  ] as const)
    it(`gets ${count === 0 ? 'no worker' : 'one worker'} without jobs where it ${what}`, async () => {
      const { groups } = await wanted(0, changes, ofSettings);
      expect(groups.map((group) => group.count)).to.deep.equal(count === 0 ? [] : [count]);
    });

  for (const [nCore, minRamCount, type] of [
    [1, 2000, 'SCORE'],
    [1, 4000, 'SCORE_HIMEM'],
    [8, 16_000, 'MCORE'],
    [8, 32_000, 'MCORE_HIMEM'],
    // Harvester falls back to the type that the cores have alone.
    [8, 0, 'MCORE'],
    [8, 16_004, 'MCORE'],
  ] as const)
    it(`has workers of the server's type ${type} where its slot has ${nCore} cores and ${minRamCount} MB`, async () => {
      const { requirements } = ownQueue('S');
      const slot = { ...requirements, nCore, minRamCount, resourceType: nCore === 1 ? 'SCORE' : 'MCORE' };
      const { groups } = await wanted(2, { requirements: slot, wholeSlots: true });
      expect(groups.map(({ requirements: needs }) => needs.resourceType)).to.deep.equal([type]);
      const unified = await wanted(2, { requirements: slot, wholeSlots: false });
      expect(unified.groups.map(({ requirements: needs }) => needs.resourceType)).to.deep.equal([
        slot.resourceType,
      ]);
    });
});
