import {
  fromOutside,
  rememberArguments,
  rememberEnvironment,
  rememberLogin,
  rememberSecret,
  rememberUrl,
} from '../../util/own-secrets.ts';
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { createSecureContext, getCACertificates, rootCertificates } from 'node:tls';
import { isObject } from '../../util/json.ts';
import { type FileKind, fileKinds } from '../../util/file-kinds.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { runExecPlugin } from './exec-credential.ts';
import type { ClusterAccess, Material } from './kubeconfig.ts';
import type { Headers, TlsOptions } from './transport.ts';

/** Everything a request to a cluster needs besides the request. */
export interface Credentials {
  readonly access: ClusterAccess;
  readonly headers: Headers;
  readonly tls: TlsOptions;
  /** Differs where connections of before must not be used any more: another server, CA, certificate or proxy. */
  readonly connectionKey: string;
  /** ms UTC, after which it is to be asked for again; undefined: never. */
  readonly expiresAt?: number;
}

/** How long what a legacy auth provider said is used, ms: it says no end. */
const providerInterval = 60_000;

/**
 * Reads and checks what a kubeconfig names for a login.
 * @param now ms UTC
 * @throws ThresherError `kubernetes-credentials`, naming the file or the plugin.
 */
export async function readCredentials(
  access: ClusterAccess,
  files: OperatorFiles,
  now: number,
  signal: AbortSignal,
): Promise<Credentials> {
  const { user } = access;
  // A proxy gets the login, and answers in the server's stead.
  if (access.proxyUrl !== undefined) rememberUrl(access.proxyUrl);
  const reading = { access, files };
  const ca = await load(reading, 'certificate-authority', access.ca);
  const certificate = await load(reading, 'client-certificate', user.certificate);
  const key = await load(reading, 'client-key', user.key);
  const login = await loginOf(reading, ca, now, signal);
  const tls: TlsOptions = {
    ...trust(access, ca),
    ...(access.serverName && { servername: access.serverName }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...login.tls,
  };
  checkPems(access, tls);
  const shared = [access.server, access.proxyUrl, ca, access.serverName, access.insecure, tls.cert, tls.key];
  return {
    access,
    headers: { ...login.headers, ...impersonation(access) },
    tls,
    connectionKey: createHash('sha256').update(JSON.stringify(shared)).digest('hex'),
    ...(login.expiresAt !== undefined && { expiresAt: login.expiresAt }),
  };
}

/** The files that the kubeconfig names: a change of any means to read again. */
export function filesOf({ ca, user }: ClusterAccess): { readonly file: string; readonly kind: FileKind }[] {
  const token = user.tokenFile === undefined ? [] : [{ file: user.tokenFile, kind: 'token' as const }];
  const materials = [ca, user.certificate, user.key].flatMap((one) =>
    one && 'file' in one ? [{ file: one.file, kind: 'certificate' as const }] : [],
  );
  return [...token, ...materials];
}

interface Login {
  readonly headers: Headers;
  readonly tls?: Pick<TlsOptions, 'cert' | 'key'>;
  readonly expiresAt?: number;
}

interface Reading {
  readonly access: ClusterAccess;
  readonly files: OperatorFiles;
}

async function loginOf(
  reading: Reading,
  ca: string | undefined,
  now: number,
  signal: AbortSignal,
): Promise<Login> {
  const { access } = reading;
  const { user } = access;
  if (user.tokenFile !== undefined) {
    const token = (await load(reading, 'tokenFile', { file: user.tokenFile }, 'token'))?.trim() ?? '';
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw failed(
        access,
        `the token file ${user.tokenFile} ${token === '' ? 'is empty' : 'holds no token'}`,
      );
    }
    return { headers: bearer(access, token) };
  }
  if (user.token !== undefined) return { headers: bearer(access, user.token.trim()) };
  if (user.basic !== undefined) {
    const { username, password } = user.basic;
    return { headers: { authorization: `Basic ${rememberLogin(username, password)}` } };
  }
  if (user.authProvider !== undefined) {
    return { headers: await askProvider(reading), expiresAt: now + providerInterval };
  }
  if (user.exec === undefined) return { headers: {} };
  const caData = ca === undefined ? undefined : Buffer.from(ca).toString('base64');
  const given = await runExecPlugin(access, user.exec, caData, signal);
  return {
    headers: given.token === undefined ? {} : bearer(access, given.token),
    ...(given.certificate && given.key && { tls: { cert: given.certificate, key: given.key } }),
    ...(given.expiresAt !== undefined && { expiresAt: given.expiresAt }),
  };
}

function bearer(access: ClusterAccess, token: string): Record<string, string> {
  rememberToken(access, token);
  return { authorization: `Bearer ${token}` };
}

/** What is remembered is looked for in every message. */
function rememberToken(access: ClusterAccess, token: string): void {
  const { source, user } = access;
  const { largest } = fileKinds.token;
  if (token.length > largest)
    throw failed(access, `its token has more than ${largest} characters, which no request may have`);
  rememberSecret(token, `login ${source} ${user.name}`);
}

/** The ways of logging in that kubectl gave up are client-node's; only who uses them pays for its import. */
async function askProvider({ access, files }: Reading): Promise<Headers> {
  const provider = `auth-provider "${access.user.authProvider ?? ''}"`;
  const options: { headers: Record<string, string> } = { headers: {} };
  try {
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    const { bytes } = await files.read(access.source, 'kubeconfig');
    config.loadFromString(bytes.toString('utf8'));
    config.makePathsAbsolute(dirname(access.source));
    config.setCurrentContext(access.context);
    rememberProvider(config.getCurrentUser()?.authProvider);
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw failed(access, `${provider} gave no credentials: ${fromOutside(messageOf(error))}`);
  }
  const authorization = options.headers['Authorization'];
  if (authorization === undefined) throw failed(access, `${provider} gave no credentials`);
  rememberToken(access, authorization.replace(/^Bearer /, ''));
  return { authorization };
}

/** The client's secret and the tokens in a provider's settings, and those in the command that one of them runs. */
function rememberProvider(provider: unknown): void {
  const settings = isObject(provider) && isObject(provider['config']) ? provider['config'] : {};
  const texts = Object.entries(settings).filter(([, value]) => typeof value === 'string') as [
    string,
    string,
  ][];
  rememberEnvironment(Object.fromEntries(texts));
  for (const [name, value] of texts) if (name === 'cmd-args') rememberArguments([value]);
}

function impersonation({ user: { impersonate } }: ClusterAccess): Headers {
  if (impersonate === undefined) return {};
  const { user, uid, groups } = impersonate;
  return {
    'impersonate-user': user,
    ...(uid && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': groups }),
  };
}

/** Without a CA of its own the machine's is asked, as kubectl does: Node would only ask the one it came with. */
function trust(access: ClusterAccess, ca: string | undefined): TlsOptions {
  if (access.insecure) return { rejectUnauthorized: false };
  if (ca !== undefined) return { ca };
  return access.server.startsWith('https:')
    ? { ca: [...rootCertificates, ...getCACertificates('system')] }
    : {};
}

/** A wrong PEM would else be found by the first connection, and look like the network's fault. */
function checkPems(access: ClusterAccess, { ca, cert, key }: TlsOptions): void {
  const parts: [what: string, options: TlsOptions][] = [
    ['certificate-authority', ca === undefined || Array.isArray(ca) ? {} : { ca }],
    ['client-certificate', cert === undefined ? {} : { cert }],
    ['client-key', key === undefined ? {} : { key }],
    ['client-certificate and client-key', cert === undefined || key === undefined ? {} : { cert, key }],
  ];
  for (const [what, options] of parts) {
    try {
      if (Object.keys(options).length > 0) createSecureContext(options);
    } catch (error) {
      throw failed(access, `${what} cannot be used: ${messageOf(error)}`, error);
    }
    const { ca: bundle } = options;
    if (typeof bundle === 'string' && !bundle.includes('-----BEGIN CERTIFICATE-----')) {
      throw failed(access, `${what} cannot be used: it holds no PEM certificate`);
    }
  }
}

async function load(
  { access, files }: Reading,
  what: string,
  material: Material | undefined,
  kind: FileKind = 'certificate',
): Promise<string | undefined> {
  if (material === undefined) return undefined;
  if ('data' in material) return Buffer.from(material.data, 'base64').toString('utf8');
  try {
    const { bytes } = await files.read(material.file, kind);
    return bytes.toString('utf8');
  } catch (error) {
    throw failed(access, `${what} ${material.file}: ${whyUnreadable(error, kind)}`, error);
  }
}

function failed(access: ClusterAccess, message: string, cause?: unknown): ThresherError {
  const where = access.user.name === '' ? access.source : `${access.source}, user "${access.user.name}"`;
  const facts = { file: access.source };
  return new ThresherError('kubernetes-credentials', `kubeconfig ${where}: ${message}`, facts, { cause });
}
