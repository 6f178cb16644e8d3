import pg from 'pg';
import type { ErrorCode } from '../../codes/codes.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** The meanings of PostgreSQL's codes (SQLSTATE) and of Node's for an operator. The first prefix that fits counts. */
const meanings: readonly (readonly [prefix: string, code: ErrorCode, what: string])[] = [
  ['53100', 'store-full', 'the disk with the database is full'],
  ['25006', 'store-readonly', 'the database cannot be written'],
  ['42501', 'store-readonly', 'the database does not let this user do this'],
  ['XX001', 'store-corrupt', 'the database is damaged'],
  ['XX002', 'store-corrupt', 'the database is damaged'],
  ['28', 'store-login', 'the database refuses the login'],
  ['3D000', 'store-login', 'the database is not there'],
  ['08', 'store-unreachable', 'the connection with the database was lost'],
  ['53300', 'store-unreachable', 'the database has no connection left'],
  ['57P', 'store-unreachable', 'the database is stopped, or was'],
  ['25P0', 'store-unreachable', 'the database ended the session'],
  // Values that fit no column, and rules of a table but for that of what a row refers to.
  ['22', 'store-row', 'the database refused a row'],
  ['23502', 'store-row', 'the database refused a row'],
  ['23505', 'store-row', 'the database refused a row'],
  ['23514', 'store-row', 'the database refused a row'],
  // A row that no index has room for.
  ['54000', 'store-row', 'the database refused a row'],
];

/** Codes of Node for a server that is not there, or whose certificate does not hold. */
const unreachable =
  /^(?:E(?:CONN|HOST|NET|PIPE|TIMEDOUT|NOENT|ACCES|AI_)|ENOTFOUND|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|ERR_TLS|ERR_SSL)/;

/** Errors of the driver have no code, and neither has that of a lease without an answer. */
const driverWords =
  /Connection terminated|did not answer in time|connection timeout|timeout expired|not queryable|Query read timeout|does not support SSL|SSL connection/i;

/** An error of the database as one with a stable code. `name` is the database as messages name it. */
export function postgresqlError(error: unknown, name: string): ThresherError {
  if (error instanceof ThresherError) return error;
  const native = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : messageOf(error);
  const [, code, what] = meaningOf(error, native, message);
  return new ThresherError(code, `${what}: ${message}`, { database: name, native }, { cause: error });
}

function meaningOf(error: unknown, native: string, message: string): (typeof meanings)[number] {
  const known = meanings.find(([prefix]) => native.startsWith(prefix));
  if (known !== undefined && error instanceof pg.DatabaseError) return known;
  if (/password must be a string|no password|SASL/i.test(message))
    return ['', 'store-login', 'the database refuses the login'];
  if (unreachable.test(native) || driverWords.test(message))
    return ['', 'store-unreachable', 'the database cannot be reached'];
  return ['', 'store-failed', 'the database refused'];
}

/** The same, but an error that only the program is to blame for stays as it is. */
export function operatorError(error: unknown, name: string): unknown {
  const meant = postgresqlError(error, name);
  return meant.code === 'store-failed' || meant.code === 'store-row' ? error : meant;
}

/** Whether the session is over with this error, so far as its code tells. */
export function endsSession(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || hasCode(error, '57P01', '57P02', '57P03', '57P05', '25P03');
}
