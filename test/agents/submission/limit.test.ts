import { expect } from 'chai';
import { Connection } from '../../../src/agents/observation/connection.ts';
import { FactoryLimits } from '../../../src/agents/submission/factory-limits.ts';
import { applyLimits } from '../../../src/limits/limiters.ts';
import { QueueLimits } from '../../../src/agents/submission/limit.ts';
import type { ConnectedPlugins, QueueRuntime } from '../../../src/agents/queue-runtime.ts';
import type { QueueConfig } from '../../../src/config/queues/queues.ts';
import type { Throttler } from '../../../src/plugins/contracts/index.ts';
import { RuleThrottler } from '../../../src/plugins/throttlers/rules/rules.ts';
import type { WorkerStatus } from '../../../src/worker/status.ts';
import { AgentParts } from '../../support/agent-context.ts';
import type { ManualClock } from '../../support/manual-clock.ts';
import { configOf, requirements, workerOf } from '../../support/samples.ts';

const options = {
  maxNewWorkers: 1000,
  cycle: 9000,
  blackHole: { lifetime: 10_000, workers: 20, pause: 600_000 },
};
const noFamily = {
  logicType: 'OR' as const,
  rulesForMissed: [],
  rulesForSiteFamilySubmitted: [],
  rulesForSiteFamilyRunning: [],
  rulesForSiteFamilySubmittedRunning: [],
};

describe('the limits of a queue at work', () => {
  let parts: AgentParts;
  let clock: ManualClock;
  let context: AgentParts['context'];
  let connection: Connection;
  let nextId: number;

  beforeEach(async () => {
    parts = await AgentParts.open();
    ({ clock, context } = parts);
    nextId = 1;
    connection = new Connection('scripted:x', clock, 120_000);
    connection.listed();
    connection.completed();
  });

  afterEach(async () => {
    await parts[Symbol.asyncDispose]();
  });

  function limitsOf(config: QueueConfig, throttler?: Throttler, runsJobs = false): QueueLimits {
    const runtime = {
      config,
      configId: 1,
      current: true,
      requirements,
      throttler,
      sources: [{ kind: 'x', own: true, runsJobs, source: {} }],
      messenger: undefined,
      submitter: {},
      connected: new Map([['scripted:x', { connection } as ConnectedPlugins]]),
    };
    return new QueueLimits(runtime as unknown as QueueRuntime, context, options);
  }

  /** Workers of a queue in this status; running ones started just now. */
  async function workers(
    queue: string,
    count: number,
    status: WorkerStatus,
    resourceType = 'SCORE',
  ): Promise<void> {
    const made = Array.from({ length: count }, () =>
      workerOf(nextId++, { queue, requirements: { ...requirements, resourceType } }),
    );
    await context.ledger.intend(made);
    if (status === 'pending') return;
    await context.ledger.change(made.map(({ workerId }) => ({ workerId, to: status, source: 'monitor' })));
  }

  /** How many of endlessly many are let through, by resource type, and why no more. */
  async function letThrough(limits: QueueLimits, ...types: string[]) {
    const wanted = (types.length === 0 ? ['SCORE'] : types).map((resourceType) => ({
      requirements: { ...requirements, resourceType },
      count: Infinity,
    }));
    const { groups, reasons } = applyLimits(wanted, await limits.look(wanted));
    return { counts: groups.map(({ count }) => count), codes: reasons.map(({ code }) => code) };
  }

  it('count intents in flight', async () => {
    const limits = limitsOf(configOf('Q', { maxWorkers: 10, nQueueLimitWorker: 4 }));
    await workers('Q', 3, 'pending');
    await workers('Q', 5, 'running');
    await workers('R', 50, 'pending');
    expect(await letThrough(limits)).to.deep.equal({ counts: [1], codes: ['queue-limit', 'max-workers'] });
  });

  it('give each of several resource types its part of the minimum, whoever asks first', async () => {
    const config = configOf('Q', { maxWorkers: 10, nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 4 });
    const limits = limitsOf(config);
    expect((await letThrough(limits, 'SCORE', 'MCORE')).counts).to.deep.equal([2, 2]);
    await workers('Q', 2, 'submitted', 'SCORE');
    expect((await letThrough(limits, 'SCORE', 'MCORE')).counts).to.deep.equal([2]);
    expect((await letThrough(limits, 'SCORE', 'MCORE')).codes).to.include('queue-limit-resource-type');
  });

  it('guard against black holes that swallow pilots, and take a short job for a good one', async () => {
    await workers('Q', 20, 'running');
    const ids = Array.from({ length: 20 }, (_, nth) => nth + 1);
    await context.ledger.change(ids.map((workerId) => ({ workerId, to: 'finished', source: 'monitor' })));
    const config = configOf('Q', { maxWorkers: 10 });
    expect(await letThrough(limitsOf(config))).to.deep.equal({
      counts: [],
      codes: ['black-hole-pause', 'max-workers'],
    });
    const codes = (await letThrough(limitsOf(config, undefined, true))).codes;
    expect(codes).to.deep.equal(['max-workers']);
  });

  it('begin a new cycle when the old one is over, not with every look', async () => {
    const limits = limitsOf(configOf('Q', { maxWorkers: 100, maxNewWorkersPerCycle: 3 }));
    expect((await letThrough(limits)).counts).to.deep.equal([3]);
    limits.intentsRecorded(3);
    await clock.advance(8999);
    expect(await letThrough(limits)).to.deep.equal({
      counts: [],
      codes: ['max-new-per-cycle', 'max-workers'],
    });
    await clock.advance(1);
    expect((await letThrough(limits)).counts).to.deep.equal([3]);
  });

  it('take from both buckets, and say when the slower lets one more through', async () => {
    context = { ...context, factoryLimits: new FactoryLimits(0.5, 10, clock) };
    const limits = limitsOf(configOf('Q', { maxWorkers: 100, submissionRate: 1, submissionBurst: 10 }));
    expect(limits.nextIn).to.equal(2000);
    await clock.advance(8000);
    expect(await letThrough(limits)).to.deep.equal({
      counts: [4],
      codes: ['submission-rate', 'submission-rate', 'max-workers'],
    });
    limits.intentsRecorded(4);
    const [own, all] = (await limits.look([])).slice(-2);
    expect([own?.atMost, all?.atMost]).to.deep.equal([4, 0]);
    expect([own, all].map((limit) => limit?.reason.message)).to.deep.equal([
      'submissionRate of 1 per second (10 at once) is used up for the moment',
      'submitter.submissionRate of 0.5 per second (10 at once) is used up for the moment',
    ]);
    expect(limits.nextIn).to.equal(2000);
    await clock.advance(2000);
    expect(limits.nextIn).to.equal(undefined);
  });

  it('are looked at alone only where queues count against the same', async () => {
    const order: string[] = [];
    const work = (name: string) => async () => {
      order.push(`${name} begins`);
      await clock.sleep(10);
      order.push(`${name} ends`);
    };
    const family = new RuleThrottler({
      ...noFamily,
      rulesForSiteFamilySubmitted: [{ level: 'workers', maxWorkers: 3 }],
    });
    const together = [limitsOf(configOf('A', {}), family), limitsOf(configOf('B', {}), family)];
    const apart = [limitsOf(configOf('A', {})), limitsOf(configOf('B', {}))];
    for (const pair of [together, apart]) {
      const both = Promise.all(pair.map((limits, index) => limits.exclusively(work('AB'.charAt(index)))));
      await clock.advance(100);
      await both;
    }
    expect(order).to.deep.equal([
      ...['A begins', 'A ends', 'B begins', 'B ends'],
      ...['A begins', 'B begins', 'A ends', 'B ends'],
    ]);
  });

  it("count the cores of a family by each queue's nCoreFactor", async () => {
    const queues = [
      configOf('A', { maxWorkers: 100, siteFamily: 'F' }, { worker: { nCoreFactor: 8 } }),
      configOf('B', { maxWorkers: 100, siteFamily: 'F' }),
      configOf('C', { maxWorkers: 100 }),
    ];
    context.factoryLimits.configure(queues);
    await workers('A', 2, 'submitted');
    await workers('A', 1, 'running');
    await workers('B', 3, 'pending');
    await workers('B', 1, 'ready');
    await workers('C', 50, 'running');
    const left = async (rule: 'Submitted' | 'Running' | 'SubmittedRunning', queue = 1) => {
      const rules = { [`rulesForSiteFamily${rule}`]: [{ level: 'cores', maxCores: 60 }] };
      const config = queues[queue]!;
      return (await letThrough(limitsOf(config, new RuleThrottler({ ...noFamily, ...rules })))).counts;
    };
    // Queued: 2 of 8 cores and 3 of 1; running, the ready one among them: 1 of 8 and 1 of 1.
    expect(await left('Submitted')).to.deep.equal([60 - 19]);
    expect(await left('Running')).to.deep.equal([60 - 9]);
    expect(await left('SubmittedRunning')).to.deep.equal([60 - 28]);
    expect(await left('SubmittedRunning', 0)).to.deep.equal([4]);
  });

  it('hold a queue back for what was missed at one of its computing elements, and for no other', async () => {
    const throttler = new RuleThrottler({
      ...noFamily,
      rulesForMissed: [{ level: 'ce', timeWindow: 10, maxMissed: 1 }],
    });
    const limits = (...computingElements: string[]) =>
      limitsOf(configOf('Q', { maxWorkers: 100 }, { worker: { computingElements } }), throttler);
    await workers('Q', 3, 'submitted');
    const [first, ...others] = (await parts.store.workers.list({ queue: 'Q' })).map(
      ({ workerId }) => workerId,
    );
    const miss = (workerId: number, computingElement: string) => ({
      workerId,
      computingElement,
      to: 'missed' as const,
      source: 'monitor',
      endTime: clock.now(),
    });
    await context.ledger.change([miss(first!, 'two:1'), ...others.map((id) => miss(id, 'one:1'))]);
    expect((await letThrough(limits('two:1', 'three:1'))).codes).to.deep.equal(['max-workers']);
    expect(await letThrough(limits('one:1', 'two:1'))).to.deep.equal({ counts: [], codes: ['throttled'] });
    await clock.advance(601_000);
    connection.completed();
    expect((await letThrough(limits('one:1', 'two:1'))).codes).to.deep.equal(['max-workers']);
  });

  it('see a black hole in what the database says, a restart notwithstanding', async () => {
    await workers('Q', 20, 'running');
    const ended = (await parts.store.workers.list({ queue: 'Q' })).map(({ workerId }) => ({
      workerId,
      to: 'failed' as const,
      source: 'monitor',
      startTime: clock.now(),
      endTime: clock.now() + 100,
    }));
    await context.ledger.change(ended);
    const config = configOf('Q', { maxWorkers: 100 });
    expect(await letThrough(limitsOf(config))).to.deep.equal({
      counts: [],
      codes: ['black-hole-pause', 'max-workers'],
    });
    await clock.advance(600_000);
    connection.completed();
    expect((await letThrough(limitsOf(config))).counts).to.deep.equal([1]);
    await workers('Q', 1, 'running');
    await clock.advance(9999);
    expect((await letThrough(limitsOf(config))).counts).to.deep.equal([]);
    await clock.advance(2);
    expect(await letThrough(limitsOf(config))).to.deep.equal({
      counts: [2],
      codes: ['black-hole', 'max-workers'],
    });
  });

  it('are closed by what closes the queue, retries included', async () => {
    const limits = limitsOf(configOf('Q', { maxWorkers: 5, queueStatus: 'offline' }));
    const closed = {
      code: 'queue-status',
      message: 'queueStatus is offline: set it to "online" for new workers',
    };
    expect(await limits.closed()).to.deep.equal({ closed, unknown: undefined });
    connection.troubled({ code: 'status-unknown', message: 'no answer' });
    expect((await limits.closed()).unknown?.code).to.equal('status-unknown');
    expect((await limitsOf(configOf('Q', { maxWorkers: 5 })).closed()).closed?.code).to.equal(
      'status-unknown',
    );
  });

  it('let through fewer retries, too, after submissions failed', () => {
    const limits = limitsOf(configOf('Q', { maxWorkers: 5 }));
    expect(limits.retries).to.equal(Infinity);
    limits.answered(8, 2, 'quota');
    expect(limits.retries).to.equal(2);
  });
});
