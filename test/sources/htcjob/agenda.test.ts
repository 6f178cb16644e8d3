import { expect } from 'chai';
import { Agenda } from '../../../src/sources/htcjob/agenda.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';

describe('the agenda of an operator', () => {
  it('hole 8: looks seldom at a key whose time is no number', async () => {
    const clock = new ManualClock();
    const agenda = new Agenda(clock);
    const stop = new AbortController();
    let looks = 0;
    agenda.add('a', Number.NaN);
    expect(agenda.isAlmostDone).to.equal(true);
    const running = agenda.run(
      1,
      async () => {
        looks++;
      },
      stop.signal,
    );
    await clock.advance(59_000);
    expect(looks).to.equal(0);
    await clock.advance(2000);
    await until('it was looked at', () => looks === 1);
    stop.abort();
    await clock.advance(1);
    await running;
  });

  it('hole 8: gives all others in this thread a turn, also where a look awaits nothing and is due again at once', async () => {
    const agenda = new Agenda(systemClock);
    const stop = new AbortController();
    let looks = 0;
    // The look ends after a while, so that a test that is red comes to its end.
    const mostLooks = 100_000;
    const running = agenda.run(
      4,
      async (key) => {
        if (++looks < mostLooks) agenda.add(key);
      },
      stop.signal,
    );
    const turn = new Promise((resolve) => setImmediate(resolve));
    agenda.add('a');
    await turn;
    expect(looks).to.be.below(mostLooks);
    stop.abort();
    await running;
  });
});
