import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { parseDer, type Piece, tags } from './asn1.ts';
import { type VomsAttributes, vomsOid, readVoms } from './voms.ts';

/** The kind of proxy that the first certificate is: by RFC 3820, its draft, its name alone, or none. */
export type ProxyKind = 'rfc' | 'draft' | 'legacy' | 'certificate';

/** A certificate or proxy with its chain, as a file holds it. No part of it is secret. */
export interface X509Credential {
  readonly kind: ProxyKind;
  readonly limited: boolean;
  /** "/DC=org/DC=example/CN=Jane Doe/CN=1234" */
  readonly subject: string;
  /** The person or service that it stands for: the subject without the parts that proxies added. */
  readonly identity: string;
  readonly issuer: string;
  /** ms UTC. The latest beginning and the earliest end of the chain, attributes of VOs among it. */
  readonly notBefore: number;
  readonly expiresAt: number;
  readonly voms: readonly VomsAttributes[];
  /** Whether the file has the key that belongs to it. */
  readonly hasKey: boolean;
  /** SHA-256 of the whole text, hex. */
  readonly digest: string;
}

const proxyOids: ReadonlyMap<string, ProxyKind> = new Map([
  ['1.3.6.1.5.5.7.1.14', 'rfc'],
  ['1.3.6.1.4.1.3536.1.222', 'draft'],
]);
/** Policy languages of limited proxies. Source: Globus' proxy certificate profile. */
const limitedLanguage = '1.3.6.1.4.1.3536.1.1.1.9';

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const keyPattern = /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----[^-]+(?:-[^-]+)*?-----END \1PRIVATE KEY-----/;

interface Link {
  readonly certificate: X509Certificate;
  readonly subject: string;
  readonly issuer: string;
  readonly kind: ProxyKind;
  readonly limited: boolean;
  readonly voms: readonly VomsAttributes[];
}

/**
 * Reads a proxy or certificate in PEM: certificate, key, chain, in whatever order the chain stands.
 * @throws ThresherError `credential-wrong`. Nothing of the text is in its message: it has a private key.
 */
export function readX509(text: string, source: string): X509Credential {
  const wrong = (what: string) => new ThresherError('credential-wrong', `${source} ${what}`);
  if (text.trim() === '') throw wrong('is empty');
  const pems = [...text.matchAll(certificatePattern)].map(([pem]) => pem);
  if (pems.length < text.split('-----BEGIN CERTIFICATE-----').length - 1)
    throw wrong('is cut off: a certificate in it has no end (-----END CERTIFICATE-----)');
  const links = pems.map((pem) => readLink(pem, wrong));
  const [leaf] = links;
  if (leaf === undefined) throw wrong('has no certificate in PEM (-----BEGIN CERTIFICATE-----)');
  const hasKey = checkKey(text, leaf.certificate, wrong);
  if (!hasKey && leaf.kind !== 'certificate')
    throw wrong('has no whole private key, without which the proxy cannot be used');
  const chain = chainOf(leaf, links, wrong);
  const last = chain.at(-1);
  if (last === undefined || last.kind !== 'certificate')
    throw wrong(`lacks the certificate of ${last?.issuer ?? '?'}, which made the proxy`);
  const voms = chain.flatMap((link) => link.voms);
  const begins = chain.map(({ certificate }) => certificate.validFromDate.getTime());
  const ends = chain.map(({ certificate }) => certificate.validToDate.getTime());
  return {
    kind: leaf.kind,
    limited: chain.some(({ limited }) => limited),
    subject: leaf.subject,
    identity: last.subject,
    issuer: leaf.issuer,
    notBefore: Math.max(...begins, ...voms.map(({ notBefore }) => notBefore)),
    expiresAt: Math.min(...ends, ...voms.map(({ expiresAt }) => expiresAt)),
    voms,
    hasKey,
    digest: createHash('sha256').update(text).digest('hex'),
  };
}

function readLink(pem: string, wrong: (what: string) => Error): Link {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch (error) {
    throw wrong(`has a certificate that cannot be read: ${messageOf(error)}`);
  }
  const subject = nameOf(certificate.subject);
  const extensions = extensionsOf(certificate);
  const found = [...proxyOids].find(([oid]) => extensions.has(oid));
  const legacy = /\/CN=(limited )?proxy$/.exec(subject);
  const info = found === undefined ? undefined : parseDer(extensions.get(found[0]) ?? Buffer.alloc(0));
  const acs = extensions.get(vomsOid);
  return {
    certificate,
    subject,
    issuer: nameOf(certificate.issuer),
    kind: found?.[1] ?? (legacy === null ? 'certificate' : 'legacy'),
    limited: legacy?.[1] !== undefined || (info !== undefined && hasOid(info, limitedLanguage)),
    voms: acs === undefined ? [] : readVoms(acs),
  };
}

/**
 * The key stands in the same file, where there is one; a wrong one makes every use of it fail.
 * @returns whether there is one.
 */
function checkKey(text: string, leaf: X509Certificate, wrong: (what: string) => Error): boolean {
  const pem = keyPattern.exec(text)?.[0];
  if (pem === undefined) return false;
  let fits: boolean;
  try {
    fits = leaf.checkPrivateKey(createPrivateKey(pem));
  } catch {
    // An encrypted key cannot be looked at, and the library's message may hold parts of it.
    if (/ENCRYPTED/.test(pem)) return true;
    throw wrong('has a private key that cannot be read');
  }
  if (!fits) throw wrong('has a private key that is not that of its first certificate');
  return true;
}

/** From the first certificate to the one that is no proxy, by issuer; what else is in the file (a CA) does not count. */
function chainOf(leaf: Link, links: readonly Link[], wrong: (what: string) => Error): Link[] {
  const chain = [leaf];
  for (let at = leaf; at.kind !== 'certificate' && chain.length <= links.length;) {
    const named = links.filter((link) => !chain.includes(link) && link.subject === at.issuer);
    // A renewed certificate has the name of the old one, and another key.
    const next = named.find(({ certificate }) => at.certificate.verify(certificate.publicKey));
    if (next === undefined) {
      if (named.length === 0) break;
      throw wrong(`has a certificate of ${at.issuer} that did not sign the proxy made from it`);
    }
    chain.push(next);
    at = next;
  }
  return chain;
}

/** As Grid tools write names. Node has a line for each part, and undefined, whatever its types say, for an empty name. */
function nameOf(lines: string | undefined): string {
  return `/${(lines ?? '').split('\n').join('/')}`;
}

/** Content of a certificate's extensions by OID. Source: RFC 5280, 4.1. */
function extensionsOf({ raw }: X509Certificate): Map<string, Buffer> {
  const tbs = parseDer(raw)?.parts[0];
  const list = tbs?.parts.find(({ tagClass, tagNumber }) => tagClass === 3 && tagNumber === 3)?.parts[0];
  return new Map(
    (list?.parts ?? []).flatMap(({ parts }) => {
      const oid = parts[0]?.oid;
      const content = parts.find(({ tagNumber }) => tagNumber === tags.octetString)?.bytes;
      return oid === undefined || content === undefined ? [] : [[oid, content] as const];
    }),
  );
}

function hasOid(piece: Piece, oid: string): boolean {
  return piece.oid === oid || piece.parts.some((part) => hasOid(part, oid));
}
