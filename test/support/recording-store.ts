import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import type { OpenDatabase } from '../../src/store/sql/open-database.ts';
import { sqliteDialect } from '../../src/store/sqlite/dialect.ts';
import { storeError } from '../../src/store/sqlite/errors.ts';
import { openStore, type Store, storeOn } from '../../src/store/store.ts';
import type { Tables } from '../../src/store/tables.ts';
import { temporaryDirectory } from './temporary.ts';

/** The parts of a store that ask the database. */
export const parts = [
  'workers',
  'load',
  'ids',
  'queues',
  'commands',
  'orphans',
  'retention',
  'figures',
  'news',
  'origins',
  'payloads',
  'requests',
  'sourceMemories',
] as const;
export type Queries = Pick<Store, (typeof parts)[number]>;

export interface RecordingStore {
  readonly store: Queries;
  readonly sqlite: Database.Database;
  /** The statements that the store ran since the last call. */
  readonly ran: () => CompiledQuery[];
  readonly close: () => Promise<void>;
}

/** A store of `factory` on a real SQLite database, which keeps what it asks. */
export async function recordingStore(): Promise<RecordingStore> {
  const file = join(temporaryDirectory(), 'thresher.db');
  await (await openStore(file, 'factory')).close();
  const sqlite = new Database(file);
  let queries: CompiledQuery[] = [];
  const db = new Kysely<Tables>({
    dialect: new SqliteDialect({ database: sqlite }),
    log: ({ query }) => {
      queries.push(query);
    },
  });
  const database: OpenDatabase = {
    file,
    db,
    dialect: sqliteDialect,
    changedElsewhere: () => false,
    mayAct: () => true,
    bytes: async () => 0,
    snapshot: (work) => work(db),
    lastIds: async () => new Map(),
    setLastIds: async () => undefined,
    vacuum: async () => undefined,
    emptyLog: async () => true,
    errorOf: (error) => storeError(error, file),
    close: () => db.destroy(),
  };
  return {
    store: storeOn(database, 'factory'),
    sqlite,
    ran() {
      const since = queries;
      queries = [];
      return since;
    },
    close: () => db.destroy(),
  };
}
