import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { expect } from 'chai';
import { factoryEvents } from '../../src/agents/events.ts';
import type { LoopHealth } from '../../src/agents/loop.ts';
import { Notifier, systemdNotify } from '../../src/daemon/supervision/notify.ts';
import { watchOver } from '../../src/daemon/supervision/watchdog.ts';
import { systemClock } from '../../src/util/clock.ts';
import { listenForNotifications, type NotifyListener } from '../support/notify-listener.ts';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

describe('as a service of systemd', () => {
  let listener: NotifyListener;
  let site: Site | undefined;

  beforeEach(async () => {
    listener = await listenForNotifications();
  });

  afterEach(async () => {
    await site?.clean();
    await listener.close();
  });

  const count = (field: string) => listener.messages.filter((message) => field in message).length;

  it('a daemon says that it is ready, lives, reloads and stops, and its workers hear nothing of it', async () => {
    site = new Site({
      pilot: 'cd $SITE_DIR; env > env; mv env environment; exec sleep 1000',
      queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } },
    });
    const daemon = site.start([], { NOTIFY_SOCKET: listener.socket, WATCHDOG_USEC: '1500000' });
    await until('it is ready', () => count('READY') > 0);
    // Its worker runs, and the watchdog was fed more than once.
    await until('it lives', () => count('WATCHDOG') > 2);
    await until('the worker is counted', () =>
      listener.messages.some(({ STATUS }) => STATUS === '1 queue, 1 live worker'),
    );
    // A worker counts as alive before its pilot writes anything.
    const environment = site.path('environment');
    await until('its pilot has written', () => existsSync(environment));
    daemon.process.kill('SIGHUP');
    await until('it reloads', () => count('RELOADING') === 1);
    const since = listener.messages.findIndex((message) => 'RELOADING' in message);
    expect(listener.messages[since]?.MONOTONIC_USEC).to.match(/^\d+$/);
    await until('it is ready again', () =>
      listener.messages.slice(since + 1).some((message) => 'READY' in message),
    );
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(listener.messages[0]).to.deep.equal({ READY: '1' });
    expect(listener.messages.at(-1)).to.include({ STOPPING: '1', EXTEND_TIMEOUT_USEC: '30000000' });
    expect(site.liveShims().size).to.equal(1);
    expect(readFileSync(environment, 'utf8')).not.to.match(/^(NOTIFY_SOCKET|WATCHDOG_)/m);
    expect(daemon.output()).not.to.contain('systemd cannot be told');
  });

  it('a start that fails leaves its reason', async () => {
    site = new Site({ queues: {} });
    const daemon = site.start([], { NOTIFY_SOCKET: listener.socket });
    await until('it is ready', () => count('READY') > 0);
    // The second one finds the state directory taken.
    const second = site.start([], { NOTIFY_SOCKET: listener.socket });
    expect(await second.ended).to.equal(1);
    // The first one goes on to tell how it is.
    await until('its reason is there', () =>
      listener.messages.some(({ STATUS }) => /^the daemon with pid \d+ .* works on /.test(STATUS ?? '')),
    );
    daemon.process.kill('SIGTERM');
    await daemon.ended;
  });

  it('a stuck loop starves the watchdog', async () => {
    const health: { name: string; stuckFor: number | undefined } = { name: 'submit Q', stuckFor: undefined };
    const events = factoryEvents(silent);
    const daemon = {
      queueCount: 1,
      liveWorkers: 0,
      get health(): LoopHealth[] {
        return [{ ...health, startedAt: 0, endedAt: undefined, failures: 0, lastError: undefined }];
      },
      events,
    };
    const notifier = new Notifier(systemdNotify(listener.socket), { clock: systemClock, log: silent });
    watchOver(daemon, { clock: systemClock, log: silent, notifier, interval: 300 });
    const pass = () => {
      events.emit('passEnded', { loop: 'submit Q', duration: 1, failed: false });
    };
    await until('it is fed', () => {
      pass();
      return count('WATCHDOG') >= 3;
    });
    health.stuckFor = 130_000;
    await until('systemd hears of it', () => {
      pass();
      return listener.messages.some(({ STATUS }) => STATUS?.includes('stuck: submit Q (130 s)'));
    });
    const before = count('WATCHDOG');
    const end = performance.now() + 1000;
    await until('three intervals are over', () => {
      pass();
      return performance.now() > end;
    });
    await notifier.flushed();
    expect(count('WATCHDOG')).to.equal(before);
  });

  it('a daemon without systemd-notify runs all the same, and says so once', async () => {
    site = new Site({ queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } } });
    // bin/thresher itself needs sh and readlink.
    const empty = site.path('bin');
    mkdirSync(empty);
    for (const tool of [
      'readlink',
      'sh',
      'sleep',
      'cat',
      'env',
      'setsid',
      'ps',
      'rm',
      'mkdir',
      'mv',
      'ln',
      'cut',
    ])
      symlinkSync(`/usr/bin/${tool}`, `${empty}/${tool}`);
    const daemon = site.start([], {
      PATH: empty,
      NOTIFY_SOCKET: listener.socket,
      WATCHDOG_USEC: '600000',
    });
    await until('it complained', () => daemon.output().includes('systemd cannot be told'));
    const running = site;
    await until('a worker runs', async () => (await running.workers({ status: 'running' })).length === 1);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended).to.equal(0);
    expect(daemon.output().split('systemd cannot be told')).to.have.length(2);
  });
});
