import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';
import { freePort } from '../kubernetes/ports.ts';
import { isAlive, killAll, type Recorded, startDetached } from '../kubernetes/processes.ts';

const run = promisify(execFile);

export const realm = 'EXAMPLE.ORG';
/** Who can log in: by the keytab, and by a password. */
export const user = { principal: `pilot@${realm}`, password: 'a password of tests' } as const;

interface State {
  readonly port: number;
  readonly process: Recorded;
}

/** What `test-env kerberos status` prints. */
export interface KdcStatus {
  readonly running: boolean;
  readonly directory: string;
  readonly realm: string;
  /** For KRB5_CONFIG. */
  readonly config: string;
  readonly principal: string;
  readonly keytab: string;
  readonly passwordFile: string;
  readonly port?: number;
  readonly pid?: number;
}

const placesIn = (directory: string) => {
  const root = join(directory, 'kerberos');
  const at = (name: string) => join(root, name);
  return {
    root,
    config: at('krb5.conf'),
    kdcConfig: at('kdc.conf'),
    keytab: at('pilot.keytab'),
    passwordFile: at('pilot.password'),
    database: at('principal'),
    log: at('kdc.log'),
    output: at('krb5kdc.log'),
    state: at('state.json'),
  };
};
type Places = ReturnType<typeof placesIn>;

/** Debian keeps the servers where not everybody looks. */
const environment = ({ config, kdcConfig }: Places) => ({
  PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
  KRB5_CONFIG: config,
  KRB5_KDC_PROFILE: kdcConfig,
});

/** A KDC of its own on loopback: its files are below `directory`. One that runs already stays. */
export async function startKdc(directory: string): Promise<KdcStatus> {
  const places = placesIn(directory);
  if (kdcStatus(directory).running) return kdcStatus(directory);
  rmSync(places.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  mkdirSync(places.root, { recursive: true, mode: 0o700 });
  const port = await freePort(18_750);
  writeConfiguration(places, port);
  await call(places, 'kdb5_util', 'create', '-s', '-W', '-r', realm, '-P', 'the master key of tests');
  await kadmin(directory, `addprinc -pw "${user.password}" ${user.principal}`);
  await kadmin(directory, `ktadd -norandkey -k ${places.keytab} ${user.principal}`);
  writeFileSync(places.passwordFile, `${user.password}\n`, { mode: 0o600 });
  const env = environment(places);
  // `env` because the environment is no part of what startDetached hands over.
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const started = await startDetached('env', [...settings, 'krb5kdc', '-n'], places.output, places.root);
  writeFileSync(`${places.state}.new`, JSON.stringify({ port, process: started } satisfies State));
  renameSync(`${places.state}.new`, places.state);
  await answers(places, port, started);
  return kdcStatus(directory);
}

export async function stopKdc(directory: string): Promise<void> {
  const state = readState(directory);
  if (state !== undefined) await killAll([state.process]);
  rmSync(placesIn(directory).root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

export function kdcStatus(directory: string): KdcStatus {
  const { root, config, keytab, passwordFile } = placesIn(directory);
  const state = readState(directory);
  const running = state !== undefined && isAlive(state.process);
  return {
    running,
    directory: root,
    realm,
    config,
    principal: user.principal,
    keytab,
    passwordFile,
    ...(running && { port: state.port, pid: state.process.pid }),
  };
}

/** A command of the administrator, on the database itself. */
export async function kadmin(directory: string, query: string): Promise<void> {
  const { stderr } = await call(placesIn(directory), 'kadmin.local', '-r', realm, '-q', query);
  // It ends with 0 whatever happened.
  const trouble = stderr.split('\n').filter((line) => /^[a-z_.]+: /.test(line) && !/password/.test(line));
  if (trouble.length > 0) throw new Failure(`kadmin.local ${query}: ${trouble.join('; ')}`);
}

async function call(places: Places, command: string, ...args: readonly string[]) {
  try {
    return await run(command, args, { env: environment(places), cwd: places.root });
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const hint = missing ? ' (on Debian: apt-get install krb5-kdc krb5-admin-server krb5-user)' : '';
    throw new Failure(`${command}: ${error instanceof Error ? error.message : String(error)}${hint}`);
  }
}

function writeConfiguration(places: Places, port: number): void {
  const address = `127.0.0.1:${port}`;
  const section = (name: string, lines: readonly string[]) => [`[${name}]`, ...lines, ''];
  const kdc = [
    ...section('kdcdefaults', [`kdc_listen = ${address}`, `kdc_tcp_listen = ${address}`]),
    ...section('realms', [
      `${realm} = {`,
      ...[`database_name = ${places.database}`, `key_stash_file = ${join(places.root, 'stash')}`],
      ...['max_life = 24h', 'max_renewable_life = 7d'],
      '}',
    ]),
    ...section('logging', [`kdc = FILE:${places.log}`]),
  ];
  const library = [
    ...section('libdefaults', [
      ...[`default_realm = ${realm}`, 'dns_lookup_kdc = false', 'dns_lookup_realm = false', 'rdns = false'],
    ]),
    ...section('realms', [`${realm} = {`, `kdc = ${address}`, '}']),
  ];
  writeFileSync(places.kdcConfig, kdc.join('\n'));
  writeFileSync(places.config, library.join('\n'));
}

async function answers(places: Places, port: number, started: Recorded): Promise<void> {
  const end = performance.now() + 20_000;
  for (;;) {
    if (!isAlive(started)) {
      const said = readFileSync(places.output, 'utf8').trim();
      throw new Failure(`krb5kdc ended at once: ${said}; see ${places.log}`);
    }
    if (await listens(port)) return;
    if (performance.now() > end) throw new Failure(`krb5kdc does not listen on port ${port}`);
    await sleep(20);
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const done = (open: boolean) => () => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', done(true));
    socket.once('error', done(false));
  });
}

function readState(directory: string): State | undefined {
  try {
    return JSON.parse(readFileSync(placesIn(directory).state, 'utf8')) as State;
  } catch {
    return undefined;
  }
}
