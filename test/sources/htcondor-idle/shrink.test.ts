import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { DrainAnswer, DrainWish } from '../../../src/clients/htcondor/drain.ts';
import type { OwnStartd, Unknown } from '../../../src/sources/htcondor-idle/look/result.ts';
import { queueStates } from '../../../src/sources/htcondor-idle/shrink/queue-states.ts';
import { Drainer, drainCheck } from '../../../src/sources/htcondor-idle/shrink/drainer.ts';
import {
  type QueueState,
  surplusOf,
  type SurplusFacts,
} from '../../../src/sources/htcondor-idle/shrink/surplus.ts';

const startd = (workerId: number, more: Partial<OwnStartd> = {}): OwnStartd => ({
  workerId,
  slot: `slot1@${workerId}`,
  queue: 'Q',
  shape: 'Q/small',
  startedAt: 1000 * workerId,
  claims: 0,
  leaving: false,
  ...more,
});

interface Case {
  readonly startds: readonly OwnStartd[];
  readonly most?: Readonly<Record<string, number>>;
  readonly mostOfQueues?: Readonly<Record<string, number>>;
  readonly queues?: Readonly<Record<string, QueueState>>;
  /** Ids that our own record has as living; default: those of the startds. */
  readonly living?: readonly number[];
}

function factsOf({
  startds,
  most = {},
  mostOfQueues = {},
  queues = { Q: 'asks' },
  living,
}: Case): SurplusFacts {
  const ids = living ?? startds.map(({ workerId }) => workerId);
  const shapeOf = (id: number) => startds.find(({ workerId }) => workerId === id)?.shape ?? 'Q/small';
  return {
    startds,
    living: ids.map((workerId) => ({ workerId, queue: 'Q', shape: shapeOf(workerId) })),
    queues: new Map(Object.entries(queues)),
    most: new Map(Object.entries({ 'Q/small': Infinity, 'Q/big': Infinity, ...most })),
    mostOfQueues: new Map(Object.entries(mostOfQueues)),
  };
}

const leaving = (one: Case) =>
  surplusOf(factsOf(one)).map((leave) => `${leave.startd.workerId} ${leave.why}`);

describe('workers that are too many', () => {
  const five = [1, 2, 3, 4, 5].map((id) => startd(id));

  it('are none while the shape has no bound, or as many as its most', () => {
    expect(leaving({ startds: five })).to.deep.equal([]);
    expect(leaving({ startds: five, most: { 'Q/small': 5 } })).to.deep.equal([]);
  });

  it('leave after a lowered most: those without a claim first, the youngest of them first', () => {
    const some = [
      startd(1),
      startd(2, { claims: 2 }),
      startd(3),
      startd(4, { claims: 1 }),
      startd(5, { claims: 3 }),
    ];
    expect(leaving({ startds: some, most: { 'Q/small': 3 } })).to.deep.equal(['3 over-most', '1 over-most']);
    expect(leaving({ startds: some, most: { 'Q/small': 1 } })).to.deep.equal(
      ['3', '1', '4', '2'].map((id) => `${id} over-most`),
    );
  });

  it('leave after a lowered most of the whole queue, whatever their shapes, and those above the most of a shape count', () => {
    const some = [
      startd(1, { claims: 1 }),
      startd(2),
      startd(3, { shape: 'Q/big', claims: 2 }),
      startd(4, { shape: 'Q/big' }),
    ];
    const mostOfQueues = { Q: 2 };
    expect(leaving({ startds: some, mostOfQueues })).to.deep.equal(
      ['4', '2'].map((id) => `${id} over-queue-most`),
    );
    expect(leaving({ startds: some, mostOfQueues, most: { 'Q/big': 1 } })).to.deep.equal([
      '4 over-most',
      '2 over-queue-most',
    ]);
  });

  it('are counted shape by shape', () => {
    const some = [startd(1), startd(2), startd(3, { shape: 'Q/big' }), startd(4, { shape: 'Q/big' })];
    expect(leaving({ startds: some, most: { 'Q/small': 2, 'Q/big': 1 } })).to.deep.equal(['4 over-most']);
  });

  it('take those for gone that leave already: the same decision again drains no further one', () => {
    const some = five.map((one) => (one.workerId > 3 ? { ...one, leaving: true } : one));
    expect(leaving({ startds: some, most: { 'Q/small': 3 } })).to.deep.equal([]);
  });

  it('count only where both the pool and our own record know them', () => {
    // Workers 4 and 5 have ended, and their ads have not; worker 6 lives and has not joined.
    expect(leaving({ startds: five, most: { 'Q/small': 3 }, living: [1, 2, 3, 6] })).to.deep.equal([]);
  });

  it('are all those of a drained queue, and of one that is gone', () => {
    const some = [startd(1, { claims: 1 }), startd(2)];
    expect(leaving({ startds: some, queues: { Q: 'drained' } })).to.deep.equal([
      '2 queue-drained',
      '1 queue-drained',
    ]);
    expect(leaving({ startds: some, queues: { Q: 'gone' } })).to.deep.equal(['2 shape-gone', '1 shape-gone']);
  });

  it('are all those of a shape that its queue has no more', () => {
    expect(leaving({ startds: [startd(1, { shape: 'Q/old' })] })).to.deep.equal(['1 shape-gone']);
  });

  it('are none of a queue in doubt: a mistake in its options ends no worker', () => {
    expect(leaving({ startds: five, most: { 'Q/small': 0 }, queues: {} })).to.deep.equal([]);
  });
});

describe('queues of living workers', () => {
  it('ask, are drained or are gone; one in doubt has no entry', () => {
    const reasons: Readonly<Record<string, string>> = {
      drained: 'draining',
      removed: 'queue-removed',
      followed: 'queue-removed',
      refused: 'queue-refused',
    };
    const desk = {
      queues: () => ['asks', 'drained', 'other', 'followed'],
      reasons: (queue: string) => [{ code: reasons[queue] ?? 'max-workers', message: '' }],
    };
    const own = ['asks', 'drained', 'followed'].map((name) => ({ name }));
    const living = ['asks', 'drained', 'other', 'removed', 'refused'].map((queue) => ({ queue }));
    expect(Object.fromEntries(queueStates(own, living, desk))).to.deep.equal({
      asks: 'asks',
      drained: 'drained',
      followed: 'gone',
      other: 'gone',
      removed: 'gone',
    });
  });
});

describe('orders to leave', () => {
  const { signal } = new AbortController();
  const silent = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };

  function drainerOf(answer: (wish: DrainWish) => Promise<DrainAnswer>, now: () => number = () => 1000) {
    const orders: DrainWish[] = [];
    const drain = (wish: DrainWish) => {
      orders.push(wish);
      return answer(wish);
    };
    const parts = { pool: { drain }, factory: 'f1', log: silent, now, freshFor: 500 };
    return { drainer: new Drainer(parts), orders };
  }

  const whole = { at: 900, startds: [startd(1, { claims: 1 }), startd(2)], unknown: [] };
  const tooMany = factsOf({ startds: whole.startds, most: { 'Q/small': 0 } });
  const unknown = (part: Unknown['part']): Unknown => ({
    part,
    name: '',
    reason: { code: 'x', message: 'x' },
  });

  it('go to a slot of each startd, the idle one first', async () => {
    const { drainer, orders } = drainerOf(async () => 'draining');
    const { drained } = await drainer.shrink(whole, tooMany, signal);
    expect(orders.map(({ slot }) => slot)).to.deep.equal(['slot1@2', 'slot1@1']);
    expect(orders.map(({ reason }) => reason)).to.deep.equal(
      Array.from({ length: 2 }, () => 'thresher f1: its shape has more workers than its most'),
    );
    expect(drained.map((leave) => leave.startd.workerId)).to.have.members([1, 2]);
  });

  for (const [what, look] of [
    ['that is old', { ...whole, at: 400 }],
    ['from the future, after a clock was set back', { ...whole, at: 1100 }],
    ['without an answer of the collector', { ...whole, startds: undefined }],
    ['whose collector failed', { ...whole, unknown: [unknown('collector')] }],
    ['whose slots are unknown', { ...whole, unknown: [unknown('slots')] }],
  ] as const)
    it(`are none on a look ${what}`, async () => {
      const { drainer, orders } = drainerOf(async () => 'draining');
      expect(await drainer.shrink(look, tooMany, signal)).to.deep.equal({
        drained: [],
        refused: [],
        failed: [],
      });
      expect(orders).to.deep.equal([]);
    });

  it('are given although a schedd is unknown: its jobs are in the claims', async () => {
    const { drainer, orders } = drainerOf(async () => 'draining');
    await drainer.shrink({ ...whole, unknown: [unknown('schedd')] }, tooMany, signal);
    expect(orders).to.have.length(2);
  });

  it('stop once the look has become old meanwhile', async () => {
    let now = 1000;
    const many = Array.from({ length: 20 }, (_, at) => startd(at + 1));
    const { drainer, orders } = drainerOf(
      async () => {
        now = 5000;
        return 'draining';
      },
      () => now,
    );
    await drainer.shrink(
      { ...whole, startds: many },
      factsOf({ startds: many, most: { 'Q/small': 0 } }),
      signal,
    );
    expect(orders.length).to.be.within(1, 4);
  });

  it('are given again after a lost answer, and after a startd that was restarted', async () => {
    const lost = new HTCondorError({ code: 'condor-timeout', message: 'lost', maybeDone: true });
    const { drainer, orders } = drainerOf(async () => {
      throw lost;
    });
    const { failed } = await drainer.shrink(whole, tooMany, signal);
    expect(failed.map(({ reason }) => reason.code)).to.deep.equal(['condor-timeout', 'condor-timeout']);
    await drainer.shrink(whole, tooMany, signal);
    expect(orders).to.have.length(4);
  });

  it('carry the condition of an idle startd, or of one whose jobs may run for a day at least', () => {
    expect(drainCheck('f"1', { workerId: 7, claims: 0 })).to.equal(
      'ThresherFactory =?= "f\\"1" && string(ThresherWorker) =?= "7" && (State =!= "Claimed" && State =!= "Preempting")',
    );
    expect(drainCheck('f1', { workerId: 7, claims: 2 })).to.match(/RetirementTimeRemaining >= 86400\)$/);
  });
});
