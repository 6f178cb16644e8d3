import { expect } from 'chai';
import type { Pool } from '../../../src/clients/htcondor/pool-client.ts';
import { freeOfLimits } from '../../../src/sources/htcondor-idle/look/limits.ts';

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
