import { endFromOutside, rememberArguments, rememberEnvironment } from '../../util/own-secrets.ts';
import { execFile } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { ThresherError } from '../../worker/errors.ts';
import type { ClusterAccess, ExecConfig } from './kubeconfig.ts';

/** The credentials from an exec plugin. */
export interface ExecCredential {
  readonly token?: string;
  /** PEM. */
  readonly certificate?: string;
  readonly key?: string;
  /** ms UTC; undefined: as long as it is accepted. */
  readonly expiresAt?: number;
}

/** Longer than any plugin needs that asks no user, ms. */
const longestRun = 60_000;
const outputLimit = 1024 * 1024;
/** Longest piece of a plugin's complaint that is shown. */
const excerpt = 300;
const defaultVersion = 'client.authentication.k8s.io/v1';

/**
 * Runs the exec plugin of a user and reads what it prints.
 * Source: Kubernetes' "client-go credential plugins" and the ExecCredential API.
 * @param serverCa base64, for plugins that want to know the cluster.
 * @throws ThresherError `kubernetes-credentials`, with the plugin's own words.
 */
export async function runExecPlugin(
  access: ClusterAccess,
  exec: ExecConfig,
  serverCa: string | undefined,
  signal: AbortSignal,
): Promise<ExecCredential> {
  // Like client-go: a bare name is looked up in PATH, a relative path counts from the kubeconfig.
  const command = exec.command.includes('/') ? resolve(dirname(access.source), exec.command) : exec.command;
  const fail = (message: string, cause?: unknown) =>
    new ThresherError(
      'kubernetes-credentials',
      `kubeconfig ${access.source}, user "${access.user.name}": exec plugin ${exec.command} ${message}`,
      { file: access.source },
      { cause },
    );
  const own = Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value]));
  const env = { ...process.env, ...own, KUBERNETES_EXEC_INFO: execInfo(access, exec, serverCa) };
  const options = {
    env,
    timeout: longestRun,
    killSignal: 'SIGKILL',
    maxBuffer: outputLimit,
    signal,
  } as const;
  // A plugin that fails may say with what it was called.
  rememberEnvironment(env);
  rememberArguments(exec.args ?? []);
  const output = await new Promise<string>((done, failed) => {
    const child = execFile(command, [...(exec.args ?? [])], options, (error, stdout, stderr) => {
      if (error === null) done(stdout);
      else failed(fail(whyFailed(error, stderr, exec), error));
    });
    // A plugin that waits for a password would wait for ever.
    child.stdin?.end();
  });
  const parsed = parseCredential(output);
  if (typeof parsed === 'string') throw fail(parsed);
  return parsed;
}

function execInfo(access: ClusterAccess, exec: ExecConfig, serverCa: string | undefined): string {
  const cluster = {
    server: access.server,
    ...(access.serverName && { 'tls-server-name': access.serverName }),
    ...(access.insecure && { 'insecure-skip-tls-verify': true }),
    ...(serverCa && { 'certificate-authority-data': serverCa }),
    ...(access.proxyUrl && { 'proxy-url': access.proxyUrl }),
  };
  const spec = { interactive: false, ...(exec.provideClusterInfo && { cluster }) };
  return JSON.stringify({ kind: 'ExecCredential', apiVersion: exec.apiVersion ?? defaultVersion, spec });
}

function whyFailed(
  error: Error & { code?: string | number | null; killed?: boolean; signal?: string | null },
  stderr: string,
  exec: ExecConfig,
): string {
  const said = endFromOutside(stderr, excerpt);
  const words = said === '' ? '' : `: ${said}`;
  if (error.code === 'ENOENT') {
    const hint = exec.installHint ? `; ${exec.installHint.trim()}` : '';
    return `was not found${hint}`;
  }
  if (error.code === 'EACCES') return 'may not be executed';
  if (error.name === 'AbortError') return 'was given up';
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'printed more than 1 MB';
  if (error.killed === true) return `did not end within ${longestRun / 1000} s${words}`;
  if (typeof error.signal === 'string') return `was ended by ${error.signal}${words}`;
  return typeof error.code === 'number'
    ? `ended with exit status ${error.code}${words}`
    : `failed: ${error.message}`;
}

/** The output of a plugin; a string names its mistake. */
export function parseCredential(output: string): ExecCredential | string {
  let value: {
    kind?: unknown;
    status?: Partial<
      Record<'token' | 'clientCertificateData' | 'clientKeyData' | 'expirationTimestamp', unknown>
    >;
  } | null;
  try {
    value = JSON.parse(output) as typeof value;
  } catch {
    return 'printed no JSON; it must print an ExecCredential';
  }
  if (value?.kind !== 'ExecCredential') return 'printed something else than an ExecCredential';
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = value.status ?? {};
  const given = (part: unknown): part is string => typeof part === 'string' && part !== '';
  if (given(clientCertificateData) !== given(clientKeyData))
    return 'printed a certificate and a key only in part';
  if (!given(token) && !given(clientCertificateData)) return 'printed neither a token nor a certificate';
  const expiresAt = given(expirationTimestamp) ? Date.parse(expirationTimestamp) : undefined;
  // A plugin may have put its token there: it is not shown.
  if (Number.isNaN(expiresAt)) return 'printed an expirationTimestamp that is no time';
  return {
    ...(given(token) && { token }),
    ...(given(clientCertificateData) && { certificate: clientCertificateData }),
    ...(given(clientKeyData) && { key: clientKeyData }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}
