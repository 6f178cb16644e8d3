import { existsSync, rmSync } from 'node:fs';
import { ThresherError } from '../worker/errors.ts';
import type { CommandStore } from './commands.ts';
import type { Copied } from './copy.ts';
import type { FigureStore } from './figures.ts';
import type { LoadStore } from './load.ts';
import type { NewsStore } from './news.ts';
import type { OriginStore } from './origins.ts';
import type { OrphanStore } from './orphans.ts';
import type { PayloadStore } from './payloads.ts';
import type { QueueStore } from './queues.ts';
import type { RequestStore } from './requests.ts';
import type { RetentionStore } from './retention.ts';
import type { LeaseHolder } from './lease-holder.ts';
import type { SharedOut, ShareStore } from './shares.ts';
import type { SourceMemoryStore } from './source-memories.ts';
import { nameOf, type PostgresqlOptions } from '../util/postgresql-options.ts';
import { SqlCommandStore } from './sql/commands.ts';
import type { OpenDatabase } from './sql/open-database.ts';
import { SqlFigureStore } from './sql/figures.ts';
import { SqlLoadStore } from './sql/load.ts';
import { SqlNewsStore } from './sql/news.ts';
import { NewsWriter } from './sql/news-writer.ts';
import { SqlOriginStore } from './sql/origins.ts';
import { SqlOrphanStore } from './sql/orphans.ts';
import { PayloadWriter } from './sql/payload-writer.ts';
import { SqlPayloadStore } from './sql/payloads.ts';
import { SqlQueueStore } from './sql/queues.ts';
import { SqlRequestStore } from './sql/requests.ts';
import { SqlRetentionStore } from './sql/retention.ts';
import { SqlSourceMemoryStore } from './sql/source-memories.ts';
import { SqlWorkerIds } from './sql/worker-ids.ts';
import { SqlWorkerStore } from './sql/workers.ts';
import type { CheckResult } from './sql/check-rules.ts';
import { checkDatabase as checkFile } from './sqlite/check.ts';
import { openBeside, openForDaemon } from './sqlite/database.ts';
import { filesOf } from './sqlite/files.ts';
import { type Instance, instancesIn } from './sqlite/instances.ts';
import type { WorkerIds } from './worker-ids.ts';
import type { WorkerStore } from './workers.ts';

/** Everything that is kept, of one factory. The only place with SQL is this folder. */
export interface Store {
  /** The database as messages name it. */
  readonly file: string;
  readonly workers: WorkerStore;
  readonly load: LoadStore;
  readonly ids: WorkerIds;
  readonly queues: QueueStore;
  readonly commands: CommandStore;
  readonly orphans: OrphanStore;
  readonly retention: RetentionStore;
  readonly figures: FigureStore;
  readonly news: NewsStore;
  readonly origins: OriginStore;
  readonly payloads: PayloadStore;
  readonly requests: RequestStore;
  readonly sourceMemories: SourceMemoryStore;
  /** Whether another process wrote since the last call: nearly free. */
  changedElsewhere(): boolean;
  /** Whether this process may act for the factory now: a lease in the database may have run out. */
  mayAct(): boolean;
  /** What daemons that share the factory agree on. It is missing where this one does not share. */
  readonly shares?: ShareStore;
  /** The daemons that share the factory, and who has what. It is missing where no database tells. */
  readonly sharedOut?: () => Promise<SharedOut>;
  /** The daemon that has the factory now. It is missing where only a daemon of the state directory can. */
  readonly leader?: () => Promise<LeaseHolder | undefined>;
  /** Bytes that the database takes. */
  bytes(): Promise<number>;
  /** An error that one of these threw as one with a stable code. */
  errorOf(error: unknown): ThresherError;
  close(): Promise<void>;
}

/** A SQLite file, or a PostgreSQL database. */
export type DatabasePlace = string | PostgresqlOptions;

/** What a daemon hears of its database, beside the rows. */
export interface DaemonEnds {
  /** Memory and database may differ: the daemon must begin anew, and every statement is refused from now on. */
  readonly mustEnd?: (error: ThresherError) => void;
  /** Another daemon has the factory, which this one waits for. Default: it does not wait. */
  readonly waiting?: (holder: LeaseHolder) => void;
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined;
}

/** For the daemon: creates and migrates. `instance` is the factory's id; rows of others are never touched. */
export async function openStore(
  place: DatabasePlace,
  instance: string,
  ends: DaemonEnds = {},
): Promise<Store> {
  if (typeof place === 'string') return storeOn(await openForDaemon(place), instance);
  const postgresql = await postgresqlDatabases();
  return storeOn(await postgresql.openForDaemon(place, { instance, ...ends }), instance);
}

/**
 * Beside a daemon that may or may not run.
 * @param asker a command waits for a server of PostgreSQL as long as it takes
 */
export async function openStoreBeside(
  place: DatabasePlace,
  instance: string,
  access: 'read' | 'write',
  asker: 'command' | 'daemon' = 'command',
): Promise<Store> {
  if (typeof place === 'string') return storeOn(await openBeside(place, access), instance);
  return storeOn(await (await postgresqlDatabases()).openBeside(place, access, asker), instance);
}

/** The factories that have used a database; empty where there is none, or nothing in it. @throws ThresherError as `openStoreBeside` */
export async function instancesAt(place: DatabasePlace): Promise<readonly Instance[]> {
  if (typeof place === 'string') return instancesIn(place);
  return (await postgresqlDatabases()).instancesOf(place);
}

/**
 * Copies all rows of a database into one of another kind. No daemon may use either: it takes PostgreSQL as a daemon would, and
 * the caller keeps daemons from the state directory.
 * @throws ThresherError as `copyRows` and the opening of both
 */
export async function copyDatabases(
  from: DatabasePlace,
  to: DatabasePlace,
  instance: string,
): Promise<Copied> {
  if (typeof to === 'string' && existsSync(to))
    throw new ThresherError('copy-target', `${to} is there already: only an empty database is copied into`, {
      file: to,
    });
  const source = await (typeof from === 'string' ? openBeside(from, 'read') : openPostgresql(from, instance));
  try {
    return await copyInto(source, to, instance);
  } finally {
    await source.close();
  }
}

/** Copies what a PostgreSQL database has now into a new file of SQLite, also beside a daemon. */
export async function copyToFile(from: PostgresqlOptions, file: string): Promise<void> {
  const source = await (await postgresqlDatabases()).openBeside(from, 'read', 'command');
  try {
    await copyInto(source, file, '');
  } finally {
    await source.close();
  }
}

async function copyInto(source: OpenDatabase, to: DatabasePlace, instance: string): Promise<Copied> {
  const { copyRows } = await import('./copy.ts');
  const target = await (typeof to === 'string' ? openForDaemon(to) : openPostgresql(to, instance));
  let copied: Copied | undefined;
  try {
    copied = await copyRows(source, target);
    return copied;
  } catch (error) {
    throw target.errorOf(error);
  } finally {
    await target.close();
    if (copied === undefined && typeof to === 'string')
      for (const one of filesOf(to)) rmSync(one, { force: true });
  }
}

/** Takes all of the factory, also where daemons share it. */
async function openPostgresql(options: PostgresqlOptions, instance: string): Promise<OpenDatabase> {
  return (await postgresqlDatabases()).openForDaemon({ ...options, member: undefined }, { instance });
}

/** The database as messages name it. */
export function placeName(place: DatabasePlace): string {
  return typeof place === 'string' ? place : nameOf(place);
}

/** Its driver is loaded only where it is needed: that would be a tenth of the start of each command. */
function postgresqlDatabases() {
  return import('./postgresql/database.ts');
}

const noneShared: SharedOut = { members: [], shares: [] };

/** The store of one factory on an open database, whichever kind of database that is. */
export function storeOn(database: OpenDatabase, instance: string): Store {
  const rows = { db: database.db, dialect: database.dialect, instance };
  const news = new NewsWriter(database.dialect);
  const payloads = new PayloadWriter(rows);
  return {
    file: database.file,
    workers: new SqlWorkerStore(rows, { news, payloads }),
    load: new SqlLoadStore(rows),
    ids: new SqlWorkerIds(rows),
    queues: new SqlQueueStore(rows),
    commands: new SqlCommandStore(rows),
    orphans: new SqlOrphanStore(rows),
    requests: new SqlRequestStore(rows),
    sourceMemories: new SqlSourceMemoryStore(rows),
    retention: new SqlRetentionStore(rows, () => database.vacuum()),
    figures: new SqlFigureStore(rows),
    news: new SqlNewsStore(rows, news),
    origins: new SqlOriginStore(rows, news),
    payloads: new SqlPayloadStore(rows, () => database.emptyLog()),
    changedElsewhere: () => database.changedElsewhere(),
    mayAct: () => database.mayAct(),
    ...(database.shares && { shares: database.shares }),
    ...(database.sharedOut && { sharedOut: async () => database.sharedOut?.(instance) ?? noneShared }),
    ...(database.leader && { leader: async () => database.leader?.(instance) }),
    bytes: () => database.bytes(),
    errorOf: (error) => database.errorOf(error),
    close: () => database.close(),
  };
}

/** Checks a database, also beside a daemon. @throws ThresherError where there is nothing that could be checked */
export async function checkDatabase(place: DatabasePlace): Promise<CheckResult> {
  if (typeof place === 'string') return checkFile(place);
  const { checkPostgresql } = await import('./postgresql/check.ts');
  return checkPostgresql(place);
}
