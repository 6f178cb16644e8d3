import { type AsnType, Constructed, fromBER, GeneralizedTime, ObjectIdentifier } from 'asn1js';

/** A piece of DER: what the parser gives, as far as it is looked at. */
export interface Piece {
  /** 1 universal, 2 application, 3 context-specific. */
  readonly tagClass: number;
  readonly tagNumber: number;
  /** Parts of a constructed one. */
  readonly parts: readonly Piece[];
  /** Content of a primitive one. */
  readonly bytes: Buffer;
  readonly oid: string | undefined;
  /** ms UTC of a GeneralizedTime. */
  readonly time: number | undefined;
}

/** Universal tags that are looked for. Source: X.680. */
export const tags = { octetString: 4, sequence: 16 } as const;

/** @returns undefined for what is no DER. */
export function parseDer(der: Uint8Array): Piece | undefined {
  const { offset, result } = fromBER(Uint8Array.from(der));
  return offset === -1 ? undefined : toPiece(result);
}

function toPiece(node: AsnType): Piece {
  const { idBlock, valueBlock } = node;
  // Others have lists of their own: an OID its numbers, a string perhaps DER that it happens to hold.
  const parts = node instanceof Constructed ? (node.valueBlock.value as AsnType[]).map(toPiece) : [];
  const { valueHexView } = valueBlock as { readonly valueHexView?: Uint8Array };
  return {
    tagClass: idBlock.tagClass,
    tagNumber: idBlock.tagNumber,
    parts,
    bytes: Buffer.from(valueHexView ?? []),
    oid: node instanceof ObjectIdentifier ? node.getValue() : undefined,
    time: node instanceof GeneralizedTime ? node.toDate().getTime() : undefined,
  };
}
