/** The work without a daemon: a process that reads the living rows. `node read-rows.ts DATABASE SPAWNED_AT` */
import Database from 'better-sqlite3';
import { report } from './site.ts';

const [file = '', spawnedAt = ''] = process.argv.slice(2);
const db = new Database(file);
const rows = db
  .prepare(`SELECT * FROM workers WHERE status NOT IN ('finished', 'failed', 'cancelled', 'missed')`)
  .all();
const ready = Date.now() - Number(spawnedAt);
db.close();
await report({ ready, rows: rows.length });
