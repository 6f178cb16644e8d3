import { type Kysely, sql } from 'kysely';
import type { KnownWorker, WorkerNews } from '../../worker/news.ts';
import type { Dialect } from '../dialect.ts';
import type { NewsTable, Tables, WorkersTable } from '../tables.ts';
import { isIn } from './conditions.ts';
import type { PayloadWriter } from './payload-writer.ts';

/** The facts of a worker that its news have, by their columns, which have the same names in both tables. */
export const knownColumns = {
  workerId: 'worker_id',
  status: 'status',
  computingSite: 'computing_site',
  resourceType: 'resource_type',
  jobType: 'job_type',
  nCore: 'n_core',
  minRamCount: 'min_ram_count',
  batchId: 'batch_id',
  nativeStatus: 'native_status',
  exitCode: 'native_exit_code',
  errorCode: 'error_code',
  diagMessage: 'diag_message',
  node: 'node_id',
  computingElement: 'computing_element',
  placement: 'placement',
  creationTime: 'creation_time',
  submitTime: 'submit_time',
  startTime: 'start_time',
  endTime: 'end_time',
} as const satisfies Readonly<Record<keyof KnownWorker, keyof WorkersTable & keyof NewsTable>>;

/** The time of the change in a worker's row, by the kind of its news. */
const timeColumns = {
  added: 'creation_time',
  changed: 'modification_time',
  swept: 'swept_time',
} as const satisfies Partial<Record<WorkerNews['what'], keyof WorkersTable>>;

const own = ['instance', 'origin_kind', 'origin_uid', 'origin_index', 'queue'] as const;
const none: ReadonlySet<string> = new Set();

/** A row that a statement wrote, as far as it tells whether its news are wanted. */
export interface Written {
  readonly worker_id: number;
  readonly origin_kind: string;
}

/** They write beside workers, in the same transactions. */
export interface BesideWorkers {
  readonly news: NewsWriter;
  readonly payloads: PayloadWriter;
}

/** Writes news inside the transactions that write workers. One per store: it knows the kinds that a source listens to. */
export class NewsWriter {
  readonly #dialect: Dialect;
  #kinds: ReadonlySet<string> = none;
  #committed: ReadonlySet<string> = none;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  listen(kinds: ReadonlySet<string>): void {
    this.#kinds = new Set(kinds);
  }

  /** Whether any news are wanted: only then need a statement return the kinds of its rows. */
  get isWanted(): boolean {
    return this.#kinds.size > 0;
  }

  hears(kind: string): boolean {
    return this.#kinds.has(kind);
  }

  /** Writes what the rows of these workers say by now; @returns the kinds of the news, for `committed`. */
  async write(
    tx: Kysely<Tables>,
    what: keyof typeof timeColumns,
    written: readonly Written[],
  ): Promise<ReadonlySet<string>> {
    const heard = written.filter(({ origin_kind }) => this.#kinds.has(origin_kind));
    if (heard.length === 0) return none;
    const known = Object.values(knownColumns);
    const columns = sql.join([...own, ...known].map((column) => sql.raw(column)));
    await sql`INSERT INTO news (what, at, ${columns})
      SELECT ${what}, ${sql.raw(timeColumns[what])}, ${columns} FROM workers
      WHERE ${isIn(
        this.#dialect,
        heard.map(({ worker_id }) => worker_id),
      )} ORDER BY worker_id`.execute(tx);
    return new Set(heard.map(({ origin_kind }) => origin_kind));
  }

  /** News of these kinds are in the database by now. */
  committed(kinds: ReadonlySet<string>): void {
    if (kinds.size > 0) this.#committed = new Set([...this.#committed, ...kinds]);
  }

  /** Kinds of which news were committed since the last call. */
  takeCommitted(): ReadonlySet<string> {
    const kinds = this.#committed;
    this.#committed = none;
    return kinds;
  }
}
