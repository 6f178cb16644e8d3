import { expect } from 'chai';
import {
  CommandAgent,
  type CommandTargets,
  type SweepResult,
} from '../../../src/agents/commands/command-agent.ts';
import type { Command } from '../../../src/store/commands.ts';
import { messageOf } from '../../../src/worker/errors.ts';
import { AgentParts } from '../../support/agent-context.ts';

describe('the agent that carries out commands', () => {
  let parts: AgentParts;
  let agent: CommandAgent;
  /** Whether another process wrote to the database since the last look. */
  let bell: boolean;
  let looks: number;
  let woken: string[];
  let targets: CommandTargets;
  let killed: number[][];

  beforeEach(async () => {
    parts = await AgentParts.open();
    await parts.store.queues.report({
      queue: 'Q',
      queueStatus: 'online',
      limits: {},
      reasons: [],
      reportTime: 1,
    });
    [bell, looks, woken, killed] = [true, 0, [], []];
    parts.events.on('killRequested', ({ workers }) => killed.push(workers.map(({ workerId }) => workerId)));
    targets = {
      queues: () => new Set(['Q']),
      leads: () => true,
      wakeSubmitter: (queue) => woken.push(queue),
      sweepNow: async () => ({ count: 3, errors: [], kept: [] }),
      removeOrphans: async () => ({ count: 2, errors: [], kept: [] }),
    };
    const store = {
      ...parts.store,
      changedElsewhere: () => {
        looks++;
        return bell;
      },
    };
    agent = new CommandAgent(
      { ...parts.context, store },
      {
        queues: () => targets.queues(),
        leads: (worker) => targets.leads(worker),
        wakeSubmitter: (queue) => {
          targets.wakeSubmitter(queue);
        },
        sweepNow: () => targets.sweepNow(),
        removeOrphans: () => targets.removeOrphans(),
      },
    );
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  const leave = (command: Command) => parts.store.commands.add(command, parts.clock.now());
  const resultOf = (id: number) => parts.store.commands.result(id);
  async function carriedOut(command: Command) {
    const id = await leave(command);
    await agent.pass();
    return resultOf(id);
  }
  const control = async () => {
    const { mode, reason, since } = (await parts.store.queues.control('Q')) ?? {};
    return mode && { mode, reason, since };
  };
  async function running(workerIds: readonly number[]): Promise<void> {
    await parts.ledger.change(workerIds.map((workerId) => ({ workerId, to: 'running', source: 'test' })));
  }
  /** A promise that a test fulfils. */
  function open<T>(): { readonly promise: Promise<T>; readonly fulfil: (value: T) => void } {
    const { promise, resolve: fulfil } = Promise.withResolvers<T>();
    return { promise, fulfil };
  }

  it('pauses a queue since now, resumes it, and wakes its submitter each time', async () => {
    expect(await carriedOut({ kind: 'pause', queue: 'Q', reason: 'downtime' })).to.deep.equal({
      ok: true,
      message: 'Q is paused',
    });
    expect(await control()).to.deep.equal({ mode: 'paused', reason: 'downtime', since: parts.clock.now() });
    expect(await carriedOut({ kind: 'resume', queue: 'Q' })).to.deep.equal({
      ok: true,
      message: 'Q is resumed',
    });
    expect(await control()).to.equal(undefined);
    expect(woken).to.deep.equal(['Q', 'Q']);
  });

  it('says of a queue that is not there that it is not, and wakes no submitter', async () => {
    const said = { ok: false, message: 'there is no queue R' };
    for (const command of [
      { kind: 'pause', queue: 'R', reason: 'x' },
      { kind: 'drain', queue: 'R', reason: 'x' },
      { kind: 'resume', queue: 'R' },
    ] as const)
      expect(await carriedOut(command)).to.deep.equal(said);
    expect(woken).to.deep.equal([]);
  });

  it('drains a queue: its queued workers are to end, its running ones are not', async () => {
    const ids = await parts.submitted(3);
    await running(ids.slice(0, 1));
    expect(await carriedOut({ kind: 'drain', queue: 'Q', reason: 'downtime' })).to.deep.equal({
      ok: true,
      message: 'Q is draining; 2 queued workers are cancelled',
    });
    expect(killed).to.deep.equal([ids.slice(1)]);
    expect((await control())?.mode).to.equal('draining');
  });

  it('asks for the end of the workers that a command names, once', async () => {
    const ids = await parts.submitted(2);
    expect(await carriedOut({ kind: 'kill', ids })).to.deep.equal({
      ok: true,
      message: '2 of 2 workers are being ended',
    });
    expect((await carriedOut({ kind: 'kill', ids: [...ids, 99] }))?.message).to.equal(
      '0 of 3 workers are being ended',
    );
    expect(killed).to.deep.equal([ids]);
    expect(ids.map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([true, true]);
  });

  it('asks for the end of a whole queue, or of its workers in some statuses', async () => {
    const ids = await parts.submitted(3);
    await running(ids.slice(0, 1));
    const some = await carriedOut({ kind: 'kill-queue', queue: 'Q', statuses: ['running'] });
    expect(some?.message).to.equal('1 workers of Q are being ended');
    const all = await carriedOut({ kind: 'kill-queue', queue: 'Q' });
    expect(all?.message).to.equal('2 workers of Q are being ended');
    expect(killed).to.deep.equal([ids.slice(0, 1), ids.slice(1)]);
  });

  it('hole 7: done again after a crash, an end of a whole queue ends no workers that were made since', async () => {
    const before = await parts.submitted(2);
    const id = await leave({ kind: 'kill-queue', queue: 'Q' });
    // Taken up, and done, by a daemon that died before its answer was written.
    await parts.store.commands.take(id, parts.clock.now());
    await parts.clock.advance(3_600_000);
    const since = await parts.submitted(1);
    await agent.pass();
    expect((await resultOf(id))?.message).to.equal('2 workers of Q are being ended');
    expect(killed).to.deep.equal([before]);
    expect(since.map((one) => parts.ledger.live.get(one)?.killed)).to.deep.equal([false]);
  });

  it('ends the workers of a queue also where the clock was set back since they were made', async () => {
    const ids = await parts.submitted(2);
    const id = await leave({ kind: 'kill-queue', queue: 'Q' });
    const now = parts.clock.now() - 3_600_000;
    const clock = { now: () => now, monotonic: () => 0, sleep: () => Promise.resolve() };
    const store = { ...parts.store, changedElsewhere: () => true };
    await new CommandAgent({ ...parts.context, clock, store }, targets).pass();
    expect((await resultOf(id))?.message).to.equal(`${ids.length} workers of Q are being ended`);
  });

  it('says which workers cannot be ended since no configuration leads to them, and records the wish', async () => {
    const ids = await parts.submitted(7);
    targets.leads = ({ workerId }) => workerId === ids[0];
    const result = await carriedOut({ kind: 'kill', ids });
    expect(result?.ok).to.equal(false);
    expect(result?.message).to.match(
      /^1 of 7 workers are being ended; 6 cannot be ended \(2, 3, 4, 5, 6 \.\.\.\): no configuration leads to local:\/work any more/,
    );
    expect(ids.map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal(ids.map(() => true));
  });

  it('carries out commands in the order in which they were left', async () => {
    await leave({ kind: 'pause', queue: 'Q', reason: 'one' });
    await leave({ kind: 'resume', queue: 'Q' });
    await leave({ kind: 'pause', queue: 'Q', reason: 'two' });
    await agent.pass();
    expect((await control())?.reason).to.equal('two');
    expect(woken).to.have.length(3);
  });

  it('looks for commands only where another process wrote', async () => {
    await agent.pass();
    bell = false;
    const id = await leave({ kind: 'pause', queue: 'Q', reason: 'x' });
    await agent.pass();
    expect(await resultOf(id)).to.equal(undefined);
    bell = true;
    await agent.pass();
    expect(await resultOf(id)).to.include({ ok: true });
    expect(looks).to.equal(3);
  });

  it('looks at the start, when a former daemon may have left something open', async () => {
    bell = false;
    expect(await carriedOut({ kind: 'pause', queue: 'Q', reason: 'x' })).to.include({ ok: true });
  });

  it('looks again after a pass that failed, though nothing was written since', async () => {
    await agent.pass();
    const id = await leave({ kind: 'pause', queue: 'Q', reason: 'x' });
    const finish = parts.store.commands.finish.bind(parts.store.commands);
    parts.store.commands.finish = async () => {
      throw new Error('the disk is full');
    };
    expect(await agent.pass().catch(messageOf)).to.equal('the disk is full');
    parts.store.commands.finish = finish;
    bell = false;
    await agent.pass();
    expect(await resultOf(id)).to.include({ ok: true });
  });

  it('answers a command that fails, and carries out the next one', async () => {
    targets.leads = () => {
      throw new Error('broken');
    };
    const ids = await parts.submitted(1);
    const fails = await leave({ kind: 'kill', ids });
    const next = await leave({ kind: 'pause', queue: 'Q', reason: 'x' });
    await agent.pass();
    expect(await resultOf(fails)).to.deep.equal({ ok: false, message: 'broken' });
    expect(await resultOf(next)).to.include({ ok: true });
  });

  it('takes up only pauses, drains and resumes before anything runs, and the rest afterwards', async () => {
    const ids = await parts.submitted(1);
    const kill = await leave({ kind: 'kill', ids });
    const sweep = await leave({ kind: 'sweep', orphans: false });
    const pause = await leave({ kind: 'pause', queue: 'Q', reason: 'x' });
    await agent.carryOutControls();
    expect(await Promise.all([kill, sweep, pause].map(resultOf))).to.deep.equal([
      undefined,
      undefined,
      { ok: true, message: 'Q is paused' },
    ]);
    await agent.pass();
    expect(await resultOf(kill)).to.include({ ok: true });
  });

  describe('and a sweep', () => {
    const swept = async (id: number) => {
      while ((await resultOf(id)) === undefined) await parts.clock.settle();
      return resultOf(id);
    };

    it('is carried out beside other commands, which do not wait for it, and only once', async () => {
      const backend = open<SweepResult>();
      let sweeps = 0;
      targets.sweepNow = () => {
        sweeps++;
        return backend.promise;
      };
      const sweep = await leave({ kind: 'sweep', orphans: false });
      expect(await carriedOut({ kind: 'pause', queue: 'Q', reason: 'x' })).to.include({ ok: true });
      await agent.pass();
      await parts.clock.settle();
      expect([sweeps, await resultOf(sweep)]).to.deep.equal([1, undefined]);
      backend.fulfil({ count: 4, errors: [], kept: ['2 workers are kept'] });
      expect(await swept(sweep)).to.deep.equal({
        ok: true,
        message: '4 workers were swept; 2 workers are kept',
      });
    });

    it('of orphans removes what the last listings called so', async () => {
      const id = await leave({ kind: 'sweep', orphans: true });
      await agent.pass();
      expect(await swept(id)).to.deep.equal({ ok: true, message: '2 orphans were removed' });
    });

    it('says what kept some connections from being swept', async () => {
      targets.sweepNow = async () => ({ count: 1, errors: ['no route to host'], kept: [] });
      const id = await leave({ kind: 'sweep', orphans: false });
      await agent.pass();
      expect(await swept(id)).to.deep.equal({ ok: false, message: '1 workers were swept; no route to host' });
    });

    it('whose answer could not be written is carried out again', async () => {
      const finish = parts.store.commands.finish.bind(parts.store.commands);
      parts.store.commands.finish = async () => {
        throw new Error('the disk is full');
      };
      const id = await leave({ kind: 'sweep', orphans: false });
      await agent.pass();
      while (!parts.log.lines.some(({ message }) => message === 'sweep failed')) await parts.clock.settle();
      parts.store.commands.finish = finish;
      bell = false;
      await agent.pass();
      expect(await swept(id)).to.include({ ok: true });
    });
  });
});
