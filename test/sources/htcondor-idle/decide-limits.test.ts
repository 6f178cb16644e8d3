import { expect } from 'chai';
import { decide } from '../../../src/sources/htcondor-idle/decide.ts';
import type { DemandFacts } from '../../../src/sources/htcondor-idle/demand.ts';
import type { Need } from '../../../src/sources/htcondor-idle/model.ts';
import { factsOf, needOf, resourcesOf, shapeOf, termsOf } from '../../support/idle-demand.ts';

const small = shapeOf('small', 1);

/** What became of the jobs; fates of none are left out. */
const jobsOf = (facts: Partial<DemandFacts>) => {
  const { jobs } = decide(factsOf(facts), termsOf({}));
  return Object.fromEntries(Object.entries(jobs).filter(([, count]) => count > 0));
};

describe('concurrency limits', () => {
  const limited = (key: string, count: number, limits: Record<string, number>): Need =>
    needOf(key, count, {}, { concurrency: resourcesOf(limits) });

  for (const [title, need, free, served] of [
    ['as much as is free', limited('a', 9, { license: 1 }), { license: 4 }, 4],
    ['none where nothing is free', limited('a', 9, { license: 1 }), { license: 0 }, 0],
    ['none where more is used than there is', limited('a', 9, { license: 1 }), { license: -2 }, 0],
    ['by the amount that a job takes', limited('a', 9, { license: 2 }), { license: 5 }, 2],
    ['by the tightest of several', limited('a', 9, { a: 1, b: 3 }), { a: 5, b: 7 }, 2],
    ['all where the limit is unknown', limited('a', 9, { license: 1 }), {}, 9],
    ['by the name with its part behind the point alone', limited('a', 9, { 'large.x': 1 }), { large: 0 }, 9],
    ['by amounts with digits behind the point', limited('a', 9, { license: 0.1 }), { license: 0.3 }, 3],
  ] as const)
    it(`let jobs be demand: ${title}`, () => {
      expect(jobsOf({ needs: [need], shapes: [small], free: resourcesOf(free) })).to.deep.equal({
        idle: 9,
        ...(served < 9 && { limited: 9 - served }),
        ...(served > 0 && { served }),
      });
    });

  it('hole 8: are taken by no job that starts nowhere, also one of a weight without bound', () => {
    const needs = [
      limited('a', 5, { license: 1, own: Infinity }),
      limited('b', 4, { license: 1 }),
      needOf('c', 6, { cpus: 100 }, { concurrency: resourcesOf({ license: 1 }) }),
    ];
    const facts = { needs, shapes: [small], free: resourcesOf({ license: 4, own: 1 }) };
    expect(jobsOf(facts)).to.deep.equal({ idle: 15, limited: 5, served: 4, unservable: 6 });
  });

  it('are shared by the needs that name them', () => {
    const needs = [limited('a', 3, { license: 1 }), limited('b', 3, { license: 1 })];
    const facts = { needs, shapes: [small], free: resourcesOf({ license: 4 }) };
    expect(jobsOf(facts)).to.deep.equal({ idle: 6, limited: 2, served: 4 });
  });
});
