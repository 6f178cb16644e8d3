import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** Statements that are kept: a daemon has some dozens. */
const mostKept = 200;
/** A longer text has values or lists written out in it, and seldom comes again. Characters. */
const longestKept = 4000;

/**
 * A database that prepares each text once. Kysely prepares anew for each query, and better-sqlite3 frees a statement only
 * when the garbage collector finds it, to which it looks tiny: megabytes of them would pile up between two collections.
 */
export class KeptStatements implements SqliteDatabase {
  readonly #database: SqliteDatabase;
  /** The one that was used last comes last. */
  readonly #kept = new Map<string, SqliteStatement>();

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  prepare(sql: string): SqliteStatement {
    const kept = this.#kept.get(sql);
    const statement = kept ?? this.#database.prepare(sql);
    if (sql.length > longestKept) return statement;
    this.#kept.delete(sql);
    this.#kept.set(sql, statement);
    if (this.#kept.size > mostKept) {
      for (const oldest of this.#kept.keys().take(1)) this.#kept.delete(oldest);
    }
    return statement;
  }

  close(): void {
    this.#kept.clear();
    this.#database.close();
  }
}
