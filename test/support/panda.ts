import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

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

function variables(...of: readonly string[]): Readonly<Record<string, string>> {
  const args = ['panda', ...of, 'env'];
  const text = execFileSync(testEnv, args, { encoding: 'utf8', stdio: 'pipe' });
  return Object.fromEntries(
    [...text.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
}

export function pandaServer(): PandaServer {
  const environment = variables();
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

/** All that the real pilot needs, by the names of its environment. */
export function pilotEnvironment(): Readonly<Record<string, string>> {
  return variables('pilot');
}

/** The surroundings of the server in production: queues, jobs, commands, and its tables. */
export function pandaAdmin(...args: readonly string[]): string {
  return execFileSync(testEnv, ['panda', 'admin', ...args], { encoding: 'utf8', stdio: 'pipe' });
}

/** Stops or starts the server's database. */
export function pandaDatabase(action: 'start' | 'stop'): void {
  execFileSync(testEnv, ['panda', 'db', action], { stdio: 'pipe' });
}

export const pandaFiles = (name: string) => join(directory, name);

/** Rows of a statement on the server's tables. */
export function pandaRows<Row>(statement: string): readonly Row[] {
  const text = execFileSync(
    variables()['PANDA_PSQL'] ?? '',
    ['-qAt', '-v', 'ON_ERROR_STOP=1', '-c', `SELECT coalesce(json_agg(r), '[]') FROM (${statement}) r`],
    { encoding: 'utf8', stdio: 'pipe' },
  );
  return JSON.parse(text) as Row[];
}

let instances = 0;
/** An id of an instance, or a name of a site, that no other test has. */
export function newPandaId(name: string): string {
  return `${name}-${process.pid}-${Date.now().toString(36)}-${++instances}`;
}
