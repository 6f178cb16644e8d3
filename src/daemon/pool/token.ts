import { lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { daemonAuthorizations, mintToken } from '../../clients/htcondor/idtoken.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { secretFiles } from './pool-files.ts';

/** `TRUST_DOMAIN` of a pool that nothing else names. */
const usualDomain = 'htcondor-pool';

/** Authorizations of HTCondor that a token may be limited to. HTCondor itself accepts any word, which then allows nothing. */
export const authorizations = [
  ...['READ', 'WRITE', 'DAEMON', 'NEGOTIATOR', 'ADMINISTRATOR', 'CONFIG'],
  ...['ADVERTISE_MASTER', 'ADVERTISE_SCHEDD', 'ADVERTISE_STARTD'],
] as const;

/** What daemons need at most, by their identity. Others get all that their identity may do, unless they are limited. */
const usualAuthorizations: Readonly<Record<string, readonly string[]>> = daemonAuthorizations;

export interface TokenOrder {
  /** `USER` or `USER@DOMAIN`. */
  readonly identity: string;
  /** File of the signing key. */
  readonly key: string;
  /** The id of the key: its name in the directory of keys of the collector. */
  readonly keyName?: string;
  /** `TRUST_DOMAIN` of the pool. */
  readonly trustDomain: string;
  /** Undefined: those that this identity usually needs. */
  readonly authorizations?: readonly string[];
  /** s */
  readonly lifetime: number;
  /** ms UTC */
  readonly now: number;
}

export interface MadeToken {
  /** A secret. */
  readonly token: string;
  /** One line without the secret: for whom, how long, for what. */
  readonly summary: string;
}

/** @throws ThresherError `pool-token`, `pool-option` */
export function makeToken(order: TokenOrder): MadeToken {
  const { key, keyName, trustDomain, lifetime, now } = order;
  const identity = checkedIdentity(order.identity, trustDomain);
  const [user = ''] = identity.split('@');
  const allowed = order.authorizations ?? usualAuthorizations[user] ?? [];
  const token = mintToken({
    key: readKey(key),
    ...(keyName !== undefined && { keyName }),
    issuer: trustDomain,
    identity,
    authorizations: allowed,
    lifetime,
    now,
  });
  const end = new Date(Math.floor(now / 1000) * 1000 + lifetime * 1000).toISOString().replace('.000Z', 'Z');
  const what = allowed.length === 0 ? 'all that this identity may do' : allowed.join(', ');
  return { token, summary: `a token of ${identity} until ${end}, for ${what}` };
}

/** The key that `thresher pool init` left in a directory; the password signs tokens where there is no other key. */
export function keyIn(directory: string): string {
  const key = join(directory, secretFiles.key.path);
  const password = join(directory, secretFiles.password.path);
  const isThere = (file: string) => lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  return !isThere(key) && isThere(password) ? password : key;
}

/** The domain that the administrator's token of such a directory names. */
export function trustDomainIn(directory: string): string {
  try {
    const text = readFileSync(join(directory, secretFiles.adminToken.path), 'utf8');
    const claims = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()) as {
      iss?: unknown;
    };
    return typeof claims.iss === 'string' && claims.iss !== '' ? claims.iss : usualDomain;
  } catch {
    // A key alone is enough for a token.
    return usualDomain;
  }
}

/**
 * Writes a token into a new file that its owner alone can read.
 * @throws ThresherError `pool-token`
 */
export function keepToken(file: string, token: string, replace: boolean): void {
  try {
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: replace ? 'w' : 'wx', flush: true });
  } catch (error) {
    const why = hasCode(error, 'EEXIST')
      ? 'it is there already: name another file, or replace it with --force'
      : messageOf(error);
    throw new ThresherError('pool-token', `${file} cannot be written: ${why}`, { file }, { cause: error });
  }
}

/** @throws ThresherError `pool-option` */
function checkedIdentity(identity: string, domain: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]*(@[A-Za-z0-9][A-Za-z0-9._-]*)?$/.test(identity))
    return identity.includes('@') ? identity : `${identity}@${domain}`;
  const message = `the identity is ${JSON.stringify(identity)}; it must be USER or USER@DOMAIN, such as worker@${domain}`;
  throw new ThresherError('pool-option', message);
}

/** Keys of HTCondor have 64 bytes; a short file is no key of a pool, and could be guessed. */
const leastKeyBytes = 16;

/** @throws ThresherError `pool-token` */
function readKey(file: string): Uint8Array {
  const fail = (why: string, cause?: unknown) =>
    new ThresherError('pool-token', `the signing key ${file} cannot be used: ${why}`, { file }, { cause });
  try {
    const facts = lstatSync(file);
    if (facts.isDirectory()) throw fail('it is a directory: name the file in it');
    if ((facts.mode & 0o077) !== 0 && !facts.isSymbolicLink())
      throw fail(`others than its owner may read it: chmod 600 ${file}`);
    const key = readFileSync(file);
    if (key.length < leastKeyBytes)
      throw fail(`it has ${key.length} bytes, and a key of HTCondor has ${leastKeyBytes} or more`);
    return key;
  } catch (error) {
    if (error instanceof ThresherError) throw error;
    if (hasCode(error, 'ENOENT'))
      throw fail(
        'it is not there: `thresher pool init` makes one, and --key names that of a pool that runs',
        error,
      );
    throw fail(messageOf(error), error);
  }
}
