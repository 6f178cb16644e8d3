import { createHash } from 'node:crypto';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import { ThresherError } from '../../worker/errors.ts';

/** The claims of a token. Only the services that accept it check its signature. */
export interface TokenFacts {
  readonly subject: string;
  readonly issuer: string;
  /** ms UTC; undefined: it says no end. */
  readonly expiresAt: number | undefined;
  readonly notBefore: number | undefined;
  readonly scopes: readonly string[];
  /** The services that may accept it. */
  readonly audience: readonly string[];
  /** SHA-256 of the token, hex. */
  readonly digest: string;
}

/** Seconds since 1970, as far as there are dates. */
const seconds = Type.Optional(Type.Number({ minimum: 0, maximum: 8.64e12 }));
const Claims = Type.Object({
  sub: Type.Optional(Type.String()),
  iss: Type.Optional(Type.String()),
  exp: seconds,
  nbf: seconds,
  iat: seconds,
  scope: Type.Optional(Type.String()),
  aud: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});

const jwtPattern = /^[\w-]+\.([\w-]+)\.[\w-]*$/;

/**
 * Reads a JWT: a bearer token, or an IDTOKEN of HTCondor.
 * @throws ThresherError `credential-wrong`. Nothing of the text is in its message.
 */
export function readToken(text: string, source: string): TokenFacts {
  const token = text.trim();
  const wrong = (what: string) => new ThresherError('credential-wrong', `${source} ${what}`);
  if (token === '') throw wrong('is empty');
  const [, middle] = jwtPattern.exec(token) ?? [];
  if (middle === undefined) throw wrong('is no JWT (three parts of base64url with dots between them)');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(middle, 'base64url').toString('utf8'));
  } catch {
    throw wrong('is no JWT: its second part is no JSON');
  }
  const checked = check(Claims, claims);
  if (!checked.ok) {
    // Names the claims without their values, which are part of the token.
    const places = new Set(checked.problems.map(({ pointer }) => pointer.split('/')[1] ?? 'all of it'));
    throw wrong(`is no JWT as expected: wrong in its claims is ${[...places].join(', ')}`);
  }
  const { sub = '', iss = '', exp, nbf, iat, scope = '', aud = [] } = checked.value;
  const begins = nbf ?? iat;
  return {
    subject: sub,
    issuer: iss,
    expiresAt: exp === undefined ? undefined : exp * 1000,
    notBefore: begins === undefined ? undefined : begins * 1000,
    scopes: scope.split(' ').filter((one) => one !== ''),
    audience: typeof aud === 'string' ? [aud] : aud,
    digest: createHash('sha256').update(token).digest('hex'),
  };
}
