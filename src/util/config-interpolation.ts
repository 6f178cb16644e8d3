/** One line of a value, and where in the file it comes from. */
export interface ConfigLine {
  readonly text: string;
  /** From 1. */
  readonly line: number;
}

export type Interpolated =
  | { readonly ok: true; readonly lines: readonly ConfigLine[] }
  | { readonly ok: false; readonly message: string };

/** A stretch of the result, and the place in the written value that it stands for. */
interface Piece {
  readonly text: string;
  readonly from: number;
  /** False for what a reference brought: all of it stands at the place of the reference. */
  readonly literal: boolean;
}

/** How deep references may go, as in Python. */
const maxDepth = 10;

/**
 * Replaces `%(name)s` by the value of that name, and `%%` by a percent sign, as the BasicInterpolation of Python's
 * configparser does. Each line of the result keeps the line of the file that it was written on.
 */
export function interpolate(
  written: readonly ConfigLine[],
  find: (name: string) => readonly ConfigLine[] | undefined,
): Interpolated {
  const text = joined(written);
  if (!text.includes('%')) return { ok: true, lines: written };
  const pieces: Piece[] = [];
  const values = (name: string) => {
    const lines = find(name);
    return lines === undefined ? undefined : joined(lines);
  };
  const message = expand(text, values, pieces);
  if (message !== undefined) return { ok: false, message };
  return { ok: true, lines: toLines(pieces, text, written) };
}

/** Adds the pieces of `text`. @returns what is wrong with it, if anything. */
function expand(
  text: string,
  values: (name: string) => string | undefined,
  into: Piece[],
  depth = 1,
  top?: number,
): string | undefined {
  if (depth > maxDepth) return `its references lead more than ${maxDepth} deep, or in a circle`;
  const add = (piece: string, at: number) =>
    into.push({ text: piece, from: top ?? at, literal: top === undefined });
  for (let at = 0; at < text.length;) {
    const percent = text.indexOf('%', at);
    if (percent === -1) {
      add(text.slice(at), at);
      break;
    }
    add(text.slice(at, percent), at);
    if (text[percent + 1] === '%') {
      add('%', percent);
      at = percent + 2;
      continue;
    }
    const reference = /^%\(([^)]+)\)s/.exec(text.slice(percent));
    const [whole, name] = reference ?? [];
    if (whole === undefined || name === undefined) {
      const here = JSON.stringify(text.slice(percent, percent + 20));
      return `${here} is no reference such as "%(name)s"; a percent sign is written "%%"`;
    }
    const value = values(name);
    if (value === undefined) return `"${whole}" refers to a key that neither its section nor [DEFAULT] has`;
    at = percent + whole.length;
    // Only a value that may hold a reference counts as a step deeper, as in Python.
    if (!value.includes('%')) {
      into.push({ text: value, from: top ?? percent, literal: false });
      continue;
    }
    const wrong = expand(value, values, into, depth + 1, top ?? percent);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function toLines(pieces: readonly Piece[], text: string, written: readonly ConfigLine[]): ConfigLine[] {
  const lineAt = (offset: number, further: number) => {
    const row = text.slice(0, offset).split('\n').length - 1 + further;
    return written[row]?.line ?? 0;
  };
  const result: { text: string; line: number | undefined }[] = [{ text: '', line: undefined }];
  for (const { text: piece, from, literal } of pieces) {
    for (const [row, part] of piece.split('\n').entries()) {
      const line = lineAt(from, literal ? row : 0);
      if (row > 0) result.push({ text: '', line: undefined });
      const last = result.at(-1);
      if (last === undefined) continue;
      last.text += part;
      if (part !== '') last.line ??= line;
    }
  }
  return result.map(({ text: part, line }) => ({ text: part, line: line ?? written[0]?.line ?? 0 }));
}

function joined(lines: readonly ConfigLine[]): string {
  return lines.map(({ text }) => text).join('\n');
}
