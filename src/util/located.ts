import { type Node, parseTree, type ParseError } from 'jsonc-parser';
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type ScalarTag } from 'yaml';
import type { ErrorCode } from '../codes/codes.ts';
import { messageOf } from '../worker/errors.ts';
import { hasMoreValues, isDeeper } from './json.ts';
import { jsonMistake } from './json-syntax.ts';
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

/** JSON as strictly as Python's `json.load`; of a duplicate key the last one counts, with a warning where they differ. */
export function parseJson(text: string, file: string): Located {
  if (hasMoreValues(text, mostValues))
    return broken(file, 1, 'syntax', `the file has too many values (over ${mostValues})`);
  const starts = lineStarts(text);
  const line = (offset: number) => lineAt(starts, offset);
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false });
  if (errors.length > 0 || root === undefined) {
    const { offset, pointer, message } = jsonMistake(text, errors[0]);
    return broken(file, line(offset), 'syntax', `not valid JSON: ${message}`, pointer);
  }
  const problems: Problem[] = [];
  const lines = new Map<string, number>();
  /** `counts`: it is a part of the value, and not of one that a later key of the same name replaces. */
  const visit = (node: Node, path: readonly (string | number)[], at: number, counts: boolean): unknown => {
    // A value has the line of its key, where an operator looks.
    if (counts) lines.set(toPointer(path), line(at));
    if (path.length > deepest) throw new RangeError(endless);
    const children = node.children ?? [];
    if (node.type === 'array')
      return children.map((child, index) => visit(child, [...path, index], child.offset, counts));
    if (node.type !== 'object') return node.value as unknown;
    const seen = new Map<string, { readonly at: number; readonly value: unknown }>();
    const lasts = new Map(children.map((property) => [nameOf(property), property]));
    for (const property of children) {
      const [keyNode, valueNode] = property.children ?? [];
      if (keyNode === undefined || valueNode === undefined) continue;
      const key = String(keyNode.value);
      const place = [...path, key];
      const before = seen.get(key);
      const value = visit(valueNode, place, keyNode.offset, counts && lasts.get(key) === property);
      if (before !== undefined) {
        const same = JSON.stringify(before.value) === JSON.stringify(value);
        const first = `first on line ${line(before.at)} with ${same ? 'the same value' : 'another value'}`;
        problems.push({
          file,
          pointer: toPointer(place),
          line: line(keyNode.offset),
          severity: same ? 'notice' : 'warning',
          code: 'duplicate-key',
          message: `"${key}" stands twice in this object, ${first}; the last one counts`,
        });
      }
      seen.set(key, { at: before?.at ?? keyNode.offset, value });
    }
    return Object.fromEntries([...seen].map(([key, { value }]) => [key, value]));
  };
  const value = visit(root, [], root.offset, true);
  const lineOf = (pointer: string): number => {
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const found = lines.get(at);
      if (found !== undefined) return found;
    }
    return lines.get('') ?? 1;
  };
  return { file, value, problems, lineOf };
}

/** Name of a property of an object. */
function nameOf({ children }: Node): string {
  return String(children?.[0]?.value);
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
