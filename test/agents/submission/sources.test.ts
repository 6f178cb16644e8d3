import { expect } from 'chai';
import { PluginCalls } from '../../../src/agents/plugin-calls.ts';
import type { QueueSource } from '../../../src/agents/queue-runtime.ts';
import { mostRequests } from '../../../src/agents/submission/source-asker.ts';
import { SubmitterAgent } from '../../../src/agents/submission/submitter-agent.ts';
import type { Request, RequestSeries, Source, WorkerToStart } from '../../../src/plugins/contracts/index.ts';
import type { OriginKey } from '../../../src/worker/news.ts';
import type { Payload, PayloadPart } from '../../../src/worker/payload.ts';
import type { Reason } from '../../../src/worker/reason.ts';
import { type Clock, givingWayTogether, nextTurn } from '../../../src/util/clock.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { namedWorker } from '../../support/named-workers.ts';
import { requirements } from '../../support/samples.ts';
import { ScriptedQueue } from '../../support/scripted-queue.ts';

/** Requests of so many workers of one uid. */
function requests(count: number, changes: Partial<Request> = {}, uid = 'job'): Request[] {
  return Array.from({ length: count }, (_, index) => ({ origin: { uid, index }, ...changes }));
}

/** A source that asks for what a test says, and counts how often it was asked. */
class TestSource implements Source {
  asked = 0;
  wants: (signal: AbortSignal) => unknown;

  constructor(wants: (signal: AbortSignal) => unknown) {
    this.wants = wants;
  }

  async wanted(_: unknown, signal: AbortSignal) {
    this.asked++;
    return (await this.wants(signal)) as Awaited<ReturnType<Source['wanted']>>;
  }
}

const wanting = (some: readonly unknown[]) =>
  new TestSource(() => ({ requests: some, groups: [], reasons: [] }));
const queueSource = (kind: string, source: Source, own = false): QueueSource => ({
  kind,
  source,
  own,
  options: {},
});

describe('sources of a queue', () => {
  let parts: AgentParts;
  let queue: ScriptedQueue;
  let reports: (readonly Reason[])[];
  /** Origins that a source was to hear of, because they have had their worker. */
  let known: OriginKey[];
  let sent: WorkerToStart[];

  beforeEach(async () => {
    parts = await AgentParts.open();
    parts.connection.listed();
    parts.connection.completed();
    await parts.store.ids.raise(1);
    reports = [];
    known = [];
    sent = [];
    parts.events.on('originsKnown', ({ origins }) => {
      known.push(...origins);
    });
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  function agentOf(
    sources: readonly QueueSource[],
    options: Readonly<Record<string, unknown>> = {},
    {
      payload,
      name = 'Q',
      clock = parts.clock,
      giveWay = parts.context.giveWay,
    }: {
      payload?: readonly PayloadPart[];
      name?: string;
      clock?: Clock;
      giveWay?: () => Promise<void>;
    } = {},
  ): SubmitterAgent {
    queue = new ScriptedQueue(parts, { maxWorkers: 100, nQueueLimitWorker: 100, ...options }, { name });
    queue.submit = (worker) => {
      sent.push(worker);
      return { kind: 'accepted', handle: { batchID: `b${worker.workerId}` } };
    };
    const runtime = { ...queue.runtime, sources, ...(payload && { payload }) };
    const report = async (reasons: readonly Reason[]) => {
      reports.push(reasons);
    };
    const blackHole = { lifetime: 0, workers: 20, pause: 1 };
    const { giveUp } = parts;
    const calls = new PluginCalls({ clock: parts.clock, pluginTimeout: 5000, giveUp: giveUp.signal });
    return new SubmitterAgent(
      runtime,
      { ...parts.context, calls, clock, giveWay },
      {
        maxNewWorkers: 100_000,
        cycle: 9000,
        blackHole,
        report,
      },
    );
  }
  it('hear what Harvester reads of the submitter without its plugin', async () => {
    const heard: unknown[] = [];
    const source: Source = {
      wanted: async ({ noPilotsWhenNoActiveJobs, wholeSlots }) => {
        heard.push({ noPilotsWhenNoActiveJobs, wholeSlots });
        return { requests: [], groups: [], reasons: [] };
      },
    };
    const worker = { noPilotsWhenNoActiveJobs: true, wholeSlots: true };
    const agent = agentOf([queueSource('panda', source)]);
    Object.assign(queue.runtime.config, { worker });
    await agent.pass();
    expect(heard).to.deep.equal([worker]);
  });

  const codes = () => reports.at(-1)?.map(({ code }) => code);
  const messages = () =>
    reports
      .at(-1)
      ?.map(({ message }) => message)
      .join('\n');
  const origins = () => sent.map(({ origin: { kind, uid, index } }) => `${kind} ${uid} ${index}`);
  const whyWaits = (index: number, uid = 'job') => parts.waiting.reason('Q', 'toy', { uid, index })?.code;

  it('give each named worker its origin, group, payload and needs', async () => {
    const payload = { values: { image: 'a' } };
    const own = { requirements: { nCore: 8 }, groupId: 'g', payload };
    await agentOf([queueSource('toy', wanting(requests(2, own)))]).pass();
    expect(origins()).to.deep.equal(['toy job 0', 'toy job 1']);
    const [one, two] = sent;
    expect(one).to.include({ groupId: 'g', payload, payloadId: '1' });
    expect(two?.payloadId, 'one payload object is stored once').to.equal('1');
    expect(one?.requirements).to.include({ nCore: 8, resourceType: 'MCORE', minRamCount: 2000 });
    const [record] = await parts.store.workers.byIds([1]);
    expect(record?.origin).to.deep.equal({ kind: 'toy', uid: 'job', index: 0 });
  });

  it('are served in their order, and each its requests before its groups', async () => {
    const groups = [{ requirements, count: Infinity }];
    const both = new TestSource(() => ({ requests: requests(1, {}, 'own'), groups, reasons: [] }));
    const sources = [queueSource('first', wanting(requests(2))), queueSource('fill', both, true)];
    await agentOf(sources, { maxWorkers: 5 }).pass();
    expect(origins()).to.deep.equal([
      ...['first job 0', 'first job 1', 'fill own 0'],
      ...['fill Q 4', 'fill Q 5'],
    ]);
  });

  it('have their requests served beside a demand of their own queue that asks for nothing', async () => {
    const none = new TestSource(() => ({
      requests: [],
      groups: [],
      reasons: [{ code: 'demand-none', message: 'm' }],
    }));
    const sources = [queueSource('toy', wanting(requests(1))), queueSource('none', none, true)];
    await agentOf(sources).pass();
    expect(origins()).to.deep.equal(['toy job 0']);
    expect(codes()).to.deep.equal(['demand-none']);
  });

  it('get no worker for what a source asked for that was made anew during the pass: the next may ask for the same', async () => {
    const sources = [queueSource('toy', wanting(requests(2, {}, 'former')), true)];
    sources.push(queueSource('other', wanting(requests(1))));
    const agent = agentOf(sources);
    queue.preflight = async () => {
      sources[0] = queueSource('toy', wanting(requests(2, {}, 'next')), true);
      return { problems: [] };
    };
    await agent.pass();
    expect(origins()).to.deep.equal(['other job 0']);
    sources[0] = queueSource('toy', wanting(requests(2, {}, 'next')), true);
    queue.preflight = async () => ({ problems: [] });
    await agent.pass();
    expect(origins()).to.deep.equal(['other job 0', 'toy next 0', 'toy next 1']);
  });

  it('get no more than the limits let through, and each request that waits has its reason', async () => {
    const agent = agentOf([queueSource('toy', wanting(requests(5)))], { maxWorkers: 2 });
    await agent.pass();
    expect(origins()).to.have.length(2);
    expect([0, 1, 2, 3, 4].map((index) => whyWaits(index))).to.deep.equal([
      ...[undefined, undefined],
      ...['max-workers', 'max-workers', 'max-workers'],
    ]);
    expect(parts.waiting.counts).to.deep.equal([{ queue: 'Q', source: 'toy', requests: 3 }]);
  });

  it('have requests of other needs cut by the limits of these alone', async () => {
    const some = [...requests(2, { requirements: { nCore: 8 } }), ...requests(2, {}, 'small')];
    const agent = agentOf([queueSource('toy', wanting(some))], { nQueueLimitWorkerCores: 10 });
    await agent.pass();
    expect(origins()).to.deep.equal(['toy job 0', 'toy small 0', 'toy small 1']);
    expect(whyWaits(1)).to.equal('queue-limit-cores');
  });

  it('keep the reason of a preflight for the requests that it stops', async () => {
    const agent = agentOf([queueSource('toy', wanting(requests(1)))]);
    queue.preflight = async () => ({ problems: [{ code: 'no-rights', message: 'm' }] });
    await agent.pass();
    expect(whyWaits(0)).to.equal('no-rights');
  });

  it('give the reason of a pass that failed to all requests that wait', async () => {
    const agent = agentOf([queueSource('toy', wanting(requests(1)))]);
    queue.preflight = async () => {
      throw new Error('no route');
    };
    await agent.pass().catch(() => undefined);
    expect(whyWaits(0)).to.equal('plugin-failed');
  });

  it('keep the intent of a named worker when an operator pauses the queue after it was recorded', async () => {
    const report = { queue: 'Q', queueStatus: 'online', limits: {}, reasons: [], reportTime: 1 };
    await parts.store.queues.report(report);
    const agent = agentOf([queueSource('toy', wanting(requests(1)))]);
    const pause = { mode: 'paused', reason: 'test', since: 1 } as const;
    const intend = parts.ledger.intend.bind(parts.ledger);
    parts.ledger.intend = async (workers) => {
      const recorded = await intend(workers);
      await parts.store.queues.setControl('Q', pause);
      return recorded;
    };
    await agent.pass();
    expect([sent, await parts.statuses([1])]).to.deep.equal([[], { pending: 1 }]);
    await parts.store.queues.setControl('Q', null);
    await agent.pass();
    expect(origins()).to.deep.equal(['toy job 0']);
  });

  describe('that have thousands of requests of equal needs, in series', () => {
    /** How many requests were made, by `uid`. */
    let made: Map<string, number>;
    beforeEach(() => {
      made = new Map();
    });
    const seriesOf = (uid: string, count: number, changes: Partial<Request> = {}): RequestSeries => ({
      count,
      requests: {
        *[Symbol.iterator]() {
          for (let index = 0; index < count; index++) {
            made.set(uid, (made.get(uid) ?? 0) + 1);
            yield { origin: { uid, index }, ...changes };
          }
        },
      },
    });
    const inSeries = (series: () => readonly RequestSeries[]) =>
      new TestSource(() => ({ requests: [], series: series(), groups: [], reasons: [] }));
    const typed = (uid: string, count: number, resourceType: string) =>
      seriesOf(uid, count, { requirements: { resourceType } });
    const waiting = () => parts.waiting.counts.map(({ requests: some }) => some);

    it('make no more of them than there may be room for, and one that says what holds it back', async () => {
      const source = inSeries(() => [seriesOf('a', 20_000), seriesOf('b', 20_000)]);
      const agent = agentOf([queueSource('panda', source)], { maxWorkers: 3 });
      await agent.pass();
      expect(origins()).to.deep.equal(['panda a 0', 'panda a 1', 'panda a 2']);
      expect([...made]).to.deep.equal([
        ['a', 4],
        ['b', 4],
      ]);
      expect([codes(), waiting()]).to.deep.equal([['max-workers'], [39_997]]);
      made.clear();
      await agent.pass();
      expect([...made], 'three are known, and the queue is full').to.deep.equal([
        ['a', 4],
        ['b', 1],
      ]);
      expect(codes()).to.deep.equal(['max-workers']);
      expect(origins()).to.have.length(3);
    });

    it('of a hundred kinds make a bounded number beyond the room', async () => {
      const all = () => Array.from({ length: 100 }, (_, at) => seriesOf(`kind${at}`, 200));
      await agentOf([queueSource('panda', inSeries(all))], { maxWorkers: 50 }).pass();
      expect(origins()).to.have.length(50);
      const sum = [...made.values()].reduce((all, one) => all + one, 0);
      expect(made.size).to.equal(100);
      expect(sum).to.be.within(1050, 1150);
    });

    it('are served in their order, and one kind that a limit holds back leaves its room to the next', async () => {
      const source = inSeries(() => [typed('s', 500, 'SCORE'), typed('m', 500, 'MCORE')]);
      const own = { maxWorkers: 100, nQueueLimitWorkerRatio: 10, nQueueLimitWorkerMin: 6 };
      await agentOf([queueSource('panda', source)], own).pass();
      expect(origins()).to.deep.equal(
        ['s', 'm'].flatMap((uid) => [0, 1, 2].map((index) => `panda ${uid} ${index}`)),
      );
    });

    it('get further ones though the source has not heard of the first', async () => {
      const source = inSeries(() => [seriesOf('a', 50)]);
      const agent = agentOf([queueSource('panda', source)], { maxNewWorkersPerCycle: 5 });
      for (let pass = 0; pass < 3; pass++) {
        await agent.pass();
        await parts.clock.advance(10_000);
      }
      expect(origins()).to.deep.equal(Array.from({ length: 15 }, (_, index) => `panda a ${index}`));
    });

    it('have their needs checked once', async () => {
      let checks = 0;
      const needs = new Proxy(
        { nCore: 1 },
        {
          ownKeys: (of) => {
            checks++;
            return Reflect.ownKeys(of);
          },
        },
      );
      const source = inSeries(() => [seriesOf('a', 500, { requirements: needs })]);
      const agent = agentOf([queueSource('panda', source)], { maxWorkers: 80, nQueueLimitWorker: 80 });
      await agent.pass();
      expect(origins()).to.have.length(80);
      // A check, and the needs of one worker.
      expect(checks).to.be.at.most(3);
    });

    it('and go wrong while they are made, cost their own source alone', async () => {
      const bad = {
        count: 5,
        requests: {
          *[Symbol.iterator](): Generator<Request> {
            throw new Error('no memory');
          },
        },
      };
      for (const series of [[bad], 'many', [{ count: -1, requests: [] }], [{ count: 1, requests: 7 }]]) {
        sent = [];
        const source = new TestSource(() => ({ requests: [], series, groups: [], reasons: [] }));
        const good = queueSource('good', wanting(requests(1, {}, `fine${JSON.stringify(series)}`)));
        await agentOf([queueSource('panda', source), good]).pass();
        expect(origins()).to.have.length(1);
        expect(codes()).to.deep.equal(['source-failed']);
      }
    });

    it('of which the first are refused for their payload: those behind them are made', async () => {
      const isWrong = (index: number) => index < 10;
      const payloadOf = (index: number): Payload => ({ argv: [isWrong(index) ? '' : 'true'] });
      const series: RequestSeries = {
        count: 50,
        requests: requests(50).map((one) => ({ ...one, payload: payloadOf(one.origin.index) })),
      };
      const agent = agentOf(
        [
          queueSource(
            'toy',
            inSeries(() => [series]),
          ),
        ],
        { maxWorkers: 3 },
      );
      let passes = 1;
      while ((await agent.pass()) === 0 && passes < 20) passes++;
      expect(origins()).to.deep.equal([10, 11, 12].map((index) => `toy job ${index}`));
      expect(passes).to.be.lessThan(10);
      expect(whyWaits(0)).to.equal('payload-wrong');
    });

    it('and are all refused, cost a pass a bounded number of looks', async () => {
      const series = seriesOf('a', 50_000, { requirements: { nCore: 0 } });
      await agentOf([
        queueSource(
          'toy',
          inSeries(() => [series]),
        ),
      ]).pass();
      expect(made.get('a')).to.be.at.most(mostRequests);
      expect(codes()).to.deep.equal(['request-refused']);
    });

    for (const room of [0, 1])
      it(`of which hundreds have had their workers, as after a restart, take few passes without a pause at room for ${room}`, async () => {
        const count = 300;
        const before = Array.from({ length: count }, (_, index) =>
          namedWorker(1000 + index, 'a', {
            placement: parts.placement,
            origin: { kind: 'toy', uid: 'a', index },
          }),
        );
        await parts.ledger.intend(before);
        await parts.ledger.change(
          before.map(({ workerId }) => ({ workerId, to: 'submitted' as const, source: 'test' })),
        );
        const source = inSeries(() => [seriesOf('a', 400)]);
        const agent = agentOf([queueSource('toy', source)], {
          maxWorkers: count + room,
          nQueueLimitWorker: 1000,
        });
        let passes = 1;
        while ((await agent.pass()) === 0 && passes < 400) passes++;
        expect(passes).to.be.at.most(room === 0 ? 1 : 12);
        expect(origins()).to.deep.equal(room === 0 ? [] : [`toy a ${count}`]);
        expect(parts.waiting.counts.length).to.equal(1);
      });

    it('let others have their turn between the passes of many queues that begin at one moment', async () => {
      // Each pass is short: all of them together are not.
      let time = 0;
      const giveWay = givingWayTogether({ monotonic: () => (time += 15) });
      const agents = Array.from({ length: 20 }, (_, at) =>
        agentOf(
          [
            queueSource(
              'panda',
              inSeries(() => [seriesOf(`q${at}`, 5)]),
            ),
          ],
          {},
          { name: `Q${at}`, giveWay },
        ),
      );
      let turns = 0;
      let isOver = false;
      const others = async () => {
        for (; !isOver; turns++) await nextTurn();
      };
      const busy = others();
      await Promise.all(agents.map((agent) => agent.pass()));
      isOver = true;
      await busy;
      expect(turns, 'turns of others').to.be.greaterThan(10);
    });
  });

  describe('whose payloads follow', () => {
    const payloadOf = ({ origin: { index } }: Request): Payload => ({ values: { number: String(index) } });
    /** It brings payloads as a test says, and writes down what it was asked for. */
    function bringing(some: readonly Request[], bring: (asked: readonly Request[]) => unknown) {
      const brought: (readonly number[])[] = [];
      const source = Object.assign(wanting(some), {
        payloads: async (asked: readonly Request[]) => {
          brought.push(asked.map(({ origin }) => origin.index));
          return bring(asked) as ReadonlyMap<Request, Payload>;
        },
      });
      return { source, brought };
    }
    const follow = (count: number) => requests(count, { payloadFollows: true });
    const all = (asked: readonly Request[]) => new Map(asked.map((one) => [one, payloadOf(one)]));

    it('have them brought for as many workers as may be made, and no more', async () => {
      const { source, brought } = bringing(follow(5), all);
      const agent = agentOf([queueSource('toy', source)], { maxWorkers: 3 });
      queue.preflight = async () => ({
        problems: [],
        room: { workers: 2, reason: { code: 'room', message: 'm' } },
      });
      await agent.pass();
      expect(brought).to.deep.equal([[0, 1]]);
      expect(sent.map(({ payload }) => payload?.values?.['number'])).to.deep.equal(['0', '1']);
      expect([1, 2, 3].map((index) => whyWaits(index))).to.deep.equal([undefined, 'room', 'max-workers']);
      expect(sent.map(({ payloadId }) => payloadId)).to.deep.equal(['1', '2']);
    });

    it('get no worker without one: what was left comes in a pass that is due at once', async () => {
      const { source } = bringing(follow(3), (asked) => all(asked.slice(0, 1)));
      const agent = agentOf([queueSource('toy', source)]);
      expect(await agent.pass()).to.equal(0);
      expect(origins()).to.deep.equal(['toy job 0']);
      await agent.pass();
      await agent.pass();
      expect(origins()).to.deep.equal(['toy job 0', 'toy job 1', 'toy job 2']);
    });

    it('and of which none comes, wait for the next pass in its time', async () => {
      const { source } = bringing(follow(3), () => new Map());
      const agent = agentOf([queueSource('toy', source)]);
      expect(await agent.pass()).to.equal(undefined);
      expect(origins()).to.deep.equal([]);
    });

    it('are refused for a payload that no worker can have, and not asked for it again', async () => {
      const wrong = { files: [{ name: '../up', mode: 0o644, content: '' }] };
      const some = follow(2);
      const { source, brought } = bringing(
        some,
        (asked) => new Map(asked.map((one) => [one, one === some[0] ? wrong : payloadOf(one)])),
      );
      const agent = agentOf([queueSource('toy', source)], { maxWorkers: 1 });
      expect(await agent.pass()).to.equal(0);
      await agent.pass();
      expect(brought).to.deep.equal([[0], [1]]);
      expect(origins()).to.deep.equal(['toy job 1']);
      expect(whyWaits(0)).to.equal('payload-wrong');
      expect(codes()).to.include('payload-wrong');
    });

    it('are refused again and again without a pass that is due at once, though they are asked for anew each time', async () => {
      const wrong = { files: [{ name: '../up', mode: 0o644, content: '' }] };
      const { source } = bringing([], (asked) => new Map(asked.map((one) => [one, wrong])));
      source.wants = () => ({ requests: follow(1), groups: [], reasons: [] });
      const agent = agentOf([queueSource('toy', source)]);
      const due = [await agent.pass(), await agent.pass(), await agent.pass()];
      expect(due).to.deep.equal([0, undefined, undefined]);
    });

    it('leave their room to others whose payloads are looked at first: none that was not is sent', async () => {
      const [wrong, good]: readonly Payload[] = [{ argv: [''] }, { argv: ['true'] }];
      const behind = requests(8).slice(2);
      const own = behind.map((one, at) => ({ ...one, payload: at < 2 ? wrong : good }));
      const { source } = bringing([...follow(2), ...own] as readonly Request[], () => new Map());
      const agent = agentOf([queueSource('toy', source)]);
      queue.preflight = async () => ({
        problems: [],
        room: { workers: 2, reason: { code: 'room', message: 'm' } },
      });
      await agent.pass();
      expect(origins()).to.deep.equal(['toy job 4', 'toy job 5']);
      expect([2, 3].map((index) => whyWaits(index))).to.deep.equal(['payload-wrong', 'payload-wrong']);
    });

    it('and that fail to bring them are not asked for a while, and the others are served', async () => {
      const { source, brought } = bringing(follow(1), () => {
        throw new Error('no route');
      });
      const agent = agentOf([queueSource('toy', source), queueSource('other', wanting(requests(1)))]);
      await agent.pass();
      await agent.pass();
      expect(brought).to.have.length(1);
      expect(origins()).to.deep.equal(['other job 0']);
      expect(codes()).to.include('source-failed');
    });

    it('and have no way to bring them, get no worker', async () => {
      await agentOf([queueSource('toy', wanting(follow(1)))]).pass();
      expect(origins()).to.deep.equal([]);
      expect(messages()).to.contain('it has no method payloads');
    });
  });

  describe('that ask again for what they have got', () => {
    it('get no second worker in a later pass, and the database is not asked for it again', async () => {
      const asked: number[] = [];
      const { origins: store } = parts.store;
      const ask = store.known.bind(store);
      store.known = (kind, some) => {
        asked.push(some.length);
        return ask(kind, some);
      };
      const agent = agentOf([queueSource('toy', wanting(requests(2)))]);
      for (let pass = 0; pass < 3; pass++) await agent.pass();
      expect(origins()).to.have.length(2);
      expect(asked, 'one question in the first pass').to.deep.equal([2]);
      expect(known, 'their own news tell it').to.deep.equal([]);
    });

    it('hear of it once after a restart', async () => {
      await agentOf([queueSource('toy', wanting(requests(2)))]).pass();
      const restarted = agentOf([queueSource('toy', wanting(requests(3)))]);
      await restarted.pass();
      await restarted.pass();
      expect(origins()).to.deep.equal(['toy job 0', 'toy job 1', 'toy job 2']);
      expect(known.map(({ index }) => index)).to.deep.equal([0, 1]);
    });

    it('get one worker when two queues serve the same origin at once', async () => {
      const source = wanting(requests(3));
      const one = agentOf([queueSource('toy', source)]);
      const other = agentOf([queueSource('toy', source)], {}, { name: 'R' });
      await Promise.all([one.pass(), other.pass()]);
      await Promise.all([one.pass(), other.pass()]);
      const rows = await parts.store.workers.list({});
      expect(rows.map(({ origin }) => origin.index).sort()).to.deep.equal([0, 1, 2]);
      expect(known).to.have.length(3);
    });

    it('have an intent that conflicts dropped and another request served at once', async () => {
      const agent = agentOf([queueSource('toy', wanting(requests(2)))], { maxWorkers: 1 });
      // Withdrawn between the question and the intent.
      queue.preflight = async () => {
        await parts.ledger.endOrigins('toy', [{ uid: 'job', index: 0 }], 'withdrawn');
        return { problems: [] };
      };
      expect(await agent.pass()).to.equal(0);
      expect(known).to.deep.equal([{ uid: 'job', index: 0 }]);
      expect(parts.ledger.inFlight.has(1)).to.equal(false);
      await agent.pass();
      expect(origins()).to.deep.equal(['toy job 1']);
    });
  });

  describe('and a backend that rejects their workers', () => {
    const missing = { code: 'payload-value-missing', message: 'no image' };

    it('for good, for their payload: neither the pass fails nor do later workers get fewer turns', async () => {
      const source = wanting(requests(20));
      const agent = agentOf([queueSource('toy', source)]);
      queue.submit = () => ({ kind: 'rejected', permanent: true, error: missing });
      await agent.pass();
      expect((await parts.store.workers.byId(1))?.status).to.equal('missed');
      source.wants = () => ({ requests: requests(20, {}, 'good'), groups: [], reasons: [] });
      queue.submit = (worker) => {
        sent.push(worker);
        return { kind: 'accepted', handle: { batchID: 'b' } };
      };
      await agent.pass();
      expect(sent).to.have.length(20);
    });

    describe('for now', () => {
      const full = { code: 'no-free-slot', message: 'taken' };
      const passes = async (agent: SubmitterAgent, count: number) => {
        for (let pass = 0; pass < count; pass++) await agent.pass().catch(() => undefined);
      };

      it('try them again, however often, since their origins get no other worker', async () => {
        const agent = agentOf([queueSource('toy', wanting(requests(1)))], { maxSubmissionAttempts: 2 });
        queue.submit = () => ({ kind: 'rejected', permanent: false, error: full });
        await passes(agent, 5);
        expect(await parts.store.workers.byId(1)).to.include({ status: 'pending', errorCode: full.code });
        queue.submit = () => ({ kind: 'accepted', handle: { batchID: 'b1' } });
        await passes(agent, 1);
        expect(await parts.statuses([1])).to.deep.equal({ submitted: 1 });
      });

      it('give them up when their submissions bring no answer too often', async () => {
        const agent = agentOf([queueSource('toy', wanting(requests(1)))], { maxSubmissionAttempts: 2 });
        queue.submit = () => ({ kind: 'unknown', error: full });
        await passes(agent, 2);
        expect(await parts.statuses([1])).to.deep.equal({ pending: 1 });
        await passes(agent, 1);
        expect(await parts.statuses([1])).to.deep.equal({ missed: 1 });
      });

      it('send those that the daemon never sent, also where there is a single attempt', async () => {
        const agent = agentOf([queueSource('toy', wanting([]))], { maxSubmissionAttempts: 1 });
        await parts.ledger.intend([namedWorker(7, 'job', { placement: parts.placement })]);
        await passes(agent, 1);
        expect(origins()).to.deep.equal(['toy job 0']);
      });
    });

    it('for good, although they were counted: the pass fails, since the next one would make them again', async () => {
      const groups = [{ requirements, count: 3 }];
      const agent = agentOf([
        queueSource('fill', new TestSource(() => ({ requests: [], groups, reasons: [] })), true),
      ]);
      queue.submit = () => ({ kind: 'rejected', permanent: true, error: missing });
      const failure = await agent.pass().catch((error: unknown) => error);
      expect(failure).to.have.property('code', 'submit-failed');
    });
  });

  describe('that go wrong', () => {
    const good = () => queueSource('good', wanting(requests(1, {}, 'fine')));

    it('throw: others of the queue are served, and the reason says so', async () => {
      const bad = new TestSource(() => {
        throw new Error('no database');
      });
      await agentOf([queueSource('toy', bad), good()]).pass();
      expect(origins()).to.deep.equal(['good fine 0']);
      expect(codes()).to.deep.equal(['source-failed']);
      expect(messages()).to.contain('toy').and.to.contain('no database');
    });

    it('throw: are asked again after a growing pause, and served when they answer again', async () => {
      const bad = new TestSource(() => {
        throw new Error('no database');
      });
      const agent = agentOf([queueSource('toy', bad)]);
      for (const pause of [1000, 2000, 4000]) {
        await agent.pass();
        await agent.pass();
        await parts.clock.advance(pause);
      }
      expect(bad.asked).to.equal(3);
      bad.wants = () => ({ requests: requests(1), groups: [], reasons: [] });
      await agent.pass();
      expect(origins()).to.deep.equal(['toy job 0']);
      expect(codes()).to.deep.equal([]);
      const told = parts.log.lines.filter(({ message }) => message === 'a source failed');
      expect(told, 'logged once').to.have.length(1);
    });

    it('hang: one deadline is lost, and the passes after it are not delayed', async () => {
      const bad = new TestSource(() => new Promise(() => undefined));
      const agent = agentOf([queueSource('toy', bad), good()]);
      const pass = agent.pass();
      while (!parts.clock.sleeping.includes(5000)) await parts.clock.settle();
      await parts.clock.advance(6000);
      await pass;
      expect(origins()).to.deep.equal(['good fine 0']);
      const before = parts.clock.monotonic();
      await agent.pass();
      expect(parts.clock.monotonic()).to.equal(before);
      expect(codes()).to.deep.equal(['source-failed']);
    });

    it('hang: rest five times as long as they took', async () => {
      const bad = new TestSource(() => new Promise(() => undefined));
      const agent = agentOf([queueSource('toy', bad)]);
      const pass = agent.pass();
      while (!parts.clock.sleeping.includes(5000)) await parts.clock.settle();
      await parts.clock.advance(6000);
      await pass;
      await parts.clock.advance(20_000);
      await agent.pass();
      expect(bad.asked).to.equal(1);
      bad.wants = () => ({ requests: [], groups: [], reasons: [] });
      await parts.clock.advance(10_000);
      await agent.pass();
      expect(bad.asked).to.equal(2);
    });

    const nonsense: readonly (readonly [what: string, answer: unknown, says: string])[] = [
      ['nothing', undefined, 'undefined'],
      ['a text', 'three workers', 'three workers'],
      ['requests that are no list', { requests: 3, groups: [], reasons: [] }, 'requests'],
      ['no groups', { requests: [], reasons: [] }, 'groups'],
      ['a group without a count', { requests: [], groups: [{ requirements }], reasons: [] }, 'count'],
      [
        'a count that is no number',
        { requests: [], groups: [{ requirements, count: NaN }], reasons: [] },
        'count',
      ],
      ['a reason without a code', { requests: [], groups: [], reasons: ['full'] }, 'reason'],
    ];
    for (const [what, answer, says] of nonsense) {
      it(`answer with ${what}: others of the queue are served`, async () => {
        await agentOf([queueSource('toy', new TestSource(() => answer)), good()]).pass();
        expect(origins()).to.deep.equal(['good fine 0']);
        expect(codes()).to.deep.equal(['source-failed']);
        expect(messages()).to.contain(says);
      });
    }

    const wrong: readonly (readonly [what: string, request: unknown, says: string])[] = [
      ['nothing', null, 'null'],
      ['no origin', {}, 'origin'],
      ['an index that is no number', { origin: { uid: 'a', index: '0' } }, 'index'],
      ['an index below 0', { origin: { uid: 'a', index: -1 } }, 'index'],
      ['an empty uid', { origin: { uid: '', index: 0 } }, 'uid'],
      ['a uid with half of a character', { origin: { uid: 'a\ud800', index: 0 } }, 'uid'],
      ['a uid that is too long', { origin: { uid: 'u'.repeat(513), index: 0 } }, '513'],
      ['a group that is no text', { origin: { uid: 'a', index: 0 }, groupId: 7 }, 'groupId'],
      ['half a core', { origin: { uid: 'a', index: 0 }, requirements: { nCore: 0.5 } }, 'nCore'],
      [
        'more memory than any machine has',
        { origin: { uid: 'a', index: 0 }, requirements: { minRamCount: 67_108_865 } },
        'minRamCount is 67108865: it must be a whole number of 67108864 or less',
      ],
      [
        'more cores than any machine has',
        { origin: { uid: 'a', index: 0 }, requirements: { nCore: 4097 } },
        'nCore is 4097: it must be a whole number of 4096 or less',
      ],
      ['a need that there is not', { origin: { uid: 'a', index: 0 }, requirements: { gpus: 1 } }, 'gpus'],
      ['a payload that is no object', { origin: { uid: 'a', index: 0 }, payload: 'x' }, 'payload'],
      [
        'a file outside of its directory',
        { origin: { uid: 'a', index: 0 }, payload: { files: [{ name: '../x', mode: 420, content: '' }] } },
        'files',
      ],
    ];
    for (const [what, request, says] of wrong) {
      it(`ask with ${what}: this request is refused, and the others are served`, async () => {
        await agentOf([queueSource('toy', wanting([request, ...requests(1)]))]).pass();
        expect(origins()).to.deep.equal(['toy job 0']);
        expect(codes()).to.have.length(1);
        expect(codes()?.[0]).to.be.oneOf(['request-refused', 'payload-wrong']);
        expect(messages()).to.contain(says);
      });
    }

    it('ask for one origin twice at once: it gets one worker, and the reason says so', async () => {
      await agentOf([queueSource('toy', wanting([...requests(2), ...requests(1)]))]).pass();
      expect(origins()).to.deep.equal(['toy job 0', 'toy job 1']);
      expect(codes()).to.deep.equal(['request-refused']);
    });

    it('ask for a payload that the submitter cannot give: these are refused, and the others are served', async () => {
      const some = [...requests(1, { payload: { argv: ['true'] } }), ...requests(1, {}, 'plain')];
      await agentOf([queueSource('toy', wanting(some))], {}, { payload: ['values'] }).pass();
      expect(origins()).to.deep.equal(['toy plain 0']);
      expect(codes()).to.deep.equal(['payload-unsupported']);
      expect(messages()).to.contain('argv');
      expect(whyWaits(0)).to.equal('payload-unsupported');
    });

    it('flood a queue with 100,000 requests: the first 10,000 count, and the reason says how many wait', async () => {
      const flood = requests(100_000);
      const agent = agentOf([queueSource('toy', wanting(flood)), good()], { maxWorkers: 3 });
      await agent.pass();
      expect(origins()).to.deep.equal(['toy job 0', 'toy job 1', 'toy job 2']);
      expect(codes()).to.include('source-flood');
      expect(messages()).to.contain(String(100_000 - mostRequests));
      expect(parts.waiting.counts.find(({ source }) => source === 'toy')?.requests).to.equal(99_997);
      expect(whyWaits(9999)).to.equal('max-workers');
    });

    it('flood a queue with requests that are refused: those behind them are served in a pass that is due at once', async () => {
      const refused = requests(mostRequests, { payload: { argv: ['true'] } });
      const agent = agentOf(
        [queueSource('toy', wanting([...refused, ...requests(1, {}, 'plain')]))],
        {},
        { payload: ['values'] },
      );
      expect(await agent.pass()).to.equal(0);
      expect(await agent.pass()).to.equal(undefined);
      expect(origins()).to.deep.equal(['toy plain 0']);
    });

    it('hole 8: ask with long payloads: those are looked at for which there is room, and others have their turn meanwhile', async () => {
      const looked: number[] = [];
      const payloadOf = (index: number): Payload => {
        if (!looked.includes(index)) looked.push(index);
        return index % 2 === 0 ? { argv: [''] } : { argv: ['true'] };
      };
      const some = requests(1000).map((request) => ({
        ...request,
        get payload() {
          return payloadOf(request.origin.index);
        },
      }));
      // Each look takes its time.
      let time = 0;
      const clock = {
        now: () => time,
        monotonic: () => (time += 15),
        sleep: parts.clock.sleep.bind(parts.clock),
      };
      const agent = agentOf([queueSource('toy', wanting(some))], { maxWorkers: 4 }, { clock });
      let turns = 0;
      let isOver = false;
      const others = async () => {
        for (; !isOver; turns++) await nextTurn();
      };
      const busy = others();
      await agent.pass();
      isOver = true;
      await busy;
      expect(origins()).to.deep.equal(['toy job 1', 'toy job 3', 'toy job 5', 'toy job 7']);
      expect(looked.length, 'payloads that were looked at').to.be.below(20);
      expect(turns, 'turns of others').to.be.greaterThan(4);
    });

    it('ask for one payload in many requests, new ones in each pass: it is judged once', async () => {
      let reads = 0;
      const payload = new Proxy<Payload>(
        { argv: [''] },
        {
          ownKeys: (of) => {
            reads++;
            return Reflect.ownKeys(of);
          },
        },
      );
      const source = new TestSource(() => ({
        requests: requests(100, { payload }),
        groups: [],
        reasons: [],
      }));
      const agent = agentOf([queueSource('toy', source)], { maxWorkers: 3 });
      // Refused, so that no worker takes its room.
      for (let pass = 0; pass < 3; pass++) await agent.pass();
      expect(reads).to.equal(1);
    });

    it('flood a queue with requests that were served: the next pass is due at once, and goes on with the others', async () => {
      await agentOf([queueSource('toy', wanting(requests(3)))]).pass();
      const flood = requests(mostRequests + 2);
      const agent = agentOf([queueSource('toy', wanting(flood))], { maxWorkers: 5 });
      expect(await agent.pass()).to.equal(0);
      await agent.pass();
      expect(parts.waiting.counts).to.deep.equal([
        { queue: 'Q', source: 'toy', requests: mostRequests + 2 - 5 },
      ]);
    });
  });
});
