import { toPointer } from '../../util/pointer.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { HTCondorSubmitterConfig } from './schema.ts';

/** Whether a text would end its line in a submit description: what follows would be read as a command. */
export function hasNewLine(text: string): boolean {
  return /[\u0000-\u001f\u007f]/.test(text);
}

/** Options that are not one line, and the name of the queue. A submit description is made of lines. */
export function checkLines(config: HTCondorSubmitterConfig, queue: string): DefinitionProblem[] {
  // An option that thresher does not read may be a comment of many lines.
  const read = Object.entries(config).filter(([key]) =>
    Object.hasOwn(HTCondorSubmitterConfig.properties, key),
  );
  const name = hasNewLine(queue) ? [problem('', `the name of the queue, ${JSON.stringify(queue)},`)] : [];
  const texts = read.flatMap(([key, value]) => textsOf(value, [key]));
  return [...name, ...texts.map(({ path, text }) => problem(toPointer(path), JSON.stringify(text)))];
}

function problem(pointer: string, what: string): DefinitionProblem {
  const message = `${what} has a new line or another control character; it must be one line of text`;
  return { pointer, code: 'wrong-type', message };
}

interface Text {
  readonly path: readonly string[];
  readonly text: string;
}

/** The texts with such a character, however deep. */
function textsOf(value: unknown, path: readonly string[]): Text[] {
  if (typeof value === 'string') return hasNewLine(value) ? [{ path, text: value }] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => textsOf(one, [...path, key]));
}
