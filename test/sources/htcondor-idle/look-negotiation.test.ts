import { expect } from 'chai';
import type { AdQuestion, Pool } from '../../../src/clients/htcondor/pool-client.ts';
import { lastNegotiation } from '../../../src/sources/htcondor-idle/look/negotiation.ts';

const { signal } = new AbortController();

/** @param heard last starts as the collector has them, by name @param said as negotiators say them; undefined: no answer */
function poolOf(
  heard: Readonly<Record<string, number>>,
  said: Readonly<Record<string, number | undefined>>,
): Pool {
  const ads = async (
    _kind: string,
    { direct }: AdQuestion,
    read: (ad: Record<string, unknown>) => unknown,
  ) => {
    if (direct === undefined) {
      return Object.entries(heard).map(([Name, LastNegotiationCycleTime0]) =>
        read({ Name, MyAddress: `<${Name}>`, LastNegotiationCycleTime0 }),
      );
    }
    const start = said[direct.slice(1, -1)];
    if (start === undefined) throw new Error('it hangs');
    return [read({ LastNegotiationCycleTime0: start })];
  };
  return { ads } as unknown as Pool;
}

const startOf = async (pool: Pool, latest = new Map<string, number>()) => {
  const found = await lastNegotiation(pool, latest, signal);
  return 'part' in found ? found.reason.code : found.startedAt;
};

describe('the last negotiation cycle', () => {
  it('the negotiator itself knows it before the collector does', async () => {
    expect(await startOf(poolOf({ a: 100 }, { a: 200 }))).to.equal(200);
  });

  it('what the collector has counts where the negotiator does not answer', async () => {
    expect(await startOf(poolOf({ a: 100 }, {}))).to.equal(100);
  });

  it('a negotiator that is too busy to answer takes no cycle back', async () => {
    const latest = new Map<string, number>();
    await startOf(poolOf({ a: 100 }, { a: 200 }), latest);
    expect(await startOf(poolOf({ a: 100 }, {}), latest)).to.equal(200);
    await startOf(poolOf({ b: 50 }, {}), latest);
    expect([...latest]).to.deep.equal([['<b>', 50]]);
  });

  it('with two negotiators, both must have passed', async () => {
    expect(await startOf(poolOf({ a: 100, b: 300 }, { a: 200, b: 300 }))).to.equal(200);
  });

  it('nothing counts without a negotiator, or before its first cycle', async () => {
    expect(await startOf(poolOf({}, {}))).to.equal('htcondor-idle-no-negotiator');
    expect(await startOf(poolOf({ a: 0 }, { a: 0 }))).to.equal('htcondor-idle-no-negotiator');
  });
});
