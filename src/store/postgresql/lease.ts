import pg from 'pg';
import type { Clock } from '../../util/clock.ts';
import { within } from '../../util/within.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { LeaseHolder } from '../lease-holder.ts';

/** Between two looks of a standby, ms. */
const lookEvery = 1000;
/** The holder stops so much before the server calls its lease over, ms: the two clocks may not run at the same speed. */
const margin = 1000;
/** How often a lease is renewed in its time. */
const renewals = 3;

/** Not the lock of the migrations: a standby must not fail because these take long. */
const tableLock = 7_249_582;
/** Leases are taken one after the other. */
const takeLock = 7_249_583;

/** The shard of a daemon that has all of a factory: its queues, sources and credentials. */
const factory = 'factory';
/** The shards of daemons that share a factory begin so. */
const memberPrefix = 'member ';

/** The shard of the daemon that has this name among those that share a factory. */
export const shardOf = (member: string | undefined) =>
  member === undefined ? factory : `${memberPrefix}${member}`;

/** Not among the migrations: a standby waits for them while another version still uses the tables. */
const tables = [
  `CREATE TABLE IF NOT EXISTS leases (
  instance TEXT COLLATE "C" NOT NULL,
  shard TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  holder TEXT NOT NULL,
  application TEXT NOT NULL,
  taken_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (instance, shard)
)`,
  // The daemons that share a factory, and who has what.
  `CREATE TABLE IF NOT EXISTS members (
  instance TEXT COLLATE "C" NOT NULL,
  member TEXT COLLATE "C" NOT NULL,
  knows TEXT NOT NULL,
  PRIMARY KEY (instance, member)
)`,
  `CREATE TABLE IF NOT EXISTS shares (
  instance TEXT COLLATE "C" NOT NULL,
  item TEXT COLLATE "C" NOT NULL,
  member TEXT COLLATE "C" NOT NULL,
  since TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (instance, item)
)`,
];

const since = `to_char(taken_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since`;
const holds = '(expires_at > clock_timestamp())';

/** The daemon that has the factory now, or the first of those that share it. For every session that may read. */
export const holderQuery = `SELECT holder, ${since} FROM leases
  WHERE instance = $1 AND ${holds} ORDER BY taken_at LIMIT 1`;

/** The daemons that share a factory, or did: `alive` those whose lease holds. */
export const membersQuery = `SELECT substr(shard, ${memberPrefix.length + 1}) AS name, holder, ${since}, ${holds} AS alive
  FROM leases WHERE instance = $1 AND starts_with(shard, '${memberPrefix}') ORDER BY shard`;

/** The shard of the member that has been there for longest, of those whose lease holds. */
export const firstMemberQuery = `SELECT shard FROM leases
  WHERE instance = $1 AND starts_with(shard, '${memberPrefix}') AND ${holds} ORDER BY taken_at, shard LIMIT 1`;

/** Hears who has the factory. */
export type Waiting = (holder: LeaseHolder) => void;

export interface LeaseParts {
  /** The factory's id. */
  readonly instance: string;
  /** Its name among the daemons that share the factory; undefined: it has all of it. */
  readonly member?: string | undefined;
  /** As others show this daemon. */
  readonly holder: string;
  /** Every session of this daemon has a name that begins so. */
  readonly application: string;
  /** How long a lease holds without being renewed, ms. */
  readonly duration: number;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Opens a session for the lease alone: a long statement must not delay it. */
  readonly open: () => Promise<pg.Client>;
  /** Hears that another daemon has the factory, or had it: nothing can be committed any more. */
  readonly lost: (error: ThresherError) => void;
}

/**
 * The lease of a daemon in the database: on a factory, or on its name among the daemons that share one. Each holder has an
 * epoch of its own, and every transaction that wrote asks in its last statement whether the epoch is still the holder's: so a
 * daemon that was paused, or cut off, commits nothing once another one has taken over, and what is not committed is not
 * submitted.
 *
 * The server's clock alone says when a lease is over. The holder measures by its monotonic clock how long it may act,
 * counted from before it asked. So no clock of a machine has to be right.
 */
export class Lease {
  readonly #parts: LeaseParts;
  readonly #ended = new AbortController();
  #client: pg.Client | undefined;
  #epoch = 0;
  /** Monotonic ms. */
  #actsUntil = -Infinity;
  #holder: LeaseHolder | undefined;
  /** A look got no answer: it may have taken the lease all the same. */
  #mayHaveTaken = false;
  #renewing: Promise<void> | undefined;
  #lost: ThresherError | undefined;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /**
   * Waits until this daemon has the factory. @param waiting hears who has it, each time that somebody else does; without it
   * nothing waits
   * @throws ThresherError `already-running`; what the first look throws; the signal's reason. Later failures are waited out
   */
  async take(waiting: Waiting | undefined, signal: AbortSignal | undefined): Promise<void> {
    await this.#prepare();
    for (let isFirst = true; !(await this.#try(isFirst, waiting)); isFirst = false) {
      await this.#parts.clock.sleep(lookEvery, signal);
      signal?.throwIfAborted();
    }
    this.#renewing = this.#renewAgainAndAgain();
  }

  /** Whether this daemon may act for the factory now. */
  get isHeld(): boolean {
    return this.#lost === undefined && this.#parts.clock.monotonic() < this.#actsUntil;
  }

  /**
   * The last statement of each transaction that wrote. It fails with a division by zero where the epoch is another one, and
   * keeps others from taking over until the commit behind it is done.
   */
  get fence(): string {
    return `SELECT 1 / count(*) FROM (SELECT FROM leases WHERE instance = ${this.#instance}
      AND shard = ${this.#shard} AND epoch = ${this.#epoch} FOR SHARE) AS mine`;
  }

  get #instance(): string {
    return pg.escapeLiteral(this.#parts.instance);
  }

  get #shard(): string {
    return pg.escapeLiteral(shardOf(this.#parts.member));
  }

  /** The fence refused a commit, or a renewal found another epoch. */
  lose(): ThresherError {
    const { instance, lost } = this.#parts;
    if (this.#lost !== undefined) return this.#lost;
    const message = `another daemon has taken over the factory ${instance}: this one must begin anew`;
    this.#lost = new ThresherError('store-taken', message, { instance });
    this.#ended.abort();
    lost(this.#lost);
    return this.#lost;
  }

  /** Gives it back, once everything is written: a standby takes it at its next look. */
  async release(): Promise<void> {
    this.#ended.abort();
    await this.#renewing;
    this.#actsUntil = -Infinity;
    try {
      if (this.#lost === undefined && this.#epoch > 0)
        await this.#query(
          `UPDATE leases SET expires_at = clock_timestamp()
            WHERE instance = ${this.#instance} AND shard = ${this.#shard} AND epoch = ${this.#epoch}`,
        );
    } catch {
      // It runs out by itself.
    }
    await this.#client?.end().catch(() => undefined);
  }

  async #prepare(): Promise<void> {
    const client = await this.#session();
    // Two daemons that start at once would both make them, and one of them fail.
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${tableLock}); ${tables.join('; ')}; COMMIT`);
  }

  async #try(isFirst: boolean, waiting: Waiting | undefined): Promise<boolean> {
    const { instance } = this.#parts;
    try {
      if (await this.#takeFree()) return true;
      // The last one that is known stays, while the database does not answer.
      const [holder] = await this.#query<LeaseHolder>(
        `SELECT holder, ${since} FROM leases WHERE instance = ${this.#instance} AND ${holds}
          ORDER BY shard <> ${this.#shard}, taken_at LIMIT 1`,
      );
      this.#holder = holder ?? this.#holder;
    } catch (error) {
      if (isFirst) throw error;
      this.#mayHaveTaken = true;
    }
    if (waiting === undefined) throw alreadyRunning(instance, this.#holder);
    if (this.#holder !== undefined) waiting(this.#holder);
    return false;
  }

  /**
   * Never beside a daemon of the other kind: one that has all of the factory shares it with none. A lease that this daemon took
   * before, and of which no answer came, is its own.
   */
  async #takeFree(): Promise<boolean> {
    const { holder, application, duration, clock, member } = this.#parts;
    const asked = clock.monotonic();
    const own = `instance = ${this.#instance} AND shard = ${this.#shard}`;
    const others = `instance = ${this.#instance} AND shard ${member === undefined ? '<>' : '='} '${factory}'`;
    // A late first look of this daemon must not end the lease that its second one took.
    const isOwn = this.#mayHaveTaken ? 'lease.application = excluded.application' : 'false';
    const held = (which: string) => `EXISTS (SELECT FROM leases WHERE ${which} AND ${holds})`;
    // One transaction: a daemon of each kind may come at once, and one of the other kind that stands still may go on.
    const [taken] = await this.#query<{ epoch: number; former: string | null }>(
      `SELECT pg_advisory_xact_lock(${takeLock});
        UPDATE leases SET epoch = epoch + 1 WHERE ${others} AND NOT ${holds} AND NOT ${held(others)} AND NOT ${held(own)};
        INSERT INTO leases AS lease (instance, shard, epoch, holder, application, taken_at, expires_at)
        SELECT ${this.#instance}, ${this.#shard}, 1, ${pg.escapeLiteral(holder)}, ${pg.escapeLiteral(application)},
          clock_timestamp(), clock_timestamp() + ${duration} * interval '1 millisecond'
          WHERE NOT ${held(others)}
        ON CONFLICT (instance, shard) DO UPDATE SET epoch = lease.epoch + 1, holder = excluded.holder,
          application = excluded.application, taken_at = excluded.taken_at, expires_at = excluded.expires_at
          WHERE lease.expires_at <= clock_timestamp() OR ${isOwn}
        RETURNING epoch, (SELECT application FROM leases WHERE ${own}) AS former`,
    );
    if (taken === undefined) return false;
    this.#epoch = taken.epoch;
    this.#actsUntil = asked + duration - margin;
    if (taken.former !== null && taken.former !== application) await this.#endSessions(taken.former);
    return true;
  }

  /** A transaction of a daemon that stands still keeps the rows that it wrote. It could not commit them any more. */
  async #endSessions(former: string): Promise<void> {
    await this.#query(endOfSessions(former)).catch(() => undefined);
  }

  async #renewAgainAndAgain(): Promise<void> {
    const { duration, clock } = this.#parts;
    const { signal } = this.#ended;
    for (;;) {
      await clock.sleep(duration / renewals, signal);
      if (signal.aborted) return;
      await this.#renew();
    }
  }

  async #renew(): Promise<void> {
    const { duration, clock } = this.#parts;
    const asked = clock.monotonic();
    try {
      // One that nobody took meanwhile may have run out: memory and database still agree.
      const renewed = await this.#query(
        `UPDATE leases SET expires_at = clock_timestamp() + ${duration} * interval '1 millisecond'
          WHERE instance = ${this.#instance} AND shard = ${this.#shard} AND epoch = ${this.#epoch} RETURNING epoch`,
      );
      if (renewed.length === 0) this.lose();
      else this.#actsUntil = asked + duration - margin;
      await this.#unlock();
    } catch {
      // The next renewal follows soon; until one succeeds the time that this daemon may act runs down.
    }
  }

  /**
   * Ends transactions of other members whose leases are over. The rows that they keep locked could keep this member from the very
   * statements by which it starts, or takes what they had.
   */
  async #unlock(): Promise<void> {
    if (this.#parts.member === undefined) return;
    await this.#query(
      `SELECT pg_terminate_backend(pid) FROM leases JOIN pg_stat_activity ON starts_with(application_name, application)
        WHERE instance = ${this.#instance} AND starts_with(shard, '${memberPrefix}') AND NOT ${holds}
          AND state LIKE 'idle in transaction%' AND usename = current_user AND pid <> pg_backend_pid()`,
    );
  }

  async #session(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const client = await this.#parts.open();
    const lost = () => {
      if (this.#client === client) this.#client = undefined;
    };
    client.on('error', lost).on('end', lost);
    this.#client = client;
    return client;
  }

  /** In time, or with a session made anew the next time. @returns the rows of the last statement */
  async #query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    const { clock, duration } = this.#parts;
    const client = await this.#session();
    const answer = client.query<Row>(text);
    try {
      const done = answer.then(() => undefined);
      if (!(await within(clock, duration / renewals, done)))
        throw new Error('the database did not answer in time');
      // Several statements in one text have a result each.
      return [await answer].flat().at(-1)?.rows ?? [];
    } catch (error) {
      this.#client = undefined;
      client.end().catch(() => undefined);
      throw error;
    }
  }
}

/** Ends the sessions of a daemon whose lease is over: a transaction that stands still keeps rows locked. */
export function endOfSessions(application: string): string {
  return `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE starts_with(application_name, ${pg.escapeLiteral(application)}) AND usename = current_user AND pid <> pg_backend_pid()`;
}

/** Whether this is the fence's answer to a commit of a former holder. */
export function isFenced(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '22012' && messageOf(error).includes('zero');
}

function alreadyRunning(instance: string, holder: LeaseHolder | undefined): ThresherError {
  const who = holder === undefined ? '' : `, ${holder.holder} since ${holder.since}`;
  const message = `another daemon has the factory ${instance} in the same database${who}`;
  return new ThresherError('already-running', message, { instance });
}
