import { type JSONVisitor, visit } from 'jsonc-parser';
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type ScalarTag } from 'yaml';
import type { ErrorCode } from '../codes/codes.ts';
import { messageOf } from '../worker/errors.ts';
import { hasMoreValues, isDeeper } from './json.ts';
import { jsonMistake, type SyntaxMistake } from './json-syntax.ts';
import { fromPointer, toPointer } from './pointer.ts';

export { fromPointer, toPointer } from './pointer.ts';

/** One mistake in a file, with everything that an operator needs to fix it. */
export interface Problem {
  readonly file: string;
  /** JSON pointer to the place, "" for the whole file. */
  readonly pointer: string;
  /** From 1; 0 where the file could not be read. */
  readonly line: number;
  readonly severity: 'error' | 'warning' | 'notice';
  readonly code: ErrorCode;
  /** The mistake, and the correct form. */
  readonly message: string;
  /** The queue it spoils, where it spoils one; the place itself may be in a template. */
  readonly queue?: string;
  /** The option, plugin or file it is about: several alike are said in one line. */
  readonly subject?: string;
}

/** A parsed file that knows on which line each of its values stands. */
export interface Located {
  readonly file: string;
  /** Undefined when the file could not be read or parsed; `problems` says why. */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Line of the value at a JSON pointer, or of its nearest parent that exists. */
  lineOf(pointer: string): number;
  /** File of that value, where another file than `file` can bring values too. */
  fileOf?(pointer: string): string;
}

/** No honest file nests deeper, and functions that walk through a value do so by recursion. */
const deepest = 100;
export const endless = `the file is nested too deeply (over ${deepest} levels), or refers to itself`;

/** No honest file has more values: a thousand queues with hundreds of options each. Nothing else runs while they are read. */
const mostValues = 500_000;

/** Characters of a key. Those of Kubernetes' labels have up to 317. A key is a part of the pointer of each value in it. */
const longestKey = 400;

/** Keys of an object, and keys that stand twice, of which each is told: CRIC has thousands of queues. The time to read an object grows faster than its keys. */
const mostKeys = 20_000;

/** Characters of the pointers of all values, where each is made: those of honest files have less than a hundred each. */
const mostCharacters = 64 * 1024 * 1024;

/** Characters of values of equal keys that are compared by what they mean. */
const mostCompared = 32 * 1024 * 1024;

/** A file without any usable content. */
export function broken(
  file: string,
  line: number,
  code: Problem['code'],
  message: string,
  pointer = '',
): Located {
  const problem = { file, pointer, line, severity: 'error', code, message } as const;
  return { file, value: undefined, problems: [problem], lineOf: () => line };
}

/**
 * JSON as strictly as Python's `json.load`; of a duplicate key the last one counts, with a warning where they differ.
 * @param most values that the file may have
 */
export function parseJson(text: string, file: string, most = mostValues): Located {
  if (hasMoreValues(text, most))
    return broken(file, 1, 'syntax', `the file has too many values (over ${most})`);
  const starts = lineStarts(text);
  const line = (offset: number) => lineAt(starts, offset);
  try {
    const { root, problems } = placesOf(text, file, line);
    const value: unknown = JSON.parse(text);
    return { file, value, problems, lineOf: (pointer) => line(placeOf(root, pointer).at) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return broken(file, line(error.offset), 'syntax', error.message, error.pointer);
  }
}

/** Why a text is not read any further. */
class Refused extends Error {
  readonly offset: number;
  readonly pointer: string;

  constructor({ offset, pointer, message }: SyntaxMistake) {
    super(message);
    this.offset = offset;
    this.pointer = pointer;
  }
}

/** Where a value stands in a text. Nobody asks for the pointers of most, and those of all may be a thousand times the text. */
interface Place {
  /** A value has the line of its key, where an operator looks. */
  readonly at: number;
  /** Where the first of several equal keys stands. */
  readonly first: number;
  readonly from: number;
  readonly to: number;
  readonly inner: Inner | undefined;
}

type Inner = Map<string, Place> | Place[];

/** A list or an object whose end is not read yet. */
interface Open {
  readonly from: number;
  readonly inner: Inner;
  /** Characters of its pointer. */
  readonly length: number;
  key: string;
  keyAt: number;
}

/** The places of all values, and the keys that stand twice. @throws Refused */
function placesOf(
  text: string,
  file: string,
  line: (offset: number) => number,
): { readonly root: Place; readonly problems: Problem[] } {
  const problems: Problem[] = [];
  const open: Open[] = [];
  let root: Place = { at: 0, first: 0, from: 0, to: 0, inner: undefined };
  let [characters, compared] = [0, 0];
  const pointerOf = (levels: readonly Open[]) =>
    toPointer(levels.map(({ inner, key }) => (Array.isArray(inner) ? inner.length : key)));
  const lengthHere = () => {
    const into = open.at(-1);
    if (into === undefined) return 0;
    return into.length + 1 + (Array.isArray(into.inner) ? String(into.inner.length) : into.key).length;
  };
  /** Undefined: what is within many equal keys would be compared at each level once more. */
  const isSame = (one: Place, other: Place) => {
    const [a, b] = [text.slice(one.from, one.to), text.slice(other.from, other.to)];
    if (a === b) return true;
    compared += a.length + b.length;
    if (compared > mostCompared) return undefined;
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
  };
  const ended = (from: number, to: number, inner?: Inner) => {
    characters += lengthHere();
    if (characters > mostCharacters) {
      const message = `the JSON pointers of the values up to this one have over ${mostCharacters} characters together; use shorter keys, or fewer values in them`;
      throw new Refused({ offset: from, pointer: pointerOf(open), message });
    }
    const into = open.at(-1);
    if (into === undefined) root = { at: from, first: from, from, to, inner };
    else if (Array.isArray(into.inner)) into.inner.push({ at: from, first: from, from, to, inner });
    else {
      const { key, keyAt: at } = into;
      const before = into.inner.get(key);
      const place = { at, first: before?.first ?? at, from, to, inner };
      into.inner.set(key, place);
      if (before === undefined) return;
      if (problems.length === mostKeys) {
        const message = `the file has over ${mostKeys} keys that stand twice in their objects`;
        throw new Refused({ offset: at, pointer: pointerOf(open), message });
      }
      const same = isSame(before, place);
      const value = same === undefined ? '' : ` with ${same ? 'the same value' : 'another value'}`;
      problems.push({
        file,
        pointer: pointerOf(open),
        line: line(at),
        severity: same === true ? 'notice' : 'warning',
        code: 'duplicate-key',
        message: `"${key}" stands twice in this object, first on line ${line(before.first)}${value}; the last one counts`,
      });
    }
  };
  const begun = (from: number, inner: Inner) => {
    if (open.length > deepest) throw new RangeError(endless);
    open.push({ from, inner, length: lengthHere(), key: '', keyAt: from });
  };
  const closed = (at: number, length: number) => {
    const last = length === 0 ? undefined : open.pop();
    // The end of a text closes nothing.
    if (last !== undefined) ended(last.from, at + length, last.inner);
  };
  const visitor: JSONVisitor = {
    onObjectBegin: (at) => {
      begun(at, new Map());
    },
    onArrayBegin: (at) => {
      begun(at, []);
    },
    onObjectProperty: (key, at) => {
      const into = open.at(-1);
      if (into === undefined || Array.isArray(into.inner)) return;
      if (into.inner.size === mostKeys)
        throw new Refused({
          offset: at,
          pointer: pointerOf(open.slice(0, -1)),
          message: `this object has over ${mostKeys} keys`,
        });
      if (key.length > longestKey) {
        const message = `the key "${key.slice(0, 40)}..." has ${key.length} characters; a key may have ${longestKey}`;
        throw new Refused({ offset: at, pointer: pointerOf(open.slice(0, -1)), message });
      }
      into.key = key;
      into.keyAt = at;
    },
    onLiteralValue: (_, at, length) => {
      ended(at, at + length);
    },
    onObjectEnd: closed,
    onArrayEnd: closed,
    onError: (error, offset, length) => {
      const mistake = jsonMistake(text, { error, offset, length });
      throw new Refused({ ...mistake, message: `not valid JSON: ${mistake.message}` });
    },
  };
  visit(text, visitor, { disallowComments: true, allowTrailingComma: false });
  return { root, problems };
}

/** The value at a pointer, or its nearest parent that exists. */
function placeOf(root: Place, pointer: string): Place {
  let place = root;
  for (const part of fromPointer(pointer)) {
    const { inner } = place;
    const next = Array.isArray(inner) ? inner[Number(part)] : inner?.get(part);
    if (next === undefined) break;
    place = next;
  }
  return place;
}

/**
 * Scalars that YAML 1.1 reads differently than 1.2, as Kubernetes and PyYAML still do: 0400 is octal, `yes` is true,
 * `<<` merges. Without this a `defaultMode: 0400` would silently become another mode.
 */
const tagsOf11: ScalarTag[] = [
  {
    tag: 'tag:yaml.org,2002:int',
    default: true,
    test: /^[-+]?0[0-7]+$/,
    resolve: (digits) => parseInt(digits, 8),
  },
  {
    tag: 'tag:yaml.org,2002:bool',
    default: true,
    test: /^(?:[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$/,
    resolve: (word) => /^(?:yes|on)$/i.test(word),
  },
];

/** @param as `kubernetes`: with YAML 1.1's numbers, booleans and merge keys. */
export function parseYaml(text: string, file: string, as?: 'kubernetes'): Located {
  const counter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    ...(as === 'kubernetes' && { merge: true, customTags: (tags) => [...tagsOf11, ...tags] }),
  });
  const line = (offset: number) => Math.max(1, counter.linePos(offset).line);
  if (document.errors.some(({ message }) => message.includes('call stack')))
    return broken(file, 1, 'syntax', endless);
  const problems = document.errors.map((error): Problem => {
    const message = `not valid YAML: ${error.message}`;
    return { file, pointer: '', line: line(error.pos[0]), severity: 'error', code: 'syntax', message };
  });
  const lineOf = (pointer: string): number => {
    let node: unknown = document.contents;
    let offset = isMap(node) || isSeq(node) || isScalar(node) ? (node.range?.[0] ?? 0) : 0;
    for (const part of fromPointer(pointer)) {
      if (isMap(node)) {
        const pair = node.items.find(
          (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === part,
        );
        if (pair === undefined) break;
        if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset;
        node = pair.value;
      } else if (isSeq(node)) {
        node = node.items[Number(part)];
        if (isMap(node) || isSeq(node) || isScalar(node)) offset = node.range?.[0] ?? offset;
      } else break;
    }
    return line(offset);
  };
  // An empty file is an empty map: every setting has a default.
  if (problems.length > 0) return { file, value: undefined, problems, lineOf };
  try {
    const value: unknown = document.toJS() ?? {};
    // A value that is a part of itself has no end.
    if (isDeeper(value, deepest)) return broken(file, 1, 'syntax', endless);
    return { file, value, problems, lineOf };
  } catch (error) {
    // An alias of nothing, or more of them than any honest file has.
    return broken(file, 1, 'syntax', `not valid YAML: ${messageOf(error)}`);
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function lineAt(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}
