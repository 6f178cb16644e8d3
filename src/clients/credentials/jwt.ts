import { createHash } from 'node:crypto';
import { isObject } from '../../util/json.ts';
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
  /** No bound of its validity. */
  readonly issuedAt: number | undefined;
  readonly scopes: readonly string[];
  /** The services that may accept it. */
  readonly audience: readonly string[];
  /** SHA-256 of the token, hex. */
  readonly digest: string;
}

/** Seconds since 1970, as far as there are dates. Some issuers write null for what they leave out. */
const seconds = Type.Optional(Type.Union([Type.Number({ minimum: 0, maximum: 8.64e12 }), Type.Null()]));
/** What decides here. The others are for its services, and whatever they are, the token may be good. */
const Claims = Type.Object({ exp: seconds, nbf: seconds });

function textsIn(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');
}

const jwtPattern = /^([\w-]+)\.([\w-]+)\.[\w-]*$/;

function jsonIn(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  } catch {
    // The caller says which part it is.
    return undefined;
  }
}

/**
 * Reads a JWT: a bearer token, or an IDTOKEN of HTCondor.
 * @throws ThresherError `credential-wrong`. Nothing of the text is in its message.
 */
export function readToken(text: string, source: string): TokenFacts {
  const token = text.trim();
  const wrong = (what: string) => new ThresherError('credential-wrong', `${source} ${what}`);
  if (token === '') throw wrong('is empty');
  const [, head, middle] = jwtPattern.exec(token) ?? [];
  if (head === undefined || middle === undefined)
    throw wrong('is no JWT (three parts of base64url with dots between them)');
  const claims = jsonIn(middle);
  if (claims === undefined) throw wrong('is no JWT: its second part is no JSON');
  // What is called a token is hidden wherever a piece of it is said: a name in this place would be, too.
  if (!isObject(jsonIn(head))) throw wrong('is no JWT: its first part is no JSON object');
  const checked = check(Claims, claims);
  if (!checked.ok) {
    // Names the claims without their values, which are part of the token.
    const places = new Set(checked.problems.map(({ pointer }) => pointer.split('/')[1] ?? 'all of it'));
    throw wrong(`is no JWT as expected: wrong in its claims is ${[...places].join(', ')}`);
  }
  const { exp, nbf } = checked.value;
  const { sub, iss, iat, scope, aud } = claims as Readonly<Record<string, unknown>>;
  const issued = check(seconds, iat);
  return {
    subject: typeof sub === 'string' ? sub : '',
    issuer: typeof iss === 'string' ? iss : '',
    expiresAt: exp == null ? undefined : exp * 1000,
    notBefore: nbf == null ? undefined : nbf * 1000,
    issuedAt: issued.ok && issued.value != null ? issued.value * 1000 : undefined,
    // RFC 8693 has one text, and some issuers a list.
    scopes: textsIn(scope).flatMap((one) => one.split(' ').filter((word) => word !== '')),
    audience: textsIn(aud),
    digest: createHash('sha256').update(token).digest('hex'),
  };
}
