import { expect } from 'chai';
import { noLoad } from '../../src/limits/formulas.ts';
import { type LimitFacts, limitsOf } from '../../src/limits/queue-limits.ts';
import { requirements } from '../support/samples.ts';

/** Facts of a queue that nothing closes and that may have 10 workers. */
const facts = (changes: Partial<LimitFacts> = {}): LimitFacts => ({
  state: {
    queueStatus: 'online',
    control: undefined,
    closed: undefined,
    credential: undefined,
    limits: { maxWorkers: 10, nQueueLimitWorker: 10, maxNewWorkersPerCycle: 0 },
    maxNewWorkers: 1000,
    madeInCycle: 0,
    load: { queued: noLoad, running: noLoad, alive: noLoad },
    queuedByType: new Map(),
    wantedTypes: ['SCORE', 'MCORE'],
    requirements,
  },
  throttled: undefined,
  blackHole: {
    state: { ended: [], proven: 0, unproven: 0, lastMade: undefined, now: 0 },
    options: { lifetime: 1000, workers: 20, pause: 60_000 },
  },
  window: undefined,
  rates: [],
  ...changes,
});
const codes = (of: LimitFacts) => limitsOf(of).map(({ reason }) => reason.code);

describe('the limits of a queue, of facts alone', () => {
  it('are its numbers where nothing else holds it back', () => {
    expect(codes(facts())).to.deep.equal(['max-workers', 'queue-limit', 'max-new-per-cycle']);
  });

  it('come in one order: gates, throttler, parts of resource types, numbers, black hole, window, rates', () => {
    const { state } = facts();
    const limits = { ...state.limits, nQueueLimitWorkerRatio: 10, nQueueLimitWorkerMin: 4 };
    const swallowed = { status: 'failed', startTime: 1, endTime: 2 } as const;
    const all = facts({
      state: {
        ...state,
        limits,
        queueStatus: 'offline',
        control: { mode: 'paused', reason: 'by hand', since: 0 },
        closed: { code: 'status-unknown', message: 'm' },
        credential: { code: 'credential-bad', message: 'm' },
      },
      throttled: { atMost: 0, reason: { code: 'throttled', message: 'm' } },
      blackHole: {
        state: { ended: Array(20).fill(swallowed), proven: 0, unproven: 0, lastMade: 5, now: 10 },
        options: facts().blackHole.options,
      },
      window: { atMost: 1, reason: { code: 'submission-backoff', message: 'm' } },
      rates: [{ name: 'submissionRate', rate: 1, burst: 2, available: 0 }],
    });
    expect(codes(all)).to.deep.equal([
      ...['queue-status', 'paused', 'status-unknown', 'credential-bad', 'throttled'],
      ...['queue-limit-resource-type', 'queue-limit-resource-type'],
      ...['max-workers', 'queue-limit', 'max-new-per-cycle'],
      ...['black-hole-pause', 'submission-backoff', 'submission-rate'],
    ]);
    expect(limitsOf(all).at(-1)).to.deep.equal({
      atMost: 0,
      reason: {
        code: 'submission-rate',
        message: 'submissionRate of 1 per second (2 at once) is used up for the moment',
      },
    });
  });
});
