import { resolve } from 'node:path';
import type { ErrorCode } from '../../codes/codes.ts';
import type { PandaServer, PandaServerLogin } from '../../plugins/contracts/index.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import type { Problem } from '../../util/located.ts';
import { withoutEnd } from '../../util/without-end.ts';
import type { Settings } from './settings-schema.ts';

/** Settings that say which PanDA server there is and how the link works with it. */
export type PandaSettings = Pick<Settings, 'pandacon' | 'commandmanager' | 'propagator' | 'submitter'>;

/** The JSON of the file that `multihost_auth_config` names: logins of single hosts. */
export interface HostLogins {
  readonly value: unknown;
}

/** A mistake in a key of `pandacon`, or in the file of the hosts. */
export interface PandaFinding {
  /** A key of `pandacon`, or of an entry in the file of the hosts; empty for the whole entry. */
  readonly key: string;
  /** Name of that entry; empty for the whole file. Absent: the finding is about `pandacon` itself. */
  readonly host?: string;
  readonly severity: Problem['severity'];
  readonly code: ErrorCode;
  readonly message: string;
}

export interface PandaServerFound {
  /** Absent where the settings name no server with a login, or one that cannot be used. */
  readonly server?: PandaServer;
  /** Whether the settings have a key of a login. */
  readonly isMeant: boolean;
  readonly findings: readonly PandaFinding[];
}

/** How long one call may take by default, s. Source: Harvester's template. */
const usualTimeout = 180;
const apiPath = '/api/v1';

const loginKeys = ['auth_type', 'cert_file', 'key_file', 'ca_cert', 'auth_token', 'auth_origin'] as const;
type LoginKey = (typeof loginKeys)[number];
type LoginValues = Readonly<Partial<Record<LoginKey, string | boolean>>>;

/**
 * The PanDA server of the settings. Without a key of a login there is none, and nothing to say: `pandaURLSSL` alone serves
 * credential managers. With one, every reason for which there is no server is said.
 * @param directory relative paths count from here
 */
export function pandaServerIn(
  settings: PandaSettings,
  directory: string,
  hosts?: HostLogins,
): PandaServerFound {
  const { pandacon } = settings;
  const findings: PandaFinding[] = [];
  const isMeant =
    pandacon.multihost_auth_config !== undefined ||
    loginKeys.some((key) => key !== 'ca_cert' && pandacon[key] !== undefined);
  if (!isMeant) return { isMeant, findings };
  const url = addressIn(pandacon, findings);
  if (url === undefined) return { isMeant, findings };
  const ofHost = hosts === undefined ? undefined : loginOfHost(hosts, url, findings);
  const values: LoginValues = { ...pick(pandacon), ...ofHost?.values };
  const say: Say = (key, severity, code, message) => {
    const isThere = ofHost !== undefined && Object.hasOwn(ofHost.values, key);
    findings.push({ key, severity, code, message, ...(isThere && { host: ofHost.name }) });
  };
  const login = loginIn(values, directory, say);
  const caFile = authoritiesIn(values.ca_cert, directory, say);
  if (login === undefined) return { isMeant, findings };
  const { commandmanager, propagator, submitter } = settings;
  const server = {
    url,
    login,
    ...(caFile !== undefined && { caFile }),
    timeout: (pandacon.timeout ?? usualTimeout) * 1000,
    link: {
      pollInterval: commandmanager.sleepTime,
      commandsAtOnce: commandmanager.commands_bulk_size,
      reportBatch: propagator.nWorkersInBulk,
      repeatInterval: propagator.updateInterval,
      dialogsAtOnce: propagator.maxDialogs,
      dialogLevel: propagator.minMessageLevel,
      activateWorkerFactor: submitter.activateWorkerFactor,
      noPilotsWhenNoActiveJobs: submitter.noPilotsWhenNoActiveJobs,
    },
  };
  return { server, isMeant, findings };
}

type Say = (key: LoginKey, severity: Problem['severity'], code: ErrorCode, message: string) => void;

const off = 'the link to the PanDA server is off';

/** As Harvester takes it: the address of the API, or the API of the host of `pandaURLSSL`. */
function addressIn(
  { server_api_url_ssl: api, pandaURLSSL: old }: Settings['pandacon'],
  findings: PandaFinding[],
): string | undefined {
  const key = api === undefined ? 'pandaURLSSL' : 'server_api_url_ssl';
  const written = api ?? old;
  const right = `write https://HOST:PORT${apiPath}`;
  const wrong = whyNoAddress(written ?? '');
  if (written === undefined) {
    const message = `${off}: pandacon has a login, but names no server in server_api_url_ssl; ${right}`;
    findings.push({ key, severity: 'warning', code: 'panda-server-off', message });
    return undefined;
  }
  if (wrong !== undefined) {
    // An address with a user may hold a password.
    const is = written.includes('@') ? 'an address' : `"${written}"`;
    const message = `${off}: ${key} is ${is}, ${wrong}; ${right}`;
    findings.push({ key, severity: 'error', code: 'wrong-type', message });
    return undefined;
  }
  const { origin, pathname } = new URL(written);
  if (api === undefined) return `${origin}${apiPath}`;
  const path = withoutEnd(pathname, '/');
  if (!path.endsWith(apiPath)) {
    const message = `server_api_url_ssl has the path "${path}", and thresher speaks the API ${apiPath}; ${right}`;
    findings.push({ key, severity: 'warning', code: 'panda-doubtful', message });
  }
  return `${origin}${path}`;
}

function whyNoAddress(written: string): string | undefined {
  if (/\s/.test(written)) return 'which has blanks: name one server';
  if (!URL.canParse(written)) return 'which is no address';
  const { protocol, username, search } = new URL(written);
  if (protocol !== 'https:') return 'and the server takes a login by https alone';
  return username !== '' || search !== '' ? 'which has a user or parameters' : undefined;
}

/** The entry of the server's host, by its name with the port, or by its name alone. */
function loginOfHost(
  { value }: HostLogins,
  url: string,
  findings: PandaFinding[],
): { readonly name: string; readonly values: LoginValues } | undefined {
  const { host, hostname, port } = new URL(url);
  const wrong = (at: string, key: string, message: string) => {
    findings.push({ host: at, key, severity: 'warning', code: 'wrong-type', message });
  };
  if (!isObject(value)) {
    wrong('', '', 'it must be an object by HOST:PORT with objects of login settings: it is not used');
    return undefined;
  }
  const names = [host, `${hostname}:${port === '' ? '443' : port}`, hostname];
  const own = names.find((name) => Object.hasOwn(value, name));
  for (const other of Object.keys(value).filter((name) => name !== own)) {
    const message = `the login of ${other} is not used: the only server is ${host}`;
    findings.push({ host: other, key: '', severity: 'notice', code: 'unread-setting', message });
  }
  if (own === undefined) return undefined;
  const entry = value[own];
  if (!isObject(entry)) {
    wrong(own, '', `the login of ${own} must be an object such as {"auth_type": "x509"}: it is not used`);
    return undefined;
  }
  const good: [string, string | boolean][] = [];
  for (const [key, one] of Object.entries(entry)) {
    if (one === null) continue;
    if (!loginKeys.some((known) => known === key))
      wrong(own, key, `"${key}" is no setting of a login; these are ${loginKeys.join(', ')}`);
    else if ((typeof one === 'string' && one !== '') || (key === 'ca_cert' && typeof one === 'boolean'))
      good.push([key, one]);
    else wrong(own, key, `${key} of ${own} must be a text: it is not used`);
  }
  return { name: own, values: Object.fromEntries(good) };
}

function pick(pandacon: Settings['pandacon']): LoginValues {
  return Object.fromEntries(
    loginKeys.flatMap((key) => (pandacon[key] === undefined ? [] : [[key, pandacon[key]]])),
  );
}

function loginIn(values: LoginValues, directory: string, say: Say): PandaServerLogin | undefined {
  const kind = values.auth_type ?? 'x509';
  const text = (key: LoginKey, what: string): string | undefined => {
    const value = values[key];
    if (value === undefined) {
      say(key, 'warning', 'panda-server-off', `${off}: with auth_type ${kind} it needs ${key}, ${what}`);
      return undefined;
    }
    if (typeof value === 'string' && !value.includes('FIXME')) return value;
    const message = `${off}: ${key} is "${value}", a placeholder of Harvester's template; write ${what}`;
    say(key, 'warning', 'template-placeholder', message);
    return undefined;
  };
  if (kind === 'x509') {
    const certFile = text('cert_file', 'the file of a certificate or proxy (PEM) with the production role');
    if (certFile === undefined) return undefined;
    const keyFile = values.key_file === undefined ? certFile : text('key_file', 'the file of its key (PEM)');
    if (keyFile === undefined) return undefined;
    return { kind, certFile: resolve(directory, certFile), keyFile: resolve(directory, keyFile) };
  }
  if (kind === 'oidc') {
    const token = text('auth_token', '`file:` and the path of the token');
    const origin = text('auth_origin', 'VO.production: the server takes the role from it');
    if (token === undefined || origin === undefined) return undefined;
    if (!/^[\x21-\x7e]+$/.test(origin)) {
      say('auth_origin', 'error', 'wrong-type', `${off}: auth_origin must be a word such as VO.production`);
      return undefined;
    }
    if (!/[.:]production$/.test(origin))
      say(
        'auth_origin',
        'warning',
        'panda-doubtful',
        `auth_origin is "${origin}": the server gives commands to VO.production, and to others only where its production_dns lists the token's subject`,
      );
    const source = tokenIn(token, directory);
    // The text itself may be a secret.
    if ('text' in source && !isToken(source.text))
      say(
        'auth_token',
        'warning',
        'panda-doubtful',
        'auth_token is no JWT, and counts as the token itself; write `file:` before the path of a file',
      );
    return { kind, origin, token: source };
  }
  say('auth_type', 'error', 'wrong-type', `${off}: auth_type is "${kind}"; write x509 or oidc`);
  return undefined;
}

/** Harvester's form: a text that begins with `file:` names a file. */
function tokenIn(written: string, directory: string): { readonly text: string } | { readonly file: string } {
  return written.startsWith('file:')
    ? { file: resolve(directory, written.slice('file:'.length)) }
    : { text: written };
}

/** Three parts, as a JWT has them. */
export function isToken(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text.trim());
}

/** Harvester verifies the server only where `ca_cert` names a file. thresher always does. */
function authoritiesIn(value: string | boolean | undefined, directory: string, say: Say): string | undefined {
  if (value === undefined || value === true) return undefined;
  if (typeof value === 'string' && !value.includes('FIXME')) return resolve(directory, value);
  const message =
    value === false
      ? 'ca_cert is false, and thresher verifies the PanDA server all the same, with the authorities of the system; name the file of the authority (PEM) that signed its certificate'
      : `ca_cert is "${value}", a placeholder of Harvester's template: the authorities of the system count; name the file of others (PEM), or remove it`;
  say('ca_cert', 'warning', value === false ? 'panda-not-verified' : 'template-placeholder', message);
  return undefined;
}

/** The files that a server's login needs, by the keys that name them. */
export function filesOf({ login, caFile }: PandaServer): JsonObject {
  const own =
    login.kind === 'x509'
      ? { cert_file: login.certFile, key_file: login.keyFile }
      : 'file' in login.token
        ? { auth_token: login.token.file }
        : {};
  return { ...own, ...(caFile !== undefined && { ca_cert: caFile }) };
}
