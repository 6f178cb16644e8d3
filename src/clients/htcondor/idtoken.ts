import { createHmac, hkdfSync, randomBytes } from 'node:crypto';

/**
 * HTCondor's IDTOKENs and the keys that sign them, in the form of its own tools: a machine that makes a pool needs none of them.
 * Source: HTCondor 23.9, condor_utils/secure_file.cpp, condor_utils/my_username.cpp, condor_io/condor_auth_passwd.cpp.
 */

/** Key of a pool, and its file in `SEC_PASSWORD_DIRECTORY`. A token names the key that signed it. */
const poolKey = 'POOL';

/** All that the daemons of a pool need of a token, by the user of its identity. */
export const daemonAuthorizations = {
  worker: ['READ', 'ADVERTISE_MASTER', 'ADVERTISE_STARTD'],
  schedd: ['READ', 'ADVERTISE_MASTER', 'ADVERTISE_SCHEDD'],
} as const satisfies Record<string, readonly string[]>;

/** Bytes of a new signing key, as the collector makes them. */
const keyBytes = 64;
/** HTCondor scrambles what it keeps in a file, against a glance over a shoulder. */
const scrambling = [0xde, 0xad, 0xbe, 0xef] as const;

export interface TokenWishes {
  /** Content of the key's file. */
  readonly key: Uint8Array;
  /** Name of the key's file. Default: `POOL`. */
  readonly keyName?: string;
  /** `TRUST_DOMAIN` of the daemons that are to believe the token. */
  readonly issuer: string;
  /** `USER@DOMAIN` */
  readonly identity: string;
  /** `READ`, `ADVERTISE_STARTD`, ... Empty: everything that the identity may. */
  readonly authorizations: readonly string[];
  /** s. Undefined: the token has no end. */
  readonly lifetime?: number;
  /** ms UTC */
  readonly now: number;
}

/** Content of a new file for a signing key or a pool password: random, and of no byte that would end it early. */
export function newSigningKey(): Buffer {
  // HTCondor takes the key of a pool as a text of C, which a zero ends.
  return scrambled(randomBytes(keyBytes).map((byte) => (byte === 0 ? 1 : byte)));
}

/** Content of a pool password's file, as `condor_store_cred -p PASSWORD -f FILE` writes it. */
export function passwordFile(password: string): Buffer {
  return scrambled(Buffer.from(password, 'utf8'));
}

/** A token, as `condor_token_create` makes it. */
export function mintToken(wishes: TokenWishes): string {
  const { key, keyName = poolKey, issuer, identity, authorizations, lifetime, now } = wishes;
  const iat = Math.floor(now / 1000);
  const header = { alg: 'HS256', kid: keyName };
  const scope = authorizations.map((one) => `condor:/${one}`).join(' ');
  const claims = {
    ...(lifetime !== undefined && { exp: iat + lifetime }),
    iat,
    iss: issuer,
    jti: randomBytes(16).toString('hex'),
    ...(scope !== '' && { scope }),
    sub: identity,
  };
  const text = `${encoded(header)}.${encoded(claims)}`;
  const signature = createHmac('sha256', derivedKey(key, keyName)).update(text).digest('base64url');
  return `${text}.${signature}`;
}

function derivedKey(file: Uint8Array, keyName: string): Uint8Array {
  const plain = scrambled(file);
  const secret = keyName === poolKey ? twice(untilZero(plain)) : plain;
  return new Uint8Array(hkdfSync('sha256', secret, 'htcondor', 'master jwt', 32));
}

/** Undoes itself. */
function scrambled(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.map((byte, at) => byte ^ (scrambling[at % scrambling.length] ?? 0)));
}

function untilZero(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

/** The key of a pool is its password too, and HTCondor uses that twice in a row. */
function twice(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, bytes]);
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
