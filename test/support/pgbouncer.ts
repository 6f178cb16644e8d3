import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asOwner, type PostgresqlServer } from './postgresql.ts';
import { atEndOfFile, temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

/** For how long PgBouncer lends a session of the server to a client. */
export type PoolMode = 'session' | 'transaction' | 'statement';

/** A real PgBouncer before a server, on a Unix socket in a directory of its own. It ends with its file of tests. */
export class PgBouncer {
  readonly directory = temporaryDirectory();
  readonly #server: PostgresqlServer;
  readonly #mode: PoolMode;
  #process: ChildProcess | undefined;
  #output = '';

  constructor(server: PostgresqlServer, mode: PoolMode) {
    this.#server = server;
    this.#mode = mode;
  }

  async start(): Promise<void> {
    const users = join(this.directory, 'users.txt');
    writeFileSync(users, '"thresher" ""\n');
    const settings = {
      pool_mode: this.#mode,
      unix_socket_dir: this.directory,
      listen_port: 5432,
      auth_type: 'trust',
      auth_file: users,
      default_pool_size: 50,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    const file = join(this.directory, 'pgbouncer.ini');
    writeFileSync(
      file,
      ['[databases]', `* = host=${this.#server.directory} port=5432`, '[pgbouncer]', ...lines, ''].join('\n'),
    );
    // It runs as another user where this process is root.
    chmodSync(this.directory, 0o777);
    const [command = '', ...args] = asOwner(['/usr/sbin/pgbouncer', file]);
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
    child.stderr.on('data', (piece: Buffer) => (this.#output += piece.toString()));
    child.unref();
    (child.stderr as unknown as { unref(): void }).unref();
    this.#process = child;
    atEndOfFile(() => this.stop());
    await until(
      () => `PgBouncer listens; it wrote:\n${this.#output.slice(-2000)}`,
      () => /process up/.test(this.#output),
    );
  }

  url(database: string): string {
    return `postgresql://thresher@localhost/${database}?host=${this.directory}`;
  }

  async stop(): Promise<void> {
    if (this.#process === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null)
      return;
    const ended = once(this.#process, 'close');
    this.#process.kill('SIGKILL');
    await ended;
  }
}
