import { hostname } from 'node:os';
import { type Command, Option } from 'commander';
import { takeLock } from '../daemon/lock.ts';
import { readFactoryId } from '../daemon/factory-file.ts';
import { stateDirAt } from '../daemon/state-dir.ts';
import { copyDatabases, placeName } from '../store/store.ts';
import { readVersion } from '../util/version.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { loadSettings } from './opened.ts';

type Kind = 'sqlite' | 'postgresql';

const howToGoOn = `
SQLite is the file of the state directory, PostgreSQL the database of the settings (database.url). The other one must be empty:
nothing is ever mixed or replaced. All rows come, or none, and each is compared. Stop the daemon before, and start it after with
the settings that name the new database.`;

export function addDbCopy(db: Command, environment: Environment): void {
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
