import { expect } from 'chai';
import fc from 'fast-check';
import {
  applyLimits,
  backendLimiter,
  caps,
  coresLimit,
  gates,
  knownConnection,
  type Limit,
  type LimitState,
  maxWorkers,
  memoryLimit,
  newPerCycle,
  operatorControl,
  queueLimit,
  queueStatus,
  statusThatCounts,
  resourceTypeLimits,
  roomIn,
  total,
} from '../../src/limits/limiters.ts';
import { type QueueLoad, workerBound } from '../../src/limits/formulas.ts';
import { requirements } from '../support/samples.ts';

const state = (changes: Partial<LimitState> = {}): LimitState => ({
  queueStatus: 'online',
  control: undefined,
  closed: undefined,
  credential: undefined,
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
    expect(gates.map((gate) => gate(state()))).to.deep.equal(gates.map(() => undefined));
    expect(queueStatus(state({ queueStatus: 'test' }))).to.equal(undefined);
  });

  it('is its queueStatus', () => {
    for (const status of ['offline', 'standby', 'maintenance', 'brokeroff', '']) {
      expect(queueStatus(state({ queueStatus: status }))).to.deep.equal({
        atMost: 0,
        reason: {
          code: 'queue-status',
          message: `queueStatus is ${status}: set it to "online" for new workers`,
        },
      });
    }
  });

  it('is its status in CRIC, after its own', () => {
    for (const cricStatus of ['offline', 'standby', 'maintenance', 'elsewhere']) {
      expect(queueStatus(state({ cricStatus }))?.reason.code).to.equal('cric-status');
      expect(statusThatCounts({ queueStatus: 'online', cricStatus })).to.equal(cricStatus);
      expect(statusThatCounts({ queueStatus: 'brokeroff', cricStatus })).to.equal('brokeroff');
    }
    for (const cricStatus of ['online', 'brokeroff', 'test', 'unheard of', 'toString', undefined]) {
      expect(queueStatus(state({ cricStatus }))).to.equal(undefined);
      expect(statusThatCounts({ queueStatus: 'test', cricStatus })).to.equal('test');
    }
    expect(queueStatus(state({ cricStatus: 'offline', queueStatus: 'standby' }))?.reason.code).to.equal(
      'queue-status',
    );
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

  it('says where maxWorkers may have been forgotten', () => {
    const limits = { maxWorkers: 0, nQueueLimitWorker: 0, maxNewWorkersPerCycle: 0 };
    expect(maxWorkers(state({ limits, load: loadOf(0, 0) }))).to.deep.equal({
      atMost: 0,
      reason: {
        code: 'max-workers',
        message: '0 of maxWorkers 0 are alive: it is 0, or not set; set it above 0',
      },
    });
  });

  it('counts down within a cycle', () => {
    const limits = { maxWorkers: 10, nQueueLimitWorker: 5, maxNewWorkersPerCycle: 3 };
    expect(
      [0, 2, 3, 4].map((madeInCycle) => newPerCycle(state({ limits, madeInCycle }))?.atMost),
    ).to.deep.equal([...[3, 1, 0, 0]]);
  });

  it('is what the backend says: first its problems, then its room', () => {
    const problem = { code: 'preflight', message: 'no template' };
    const reason = { code: 'backend-room', message: '2 of 8 cores are free' };
    expect(backendLimiter({ problems: [problem], room: { workers: 2, reason } })).to.deep.equal({
      atMost: 0,
      reason: problem,
    });
    expect(
      backendLimiter({ problems: [problem, { code: 'kubernetes-forbidden', message: 'no right' }] })?.reason,
    ).to.deep.equal({ code: 'preflight', message: 'no template; no right' });
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

/** So many cores of 2000 MB each: by status. */
const mcore = { ...requirements, nCore: 8, minRamCount: 16_000, resourceType: 'MCORE' };
function mcoreLoad(running: number, queued: number): QueueLoad {
  const load = (workers: number) => ({ workers, cores: workers * 8, memory: workers * 16_000 });
  return { alive: load(running + queued), queued: load(queued), running: load(running) };
}

describe('what a limit on a share, on cores or on memory says', () => {
  const limited = (more: Partial<LimitState['limits']>) => ({
    maxWorkers: 100,
    nQueueLimitWorker: 50,
    maxNewWorkersPerCycle: 0,
    ...more,
  });
  const sentences: [
    what: string,
    limiter: typeof queueLimit,
    limits: Partial<LimitState['limits']>,
    load: QueueLoad,
    atMost: number,
    code: string,
    message: string,
  ][] = [
    [
      'a share of the running',
      queueLimit,
      { nQueueLimitWorkerRatio: 50 },
      loadOf(25, 4),
      6,
      'queue-limit',
      '4 of nQueueLimitWorkerRatio 10 (50 % of 21 running) are queued',
    ],
    [
      'a share of none',
      queueLimit,
      { nQueueLimitWorkerRatio: 50 },
      loadOf(0, 0),
      0,
      'ratio-of-none',
      'nQueueLimitWorkerRatio gives 0 (50 % of 0 running): nothing starts from none unless nQueueLimitWorkerMin is above 0',
    ],
    [
      'a share of none while one that is queued may still run',
      queueLimit,
      { nQueueLimitWorkerRatio: 50 },
      loadOf(1, 1),
      0,
      'queue-limit',
      '1 of nQueueLimitWorkerRatio 0 (50 % of 0 running) are queued',
    ],
    [
      'a share of none where nQueueLimitWorker itself is 0',
      queueLimit,
      { nQueueLimitWorkerRatio: 50, nQueueLimitWorker: 0 },
      loadOf(0, 0),
      0,
      'queue-limit',
      '0 of nQueueLimitWorker 0 are queued: set it above 0',
    ],
    [
      'a minimum',
      queueLimit,
      { nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 3 },
      loadOf(2, 2),
      1,
      'queue-limit',
      '2 of nQueueLimitWorkerMin 3 are queued',
    ],
    [
      'cores',
      coresLimit,
      { nQueueLimitWorkerCores: 20 },
      mcoreLoad(9, 2),
      4,
      'queue-limit-cores',
      '16 of nQueueLimitWorkerCores 20 cores are queued',
    ],
    [
      'cores that one worker alone exceeds',
      coresLimit,
      { nQueueLimitWorkerCores: 4 },
      mcoreLoad(0, 0),
      4,
      'queue-limit-cores',
      '0 of nQueueLimitWorkerCores 4 cores are queued; one worker takes 8, so none can ever be queued: set it to 8 or more',
    ],
    [
      'a share of cores that is less than one worker for now',
      coresLimit,
      { nQueueLimitWorkerCoresRatio: 50 },
      mcoreLoad(1, 0),
      4,
      'queue-limit-cores',
      '0 of nQueueLimitWorkerCoresRatio 4 cores (50 % of 8 running) are queued',
    ],
    [
      'a share of no cores',
      coresLimit,
      { nQueueLimitWorkerCoresRatio: 50 },
      mcoreLoad(0, 0),
      0,
      'ratio-of-none',
      'nQueueLimitWorkerCoresRatio gives 0 (50 % of 0 running): nothing starts from none unless nQueueLimitWorkerCoresMin is above 0',
    ],
    [
      'cores of a minimum of workers',
      coresLimit,
      { nQueueLimitWorkerCoresRatio: 50, nQueueLimitWorkerMin: 12 },
      mcoreLoad(1, 1),
      4,
      'queue-limit-cores',
      '8 of nQueueLimitWorkerMin 12 cores (1 core each) are queued',
    ],
    [
      'memory',
      memoryLimit,
      { nQueueLimitWorkerMemory: 40_000 },
      mcoreLoad(0, 2),
      8000,
      'queue-limit-memory',
      '32000 of nQueueLimitWorkerMemory 40000 MB are queued',
    ],
    [
      'memory that one worker alone exceeds',
      memoryLimit,
      { nQueueLimitWorkerMemory: 8000 },
      mcoreLoad(0, 0),
      8000,
      'queue-limit-memory',
      '0 of nQueueLimitWorkerMemory 8000 MB are queued; one worker takes 16000, so none can ever be queued: set it to 16000 or more',
    ],
    [
      'a share of no memory',
      memoryLimit,
      { nQueueLimitWorkerMemoryRatio: 50 },
      mcoreLoad(0, 0),
      0,
      'ratio-of-none',
      'nQueueLimitWorkerMemoryRatio gives 0 (50 % of 0 running): nothing starts from none unless nQueueLimitWorkerMemoryMin is above 0',
    ],
  ];
  for (const [what, limiter, limits, load, atMost, code, message] of sentences) {
    it(`is whole: ${what}`, () => {
      const said = limiter(state({ limits: limited(limits), load, requirements: mcore }));
      expect(said).to.deep.include({ atMost, reason: { code, message } });
    });
  }

  it('is nothing where no cores and no memory are limited', () => {
    expect([coresLimit(state()), memoryLimit(state())]).to.deep.equal([undefined, undefined]);
  });

  it('counts what a worker of each group takes, not what one of the queue takes', () => {
    const limits = limited({ nQueueLimitWorkerCores: 20, nQueueLimitWorkerMemory: 9000 });
    expect(coresLimit(state({ limits }))?.cost?.(mcore)).to.equal(8);
    expect(memoryLimit(state({ limits }))?.cost?.(mcore)).to.equal(16_000);
  });

  it('is one for each resource type where several ask, and none where one does', () => {
    const limits = limited({ nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 5 });
    const asking = {
      limits,
      load: loadOf(1, 1),
      queuedByType: new Map([['SCORE', 1]]),
      wantedTypes: ['SCORE', 'MCORE'],
    };
    const said = resourceTypeLimits(state(asking));
    const code = 'queue-limit-resource-type';
    expect(said.map(({ atMost, reason }) => ({ atMost, reason }))).to.deep.equal([
      {
        atMost: 2,
        reason: {
          code,
          message: '1 of nQueueLimitWorkerMin for SCORE 3 (5 for 2 resource types) are queued',
        },
      },
      {
        atMost: 3,
        reason: {
          code,
          message: '0 of nQueueLimitWorkerMin for MCORE 3 (5 for 2 resource types) are queued',
        },
      },
    ]);
    expect(said.map(({ of }) => of?.(mcore))).to.deep.equal([false, true]);
    expect(resourceTypeLimits(state({ limits, wantedTypes: ['SCORE'] }))).to.deep.equal([]);
    // Without a minimum that counts each may take all, and what all share says enough.
    expect(resourceTypeLimits(state({ ...asking, limits: limited({}) }))).to.deep.equal([]);
  });
});

describe('applying limits on what workers cost', () => {
  const groupOf = (nCore: number, minRamCount: number, count: number, resourceType = 'MCORE') => ({
    requirements: { ...requirements, nCore, minRamCount, resourceType },
    count,
  });
  const someGroup = fc
    .record({
      nCore: fc.integer({ min: 1, max: 16 }),
      minRamCount: fc.constantFrom(0, 1000, 2000, 16_000),
      count: fc.oneof(fc.nat({ max: 30 }), fc.constant(Infinity)),
    })
    .map(({ nCore, minRamCount, count }) => groupOf(nCore, minRamCount, count));
  const someGroups = fc.array(someGroup, { maxLength: 5 });
  const limits = { maxWorkers: 1000, nQueueLimitWorker: 1000, maxNewWorkersPerCycle: 0 };

  it('never queues more cores or memory than their bounds', () => {
    const load = fc.nat({ max: 10 });
    fc.assert(
      fc.property(
        ...[someGroups, fc.nat({ max: 100 }), fc.nat({ max: 100_000 }), load, load],
        (wanted, cores, memory, running, queued) => {
          const bounds = { ...limits, nQueueLimitWorkerCores: cores, nQueueLimitWorkerMemory: memory };
          const now = state({ limits: bounds, load: mcoreLoad(running, queued), requirements: mcore });
          const { groups } = applyLimits(wanted, [coresLimit(now), memoryLimit(now)]);
          const sum = (of: 'nCore' | 'minRamCount') =>
            groups.reduce(
              (all, one) => all + (one.requirements[of] === 0 ? 0 : one.requirements[of] * one.count),
              0,
            );
          expect(sum('nCore')).to.be.at.most(Math.max(0, cores - queued * 8));
          expect(sum('minRamCount')).to.be.at.most(Math.max(0, memory - queued * 16_000));
        },
      ),
      { numRuns: 1000 },
    );
  });

  const cost = { cost: ({ minRamCount }: typeof requirements) => minRamCount };

  it('lets through what costs nothing until the limit is reached, and nothing from then on', () => {
    const free = groupOf(1, 0, 7);
    const dear = groupOf(1, 1000, 2);
    expect(applyLimits([free, dear], [{ ...limit(2500, 'x'), ...cost }]).groups).to.deep.equal([free, dear]);
    expect(applyLimits([dear, free], [{ ...limit(2000, 'x'), ...cost }]).groups).to.deep.equal([dear]);
    expect(applyLimits([free], [{ ...limit(0, 'x'), ...cost }]).groups).to.deep.equal([]);
  });

  it('cuts those who cost something also where endlessly many cost nothing', () => {
    const free = groupOf(1, 0, Infinity);
    const dear = groupOf(1, 1000, Infinity);
    expect(applyLimits([free, dear], [{ ...limit(3000, 'x'), ...cost }])).to.deep.equal({
      groups: [free, { ...dear, count: 3 }],
      reasons: [limit(3000, 'x').reason],
      cuts: [{ group: dear, to: 3, reason: limit(3000, 'x').reason }],
    });
  });

  it('gives a smaller worker the room that a larger one cannot use', () => {
    const each = { cost: ({ nCore }: typeof requirements) => nCore };
    const { groups } = applyLimits([groupOf(8, 0, 2), groupOf(1, 0, 9)], [{ ...limit(11, 'x'), ...each }]);
    expect(groups.map(({ count }) => count)).to.deep.equal([1, 3]);
  });

  it('takes a limit of Infinity for none, also for endlessly many in several groups', () => {
    const wanted = [groupOf(1, 0, Infinity), groupOf(8, 0, Infinity)];
    expect(applyLimits(wanted, [limit(Infinity, 'x')])).to.deep.equal({
      groups: wanted,
      reasons: [],
      cuts: [],
    });
  });

  it('never lets one resource type take the part of another, and uses all of them', () => {
    const types = ['SCORE', 'MCORE', 'SCORE_HIMEM'];
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.nat({ max: 10 }), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: 2, max: 3 }),
        (min, queuedOf, count) => {
          const wantedTypes = types.slice(0, count);
          const queuedByType = new Map(wantedTypes.map((type, index) => [type, queuedOf[index] ?? 0]));
          const queued = [...queuedByType.values()].reduce((a, b) => a + b, 0);
          const limits = { maxWorkers: 100, nQueueLimitWorker: 100, maxNewWorkersPerCycle: 0 };
          const now = state({
            limits: { ...limits, nQueueLimitWorkerRatio: 0, nQueueLimitWorkerMin: min },
            load: loadOf(queued, queued),
            queuedByType,
            wantedTypes,
          });
          const wanted = wantedTypes.map((type) => group(type, Infinity));
          const { groups } = applyLimits(wanted, [...resourceTypeLimits(now), queueLimit(now)]);
          const part = Math.ceil(min / count);
          for (const { requirements: its, count: added } of groups) {
            expect(added + (queuedByType.get(its.resourceType) ?? 0)).to.be.at.most(part);
          }
          const room = wantedTypes.map((type) => Math.max(0, part - (queuedByType.get(type) ?? 0)));
          const free = Math.max(0, workerBound(now.limits, now.load.running).atMost - queued);
          const most = room.reduce((a, b) => a + b, 0);
          expect(total(groups)).to.equal(Math.min(free, most));
        },
      ),
      { numRuns: 1000 },
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
    const first = { code: 'max-workers', message: 'max-workers' };
    const second = { code: 'queue-limit', message: 'queue-limit' };
    expect(allowed).to.deep.equal({
      groups: [group('SCORE', 4), group('MCORE', 2)],
      reasons: [second, first],
      cuts: [
        { group: group('MCORE', Infinity), to: 6, reason: first },
        { group: group('MCORE', 6), to: 2, reason: second },
      ],
    });
  });
});

describe('the room in limits', () => {
  const dear = (atMost: number): Limit => ({ ...limit(atMost, 'cores'), cost: ({ nCore }) => nCore });
  const ofOne: Limit = { ...limit(0, 'type'), of: () => true };

  it('is the least that all workers share; one of a cost counts where it is reached, and one of a type never', () => {
    expect(roomIn([])).to.equal(Infinity);
    expect(roomIn([limit(7, 'a'), limit(5.5, 'b'), dear(1), ofOne])).to.equal(5);
    expect(roomIn([limit(7, 'a'), dear(0)])).to.equal(0);
    expect(roomIn([limit(-2, 'a')])).to.equal(0);
  });
});
