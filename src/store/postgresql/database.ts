import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import type pg from 'pg';
import { type Clock, systemClock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { LeaseHolder } from '../lease-holder.ts';
import type { Member } from '../shares.ts';
import type { OpenDatabase } from '../sql/open-database.ts';
import { inTransaction } from '../sql/transaction.ts';
import type { Tables } from '../tables.ts';
import { type Instance, instancesQuery } from '../sqlite/instances.ts';
import { steps } from '../sqlite/migrations.ts';
import { postgresqlDialect } from './dialect.ts';
import { operatorError, postgresqlError } from './errors.ts';
import { historyOf, promoted } from './history.ts';
import { lastIds, setLastIds } from './last-ids.ts';
import { firstMemberQuery, holderQuery, Lease, shardOf, type Waiting } from './lease.ts';
import { Listener } from './listener.ts';
import { appliedMigrations, migrate } from './migrations.ts';
import { OneConnection } from './one-connection.ts';
import { nameOf, type PostgresqlOptions } from '../../util/postgresql-options.ts';
import { openSession, unfit } from './session.ts';
import { membersOf, PostgresqlShares, sharesOf } from './shares.ts';

export interface DaemonDatabaseParts {
  /** The factory's id. */
  readonly instance: string;
  readonly clock?: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Hears, about each second, who has the factory. Default: nothing waits, and the daemon is refused. */
  readonly waiting?: Waiting;
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined;
  /** Hears that this daemon must begin anew: memory and database may differ, and every statement is refused from now on. */
  readonly mustEnd?: (error: ThresherError) => void;
}

/**
 * Opens the database of a daemon, takes the factory's lease, which may last, and brings the tables up to date.
 * @throws ThresherError `store-unreachable`, `store-login`, `store-unfit`, `store-newer`, `already-running`, as `postgresqlError` says
 */
export async function openForDaemon(
  options: PostgresqlOptions,
  { instance, clock = systemClock, waiting, signal, mustEnd = () => undefined }: DaemonDatabaseParts,
): Promise<OpenDatabase> {
  const name = nameOf(options);
  const application = `thresher ${hostname().slice(0, 20)} ${process.pid} ${randomUUID().slice(0, 8)}`;
  /** What the memory of this daemon rests on, and what its connection shows. */
  let [history, shown]: (string | undefined)[] = [];
  let over: ThresherError | undefined;
  const open = async (what: string) => {
    const client = await openSession(options, { application: what, mayTakeLong: false, readOnly: false });
    if (history === undefined || history === (await historyOf(client))) return client;
    client.end().catch(() => undefined);
    if (over === undefined) {
      over = promoted(name);
      pool.giveUp(over);
      mustEnd(over);
    }
    throw over;
  };
  const { member } = options;
  const lease = new Lease({
    instance,
    member,
    holder: `${hostname()} pid ${process.pid}`,
    application,
    duration: options.leaseDuration,
    clock,
    open: () => open(`${application} lease`),
    lost: (error) => {
      pool.giveUp(error);
      mustEnd(error);
    },
  });
  let ownProcess = 0;
  const pool: OneConnection = new OneConnection({
    monotonic: () => clock.monotonic(),
    errorOf: (error) => operatorError(error, name),
    outcomeUnknown: mustEnd,
    lease,
    open: async () => {
      const client = await open(application);
      try {
        await endFormer(client, application);
        ownProcess = await processOf(client);
        shown = await historyOf(client);
        return client;
      } catch (error) {
        client.end().catch(() => undefined);
        throw error;
      }
    },
  });
  const listener = new Listener({
    clock,
    ownProcess: () => ownProcess,
    open: () => open(`${application} ear`),
  });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const database: OpenDatabase = {
    ...databaseOn(db, options),
    changedElsewhere: () => listener.takeChanged(),
    mayAct: () => lease.isHeld,
    ...(member !== undefined && { shares: new PostgresqlShares(db, instance, member) }),
    async close() {
      await listener.close();
      await db.destroy();
      await lease.release();
    },
  };
  try {
    await requireOwnSessions(options, listener, () => open(`${application} check`));
    // A daemon that cannot use the tables must not wait until it is needed.
    await requireKnown(db, name);
    await lease.take(waiting, signal);
    // Again: the former holder may have been of a newer version.
    await requireKnown(db, name);
    if (member !== undefined) await requireNoOlder(db, { instance, member, name, clock });
    await migrate(db);
    history = shown;
    return database;
  } catch (error) {
    await database.close();
    if (signal?.aborted === true) throw error;
    throw postgresqlError(error, name);
  }
}

/**
 * Opens the database beside a daemon that may or may not run. Nothing is created or migrated.
 * @param asker a daemon's own questions may not take long: clients of its HTTP wait for them in turn
 * @throws ThresherError `store-missing`, `store-newer`, and as above
 */
export async function openBeside(
  options: PostgresqlOptions,
  access: 'read' | 'write',
  asker: 'command' | 'daemon',
): Promise<OpenDatabase> {
  const name = nameOf(options);
  const use = {
    application: 'thresher command',
    mayTakeLong: asker === 'command',
    readOnly: access === 'read',
  };
  const pool = new OneConnection({
    monotonic: () => systemClock.monotonic(),
    errorOf: (error) => operatorError(error, name),
    outcomeUnknown: () => undefined,
    open: () => openSession(options, use),
  });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    const applied = await requireKnown(db, name);
    const [last] = Object.keys(steps).slice(-1);
    if (last === undefined || !applied.includes(last)) {
      const message = `${name} was not brought up to date yet: start the daemon of this version once`;
      throw new ThresherError('store-missing', message, { database: name });
    }
    // A command does not wait for news.
    return { ...databaseOn(db, options), changedElsewhere: () => true, mayAct: () => true };
  } catch (error) {
    await db.destroy();
    throw postgresqlError(error, name);
  }
}

/** The factories that have used this database; empty when nothing is in it. */
export async function instancesOf(options: PostgresqlOptions): Promise<readonly Instance[]> {
  const use = { application: 'thresher command', mayTakeLong: false, readOnly: true };
  try {
    const client = await openSession(options, use);
    try {
      const there = await client.query<{ there: boolean }>(
        `SELECT to_regclass('counters') IS NOT NULL AS there`,
      );
      if (there.rows[0]?.there !== true) return [];
      return (await client.query<Instance>(instancesQuery)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  } catch (error) {
    throw postgresqlError(error, nameOf(options));
  }
}

function databaseOn(
  db: Kysely<Tables>,
  options: PostgresqlOptions,
): Omit<OpenDatabase, 'changedElsewhere' | 'mayAct'> {
  const name = nameOf(options);
  return {
    file: name,
    db,
    dialect: postgresqlDialect,
    snapshot: (work) =>
      inTransaction(db, async (tx) => {
        await sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`.execute(tx);
        return work(tx);
      }),
    lastIds: () => lastIds(db),
    setLastIds,
    async leader(instance) {
      const { rows } = await db.executeQuery<LeaseHolder>(CompiledQuery.raw(holderQuery, [instance]));
      return rows[0];
    },
    async sharedOut(instance) {
      const members = await membersOf(db, instance);
      return { members, shares: members.length === 0 ? [] : await sharesOf(db, instance) };
    },
    async bytes() {
      const { rows } = await sql<{
        bytes: number;
      }>`SELECT pg_database_size(current_database()) AS bytes`.execute(db);
      return rows[0]?.bytes ?? 0;
    },
    async vacuum() {
      await sql`VACUUM (ANALYZE)`.execute(db);
    },
    // It has none that a client could empty.
    emptyLog: async () => true,
    errorOf: (error) => postgresqlError(error, name),
    close: () => db.destroy(),
  };
}

/** The server may still wait for a former connection of this very process, which keeps the rows that it wrote. */
async function endFormer(client: pg.Client, application: string): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = $1 AND usename = current_user AND pid <> pg_backend_pid()`,
    [application],
  );
}

async function processOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** @throws ThresherError `store-unfit` behind a pooler that lends sessions for single transactions */
async function requireOwnSessions(
  options: PostgresqlOptions,
  listener: Listener,
  open: () => Promise<pg.Client>,
): Promise<void> {
  await listener.start();
  const other = await open();
  try {
    if (await listener.hears(other, randomUUID())) return;
  } finally {
    await other.end().catch(() => undefined);
  }
  const why = 'a pooler seems to lend its sessions for single transactions; use its session mode, or none';
  throw unfit(options, why);
}

/** How long members that start at the same time wait for the first of them to bring the tables up to date, ms, and how often they look. */
const upToDate = { within: 5000, every: 200 };

interface StartingMember extends Pick<DaemonDatabaseParts, 'instance'> {
  readonly member: string;
  /** The database as messages name it. */
  readonly name: string;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

/**
 * A daemon that leads is alone. Of those that share a factory, one of a newer version would change the tables below the others. Of
 * several that start at the same time the first one does it, and the others wait for it.
 * @throws ThresherError `already-running`
 */
async function requireNoOlder(db: Kysely<Tables>, starting: StartingMember): Promise<void> {
  const { instance, member, name, clock } = starting;
  const end = clock.monotonic() + upToDate.within;
  let others: readonly Member[] = [];
  do {
    const applied = new Set(await appliedMigrations(db));
    if (Object.keys(steps).every((step) => applied.has(step))) return;
    const { rows } = await db.executeQuery<{ shard: string }>(
      CompiledQuery.raw(firstMemberQuery, [instance]),
    );
    if (rows[0] === undefined || rows[0].shard === shardOf(member)) return;
    others = (await membersOf(db, instance)).filter((one) => one.alive && one.name !== member);
    await clock.sleep(upToDate.every);
  } while (clock.monotonic() < end);
  const who = others.map(({ name: other, holder }) => `${other} (${holder})`).join(', ');
  const message = `${name} has the tables of an older version, with which others work now: stop ${who} first`;
  throw new ThresherError('already-running', message, { instance });
}

/** @returns the migrations that ran. @throws ThresherError `store-newer` */
async function requireKnown(db: Kysely<Tables>, name: string): Promise<readonly string[]> {
  const applied = await appliedMigrations(db);
  const unknown = applied.filter((step) => !(step in steps));
  if (unknown.length === 0) return applied;
  const message = `${name} was written by a newer version of thresher (it has ${unknown.join(', ')})`;
  throw new ThresherError('store-newer', message, { database: name, unknown });
}
