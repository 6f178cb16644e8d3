import type { Payload, PayloadFile } from '../../worker/payload.ts';

/** Characters from which on the content of a file is worth a row of its own. */
const worthSharing = 1000;

/** The contents that several payloads have in common, as one row keeps them: those of secret files apart from the rest. */
export interface SharedContents {
  readonly contents: readonly string[];
  readonly secrets: readonly string[];
}

/** A file of a stored payload. `shared` is the place of its content among those that its payload shares. */
export type StoredFile = PayloadFile & { readonly shared?: number };

/** By the id of a payload: the row that it shares, named after the first payload that does. */
export type Shares = ReadonlyMap<string, SharedContents & { readonly shareId: string }>;

/**
 * Finds the contents that payloads have in common. The jobs of one HTCJob differ in their number, and have one script of 900 kB.
 * Payloads share a row if all their large files are the same; no row is named after a content, which would tell of secrets.
 */
export function sharesOf(payloads: ReadonlyMap<string, Payload>): Shares {
  const numbers = new Map<string, number>();
  const numberOf = (content: string) => {
    const number = numbers.get(content) ?? numbers.size;
    numbers.set(content, number);
    return number;
  };
  const groups = new Map<string, string[]>();
  for (const [payloadId, { files = [] }] of payloads) {
    const large = files.filter(isLarge);
    if (large.length === 0) continue;
    const key = large.map((file) => `${file.secret === true ? 's' : 'p'}${numberOf(file.content)}`).join();
    groups.set(key, [...(groups.get(key) ?? []), payloadId]);
  }
  const shares = new Map<string, SharedContents & { readonly shareId: string }>();
  for (const payloadIds of groups.values()) {
    const [shareId = ''] = payloadIds;
    if (payloadIds.length < 2) continue;
    const large = payloads.get(shareId)?.files?.filter(isLarge) ?? [];
    const of = (secret: boolean) =>
      large.filter((file) => (file.secret === true) === secret).map(({ content }) => content);
    const share = { shareId, contents: of(false), secrets: of(true) };
    for (const payloadId of payloadIds) shares.set(payloadId, share);
  }
  return shares;
}

/** The files of a payload that shares its large ones. */
export function withoutShared(files: readonly PayloadFile[]): StoredFile[] {
  const next = { contents: 0, secrets: 0 };
  return files.map((file) => {
    if (!isLarge(file)) return file;
    return { ...file, content: '', shared: file.secret === true ? next.secrets++ : next.contents++ };
  });
}

function isLarge({ content }: PayloadFile): boolean {
  return content.length >= worthSharing;
}
