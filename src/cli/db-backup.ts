import type { Command } from 'commander';
import { backUp } from '../daemon/backup.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { loadSettings } from './opened.ts';

/** Frames of an old -wal file would be played into the restored database. */
const howToRestore = `
To restore: stop the daemon, remove thresher.db, thresher.db-wal and thresher.db-shm from the state directory, copy the
backup there as thresher.db, and start the daemon. Workers made since the backup are found by their mark and adopted.

A backup of PostgreSQL is a file of SQLite, too: after these steps copy it into an empty database with thresher db copy --from sqlite
--to postgresql.`;

export function addDbBackup(db: Command, environment: Environment): void {
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
