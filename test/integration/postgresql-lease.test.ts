import { expect } from 'chai';
import { Lease, type LeaseParts } from '../../src/store/postgresql/lease.ts';
import { openSession } from '../../src/store/postgresql/session.ts';
import type { LeaseHolder } from '../../src/store/lease-holder.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { PostgresqlOptions } from '../../src/util/postgresql-options.ts';
import type { ThresherError } from '../../src/worker/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

describe('the lease of a factory in PostgreSQL', () => {
  let place: PostgresqlOptions;
  let database: string;
  let query: (text: string) => Promise<readonly unknown[]>;
  const leases: Lease[] = [];

  beforeEach(async () => {
    const server = await sharedPostgresql();
    database = await newDatabase();
    place = server.options(database);
    query = (text) => server.query(text, database);
  });

  afterEach(async () => {
    for (const lease of leases.splice(0)) await lease.release();
  });

  function leaseOf(holder: string, changes: Partial<LeaseParts> = {}): Lease & { readonly told: string[] } {
    const told: string[] = [];
    const lease = new Lease({
      instance: 'factory',
      holder,
      application: `thresher ${holder}`,
      duration: 30_000,
      clock: new ManualClock(),
      open: () =>
        openSession(place, { application: `thresher ${holder} lease`, mayTakeLong: false, readOnly: false }),
      lost: ({ code }) => told.push(code),
      ...changes,
    });
    leases.push(lease);
    return Object.assign(lease, { told });
  }

  it('is taken by one of two that begin at once, and the other one is told who has it', async () => {
    const taken = await Promise.allSettled([
      leaseOf('a').take(undefined, undefined),
      leaseOf('b').take(undefined, undefined),
    ]);
    const failed = taken.filter((one) => one.status === 'rejected');
    expect(failed).to.have.length(1);
    const error = failed[0]?.reason as ThresherError;
    expect(error.code).to.equal('already-running');
    expect(error.message).to.match(/another daemon has the factory factory in the same database, [ab] since/);
  });

  it('lets its holder act until shortly before the server would give it to another one, by a clock that never jumps', async () => {
    const clock = new ManualClock();
    // No renewal comes through.
    const open = Promise.withResolvers<never>();
    let opened = 0;
    const lease = leaseOf('a', {
      clock,
      open: () =>
        ++opened === 1
          ? openSession(place, { application: 'thresher a lease', mayTakeLong: false, readOnly: false })
          : open.promise,
    });
    await lease.take(undefined, undefined);
    await query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'thresher a lease'`,
    );
    expect(lease.isHeld).to.equal(true);
    await clock.advance(28_900);
    expect(lease.isHeld).to.equal(true);
    await clock.advance(200);
    expect(lease.isHeld).to.equal(false);
    open.reject(new Error('over'));
  });

  it('that ran out goes on where nobody took it, and is lost for good where somebody did', async () => {
    const clock = new ManualClock();
    const lease = leaseOf('a', { clock });
    await lease.take(undefined, undefined);
    await query(`UPDATE leases SET expires_at = clock_timestamp() - interval '1 hour'`);
    const renew = () => clock.advance(10_000);
    await renew();
    await until(
      'the server has it again',
      async () => (await query('SELECT 1 FROM leases WHERE expires_at > clock_timestamp()')).length === 1,
    );
    expect(lease.isHeld).to.equal(true);
    await query(`UPDATE leases SET expires_at = clock_timestamp() - interval '1 hour'`);
    await leaseOf('b').take(undefined, undefined);
    await until('it knows', async () => {
      await renew();
      return lease.told.length > 0;
    });
    expect(lease.told).to.deep.equal(['store-taken']);
    expect(lease.isHeld).to.equal(false);
  });

  it('is waited for, and is there at once when its holder gives it back', async () => {
    const [first, clock] = [leaseOf('a'), new ManualClock()];
    await first.take(undefined, undefined);
    const heard: LeaseHolder[] = [];
    const second = leaseOf('b', { clock });
    const taking = second.take((holder) => heard.push(holder), undefined);
    await until('it hears who has it', () => heard.length > 0);
    expect(heard[0]?.holder).to.equal('a');
    expect(second.isHeld).to.equal(false);
    await first.release();
    await until('it sleeps', () => clock.sleeping.includes(1000));
    await clock.advance(1000);
    await taking;
    expect(second.isHeld).to.equal(true);
  });

  it('is taken anew at once by a daemon that took it, and whose answer was lost', async () => {
    const [first, clock] = [leaseOf('a'), new ManualClock()];
    await first.take(undefined, undefined);
    let lost = 0;
    const second = leaseOf('b', {
      clock,
      open: async () => {
        const use = { application: 'thresher b lease', mayTakeLong: false, readOnly: false };
        const client = await openSession(place, use);
        const asked = client.query.bind(client) as (text: string) => Promise<{ rows: unknown[] }[]>;
        const query = async (text: string) => {
          const answer = await asked(text);
          const isTaken = text.includes('INSERT INTO leases') && (answer.at(-1)?.rows.length ?? 0) > 0;
          if (isTaken && ++lost === 1) throw new Error('the connection was lost');
          return answer;
        };
        return Object.assign(client, { query });
      },
    });
    const taking = second.take(() => undefined, undefined);
    await until('it sleeps', () => clock.sleeping.includes(1000));
    await first.release();
    await until('it has it', async () => {
      await clock.advance(1000);
      return second.isHeld;
    });
    await taking;
    expect([lost, second.isHeld, second.told]).to.deep.equal([2, true, []]);
    expect(clock.monotonic()).to.be.below(30_000);
    expect(JSON.stringify(await query('SELECT epoch FROM leases'))).to.match(/"?epoch"?:"?3\b/);
  });

  it('keeps a transaction that began before a take-over from being committed, and its rows from staying locked', async () => {
    const told: string[] = [];
    const first: Store = await openStore(place, 'factory', { mustEnd: ({ code }) => told.push(code) });
    try {
      await first.ids.raise(5);
      await query('UPDATE leases SET epoch = epoch + 1');
      // The statement itself succeeds: its commit does not.
      const error = await first.ids.raise(9).then(
        () => undefined,
        (thrown: unknown) => thrown as ThresherError,
      );
      expect(error?.code).to.equal('store-taken');
      expect(await query("SELECT value FROM counters WHERE name = 'nextWorkerId'")).to.have.length(1);
      expect(
        JSON.stringify(await query("SELECT value FROM counters WHERE name = 'nextWorkerId'")),
      ).to.contain('5');
      expect(told).to.deep.equal(['store-taken']);
    } finally {
      await first.close();
    }
  });

  it('of a member lets no member keep rows locked whose own lease is over', async () => {
    const clock = new ManualClock();
    await leaseOf('a', { member: 'one' }).take(undefined, undefined);
    await leaseOf('b', { member: 'two', clock }).take(undefined, undefined);
    const still = await openSession(place, {
      application: 'thresher a',
      mayTakeLong: false,
      readOnly: false,
    });
    try {
      await still.query(`CREATE TABLE rows (value INT); INSERT INTO rows VALUES (1)`);
      await still.query('BEGIN; UPDATE rows SET value = 2');
      await clock.advance(10_000);
      await until('the second member has renewed its lease', () => clock.sleeping.includes(10_000));
      await still.query('SELECT 1');
      await query(`UPDATE leases SET expires_at = clock_timestamp() WHERE shard = 'member one'`);
      const areFree = async () => {
        await clock.advance(10_000);
        await query('BEGIN; SELECT FROM rows FOR UPDATE NOWAIT; COMMIT');
        return true;
      };
      // The server itself would end a transaction that stands still after a minute.
      await until('the rows are free', areFree, 30_000);
      expect(await query('SELECT value FROM rows')).to.deep.equal([{ value: 1 }]);
    } finally {
      await still.end().catch(() => undefined);
    }
  });
});
