import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { ThresherError } from '../worker/errors.ts';
import type { OpenDatabase } from './sql/open-database.ts';
import { inTransaction } from './sql/transaction.ts';
import type { Tables } from './tables.ts';

/** Every table, with the columns that tell its rows apart. */
const keys: Readonly<Record<keyof Tables, readonly string[]>> = {
  workers: ['worker_id'],
  transitions: ['id'],
  configs: ['config_id'],
  queues: ['instance', 'queue'],
  commands: ['id'],
  orphans: ['instance', 'connection', 'place'],
  counters: ['instance', 'name'],
  news: ['id'],
  payloads: ['id'],
  payload_shares: ['instance', 'share_id'],
  spent_origins: ['instance', 'origin_kind', 'origin_uid', 'origin_index'],
  requests: ['instance', 'id'],
  source_memories: ['instance', 'source', 'name'],
};
const tables = Object.keys(keys) as (keyof Tables)[];

/** Rows that are read at once. */
const atOnce = 500;
/** Values that one statement binds, for which every database has room. */
const mostBound = 30_000;

type Row = Readonly<Record<string, unknown>>;

/** Rows by table. */
export type Copied = Readonly<Record<keyof Tables, number>>;

/**
 * Copies every row of one database, as of one moment, into another one that is empty, reads them back, and compares them: all of
 * it or nothing.
 * @throws ThresherError `copy-target`, `copy-failed`, and what the databases say
 */
export async function copyRows(from: OpenDatabase, to: OpenDatabase): Promise<Copied> {
  const ids = await from.lastIds();
  const copy = (reader: Kysely<Tables>) =>
    inTransaction(to.db, async (tx) => {
      for (const table of tables) await requireEmpty(tx, table, to.file);
      const copied: Partial<Record<keyof Tables, number>> = {};
      for (const table of tables) {
        const read = new Tally();
        for await (const rows of rowsOf(reader, table)) {
          read.add(rows);
          await insert(tx, table, rows);
        }
        const written = new Tally();
        for await (const rows of rowsOf(tx, table)) written.add(rows);
        if (written.text !== read.text) {
          const message = `of ${table} there were ${read.count} rows, and ${written.count} came, or others`;
          throw new ThresherError('copy-failed', message, { table });
        }
        copied[table] = read.count;
      }
      await to.setLastIds(tx, ids);
      return copied as Copied;
    });
  return from.snapshot(copy);
}

/** A count of daemons belongs to the database and not to its rows. */
const own = sql`name <> 'daemonEpoch'`;

async function requireEmpty(db: Kysely<Tables>, table: keyof Tables, file: string): Promise<void> {
  const which = table === 'counters' ? sql`WHERE ${own}` : sql``;
  const { rows } = await sql`SELECT 1 AS one FROM ${sql.table(table)} ${which} LIMIT 1`.execute(db);
  if (rows.length === 0) return;
  const message = `${file} has rows in ${table}: only an empty database is copied into`;
  throw new ThresherError('copy-target', message, { file, table });
}

async function* rowsOf(db: Kysely<Tables>, table: keyof Tables): AsyncGenerator<readonly Row[]> {
  const columns = sql.join(keys[table].map((key) => sql.ref(key)));
  const conditions = table === 'counters' ? sql` AND ${own}` : sql``;
  let last: Row | undefined;
  for (;;) {
    const values = sql.join(keys[table].map((key) => sql`${last?.[key]}`));
    const after = last === undefined ? sql`true` : sql`(${columns}) > (${values})`;
    const { rows } = await sql<Row>`SELECT * FROM ${sql.table(table)} WHERE ${after}${conditions}
      ORDER BY ${columns} LIMIT ${atOnce}`.execute(db);
    if (rows.length > 0) yield rows;
    last = rows.at(-1);
    if (rows.length < atOnce) return;
  }
}

async function insert(db: Kysely<Tables>, table: keyof Tables, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const most = Math.floor(mostBound / columns.length);
  for (let start = 0; start < rows.length; start += most) {
    const values = rows
      .slice(start, start + most)
      .map((row) => sql`(${sql.join(columns.map((column) => sql`${row[column]}`))})`);
    const names = sql.join(columns.map((column) => sql.ref(column)));
    await sql`INSERT INTO ${sql.table(table)} (${names}) VALUES ${sql.join(values)}`.execute(db);
  }
}

/** Counts rows and remembers what was in them. */
class Tally {
  count = 0;
  readonly #hash = createHash('sha256');

  add(rows: readonly Row[]): void {
    this.count += rows.length;
    for (const row of rows) {
      const sorted = Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1));
      // PostgreSQL's texts have no NUL.
      this.#hash.update(
        JSON.stringify(sorted).replaceAll('\\u0000', '\\uFFFD').replaceAll('\uFFFD', '\\uFFFD'),
      );
    }
  }

  get text(): string {
    return `${this.count} ${this.#hash.copy().digest('hex')}`;
  }
}
