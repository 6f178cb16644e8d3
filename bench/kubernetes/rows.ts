import Database from 'better-sqlite3';
import { systemClock } from '../../src/util/clock.ts';

/** Between two looks whether anything was committed, ms. */
const lookEvery = 4;

/** The daemon's database as another program sees it: a row counts from when it can be read. */
export class Rows {
  readonly #db: Database.Database;

  constructor(file: string) {
    this.#db = new Database(file, { readonly: true });
  }

  /** @param condition in SQL, on the table of workers */
  count(condition: string): number {
    return this.value(`SELECT count(*) FROM workers WHERE ${condition}`);
  }

  /** The first column of the first row; 0 where that is null. */
  value(sql: string): number {
    return Number(this.#db.prepare(sql).pluck().get() ?? 0);
  }

  list<T>(sql: string, ...values: readonly unknown[]): T[] {
    return this.#db.prepare(sql).all(...values) as T[];
  }

  /**
   * Looks after each commit until it holds.
   * @param patience ms
   * @returns when it held, ms UTC.
   * @throws when it does not in time.
   */
  async until(what: string, holds: () => boolean, patience = 600_000): Promise<number> {
    const begun = performance.now();
    let version = -1;
    for (;;) {
      const now = Number(this.#db.pragma('data_version', { simple: true }));
      if (now !== version && holds()) return Date.now();
      version = now;
      if (performance.now() - begun > patience) throw new Error(`in vain waited for: ${what}`);
      await systemClock.sleep(lookEvery);
    }
  }

  close(): void {
    this.#db.close();
  }
}
