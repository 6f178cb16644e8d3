import { expect } from 'chai';
import type { Desk, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { Living } from '../../../src/sources/panda/link.ts';

const newsOf = (workerId: number, status: string) => ({ worker: { workerId, status } }) as WorkerNews;

describe('the living workers of the PanDA link', () => {
  it('are none that ended while the database was read', async () => {
    const read = Promise.withResolvers<readonly WorkerNews[]>();
    const living = new Living();
    const loaded = living.load({ living: () => read.promise } as unknown as Desk);
    living.heard(newsOf(1, 'finished'));
    living.heard(newsOf(2, 'running'));
    read.resolve([newsOf(1, 'running'), newsOf(2, 'submitted'), newsOf(3, 'submitted')]);
    await loaded;
    expect([...living.all].map(([id, { worker }]) => `${id} ${worker.status}`)).to.have.members([
      '2 running',
      '3 submitted',
    ]);
  });
});
