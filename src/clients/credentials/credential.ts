import { createHash } from 'node:crypto';
import { fileKinds } from '../../util/file-kinds.ts';
import { rememberSecret } from '../../util/own-secrets.ts';
import { readCcache } from './ccache.ts';
import { readToken } from './jwt.ts';
import { readX509 } from './x509.ts';

/** The known facts of a credential of any kind. None of them is secret. */
export interface ReadCredential {
  readonly kind: 'x509' | 'token' | 'token-key' | 'kerberos';
  readonly subject: string;
  readonly issuer?: string;
  readonly vo?: string;
  /** ms UTC */
  readonly expiresAt?: number;
  readonly notBefore?: number;
  /** When it was made, by its own word: no bound of its validity. */
  readonly issuedAt?: number;
  /** SHA-256, hex. */
  readonly digest: string;
  /** Whether a reader of the file could use the credential: a certificate alone is public. */
  readonly secret: boolean;
}

/**
 * Detects the kind of a credential file, and reads it.
 * @param source name of the file in messages.
 * @throws ThresherError `credential-wrong`. Nothing of the content is in its message.
 */
export function readCredential(bytes: Buffer, source: string): ReadCredential {
  // Version 5 of Kerberos' file format, whatever follows: a JWT or PEM begins with a letter or a dash.
  if (bytes[0] === 5) {
    const { principal, expiresAt, notBefore, digest } = readCcache(bytes, source);
    return { kind: 'kerberos', subject: principal, expiresAt, notBefore, digest, secret: true };
  }
  const text = bytes.toString('utf8');
  if (isTokenKey(text.trim())) return { ...keyFacts(text), secret: true };
  if (!text.includes('-----BEGIN ')) {
    const { subject, issuer, expiresAt, notBefore, issuedAt, digest } = readToken(text, source);
    return {
      kind: 'token',
      subject,
      issuer,
      ...(expiresAt !== undefined && { expiresAt }),
      ...(notBefore !== undefined && { notBefore }),
      ...(issuedAt !== undefined && { issuedAt }),
      digest,
      secret: true,
    };
  }
  const { subject, issuer, voms, expiresAt, notBefore, digest, hasKey } = readX509(text, source);
  const vo = voms[0]?.vo;
  return {
    kind: 'x509',
    subject,
    issuer,
    ...(vo !== undefined && { vo }),
    expiresAt,
    notBefore,
    digest,
    secret: hasKey,
  };
}

/** Whether a text may be a key of the PanDA server, a UUID. Source: panda-server 1.0.4, `register_token_key`. */
export function isTokenKey(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
}

/** The facts of the key by which pilots get a token from the PanDA server. The key itself says neither whose it is nor how long it lasts. */
export function keyFacts(
  key: string,
): { readonly kind: 'token-key' } & Pick<ReadCredential, 'subject' | 'digest'> {
  const digest = createHash('sha256').update(key.trim()).digest('hex');
  return { kind: 'token-key', subject: '', digest };
}

/**
 * From now on no text from outside shows the tokens and private keys of this file: a server that they were sent to may repeat them in a form in which
 * nothing tells what they are. Those that are in the same file later take the place of these.
 * @param place its path
 */
export function rememberCredential(bytes: Buffer, place: string): void {
  remember(secretsIn(bytes.toString('utf8')), place);
}

/** The same for a file that lies among tokens: it may be anything, so what has the form of a JWT counts alone. */
export function rememberTokens(bytes: Buffer, place: string): void {
  remember(linesOf(bytes.toString('utf8')).filter(isJwtLine), place);
}

/** Each character of a secret costs time, and the file may be a log of tokens by mistake: of one file so many, and so many characters of all. */
const mostSecrets = { count: 40, characters: 64 * 1024 } as const;
/** Characters of one: a private key of 8192 bits has less than half of it. */
const longestSecret = fileKinds.token.largest;

function remember(secrets: readonly string[], place: string): void {
  let left: number = mostSecrets.characters;
  for (const [at, secret] of secrets
    .filter(({ length }) => length <= longestSecret)
    .slice(0, mostSecrets.count)
    .entries()) {
    left -= secret.length;
    if (left < 0) return;
    rememberSecret(secret, `${place} ${at}`);
  }
}

/** Of a file that is named by mistake, nothing that may stand in any message. */
function secretsIn(text: string): readonly string[] {
  if (text.includes('-----BEGIN '))
    return text
      .split(/-----BEGIN [A-Z ]*PRIVATE KEY-----/)
      .slice(1)
      .map((key) => (key.split('-----')[0] ?? '').replaceAll(/\s/g, ''));
  const lines = linesOf(text);
  // A token without a form is the only word of its file.
  return lines.filter((line) => isJwtLine(line) || (lines.length === 1 && mayBeToken(line)));
}

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

const word = /^[\x21-\x7e]+$/;

function isJwtLine(line: string): boolean {
  return line.startsWith('eyJ') && word.test(line);
}

/** Nobody gives out shorter ones. */
const shortestToken = 20;
/** What a file that is named by mistake may have as its only word: an address, a name of a host or of a user there, a path. */
const ordinaryWords = [
  /^[a-z][a-z0-9+.-]*:\/\//i,
  /^([\w.+-]+@)?([a-z0-9-]+\.)+([a-z]{2,24}|\d{1,3})(:\d{1,5})?$/i,
  // In small letters alone: base64 has slashes too.
  /^[~.]{0,2}\/?[a-z0-9._@+-]+(\/[a-z0-9._@+-]+)+\/?$/,
];

function mayBeToken(line: string): boolean {
  if (line.length < shortestToken || !word.test(line)) return false;
  return !ordinaryWords.some((form) => form.test(line));
}

/** The facts that thresher shows of it. */
export function publicFacts(read: ReadCredential): Omit<ReadCredential, 'secret'> {
  const { kind, subject, issuer, vo, expiresAt, notBefore, issuedAt, digest } = read;
  return {
    kind,
    subject,
    digest,
    ...(issuer !== undefined && { issuer }),
    ...(vo !== undefined && { vo }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(notBefore !== undefined && { notBefore }),
    ...(issuedAt !== undefined && { issuedAt }),
  };
}
