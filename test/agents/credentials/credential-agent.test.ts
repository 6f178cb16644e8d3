import { expect } from 'chai';
import { factoryEvents } from '../../../src/agents/events.ts';
import { CredentialBoard } from '../../../src/agents/credentials/credential-board.ts';
import { CredentialAgent } from '../../../src/agents/credentials/credential-agent.ts';
import type {
  CredentialManager,
  CredentialState,
  RenewOutcome,
} from '../../../src/plugins/contracts/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

const minutes = 60_000;
const name = '/p';

function there(expiresAt?: number, notBefore?: number): CredentialState {
  const facts = { name, kind: 'x509', subject: 'CN=Jane', digest: 'd' } as const;
  const dates = {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(notBefore !== undefined && { notBefore }),
  };
  return { kind: 'there', facts: { ...facts, ...dates }, warnings: [] };
}
const broken: CredentialState = {
  kind: 'broken',
  name,
  error: { code: 'credential-missing', message: `${name} does not exist` },
};
const failure = { code: 'credential-tool', message: 'the server is down' };

/** A manager that does as it is told, and counts. */
class Scripted implements CredentialManager {
  state: CredentialState = there();
  outcome: RenewOutcome = { kind: 'unchanged', name };
  print = 'a';
  renewals = 0;
  throws = false;

  async inspect(): Promise<readonly CredentialState[]> {
    if (this.throws) throw new Error('no look');
    return [this.state];
  }
  async renew(): Promise<readonly RenewOutcome[]> {
    this.renewals++;
    if (this.throws) throw new Error('no renewal');
    return [this.outcome];
  }
  async fingerprint(): Promise<string> {
    return this.print;
  }
}

function keeping(manager = new Scripted(), start?: number) {
  const [clock, board, log] = [new ManualClock(start), new CredentialBoard(), recordingLog()];
  const agent = new CredentialAgent(manager, board, {
    name: 'M',
    interval: 30 * minutes,
    warnLifetime: 60 * minutes,
    timeout: 1000,
    clock,
    log,
    giveUp: new AbortController().signal,
    events: factoryEvents(log),
  });
  board.expect('M');
  return { manager, clock, board, log, agent };
}

describe('what is known of credentials', () => {
  const now = Date.UTC(2026, 0, 1);
  const judged = (state: CredentialState, trouble = false) => {
    const board = new CredentialBoard();
    board.show('M', [state], new Map(trouble ? [[name, failure]] : []));
    return board.judge({ names: [name], named: false }, 10 * minutes, now);
  };

  for (const [what, state, code] of [
    ['has no end', there(), undefined],
    ['lasts just long enough', there(now + 10 * minutes), undefined],
    ['is valid from now on', there(now + 20 * minutes, now), undefined],
    ['ends a second too early', there(now + 10 * minutes - 1000), 'credential-ending'],
    ['ended', there(now - 1000), 'credential-ending'],
    ['is valid as soon as clocks may differ', there(now + 90 * minutes, now + 5 * minutes), undefined],
    ['is not valid yet', there(now + 90 * minutes, now + 5 * minutes + 1000), 'credential-bad'],
    ['ends before it begins', there(now + minutes, now + 2 * minutes), 'credential-bad'],
    ['is not there', broken, 'credential-bad'],
  ] as const)
    it(`${code === undefined ? 'lets a queue use' : 'keeps a queue from'} one that ${what}`, () => {
      expect(judged(state)?.code).to.equal(code);
    });

  it('hole 3: shows no secret that a manager says back', () => {
    const says = { code: 'plugin-failed', message: 'api_key=0123456789abcdef01 was refused' };
    const board = new CredentialBoard();
    board.expect('N', says.message);
    board.show('M', [{ kind: 'broken', name, error: says }], new Map([[name, says]]));
    const judge = (names: readonly string[]) => board.judge({ names, named: true }, 0, now)?.message;
    const shown = JSON.stringify([board.all, judge([name]), judge(['other'])]);
    expect([shown.match(/was refused/g)?.length, shown.includes('0123456789')]).to.deep.equal([5, false]);
  });

  it('says why the renewal fails as well, and nothing of that while the credential is good', () => {
    expect(judged(there(now + minutes), true)?.message).to.equal(
      `/p ends in 60 s, less than the 600 s that are wanted (credmanager.minLifetime) (2026-01-01T00:01:00.000Z); its renewal fails: the server is down`,
    );
    expect(judged(there(), true)).to.equal(undefined);
  });

  it('stops nothing for a credential that nobody keeps here, once all have looked', () => {
    const board = new CredentialBoard();
    expect(board.judge({ names: ['/other'], named: false }, 0, now)).to.equal(undefined);
    board.expect('M');
    expect(board.judge({ names: ['/other'], named: false }, 0, now)?.code).to.equal('credential-unknown');
    expect(board.judge({ names: [], named: false }, 0, now)).to.equal(undefined);
    board.show('M', [], new Map());
    expect(board.judge({ names: ['/other'], named: false }, 0, now)).to.equal(undefined);
  });

  it('stops a queue that itself names a credential which nobody keeps', () => {
    const board = new CredentialBoard();
    const reason = board.judge({ names: ['/other'], named: true }, 0, now);
    expect(reason?.code).to.equal('credential-unknown');
    expect(reason?.message).to.match(/^no credential manager keeps or watches \/other: name one/);
  });

  it('stops what nobody knows while a manager cannot be made, and says why', () => {
    const board = new CredentialBoard();
    board.expect('M', 'plan.json:3: it is no list');
    board.show('other', [there()], new Map());
    expect(board.judge({ names: [name], named: false }, 0, now)).to.equal(undefined);
    expect(board.judge({ names: ['/x'], named: false }, 0, now)?.message).to.equal(
      '/x is not known: plan.json:3: it is no list',
    );
    board.forget('M');
    expect(board.judge({ names: ['/x'], named: false }, 0, now)).to.equal(undefined);
  });

  it('asks no more than a quarter of its life of one that lasts short from the beginning', () => {
    const board = new CredentialBoard();
    const judged = (left: number) => {
      board.show('M', [there(now + left * minutes, now + (left - 60) * minutes)], new Map());
      return board.judge({ names: [name], named: false }, 60 * minutes, now)?.code;
    };
    expect([59, 16, 14, -1].map(judged)).to.deep.equal([
      ...[undefined, undefined, 'credential-ending', 'credential-ending'],
    ]);
  });

  it('c13: stops a queue of several tokens only where none of them is good', () => {
    const board = new CredentialBoard();
    const judged = (...names: readonly string[]) =>
      board.judge({ names: [names], named: false }, 0, now)?.code;
    const [good, over] = [there(now + minutes), { ...broken, name: '/over' }];
    board.show('M', [good, over], new Map());
    expect(judged(name, '/over')).to.equal(undefined);
    expect(judged('/over')).to.equal('credential-bad');
    expect(judged('/over', '/unknown')).to.equal(undefined);
    expect(judged()).to.equal(undefined);
    board.expect('other');
    expect(judged('/over', '/unknown')).to.be.a('string');
  });

  it('keeps what two managers say of one file, and the one that fails to renew it speaks', () => {
    const board = new CredentialBoard();
    board.show('watcher', [there(now)], new Map());
    board.show('renewer', [there(now)], new Map([[name, failure]]));
    board.show('watcher', [there(now)], new Map());
    expect(board.all.map(({ manager }) => manager)).to.have.members(['watcher', 'renewer']);
    expect(board.judge({ names: [name], named: false }, 1, now)?.message).to.contain('the server is down');
    board.forget('renewer');
    expect(board.judge({ names: [name], named: false }, 1, now)?.message).to.not.contain(
      'the server is down',
    );
    board.forget('watcher');
    expect(board.judge({ names: [name], named: false }, 1, now)).to.equal(undefined);
  });

  it('says that a credential got better when it lasts longer, and not otherwise', () => {
    const board = new CredentialBoard();
    let better = 0;
    const counts = [broken, there(now), there(now), there(now + 1), broken, there()].map((state) => {
      if (board.show('M', [state], new Map())) better++;
      return better;
    });
    expect(counts).to.deep.equal([0, 1, 1, 2, 2, 3]);
    board.show('M', [there(now + 90 * minutes, now + 60 * minutes)], new Map());
    expect(board.show('M', [there(now + 30 * minutes, now)], new Map()), 'it can be used').to.equal(true);
  });
});

describe('the agent of a credential manager', () => {
  it('renews at its interval where nothing changes, and at once where a file did', async () => {
    const { manager, clock, agent } = keeping();
    for (let pass = 0; pass < 10; pass++) await agent.pass();
    expect(manager.renewals).to.equal(1);
    manager.print = 'b';
    await agent.pass();
    await agent.pass();
    expect(manager.renewals).to.equal(2);
    await clock.advance(30 * minutes);
    await agent.pass();
    expect(manager.renewals).to.equal(3);
  });

  it('asks often enough to renew what lasts short, at any part of its life', async () => {
    const { manager, clock, agent } = keeping();
    const begin = clock.now();
    manager.state = there(begin + 20 * minutes, begin);
    const asked: number[] = [];
    for (let second = 0; second < 1000; second++) {
      const before = manager.renewals;
      await agent.pass();
      if (manager.renewals > before) asked.push(second);
      await clock.advance(1000);
    }
    expect(asked.length).to.be.within(8, 25);
    const pauses = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(Math.max(...pauses)).to.be.most(150);
  });

  it('sees a file that changes while it renews', async () => {
    const { manager, agent } = keeping();
    const renew = manager.renew.bind(manager);
    manager.renew = () => {
      manager.print = 'b';
      return renew();
    };
    await agent.pass();
    await agent.pass();
    expect(manager.renewals).to.equal(2);
    await agent.pass();
    expect(manager.renewals).to.equal(2);
  });

  it('tries a failed renewal again after pauses that double, which a changed file ends', async () => {
    const { manager, clock, agent } = keeping();
    manager.outcome = { kind: 'failed', name, error: failure };
    const at: number[] = [];
    for (let second = 0; second < 80; second++) {
      const before = manager.renewals;
      await agent.pass();
      if (manager.renewals > before) at.push(second);
      await clock.advance(1000);
    }
    expect(at).to.deep.equal([0, 5, 15, 35, 75]);
    manager.print = 'b';
    await agent.pass();
    expect(manager.renewals).to.equal(6);
    await clock.advance(5000);
    await agent.pass();
    expect(manager.renewals).to.equal(7);
  });

  it('warns once of the same trouble in an hour, and again of another', async () => {
    const { manager, clock, log, agent } = keeping();
    manager.outcome = { kind: 'failed', name, error: failure };
    for (let minute = 0; minute < 50; minute++) {
      await agent.pass();
      await clock.advance(minutes);
    }
    const told = () => log.lines.filter(({ message }) => message === 'credential not renewed').length;
    expect(told()).to.equal(1);
    manager.outcome = { kind: 'failed', name, error: { ...failure, message: 'it refuses' } };
    await clock.advance(10 * minutes);
    await agent.pass();
    expect(told()).to.equal(2);
  });

  it('warns again of the same trouble once it was over', async () => {
    const { manager, clock, log, agent } = keeping();
    for (const kind of ['failed', 'unchanged', 'failed'] as const) {
      manager.outcome = kind === 'failed' ? { kind, name, error: failure } : { kind, name };
      manager.print += '.';
      await agent.pass();
      await clock.advance(minutes);
    }
    expect(log.lines.filter(({ message }) => message === 'credential not renewed')).to.have.length(2);
  });

  it('is not led astray by a wall clock that jumps back, renews at once where it jumps ahead, and judges lifetimes by it', async () => {
    const { manager, clock, board, agent } = keeping();
    let jump = 0;
    const now = clock.now.bind(clock);
    clock.now = () => now() + jump;
    manager.state = there(clock.now() + 120 * minutes);
    await agent.pass();
    jump = -1000 * minutes;
    await agent.pass();
    expect(manager.renewals).to.equal(1);
    jump = 100_000 * minutes;
    await agent.pass();
    expect(manager.renewals).to.equal(2);
    expect(board.judge({ names: [name], named: false }, minutes, clock.now())?.code).to.equal(
      'credential-ending',
    );
    jump = 0;
    expect(board.judge({ names: [name], named: false }, minutes, clock.now())).to.equal(undefined);
  });

  it('leaves unknown, and so unused, what it could not look at even once; later it is bad', async () => {
    const { manager, clock, board, agent } = keeping();
    manager.throws = true;
    await agent.pass();
    expect(board.judge({ names: [name], named: false }, 0, clock.now())?.code).to.equal('credential-unknown');
    manager.throws = false;
    await clock.advance(5000);
    await agent.pass();
    expect(board.judge({ names: [name], named: false }, 0, clock.now())).to.equal(undefined);
    manager.throws = true;
    manager.print = 'b';
    await agent.pass();
    expect(board.judge({ names: [name], named: false }, 0, clock.now())?.code).to.equal('credential-bad');
  });

  it('warns of a credential that ends soon', async () => {
    const { manager, clock, log, agent } = keeping();
    manager.state = there(clock.now() + 59 * minutes);
    await agent.pass();
    expect(log.lines.map(({ message }) => message)).to.deep.equal(['credential ends soon']);
  });
});
