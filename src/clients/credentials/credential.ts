import { readCcache } from './ccache.ts';
import { readToken } from './jwt.ts';
import { readX509 } from './x509.ts';

/** The known facts of a credential of any kind. None of them is secret. */
export interface ReadCredential {
  readonly kind: 'x509' | 'token' | 'kerberos';
  readonly subject: string;
  readonly issuer?: string;
  readonly vo?: string;
  /** ms UTC */
  readonly expiresAt?: number;
  readonly notBefore?: number;
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
  if (!text.includes('-----BEGIN ')) {
    const { subject, issuer, expiresAt, notBefore, digest } = readToken(text, source);
    return {
      kind: 'token',
      subject,
      issuer,
      ...(expiresAt !== undefined && { expiresAt }),
      ...(notBefore !== undefined && { notBefore }),
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

/** The facts that thresher shows of it. */
export function publicFacts(read: ReadCredential): Omit<ReadCredential, 'secret'> {
  const { kind, subject, issuer, vo, expiresAt, notBefore, digest } = read;
  return {
    kind,
    subject,
    digest,
    ...(issuer !== undefined && { issuer }),
    ...(vo !== undefined && { vo }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(notBefore !== undefined && { notBefore }),
  };
}
