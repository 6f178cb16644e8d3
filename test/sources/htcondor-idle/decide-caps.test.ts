import { expect } from 'chai';
import { decide } from '../../../src/sources/htcondor-idle/decide.ts';
import type { DemandFacts, QueueTerms, ShapeWorkers } from '../../../src/sources/htcondor-idle/demand.ts';
import { share } from '../../../src/sources/htcondor-idle/grow.ts';
import { factsOf, needOf, shapeOf, spaceOf, termsOf } from '../../support/idle-demand.ts';

const alive = (living: number, starting = 0): ShapeWorkers => ({ living, starting });

interface Case {
  readonly title: string;
  readonly facts: Partial<DemandFacts>;
  readonly terms?: Readonly<Record<string, Partial<QueueTerms>>>;
  readonly workers: Readonly<Record<string, number>>;
  /** The last links of the chain of `queue`, `q` where it is missing: number, code. */
  readonly chain?: readonly (readonly [number, string])[];
  readonly queue?: string;
}

const q = shapeOf('q', 1);
const costly = shapeOf('costly', 1, { cost: 5 });
const ten = [needOf('a', 10)];
const closed = { code: 'paused', message: 'paused since yesterday: power cut' };

const cases: readonly Case[] = [
  {
    title: 'most of a shape bounds living and new workers together',
    facts: { needs: ten, shapes: [shapeOf('q', 1, { most: 7 })], workers: new Map([['q', alive(3)]]) },
    workers: { q: 4 },
    chain: [
      [10, 'htcondor-idle-packed'],
      [4, 'htcondor-idle-most'],
    ],
  },
  {
    title: 'no worker where more live than most, as after it was lowered',
    facts: { needs: ten, shapes: [shapeOf('q', 1, { most: 2 })], workers: new Map([['q', alive(3)]]) },
    workers: {},
    chain: [[0, 'htcondor-idle-most']],
  },
  ...(
    [
      ['one may try while workers hang that never joined', { late: 3, joined: 0, onItsWay: 0 }, 1],
      ['none beside the one that tries', { late: 3, joined: 0, onItsWay: 1 }, 0],
      ['as many as have joined may be on their way', { late: 1, joined: 5, onItsWay: 2 }, 3],
    ] as const
  ).map(([title, lateness, workers]): Case => ({
    title: `of a shape with late workers: ${title}`,
    facts: { needs: ten, shapes: [q], workers: new Map([['q', { ...alive(9), lateness }]]) },
    workers: workers === 0 ? {} : { q: workers },
    chain: [
      [10, 'htcondor-idle-packed'],
      [workers, 'htcondor-idle-late'],
    ],
  })),
  {
    title: 'the next matching shape takes over from one whose workers are late',
    facts: {
      needs: ten,
      shapes: [q, costly],
      workers: new Map([['q', { ...alive(1), lateness: { late: 1, joined: 0, onItsWay: 0 } }]]),
    },
    workers: { q: 1, costly: 9 },
    queue: 'costly',
    chain: [[9, 'htcondor-idle-takes-over']],
  },
  {
    title: 'most of a queue bounds its shapes together',
    facts: {
      needs: [needOf('a', 3), needOf('b', 2, { cpus: 4 })],
      shapes: [shapeOf('q/small', 1), shapeOf('q/big', 4)],
      workers: new Map([['q/small', alive(1)]]),
    },
    terms: { q: { most: 3 } },
    workers: { 'q/big': 2 },
    chain: [[2, 'htcondor-idle-most']],
  },
  {
    title: 'the next matching shape takes over when the cheapest is at its cap',
    facts: { needs: ten, shapes: [shapeOf('q', 1, { most: 4 }), costly] },
    workers: { q: 4, costly: 6 },
    queue: 'costly',
    chain: [[6, 'htcondor-idle-takes-over']],
  },
  {
    title: 'a closed queue gets none and says why; the next one takes over',
    facts: { needs: ten, shapes: [q, costly] },
    terms: { q: { closed } },
    workers: { costly: 10 },
    chain: [
      [10, 'htcondor-idle-packed'],
      [0, 'paused'],
    ],
  },
  {
    title: 'perCycle paces, and nothing takes over',
    facts: { needs: ten, shapes: [q, costly] },
    terms: { q: { perCycle: 4 } },
    workers: { q: 4 },
    chain: [
      [10, 'htcondor-idle-packed'],
      [4, 'htcondor-idle-per-cycle'],
    ],
  },
  {
    title: 'perCycle leaves each shape of the queue its part',
    facts: {
      needs: [needOf('a', 8), needOf('b', 2, { cpus: 4 })],
      shapes: [shapeOf('q/small', 1), shapeOf('q/big', 4)],
    },
    terms: { q: { perCycle: 5 } },
    workers: { 'q/small': 4, 'q/big': 1 },
  },
  {
    title: 'nonePending adds none while a worker of the queue does not run yet',
    facts: { needs: ten, shapes: [q], workers: new Map([['q', alive(2, 1)]]) },
    terms: { q: { nonePending: true } },
    workers: {},
    chain: [[0, 'htcondor-idle-none-pending']],
  },
  {
    title: 'nonePending adds all once they run',
    facts: { needs: ten, shapes: [q], workers: new Map([['q', alive(2)]]) },
    terms: { q: { nonePending: true } },
    workers: { q: 10 },
  },
  {
    title: 'pressure lets its share of the demand wait for the start',
    facts: { needs: [needOf('a', 40)], shapes: [q] },
    terms: { q: { pressure: { least: 5, share: 0.25 } } },
    workers: { q: 10 },
    chain: [
      [40, 'htcondor-idle-packed'],
      [10, 'htcondor-idle-pressure'],
    ],
  },
  {
    title: 'pressure counts those that wait already, as demand and as waiting',
    facts: {
      needs: [needOf('a', 40)],
      shapes: [q],
      workers: new Map([['q', alive(8, 8)]]),
      spaces: Array.from({ length: 8 }, (_, id) => spaceOf(`worker:${id}`, 1, { kind: 'w', shape: 'q' })),
    },
    terms: { q: { pressure: { least: 5, share: 0.25 } } },
    workers: { q: 2 },
  },
  {
    title: 'pressure lets the least wait whatever the demand',
    facts: { needs: ten, shapes: [q], workers: new Map([['q', alive(9, 2)]]) },
    terms: { q: { pressure: { least: 5, share: 0.25 } } },
    workers: { q: 3 },
  },
  {
    title: 'several caps: the tightest counts, and perCycle comes last',
    facts: { needs: [needOf('a', 40)], shapes: [shapeOf('q', 1, { most: 30 })] },
    terms: { q: { pressure: { least: 20, share: 0.1 }, perCycle: 3 } },
    workers: { q: 3 },
    chain: [
      [40, 'htcondor-idle-packed'],
      [30, 'htcondor-idle-most'],
      [20, 'htcondor-idle-pressure'],
      [3, 'htcondor-idle-per-cycle'],
    ],
  },
  {
    title: 'a cap that cuts nothing gives no reason',
    facts: { needs: ten, shapes: [shapeOf('q', 1, { most: 10 })] },
    terms: { q: { perCycle: 10, pressure: { least: 10, share: 0.1 } } },
    workers: { q: 10 },
    chain: [[10, 'htcondor-idle-packed']],
  },
];

describe('caps of new workers', () => {
  for (const { title, facts, terms = {}, workers, chain = [], queue = 'q' } of cases)
    it(title, () => {
      const decision = decide(factsOf(facts), termsOf(terms));
      const counts = decision.shapes.map(({ shape, workers: count }) => [shape.key, count] as const);
      expect(Object.fromEntries(counts.filter(([, count]) => count > 0))).to.deep.equal(workers);
      const steps = decision.reasons.get(queue) ?? [];
      const last = chain.length === 0 ? [] : steps.slice(-chain.length);
      expect(last.map(({ n, reason }) => [n, reason.code])).to.deep.equal(chain);
    });

  it('each link of a cap carries both numbers', () => {
    const facts = { needs: ten, shapes: [shapeOf('q', 1, { most: 7 })], workers: new Map([['q', alive(3)]]) };
    const [, , last] = decide(factsOf(facts), termsOf({})).reasons.get('q') ?? [];
    expect(last?.reason.message).to.equal('3 of most 7 workers of q are alive');
  });
});

describe('the chain of a queue', () => {
  it('goes from the idle jobs to the workers, and names each loss', () => {
    const limited = needOf('limited', 5, {}, { concurrency: new Map([['license', 1]]) });
    const facts = factsOf({
      needs: [needOf('a', 100), needOf('huge', 2, { cpus: 99 }), needOf('wide', 3, { cpus: 8 }), limited],
      shapes: [shapeOf('q', 4), shapeOf('wide', 12, { cost: 100 })],
      spaces: [spaceOf('x', 20)],
      free: new Map([['license', 1]]),
    });
    const { reasons } = decide(facts, termsOf({ q: { perCycle: 10 } }));
    const steps = (reasons.get('q') ?? []).map(({ n, unit, reason }) => `${n} ${unit}: ${reason.message}`);
    expect(steps).to.deep.equal([
      '110 jobs: 110 idle jobs found no slot in a negotiation cycle',
      '105 jobs: 5 jobs and the machines of the queue do not match; 2 of them match nothing at all',
      '101 jobs: 4 jobs wait for a concurrency limit',
      '97 jobs: free slots and workers on their way take 4 jobs',
      '93 jobs: cheaper workers of other queues take 4 jobs',
      '24 workers: 93 jobs need 24 workers of q',
      '10 workers: perCycle lets 10 be added at each look',
    ]);
  });

  it('says so where no job waits', () => {
    const { reasons } = decide(factsOf({ shapes: [q] }), termsOf({}));
    expect(reasons.get('q')?.map(({ n, reason }) => [n, reason.code])).to.deep.equal([
      [0, 'htcondor-idle-jobs'],
    ]);
  });
});

describe('parts of a pace', () => {
  for (const [counts, atMost, parts] of [
    [[8, 2], 5, [4, 1]],
    [[9, 1], 5, [4, 1]],
    [[1, 1, 1], 2, [1, 1, 0]],
    [[99, 1], 5, [4, 1]],
    [[1, 99, 1], 2, [1, 1, 0]],
    [[0, 99, 1], 2, [0, 1, 1]],
    [[3], 0, [0]],
    [[2, 1], 9, [2, 1]],
  ] as const)
    it(`of ${counts.join(' and ')} for ${atMost} are ${parts.join(' and ')}`, () => {
      expect(share(counts, atMost)).to.deep.equal(parts);
    });
});
