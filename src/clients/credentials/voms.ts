import { parseDer, type Piece, tags } from './asn1.ts';

/** The statement of a VO about the bearer of a proxy. */
export interface VomsAttributes {
  readonly vo: string;
  /** "/atlas/Role=production", the first is the primary one. */
  readonly fqans: readonly string[];
  /** "voms.example.org:15001" */
  readonly server: string;
  /** ms UTC */
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** Extension of a proxy with attribute certificates. Source: the VOMS Attribute Certificate profile. */
export const vomsOid = '1.3.6.1.4.1.8005.100.100.5';
const fqanOid = '1.3.6.1.4.1.8005.100.100.4';

/** Attribute certificates of the extension. Unreadable ones are left out. Source: RFC 5755, 4.1. */
export function readVoms(extension: Uint8Array): VomsAttributes[] {
  const outer = parseDer(extension);
  const certificates = outer?.parts.flatMap((one) => (isCertificate(one) ? [one] : one.parts)) ?? [];
  return certificates.flatMap((certificate) => {
    const info = certificate.parts[0]?.parts ?? [];
    const period = info.find((part) => part.parts.length === 2 && part.parts.every(isTime));
    const [notBefore, expiresAt] = (period?.parts ?? []).map(({ time }) => time);
    const attribute = info.flatMap(({ parts }) => parts).find(({ parts }) => parts[0]?.oid === fqanOid)
      ?.parts[1]?.parts[0];
    if (notBefore === undefined || expiresAt === undefined || attribute === undefined) return [];
    // "atlas://voms.example.org:15001"
    const authority = attribute.parts.find(({ tagClass }) => tagClass === 3);
    const uri = textOf(authority) ?? '';
    const [, vo = '', server = ''] = /^([^:]*):\/\/(.*)$/.exec(uri) ?? [];
    const values = attribute.parts.find(
      ({ tagClass, tagNumber }) => tagClass === 1 && tagNumber === tags.sequence,
    );
    const fqans = (values?.parts ?? []).map(({ bytes }) => bytes.toString('utf8'));
    return [{ vo: vo || (fqans[0]?.split('/')[1] ?? ''), fqans, server, notBefore, expiresAt }];
  });
}

function isTime({ time }: Piece): boolean {
  return time !== undefined;
}

/** Its first part holds versions and times, and not further certificates. */
function isCertificate({ parts }: Piece): boolean {
  return parts[0]?.parts.some((part) => part.parts.length === 2 && part.parts.every(isTime)) ?? false;
}

/** The first text in it, however deep. */
function textOf(piece: Piece | undefined): string | undefined {
  if (piece === undefined) return undefined;
  if (piece.parts.length === 0) return piece.bytes.toString('utf8');
  return piece.parts.map(textOf).find((text) => text !== undefined && text !== '');
}
