import { expect } from 'chai';
import {
  Notifier,
  type Send,
  systemdNotify,
  takeServiceManager,
} from '../../../src/daemon/supervision/notify.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

function recorder() {
  const warnings: Readonly<Record<string, unknown>>[] = [];
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message: string, facts = {}) => warnings.push({ message, ...facts }),
    error: () => undefined,
  };
  return { log, warnings };
}

/** A systemd that takes its time: each message waits until it is let through. */
function slowSystemd() {
  const sent: string[][] = [];
  const open: (() => void)[] = [];
  const send: Send = (fields) => {
    sent.push([...fields]);
    return new Promise((resolve) => open.push(resolve));
  };
  return { sent, send, letThrough: () => open.shift()?.() };
}

describe('what systemd says in the environment', () => {
  it('is read and taken out, so that no child speaks in our name', () => {
    const env = { NOTIFY_SOCKET: '/run/n', WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7', PATH: '/bin' };
    expect(takeServiceManager(env, 7)).to.deep.equal({ socket: '/run/n', watchdog: 30_000 });
    expect(env).to.deep.equal({ PATH: '/bin' });
  });

  for (const [what, env] of [
    ['of another process', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }],
    ['of no length', { WATCHDOG_USEC: '0' }],
    ['that is no number', { WATCHDOG_USEC: '30s' }],
    ['that was not asked for', {}],
  ] as const) {
    it(`has no watchdog ${what}`, () => {
      expect(takeServiceManager({ ...env }, 7)).to.deep.equal({ socket: undefined, watchdog: undefined });
    });
  }

  it('has a watchdog without a pid', () => {
    expect(takeServiceManager({ WATCHDOG_USEC: '1500' }, 7).watchdog).to.equal(1.5);
  });
});

describe('notifier', () => {
  const make = (send: Send | undefined, clock = new ManualClock()) => {
    const { log, warnings } = recorder();
    const notifier = new Notifier(send, { clock, log, monotonicUsec: () => 123_456n });
    return { notifier, warnings, clock };
  };

  it('tells start, reload and stop in this order, one at a time', async () => {
    const { sent, send, letThrough } = slowSystemd();
    const { notifier, clock } = make(send);
    notifier.ready();
    notifier.reloading();
    notifier.ready();
    notifier.stopping(30_000);
    for (let count = 1; count <= 4; count++) {
      await clock.settle();
      expect(sent).to.have.length(count);
      letThrough();
    }
    expect(sent).to.deep.equal([
      ['READY=1'],
      ['RELOADING=1', 'MONOTONIC_USEC=123456'],
      ['READY=1'],
      ['STOPPING=1', 'EXTEND_TIMEOUT_USEC=30000000', 'STATUS=stopping'],
    ]);
  });

  it('says after the stop began neither that it is ready nor that it lives', async () => {
    const { sent, send, letThrough } = slowSystemd();
    const { notifier, clock } = make(send);
    notifier.stopping(1000);
    notifier.ready();
    notifier.reloading();
    notifier.alive('well');
    notifier.status('well');
    notifier.stopping(1000);
    letThrough();
    await clock.settle();
    expect(sent).to.have.length(1);
  });

  it('lets signs of life and status pile up to one message while systemd is slow', async () => {
    const { sent, send, letThrough } = slowSystemd();
    const { notifier, clock } = make(send);
    notifier.ready();
    for (let count = 0; count < 100; count++) notifier.alive(`look ${count}`);
    notifier.status('two\nlines');
    letThrough();
    await clock.settle();
    letThrough();
    await notifier.flushed();
    expect(sent).to.deep.equal([['READY=1'], ['READY=1', 'WATCHDOG=1', 'STATUS=two lines']]);
  });

  it('does not say that it is ready while it reloads, whatever the watchdog is fed', async () => {
    const { sent, send, letThrough } = slowSystemd();
    const { notifier, clock } = make(send);
    notifier.ready();
    notifier.reloading();
    notifier.alive('well');
    letThrough();
    await clock.settle();
    expect(sent[1]).to.deep.equal(['RELOADING=1', 'MONOTONIC_USEC=123456', 'WATCHDOG=1', 'STATUS=well']);
  });

  it('asks for more time while a start lasts, but not for ever', async () => {
    const sent: string[][] = [];
    const { notifier, clock } = make((fields) => Promise.resolve(void sent.push([...fields])));
    let started: () => void = () => undefined;
    const start = notifier.whileStarting(new Promise<void>((resolve) => (started = resolve)));
    await clock.advance(19_000);
    expect(sent).to.deep.equal([]);
    await clock.advance(2000);
    expect(sent).to.deep.equal([['EXTEND_TIMEOUT_USEC=60000000', 'STATUS=starting']]);
    await clock.advance(3_600_000);
    expect(sent).to.have.length(45);
    started();
    await start;
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('leaves the reason of a failed start as the status', async () => {
    const sent: string[][] = [];
    const { notifier } = make((fields) => Promise.resolve(void sent.push([...fields])));
    const failed = notifier.whileStarting(Promise.reject(new Error('the disk is full')));
    expect(await failed.catch((error: unknown) => String(error))).to.equal('Error: the disk is full');
    expect(sent).to.deep.equal([['STATUS=the disk is full']]);
  });

  it('complains once when systemd cannot be told, and goes on trying', async () => {
    let calls = 0;
    const { notifier, warnings } = make(() => {
      calls++;
      return Promise.reject(new Error('spawn systemd-notify ENOENT\n'));
    });
    notifier.ready();
    notifier.reloading();
    notifier.ready();
    await notifier.flushed();
    expect(calls).to.equal(3);
    expect(warnings).to.deep.equal([
      {
        message: 'systemd cannot be told',
        error: 'spawn systemd-notify ENOENT',
        remedy: 'is systemd-notify installed, and NotifyAccess=all in the unit?',
      },
    ]);
  });

  it('does nothing where nobody listens', async () => {
    const { notifier, warnings } = make(undefined);
    notifier.ready();
    notifier.alive('well');
    notifier.stopping(1);
    await notifier.flushed();
    expect(warnings).to.deep.equal([]);
  });

  it('keeps nobody waiting for a systemd that hangs', async () => {
    const { notifier, clock } = make(() => new Promise(() => undefined));
    notifier.stopping(1000);
    let flushed = false;
    const end = notifier.flushed().then(() => (flushed = true));
    await clock.advance(1999);
    expect(flushed).to.equal(false);
    await clock.advance(1);
    expect(await end).to.equal(true);
  });

  it('survives a socket that is not there, with the real program', async () => {
    const { log, warnings } = recorder();
    const send = systemdNotify(`${temporaryDirectory()}/none`);
    const notifier = new Notifier(send, { clock: systemClock, log });
    notifier.ready();
    await notifier.flushed();
    expect(warnings).to.have.length(1);
    expect(warnings[0]?.error).to.match(/No such file or directory/);
  });
});
