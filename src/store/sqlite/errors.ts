import type { ErrorCode } from '../../codes/codes.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** The meanings of SQLite's result codes for an operator. The first prefix that fits counts. */
const meanings: readonly (readonly [prefix: string, code: ErrorCode, what: string])[] = [
  ['SQLITE_FULL', 'store-full', 'the disk with the database is full'],
  ['SQLITE_READONLY', 'store-readonly', 'the database cannot be written'],
  ['SQLITE_CANTOPEN', 'store-readonly', 'the database cannot be opened'],
  ['SQLITE_PERM', 'store-readonly', 'the database may not be accessed'],
  ['SQLITE_CORRUPT', 'store-corrupt', 'the database is damaged'],
  ['SQLITE_NOTADB', 'store-corrupt', 'the file is not a database'],
  ['SQLITE_CONSTRAINT_CHECK', 'store-row', 'the database refused a row'],
  ['SQLITE_CONSTRAINT_DATATYPE', 'store-row', 'the database refused a row'],
  ['SQLITE_CONSTRAINT_NOTNULL', 'store-row', 'the database refused a row'],
  ['SQLITE_CONSTRAINT_PRIMARYKEY', 'store-row', 'the database refused a row'],
  ['SQLITE_CONSTRAINT_UNIQUE', 'store-row', 'the database refused a row'],
  ['SQLITE_MISMATCH', 'store-row', 'the database refused a row'],
  ['SQLITE_RANGE', 'store-row', 'the database refused a row'],
  ['SQLITE_TOOBIG', 'store-row', 'the database refused a row'],
];

/** An error of the database as one with a stable code. */
export function storeError(error: unknown, file: string): ThresherError {
  if (error instanceof ThresherError) return error;
  const native = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = meanings.find(([prefix]) => native.startsWith(prefix));
  const [, code, what] = known ?? ['', 'store-failed' as const, 'the database refused'];
  return new ThresherError(code, `${what}: ${messageOf(error)}`, { file, native }, { cause: error });
}

/** Whether SQLite says that the file itself is damaged, or no database. */
export function isDamage(error: unknown): boolean {
  return hasCode(error, 'SQLITE_NOTADB', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT_VTAB', 'SQLITE_CORRUPT_INDEX');
}
