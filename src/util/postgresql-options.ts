/** Where a PostgreSQL database is, and how it is reached. Nothing secret is in here: the password is read when it is needed. */
export interface PostgresqlOptions {
  readonly kind: 'postgresql';
  /** A host name, an address, or the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly sslmode: SslMode;
  /** File with the certificates of the authorities that may have signed the server's. Default: the system's. */
  readonly sslrootcert?: string;
  /** File with the password alone. Without one, PGPASSWORD and the password file of libpq count. */
  readonly passwordFile?: string;
  /** How long a daemon has the factory without renewing its lease, ms. */
  readonly leaseDuration: number;
  /** The name of this daemon among those that share the factory's queues; undefined: one daemon has all of them. */
  readonly member?: string | undefined;
}

/** The modes of libpq in which a connection is always, or never, encrypted. */
type SslMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

/** The part of the options that an address has. */
export type Address = Pick<PostgresqlOptions, 'host' | 'port' | 'user' | 'database'>;

const defaultPort = 5432;

/** Reads the address of a database. @returns what is wrong with it, never with its text: a password may be in there */
export function parseAddress(text: string): Address | { readonly wrong: string } {
  const url = URL.parse(text);
  const form = 'it must be such as postgresql://thresher@db.example.org:5432/thresher';
  if (url === null || !['postgresql:', 'postgres:'].includes(url.protocol))
    return { wrong: `the address is none of PostgreSQL; ${form}` };
  if (url.password !== '')
    return { wrong: 'the address holds a password, which belongs into a file; name that with passwordFile' };
  const [user, database] = [url.username, url.pathname.replace(/^\//, '')].map(decoded);
  if (user === undefined || user === '') return { wrong: `the address names no user; ${form}` };
  if (database === undefined || database === '') return { wrong: `the address names no database; ${form}` };
  const others = [...url.searchParams.keys()].filter((key) => key !== 'host');
  if (others.length > 0 || url.hash !== '')
    return {
      wrong: `the address has parameters (${others.join(', ') || 'after #'}); only host is read there, for the directory of a Unix socket`,
    };
  const host = url.searchParams.get('host') ?? url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (host === '') return { wrong: `the address names no host; ${form}` };
  return { host, port: url.port === '' ? defaultPort : Number(url.port), user, database };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A Unix socket needs no encryption. */
export function isSocket({ host }: Pick<Address, 'host'>): boolean {
  return host.startsWith('/');
}

/** The database as messages name it. */
export function nameOf({ host, port, user, database }: Address): string {
  const where = isSocket({ host }) ? `${host}:${port}` : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `postgresql://${user}@${where}/${database}`;
}
