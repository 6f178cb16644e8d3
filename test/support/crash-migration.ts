/** Dies by SIGKILL when a migration has done all its work: `node crash-migration.ts DATABASE MIGRATION`. */
import { migrations } from '../../src/store/sqlite/migrations.ts';
import { openStore } from '../../src/store/store.ts';

const [file = '', name = ''] = process.argv.slice(2);
const migration = migrations[name];
if (migration === undefined) throw new Error(`there is no migration ${name}`);
const up = migration.up.bind(migration);
Object.assign(migration, {
  async up(db: Parameters<typeof up>[0]) {
    await up(db);
    process.kill(process.pid, 'SIGKILL');
  },
});
await openStore(file, 'factory');
