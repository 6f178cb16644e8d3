import { expect } from 'chai';
import { steps } from '../../src/store/sqlite/migrations.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { newDatabase, type PostgresqlServer, sharedPostgresql } from '../support/postgresql.ts';

describe('members that start on one PostgreSQL database', () => {
  let server: PostgresqlServer;
  let database: string;
  let stores: Store[];

  beforeEach(async () => {
    server = await sharedPostgresql();
    database = await newDatabase();
    stores = [];
  });

  afterEach(() => Promise.all(stores.map((store) => store.close())));

  const open = async (member: string) => {
    stores.push(await openStore({ ...server.options(database), member }, 'factory'));
  };

  it('may all begin at once while it is empty: the first one makes the tables', async () => {
    await Promise.all(['one', 'two', 'three', 'four'].map((member) => open(member)));
    expect(await stores[3]?.shares?.members()).to.have.length(4);
    expect(await stores[3]?.workers.countAll()).to.deep.equal([]);
  });

  it('do not change the tables below one of an older version, and name it', async () => {
    await open('one');
    const last = Object.keys(steps).at(-1) ?? '';
    await server.query(`DELETE FROM kysely_migration WHERE name = '${last}'`, database);
    const refusal = await open('two').catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(ThresherError).with.property('code', 'already-running');
    expect(String(refusal)).to.match(/has the tables of an older version.*: stop one \(\S+ pid \d+\) first/);
  });
});
