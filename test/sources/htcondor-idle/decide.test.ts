import { expect } from 'chai';
import { decide } from '../../../src/sources/htcondor-idle/decide.ts';
import type { DemandFacts } from '../../../src/sources/htcondor-idle/demand.ts';
import type { Matching } from '../../../src/sources/htcondor-idle/model.ts';
import { bySize, factsOf, needOf, shapeOf, spaceOf, termsOf } from '../../support/idle-demand.ts';

const small = shapeOf('small', 1);
const big = shapeOf('big', 8);
const none = termsOf({});

/** The new workers by shape; those of none are left out. */
function workersOf(facts: Partial<DemandFacts>, terms = none): Record<string, number> {
  const { shapes } = decide(factsOf(facts), terms);
  return Object.fromEntries(
    shapes.flatMap(({ shape, workers }) => (workers > 0 ? [[shape.key, workers]] : [])),
  );
}

const jobsOf = (facts: Partial<DemandFacts>, terms = none) => {
  const { jobs } = decide(factsOf(facts), terms);
  return Object.fromEntries(Object.entries(jobs).filter(([, count]) => count > 0));
};

const only = (...pairs: readonly (readonly [string, string])[]): Matching['shape'] => {
  const known = new Set(pairs.map((pair) => pair.join(' ')));
  return ({ key }, shape) => known.has(`${key.replace('schedd#', '')} ${shape.key}`);
};

describe('new workers for waiting jobs', () => {
  it('hole 8: do not depend on resources that jobs alone have, and these take no time', () => {
    const made = new Map(Array.from({ length: 100 }, (_, at) => [`made${at}`, 1]));
    let read = 0;
    const request = Object.assign(new Map([...needOf('a', 1).request, ...made]), {
      get(name: string) {
        read++;
        return Map.prototype.get.call(this, name) as number | undefined;
      },
    });
    const need = { ...needOf('a', 3), request, exact: request };
    const matching = { shape: () => true, space: () => false, pool: () => false };
    expect(workersOf({ needs: [need], shapes: [small], matching })).to.deep.equal({ small: 3 });
    expect(read, 'amounts that are looked at').to.be.below(20);
  });

  for (const [title, needs, shapes, expected] of [
    ['none for no job', [], [small, big], {}],
    ['one for one job', [needOf('a', 1)], [small], { small: 1 }],
    ['as many whole machines as the jobs fill', [needOf('a', 17)], [big], { big: 3 }],
    [
      'the small machine for a job that fits a small and a big one',
      [needOf('a', 1)],
      [big, small],
      { small: 1 },
    ],
    [
      'the big machine for a job that the small one cannot hold',
      [needOf('a', 1, { cpus: 2 })],
      [small, big],
      { big: 1 },
    ],
    [
      'no small machine for small jobs that the room of a big one holds',
      [needOf('s', 4), needOf('b', 1, { cpus: 4 })],
      [small, big],
      { big: 1 },
    ],
    [
      'small machines for those that it does not hold',
      [needOf('s', 6), needOf('b', 1, { cpus: 4 })],
      [small, big],
      { big: 1, small: 2 },
    ],
    [
      'full big machines where they are cheaper for each job, and small ones for the rest',
      [needOf('a', 10)],
      [small, shapeOf('big', 8, { cost: 7 })],
      { big: 1, small: 2 },
    ],
    ['by memory where that runs out first', [needOf('a', 4, { memory: 8192 })], [big], { big: 2 }],
    ['by disk where that runs out first', [needOf('a', 4, { disk: 41_943_040 })], [big], { big: 2 }],
    [
      'by GPUs where they run out first',
      [needOf('a', 5, { gpus: 1 })],
      [shapeOf('gpu', 16, { has: { gpus: 2 } })],
      { gpu: 3 },
    ],
    [
      'by a resource of the site itself',
      [needOf('a', 5, { tapes: 2 })],
      [shapeOf('tape', 16, { has: { tapes: 5 } })],
      { tape: 3 },
    ],
    [
      'one core each for jobs that ask for none',
      [needOf('a', 4, { cpus: 0 })],
      [shapeOf('two', 2)],
      { two: 2 },
    ],
    [
      'by rounded memory: 129 MiB are 256',
      [needOf('a', 16, { cpus: 1, memory: 129 })],
      [shapeOf('two', 16, { has: { memory: 2048 } })],
      { two: 2 },
    ],
    [
      'one machine for a job that asks for all of it, though it would be larger when rounded',
      [needOf('a', 2, { memory: 2000 })],
      [shapeOf('odd', 1, { has: { memory: 2000 } })],
      { odd: 2 },
    ],
    [
      'the last job of a machine unrounded where it fits so',
      [needOf('a', 2, { memory: 200 })],
      [shapeOf('tight', 2, { has: { memory: 460 } })],
      { tight: 1 },
    ],
    [
      'one for each job where the slot of the shape is static',
      [needOf('a', 3)],
      [shapeOf('static', 8, { oneJob: true })],
      { static: 3 },
    ],
  ] as const)
    it(`asks for ${title}`, () => {
      expect(workersOf({ needs, shapes })).to.deep.equal(expected);
    });

  it('counts a job once that two shapes of two queues take', () => {
    const facts = { needs: [needOf('a', 3)], shapes: [small, shapeOf('other', 1, { cost: 2 })] };
    expect(workersOf(facts)).to.deep.equal({ small: 3 });
    expect(jobsOf(facts)).to.deep.equal({ idle: 3, served: 3 });
  });

  it('takes the word of HTCondor against the sizes: a machine that refuses the job gets none', () => {
    const facts = {
      needs: [needOf('a', 2)],
      shapes: [small, big],
      matching: { ...bySize, shape: only(['a', 'big']) },
    };
    expect(workersOf(facts)).to.deep.equal({ big: 1 });
  });

  it('takes the word of HTCondor for a machine whose ad is smaller than the job: one job each', () => {
    const facts = {
      needs: [needOf('a', 3, { cpus: 9 })],
      shapes: [big],
      matching: { ...bySize, shape: () => true },
    };
    expect(workersOf(facts)).to.deep.equal({ big: 3 });
  });

  it('leaves a resource out of account that the machine does not count', () => {
    const facts = {
      needs: [needOf('a', 3, { tapes: 9 })],
      shapes: [big],
      matching: { ...bySize, shape: () => true },
    };
    expect(workersOf(facts)).to.deep.equal({ big: 1 });
  });

  it('does not mind the order of needs, shapes and spaces', () => {
    const needs = [needOf('a', 7), needOf('b', 3, { cpus: 3 }), needOf('c', 2, { memory: 9000 })];
    const shapes = [small, big, shapeOf('mid', 4)];
    const spaces = [spaceOf('x', 3), spaceOf('y', 1), spaceOf('z', 8)];
    const reversed = { needs: needs.toReversed(), shapes: shapes.toReversed(), spaces: spaces.toReversed() };
    expect(workersOf(reversed)).to.deep.equal(workersOf({ needs, shapes, spaces }));
  });
});

describe('what is there already', () => {
  it('takes jobs first: a free slot, and a worker on its way', () => {
    const facts = {
      needs: [needOf('a', 11)],
      shapes: [small],
      spaces: [spaceOf('slot1@x', 2), spaceOf('worker:1', 8, { shape: 'big' })],
    };
    expect(workersOf(facts)).to.deep.equal({ small: 1 });
    expect(jobsOf(facts)).to.deep.equal({ idle: 11, fitting: 10, served: 1 });
  });

  it('takes one job where the slot is static, however large', () => {
    const facts = { needs: [needOf('a', 3)], shapes: [small], spaces: [spaceOf('x', 8, { oneJob: true })] };
    expect(workersOf(facts)).to.deep.equal({ small: 2 });
  });

  it('leaves the large slot to the large job', () => {
    const facts = {
      needs: [needOf('s', 1), needOf('b', 1, { cpus: 8 })],
      shapes: [small, big],
      spaces: [spaceOf('large', 8, { oneJob: true }), spaceOf('little', 1, { oneJob: true })],
    };
    expect(workersOf(facts)).to.deep.equal({});
  });

  it('takes no job that HTCondor refuses there', () => {
    const facts = {
      needs: [needOf('a', 1)],
      shapes: [small],
      spaces: [spaceOf('x', 8)],
      matching: { ...bySize, space: () => false },
    };
    expect(workersOf(facts)).to.deep.equal({ small: 1 });
  });

  it('asks HTCondor once for all slots of one kind', () => {
    let questions = 0;
    const matching = { ...bySize, space: () => (questions++, false) };
    const spaces = Array.from({ length: 100 }, (_, index) => spaceOf(`slot${index}`, 4, { kind: 'alike' }));
    const jobs = jobsOf({ needs: [needOf('a', 1)], shapes: [small], spaces, matching });
    expect(jobs).to.deep.equal({ idle: 1, served: 1 });
    expect(questions).to.equal(1);
  });

  it('takes the jobs that it was asked for, also where the packing had saved a machine', () => {
    const wide = shapeOf('wide', 8, { cost: 2, has: { memory: 6145 } });
    const facts = {
      needs: [needOf('a', 1, { memory: 0 }), needOf('b', 14, { memory: 769 })],
      shapes: [wide, shapeOf('small', 1, { has: { memory: 7168 } })],
    };
    expect(workersOf(facts)).to.deep.equal({ wide: 2 });
    const spaces = [1, 2].map((id) =>
      spaceOf(`worker:${id}`, 8, { kind: 'wide', shape: 'wide', has: { memory: 6145 } }),
    );
    expect(workersOf({ ...facts, spaces })).to.deep.equal({});
  });

  it('counts what is left of a worker of ours, which matches by its whole machine', () => {
    const facts = {
      needs: [needOf('a', 3, { cpus: 2 })],
      shapes: [big],
      spaces: [spaceOf('slot1@w', 3, { shape: 'big' })],
      matching: { ...bySize, space: () => true },
    };
    expect(jobsOf(facts)).to.deep.equal({ idle: 3, fitting: 1, served: 2 });
  });
});

describe('what is unknown', () => {
  const why = { code: 'htcondor-idle-unknown', message: 'no answer' };

  it('lets nothing grow while the spaces are unknown', () => {
    const decision = decide(factsOf({ needs: [needOf('a', 3)], shapes: [small], spaces: why }), none);
    expect(decision.shapes[0]?.workers).to.equal(0);
    expect(decision.jobs).to.include({ idle: 3, unknown: 3, unservable: 0, capped: 0 });
    expect(decision.reasons.get('small')?.at(-1)).to.deep.equal({ n: 0, unit: 'workers', reason: why });
  });

  it('lets the jobs of other schedds grow while one is silent, and names it', () => {
    const decision = decide(factsOf({ needs: [needOf('a', 1)], shapes: [small], unknown: [why] }), none);
    expect(decision.shapes[0]?.workers).to.equal(1);
    expect(decision.reasons.get('small')?.[1]).to.deep.equal({ n: 1, unit: 'jobs', reason: why });
  });

  it('lets nothing grow by a shape without an answer, and calls its jobs unknown, not unservable', () => {
    const matching = { ...bySize, shape: () => undefined };
    const decision = decide(factsOf({ needs: [needOf('a', 2)], shapes: [small], matching }), none);
    expect(decision.shapes[0]?.workers).to.equal(0);
    expect(decision.jobs).to.include({ unknown: 2, unservable: 0 });
  });

  it('goes on with the shapes that have one', () => {
    const matching: Matching = {
      ...bySize,
      shape: (_, shape) => (shape.key === 'small' ? undefined : true),
    };
    expect(workersOf({ needs: [needOf('a', 2)], shapes: [small, big], matching })).to.deep.equal({ big: 1 });
  });

  it('lets nothing grow for as many jobs as slots without an answer would take', () => {
    const facts = {
      needs: [needOf('a', 5)],
      shapes: [small],
      spaces: [spaceOf('x', 2)],
      matching: { ...bySize, space: () => undefined },
    };
    expect(jobsOf(facts)).to.deep.equal({ idle: 5, unknown: 2, served: 3 });
  });
});

describe('jobs that nothing takes', () => {
  const unservable = (facts: Partial<DemandFacts>) =>
    decide(factsOf(facts), none).unservable.map(({ key }) => key);
  const huge = needOf('huge', 2, { cpus: 99 });

  it('are unservable, as those larger than every whole machine, and count no worker', () => {
    const facts = { needs: [huge, needOf('a', 1)], shapes: [small, big], spaces: [spaceOf('x', 1)] };
    expect(unservable(facts)).to.deep.equal(['schedd#huge']);
    expect(jobsOf(facts)).to.deep.equal({ idle: 3, fitting: 1, unservable: 2 });
  });

  it('wait for the pool where a slot of it takes them, claimed or not', () => {
    const facts = { needs: [huge], shapes: [small], matching: { ...bySize, pool: () => true } };
    expect(unservable(facts)).to.deep.equal([]);
    expect(jobsOf(facts)).to.deep.equal({ idle: 2, waiting: 2 });
  });

  it('wait for the pool where its one static slot takes one at a time', () => {
    const facts = { needs: [huge], shapes: [small], spaces: [spaceOf('x', 128, { oneJob: true })] };
    expect(unservable(facts)).to.deep.equal([]);
    expect(jobsOf(facts)).to.deep.equal({ idle: 2, fitting: 1, waiting: 1 });
  });

  it('are unknown while HTCondor did not say whether a slot of the pool takes them', () => {
    const facts = { needs: [huge], shapes: [small], matching: { ...bySize, pool: () => undefined } };
    expect(unservable(facts)).to.deep.equal([]);
    expect(jobsOf(facts)).to.deep.equal({ idle: 2, unknown: 2 });
  });
});
