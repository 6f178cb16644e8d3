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

  /**
   * Follows the ends of these workers, from now on.
   * @param patience ms
   * @returns for each when its end could first be read, ms UTC.
   */
  async untilFinished(ids: ReadonlySet<number>, patience: number): Promise<ReadonlyMap<number, number>> {
    const read = new Map<number, number>();
    let newest = this.value('SELECT max(id) FROM transitions');
    const look = () => {
      const now = Date.now();
      const found = this.list<{ id: number; workerId: number }>(
        `SELECT id, worker_id AS workerId FROM transitions WHERE id > ? AND to_status = 'finished' ORDER BY id`,
        newest,
      );
      for (const { id, workerId } of found) {
        newest = id;
        if (ids.has(workerId)) read.set(workerId, now);
      }
      return read.size === ids.size;
    };
    await this.until('all ends are written', look, patience);
    return read;
  }

  close(): void {
    this.#db.close();
  }
}
