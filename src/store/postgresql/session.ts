import { rememberSecret } from '../../util/own-secrets.ts';
import { readFile } from 'node:fs/promises';
import { checkServerIdentity, type ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { isSocket, nameOf, type PostgresqlOptions } from '../../util/postgresql-options.ts';

/** How long a connection may take, ms. */
const connectTimeout = 10_000;
/** How long a statement of the daemon may take, and how long it waits for a lock, ms. */
const statementTimeout = 30_000;
const lockTimeout = 10_000;
/** The driver gives up later than the server does: that one's answer says more. */
const answerTimeout = statementTimeout + 10_000;

const oldestVersion = 140_000;

/** Types that come as text and are numbers: int8, and what sums of it are. */
const numbers: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

/** How a session is used. */
export interface SessionUse {
  /** Shown by the server; a daemon finds its own sessions by it. */
  readonly application: string;
  /** A daemon's own statements are short. Those of the command line may take long. */
  readonly mayTakeLong: boolean;
  readonly readOnly: boolean;
}

/**
 * Opens a session. Its settings are statements, because poolers do not pass on those of the start.
 * @throws ThresherError `store-unfit`, `store-login`, and what the driver says
 */
export async function openSession(options: PostgresqlOptions, use: SessionUse): Promise<pg.Client> {
  const { host, port, user, database } = options;
  const client = new pg.Client({
    host,
    port,
    user,
    database,
    password: await passwordOf(options),
    ssl: await tlsOf(options),
    connectionTimeoutMillis: connectTimeout,
    ...(!use.mayTakeLong && { query_timeout: answerTimeout }),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: typeParser },
  });
  // Without a listener the loss of an idle connection would end the process.
  client.on('error', () => undefined);
  try {
    // The driver takes a password from PGPASSWORD and ~/.pgpass, too.
    await client.connect().finally(() => {
      if (typeof client.password === 'string') rememberSecret(client.password);
    });
    await requireFit(client, options);
    await client.query(settingsOf(use));
    return client;
  } catch (error) {
    client.end().catch(() => undefined);
    throw error;
  }
}

/** Counts and sums are numbers here, as SQLite gives them. */
export const typeParser: typeof pg.types.getTypeParser = (oid, format): unknown =>
  numbers.has(oid) ? Number : pg.types.getTypeParser(oid, format);

function settingsOf({ application, mayTakeLong, readOnly }: SessionUse): string {
  return [
    // An intent must be on disk before its call goes out. A stricter value of the server stays.
    `SELECT set_config('synchronous_commit', 'on', false)
      WHERE current_setting('synchronous_commit') IN ('off', 'local')`,
    `SET application_name = ${pg.escapeLiteral(application)}`,
    `SET statement_timeout = ${mayTakeLong ? 0 : statementTimeout}`,
    `SET lock_timeout = ${lockTimeout}`,
    // A daemon that stands still must not keep others waiting for ever.
    `SET idle_in_transaction_session_timeout = ${2 * statementTimeout}`,
    // The server notices the loss of a machine, and gives its locks back.
    'SET tcp_keepalives_idle = 10',
    'SET tcp_keepalives_interval = 5',
    'SET tcp_keepalives_count = 3',
    // It takes longer than the statements.
    'SET jit = off',
    // A plan that is kept from the time when a table was empty reads all of it for each row, once it has a million.
    'SET plan_cache_mode = force_custom_plan',
    ...(readOnly ? ['SET default_transaction_read_only = on'] : []),
  ].join(';\n');
}

interface ServerFacts {
  readonly version: number;
  readonly shown: string;
  readonly encoding: string;
  readonly standby: boolean;
}

/** @throws ThresherError `store-unfit`, `store-unreachable` */
async function requireFit(client: pg.Client, options: PostgresqlOptions): Promise<void> {
  const { rows } =
    await client.query<ServerFacts>(`SELECT current_setting('server_version_num')::int AS version,
    current_setting('server_version') AS shown, current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby`);
  const [facts] = rows;
  if (facts === undefined) throw new Error('the server says nothing about itself');
  const name = nameOf(options);
  if (facts.version < oldestVersion)
    throw unfit(options, `its server is PostgreSQL ${facts.shown}, and thresher needs 14 or newer`);
  if (facts.encoding !== 'UTF8')
    throw unfit(options, `its encoding is ${facts.encoding}, and thresher needs UTF8`);
  // After a failover the same name leads to the server that writes.
  if (facts.standby)
    throw new ThresherError('store-unreachable', `${name} leads to a standby, which takes no writes`, {
      database: name,
    });
}

export function unfit(options: PostgresqlOptions, why: string): ThresherError {
  const name = nameOf(options);
  return new ThresherError('store-unfit', `${name} cannot be used: ${why}`, { database: name });
}

async function passwordOf({ passwordFile }: PostgresqlOptions): Promise<string | undefined> {
  if (passwordFile === undefined) return undefined;
  const password = (await readNamed(passwordFile, 'passwordFile')).replace(/\r?\n$/, '');
  rememberSecret(password);
  return password;
}

async function tlsOf(options: PostgresqlOptions): Promise<ConnectionOptions | false> {
  const { host, sslmode, sslrootcert } = options;
  if (sslmode === 'disable' || isSocket(options)) return false;
  if (sslmode === 'require') return { rejectUnauthorized: false };
  return {
    ...(sslrootcert !== undefined && { ca: await readNamed(sslrootcert, 'sslrootcert') }),
    // The driver would compare the certificate of an address with "localhost".
    checkServerIdentity: (_name, certificate) =>
      sslmode === 'verify-ca' ? undefined : checkServerIdentity(host, certificate),
  };
}

async function readNamed(file: string, setting: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const message = `the file of database.${setting} cannot be read: ${messageOf(error)}`;
    throw new ThresherError('store-login', message, { file }, { cause: error });
  }
}
