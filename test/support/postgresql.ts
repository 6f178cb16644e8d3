import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import pg from 'pg';
import type { PostgresqlOptions } from '../../src/util/postgresql-options.ts';
import { typeParser } from '../../src/store/postgresql/session.ts';
import { atEndOfFile, temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

const user = 'thresher';
/** A standby has it where its primary names those that must confirm commits. */
const standbyName = 'replica';

/** Directory of PostgreSQL's programs: that of `THRESHER_POSTGRESQL_PROGRAMS`, or the newest that Debian's packages brought. */
export function postgresqlPrograms(): string {
  const given = process.env['THRESHER_POSTGRESQL_PROGRAMS'];
  if (given !== undefined) return given;
  const base = '/usr/lib/postgresql';
  const versions = existsSync(base) ? readdirSync(base).map(Number) : [];
  const [newest] = versions.filter((version) => version >= 14).sort((one, other) => other - one);
  if (newest === undefined) throw new Error(`no PostgreSQL below ${base}: apt-get install postgresql`);
  return join(base, String(newest), 'bin');
}

/** PostgreSQL refuses root: there its programs run as the user of Debian's package. They end with this process. */
export function asOwner(command: readonly string[]): readonly string[] {
  const owner =
    process.getuid?.() === 0 ? ['--reuid', 'postgres', '--regid', 'postgres', '--init-groups'] : [];
  return ['setpriv', '--pdeathsig', 'KILL', ...owner, '--', ...command];
}

export interface ServerOptions {
  /** Size of a disk of its own for the tablespace `small`; it is lost with the server's process. */
  readonly smallDisk?: string;
  readonly port?: number;
  /** A running server: this one gets a copy of it, and follows it as a standby until it is promoted. */
  readonly primary?: PostgresqlServer;
}

/** A PostgreSQL server of its own, in a temporary directory, on a Unix socket there. It is gone with its file of tests, or with this process. */
export class PostgresqlServer {
  readonly directory = temporaryDirectory();
  readonly #settings: readonly string[];
  readonly #smallDisk: string | undefined;
  readonly #port: number;
  #process: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #output = '';

  constructor(
    settings: Readonly<Record<string, string>> = {},
    { smallDisk, port = 5432, primary }: ServerOptions = {},
  ) {
    this.#smallDisk = smallDisk;
    this.#port = port;
    const all = {
      unix_socket_directories: this.directory,
      listen_addresses: '',
      // Nothing here must survive a power cut.
      fsync: 'off',
      full_page_writes: 'off',
      shared_buffers: '32MB',
      max_wal_size: '128MB',
      logging_collector: 'off',
      ...settings,
    };
    this.#settings = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const data = this.data;
    mkdirSync(data);
    chmodSync(data, 0o700);
    chmodSync(this.directory, 0o755);
    if (process.getuid?.() === 0) {
      const [uid, gid] = ids('postgres');
      for (const path of [this.directory, data]) chownSync(path, uid, gid);
    }
    if (primary === undefined)
      this.#run(
        'initdb',
        '-D',
        data,
        '-U',
        user,
        '-A',
        'trust',
        '-E',
        'UTF8',
        '--locale=C.UTF-8',
        '--no-sync',
      );
    else this.#copy(primary);
  }

  get data(): string {
    return join(this.directory, 'data');
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  options(database = 'postgres'): PostgresqlOptions {
    return {
      kind: 'postgresql',
      host: this.directory,
      port: this.#port,
      user,
      database,
      sslmode: 'disable',
      leaseDuration: 3000,
    };
  }

  /** The address of a database as the settings have it: the host of a URL gives way to the parameter. */
  url(database = 'postgres'): string {
    return `postgresql://${user}@localhost/${database}?host=${this.directory}`;
  }

  async start(): Promise<void> {
    const [command = '', ...args] = this.#onDisk(
      asOwner([join(postgresqlPrograms(), 'postgres'), '-D', this.data, ...this.#settings]),
    );
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
    child.stderr.on('data', (piece: Buffer) => (this.#output += piece.toString()));
    this.#process = child;
    atEndOfFile(() => this.stop());
    this.#ended = once(child, 'close');
    child.unref();
    (child.stderr as unknown as { unref(): void }).unref();
    await until(
      () => `PostgreSQL answers; it wrote:\n${this.#output.slice(-2000)}`,
      async () => {
        await this.query('SELECT 1');
        return true;
      },
    );
  }

  /** Copies files into its data, for itself alone. */
  give(...files: readonly string[]): void {
    for (const file of files) {
      const copy = join(this.data, basename(file));
      copyFileSync(file, copy);
      chmodSync(copy, 0o600);
      if (process.getuid?.() === 0) chownSync(copy, ...ids('postgres'));
    }
  }

  /** Leaves no byte free on the small disk. @returns what gives the space back */
  fillDisk(): () => void {
    const file = `/proc/${this.pid}/root${this.small}/filler`;
    const opened = openSync(file, 'w');
    const piece = Buffer.alloc(4096, 1);
    try {
      for (;;) writeSync(opened, piece);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(opened);
    }
    return () => {
      rmSync(file);
    };
  }

  get small(): string {
    return join(this.directory, 'small');
  }

  /** Runs a command where the small disk is mounted. */
  #onDisk(command: readonly string[]): readonly string[] {
    if (this.#smallDisk === undefined) return command;
    mkdirSync(this.small, { recursive: true });
    const isRoot = process.getuid?.() === 0;
    const [uid, gid] = isRoot ? ids('postgres') : [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    const own = isRoot ? [] : ['--user', '--map-current-user', '--keep-caps'];
    const script = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"';
    const options = `size=${this.#smallDisk},uid=${uid},gid=${gid},mode=0700`;
    return ['unshare', '--mount', ...own, 'sh', '-c', script, 'sh', options, this.small, ...command];
  }

  /** `fast` ends sessions, `immediate` is a crash. */
  async stop(how: 'fast' | 'immediate' = 'immediate'): Promise<void> {
    if (this.#process === undefined || this.#process.exitCode !== null) return;
    // Nothing else may keep this process alive until then.
    this.#process.ref();
    this.#process.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await this.#ended;
  }

  /** Ends the postmaster alone, by SIGKILL; what works for sessions notices it, and goes after it. */
  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  /** Waits until no process of a server that was killed is left: only then another one may start on its data. */
  async killed(): Promise<void> {
    await this.#ended;
    await until('no process of the killed server is left', () => processesIn(this.data) === 0);
  }

  /** From now on each commit waits for the standby that was made of this server. */
  async requireStandby(): Promise<void> {
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`);
    await this.query('SELECT pg_reload_conf()');
    await until('the standby confirms commits', async () => {
      const found = await this.query(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`);
      return found.length > 0;
    });
  }

  /** Makes a primary of a standby. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** A standby follows its primary no more: what that commits from now on does not come here. */
  async leavePrimary(): Promise<void> {
    await this.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await this.query('SELECT pg_reload_conf()');
    await until('nothing comes from the primary', async () => {
      const receivers = await this.query('SELECT FROM pg_stat_wal_receiver WHERE pid IS NOT NULL');
      return receivers.length === 0;
    });
  }

  /** Asks on a session of its own. */
  async query<Row>(text: string, database = 'postgres'): Promise<Row[]> {
    const client = await this.client(database);
    try {
      // Several statements in one text have a result each.
      const results = [await client.query(text)].flat() as pg.QueryResult[];
      return results.at(-1)?.rows as Row[];
    } finally {
      await client.end();
    }
  }

  async client(database = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({
      host: this.directory,
      port: this.#port,
      user,
      database,
      types: { getTypeParser: typeParser },
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** The primary knows the standby by a name (`synchronous_standby_names`). */
  #copy(primary: PostgresqlServer): void {
    const from = `host=${primary.directory} port=5432 user=${user} application_name=${standbyName}`;
    this.#run('pg_basebackup', '-D', this.data, '-d', from, '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
  }

  #run(name: string, ...args: string[]): void {
    const [command = '', ...rest] = asOwner([join(postgresqlPrograms(), name), ...args]);
    const { status, stderr } = spawnSync(command, rest, { encoding: 'utf8', cwd: '/' });
    if (status !== 0) throw new Error(`${name}: ${stderr}`);
  }
}

function processesIn(directory: string): number {
  return readdirSync('/proc').filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readlinkSync(`/proc/${entry}/cwd`) === directory;
    } catch {
      return false;
    }
  }).length;
}

function ids(name: string): [uid: number, gid: number] {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return [Number(uid), Number(gid)];
}

let shared: Promise<PostgresqlServer> | undefined;
let names = 0;

/** The server that the tests of a file share. */
export function sharedPostgresql(): Promise<PostgresqlServer> {
  shared ??= (async () => {
    atEndOfFile(async () => {
      shared = undefined;
    });
    const server = new PostgresqlServer();
    await server.start();
    return server;
  })();
  return shared;
}

/** A new empty database on a server. */
export async function newDatabase(server?: PostgresqlServer, tablespace = 'pg_default'): Promise<string> {
  const on = server ?? (await sharedPostgresql());
  const name = `test${++names}`;
  await on.query(`CREATE DATABASE ${name} TEMPLATE template0 TABLESPACE ${tablespace}`);
  return name;
}

/** Settings of a site whose database is a new one of PostgreSQL. */
export async function onPostgresql(): Promise<{ readonly database: Record<string, unknown> }> {
  const server = await sharedPostgresql();
  return { database: { url: server.url(await newDatabase(server)), sslmode: 'disable' } };
}
