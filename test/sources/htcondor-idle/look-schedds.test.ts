import { expect } from 'chai';
import type { Ad } from '../../../src/clients/htcondor/json-objects.ts';
import type { Pool } from '../../../src/clients/htcondor/pool-client.ts';
import { ScheddList } from '../../../src/sources/htcondor-idle/look/schedds.ts';

const { signal } = new AbortController();

describe('the schedds of a collector', () => {
  let names: string[];
  const pool = {
    ads: async (_kind: string, _question: object, read: (ad: Ad) => unknown) =>
      names.flatMap((Name) => read({ Name, DaemonStartTime: 1 }) ?? []),
  } as unknown as Pool;
  const many = (look: number) => Array.from({ length: 9000 }, (_, at) => `s${look}-${at}`);

  it('hole 8: are remembered as far as there is room, those that were seen last, and none by more than a name', async () => {
    const list = new ScheddList(undefined);
    names = [...many(1), 'x'.repeat(1001)];
    expect((await list.look(pool, 0, signal)).schedds).to.have.length(9000);
    names = many(2);
    const { schedds, unknown } = await list.look(pool, 1, signal);
    expect([schedds.length, unknown.length]).to.deep.equal([9000, 1000]);
  });

  it('hole 8: are unknown where they are too many, but for those that the settings name', async () => {
    names = [...many(1), ...many(2)];
    const { schedds, unknown } = await new ScheddList(undefined).look(pool, 0, signal);
    expect(schedds).to.deep.equal([]);
    expect(unknown.map(({ part, reason }) => [part, reason.code])).to.deep.equal([
      ['collector', 'condor-answer'],
    ]);
    const named = await new ScheddList(['s2-7']).look(pool, 0, signal);
    expect(named.schedds.map(({ name }) => name)).to.deep.equal(['s2-7']);
  });
});
