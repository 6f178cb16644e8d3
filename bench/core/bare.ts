import Database from 'better-sqlite3';

/** Changes per transaction: the daemon's own batch. */
const perTransaction = 500;

export interface BareChange {
  readonly workerId: number;
  readonly from: string;
  readonly to: string;
  readonly nativeStatus: string;
  readonly node: string | null;
  readonly startTime: number | null;
}

/** The work without a daemon: prepared statements in a loop, on a database with the same rows and pragmas. */
export class BareLoop {
  readonly #db: Database.Database;
  readonly #change: Database.Transaction<(changes: readonly BareChange[]) => void>;

  constructor(file: string) {
    this.#db = new Database(file);
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = FULL');
    const update = this.#db.prepare(
      `UPDATE workers SET status = ?, modification_time = ?, native_status = ?, node_id = ?, start_time = ?
       WHERE worker_id = ? AND status = ?`,
    );
    const insert = this.#db.prepare(
      `INSERT INTO transitions (worker_id, at, from_status, to_status, source, native_status, message)
       VALUES (?, ?, ?, ?, 'monitor', ?, NULL)`,
    );
    this.#change = this.#db.transaction((changes: readonly BareChange[]) => {
      const at = Date.now();
      for (const { workerId, from, to, nativeStatus, node, startTime } of changes) {
        const { changes: done } = update.run(to, at, nativeStatus, node, startTime, workerId, from);
        if (done !== 1) throw new Error('the copy of the database has another state');
        insert.run(workerId, at, from, to, nativeStatus);
      }
    });
  }

  /** @returns ms */
  write(changes: readonly BareChange[]): number {
    const start = performance.now();
    for (let at = 0; at < changes.length; at += perTransaction)
      this.#change(changes.slice(at, at + perTransaction));
    return performance.now() - start;
  }

  close(): void {
    this.#db.close();
  }
}
