import { expect } from 'chai';
import type { QueueSource } from '../../src/agents/queue-runtime.ts';
import { FactoryLimits } from '../../src/agents/submission/factory-limits.ts';
import { Settings } from '../../src/config/settings/settings-schema.ts';
import { LoopSet } from '../../src/daemon/loop-set.ts';
import { makeQueueLoops, type QueueLoops, stuckGrace } from '../../src/daemon/queue-loops.ts';
import { wakeLoops } from '../../src/daemon/wake-loops.ts';
import type { Request } from '../../src/plugins/contracts/index.ts';
import { check } from '../../src/util/schema.ts';
import { AgentParts } from '../support/agent-context.ts';
import { workerOf } from '../support/samples.ts';
import { ScriptedQueue } from '../support/scripted-queue.ts';

/** Between two submission passes, and between two sweeps, ms; a call may take as long as `callTime`. */
const [submitTime, sweepTime, callTime] = [10_000, 20_000, 60_000];

/** Between two passes that were woken, ms. */
const wokenGap = 20;

describe('the loops of a queue', () => {
  let parts: AgentParts;
  let queue: ScriptedQueue;
  let loops: LoopSet;
  let reports: number;
  let report: () => Promise<void>;

  beforeEach(async () => {
    parts = await AgentParts.open();
    await parts.store.ids.raise(1);
    parts.connection.listed();
    parts.connection.completed();
    const { clock, log, events } = parts;
    loops = new LoopSet({ clock, random: () => 0.5, log, events });
    wakeLoops(events, loops);
    reports = 0;
    report = async () => {
      reports++;
    };
  });

  afterEach(async () => {
    parts.giveUp.abort();
    await loops.stop();
    await parts[Symbol.asyncDispose]();
  });

  function make(
    options: Readonly<Record<string, unknown>> = {},
    changes: Partial<AgentParts['context']> = {},
    sources?: readonly QueueSource[],
  ) {
    const settings = check(Settings, {
      master: { pluginTimeout: callTime / 1000 },
      submitter: { sleepTime: submitTime / 1000 },
      sweeper: { sleepTime: sweepTime / 1000 },
    });
    if (!settings.ok) throw new Error(JSON.stringify(settings.problems));
    queue = new ScriptedQueue(parts, options);
    const context = { ...parts.context, ...changes };
    const runtime = sources === undefined ? queue.runtime : { ...queue.runtime, sources };
    return makeQueueLoops({ settings: settings.value, context, loops }, runtime, () => report());
  }

  /** Lets both loops get on until each sleeps until its next pass. */
  async function idle(pauses: readonly number[] = [submitTime, sweepTime]): Promise<void> {
    const isIdle = () => pauses.every((ms) => parts.clock.sleeping.includes(ms));
    while (!isIdle() || parts.clock.sleeping.includes(callTime))
      await parts.clock.advance(parts.clock.sleeping.includes(wokenGap) ? wokenGap : 0);
  }
  async function until(line: string): Promise<void> {
    while (!queue.journal.includes(line)) await parts.clock.settle();
  }
  async function begin(options?: Readonly<Record<string, unknown>>): Promise<QueueLoops> {
    const made = make(options);
    loops.start();
    await idle();
    return made;
  }
  const end = (workerId: number) =>
    parts.ledger.change([{ workerId, to: 'finished', source: 'test', endTime: parts.clock.now() }]);
  const submitted = () => queue.taken().filter((line) => line.startsWith('submit '));

  it('do nothing before they are started, and then pass at once', async () => {
    make();
    await parts.clock.advance(50_000);
    expect(queue.taken()).to.deep.equal([]);
    loops.start();
    await idle();
    expect(submitted()).to.deep.equal(['submit 1 2']);
    expect(reports).to.equal(1);
  });

  it('submit again when a worker ends, without waiting for their pause', async () => {
    await begin();
    queue.taken();
    await end(1);
    await idle();
    expect(submitted()).to.deep.equal(['submit 3']);
  });

  it('submit for what ended unheard of in their next pass', async () => {
    await begin();
    queue.taken();
    queue.runtime.connected.get(parts.placement)?.connection.troubled({ code: 'x', message: 'silent' });
    await end(1);
    await idle();
    expect(submitted()).to.deep.equal([]);
    parts.connection.completed();
    await parts.clock.advance(submitTime);
    await idle();
    expect(submitted()).to.deep.equal(['submit 3']);
  });

  it('submit when their connection opens, and when a credential gets better', async () => {
    parts.connection.troubled({ code: 'x', message: 'silent' });
    await begin();
    expect(submitted()).to.deep.equal([]);
    parts.connection.completed();
    parts.events.emit('connectionOpened', { connection: parts.placement });
    await idle();
    expect(submitted()).to.deep.equal(['submit 1 2']);
    parts.events.emit('credentialsImproved', { manager: 'm' });
    await idle();
    expect(queue.taken()).to.deep.equal(['demand', 'look']);
  });

  it('pass once more after a pass during which an event came', async () => {
    queue = new ScriptedQueue(parts);
    make();
    let release: () => void = () => undefined;
    queue.duringSubmit = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    loops.start();
    await until('submit 1 2');
    parts.events.emit('credentialsImproved', { manager: 'm' });
    queue.duringSubmit = async () => undefined;
    release();
    await idle();
    expect(queue.taken().filter((line) => line === 'demand')).to.have.length(2);
  });

  it('end workers as soon as an operator asks for it', async () => {
    await begin();
    queue.taken();
    await parts.ledger.requestKill({ ids: [2] }, 'operator');
    await idle();
    expect(queue.taken()).to.include.members(['kill 2', '2 cancelled', 'submit 3']);
  });

  it('wait longer after each failure, which no event shortens, and as usual when all is well again', async () => {
    make();
    queue.preflight = async () => {
      throw new Error('no route to host');
    };
    loops.start();
    for (const pause of [1000, 2000, 4000]) {
      await idle([pause, sweepTime]);
      parts.events.emit('credentialsImproved', { manager: 'm' });
      await parts.clock.advance(pause - 1);
      expect(queue.taken().filter((line) => line === 'demand')).to.deep.equal(['demand']);
      await parts.clock.advance(1);
    }
    await idle([8000]);
    expect(reports).to.equal(4);
    expect(loops.health.find(({ name }) => name === 'submit Q')?.failures).to.equal(4);
    queue.demand = async () => ({ groups: [], reasons: [] });
    await parts.clock.advance(8000);
    await idle();
    expect(loops.health.find(({ name }) => name === 'submit Q')?.failures).to.equal(0);
  });

  it('submit what a source asks for as soon as it wakes them, without any pause', async () => {
    let wants: Request[] = [];
    const source = { wanted: async () => ({ requests: wants, groups: [], reasons: [] }) };
    make({}, {}, [{ kind: 'toy', source, own: false, options: {} }]);
    loops.start();
    await idle();
    const asked = parts.clock.monotonic();
    wants = [{ origin: { uid: 'job', index: 0 } }];
    loops.wake('submit', 'Q');
    while (!queue.journal.includes('submit 1')) await parts.clock.settle();
    expect(parts.clock.monotonic() - asked).to.equal(0);
    await idle();
    expect(submitted()).to.deep.equal(['submit 1']);
  });

  it('submit what a source asks for during a pass in the next one, without any pause', async () => {
    let wants: Request[] = [];
    const source = { wanted: async () => ({ requests: wants, groups: [], reasons: [] }) };
    make({}, {}, [{ kind: 'toy', source, own: false, options: {} }]);
    wants = [{ origin: { uid: 'job', index: 0 } }];
    queue.duringSubmit = async () => {
      wants = [...wants.slice(0, 1), { origin: { uid: 'job', index: 1 } }];
      loops.wake('submit', 'Q');
    };
    loops.start();
    while (!queue.journal.includes('submit 2')) await parts.clock.settle();
    expect(parts.clock.monotonic()).to.equal(0);
    expect(submitted()).to.deep.equal(['submit 1', 'submit 2']);
  });

  it('count a report that cannot be written as a failed pass', async () => {
    report = async () => {
      throw new Error('the disk is full');
    };
    make();
    loops.start();
    await idle([1000]);
    expect(loops.health.find(({ name }) => name === 'submit Q')?.lastError?.message).to.equal(
      'the disk is full',
    );
  });

  it('pass early where a rate holds workers back, and take up what it lets through', async () => {
    const factoryLimits = new FactoryLimits(1, 1, parts.clock);
    await parts.clock.advance(1000);
    make({}, { factoryLimits });
    loops.start();
    await idle([1000, sweepTime]);
    expect(submitted()).to.deep.equal(['submit 1']);
    await parts.clock.advance(1000);
    await idle();
    expect(submitted()).to.deep.equal(['submit 2']);
  });

  it('are not stuck as long as calls come back, however long a pass lasts, and are stuck without', async () => {
    make();
    const slowly = async () => {
      await parts.clock.sleep(callTime - 1000);
      parts.connection.completed();
    };
    queue.preflight = async () => {
      await slowly();
      return { problems: [] };
    };
    queue.duringSubmit = slowly;
    let release: () => void = () => undefined;
    report = () =>
      new Promise((resolve) => {
        queue.journal.push('report');
        release = resolve;
      });
    const stuck = () => loops.health.find(({ name }) => name === 'submit Q')?.stuckFor;
    loops.start();
    for (const line of ['preflight', 'submit 1 2']) {
      await until(line);
      await parts.clock.advance(callTime - 1000);
    }
    await until('report');
    await parts.clock.advance(callTime + stuckGrace);
    expect(stuck()).to.equal(undefined);
    await parts.clock.advance(1);
    expect(stuck()).to.equal(callTime + stuckGrace + 1);
    release();
    await idle();
    expect(stuck()).to.equal(undefined);
  });

  describe('that are replaced', () => {
    it('end their submission before the next configuration begins its own', async () => {
      const before = make();
      let release: () => void = () => undefined;
      queue.duringSubmit = () =>
        new Promise((resolve) => {
          release = resolve;
        });
      loops.start();
      await until('submit 1 2');
      const old = queue;
      const after = make({ maxWorkers: 3, nQueueLimitWorker: 3 });
      loops.replace('queue Q', before.all, after.all);
      for (let turn = 0; turn < 10; turn++) await parts.clock.settle();
      expect(queue.taken()).to.not.include('demand');
      release();
      await idle();
      expect(old.taken()).to.include('1 submitted');
      // The two of the former configuration count.
      expect(submitted()).to.deep.equal(['submit 3']);
    });
  });

  describe('that stop', () => {
    const never = () => new Promise<never>(() => undefined);

    for (const [phase, line, hang] of [
      ['settle open intents', 'find 7', () => (queue.duringFind = never)],
      ['ask the demand', 'demand', () => (queue.demand = never)],
      ['wait for the preflight', 'preflight', () => (queue.preflight = never)],
      ['submit', 'submit 8 9', () => (queue.duringSubmit = never)],
      ['end workers', 'kill 6', () => (queue.duringKill = never)],
    ] as const) {
      it(`come to their end once their calls are given up, while they ${phase}`, async () => {
        make({ maxWorkers: 4, nQueueLimitWorker: 4 });
        await parts.store.ids.raise(8);
        await parts.ledger.intend([6, 7].map((id) => workerOf(id, { placement: parts.placement })));
        await parts.ledger.change([
          { workerId: 6, to: 'running', source: 'test', handle: '{"batchID":"6"}' },
        ]);
        if (line === 'kill 6') await parts.ledger.requestKill({ ids: [6] }, 'operator');
        if (line !== 'find 7') queue.find = () => ({ kind: 'found', handle: { batchID: '7' } });
        hang();
        loops.start();
        await until(line);
        let stopped = false;
        const stopping = loops.stop().then(() => {
          stopped = true;
        });
        for (let turn = 0; turn < 10; turn++) await parts.clock.settle();
        expect(stopped).to.equal(false);
        parts.giveUp.abort();
        await stopping;
        // Each worker whose intent was recorded is still there: open, or as it was.
        expect(parts.ledger.live.get(6)?.status).to.equal('running');
        for (const worker of parts.ledger.live.all())
          expect(parts.ledger.inFlight.has(worker.workerId)).to.equal(false);
      });
    }
  });
});
