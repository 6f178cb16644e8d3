import { givingWayAfter } from '../../util/clock.ts';
import { hasMoreValues, isDeeper, isObject, type JsonObject } from '../../util/json.ts';

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

/** Characters that an entry may have as it is written; the longest that ATLAS has is below 50,000. */
const longestEntry = 1_000_000;

/** Values that an entry may have: those of a real one are some hundreds, and in 50,000 characters hardly 5000. Each costs at each reading. */
const mostValues = 10_000;

/** Characters that are read in one turn. An entry is read in one. */
const inATurn = 100_000;

/** An entry as its line has it. */
export function writtenEntry({ pilot_manager: manager, harvester, ...rest }: JsonObject): string {
  const others = JSON.stringify(rest).slice(1);
  const comma = others === '}' ? '' : ',';
  return `${ownerOf(manager, harvester)}${comma}${others}`;
}

/** Why an entry is left out where it is taken, and where a file is read that has it. @param written of `writtenEntry` */
export function whyTooLarge(written: string): string | undefined {
  if (written.length > longestEntry) return `longer than ${longestEntry} characters`;
  return hasMoreValues(written, mostValues) ? `more than ${mostValues} values` : undefined;
}

export function writeEntryLines(entries: ReadonlyMap<string, JsonObject>): string {
  const lines = [...entries].map(([name, entry]) => `${JSON.stringify(name)}:${writtenEntry(entry)}`);
  return `${opening}${lines.join(',\n')}${closing}`;
}

export interface EntryLines {
  readonly entries: ReadonlyMap<string, JsonObject>;
  readonly lines: ReadonlyMap<string, number>;
  /** Why others of them are left out, by their names. */
  readonly leftOut: ReadonlyMap<string, string>;
}

/**
 * Reads the entries of these names, and those of this instance. Others have their turn meanwhile.
 * @returns undefined where the file is not as it was written
 */
export async function readEntryLines(
  bytes: Buffer,
  isWanted: (name: string) => boolean,
  harvesterId: string,
): Promise<EntryLines | undefined> {
  if (!bytes.subarray(0, opening.length).equals(Buffer.from(opening))) return undefined;
  if (!bytes.subarray(-closing.length).equals(Buffer.from(closing))) return undefined;
  const ours = Buffer.from(`:${ownerOf('Harvester', harvesterId)}`);
  const entries = new Map<string, JsonObject>();
  const lines = new Map<string, number>();
  const leftOut = new Map<string, string>();
  const giveWay = givingWayAfter(inATurn);
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
    if (!isWanted(name) && !text.subarray(nameEnds, nameEnds + ours.length).equals(ours)) {
      await giveWay(nameEnds);
      continue;
    }
    const written = text.toString('utf8', nameEnds + 1);
    const why = whyTooLarge(written);
    if (why === undefined) {
      const entry = parsed(written);
      if (entry === undefined) return undefined;
      entries.set(name, entry);
      lines.set(name, line);
    } else leftOut.set(name, why);
    await giveWay(text.length);
  }
  return { entries, lines, leftOut };
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

function parsed(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && !isDeeper(value, deepestEntry) ? value : undefined;
  } catch {
    return undefined;
  }
}
