import { expect } from 'chai';
import { PluginCalls } from '../../../src/agents/plugin-calls.ts';
import type { Step } from '../../../src/agents/queue-runtime.ts';
import { FactoryLimits } from '../../../src/agents/submission/factory-limits.ts';
import { SubmitterAgent } from '../../../src/agents/submission/submitter-agent.ts';
import type { Reason } from '../../../src/worker/reason.ts';
import { messageOf } from '../../../src/worker/errors.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { mostMaskedInATurn } from '../../support/masked-characters.ts';
import { workerOf } from '../../support/samples.ts';
import { ScriptedQueue } from '../../support/scripted-queue.ts';

const refused = { code: 'preflight-says-no', message: 'no rights' };
const lost = { code: 'plugin-failed', message: 'the answer was lost' };

describe('a pass of the submitter', () => {
  let parts: AgentParts;
  let queue: ScriptedQueue;
  /** The steps at which a test interferes. */
  let at: Partial<Record<Step, () => void>>;
  let reports: string[][];

  beforeEach(async () => {
    parts = await AgentParts.open();
    parts.connection.listed();
    parts.connection.completed();
    await parts.store.ids.raise(1);
    await parts.store.queues.report({
      queue: 'Q',
      queueStatus: 'online',
      limits: {},
      reasons: [],
      reportTime: 1,
    });
    queue = new ScriptedQueue(parts);
    at = {};
    reports = [];
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  function agentOf(
    changes: Partial<AgentParts['context']> = {},
    maxNewWorkers = 100,
    of = queue,
  ): SubmitterAgent {
    const report = async (reasons: readonly Reason[]) => {
      reports.push(reasons.map(({ code }) => code));
      queue.journal.push('report');
    };
    const step = (step: Step) => at[step]?.();
    const blackHole = { lifetime: 0, workers: 20, pause: 1 };
    const options = { maxNewWorkers, cycle: 9000, blackHole, report };
    return new SubmitterAgent(of.runtime, { ...parts.context, step, ...changes }, options);
  }
  const codes = () => reports.at(-1);
  const statusOf = async (id: number) => (await parts.store.workers.byId(id))?.status;
  const pause = () => parts.store.queues.setControl('Q', { mode: 'paused', reason: 'test', since: 1 });
  const handles = async (ids: readonly number[]) =>
    (await parts.store.workers.byIds(ids)).map(({ handle }) => handle?.batchID);

  /** Leaves intents open whose outcome is unknown, as a daemon that died in its submission does. */
  async function leftOpen(...ids: number[]): Promise<void> {
    await parts.store.ids.raise(Math.max(...ids) + 1);
    await parts.ledger.intend(ids.map((id) => workerOf(id, { placement: parts.placement })));
    queue.taken();
  }

  it('hole 8: gives others their turn while it looks for secrets in what is said of hundreds of workers', async () => {
    const error = { code: 'x', message: ':token'.repeat(80) };
    await leftOpen(...Array.from({ length: 100 }, (_, at) => at + 7));
    queue.find = () => ({ kind: 'unknown', error });
    const most = await mostMaskedInATurn((clock) => agentOf({ clock }).pass());
    expect(most).to.be.within(400, 10_000);
    expect(queue.taken()[0]).to.match(/^find 7 /);
  });

  it('looks before it asks the backend, looks again, records, submits, and looks a last time', async () => {
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal([
      ...['demand', 'look', 'preflight', 'look', 'intend 1 2', 'submit 1 2'],
      ...['1 submitted', '2 submitted', 'look', 'report'],
    ]);
    expect(await handles([1, 2])).to.deep.equal(['b1', 'b2']);
    expect(codes()).to.deep.equal(['max-workers']);
    expect(parts.ledger.inFlight.has(1)).to.equal(false);
  });

  it('asks nothing of the backend while its limits let no worker through', async () => {
    const agent = agentOf();
    await agent.pass();
    queue.taken();
    await agent.pass();
    expect(queue.taken()).to.deep.equal(['demand', 'look', 'report']);
  });

  it('records nothing after a preflight that says no, shows why, and logs it once', async () => {
    queue.preflight = async () => ({ problems: [refused] });
    const agent = agentOf();
    await agent.pass();
    await agent.pass();
    expect(queue.taken()).to.deep.equal([
      ...['demand', 'look', 'preflight', 'look', 'report'],
      ...['demand', 'look', 'preflight', 'look', 'report'],
    ]);
    expect(codes()?.[0]).to.equal('preflight-says-no');
    const told = parts.log.lines.filter(({ message }) => message === 'the submitter is stopped');
    expect(told).to.have.length(1);
  });

  it('submits no more than the preflight has room for', async () => {
    queue.preflight = async () => ({ problems: [], room: { workers: 1, reason: refused } });
    await agentOf().pass();
    expect(queue.taken()).to.include('intend 1').and.to.include('submit 1');
  });

  it('counts workers that others submitted during its preflight', async () => {
    queue.preflight = async () => {
      await parts.ledger.intend([workerOf(50), workerOf(51)]);
      return { problems: [] };
    };
    await agentOf().pass();
    expect(queue.taken().filter((line) => /^(intend|submit)/.test(line))).to.deep.equal(['intend 50 51']);
  });

  it('records nothing when an operator pauses the queue during its preflight', async () => {
    queue.preflight = async () => {
      await pause();
      return { problems: [] };
    };
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal(['demand', 'look', 'preflight', 'look', 'report']);
    expect(codes()?.[0]).to.equal('paused');
  });

  it('records nothing when its queue gets another configuration during its preflight: a limit may be lower there', async () => {
    queue.preflight = async () => {
      queue.runtime.replaced = true;
      return { problems: [] };
    };
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal(['demand', 'look', 'preflight', 'look', 'report']);
  });

  it('takes back intents when an operator pauses the queue after they were recorded', async () => {
    let paused: Promise<unknown> | undefined;
    at['submit:after-intent'] = () => {
      paused = pause();
    };
    await agentOf().pass();
    await paused;
    expect(queue.taken()).to.deep.equal([
      ...[
        'demand',
        'look',
        'preflight',
        'look',
        'intend 1 2',
        '1 cancelled',
        '2 cancelled',
        'look',
        'report',
      ],
    ]);
    expect((await parts.store.workers.byId(1))?.errorCode).to.equal('killed');
  });

  it('records alone where two queues share a rate, so that both together keep to it', async () => {
    const factoryLimits = new FactoryLimits(1, 3, parts.clock);
    await parts.clock.advance(3000);
    const other = new ScriptedQueue(parts, {}, { name: 'R' });
    const agents = [agentOf({ factoryLimits }), agentOf({ factoryLimits }, 100, other)];
    await Promise.all(agents.map((agent) => agent.pass()));
    expect(parts.ledger.live.size).to.equal(3);
  });

  it('holds its intents from the moment they have rows until their outcomes are written', async () => {
    const held: [string, boolean][] = [];
    for (const step of ['submit:after-intent', 'submit:before-outcome', 'submit:after-outcome'] as const)
      at[step] = () => held.push([step, parts.ledger.inFlight.has(1)]);
    await agentOf().pass();
    expect(held.map(([, is]) => is)).to.deep.equal([true, true, true]);
    expect(parts.ledger.inFlight.has(1)).to.equal(false);
  });

  it('stays closed until its connection was listed and heard, whatever is open', async () => {
    parts.connection.troubled({ code: 'status-unknown', message: 'no answer' });
    await leftOpen(7);
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal(['demand', 'look', 'report']);
    expect(codes()).to.deep.equal(['status-unknown']);
    expect(await statusOf(7)).to.equal('pending');
  });

  it('asks no demand for a configuration that is only followed, and settles what it left open', async () => {
    queue = new ScriptedQueue(parts, {}, { current: false });
    await leftOpen(7);
    queue.find = () => ({ kind: 'found', handle: { batchID: 'late' } });
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal(['find 7', '7 submitted', 'report']);
    expect(codes()).to.deep.equal(['queue-removed']);
  });

  it('shows the state of the queue before the reason why nothing is demanded', async () => {
    await pause();
    queue.demand = async () => ({ groups: [], reasons: [{ code: 'demand-slave', message: 'm' }] });
    await agentOf().pass();
    expect(codes()).to.deep.equal(['paused', 'demand-slave']);
    expect(queue.taken()).to.deep.equal(['demand', 'report']);
  });

  it('shows what the demand has to say, and looks at no limit for nothing', async () => {
    queue.demand = async () => ({ groups: [], reasons: [{ code: 'demand-none', message: 'm' }] });
    await agentOf().pass();
    expect(queue.taken()).to.deep.equal(['demand', 'report']);
    expect(codes()).to.deep.equal(['demand-none']);
  });

  it('reports why it failed, and fails', async () => {
    queue.preflight = async () => {
      throw new Error('the preflight broke');
    };
    expect(await agentOf().pass().catch(messageOf)).to.contain('the preflight broke');
    expect(codes()).to.deep.equal(['plugin-failed']);
  });

  describe('and unknown outcomes', () => {
    it('an open intent that its search finds is confirmed before anything new is submitted', async () => {
      await leftOpen(7);
      queue.find = () => ({ kind: 'found', handle: { batchID: 'b7' } });
      await agentOf().pass();
      expect(queue.taken()).to.deep.equal([
        ...['find 7', '7 submitted', 'demand', 'look', 'preflight', 'look', 'intend 8', 'submit 8'],
        ...['8 submitted', 'look', 'report'],
      ]);
      expect(await handles([7])).to.deep.equal(['b7']);
    });

    it('an open intent that is absent is submitted again as its next attempt', async () => {
      await leftOpen(7, 8);
      const attempts: number[] = [];
      queue.submit = ({ attempt }) => {
        attempts.push(attempt);
        return { kind: 'accepted', handle: { batchID: 'b' } };
      };
      await agentOf().pass();
      expect(queue.taken().slice(0, 4)).to.deep.equal([
        'find 7 8',
        'submit 7 8',
        '7 submitted',
        '8 submitted',
      ]);
      expect(attempts).to.deep.equal([2, 2]);
    });

    it('an open intent stays open, and counts among the living, when its search brings nothing to light', async () => {
      await leftOpen(7, 8);
      queue.find = () => ({ kind: 'unknown', error: lost });
      await agentOf().pass();
      expect(queue.taken()).to.deep.equal(['find 7 8', 'demand', 'look', 'report']);
      expect(await statusOf(7)).to.equal('pending');
    });

    it('nothing new is submitted after a search that failed as a whole, and the next pass searches again', async () => {
      await leftOpen(7);
      queue.duringFind = async () => {
        throw new Error('no route to host');
      };
      const agent = agentOf();
      expect(await agent.pass().catch(messageOf)).to.contain('no route');
      expect(queue.taken()).to.deep.equal(['find 7', 'report']);
      expect(parts.ledger.inFlight.has(7)).to.equal(false);
      queue.duringFind = async () => undefined;
      await agent.pass();
      expect(queue.taken()[0]).to.equal('find 7');
    });

    it('an absent intent that is refused again keeps no new worker from its submission', async () => {
      await leftOpen(7);
      queue.submit = ({ workerId }) =>
        workerId === 7
          ? { kind: 'rejected', permanent: false, error: refused }
          : { kind: 'accepted', handle: { batchID: 'b' } };
      await agentOf().pass();
      expect(await parts.statuses([7, 8])).to.deep.equal({ pending: 1, submitted: 1 });
      queue.submit = () => ({ kind: 'rejected', permanent: false, error: refused });
      expect(await agentOf().pass().catch(messageOf)).to.contain('none of 1 was accepted');
    });

    it('hole 1: absent intents take turns where not all may be sent again, so that one that is refused each time holds up no other', async () => {
      await leftOpen(9, 7, 8);
      queue.submit = () => ({ kind: 'rejected', permanent: false, error: refused });
      const agent = agentOf({ factoryLimits: new FactoryLimits(0.5, 1, parts.clock) });
      const sent: string[] = [];
      for (let turn = 0; turn < 4; turn++) {
        await parts.clock.advance(2000);
        await agent.pass().catch(() => undefined);
        sent.push(...queue.taken().filter((line) => line.startsWith('submit')));
      }
      expect(sent).to.deep.equal(['submit 7', 'submit 8', 'submit 9', 'submit 7']);
    });

    it('an open intent is given up after its last attempt', async () => {
      queue = new ScriptedQueue(parts, { maxSubmissionAttempts: 1 });
      await leftOpen(7);
      await agentOf().pass();
      expect(queue.taken().slice(0, 2)).to.deep.equal(['find 7', '7 missed']);
      expect((await parts.store.workers.byId(7))?.errorCode).to.equal('never-started');
    });

    it('an absent intent is neither submitted again nor given up while the queue is paused', async () => {
      await leftOpen(7);
      await pause();
      await agentOf().pass();
      expect(queue.taken()).to.deep.equal(['find 7', 'demand', 'look', 'report']);
      expect(await statusOf(7)).to.equal('pending');
    });

    it('an absent intent is not submitted again when an operator asks for its end during the search', async () => {
      await leftOpen(7);
      queue.duringFind = async () => {
        await parts.ledger.requestKill({ ids: [7] }, 'operator');
      };
      await agentOf().pass();
      expect(queue.taken().filter((line) => line.startsWith('submit'))).to.deep.equal(['submit 8']);
      expect((await parts.store.workers.byId(7))?.attempt).to.equal(1);
    });

    it('an open intent whose end was asked for is left to the sweeper', async () => {
      await leftOpen(7);
      await parts.ledger.requestKill({ ids: [7] }, 'operator');
      await agentOf().pass();
      expect(queue.taken()).to.not.include('find 7');
    });

    it('an open intent is not searched where its configuration does not lead', async () => {
      await parts.ledger.intend([workerOf(7, { placement: 'local:/elsewhere' })]);
      await agentOf().pass();
      expect(queue.taken()).to.not.include('find 7');
      expect(await statusOf(7)).to.equal('pending');
    });

    it('searches are in parts of two hundred, and stop when the connection closes in between', async () => {
      const ids = Array.from({ length: 250 }, (_, index) => index + 1);
      await leftOpen(...ids);
      queue.find = () => ({ kind: 'found', handle: { batchID: 'b' } });
      queue.duringFind = async () => {
        parts.connection.troubled({ code: 'status-unknown', message: 'no answer' });
      };
      await agentOf().pass();
      const searches = queue.taken().filter((line) => line.startsWith('find'));
      expect(searches.map((line) => line.split(' ').length - 1)).to.deep.equal([200]);
      expect(await parts.statuses(ids)).to.deep.equal({ submitted: 200, pending: 50 });
    });
  });

  describe('and the outcomes of its submission', () => {
    it('an unknown outcome leaves the intent open, and the next pass settles it before anything new', async () => {
      queue.submit = ({ workerId }) =>
        workerId === 1 ? { kind: 'accepted', handle: { batchID: 'b1' } } : { kind: 'unknown', error: lost };
      const agent = agentOf();
      await agent.pass();
      expect(await parts.statuses([1, 2])).to.deep.equal({ submitted: 1, pending: 1 });
      queue.taken();
      queue.find = () => ({ kind: 'found', handle: { batchID: 'b2' } });
      await agent.pass();
      expect(queue.taken()).to.deep.equal(['find 2', '2 submitted', 'demand', 'look', 'report']);
    });

    it('an outcome that the plugin left out is unknown', async () => {
      queue.submit = ({ workerId }) =>
        workerId === 1 ? { kind: 'accepted', handle: { batchID: 'b1' } } : undefined;
      await agentOf().pass();
      expect((await parts.store.workers.byId(2))?.errorCode).to.equal('plugin-failed');
      expect(await statusOf(2)).to.equal('pending');
    });

    it('all outcomes are unknown, and the pass fails, when the call breaks', async () => {
      queue.duringSubmit = async () => {
        throw new Error('the connection broke');
      };
      expect(await agentOf().pass().catch(messageOf)).to.contain('none of 2 was accepted');
      expect(await parts.statuses([1, 2])).to.deep.equal({ pending: 2 });
      expect(codes()).to.deep.equal(['submit-failed']);
      expect(parts.ledger.inFlight.has(1)).to.equal(false);
    });

    it('all outcomes are unknown when the call takes too long', async () => {
      queue.duringSubmit = () => new Promise(() => undefined);
      const pass = agentOf().pass().catch(messageOf);
      while (!queue.journal.includes('submit 1 2')) await parts.clock.settle();
      await parts.clock.advance(61_000);
      expect(await pass).to.contain('did not come back within 60 s');
      expect((await parts.store.workers.byId(1))?.errorCode).to.equal('plugin-timeout');
    });

    it('a worker that is rejected for good is missed', async () => {
      queue.submit = ({ workerId }) =>
        workerId === 1
          ? { kind: 'rejected', permanent: true, error: refused }
          : { kind: 'accepted', handle: { batchID: 'b' } };
      await agentOf().pass();
      expect(await parts.statuses([1, 2])).to.deep.equal({ missed: 1, submitted: 1 });
    });

    it('fewer workers are let through after some were refused', async () => {
      queue = new ScriptedQueue(parts, { maxWorkers: 8, nQueueLimitWorker: 8 });
      queue.submit = ({ workerId }) =>
        workerId <= 2
          ? { kind: 'accepted', handle: { batchID: 'b' } }
          : { kind: 'rejected', permanent: true, error: refused };
      const agent = agentOf();
      await agent.pass();
      expect(codes()?.[0]).to.equal('submission-backoff');
      queue.taken();
      expect(await agent.pass().catch(messageOf)).to.contain('none of 2 was accepted');
      expect(queue.taken()).to.include('intend 9 10');
    });
  });

  describe('and the time of the next one', () => {
    it('the next pass is due when the rate lets one more through, where the rate cuts deepest', async () => {
      const factoryLimits = new FactoryLimits(0.5, 1, parts.clock);
      await parts.clock.advance(2000);
      const agent = agentOf({ factoryLimits });
      expect(await agent.pass()).to.equal(2000);
      expect(queue.taken()).to.include('intend 1');
      expect(codes()?.[0]).to.equal('submission-rate');
    });

    it('the next pass is due at its usual time, where another limit cuts deeper than the rate', async () => {
      const factoryLimits = new FactoryLimits(0.5, 2, parts.clock);
      await parts.clock.advance(4000);
      queue = new ScriptedQueue(parts, { maxWorkers: 1, nQueueLimitWorker: 1 });
      expect(await agentOf({ factoryLimits }).pass()).to.equal(undefined);
      expect(codes()).to.deep.equal(['max-workers']);
    });

    it('the next pass is due at its usual time, where the backend refuses what the rate lets through', async () => {
      const factoryLimits = new FactoryLimits(0.5, 1, parts.clock);
      await parts.clock.advance(2000);
      queue.preflight = async () => ({ problems: [refused] });
      expect(await agentOf({ factoryLimits }).pass()).to.equal(undefined);
      expect(codes()).to.deep.equal(['preflight-says-no', 'submission-rate', 'max-workers']);
    });

    it('a pass that comes early begins no new cycle', async () => {
      queue = new ScriptedQueue(parts, { maxWorkers: 9, nQueueLimitWorker: 9 });
      const agent = agentOf({}, 2);
      await agent.pass();
      queue.taken();
      await parts.clock.advance(8999);
      await agent.pass();
      expect(queue.taken()).to.not.include('preflight');
      await parts.clock.advance(1);
      await agent.pass();
      expect(queue.taken()).to.include('intend 3 4');
    });
  });

  describe('that a stop gives up', () => {
    /** A pass that hangs in this verb, given up; what it says, and what it left. */
    async function givenUp(hang: () => void, verb: string): Promise<string> {
      hang();
      const pass = agentOf()
        .pass()
        .then(() => 'passed', messageOf);
      while (!queue.journal.some((line) => line.startsWith(verb))) await parts.clock.settle();
      parts.giveUp.abort();
      return pass;
    }
    const never = () => new Promise<never>(() => undefined);

    it('begins nothing new while it settles, and the intent stays open', async () => {
      await leftOpen(7);
      const said = await givenUp(() => (queue.duringFind = never), 'find');
      expect(said).to.contain('given up because the daemon stops');
      expect(queue.taken()).to.deep.equal(['find 7', 'report']);
      expect(await statusOf(7)).to.equal('pending');
    });

    it('records nothing while it asks the demand', async () => {
      expect(await givenUp(() => (queue.demand = never), 'demand')).to.contain('the daemon stops');
      expect(queue.taken()).to.deep.equal(['demand', 'report']);
    });

    it('records nothing while it waits for the preflight', async () => {
      expect(await givenUp(() => (queue.preflight = never), 'preflight')).to.contain('the daemon stops');
      expect(queue.taken()).to.deep.equal(['demand', 'look', 'preflight', 'report']);
    });

    it('records nothing while it looks again', async () => {
      let looks = 0;
      const hang = () => (queue.duringLook = async () => (++looks === 2 ? never() : undefined));
      const pass = givenUp(hang, 'preflight');
      expect(await pass).to.contain('the daemon stops');
      expect(queue.taken()).to.not.include('intend 1 2');
    });

    it('leaves every intent open while it submits, and the next start settles them', async () => {
      await givenUp(() => (queue.duringSubmit = never), 'submit');
      expect(await parts.statuses([1, 2])).to.deep.equal({ pending: 2 });
      expect((await parts.store.workers.byId(1))?.errorCode).to.equal('shutting-down');
      queue.taken();
      await parts.ledger.load();
      queue.duringSubmit = async () => undefined;
      const { signal: giveUp } = new AbortController();
      const restarted = agentOf({ calls: new PluginCalls({ ...parts.context, giveUp }) });
      queue.find = ({ workerId }) => ({ kind: 'found', handle: { batchID: `b${workerId}` } });
      await restarted.pass();
      expect(queue.taken().slice(0, 3)).to.deep.equal(['find 1 2', '1 submitted', '2 submitted']);
    });
  });
});
