import type { ConfigLine } from '../../../util/config-interpolation.ts';
import { parseJson, type Problem, toPointer } from '../../../util/located.ts';
import { withoutSecrets } from '../../../util/secrets.ts';
import { type Machine, variable } from '../machine.ts';

/** A value as Harvester would have it, or what is wrong with it. */
export interface TypedValue {
  /** Undefined: it has no value, and `mistakes` says why. `null` is Python's None. */
  readonly value: unknown;
  readonly mistakes: readonly ValueMistake[];
  /** Line of an item of a list or object; of the value itself for "". */
  lineOf(pointer: string): number;
}

export type ValueMistake = Pick<Problem, 'severity' | 'code' | 'line' | 'message'>;

// Greedy as Harvester's own: `$A/b` names the variable "A/b", and what follows a closing brace is dropped.
const reference = /\$\{*([^}]+)\}*/;
// Outside the first and the last bracket stands only \W of Python, which knows all letters.
const json = /^(?:[^\p{L}\p{N}_[]*\[.*\][^\p{L}\p{N}_\]]*|[^\p{L}\p{N}_{]*\{.*\}[^\p{L}\p{N}_}]*)$/su;

/**
 * Gives a value its type by Harvester's rules: a value that begins with `$` is replaced as a whole by a variable of the
 * environment; True, False, None and digits are what they say; several lines are JSON where they look like it (and each string
 * in it that holds a `$` is replaced as a whole), else a list of lines. Everything else is text, also 0.5.
 * Source: Harvester 0.7.5, harvesterconfig.
 */
export function typedValue(name: string, written: readonly ConfigLine[], machine: Machine): TypedValue {
  const mistakes: ValueMistake[] = [];
  const line = written[0]?.line ?? 0;
  let lines = written;
  let text = joined(lines);
  if (text.startsWith('$')) {
    const replaced = replace(name, text, machine, line, mistakes);
    if (replaced === undefined) return { value: undefined, mistakes, lineOf: () => line };
    text = replaced;
    lines = text.split('\n').map((part) => ({ text: part, line }));
  }
  if (!text.includes('\n')) return { value: simple(text), mistakes, lineOf: () => line };
  if (json.test(text.replaceAll('\n', ''))) return typedJson(name, lines, machine, mistakes);
  const items = lines.map((item) => ({ ...item, text: item.text.trim() })).filter((item) => item.text !== '');
  const lineOf = (pointer: string) => items[Number(pointer.slice(1))]?.line ?? line;
  return {
    value: items.map((item) => item.text),
    mistakes,
    lineOf: (pointer) => (pointer === '' ? line : lineOf(pointer)),
  };
}

function simple(text: string): unknown {
  if (text === 'True') return true;
  if (text === 'False') return false;
  if (text === 'None') return null;
  if (!/^\d+$/.test(text)) return text;
  const number = Number(text);
  // Python's integers have no end; a name of many digits must not be rounded.
  return Number.isSafeInteger(number) ? number : text;
}

function typedJson(
  name: string,
  lines: readonly ConfigLine[],
  machine: Machine,
  mistakes: ValueMistake[],
): TypedValue {
  const first = lines[0]?.line ?? 0;
  const located = parseJson(joined(lines), name);
  const inFile = (line: number) => lines[line - 1]?.line ?? first;
  for (const { severity, code, line, message } of located.problems) {
    mistakes.push({ severity, code, line: inFile(line), message: `${name}: ${message}` });
  }
  const lineOf = (pointer: string) => (pointer === '' ? first : inFile(located.lineOf(pointer)));
  const visit = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (typeof value === 'string') {
      return replace(`a string in ${name}`, value, machine, lineOf(toPointer(path)), mistakes);
    }
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item, [...path, key])]));
  };
  const value = visit(located.value, []);
  const broken = mistakes.some(({ severity }) => severity === 'error');
  return { value: broken ? undefined : value, mistakes, lineOf };
}

/** The variable that a text names, or the text itself where it names none. @returns undefined where it is not set. */
function replace(
  name: string,
  text: string,
  machine: Machine,
  line: number,
  mistakes: ValueMistake[],
): string | undefined {
  const match = reference.exec(text);
  const [whole = '', asked = ''] = match ?? [];
  if (match === null) return text;
  const is = `${name} is ${JSON.stringify(withoutSecrets(name, text))}`;
  const value = variable(asked, machine);
  if (value === undefined) {
    const remedy = /^\w+$/.test(asked)
      ? 'set it for the daemon, or write the value itself'
      : 'a variable stands for the whole value, so write the value itself';
    const message = `${is}, and the environment has no variable ${JSON.stringify(asked)}; ${remedy}`;
    mistakes.push({ severity: 'error', code: 'environment-missing', line, message });
    return undefined;
  }
  if (whole !== text) {
    const dropped = JSON.stringify(text.replace(whole, ''));
    const message = `${is}: the variable ${asked} replaces all of it, ${dropped} too, as in Harvester; write the value itself`;
    mistakes.push({ severity: 'warning', code: 'environment-replaces-all', line, message });
  }
  return value;
}

function joined(lines: readonly ConfigLine[]): string {
  return lines.map(({ text }) => text).join('\n');
}
