import { createHash } from 'node:crypto';
import Type from 'typebox';
import { check } from '../../util/schema.ts';
import { ThresherError } from '../../worker/errors.ts';

/** What a token says of itself. Its signature is for those to check who accept it. */
export interface TokenFacts {
  readonly subject: string;
  readonly issuer: string;
  /** ms UTC; undefined: it says no end. */
  readonly expiresAt: number | undefined;
  readonly notBefore: number | undefined;
  readonly scopes: readonly string[];
  /** SHA-256 of the token, hex. */
  readonly digest: string;
}

const seconds = Type.Optional(Type.Number());
const Claims = Type.Object({
  sub: Type.Optional(Type.String()),
  iss: Type.Optional(Type.String()),
  exp: seconds,
  nbf: seconds,
  iat: seconds,
  scope: Type.Optional(Type.String()),
});

/**
 * Reads a JWT: a bearer token, or an IDTOKEN of HTCondor.
 * @throws ThresherError `credential-wrong`. Nothing of the text is in its message.
 */
export function readToken(text: string, source: string): TokenFacts {
  const token = text.trim();
  const wrong = (what: string) => new ThresherError('credential-wrong', `${source} ${what}`);
  if (token === '') throw wrong('is empty');
  const parts = token.split('.');
  if (parts.length !== 3) throw wrong('is no JWT (three parts with dots between them)');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8'));
  } catch {
    throw wrong('is no JWT: its second part is no JSON');
  }
  const checked = check(Claims, claims);
  if (!checked.ok)
    throw wrong(`is no JWT as expected: ${checked.problems.map(({ message }) => message).join('; ')}`);
  const { sub = '', iss = '', exp, nbf, iat, scope = '' } = checked.value;
  const begins = nbf ?? iat;
  return {
    ...{ subject: sub, issuer: iss },
    expiresAt: exp === undefined ? undefined : exp * 1000,
    notBefore: begins === undefined ? undefined : begins * 1000,
    scopes: scope.split(' ').filter((one) => one !== ''),
    digest: createHash('sha256').update(token).digest('hex'),
  };
}
