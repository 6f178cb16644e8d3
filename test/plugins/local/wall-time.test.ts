import { utimesSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { systemUptime } from '../../../src/plugins/local/host.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { LocalBackend } from '../../support/local-plugins.ts';
import { workerOf } from '../../support/samples.ts';

const hour = 3_600_000;
const limited = { requirements: { ...workerOf(1).requirements, minRamCount: 0, maxWalltime: 3600 } };

describe('the wall time of a local worker', () => {
  let backend: LocalBackend;
  let step: number;
  const clock = { ...systemClock, now: () => systemClock.now() + step };

  beforeEach(() => {
    step = 0;
    backend = new LocalBackend({ clock });
  });

  afterEach(() => backend.clean());

  for (const [where, jump] of [
    ['forwards', 100 * hour],
    ['backwards', -100 * hour],
  ] as const)
    it(`is not over where the machine's clock is set ${where}`, async () => {
      await backend.start(7, 'exec sleep 1000', limited);
      step = jump;
      const { seen } = await backend.observe(({ over }) => over >= 5);
      await sleep(0);
      expect(seen.get(7)?.status).to.equal('running');
      expect((await backend.living()).length).to.be.greaterThan(0);
    });

  for (const [where, jump] of [
    ['where the clock stood', 0],
    ['where the clock was set backwards meanwhile', -100 * hour],
  ] as const)
    it(`is over by the age of its process, ${where}`, async () => {
      let slept = 0;
      const uptime = () => systemUptime() + slept;
      const aging = new LocalBackend({ clock }, backend.directory, uptime);
      await aging.start(7, 'exec sleep 1000', limited);
      step = jump;
      await aging.observe(({ over }) => over >= 2);
      expect((await aging.living()).length).to.be.greaterThan(0);
      slept = 3601;
      const { seen } = await aging.observe((shown) => shown.seen.get(7)?.status === 'failed');
      expect(seen.get(7)?.error?.code).to.equal('walltime');
    });

  it('does not go by the time that a pilot gives its claim', async () => {
    const worker = await backend.start(7, 'exec sleep 1000', limited);
    utimesSync(backend.path(worker, 'claim.1'), 0, 0);
    const { seen } = await backend.restarted({ clock }).observe(({ over }) => over >= 5);
    expect(seen.get(7)?.status).to.equal('running');
  });
});

describe('the start of a local worker', () => {
  it('is told once and stays, or each look would be written to the database', async () => {
    let step = 0;
    const backend = new LocalBackend({ clock: { ...systemClock, now: () => systemClock.now() + step } });
    try {
      await backend.start(7, 'exec sleep 1000');
      const first = (await backend.observe(({ over }) => over >= 2)).seen.get(7);
      step = 50;
      const later = (await backend.observe(({ over }) => over >= 2)).seen.get(7);
      expect(first?.startTime).to.be.a('number');
      expect(later?.startTime).to.equal(first?.startTime);
    } finally {
      await backend.clean();
    }
  });
});

describe('the uptime of the machine', () => {
  it('is above the start of every process, in any container', () => {
    expect(systemUptime()).to.be.greaterThan(process.uptime() - 1);
  });
});
