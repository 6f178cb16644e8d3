import { isDeeper, isObject, type JsonObject } from '../../util/json.ts';

/**
 * The queues of CRIC as thresher keeps them: a JSON object with one entry a line, by the name of the PanDA queue. CRIC knows
 * thousands of queues, and a factory runs some: a reader parses only the lines that it needs.
 */
const opening = '{\n';
const closing = '\n}\n';

/** Says that an entry is for a Harvester, and for which: the beginning of its line, so that it can be told unparsed. */
const ownerOf = (manager: unknown, harvester: unknown) =>
  `{"pilot_manager":${JSON.stringify(manager ?? null)},"harvester":${JSON.stringify(harvester ?? null)}`;

/** Levels of lists and objects that an entry may have: what JSON can be read from may be too deep to be written. */
export const deepestEntry = 20;

export function writeEntryLines(entries: ReadonlyMap<string, JsonObject>): string {
  const lines = [...entries].map(([name, entry]) => {
    const { pilot_manager: manager, harvester, ...rest } = entry;
    const others = JSON.stringify(rest).slice(1);
    const comma = others === '}' ? '' : ',';
    return `${JSON.stringify(name)}:${ownerOf(manager, harvester)}${comma}${others}`;
  });
  return `${opening}${lines.join(',\n')}${closing}`;
}

export interface EntryLines {
  readonly entries: ReadonlyMap<string, JsonObject>;
  readonly lines: ReadonlyMap<string, number>;
}

/**
 * Reads the entries of these names, and those of this instance.
 * @returns undefined where the file is not as it was written
 */
export function readEntryLines(
  bytes: Buffer,
  isWanted: (name: string) => boolean,
  harvesterId: string,
): EntryLines | undefined {
  if (!bytes.subarray(0, opening.length).equals(Buffer.from(opening))) return undefined;
  if (!bytes.subarray(-closing.length).equals(Buffer.from(closing))) return undefined;
  const ours = Buffer.from(`:${ownerOf('Harvester', harvesterId)}`);
  const entries = new Map<string, JsonObject>();
  const lines = new Map<string, number>();
  const end = bytes.length - closing.length;
  let line = 2;
  for (let from = opening.length; from < end; line++) {
    const newline = bytes.indexOf(10, from);
    const until = Math.min(newline === -1 ? end : newline, end);
    const text = bytes.subarray(from, bytes[until - 1] === 44 ? until - 1 : until);
    from = until + 1;
    const name = nameIn(text);
    if (name === undefined) return undefined;
    const nameEnds = Buffer.byteLength(JSON.stringify(name));
    if (!isWanted(name) && !text.subarray(nameEnds, nameEnds + ours.length).equals(ours)) continue;
    const entry = parsed(text.subarray(nameEnds + 1));
    if (entry === undefined) return undefined;
    entries.set(name, entry);
    lines.set(name, line);
  }
  return { entries, lines };
}

/** The key of a line. It ends at a quote that no backslash stands before. */
function nameIn(text: Buffer): string | undefined {
  if (text[0] !== 34) return undefined;
  let at = 1;
  while (at < text.length && text[at] !== 34) at += text[at] === 92 ? 2 : 1;
  try {
    const name: unknown = JSON.parse(text.toString('utf8', 0, at + 1));
    return typeof name === 'string' ? name : undefined;
  } catch {
    return undefined;
  }
}

function parsed(text: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text.toString('utf8'));
    return isObject(value) && !isDeeper(value, deepestEntry) ? value : undefined;
  } catch {
    return undefined;
  }
}
