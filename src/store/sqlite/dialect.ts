import { sql } from 'kysely';
import type { Dialect } from '../dialect.ts';

/** SQLite has no arrays: lists and rows are bound as one JSON text each. */
export const sqliteDialect: Dialect = {
  values: (values) => sql`SELECT value FROM json_each(${JSON.stringify(values)})`,
  rows(alias, columns, rows) {
    const names = Object.keys(columns);
    const places = new Map(names.map((name, place) => [name, place]));
    const getters = names.map((name) => columns[name as keyof typeof columns].of);
    // Arrays: with the names in every row the text would be twice as long.
    const all = JSON.stringify(rows.map((row) => getters.map((of) => of(row) ?? null)));
    return {
      from: sql`json_each(${all}) AS ${sql.raw(alias)}`,
      column(name) {
        const place = places.get(name);
        if (place === undefined) throw new Error(`${alias} has no column ${name}`);
        return sql.raw(`${alias}.value ->> ${place}`);
      },
    };
  },
  tableBy: (table, index) => sql.raw(`${table} INDEXED BY ${index}`),
  // SQLite uses no index for an expression that none was made for.
  unindexed: (column) => sql.raw(`+${column}`),
  greatest: (one, other) => sql`max(${one}, ${other})`,
  // Only around what is secret: pruning would write every page that it frees.
  async erasing(tx, work) {
    await sql`PRAGMA secure_delete = ON`.execute(tx);
    try {
      return await work();
    } finally {
      await sql`PRAGMA secure_delete = OFF`.execute(tx);
    }
  },
};
