import { sql } from 'kysely';
import type { Dialect } from '../dialect.ts';
import type { ColumnType } from '../tables.ts';

/** How an array of such values is called. */
const arrays: Readonly<Record<ColumnType, string>> = {
  integer: 'bigint[]',
  number: 'double precision[]',
  text: 'text[]',
};

/** Lists are bound as one array each, and rows as one array for each column. */
export const postgresqlDialect: Dialect = {
  values: (values, type) => sql`SELECT unnest(${arrayOf(values)}::${sql.raw(arrays[type])})`,
  rows(alias, columns, rows) {
    const names = Object.keys(columns) as (keyof typeof columns)[];
    const bound = names.map((name) => {
      const { of, type } = columns[name];
      return sql`${columnOf(rows.map((row) => of(row) ?? null))}::${sql.raw(arrays[type])}`;
    });
    const quoted = names.map((name) => `"${name}"`);
    return {
      from: sql`unnest(${sql.join(bound)}) AS ${sql.raw(`${alias}(${quoted.join(', ')})`)}`,
      column(name) {
        if (!names.includes(name)) throw new Error(`${alias} has no column ${name}`);
        return sql.raw(`${alias}."${name}"`);
      },
    };
  },
  // PostgreSQL takes no advice: it chooses by its statistics.
  tableBy: (table) => sql.raw(table),
  unindexed: (column) => sql.raw(column),
  greatest: (one, other) => sql`greatest(${one}, ${other})`,
  // Deleted rows stay in the files until PostgreSQL vacuums them, and in its log until that is recycled.
  erasing: (_tx, work) => work(),
};

/** A column that no row has is an empty array: `unnest` fills shorter arrays up with NULL. Most changes bring few columns. */
function columnOf(values: readonly (string | number | null)[]): string {
  return values.every((value) => value === null) ? '{}' : arrayOf(values);
}

/** An array as PostgreSQL writes it: the driver's own way of writing them takes three times as long. */
function arrayOf(values: readonly (string | number | null)[]): string {
  return `{${values.map(element).join(',')}}`;
}

function element(value: string | number | null): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  return `"${/["\\]/.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`;
}
