import { whatIsMeant } from '../../../util/nearest.ts';
import { isPlaceholder, knownPlaceholders } from './placeholders.ts';

/** A part of a value: text of the template's author, or a placeholder. */
export type Piece = string | Placeholder;

export interface Placeholder {
  readonly name: string;
  /** Python's format: what stands behind the colon. */
  readonly width?: { readonly fill: string; readonly length: number };
}

/** A mistake in one value; the caller knows file and line. */
export interface PieceProblem {
  readonly code: 'template-wrong' | 'unknown-placeholder';
  readonly message: string;
}

export type Pieces =
  | { readonly ok: true; readonly pieces: readonly Piece[] }
  | { readonly ok: false; readonly problem: PieceProblem };

/**
 * `{name}`, `{name!s}`, `{name:05d}`: what Python's `str.format` takes and a submit description may need. `{payload.KEY}` is
 * thresher's own.
 */
const field = /^(payload\.[\w.-]+|[A-Za-z_]\w*)(?:!s)?(?::(0?)([1-9]\d*)?([ds])?)?$/;

/** One line of Harvester's `.sdf`, as Python's `str.format` reads it: `{{` and `}}` are braces. */
export function parseFormat(text: string): Pieces {
  const pieces: Piece[] = [];
  let literal = '';
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] ?? '';
    if ((letter === '{' || letter === '}') && text[at + 1] === letter) {
      literal += letter;
      at++;
      continue;
    }
    if (letter === '}')
      return wrong(`a "}" at column ${at + 1} closes nothing; a brace itself is written "}}"`);
    if (letter !== '{') {
      literal += letter;
      continue;
    }
    const end = text.indexOf('}', at);
    if (end === -1)
      return wrong(`the "{" at column ${at + 1} is never closed; a brace itself is written "{{"`);
    const inside = text.slice(at + 1, end);
    const match = field.exec(inside);
    if (match === null) {
      return wrong(
        `"{${inside}}" is no placeholder that can be filled in: write {name}, or {name:05d} with a width; braces themselves are written "{{" and "}}"`,
      );
    }
    const [, name = '', zero = '', length] = match;
    if (!isPlaceholder(name)) return unknown(`{${name}}`, name);
    if (literal !== '') pieces.push(literal);
    literal = '';
    const width = length === undefined ? undefined : { fill: zero || ' ', length: Number(length) };
    pieces.push({ name, ...(width && { width }) });
    at = end;
  }
  if (literal !== '') pieces.push(literal);
  return { ok: true, pieces };
}

/** A value of a YAML template: `${name}`; `$${` stands for `${`. */
export function parseDollars(text: string): Pieces {
  const pieces: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(/\$?\$\{([^}]*)\}?/g)) {
    const [whole, name = ''] = match;
    pieces.push(text.slice(at, match.index));
    at = match.index + whole.length;
    if (whole.startsWith('$$')) pieces.push(whole.slice(1));
    else if (!whole.endsWith('}')) return wrong(`"${whole}" is never closed; "$\${" stands for "\${"`);
    else if (isPlaceholder(name)) pieces.push({ name });
    else return unknown(`\${${name}}`, name);
  }
  pieces.push(text.slice(at));
  return { ok: true, pieces: pieces.filter((piece) => piece !== '') };
}

function wrong(message: string): Pieces {
  return { ok: false, problem: { code: 'template-wrong', message } };
}

function unknown(written: string, name: string): Pieces {
  const message = `"${written}" is not a placeholder; ${whatIsMeant(name, knownPlaceholders)}`;
  return { ok: false, problem: { code: 'unknown-placeholder', message } };
}
