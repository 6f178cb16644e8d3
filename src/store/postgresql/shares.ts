import { CompiledQuery, type Kysely, sql } from 'kysely';
import type { Member, Share, ShareStore } from '../shares.ts';
import { inTransaction } from '../sql/transaction.ts';
import type { Tables } from '../tables.ts';
import { endOfSessions, membersQuery, shardOf } from './lease.ts';

/** The daemons that share a factory; empty where none ever did. */
export async function membersOf(db: Kysely<Tables>, instance: string): Promise<Member[]> {
  const { rows } = await db.executeQuery<Omit<Member, 'knows'>>(CompiledQuery.raw(membersQuery, [instance]));
  if (rows.length === 0) return [];
  const known = await sql<{ member: string; knows: string }>`
    SELECT member, knows FROM members WHERE instance = ${instance}`.execute(db);
  const digests = new Map(known.rows.map(({ member, knows }) => [member, knows]));
  return rows.map((row) => ({ ...row, knows: digests.get(row.name) }));
}

/** The shares of a factory. */
export async function sharesOf(db: Kysely<Tables>, instance: string): Promise<Share[]> {
  const { rows } = await sql<Share>`
    SELECT item, member, floor(extract(epoch FROM since) * 1000)::bigint AS since FROM shares
    WHERE instance = ${instance} ORDER BY item`.execute(db);
  return rows;
}

/** The shares of a factory, as one of the daemons that share it changes them. */
export class PostgresqlShares implements ShareStore {
  readonly member: string;
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string, member: string) {
    this.#db = db;
    this.#instance = instance;
    this.member = member;
  }

  members(): Promise<Member[]> {
    return membersOf(this.#db, this.#instance);
  }

  all(): Promise<Share[]> {
    return sharesOf(this.#db, this.#instance);
  }

  async know(digest: string): Promise<void> {
    await sql`INSERT INTO members (instance, member, knows) VALUES (${this.#instance}, ${this.member}, ${digest})
      ON CONFLICT (instance, member) DO UPDATE SET knows = excluded.knows`.execute(this.#db);
  }

  async take(items: readonly string[]): Promise<ReadonlySet<string>> {
    return inTransaction(this.#db, async (tx) => {
      const wanted = sql`instance = ${this.#instance} AND item = ANY(${[...items]}::text[])`;
      const former = await sql<{ member: string }>`
        SELECT DISTINCT member FROM shares WHERE ${wanted} AND member <> ${this.member}`.execute(tx);
      const gone: string[] = [];
      for (const { member } of former.rows) if (await this.#fence(tx, member)) gone.push(member);
      const taken = await sql<{ item: string }>`
        INSERT INTO shares AS share (instance, item, member, since)
        SELECT ${this.#instance}, item, ${this.member}, clock_timestamp() FROM unnest(${[...items]}::text[]) AS item
        ON CONFLICT (instance, item) DO UPDATE SET member = excluded.member, since = excluded.since
          WHERE share.member = ANY(${gone}::text[])
        RETURNING item`.execute(tx);
      return new Set(taken.rows.map(({ item }) => item));
    });
  }

  async give(items: readonly string[], to: string): Promise<void> {
    await sql`UPDATE shares SET member = ${to}, since = clock_timestamp()
      WHERE instance = ${this.#instance} AND member = ${this.member} AND item = ANY(${[...items]}::text[])`.execute(
      this.#db,
    );
  }

  async forget(items: readonly string[]): Promise<void> {
    await sql`DELETE FROM shares
      WHERE instance = ${this.#instance} AND member = ${this.member} AND item = ANY(${[...items]}::text[])`.execute(
      this.#db,
    );
  }

  /** Keeps a daemon whose lease is over from committing anything from now on; @returns whether it is over. */
  async #fence(tx: Kysely<Tables>, member: string): Promise<boolean> {
    const own = sql`instance = ${this.#instance} AND shard = ${shardOf(member)}`;
    const { rows } = await sql<{ application: string }>`
      UPDATE leases SET epoch = epoch + 1 WHERE ${own} AND expires_at <= clock_timestamp()
      RETURNING application`.execute(tx);
    const [lease] = rows;
    if (lease !== undefined) {
      await sql.raw(endOfSessions(lease.application)).execute(tx);
      return true;
    }
    // An operator may have deleted its row.
    const there = await sql`SELECT 1 FROM leases WHERE ${own}`.execute(tx);
    return there.rows.length === 0;
  }
}
