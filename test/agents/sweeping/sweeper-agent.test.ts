import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { QueueRuntime } from '../../../src/agents/queue-runtime.ts';
import { SweeperAgent } from '../../../src/agents/sweeping/sweeper-agent.ts';
import type { CheckResult, GoneOutcome, Worker } from '../../../src/plugins/contracts/index.ts';
import { hour } from '../../../src/util/duration.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { mostMaskedInATurn } from '../../support/masked-characters.ts';
import { workerOf } from '../../support/samples.ts';
import { sharedFiles } from '../../support/shared-files.ts';
import { until } from '../../support/until.ts';

const gone: GoneOutcome = { kind: 'gone' };
const pending: GoneOutcome = { kind: 'pending' };
const failed: GoneOutcome = { kind: 'failed', error: { code: 'kubernetes-server-error', message: 'broken' } };

describe('the sweeper of a queue', () => {
  let parts: AgentParts;
  let agent: SweeperAgent;
  let connected: Map<string, object>;
  let outcome: (worker: Worker) => GoneOutcome;
  let calls: { kill: number[][]; remove: number[][] };
  /** Workers whose outputs were not wanted. */
  let unwanted: number[];
  let checked: (worker: Worker) => CheckResult | undefined;
  /** Whether a call hangs for a while. */
  let slow: (workers: readonly Worker[]) => boolean;

  beforeEach(async () => {
    parts = await AgentParts.open();
    calls = { kill: [], remove: [] };
    outcome = () => gone;
    checked = () => ({ kind: 'absent' });
    unwanted = [];
    slow = () => false;
    const answer =
      (verb: 'kill' | 'remove') =>
      async (workers: readonly Worker[], _: AbortSignal, isUnwanted = false) => {
        calls[verb].push(workers.map(({ workerId }) => workerId));
        if (slow(workers)) await parts.clock.sleep(6000);
        if (isUnwanted) unwanted.push(...workers.map(({ workerId }) => workerId));
        return new Map(workers.map((worker) => [worker.workerId, outcome(worker)]));
      };
    const sweeper = { kill: answer('kill'), remove: answer('remove') };
    const monitor = {
      check: async (workers: readonly Worker[]) =>
        new Map(
          workers.flatMap((worker) => {
            const result = checked(worker);
            return result === undefined ? [] : [[worker.workerId, result]];
          }),
        ),
    };
    connected = new Map([[parts.placement, { connection: parts.connection, monitor, sweeper }]]);
    const runtime = {
      config: { name: 'Q' },
      configId: 1,
      current: true,
      messenger: undefined,
      connected,
    } as unknown as QueueRuntime;
    const keep = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
    agent = new SweeperAgent(runtime, parts.context, { keep });
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  describe('hole 8: an access point', () => {
    let directory: string;
    beforeEach(() => {
      directory = mkdtempSync(join(tmpdir(), 'access-points-'));
    });
    afterEach(() => {
      rmSync(directory, { recursive: true, maxRetries: 10, retryDelay: 100 });
    });

    /** Whether the directories are still there after the sweep of their workers. */
    const sweptWith = async (template: string, paths: readonly string[]) => {
      for (const path of paths) mkdirSync(path, { recursive: true });
      const messenger = sharedFiles({ accessPoint: join(directory, template) });
      const runtime = { config: { name: 'Q' }, configId: 1, current: true, messenger, connected };
      const keep = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
      const ids = paths.map((_, at) => at + 1);
      await parts.ledger.change(
        ids.map((workerId) => ({ workerId, to: 'finished', source: 'test', endTime: parts.clock.now() })),
      );
      await parts.clock.advance(1000);
      const sweeping = new SweeperAgent(runtime as unknown as QueueRuntime, parts.context, { keep });
      expect(await sweeping.sweep()).to.equal(paths.length);
      return paths.map((path) => existsSync(path));
    };

    it('that the row of an earlier version took from a mark stays, but for the one that the queue gives', async () => {
      const paths = [join(directory, 'home-of-user1'), join(directory, 'work/2')];
      const rows = paths.map((accessPoint, at) =>
        workerOf(at + 1, { accessPoint, placement: parts.placement }),
      );
      await parts.ledger.adopt(rows, 'submitted');
      expect(await sweptWith('work/${workerID}', paths)).to.deep.equal([true, false]);
      const told = parts.log.lines.filter(({ facts }) => facts['code'] === 'access-point-foreign');
      expect(told.map(({ facts: { workerId, found } }) => [workerId, found])).to.deep.equal([[1, paths[0]]]);
    });

    it('of an intent of our own goes, though the template has changed since', async () => {
      const accessPoint = join(directory, 'earlier/1');
      await parts.ledger.intend([workerOf(1, { accessPoint, placement: parts.placement })]);
      expect(await sweptWith('work/${workerID}', [accessPoint])).to.deep.equal([false]);
    });

    it('that all workers share stays, whatever digits its name has', async () => {
      const accessPoint = join(directory, 'pilots-2021');
      await parts.ledger.intend([workerOf(1, { accessPoint, placement: parts.placement })]);
      expect(await sweptWith('pilots-2021', [accessPoint])).to.deep.equal([true]);
    });
  });

  it('removes nothing because the clock jumped ahead for a pass, and removes it when its keep time has passed', async () => {
    const keep = { finished: 24 * hour, failed: 72 * hour, cancelled: 72 * hour, missed: 24 * hour };
    const runtime = { config: { name: 'Q' }, configId: 1, current: true, messenger: undefined, connected };
    const sweeping = new SweeperAgent(runtime as unknown as QueueRuntime, parts.context, { keep });
    const ids = await parts.submitted(3);
    await parts.ledger.change(ids.map((workerId) => ({ workerId, to: 'failed', source: 'test' })));
    await parts.clock.advance(60_000);
    parts.clock.ahead = 8 * 24 * hour;
    expect(await sweeping.sweep()).to.equal(0);
    parts.clock.ahead = 0;
    await parts.clock.advance(71 * hour);
    expect(await sweeping.sweep()).to.equal(0);
    expect(calls.remove).to.deep.equal([]);
    await parts.clock.advance(hour);
    expect(await sweeping.sweep()).to.equal(3);
  });

  it('hole 8: gives others their turn while it looks for secrets in what is said of hundreds of workers', async () => {
    const text = ':token'.repeat(80);
    const runtime = { config: { name: 'Q' }, configId: 1, current: true, messenger: undefined, connected };
    const keep = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
    const ids = await parts.submitted(200);
    await parts.ledger.requestKill({ ids }, 'test');
    const half = ids[100] ?? 0;
    const error = { code: 'x', message: text };
    outcome = ({ workerId }) => (workerId < half ? gone : { kind: 'pending', reason: error });
    checked = ({ workerId }) => ({
      kind: 'observed',
      observation: { workerId, observedAt: 1, status: 'failed', nativeStatus: 'F', error },
    });
    const most = await mostMaskedInATurn(async (clock) => {
      const context = { ...parts.context, clock };
      const sweeping = new SweeperAgent(runtime as unknown as QueueRuntime, context, { keep });
      const stop = new AbortController();
      parts.context.events.on('workersChanged', () => {
        stop.abort();
      });
      await sweeping.pass(stop.signal);
      outcome = () => ({ kind: 'failed', error });
      await sweeping.sweep();
    });
    expect(most).to.be.within(400, 10_000);
    expect(parts.ledger.live.get(half)?.status).to.equal('submitted');
    expect(parts.ledger.live.get(half - 1)).to.equal(undefined);
  });

  const toEnd = async (count: number) => {
    const ids = await parts.submitted(count);
    await parts.ledger.requestKill({ ids }, 'test');
    return ids;
  };
  const ended = async (count: number) => {
    const ids = await parts.submitted(count);
    for (let first = 0; first < count; first += 500)
      await parts.ledger.change(
        ids.slice(first, first + 500).map((workerId) => ({ workerId, to: 'failed', source: 'test' })),
      );
    await parts.clock.advance(1000);
    return ids;
  };
  /** A whole pass, however long its pauses are. */
  const pass = async () => {
    let over = false;
    const work = agent.pass(new AbortController().signal).finally(() => (over = true));
    while (!over) await parts.clock.advance(500);
    await work;
  };
  const told = (message: string) => parts.log.lines.filter((line) => line.message === message);

  it('ends its turns where all kills fail, with one line for all of them', async () => {
    const ids = await toEnd(300);
    outcome = () => failed;
    await pass();
    expect(calls.kill.map(({ length }) => length)).to.deep.equal([300]);
    const [line, ...others] = told('workers could not be ended');
    expect(others).to.deep.equal([]);
    expect(line?.facts).to.deep.include({
      workers: 300,
      workerIds: ids.slice(0, 10),
      code: 'kubernetes-server-error',
    });
    expect(await parts.statuses(ids)).to.deep.equal({ submitted: 300 });
    // The next pass asks again.
    outcome = () => gone;
    await pass();
    expect(await parts.statuses(ids)).to.deep.equal({ cancelled: 300 });
  });

  it('goes on where only some fail, and asks again for what takes its time', async () => {
    const ids = await toEnd(3);
    outcome = ({ workerId }) => (workerId === 1 ? failed : calls.kill.length < 3 ? pending : gone);
    await pass();
    expect(await parts.statuses(ids)).to.deep.equal({ submitted: 1, cancelled: 2 });
  });

  it('removes what a source discarded while another worker does not end, and asks that one less and less often', async () => {
    const [slowest = 0, quick = 0] = await toEnd(2);
    outcome = ({ workerId }) => (workerId === slowest ? pending : gone);
    /** How often the slow one had been asked when the other one was gone for good. */
    let turns = 0;
    parts.context.events.on('workersChanged', () => {
      parts.ledger.discarded.add(quick);
    });
    const step = (name: string) => {
      if (name === 'sweep:after-mark') turns ||= calls.kill.length;
    };
    const runtime = { config: { name: 'Q' }, configId: 1, current: true, messenger: undefined, connected };
    const keep = { finished: hour, failed: hour, cancelled: hour, missed: hour };
    agent = new SweeperAgent(runtime as unknown as QueueRuntime, { ...parts.context, step }, { keep });
    const begun = parts.clock.monotonic();
    await pass();
    expect(turns).to.be.within(1, 2);
    expect(calls.remove).to.deep.equal([[quick]]);
    expect(calls.kill.length).to.equal(20);
    expect(parts.clock.monotonic() - begun).to.be.within(30_000, 45_000);
  });

  it('kills others although five hundred before them do not end', async () => {
    const ids = await toEnd(700);
    outcome = ({ workerId }) => (workerId <= 500 ? pending : gone);
    await pass();
    expect(await parts.statuses(ids)).to.deep.equal({ submitted: 500, cancelled: 200 });
    // From the second turn on, and not in the last one.
    expect(calls.kill[1]?.slice(0, 2)).to.deep.equal([501, 502]);
  });

  it('asks each of thousands that do not end in its turn, so that the last one that can ends too', async () => {
    const ids = await toEnd(1800);
    outcome = ({ workerId }) => (workerId <= 1700 ? pending : gone);
    await pass();
    expect(await parts.statuses(ids)).to.deep.equal({ submitted: 1700, cancelled: 100 });
    const times = [...Map.groupBy(calls.kill.flat(), (id) => id).values()].map(({ length }) => length);
    expect(Math.min(...times.slice(0, 1700)), 'the fewest times that one was asked').to.be.greaterThan(3);
  });

  it('hole 6: sweeps what ended after thousands that are kept, and asks for each of them in its turn', async () => {
    const ids = await ended(3000);
    const reason = { code: 'output-awaited', message: 'no directory' };
    outcome = ({ workerId }) => (workerId <= 2900 ? { kind: 'pending', reason } : gone);
    expect(await agent.sweep()).to.equal(0);
    expect(await agent.sweep()).to.equal(100);
    const times = Map.groupBy(calls.remove.flat(), (id) => id);
    expect([...new Set(ids.map((id) => times.get(id)?.length))]).to.deep.equal([1]);
    expect(agent.kept).to.equal('2900 workers of Q are kept for now: no directory');
    outcome = () => gone;
    expect(await agent.sweep()).to.equal(2900);
    expect(agent.kept).to.equal(undefined);
  });

  describe('hole 6: with a connection that fails or hangs', () => {
    let away: (workers: readonly Worker[]) => Promise<Map<number, GoneOutcome>>;
    let asked: number;
    beforeEach(() => {
      asked = 0;
      const call = (workers: readonly Worker[]) => {
        asked++;
        return away(workers);
      };
      const own = connected.get(parts.placement);
      connected.set('local:/away', { ...own, sweeper: { kill: call, remove: call } });
    });

    it('gives the others all their turns, asks it once in a pass, and says what failed', async () => {
      const lost = await parts.submitted(600, 'local:/away');
      const ids = [...lost, ...(await parts.submitted(600))];
      await parts.ledger.requestKill({ ids }, 'test');
      away = () => Promise.reject(new Error('its files hang'));
      const failure = await pass().catch((error: unknown) => error);
      expect(failure).to.have.property('message', 'its files hang');
      expect([asked, await parts.statuses(ids)]).to.deep.equal([1, { submitted: 600, cancelled: 600 }]);
      expect(parts.ledger.whyLeft.get(lost[0] ?? 0)?.message).to.equal('its files hang');

      await parts.ledger.change(lost.map((workerId) => ({ workerId, to: 'failed', source: 'test' })));
      await parts.clock.advance(1000);
      asked = 0;
      expect(await agent.sweep().catch((error: unknown) => error)).to.have.property(
        'message',
        'its files hang',
      );
      expect([asked, calls.remove.flat().length]).to.deep.equal([1, 600]);
    });

    it('asks one that hangs and fails for all of its workers once in a pass', async () => {
      const lost = await parts.submitted(1200, 'local:/away');
      const ids = [...lost, ...(await parts.submitted(1200))];
      await parts.ledger.requestKill({ ids }, 'test');
      const portions: number[] = [];
      away = async (workers) => {
        portions.push(workers[0]?.workerId ?? 0);
        await parts.clock.sleep(60_000);
        return new Map(workers.map(({ workerId }) => [workerId, failed]));
      };
      await pass();
      expect([portions, await parts.statuses(ids)]).to.deep.equal([
        [1],
        { submitted: 1200, cancelled: 1200 },
      ]);
      expect(calls.remove.length, 'sweeps of the others in that pass').to.be.greaterThan(0);
      await pass();
      expect(portions).to.deep.equal([1, 1]);

      await parts.ledger.change(lost.map((workerId) => ({ workerId, to: 'failed', source: 'test' })));
      const others = await ended(1200);
      portions.length = 0;
      calls.remove.length = 0;
      for (let turn = 0; turn < 3; turn++) await pass();
      expect([new Set(portions).size, portions.length], 'others of it each time').to.deep.equal([3, 3]);
      expect(calls.remove.flat().toSorted((a, b) => a - b)).to.deep.equal(others);
      away = async (workers) => new Map(workers.map(({ workerId }) => [workerId, gone]));
      await pass();
      await pass();
      expect(await agent.sweep()).to.equal(0);
    });

    it('asks one again that fails for all at once, and one that takes long and does something', async () => {
      const ids = await parts.submitted(2, 'local:/away');
      await parts.ledger.requestKill({ ids }, 'test');
      let slow = 0;
      away = async (workers) => {
        await parts.clock.sleep(slow);
        return new Map(workers.map(({ workerId }) => [workerId, workerId === ids[0] ? failed : pending]));
      };
      await pass();
      expect(asked, 'at once').to.equal(20);
      asked = 0;
      slow = 5000;
      await pass();
      expect(asked, 'it takes long').to.equal(20);
    });

    it('asks the others while it hangs', async () => {
      const ids = [...(await parts.submitted(1, 'local:/away')), ...(await parts.submitted(1))];
      await parts.ledger.requestKill({ ids }, 'test');
      let answer: (outcomes: Map<number, GoneOutcome>) => void = () => undefined;
      away = () => new Promise((resolve) => (answer = resolve));
      const work = agent.pass(new AbortController().signal);
      await until('the other has ended', async () => (await parts.statuses(ids)).cancelled === 1);
      answer(new Map(ids.map((id) => [id, gone])));
      await work;
      expect(await parts.statuses(ids)).to.deep.equal({ cancelled: 2 });
    });
  });

  it('says once of what its backend keeps in place that it is kept, and why', async () => {
    await ended(3);
    const reason = { code: 'late-creation', message: 'it may still arrive' };
    outcome = ({ workerId }) => (workerId === 1 ? gone : { kind: 'pending', reason });
    for (const swept of [1, 0]) {
      expect(await agent.sweep()).to.equal(swept);
      expect(agent.kept).to.equal('2 workers of Q are kept for now: it may still arrive');
    }
    expect(told('ended workers are kept for now').map(({ facts }) => facts.workerIds)).to.deep.equal([
      [2, 3],
    ]);
    outcome = () => gone;
    expect(await agent.sweep()).to.equal(2);
    expect(agent.kept).to.equal(undefined);
  });

  it('hole 6: asks for the output of a discarded worker, unless nobody wants it', async () => {
    const [first = 0, other = 0] = await ended(2);
    const { discarded, unwanted: nobodys } = parts.ledger;
    for (const id of [first, other]) discarded.add(id);
    nobodys.add(other);
    expect(await agent.sweep()).to.equal(2);
    expect([calls.remove.flat().sort(), unwanted]).to.deep.equal([[first, other], [other]]);
    expect([discarded.size, nobodys.size]).to.deep.equal([0, 0]);
  });

  it('hole 6: asks once in a sweep for a discarded worker, by what its source wants', async () => {
    const [first = 0, other = 0] = await ended(2);
    const { discarded, unwanted: nobodys, whyLeft } = parts.ledger;
    discarded.add(first);
    nobodys.add(first);
    const reason = { code: 'htcondor-removing', message: 'it stays' };
    outcome = ({ workerId }) => (workerId === first ? { kind: 'pending', reason } : gone);
    expect(await agent.sweep()).to.equal(1);
    expect([calls.remove, unwanted]).to.deep.equal([[[first], [other]], [first]]);
    expect(whyLeft.get(first)).to.deep.equal(reason);
  });

  it('hole 3: shows of what its backend says of workers that stay no secret', async () => {
    const [first = 0, other = 0] = await ended(2);
    const { discarded, whyLeft } = parts.ledger;
    for (const id of [first, other]) discarded.add(id);
    const reason = { code: 'output-awaited', message: 'at https://user:pa55word-of-it@host/' };
    outcome = ({ workerId }) =>
      workerId === first ? { kind: 'pending', reason } : { kind: 'failed', error: reason };
    await agent.sweep();
    const records = await parts.store.workers.byIds([first, other]);
    const shown = [agent.kept, whyLeft.get(first), whyLeft.get(other), records, parts.log.lines];
    expect(JSON.stringify(shown)).to.include('https://').and.not.include('pa55word');
  });

  it('hole 6: asks for discarded workers in turn, though a call for some of them hangs each time', async () => {
    const ids = await ended(603);
    const [first = 0] = ids;
    for (const id of ids.slice(0, 600)) parts.ledger.discarded.add(id);
    // The first one alone is wanted.
    for (const id of ids.slice(1, 600)) parts.ledger.unwanted.add(id);
    slow = (workers) => workers.some(({ workerId }) => workerId <= first + 99);
    outcome = ({ workerId }) => (workerId <= first + 99 ? failed : gone);
    for (let turn = 0; turn < 4; turn++) await pass();
    expect([...parts.ledger.discarded].toSorted((a, b) => a - b)).to.deep.equal(ids.slice(0, 100));
    expect(
      (await parts.store.workers.byIds(ids)).filter(({ sweptTime }) => sweptTime === null),
    ).to.have.length(100);
  });

  it('hole 6: says why a worker lives that cannot be asked to end', async () => {
    const [first = 0] = await toEnd(1);
    outcome = () => {
      throw new Error('the plugin is broken');
    };
    await pass().catch(() => undefined);
    expect(parts.ledger.whyLeft.get(first)?.message).to.equal('the plugin is broken');
  });

  it('hole 6: says of a worker whose submission is under way that it waits for that', async () => {
    const [first = 0] = await toEnd(1);
    parts.ledger.inFlight.hold([{ workerId: first }]);
    const passing = pass();
    await until('it is said', () => parts.ledger.whyLeft.get(first)?.message.startsWith('its submission'));
    parts.ledger.inFlight.letGo([{ workerId: first }]);
    await passing;
    await pass();
    expect(parts.ledger.whyLeft.size).to.equal(0);
  });

  it('hole 6: says of a worker that is gone, and that the backend calls a living one, that it has no end', async () => {
    const [first = 0] = await toEnd(1);
    checked = ({ workerId }) => ({
      kind: 'observed',
      observation: { workerId, observedAt: 0, status: 'running', nativeStatus: 'suspended' },
    });
    await pass();
    expect(parts.ledger.whyLeft.get(first)).to.deep.include({ code: 'end-unclear' });
    expect(parts.ledger.whyLeft.get(first)?.message).to.contain('suspended');
    expect(told('ended workers on request')).to.deep.equal([]);
  });

  it('hole 6: says of a worker that ended, and of which nothing can be looked up, why it still counts as living', async () => {
    const [first = 0, second = 0, third = 0] = await toEnd(3);
    const error = { code: 'condor-unreachable', message: 'no answer' };
    checked = ({ workerId }) =>
      workerId === first ? { kind: 'unknown', error } : workerId === second ? undefined : { kind: 'absent' };
    await pass();
    const { whyLeft } = parts.ledger;
    expect([whyLeft.get(first), whyLeft.get(second)?.code, whyLeft.get(third)]).to.deep.equal([
      error,
      'plugin-failed',
      undefined,
    ]);
    expect(told('ended workers on request').map(({ facts }) => facts.workers)).to.deep.equal([1]);
    expect(await parts.statuses([first, second, third])).to.deep.equal({ submitted: 2, cancelled: 1 });
    checked = () => ({ kind: 'absent' });
    await pass();
    expect([whyLeft.size, await parts.statuses([first, second])]).to.deep.equal([0, { cancelled: 2 }]);
  });

  it('hole 6: tells the source of a discarded worker that its access point cannot be removed', async () => {
    const accessPoint = '/nowhere/1';
    await parts.ledger.intend([workerOf(1, { accessPoint, placement: parts.placement })]);
    await parts.ledger.change([{ workerId: 1, to: 'failed', source: 'test' }]);
    await parts.clock.advance(1000);
    let remove = () => Promise.reject(new Error('it is busy'));
    const messenger = { remove: () => remove(), accessPointOf: () => accessPoint };
    const runtime = { config: { name: 'Q' }, configId: 1, current: true, messenger, connected };
    const keep = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
    const sweeping = new SweeperAgent(runtime as unknown as QueueRuntime, parts.context, { keep });
    const { discarded, whyLeft } = parts.ledger;
    discarded.add(1);
    expect(await sweeping.sweep()).to.equal(0);
    expect(whyLeft.get(1)?.message).to.equal('it is busy');
    remove = () => Promise.resolve() as Promise<never>;
    expect(await sweeping.sweep()).to.equal(1);
    expect(whyLeft.size).to.equal(0);
  });

  it('hole 5: says once of a worker that does not end why that is, and again after another reason', async () => {
    const [first = 0] = await toEnd(1);
    const reason = { code: 'htcondor-removing', message: 'it stays' };
    outcome = () => ({ kind: 'pending', reason });
    for (let turn = 0; turn < 3; turn++) await pass();
    const lines = () => told('workers that are asked to end have not ended yet');
    expect(lines().map(({ facts }) => facts.workerIds)).to.deep.equal([[first]]);
    expect(parts.ledger.whyLeft.get(first)).to.deep.equal(reason);
    outcome = () => gone;
    await pass();
    expect(parts.ledger.whyLeft.size).to.equal(0);
  });

  it('tells the source of a discarded worker, and operators, why it is left, until it is gone', async () => {
    const [first = 0, other = 0] = await ended(2);
    const { discarded, whyLeft } = parts.ledger;
    discarded.add(first);
    const reason = { code: 'output-awaited', message: 'no directory' };
    outcome = () => ({ kind: 'pending', reason });
    await agent.sweep();
    expect([...whyLeft]).to.deep.equal([[first, reason]]);
    const detailOf = async (id: number) => (await parts.store.workers.byId(id))?.detail;
    expect(await detailOf(other)).to.deep.equal({ keptReason: 'no directory' });
    outcome = () => failed;
    await agent.sweep();
    expect(whyLeft.get(first)).to.deep.equal({ code: 'kubernetes-server-error', message: 'broken' });
    outcome = () => {
      throw new Error('the plugin is broken');
    };
    await agent.sweep().catch(() => undefined);
    expect(whyLeft.get(first)).to.deep.equal({ code: 'plugin-failed', message: 'the plugin is broken' });
    outcome = () => gone;
    expect(await agent.sweep()).to.equal(2);
    expect([whyLeft.size, discarded.size]).to.deep.equal([0, 0]);
    expect(await detailOf(other)).to.deep.equal({});
  });

  it('removes nothing of a worker whose submission is under way, though it has ended', async () => {
    const [first = 0, second = 0] = await ended(2);
    parts.ledger.inFlight.hold([{ workerId: first }]);
    expect(await agent.sweep()).to.equal(1);
    parts.ledger.inFlight.letGo([{ workerId: first }]);
    expect(await agent.sweep()).to.equal(1);
    expect(calls.remove).to.deep.equal([[second], [first]]);
  });

  it('removes what others left although five hundred before them cannot be removed', async () => {
    const ids = await ended(1100);
    outcome = ({ workerId }) => (workerId <= 500 ? failed : gone);
    expect(await agent.sweep()).to.equal(600);
    expect(calls.remove.map(({ length }) => length)).to.deep.equal([500, 500, 100]);
    expect(told('workers could not be removed').map(({ facts }) => facts.workers)).to.deep.equal([500]);
    expect(agent.kept).to.equal(undefined);
    // Each was asked for once in this pass, and is asked for again in the next.
    outcome = () => gone;
    expect(await agent.sweep()).to.equal(500);
    expect(new Set(calls.remove.slice(3).flat())).to.deep.equal(new Set(ids.slice(0, 500)));
  });
});
