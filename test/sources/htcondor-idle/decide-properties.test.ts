import { expect } from 'chai';
import fc from 'fast-check';
import { decide } from '../../../src/sources/htcondor-idle/decide.ts';
import type { DemandFacts } from '../../../src/sources/htcondor-idle/demand.ts';
import type { Matching, Need, Shape, Space } from '../../../src/sources/htcondor-idle/model.ts';
import { factsOf, needOf, shapeOf, spaceOf, termsOf } from '../../support/idle-demand.ts';

const runs = 300;
const none = termsOf({});

const asked = fc.record({
  cpus: fc.nat({ max: 9 }),
  memory: fc.nat({ max: 9000 }),
  gpus: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { arbitrary: fc.nat({ max: 2 }), weight: 1 }),
});
const needsOf = (most: number) =>
  fc
    .array(fc.tuple(asked, fc.integer({ min: 1, max: most })), { maxLength: 6 })
    .map((all) => all.map(([amounts, count], index) => needOf(`${index}`, count, amounts)));
const machine = fc.record({
  cpus: fc.integer({ min: 1, max: 12 }),
  memory: fc.integer({ min: 128, max: 20_000 }),
  gpus: fc.nat({ max: 3 }),
});
const someShapes = fc
  .array(fc.tuple(machine, fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 4 })
  .map((all) =>
    all.map(([has, cost, oneJob], index) => shapeOf(`q${index % 2}/s${index}`, 1, { has, cost, oneJob })),
  );
const someSpaces = fc
  .array(fc.tuple(machine, fc.boolean()), { maxLength: 4 })
  .map((all) => all.map(([has, oneJob], index) => spaceOf(`x${index}`, 1, { has, oneJob })));

/** Machines match by their size, and by a coin for each pair: HTCondor's word is any to the decision. */
function matchingBy(seed: number): Matching {
  const coin = (text: string) => {
    let hash = seed;
    for (const char of text) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) >>> 0;
    return hash % 4 !== 0;
  };
  const fits = (need: Need, has: Shape['resources']) =>
    [...need.exact].every(([name, amount]) => amount <= (has.get(name) ?? 0));
  return {
    shape: (need, { key, resources }) => fits(need, resources) && coin(`${need.key} ${key}`),
    space: (need, { name, free }) => fits(need, free) && coin(`${need.key} ${name}`),
    pool: () => false,
  };
}

const someFacts = fc
  .record({ needs: needsOf(30), shapes: someShapes, spaces: someSpaces, seed: fc.nat() })
  .map(({ seed, ...facts }) => factsOf({ ...facts, matching: matchingBy(seed) }));

const isKnown = (facts: DemandFacts): readonly Space[] => ('code' in facts.spaces ? [] : facts.spaces);

describe('whatever the jobs and machines are', () => {
  it('each job has one fate', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const { idle, ...fates } = decide(facts, none).jobs;
        expect(idle).to.equal(facts.needs.reduce((sum, { count }) => sum + count, 0));
        expect(Object.values(fates).reduce((sum, count) => sum + count, 0)).to.equal(idle);
        for (const count of Object.values(fates)) expect(count).to.be.at.least(0);
      }),
      { numRuns: runs },
    );
  });

  it('without caps, all that a shape takes and no space has gets a worker', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const { jobs } = decide(facts, none);
        const taken = facts.needs.filter((need) =>
          facts.shapes.some((shape) => facts.matching.shape(need, shape)),
        );
        const servable = taken.reduce((sum, { count }) => sum + count, 0);
        expect(jobs.capped).to.equal(0);
        expect(jobs.served).to.be.at.most(servable);
        expect(jobs.served + jobs.fitting).to.be.at.least(servable);
      }),
      { numRuns: runs },
    );
  });

  it('unservable are exactly the needs that no shape and no slot takes', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const { matching, needs, shapes } = facts;
        const lost = needs.filter(
          (need) =>
            !shapes.some((shape) => matching.shape(need, shape)) &&
            !isKnown(facts).some((space) => matching.space(need, space)),
        );
        const found = decide(facts, none).unservable;
        expect(found.map(({ key }) => key).toSorted()).to.deep.equal(lost.map(({ key }) => key).toSorted());
      }),
      { numRuns: runs },
    );
  });

  it('no more workers of a shape than jobs that it takes, and none empty', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        for (const { shape, workers, jobs } of decide(facts, none).shapes) {
          expect(jobs).to.be.at.least(workers);
          if (shape.oneJob) expect(jobs).to.equal(workers);
        }
      }),
      { numRuns: runs },
    );
  });

  it('the new workers of a shape hold what was put into them', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const { shapes, jobs } = decide(facts, none);
        expect(shapes.reduce((sum, one) => sum + one.jobs, 0)).to.equal(jobs.served);
      }),
      { numRuns: runs },
    );
  });

  it('never above a cap, of shape or queue, whatever lives', () => {
    const bounds = fc.record({
      most: fc.nat({ max: 6 }),
      queueMost: fc.nat({ max: 8 }),
      perCycle: fc.integer({ min: 1, max: 5 }),
      pressure: fc.option(
        fc.record({ least: fc.integer({ min: 1, max: 3 }), share: fc.constantFrom(0.1, 0.5) }),
        { nil: undefined },
      ),
      living: fc.array(fc.nat({ max: 7 }), { minLength: 4, maxLength: 4 }),
    });
    fc.assert(
      fc.property(someFacts, bounds, (facts, { most, queueMost, perCycle, pressure, living }) => {
        const shapes = facts.shapes.map((shape) => ({ ...shape, most }));
        const workers = new Map(
          shapes.map(({ key }, index) => [
            key,
            { living: living[index] ?? 0, starting: Math.min(1, living[index] ?? 0) },
          ]),
        );
        const terms = { most: queueMost, perCycle, pressure };
        const decision = decide({ ...facts, shapes, workers }, termsOf({ q0: terms, q1: terms }));
        for (const queue of ['q0', 'q1']) {
          const own = decision.shapes.filter(({ shape }) => shape.queue === queue);
          const added = own.reduce((sum, one) => sum + one.workers, 0);
          const alive = own.reduce((sum, { shape }) => sum + (workers.get(shape.key)?.living ?? 0), 0);
          expect(added).to.be.at.most(perCycle);
          if (added > 0) expect(alive + added).to.be.at.most(queueMost);
          for (const one of own)
            if (one.workers > 0)
              expect(one.workers + (workers.get(one.shape.key)?.living ?? 0)).to.be.at.most(most);
          const steps = decision.reasons.get(queue) ?? [];
          if (own.length > 0) expect(steps.at(-1)?.n ?? 0).to.equal(added);
        }
      }),
      { numRuns: runs },
    );
  });

  it('the same facts in another order give the same workers', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const turned = {
          ...facts,
          needs: facts.needs.toReversed(),
          shapes: facts.shapes.toReversed(),
          spaces: isKnown(facts).toReversed(),
        };
        const workers = (one: DemandFacts) =>
          Object.fromEntries(decide(one, none).shapes.map(({ shape, workers: count }) => [shape.key, count]));
        expect(workers(turned)).to.deep.equal(workers(facts));
      }),
      { numRuns: runs },
    );
  });

  it('a second decision asks for nothing more once the workers of the first are on their way', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const first = decide(facts, none);
        const onTheirWay = first.shapes.flatMap(({ shape, workers }) =>
          Array.from({ length: workers }, (_, id): Space => ({
            name: `worker:${shape.key}:${id}`,
            kind: `shape:${shape.key}`,
            free: shape.resources,
            oneJob: shape.oneJob,
            shape: shape.key,
          })),
        );
        const matching: Matching = {
          ...facts.matching,
          space: (need, space) => {
            const shape = facts.shapes.find(({ key }) => key === space.shape);
            return shape === undefined
              ? facts.matching.space(need, space)
              : facts.matching.shape(need, shape);
          },
        };
        const second = decide({ ...facts, matching, spaces: [...isKnown(facts), ...onTheirWay] }, none);
        const more = second.shapes.reduce((sum, { workers }) => sum + workers, 0);
        expect(more).to.equal(0);
        expect(second.jobs.fitting).to.equal(first.jobs.fitting + first.jobs.served);
      }),
      { numRuns: runs },
    );
  });
});

describe('beside a brute force over small sets', () => {
  /** The least cost of machines of one job each: jobs share no machine, so each takes its cheapest shape. */
  it('where each machine takes one job, the workers are exactly the cheapest', () => {
    fc.assert(
      fc.property(
        fc.record({ needs: needsOf(5), shapes: someShapes, seed: fc.nat() }),
        ({ needs, shapes, seed }) => {
          const matching = matchingBy(seed);
          const single = shapes.map((shape) => ({ ...shape, oneJob: true }));
          const expected = needs.reduce((sum, need) => {
            const costs = single.filter((shape) => matching.shape(need, shape)).map(({ cost }) => cost);
            return costs.length === 0 ? sum : sum + need.count * Math.min(...costs);
          }, 0);
          const decision = decide(factsOf({ needs, shapes: single, matching }), none);
          const cost = decision.shapes.reduce((sum, { shape, workers }) => sum + workers * shape.cost, 0);
          expect(cost).to.equal(expected);
        },
      ),
      { numRuns: runs },
    );
  });

  it('of jobs that ask for cores alone, on one shape, it stays within the bound of first-fit decreasing', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(sizes, (cores) => {
        const needs = cores.map((cpus, index) => needOf(`${index}`, 1, { cpus }));
        const shapes = [shapeOf('q', 8, { has: { memory: 1_000_000 } })];
        const {
          shapes: [one],
        } = decide(factsOf({ needs, shapes }), none);
        const least = fewestBins(cores, 8);
        expect(one?.workers).to.be.at.least(least);
        // The bound of first-fit decreasing: 11/9 of the best, and 6/9.
        expect(one?.workers).to.be.at.most(Math.floor((11 / 9) * least + 6 / 9));
      }),
      { numRuns: runs },
    );
  });
});

/** Tries all ways to put items into bins of one size. */
function fewestBins(items: readonly number[], size: number): number {
  let best = items.length;
  const bins: number[] = [];
  const place = (at: number) => {
    if (bins.length >= best) return;
    const item = items[at];
    if (item === undefined) {
      best = bins.length;
      return;
    }
    for (let index = 0; index <= bins.length; index++) {
      const has = bins[index] ?? 0;
      if (has + item > size) continue;
      if (index === bins.length) bins.push(item);
      else bins[index] = has + item;
      place(at + 1);
      if (index === bins.length - 1 && has === 0) bins.pop();
      else bins[index] = has;
    }
  };
  place(0);
  return best;
}
