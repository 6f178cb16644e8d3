import { type Command, Option } from 'commander';
import type { Environment, GlobalOptions } from './environment.ts';
import { hostname } from 'node:os';
import { daemonOn } from '../daemon/reader.ts';
import { retentionAt } from '../agents/sweeping/pruner-agent.ts';
import { takeLock } from '../daemon/lock.ts';
import { type StateDir, stateDirAt } from '../daemon/state-dir.ts';
import { readVersion } from '../util/version.ts';
import type { Pruned } from '../store/retention.ts';
import { ThresherError } from '../worker/errors.ts';
import { finalStatuses } from '../worker/status.ts';
import { withStore, loadSettings } from './opened.ts';
import { readFactoryId } from '../daemon/factory-file.ts';
import { copyDatabases, placeName, checkDatabase } from '../store/store.ts';
import { databaseOf } from '../daemon/database-place.ts';
import { type OutputFormat, outputOption, printJson } from './output.ts';
import { backUp } from '../daemon/backup.ts';

export function addDb(command: Command, environment: Environment): void {
  for (const add of [addDbBackup, addDbCheck, addDbCopy, addDbPrune]) add(command, environment);
}

interface PruneOptions {
  readonly dryRun?: true;
  readonly vacuum?: true;
}

/** Between two transactions, ms: a daemon that waits to write gets in. */
const breath = 20;

function addDbPrune(db: Command, environment: Environment): void {
  db.command('prune')
    .description('delete rows of swept workers whose keep time is over, as the daemon does by itself')
    .option('--dry-run', 'only show the rows to delete')
    .option('--vacuum', 'give the space back to the disk; only while no daemon runs')
    .action(async (options: PruneOptions, command: Command) => {
      if (options.dryRun && options.vacuum) {
        throw new ThresherError('usage', '--vacuum changes the database: it does not go with --dry-run');
      }
      await prune(command.optsWithGlobals<GlobalOptions>(), options, environment);
    });
}

async function prune(global: GlobalOptions, { dryRun, vacuum }: PruneOptions, environment: Environment) {
  const { out, clock } = environment;
  await withStore(global, dryRun ? 'read' : 'write', async ({ store, dir, settings }) => {
    const lock = vacuum ? lockForVacuum(dir, environment) : undefined;
    try {
      // Only a running daemon knows which configurations it uses, so the pruner leaves them to it. A daemon that starts
      // meanwhile records its own again, and those are not old.
      const current =
        lock === undefined && (await daemonOn(store, dir)) !== undefined ? undefined : new Set<number>();
      const retention = retentionAt(clock.now(), settings.values, current);
      if (dryRun) {
        out.write(`would be deleted: ${describe(await store.retention.due(retention))}\n`);
        return;
      }
      const pruned = await store.retention.prune(retention, async () => {
        await clock.sleep(breath);
        return true;
      });
      out.write(`deleted: ${describe(pruned)}\n`);
      if (vacuum) await store.retention.vacuum();
    } catch (error) {
      throw store.errorOf(error);
    } finally {
      lock?.release();
    }
  });
}

/** Keeps daemons from starting meanwhile: their first write would fail after a while. */
function lockForVacuum(dir: StateDir, { clock }: Environment) {
  try {
    const what = 'thresher db prune --vacuum';
    const holder = {
      what,
      pid: process.pid,
      host: hostname(),
      startedAt: clock.now(),
      version: readVersion(),
    };
    return takeLock(dir, holder);
  } catch (error) {
    if (!(error instanceof ThresherError) || error.code !== 'already-running') throw error;
    const message = `--vacuum needs the database for itself, but ${error.message}: stop it, or prune without --vacuum`;
    throw new ThresherError('already-running', message, error.facts, { cause: error });
  }
}

function describe({ workers, configs, commands }: Pruned): string {
  const counts = finalStatuses.map((status) => `${workers[status]} ${status}`).join(', ');
  return `workers: ${counts}; unused configurations: ${configs}; answered commands: ${commands}`;
}

type Kind = 'sqlite' | 'postgresql';

const howToGoOn = `
SQLite is the file of the state directory, PostgreSQL the database of the settings (database.url). The other one must be empty:
nothing is ever mixed or replaced. All rows come, or none, and each is compared. Stop the daemon before, and start it after with
the settings that name the new database.`;

function addDbCopy(db: Command, environment: Environment): void {
  const kind = (flags: string, description: string) =>
    new Option(flags, description).choices(['sqlite', 'postgresql']).makeOptionMandatory();
  db.command('copy')
    .description('copy the database to one of another kind; only while no daemon runs')
    .addOption(kind('--from <kind>', 'the database that has the rows'))
    .addOption(kind('--to <kind>', 'the empty one'))
    .addHelpText('after', howToGoOn)
    .action(async (options: { from: Kind; to: Kind }, command: Command) => {
      await copy(command.optsWithGlobals<GlobalOptions>(), options, environment);
    });
}

async function copy(
  global: GlobalOptions,
  { from, to }: { readonly from: Kind; readonly to: Kind },
  { out, clock }: Environment,
): Promise<void> {
  if (from === to) throw new ThresherError('usage', `--from and --to are both ${from}`);
  const settings = loadSettings(global);
  const dir = stateDirAt(settings.stateDir);
  const { postgresql } = settings;
  if (postgresql === undefined)
    throw new ThresherError('usage', `${settings.file} names no PostgreSQL database: set database.url`);
  const holder = {
    what: 'thresher db copy',
    pid: process.pid,
    host: hostname(),
    startedAt: clock.now(),
    version: readVersion(),
  };
  const lock = takeLock(dir, holder);
  try {
    // The file of the id is the same for both: the state directory stays.
    const instance = readFactoryId(settings) ?? 'none';
    const place = (kind: Kind) => (kind === 'sqlite' ? dir.database : postgresql);
    const counts = await copyDatabases(place(from), place(to), instance);
    for (const [table, count] of Object.entries(counts)) out.write(`${table}: ${count}\n`);
    const setting =
      to === 'sqlite'
        ? 'take database.url out of the settings'
        : 'start the daemon; the file of SQLite is not in use any more';
    out.write(`all of it is in ${placeName(place(to))}, and compared: ${setting}\n`);
  } finally {
    lock.release();
  }
}

function addDbCheck(db: Command, environment: Environment): void {
  db.command('check')
    .description('look for damage and contradictions in the database, also while the daemon runs')
    .argument('[file]', 'a backup, instead of the database of the daemon')
    .addOption(outputOption())
    .action(async (given: string | undefined, { output }: { output: OutputFormat }, command: Command) => {
      const { out } = environment;
      const place = given ?? databaseOf(loadSettings(command.optsWithGlobals<GlobalOptions>()));
      const file = placeName(place);
      const { findings, counts } = await checkDatabase(place);
      const ok = findings.length === 0;
      if (output === 'json') printJson(out, [{ file, ok, counts, findings }]);
      else if (ok) out.write('ok\n');
      else for (const { check, message } of findings) out.write(`${check}: ${message}\n`);
      if (!ok) throw new ThresherError('store-inconsistent', `${file} is not as it should be`, { file });
    });
}

/** Frames of an old -wal file would be played into the restored database. */
const howToRestore = `
To restore: stop the daemon, remove thresher.db, thresher.db-wal and thresher.db-shm from the state directory, copy the
backup there as thresher.db, and start the daemon. Workers made since the backup are found by their mark and adopted.

A backup of PostgreSQL is a file of SQLite, too: after these steps copy it into an empty database with thresher db copy --from sqlite
--to postgresql.`;

function addDbBackup(db: Command, environment: Environment): void {
  db.command('backup')
    .description('copy the database to a file, also while the daemon runs')
    .argument('<file>', 'the backup: written as a whole or not at all, readable by its owner only')
    .option('--force', 'replace an older backup')
    .addHelpText('after', howToRestore)
    .action(async (file: string, { force = false }: { force?: boolean }, command: Command) => {
      const settings = loadSettings(command.optsWithGlobals<GlobalOptions>());
      const backup = await backUp(settings, file, force);
      environment.out.write(
        `${backup.workers} workers in ${backup.bytes} bytes were written to ${backup.file}\n`,
      );
    });
}
