import { expect } from 'chai';
import { WarningBoard } from '../../src/daemon/warning-board.ts';
import type { Log } from '../../src/plugins/contracts/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rememberSecret } from '../../src/util/own-secrets.ts';

describe('warnings that wait to be told', () => {
  const clock = new ManualClock(1000);
  let lines: string[];
  let board: WarningBoard;
  let log: Log;

  beforeEach(() => {
    lines = [];
    const write = (message: string) => {
      lines.push(message);
    };
    board = new WarningBoard(clock);
    log = board.hearing({ debug: write, info: write, warn: write, error: write });
  });

  it('are those of the log, which gets every line as before', () => {
    log.debug('a');
    log.info('b');
    log.warn('c', { queue: 'Q' });
    log.error('d');
    expect(lines).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(board.take(10)).to.deep.equal([
      { level: 'warn', message: 'c', about: 'Q', facts: 'queue=Q', count: 1, at: 1000 },
      { level: 'error', message: 'd', about: '', facts: '', count: 1, at: 1000 },
    ]);
    expect(board.take(10)).to.deep.equal([]);
  });

  it('hole 8: show of long facts the beginning', () => {
    log.warn('w', { text: 'x-'.repeat(1e6), list: ['k'.repeat(1e6)], token: 'x'.repeat(1e6) });
    expect(board.take(10)[0]?.facts).to.have.length(400);
    log.warn('w', { token: 'hunter12hunter12', list: [{ password: 'hunter7' }] });
    expect(board.take(10)[0]?.facts).to.equal('token=(hidden) list=[{"password":"(hidden)"}]');
  });

  it('count together where they say the same of one thing, with the facts of the last', () => {
    for (let n = 1; n <= 5000; n++) log.warn('refused', { queue: 'Q', code: 'x', n });
    log.warn('refused', { queue: 'R', code: 'x' });
    log.warn('refused', { queue: 'Q', code: 'y' });
    const taken = board.take(10);
    expect(taken.map(({ about, count }) => [about, count])).to.deep.equal([
      ['Q', 5000],
      ['R', 1],
      ['Q', 1],
    ]);
    expect(taken[0]?.facts).to.equal('queue=Q code=x n=5000');
  });

  it('keep within bounds in a storm of different ones, and say how many were left out', () => {
    for (let n = 0; n < 10_000; n++) log.error(`failure ${n}`);
    const first = board.take(50);
    expect(first).to.have.length(50);
    expect(first.at(-1)?.message).to.match(/^9800 more warnings/);
    const rest = [board.take(50), board.take(50), board.take(50), board.take(50)].flat();
    expect(rest).to.have.length(151);
  });

  it('show no secret, no line break and no endless fact', () => {
    log.warn('bad\nthing', {
      token: 'abc123secret',
      why: `Bearer ${'x'.repeat(40)}`,
      long: 'y'.repeat(9999),
    });
    const [one] = board.take(1);
    expect(one?.message).to.equal('bad thing');
    expect(one?.facts).not.to.contain('abc123secret');
    expect(one?.facts).not.to.contain('xxxxxxxx');
    expect(one?.facts.length).to.be.at.most(400);
  });

  it('show nothing of a password of ours, wherever it is said', () => {
    const secret = 'pw-of-the-board-7f3a';
    rememberSecret(secret);
    log.warn(`refused ${secret}`, { queue: secret, why: `said ${secret}`, deep: { list: [secret] } });
    expect(JSON.stringify(board.take(10))).not.to.contain('of-the-board');
  });

  it('survive facts that cannot be shown', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    log.warn('odd', { loop, big: 5n });
    expect(board.take(1)[0]?.facts).to.contain('(not shown)');
  });
});
