import { expect } from 'chai';
import { absenceChange } from '../../../src/agents/ledger/outcomes.ts';
import { MonitorAgent } from '../../../src/agents/observation/monitor-agent.ts';
import { ObservationWriter } from '../../../src/agents/observation/observation-writer.ts';
import type { CheckResult, ObservationSink, Worker } from '../../../src/plugins/contracts/index.ts';
import { isFinal, workerStatuses as statuses } from '../../../src/worker/status.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { workerOf } from '../../support/samples.ts';

const grace = 1000;
/** Connections at work beside that of the monitor. */
const followed = new Set(['elsewhere']);
const absent: CheckResult = { kind: 'absent' };
const unknown: CheckResult = { kind: 'unknown', error: { code: 'plugin-failed', message: 'ask me later' } };

describe('a monitor that misses workers', () => {
  let parts: AgentParts;
  let stop: AbortController;
  /** Ids of each look-up. */
  let checks: number[][];
  let agent: MonitorAgent | undefined;
  let result: (worker: Worker) => CheckResult | undefined;
  let hearsAtOnce: boolean;

  beforeEach(async () => {
    parts = await AgentParts.open();
    stop = new AbortController();
    checks = [];
    result = () => absent;
    hearsAtOnce = false;
  });

  afterEach(async () => {
    stop.abort();
    await parts[Symbol.asyncDispose]();
  });

  /** A monitor of the one connection; a reload of its options makes another one. */
  function start(signal = stop.signal): ObservationSink {
    const { clock, ledger, log, connection, context } = parts;
    let told: ObservationSink | undefined;
    const monitor = {
      observe: async (sink: ObservationSink) => {
        told = sink;
        await new Promise(() => undefined);
      },
      hearsAtOnce: () => hearsAtOnce,
      check: async (workers: readonly Worker[]) => {
        checks.push(workers.map(({ workerId }) => workerId));
        const results = workers.map((worker) => [worker.workerId, result(worker)] as const);
        return new Map(results.filter((one): one is [number, CheckResult] => one[1] !== undefined));
      },
    };
    const writer = new ObservationWriter(ledger, clock, log, parts.events);
    agent = new MonitorAgent(
      monitor,
      connection,
      { ...context, writer },
      {
        missingGrace: grace,
        isFollowed: (connection) => followed.has(connection),
      },
    );
    agent.pass(signal).catch((error: unknown) => {
      told = undefined;
      log.error('the monitor ended', { error });
    });
    if (told === undefined) throw new Error('it was not asked to observe');
    return told;
  }

  function list(sink: ObservationSink, ...shown: number[]): void {
    sink.begin();
    for (const workerId of shown)
      sink.observe({ workerId, status: 'running', nativeStatus: 'Running', observedAt: parts.clock.now() });
    sink.complete();
  }

  it('looks up any number in one go, with one change of the ledger for 500', async () => {
    const ids = await parts.submitted(1200);
    const sink = start();
    list(sink);
    await parts.clock.advance(grace);
    sink.complete();
    await parts.clock.settle();
    expect(checks.map(({ length }) => length)).to.deep.equal([500, 500, 200]);
    expect(parts.changes).to.deep.equal([500, 500, 200]);
    expect(await parts.statuses(ids)).to.deep.equal({ missed: 1200 });
    expect(parts.log.lines.map(({ message, facts }) => [message, facts.workers])).to.deep.equal([
      ['workers are gone from their backend', 500],
      ['workers are gone from their backend', 500],
      ['workers are gone from their backend', 200],
    ]);
  });

  it('ends the absent ones although another is unknown, which waits for its next turn', async () => {
    const ids = await parts.submitted(600);
    result = ({ workerId }) => (workerId === 1 ? unknown : workerId === 2 ? undefined : absent);
    const sink = start();
    list(sink);
    await parts.clock.advance(grace);
    sink.complete();
    await parts.clock.settle();
    expect(await parts.statuses(ids)).to.deep.equal({ missed: 598, submitted: 2 });
    const told = parts.log.lines.filter(
      ({ message }) => message === 'missing workers could not be looked up',
    );
    expect(told.map(({ facts }) => facts.workers)).to.deep.equal([2]);
    await parts.clock.advance(grace - 1);
    sink.complete();
    await parts.clock.settle();
    expect(checks).to.have.length(2);
    result = () => absent;
    await parts.clock.advance(1);
    sink.complete();
    await parts.clock.settle();
    expect(checks.at(-1)).to.deep.equal([1, 2]);
    expect(await parts.statuses(ids)).to.deep.equal({ missed: 600 });
  });

  it('looks up every part although the look-up of another part fails as a whole, each time', async () => {
    const ids = await parts.submitted(700);
    result = ({ workerId }) => {
      if (workerId <= 500) throw new Error('hangs');
      return absent;
    };
    const sink = start();
    list(sink);
    await parts.clock.advance(grace);
    sink.complete();
    await parts.clock.settle();
    expect(await parts.statuses(ids)).to.deep.equal({ submitted: 500, missed: 200 });
  });

  it('looks up by name the workers that a listing lacks, although it shows nothing itself', async () => {
    const [stays = 0, lost = 0] = await parts.submitted(2);
    result = ({ workerId }) =>
      workerId === lost
        ? absent
        : {
            kind: 'observed',
            observation: { workerId, status: 'running', nativeStatus: 'Running', observedAt: 5 },
          };
    const sink = start();
    list(sink, stays, lost);
    agent?.suspect([stays, lost]);
    await parts.clock.advance(grace - 1);
    expect(checks).to.deep.equal([]);
    await parts.clock.advance(1);
    await parts.clock.settle();
    expect(checks).to.deep.equal([[stays, lost]]);
    expect(await parts.statuses([lost])).to.deep.equal({ missed: 1 });
    expect((await parts.store.workers.byId(lost))?.errorCode).to.equal('lost');
    await parts.clock.advance(grace);
    await parts.clock.settle();
    expect(checks).to.have.length(1);
  });

  it('takes a worker that only the database knew since the start for ended unseen', async () => {
    const [seen = 0, unseen = 0] = await parts.submitted(2);
    await parts.ledger.load();
    const sink = start();
    list(sink, seen);
    list(sink);
    await parts.clock.advance(grace);
    sink.complete();
    await parts.clock.settle();
    const codeOf = async (id: number) => (await parts.store.workers.byId(id))?.errorCode;
    expect([await codeOf(seen), await codeOf(unseen)]).to.deep.equal(['lost', 'ended-unseen']);
  });

  it('finds missing the workers that its predecessor saw before a reload', async () => {
    const [stays = 0, lost = 0] = await parts.submitted(2);
    const first = new AbortController();
    const before = start(first.signal);
    list(before, stays, lost);
    first.abort();
    // Meanwhile one of them goes, and nobody looks.
    const after = start();
    list(after, stays);
    await parts.clock.advance(grace);
    after.complete();
    await parts.clock.settle();
    expect(checks).to.deep.equal([[lost]]);
    expect(await parts.statuses([lost])).to.deep.equal({ missed: 1 });
    expect(await parts.statuses([stays])).to.deep.equal({ running: 1 });
  });

  for (const restarted of [false, true])
    it(`leaves the end of a worker that was tried again, and is to end, to the sweeper${restarted ? ', through a restart' : ''}`, async () => {
      const { ledger } = parts;
      const ids = [1, 2, 3, 4, 5];
      await ledger.intend(ids.map((id) => workerOf(id)));
      await ledger.attemptAgain([1, 2, 3]);
      await ledger.change(ids.map((workerId) => ({ workerId, to: 'submitted', source: 'test' })));
      await ledger.requestKill({ ids: [1, 2, 4, 5] }, 'test');
      if (restarted) await ledger.load();
      const sink = start();
      const now = parts.clock.now();
      const over = { status: 'failed', nativeStatus: 'Failed', endTime: now, observedAt: now } as const;
      sink.begin();
      for (const workerId of [1, 4]) sink.observe({ workerId, ...over });
      sink.complete();
      await parts.clock.advance(grace);
      sink.complete();
      await parts.clock.settle();
      expect(await parts.statuses([1, 2])).to.deep.equal({ submitted: 2 });
      expect(await parts.statuses([4, 5])).to.deep.equal({ cancelled: 2 });
      expect(await parts.statuses([3])).to.deep.equal({ missed: 1 });
      await ledger.change([1, 2].map((workerId) => absenceChange(workerId, true, true, now)));
      expect(await parts.statuses([1, 2])).to.deep.equal({ cancelled: 2 });
    });

  it('takes the word on a worker whose own connection is not at work, and does not count it as listed', async () => {
    const [there = 0] = await parts.submitted(1);
    const worker = parts.ledger.live.get(there);
    Object.assign(worker ?? {}, { placement: 'gone' });
    list(start(), there);
    await parts.clock.settle();
    await parts.clock.advance(100);
    await parts.clock.settle();
    expect(worker?.seenIn).to.equal(0);
    expect(await parts.statuses([there])).to.deep.equal({ running: 1 });
  });

  it('hole 5: takes no word of a worker of another connection, whatever state its copy here is in or goes through', async () => {
    const workerIds = await parts.submitted(statuses.length);
    const sink = start();
    for (const id of workerIds) Object.assign(parts.ledger.live.get(id) ?? {}, { placement: 'elsewhere' });
    const now = parts.clock.now();
    sink.begin();
    for (const [at, workerId] of workerIds.entries()) {
      const status = statuses[at] ?? 'running';
      const end = isFinal(status) && { endTime: now };
      sink.observe({ workerId, status, nativeStatus: 'of the copy', observedAt: now, ...end });
    }
    sink.complete();
    for (const workerId of workerIds) sink.gone(workerId);
    await parts.clock.advance(10 * grace);
    sink.complete();
    await parts.clock.advance(10 * grace);
    expect(await parts.statuses(workerIds)).to.deep.equal({ submitted: statuses.length });
    expect(checks).to.deep.equal([]);
    expect(workerIds.map((id) => parts.ledger.live.get(id)?.seenIn)).to.deep.equal(workerIds.map(() => 0));
  });

  describe('and hears that some end now', () => {
    const expectEnd = async (...workerIds: number[]) => {
      parts.events.emit('endsExpected', { workerIds });
      await parts.clock.settle();
    };

    it('looks at these alone, before their turn, and writes what it sees', async () => {
      const [ends = 0] = await parts.submitted(3);
      result = ({ workerId }) => ({
        kind: 'observed',
        observation: {
          workerId,
          status: 'finished',
          nativeStatus: 'done',
          exitCode: 0,
          endTime: 5,
          observedAt: 5,
        },
      });
      start();
      await expectEnd(ends);
      expect(checks).to.deep.equal([[ends]]);
      await parts.clock.advance(100);
      expect(await parts.statuses([1, 2, 3])).to.deep.equal({ finished: 1, submitted: 2 });
      await parts.clock.advance(60_000);
      expect(checks).to.have.length(1);
    });

    it('concludes nothing from a look that does not see it, before its grace is over', async () => {
      const [lost = 0] = await parts.submitted(1);
      start();
      await expectEnd(lost);
      expect(await parts.statuses([lost])).to.deep.equal({ submitted: 1 });
      await parts.clock.advance(grace);
      await parts.clock.settle();
      expect(await parts.statuses([lost])).to.deep.equal({ missed: 1 });
    });

    it('goes on after a look that failed, and tries again', async () => {
      const [ends = 0] = await parts.submitted(1);
      result = () => {
        throw new Error('hangs');
      };
      start();
      await expectEnd(ends);
      await parts.clock.advance(1000);
      expect(checks).to.have.length(2);
      expect(await parts.statuses([ends])).to.deep.equal({ submitted: 1 });
    });

    it('asks nothing where changes reach the monitor at once, nor about workers elsewhere or unknown', async () => {
      const [here = 0, there = 0] = await parts.submitted(2);
      start();
      Object.assign(parts.ledger.live.get(there) ?? {}, { placement: 'elsewhere' });
      await expectEnd(there, 99);
      hearsAtOnce = true;
      await expectEnd(here);
      await parts.clock.advance(60_000);
      expect(checks).to.deep.equal([]);
    });

    it('leaves it to its successor once it has stopped', async () => {
      const [ends = 0] = await parts.submitted(1);
      const first = new AbortController();
      start(first.signal);
      first.abort();
      await parts.clock.settle();
      start();
      await expectEnd(ends);
      expect(checks).to.deep.equal([[ends]]);
    });
  });
});
