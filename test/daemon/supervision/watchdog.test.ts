import { expect } from 'chai';
import { factoryEvents } from '../../../src/agents/events.ts';
import type { LoopHealth } from '../../../src/agents/loop.ts';
import { describeStatus, watchOver } from '../../../src/daemon/supervision/watchdog.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

const loop = (name: string, stuckFor?: number): LoopHealth => ({
  name,
  stuckFor,
  startedAt: 0,
  endedAt: undefined,
  failures: 0,
  lastError: undefined,
});

/** A daemon whose loops pass when the test says so. */
function setUp(interval: number | undefined) {
  const clock = new ManualClock();
  const events = factoryEvents(recordingLog());
  const daemon = {
    health: [loop('submit Q'), loop('sweep Q')],
    queueCount: 1,
    liveWorkers: 5,
    events,
  };
  const fed: number[] = [];
  const said: string[] = [];
  const lines: string[] = [];
  const write =
    (level: string) =>
    (message: string, facts: object = {}) =>
      void lines.push(`${level} ${message} ${JSON.stringify(facts)}`);
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const notifier = {
    alive: () => void fed.push(clock.monotonic()),
    status: (status: string) => void said.push(status),
  };
  watchOver(daemon, { clock, log, notifier, interval });
  /** Passes every `step` ms for so long. */
  const run = async (ms: number, step = 100) => {
    for (let gone = 0; gone < ms; gone += step) {
      await clock.advance(step);
      events.emit('passEnded', { loop: 'submit Q', duration: 1, failed: false });
    }
  };
  return { clock, daemon, fed, said, lines, run };
}

describe('watchdog', () => {
  it('is fed by the passes of the loops, at a third of its interval', async () => {
    const { fed, run } = setUp(30_000);
    await run(60_000);
    expect(fed).to.deep.equal([100, 10_100, 20_100, 30_100, 40_100, 50_100]);
  });

  it('is not fed by time alone', async () => {
    const { clock, fed, run } = setUp(30_000);
    await run(100);
    await clock.advance(600_000);
    expect(fed).to.have.length(1);
  });

  it('is not fed while a loop is stuck, says which once, and is fed again when it goes on', async () => {
    const { daemon, fed, said, lines, run } = setUp(30_000);
    await run(5000);
    daemon.health = [loop('submit Q', 130_400), loop('sweep Q')];
    await run(60_000);
    expect(fed).to.have.length(1);
    expect(lines).to.deep.equal([
      'error a loop is stuck; the watchdog is not fed {"loop":"submit Q","seconds":130}',
    ]);
    expect(said).to.deep.equal(['1 queue, 5 live workers; stuck: submit Q (130 s)']);
    daemon.health = [loop('submit Q'), loop('sweep Q')];
    await run(1000);
    expect(fed).to.have.length(2);
    expect(lines[1]).to.equal('info a loop that was stuck goes on {"loop":"submit Q"}');
  });

  it('keeps up with an interval that is shorter than its looks', async () => {
    const { fed, run } = setUp(300);
    await run(3000, 10);
    const gaps = fed.slice(1).map((at, index) => at - (fed[index] ?? 0));
    expect(Math.max(...gaps)).to.be.at.most(150);
  });

  it('without an interval only the status is told, when it changed and not too often', async () => {
    const { daemon, fed, said, run } = setUp(undefined);
    await run(120_000, 1000);
    expect(said).to.deep.equal(['1 queue, 5 live workers']);
    for (let workers = 0; workers < 60; workers++) {
      daemon.liveWorkers = workers;
      await run(1000, 1000);
    }
    expect(said.length).to.be.within(2, 4);
    expect(fed).to.deep.equal([]);
  });

  it('describes a daemon in one line', () => {
    expect(describeStatus({ queueCount: 0, liveWorkers: 1 }, { ok: true, stuck: [] })).to.equal(
      '0 queues, 1 live worker',
    );
  });
});
