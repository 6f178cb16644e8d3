import { CommandStore } from './commands.ts';
import { type OpenDatabase, openBeside, openForDaemon } from './database.ts';
import { LoadStore } from './load.ts';
import { FigureStore } from './figures.ts';
import { OrphanStore } from './orphans.ts';
import { QueueStore } from './queues.ts';
import { RetentionStore } from './retention.ts';
import { WorkerIds } from './worker-ids.ts';
import { WorkerStore } from './workers.ts';

/** All that is kept, of one factory. The only place with SQL is this folder. */
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
  /** Whether another process wrote since the last call: nearly free. */
  changedElsewhere(): boolean;
  close(): Promise<void>;
}

/** For the daemon: creates and migrates. `instance` is the factory's id; rows of others are never touched. */
export async function openStore(file: string, instance: string): Promise<Store> {
  return assemble(await openForDaemon(file), instance);
}

/** For the command line, beside a daemon that may or may not run. */
export async function openStoreBeside(
  file: string,
  instance: string,
  access: 'read' | 'write',
): Promise<Store> {
  return assemble(await openBeside(file, access), instance);
}

function assemble(open: OpenDatabase, instance: string): Store {
  return {
    file: open.file,
    workers: new WorkerStore(open.db, instance),
    load: new LoadStore(open.db, instance),
    ids: new WorkerIds(open.db, instance),
    queues: new QueueStore(open.db, instance),
    commands: new CommandStore(open.db, instance),
    orphans: new OrphanStore(open.db, instance),
    retention: new RetentionStore(open.db, instance),
    figures: new FigureStore(open.db, instance),
    changedElsewhere: () => open.changedElsewhere(),
    close: () => open.close(),
  };
}
