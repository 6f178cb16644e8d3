import { expect } from 'chai';
import { PandaSimulation, type Simulated } from '../../support/panda-simulation.ts';

const target = 100;
/** Seconds: four orders at least. */
const duration = 1300;

async function play(options: Simulated): Promise<PandaSimulation> {
  const simulation = new PandaSimulation(options);
  await simulation.run(duration);
  await simulation.stop();
  return simulation;
}

describe('the link against the rule of the PanDA server, each with a clock of 300 s', () => {
  const rates: readonly (readonly [speed: string, rate: number])[] = [
    ['at once', 1000],
    ['in 20 s', 5],
    ['in 400 s', 0.25],
  ];
  for (const [speed, rate] of rates) {
    it(`makes no worker twice where all are made ${speed}, whichever phases the clocks have`, async () => {
      for (let serverPhase = 0; serverPhase < 300; serverPhase += 113)
        for (let start = 1; start < 300; start += 83)
          for (const newsDelay of [0, 350]) {
            const { queued, orders, workers } = await play({ serverPhase, start, rate, newsDelay });
            const where = `server at ${serverPhase} s, factory at ${start} s, news after ${newsDelay} s, orders ${orders.join()}`;
            expect(workers.length, where).to.be.at.most(target);
            expect(queued, where).to.equal(target);
          }
    });
  }

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
