import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { daemonAuthorizations, mintToken, newSigningKey } from '../../clients/htcondor/idtoken.ts';
import { hasCode, makeDirectory } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** How daemons of a pool prove who they are: by tokens that a key signs, or by one password for all. */
export type Security = 'tokens' | 'password';

export interface PoolFilesOptions {
  readonly directory: string;
  readonly security: Security;
  /** `TRUST_DOMAIN` of the pool. */
  readonly trustDomain: string;
  /** Of the tokens, s. */
  readonly lifetime: number;
  /** Moves a directory that is there aside. */
  readonly force: boolean;
  /** ms UTC */
  readonly now: number;
}

/** A file of the directory, and its content. */
export interface PoolFile {
  /** Path in the directory. */
  readonly path: string;
  /** Its use, for people. */
  readonly purpose: string;
  readonly content: Uint8Array;
}

interface Kind {
  readonly path: string;
  readonly purpose: string;
}

/** Tokens by the role of their holder. A directory each: HTCondor takes the first token of a directory that fits. */
const tokens = {
  schedd: {
    purpose: 'token of the schedd, for the Secret NAME-schedd-token',
    authorizations: daemonAuthorizations.schedd,
  },
  worker: {
    purpose: 'token of the fixed workers, for the Secret NAME-worker-token',
    authorizations: daemonAuthorizations.worker,
  },
  admin: {
    purpose: "your token: SEC_TOKEN_DIRECTORY of HTCondor's commands, and thresher's",
    authorizations: [],
  },
} as const satisfies Record<string, { purpose: string; authorizations: readonly string[] }>;

export const secretFiles = {
  key: { path: 'signing-key', purpose: 'signs tokens, for the Secret NAME-pool-signing-key: keep it safe' },
  password: {
    path: 'password',
    purpose: 'password of the pool, for the Secret NAME-pool-password: keep it safe',
  },
  scheddToken: { path: 'schedd/token', purpose: tokens.schedd.purpose },
  workerToken: { path: 'worker/token', purpose: tokens.worker.purpose },
  adminToken: { path: 'admin/token', purpose: tokens.admin.purpose },
} as const satisfies Record<string, Kind>;

/** The files that a directory of such a pool has. A password signs the administrator's token as well, as HTCondor has it. */
const filesOf = {
  tokens: ['key', 'scheddToken', 'workerToken', 'adminToken'],
  password: ['password', 'adminToken'],
} as const satisfies Record<Security, readonly (keyof typeof secretFiles)[]>;

/**
 * Makes key or password and tokens, all or nothing.
 * @returns the files, and the place of those that were there before
 * @throws ThresherError `pool-exists`, `pool-files`
 */
export function makePoolFiles(options: PoolFilesOptions): {
  readonly files: readonly PoolFile[];
  readonly movedTo?: string;
} {
  const { directory, force } = options;
  const files = filesBy(newSigningKey(), options);
  const temporary = `${directory}.${randomUUID()}.tmp`;
  try {
    makeDirectory(dirname(directory));
    mkdirSync(temporary, { mode: 0o700 });
    for (const { path, content } of files) {
      mkdirSync(dirname(join(temporary, path)), { mode: 0o700, recursive: true });
      writeFileSync(join(temporary, path), content, { mode: 0o600, flag: 'wx', flush: true });
    }
    const movedTo = force ? movedAside(directory, options.now) : undefined;
    putInPlace(temporary, directory);
    return { files, ...(movedTo !== undefined && { movedTo }) };
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error instanceof ThresherError ? error : unusable(directory, 'written', error);
  }
}

/**
 * Makes the tokens of a pool that was made before again, by the key or password that it has. The daemons go on to believe the old ones
 * until these end.
 * @returns all files
 * @throws ThresherError `pool-files`
 */
export function renewTokens(
  options: Omit<PoolFilesOptions, 'security' | 'force'>,
): ReturnType<typeof readPoolFiles> {
  const { directory } = options;
  const { security, files } = readPoolFiles(directory);
  const keyFile = security === 'tokens' ? secretFiles.key : secretFiles.password;
  const key = files.find(({ path }) => path === keyFile.path)?.content ?? new Uint8Array();
  const renewed = filesBy(key, { ...options, security });
  for (const { path, content } of renewed.filter((file) => file.path !== keyFile.path)) {
    const file = join(directory, path);
    const temporary = `${file}.${randomUUID()}.tmp`;
    try {
      writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true });
      renameSync(temporary, file);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw unusable(file, 'written', error);
    }
  }
  return { security, files: renewed };
}

/**
 * Reads the files of a pool that was made before.
 * @throws ThresherError `pool-files`
 */
export function readPoolFiles(directory: string): {
  readonly security: Security;
  readonly files: readonly PoolFile[];
} {
  const security = isThere(join(directory, secretFiles.key.path)) ? 'tokens' : 'password';
  const files = filesOf[security].map((name) => {
    const { path, purpose } = secretFiles[name];
    return { path, purpose, content: readSecret(directory, path) };
  });
  return { security, files };
}

/** Whether a directory has something in it. @throws ThresherError `pool-files` */
export function isInUse(directory: string): boolean {
  try {
    return readdirSync(directory).length > 0;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    if (hasCode(error, 'ENOTDIR')) return true;
    throw unusable(directory, 'read', error);
  }
}

function filesBy(
  key: Uint8Array,
  { security, trustDomain, lifetime, now }: Omit<PoolFilesOptions, 'directory' | 'force'>,
): PoolFile[] {
  const token = (role: keyof typeof tokens) =>
    `${mintToken({
      key,
      issuer: trustDomain,
      identity: `${role}@${trustDomain}`,
      authorizations: tokens[role].authorizations,
      lifetime,
      now,
    })}\n`;
  const contents: Record<keyof typeof secretFiles, () => Uint8Array> = {
    key: () => key,
    password: () => key,
    scheddToken: () => Buffer.from(token('schedd')),
    workerToken: () => Buffer.from(token('worker')),
    adminToken: () => Buffer.from(token('admin')),
  };
  return filesOf[security].map((name) => ({ ...secretFiles[name], content: contents[name]() }));
}

function readSecret(directory: string, path: string): Uint8Array {
  const file = join(directory, path);
  try {
    const { mode } = lstatSync(file);
    if ((mode & 0o077) !== 0) throw new Error('others than its owner may read it: chmod 600');
    const content = readFileSync(file);
    if (content.length === 0) throw new Error('it is empty');
    return content;
  } catch (error) {
    throw unusable(file, 'read', error);
  }
}

/** Of two commands at once, the second finds a directory that is not empty. @throws ThresherError `pool-exists` */
function putInPlace(temporary: string, directory: string): void {
  try {
    renameSync(temporary, directory);
  } catch (error) {
    throw hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR') ? exists(directory) : error;
  }
}

function movedAside(directory: string, now: number): string | undefined {
  if (!isInUse(directory)) return undefined;
  const stamp = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const to = `${directory}.before-${stamp}`;
  renameSync(directory, to);
  return to;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function exists(directory: string): ThresherError {
  const message = `${directory} is in use already: use its files with --apply, name another one with --directory, or make a new key with --force`;
  return new ThresherError('pool-exists', message, { directory });
}

function unusable(path: string, what: 'written' | 'read', error: unknown): ThresherError {
  const why = hasCode(error, 'ENOENT') ? 'it is not there; `thresher pool init` makes it' : messageOf(error);
  return new ThresherError('pool-files', `${path} cannot be ${what}: ${why}`, { path });
}
