import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { whatIsMeant } from '../../util/nearest.ts';
import { ThresherError } from '../../worker/errors.ts';

/** Flags that say how HTCondor's commands log in. */
export interface CondorFlags {
  readonly condorConfig?: string;
  readonly authMethod?: string;
  readonly proxy?: string;
  readonly cadir?: string;
  readonly certfile?: string;
  readonly keyfile?: string;
  readonly debug?: string;
}

/** Source: SEC_DEFAULT_AUTHENTICATION_METHODS in the manual of HTCondor 25. */
const methods = [
  'FS',
  'FS_REMOTE',
  'IDTOKENS',
  'SCITOKENS',
  'SSL',
  'KERBEROS',
  'PASSWORD',
  'MUNGE',
  'CLAIMTOBE',
  'ANONYMOUS',
];
const otherNames: Readonly<Record<string, string>> = {
  TOKEN: 'IDTOKENS',
  TOKENS: 'IDTOKENS',
  IDTOKEN: 'IDTOKENS',
  SCITOKEN: 'SCITOKENS',
};
const gone = 'GSI';

/** Files that must be there at the start. A proxy or a token may come later. */
const neededFiles = {
  condorConfig: '--condor-config',
  cadir: '--cadir',
  certfile: '--certfile',
  keyfile: '--keyfile',
} as const;

/** A copy whose paths do not depend on the directory in which a command runs. @throws ThresherError `interlink-config` */
export function checkedFlags<T extends CondorFlags>(flags: T): T {
  const { authMethod } = flags;
  for (const [name, option] of Object.entries(neededFiles)) {
    const path = flags[name as keyof typeof neededFiles];
    if (path !== undefined && !existsSync(path)) throw wrong(`${option}: ${resolve(path)} is not there`);
  }
  for (const name of methodsOf(authMethod)) {
    if (methods.includes(name) || name === gone) continue;
    throw wrong(`--auth-method: HTCondor has no method ${name}; ${whatIsMeant(name, methods)}`);
  }
  const paths = [...Object.keys(neededFiles), 'proxy'] as readonly (keyof CondorFlags)[];
  const absolute = paths.flatMap((name) => {
    const path = flags[name];
    return path === undefined ? [] : [[name, resolve(path)] as const];
  });
  return { ...flags, ...Object.fromEntries<string>(absolute) };
}

/** Sentences on flags that will not do as they are. */
export function flagWarnings({ authMethod, proxy }: CondorFlags): readonly string[] {
  const isGone = methodsOf(authMethod).includes(gone)
    ? [
        '--auth-method GSI: HTCondor 10 and newer have no GSI; use SCITOKENS, IDTOKENS, or SSL with the same --proxy',
      ]
    : [];
  const isMissing =
    proxy !== undefined && !existsSync(proxy)
      ? [`--proxy: ${proxy} is not there; Pods are refused until it is`]
      : [];
  return [...isGone, ...isMissing];
}

/**
 * Variables of HTCondor's commands: each `_CONDOR_NAME` is the setting NAME. The original has one flag for a proxy and for a SciToken.
 * Source: the manual of HTCondor 25, and `condor_config_val`.
 */
export function condorVariables(flags: CondorFlags): Readonly<Record<string, string>> {
  const { condorConfig, authMethod, proxy, cadir, debug } = flags;
  const named = methodsOf(authMethod);
  const isToken = named.includes('SCITOKENS');
  // A proxy has the certificate and the key in one file.
  const certificate = named.includes('SSL') && !isToken ? proxy : undefined;
  const { certfile = certificate, keyfile = certificate } = flags;
  return {
    ...(condorConfig !== undefined && { CONDOR_CONFIG: condorConfig }),
    ...(named.length > 0 && { _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: named.join(', ') }),
    ...(proxy !== undefined && (isToken ? { _CONDOR_SCITOKENS_FILE: proxy } : { X509_USER_PROXY: proxy })),
    ...(cadir !== undefined && { _CONDOR_AUTH_SSL_CLIENT_CADIR: cadir }),
    ...(certfile !== undefined && { _CONDOR_AUTH_SSL_CLIENT_CERTFILE: certfile }),
    ...(keyfile !== undefined && { _CONDOR_AUTH_SSL_CLIENT_KEYFILE: keyfile }),
    ...(debug !== undefined && { _CONDOR_TOOL_DEBUG: debug }),
  };
}

function methodsOf(written = ''): readonly string[] {
  return written
    .split(/[,\s]+/)
    .filter((name) => name !== '')
    .map((name) => otherNames[name.toUpperCase()] ?? name.toUpperCase());
}

function wrong(message: string): ThresherError {
  return new ThresherError('interlink-config', message);
}
