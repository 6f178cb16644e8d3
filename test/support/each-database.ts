import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type DatabasePlace, openStore, type Store } from '../../src/store/store.ts';
import { newDatabase, type PostgresqlServer, sharedPostgresql } from './postgresql.ts';
import { temporaryDirectory } from './temporary.ts';

/** An empty database of one kind, and what a test does to it beside the store. */
export interface TestDatabase {
  readonly place: DatabasePlace;
  open(instance?: string): Promise<Store>;
  /** Rows of a query that both kinds read alike. */
  rows<Row>(text: string): Promise<Row[]>;
  /** Statements that both kinds read alike. */
  execute(text: string): Promise<void>;
  /** Lets every insert into a table fail. @returns what takes that back */
  refuseInserts(table: string): Promise<() => Promise<void>>;
}

export interface DatabaseKind {
  readonly name: 'SQLite' | 'PostgreSQL';
  fresh(): Promise<TestDatabase>;
  /** A store on an empty database. */
  openNew(): Promise<Store>;
  /** How often a property is tried that needs a database for each try: to empty one takes longer where it has a server. */
  runs(usual: number): number;
  /** A text as the database gives it back. */
  kept(text: string): string;
  /** Its own codes: a second row with one key, and a row without a value that it must have. */
  readonly codes: { readonly duplicate: string; readonly missing: string };
}

/** Describes the same for each kind of database. */
export function onEachDatabase(title: string, describeIt: (kind: DatabaseKind) => void): void {
  describe(title, () => {
    describeIt(sqlite);
  });
  describe(`${title}, on PostgreSQL`, () => {
    describeIt(postgresql);
  });
}

/** The file of a database that is one. */
export function fileOf({ place }: TestDatabase): string {
  if (typeof place === 'string') return place;
  throw new Error('this database is no file');
}

const sqlite: DatabaseKind = {
  name: 'SQLite',
  openNew: () => openStore(':memory:', 'factory'),
  runs: (usual) => usual,
  kept: (text) => text,
  codes: { duplicate: 'SQLITE_CONSTRAINT_PRIMARYKEY', missing: 'SQLITE_CONSTRAINT_NOTNULL' },
  async fresh() {
    const file = join(temporaryDirectory(), 'thresher.db');
    const use = <T>(work: (db: Database.Database) => T): T => {
      const db = new Database(file);
      try {
        return work(db);
      } finally {
        db.close();
      }
    };
    const execute = async (text: string) => {
      use((db) => db.exec(text));
    };
    return {
      place: file,
      open: (instance = 'factory') => openStore(file, instance),
      rows: async <Row>(text: string) => use((db) => db.prepare(text).all() as Row[]),
      execute,
      async refuseInserts(table) {
        await execute(
          `CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'broken'); END`,
        );
        return () => execute('DROP TRIGGER broken');
      },
    };
  },
};

/** A database that tests use one after the other. */
interface Used {
  readonly server: PostgresqlServer;
  readonly name: string;
  open: number;
}
const used: Used[] = [];

const postgresql: DatabaseKind = {
  name: 'PostgreSQL',
  openNew: async () => (await postgresql.fresh()).open(),
  runs: (usual) => Math.ceil(usual / 5),
  // Its texts have no NUL.
  kept: (text) => text.replaceAll('\0', '\uFFFD'),
  codes: { duplicate: '23505', missing: '23502' },
  async fresh() {
    const server = await sharedPostgresql();
    const free = used.slice(0, -1).find((one) => one.open === 0 && one.server === server);
    const own: Used = free ?? { server, name: await newDatabase(server), open: 0 };
    if (free !== undefined) {
      used.splice(used.indexOf(free), 1);
      await empty(own.name);
    }
    used.push(own);
    const execute = async (text: string) => {
      await server.query(text, own.name);
    };
    return {
      place: server.options(own.name),
      async open(instance = 'factory') {
        const store = await openStore(server.options(own.name), instance);
        own.open++;
        const close = store.close.bind(store);
        let closed = false;
        return Object.assign(store, {
          close: async () => {
            if (!closed) own.open--;
            closed = true;
            await close();
          },
        });
      },
      rows: <Row>(text: string) => server.query<Row>(text, own.name),
      execute,
      async refuseInserts(table) {
        await execute(`CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'broken'; END $$;
          CREATE TRIGGER broken BEFORE INSERT ON ${table} EXECUTE FUNCTION broken()`);
        return () => execute(`DROP TRIGGER broken ON ${table}`);
      },
    };
  },
};

async function empty(database: string): Promise<void> {
  const server = await sharedPostgresql();
  const tables = await server.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'kysely_migration'`,
    database,
  );
  if (tables.length === 0) return;
  await server.query('DROP FUNCTION IF EXISTS broken CASCADE', database);
  await server.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')} RESTART IDENTITY`, database);
}
