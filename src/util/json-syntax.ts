import { getLocation, type ParseError, printParseErrorCode } from 'jsonc-parser';
import { toPointer } from './pointer.ts';

/** The first mistake of a text that should be JSON, and its position. */
export interface SyntaxMistake {
  /** Position of the wrong character. */
  readonly offset: number;
  readonly pointer: string;
  readonly message: string;
}

/** Says the parser's first error in the words of an author of JSON. */
export function jsonMistake(text: string, error: ParseError | undefined): SyntaxMistake {
  if (text.trim() === '') return { offset: 0, pointer: '', message: 'the file is empty' };
  const offset = error?.offset ?? 0;
  const found = text.slice(offset, offset + (error?.length ?? 0));
  const kind = error === undefined ? 'ValueExpected' : printParseErrorCode(error.error);
  const pointer = toPointer(getLocation(text, offset).path.filter((part) => part !== ''));
  const comma = text.slice(0, offset).trimEnd().length - 1;
  const isTrailing =
    /^(PropertyName|Value)Expected$/.test(kind) && text[comma] === ',' && /^[}\]]/.test(found);
  if (isTrailing) return { offset: comma, pointer, message: `there is a comma too many before the ${found}` };
  if (offset >= text.trimEnd().length)
    return { offset, pointer, message: `the file ends too early: ${spellOut(kind)}` };
  const message =
    kind === 'InvalidSymbol' ? symbolMistake(text, offset, found) : (usual[kind] ?? spellOut(kind));
  return { offset, pointer, message };
}

const usual: Readonly<Record<string, string>> = {
  InvalidCommentToken: 'a comment, which JSON does not have',
  InvalidCharacter: 'a tab or another control character inside a string; write \\t or its like',
};

/** Python's words, which its programs print, and what JSON has for them. */
const ofPython: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };

function symbolMistake(text: string, offset: number, found: string): string {
  if (text.startsWith('\uFEFF', offset)) return 'a byte order mark (BOM); save the file as UTF-8 without one';
  if (/^['‘’“”`]/.test(found)) return `${found} does not stand in double quotes, the only ones that JSON has`;
  const number = /^[+-]?(NaN|Infinity)\b/.exec(text.slice(offset))?.[0];
  if (number !== undefined) return `${number} is no number of JSON`;
  const meant = Object.hasOwn(ofPython, found) ? ofPython[found] : undefined;
  return meant === undefined
    ? `${found} is no value; a text needs double quotes`
    : `${found}; write ${meant}`;
}

/** "PropertyNameExpected" to "property name expected". */
function spellOut(kind: string): string {
  return kind.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}
