import { expect } from 'chai';
import pg from 'pg';
import { historyOf } from '../../src/store/postgresql/history.ts';

/** A session whose query has this outcome. */
const session = (outcome: () => Promise<unknown>) => ({ query: outcome }) as unknown as pg.Client;

describe('the history of a PostgreSQL server', () => {
  it('is what the server says', async () => {
    expect(await historyOf(session(async () => ({ rows: [{ history: '7 00000002' }] })))).to.equal(
      '7 00000002',
    );
  });

  it('is empty where the server has no such log, and unknown where the connection is lost', async () => {
    const refused = new pg.DatabaseError('not supported', 1, 'error');
    expect(await historyOf(session(() => Promise.reject(refused)))).to.equal('');
    const lost = new Error('Connection terminated');
    const thrown = await historyOf(session(() => Promise.reject(lost))).catch((error: unknown) => error);
    expect(thrown).to.equal(lost);
  });
});
