import { expect } from 'chai';
import fc from 'fast-check';
import {
  applyLimits,
  backendLimiter,
  caps,
  gates,
  knownConnection,
  type Limit,
  type LimitState,
  maxWorkers,
  newPerCycle,
  operatorControl,
  queueLimit,
  queueStatus,
  total,
} from '../../src/agents/limiters.ts';
import type { QueueLoad } from '../../src/agents/limit-formulas.ts';
import { requirements } from '../support/samples.ts';

const state = (changes: Partial<LimitState> = {}): LimitState => ({
  queueStatus: 'online',
  control: undefined,
  closed: undefined,
  limits: { maxWorkers: 10, nQueueLimitWorker: 5, maxNewWorkersPerCycle: 0 },
  maxNewWorkers: 1000,
  madeInCycle: 0,
  load: loadOf(4, 2),
  queuedByType: new Map(),
  wantedTypes: ['SCORE'],
  requirements,
  ...changes,
});

/** So many workers of one core and 2000 MB each. */
function loadOf(alive: number, queued: number): QueueLoad {
  const load = (workers: number) => ({ workers, cores: workers, memory: workers * 2000 });
  return { alive: load(alive), queued: load(queued), running: load(Math.max(0, alive - queued)) };
}

const group = (resourceType: string, count: number) => ({
  requirements: { ...requirements, resourceType },
  count,
});
const limit = (atMost: number, code: string): Limit => ({ atMost, reason: { code, message: code } });

describe('what closes a queue altogether', () => {
  it('says nothing of a queue that may work', () => {
    expect(gates.map((gate) => gate(state()))).to.deep.equal([undefined, undefined, undefined]);
    expect(queueStatus(state({ queueStatus: 'test' }))).to.equal(undefined);
  });

  it('is its queueStatus', () => {
    for (const status of ['offline', 'standby', 'maintenance', 'brokeroff', '']) {
      expect(queueStatus(state({ queueStatus: status }))).to.deep.equal({
        atMost: 0,
        reason: { code: 'queue-status', message: `queueStatus is ${status}` },
      });
    }
  });

  for (const mode of ['paused', 'draining'] as const) {
    it(`is an operator: ${mode}`, () => {
      const control = { mode, reason: 'downtime', since: Date.UTC(2026, 0, 2) };
      expect(operatorControl(state({ control }))).to.deep.equal({
        atMost: 0,
        reason: { code: mode, message: `${mode} since 2026-01-02T00:00:00.000Z: downtime` },
      });
    });
  }

  it('is a connection of which nothing is known, with its own reason', () => {
    const closed = { code: 'status-unknown', message: 'no answer' };
    expect(knownConnection(state({ closed }))).to.deep.equal({ atMost: 0, reason: closed });
  });
});

describe('what bounds the number of new workers', () => {
  it('is maxWorkers less the living', () => {
    expect(maxWorkers(state())).to.deep.equal({
      atMost: 6,
      reason: { code: 'max-workers', message: '4 of maxWorkers 10 are alive' },
    });
    expect(maxWorkers(state({ load: loadOf(12, 2) }))?.atMost).to.equal(0);
  });

  it('is nQueueLimitWorker less the queued', () => {
    expect(queueLimit(state())).to.deep.equal({
      atMost: 3,
      reason: { code: 'queue-limit', message: '2 of nQueueLimitWorker 5 are queued' },
    });
    expect(queueLimit(state({ load: loadOf(9, 9) }))?.atMost).to.equal(0);
  });

  for (const [own, instance, atMost, name] of [
    [0, 1000, 1000, 'submitter.maxNewWorkers'],
    [20, 1000, 20, 'maxNewWorkersPerCycle'],
    [2000, 1000, 1000, 'submitter.maxNewWorkers'],
  ] as const) {
    it(`is the lesser of maxNewWorkersPerCycle ${own} (0 = none) and the instance's ${instance}`, () => {
      const limits = { maxWorkers: 10, nQueueLimitWorker: 5, maxNewWorkersPerCycle: own };
      expect(newPerCycle(state({ limits, maxNewWorkers: instance }))).to.deep.equal({
        atMost,
        reason: { code: 'max-new-per-cycle', message: `0 of ${name} ${atMost} were submitted in this cycle` },
      });
    });
  }

  it('is what the backend says: first its problems, then its room', () => {
    const problem = { code: 'preflight', message: 'no template' };
    const reason = { code: 'backend-room', message: '2 of 8 cores are free' };
    expect(backendLimiter({ problems: [problem], room: { workers: 2, reason } })).to.deep.equal({
      atMost: 0,
      reason: problem,
    });
    expect(backendLimiter({ problems: [], room: { workers: 2, reason } })).to.deep.equal({
      atMost: 2,
      reason,
    });
    expect(backendLimiter({ problems: [] })).to.equal(undefined);
  });

  it('never lets a queue exceed maxWorkers or nQueueLimitWorker', () => {
    const number = fc.nat({ max: 50 });
    fc.assert(
      fc.property(number, number, number, number, number, (alive, queued, most, mostQueued, wanted) => {
        const limits = { maxWorkers: most, nQueueLimitWorker: mostQueued, maxNewWorkersPerCycle: 0 };
        const states = caps.map((cap) => cap(state({ load: loadOf(alive, queued), limits })));
        const added = total(applyLimits([group('SCORE', wanted)], states).groups);
        expect(added === 0 || alive + added <= most).to.equal(true);
        expect(added === 0 || queued + added <= mostQueued).to.equal(true);
      }),
    );
  });
});

describe('applying limits', () => {
  const count = fc.oneof(fc.nat({ max: 30 }), fc.constant(Infinity));
  const groups = fc.array(
    count.map((wanted) => group('SCORE', wanted)),
    { maxLength: 5 },
  );
  const limits = fc.array(fc.option(fc.nat({ max: 40 }), { nil: undefined }), { maxLength: 6 });
  const made = (numbers: readonly (number | undefined)[]) =>
    numbers.map((atMost, index) => (atMost === undefined ? undefined : limit(atMost, String(index))));

  it('gives just as many as are wanted and as the least limit allows', () => {
    fc.assert(
      fc.property(groups, limits, (wanted, numbers) => {
        const least = numbers.reduce<number>((a, b) => Math.min(a, b ?? Infinity), Infinity);
        const allowed = applyLimits(wanted, made(numbers));
        expect(total(allowed.groups)).to.equal(Math.min(total(wanted), least));
        expect(allowed.groups.every((one) => one.count > 0)).to.equal(true);
      }),
    );
  });

  it('serves the first groups in full before the next get any', () => {
    fc.assert(
      fc.property(groups, limits, (wanted, numbers) => {
        const given = applyLimits(
          wanted.map((one, index) => group(String(index), one.count)),
          made(numbers),
        ).groups;
        for (const [
          at,
          {
            requirements: { resourceType },
            count: got,
          },
        ] of given.entries()) {
          const asked = wanted[Number(resourceType)]?.count;
          if (at < given.length - 1) expect(got).to.equal(asked);
          else expect(got).to.be.at.most(asked!);
        }
        const order = given.map((one) => Number(one.requirements.resourceType));
        expect(order).to.deep.equal([...order].sort((a, b) => a - b));
      }),
    );
  });

  it('gives a reason for every limit that cut, the deepest cut first', () => {
    fc.assert(
      fc.property(groups, limits, (wanted, numbers) => {
        const { reasons } = applyLimits(wanted, made(numbers));
        const cuts = reasons.map(({ code }) => numbers[Number(code)]!);
        expect(cuts).to.deep.equal([...new Set(cuts)].sort((a, b) => a - b));
        expect(reasons.length > 0).to.equal(numbers.some((atMost) => atMost! < total(wanted)));
      }),
    );
  });

  it('reads as an operator sees it', () => {
    const wanted = [group('SCORE', 4), group('MCORE', Infinity)];
    const allowed = applyLimits(wanted, [
      limit(10, 'max-workers'),
      undefined,
      limit(6, 'queue-limit'),
      limit(8, 'x'),
    ]);
    expect(allowed).to.deep.equal({
      groups: [group('SCORE', 4), group('MCORE', 2)],
      reasons: [
        { code: 'queue-limit', message: 'queue-limit' },
        { code: 'max-workers', message: 'max-workers' },
      ],
    });
  });
});
