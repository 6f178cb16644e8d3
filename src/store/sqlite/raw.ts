import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { hasCode } from '../../util/files.ts';
import { ThresherError } from '../../worker/errors.ts';
import { storeError } from './errors.ts';
import { migrations } from './migrations.ts';

/** How the migrations in a database file stand to those of this version. */
export interface Version {
  /** Applied by a newer version, and not known here. */
  readonly unknown: readonly string[];
  /** Applied by the daemon at its next start. */
  readonly pending: readonly string[];
}

/**
 * Opens a database file of whatever version for reading.
 * @throws ThresherError `store-missing` where no file is, and as `storeError` says
 */
export function openReadOnly(file: string): Database.Database {
  try {
    if (statSync(file).isDirectory()) {
      throw new ThresherError('store-missing', `${file} is a directory, not a database`, { file });
    }
    return new Database(file, { readonly: true, fileMustExist: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) {
      throw new ThresherError('store-missing', `there is no database ${file}`, { file }, { cause: error });
    }
    throw storeError(error, file);
  }
}

/** undefined: a database, but none of ours. */
export function versionOf(db: Database.Database): Version | undefined {
  const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all();
  if (!tables.includes('kysely_migration') || !tables.includes('workers')) return undefined;
  const applied = db.prepare('SELECT name FROM kysely_migration').pluck().all() as string[];
  const known = Object.keys(migrations);
  return {
    unknown: applied.filter((name) => !known.includes(name)),
    pending: known.filter((name) => !applied.includes(name)),
  };
}

/** The damages that SQLite finds in the file itself; none in a sound one. */
export function damagesOf(db: Database.Database): string[] {
  const found = db.prepare('PRAGMA integrity_check(20)').pluck().all() as string[];
  return found.filter((line) => line !== 'ok');
}
