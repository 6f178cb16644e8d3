import type { ThresherError } from '../worker/errors.ts';
import type { CommandStore } from './commands.ts';
import type { FigureStore } from './figures.ts';
import type { LoadStore } from './load.ts';
import type { NewsStore } from './news.ts';
import type { OriginStore } from './origins.ts';
import type { OrphanStore } from './orphans.ts';
import type { PayloadStore } from './payloads.ts';
import type { QueueStore } from './queues.ts';
import type { RequestStore } from './requests.ts';
import type { RetentionStore } from './retention.ts';
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
import { SqlWorkerIds } from './sql/worker-ids.ts';
import { SqlWorkerStore } from './sql/workers.ts';
import { openBeside, openForDaemon } from './sqlite/database.ts';
import type { WorkerIds } from './worker-ids.ts';
import type { WorkerStore } from './workers.ts';

/** Everything that is kept, of one factory. The only place with SQL is this folder. */
export interface Store {
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
  /** Whether another process wrote since the last call: nearly free. */
  changedElsewhere(): boolean;
  /** An error that one of these threw as one with a stable code. */
  errorOf(error: unknown): ThresherError;
  close(): Promise<void>;
}

/** For the daemon: creates and migrates. `instance` is the factory's id; rows of others are never touched. */
export async function openStore(file: string, instance: string): Promise<Store> {
  return storeOn(await openForDaemon(file), instance);
}

/** For the command line, beside a daemon that may or may not run. */
export async function openStoreBeside(
  file: string,
  instance: string,
  access: 'read' | 'write',
): Promise<Store> {
  return storeOn(await openBeside(file, access), instance);
}

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
    retention: new SqlRetentionStore(rows, () => database.vacuum()),
    figures: new SqlFigureStore(rows),
    news: new SqlNewsStore(rows, news),
    origins: new SqlOriginStore(rows, news),
    payloads: new SqlPayloadStore(rows, () => database.emptyLog()),
    changedElsewhere: () => database.changedElsewhere(),
    errorOf: (error) => database.errorOf(error),
    close: () => database.close(),
  };
}
