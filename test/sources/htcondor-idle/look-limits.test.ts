import { expect } from 'chai';
import type { Pool } from '../../../src/clients/htcondor/pool-client.ts';
import { freeOfLimits, limitsInTurns } from '../../../src/sources/htcondor-idle/look/limits.ts';

import { needOf, resourcesOf } from '../../support/idle-demand.ts';

const { signal } = new AbortController();

/** A negotiator that bounds no limit. */
const pool = {
  configuration: async () => new Map<string, string>(),
  limitsInUse: async () => new Map<string, number>(),
} as unknown as Pool;

const names = (count: number) => Array.from({ length: count }, (_, index) => `limit${index}`);

describe('concurrency limits that thresher does not ask about', () => {
  it('are free of nothing, and thresher says so: an unasked limit is not one without a bound', async () => {
    const { free, unknown } = await freeOfLimits(pool, new Map([['n', '<n>']]), names(502), signal);
    expect([...free]).to.deep.equal([
      ['limit500', 0],
      ['limit501', 0],
    ]);
    expect(unknown.map(({ part, reason }) => [part, reason.code])).to.deep.equal([
      ['limits', 'htcondor-idle-left-out'],
    ]);
  });

  it('are none up to 500', async () => {
    const { free, unknown } = await freeOfLimits(pool, new Map([['n', '<n>']]), names(500), signal);
    expect([free.size, unknown]).to.deep.equal([0, []]);
  });
});

describe('the limits of waiting jobs', () => {
  const limited = (owner: string, names: readonly string[]) =>
    needOf(
      `${owner} ${names.length}`,
      9,
      {},
      {
        owners: new Map([
          [owner, 5],
          ['other', 4],
        ]),
        concurrency: resourcesOf(Object.fromEntries(names.map((name) => [name, 1]))),
      },
    );

  it('hole 8: are asked about in turns of their owners, however many somebody makes up', () => {
    const evil = names(1000);
    const needs = [
      limited('eve', evil),
      limited('ana', ['a', 'b']),
      limited('ben', ['b', 'c']),
      needOf('x', 1),
    ];
    const asked = limitsInTurns(needs);
    expect(asked.slice(0, 6)).to.deep.equal(['limit0', 'a', 'b', 'limit1', 'c', 'limit2']);
    expect(new Set(asked)).to.deep.equal(new Set([...evil, 'a', 'b', 'c']));
    expect(limitsInTurns([])).to.deep.equal([]);
  });
});
