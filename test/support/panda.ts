import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { freePort } from '../env/kubernetes/ports.ts';
import { Psql } from './psql.ts';
import { ownedPrefix, removeDirectory } from './temporary.ts';

const directory = resolve(import.meta.dirname, '../env/panda');
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

/** The real PanDA server of the test environment, and how to reach it. */
export interface PandaServer {
  /** `https://127.0.0.1:25443/api/v1` */
  readonly url: string;
  readonly ca: string;
  /** Certificate and key of a client with the production role. */
  readonly production: { readonly cert: string; readonly key: string };
  /** Those of a client without a role. */
  readonly user: { readonly cert: string; readonly key: string };
  readonly tokenFile: string;
  readonly origin: string;
}

/** A real PanDA server, and what production has around it: queues, jobs, commands, tables, its database. */
export class PandaEnvironment {
  /** Variables that say which server is meant; none for that of all tests. */
  readonly #place: Readonly<Record<string, string>>;
  /** What `scripts/test-env panda env` said: each call of it starts a dozen programs, and it says the same all the time. */
  #said: Readonly<Record<string, string>> | undefined;
  #psql: Psql | undefined;

  constructor(place: Readonly<Record<string, string>> = {}) {
    this.#place = place;
  }

  server(): PandaServer {
    const environment = this.#own();
    const value = (name: string) => environment[`PANDA_${name}`] ?? '';
    return {
      url: `${value('SERVER')}/api/v1`,
      ca: value('CA'),
      production: { cert: value('PROD_CERT'), key: value('PROD_KEY') },
      user: { cert: value('USER_CERT'), key: value('USER_KEY') },
      tokenFile: value('TOKEN_FILE'),
      origin: value('ORIGIN'),
    };
  }

  /** Any other of the variables of `scripts/test-env panda env`, without `PANDA_`. */
  variable(name: string): string {
    return this.#own()[`PANDA_${name}`] ?? '';
  }

  /** All that the real pilot needs, by the names of its environment. */
  pilot(): Readonly<Record<string, string>> {
    return this.#variables('pilot');
  }

  /** One of the actions of test/env/panda/admin.sh. */
  admin(...args: readonly string[]): string {
    const env = { ...process.env, ...this.#place, PANDA_PSQL: this.variable('PSQL') };
    return execFileSync(pandaFiles('admin.sh'), args, { encoding: 'utf8', stdio: 'pipe', env });
  }

  /** Rows of a statement on the server's tables. It waits for no program in this process, which may have a proxy to serve. */
  rows<Row>(statement: string): Promise<Row[]> {
    this.#psql ??= new Psql(this.variable('PSQL'));
    return this.#psql.rows<Row>(statement);
  }

  /** Another token of the issuer: `--lifetime S`, `--groups G,G`. */
  token(...args: readonly string[]): string {
    return this.do('token', ...args).trim();
  }

  /** `start`, `stop`, `restart`, `db stop` and the others of `scripts/test-env panda`. */
  do(...args: readonly string[]): string {
    const env = { ...process.env, ...this.#place };
    return execFileSync(testEnv, ['panda', ...args], { encoding: 'utf8', stdio: 'pipe', env });
  }

  #own(): Readonly<Record<string, string>> {
    return (this.#said ??= this.#variables());
  }

  #variables(...of: readonly string[]): Readonly<Record<string, string>> {
    const text = this.do(...of, 'env');
    return Object.fromEntries(
      [...text.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
    );
  }
}

/** The server that all tests share: nothing of it may be stopped. */
export const sharedPanda = new PandaEnvironment();

/** A server of a test's own, 15 s: one that is stopped, or whose database is. */
export async function ownPanda(): Promise<PandaEnvironment & AsyncDisposable> {
  const own = mkdtempSync(ownedPrefix());
  chmodSync(own, 0o755);
  // The programs of the shared one.
  const python = sharedPanda.pilot()['PILOT_PYTHON'] ?? '';
  mkdirSync(own, { recursive: true });
  symlinkSync(dirname(dirname(python)), join(own, 'venv'));
  const [port, issuer, database] = [await freePort(), await freePort(), await freePort()];
  const environment = new PandaEnvironment({
    PANDA_DIR: own,
    PANDA_PORT: String(port),
    PANDA_ISSUER_PORT: String(issuer),
    PANDA_DB_PORT: String(database),
    PANDA_DB_CONNECTIONS: '1',
  });
  environment.do('start');
  return Object.assign(environment, {
    [Symbol.asyncDispose]: async () => {
      environment.do('stop');
      removeDirectory(own);
    },
  });
}

export function pandaServer(): PandaServer {
  return sharedPanda.server();
}

/** The surroundings of the server in production: queues, jobs, commands, and its tables. */
export function pandaAdmin(...args: readonly string[]): string {
  return sharedPanda.admin(...args);
}

/** Rows of a statement on the tables of the server that all tests share. */
export function pandaRows<Row>(statement: string): Promise<Row[]> {
  return sharedPanda.rows<Row>(statement);
}

export const pandaFiles = (name: string) => join(directory, name);

let instances = 0;
/** An id of an instance, or a name of a site, that no other test has. */
export function newPandaId(name: string): string {
  return `${name}-${process.pid}-${Date.now().toString(36)}-${++instances}`;
}
