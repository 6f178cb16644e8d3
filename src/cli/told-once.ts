import type { QueueVerdict } from '../config/queues/queues.ts';
import { fromPointer, type Problem } from '../util/located.ts';

/** Findings, by their owner. */
export interface Found {
  /** Problems of the settings, of the queue file as a whole, and of templates. */
  readonly general: readonly Problem[];
  readonly verdicts: readonly QueueVerdict[];
}

/** Options that do nothing: several queues have the same ones. */
const ofOptions: ReadonlySet<Problem['code']> = new Set(['option-without-effect', 'unread-option']);

/**
 * Reports a notice on a template once for its line, and not with every queue that uses the template. `judged` are the
 * templates as queues of their own: this also reports options that every queue overrides.
 */
export function templatesToldOnce({ general, verdicts }: Found, judged: readonly QueueVerdict[]): Found {
  const templates = new Set(judged.map(({ name }) => name));
  const inTemplate = ({ pointer }: Problem) => templates.has(fromPointer(pointer)[0] ?? '');
  const isNotice = (problem: Problem) => problem.severity === 'notice' && inTemplate(problem);
  const ofQueues = verdicts.flatMap(({ problems }) => problems);
  const told = new Set([...general, ...ofQueues.filter((problem) => !isNotice(problem))].map(keyOf));
  const ofTemplates = judged.flatMap(({ problems }) => problems).filter(({ code }) => ofOptions.has(code));
  const once: Problem[] = [];
  for (const { queue, ...problem } of [...ofTemplates, ...ofQueues.filter(isNotice)]) {
    if (queue === undefined || told.has(keyOf(problem))) continue;
    told.add(keyOf(problem));
    once.push(problem);
  }
  return {
    general: [...general, ...once],
    verdicts: verdicts.map((verdict) => ({
      ...verdict,
      problems: verdict.problems.filter((problem) => !isNotice(problem)),
    })),
  };
}

/** Equal findings at so many places at most stay with their queues. */
const mostPlaces = 3;

/**
 * Takes options that do nothing, and warnings and notices that are equal at many places of a file, out of what was found, and says each of them
 * in one line for its file.
 */
export function equalToldOnce({ general, verdicts }: Found): {
  readonly rest: Found;
  readonly once: readonly Problem[];
} {
  const groups = new Map<string, Problem[]>();
  for (const problem of [...general, ...verdicts.flatMap(({ problems }) => problems)]) {
    const key = wordsOf(problem);
    groups.set(key, [...(groups.get(key) ?? []), problem]);
  }
  const isTold = (group: readonly Problem[]) =>
    group.some(({ code }) => ofOptions.has(code)) ||
    (group.every(({ severity }) => severity !== 'error') && placesOf(group) > mostPlaces);
  const told = new Set([...groups].filter(([, group]) => isTold(group)).map(([key]) => key));
  const without = (problems: readonly Problem[]) => problems.filter((problem) => !told.has(wordsOf(problem)));
  return {
    rest: {
      general: without(general),
      verdicts: verdicts.map((verdict) => ({ ...verdict, problems: without(verdict.problems) })),
    },
    once: [...told].flatMap((key) => inOneLine(groups.get(key) ?? [])),
  };
}

/** The same words of one file. */
function wordsOf({ file, severity, code, message }: Problem): string {
  return JSON.stringify([file, severity, code, message]);
}

/** Several queues may have one from the same line of a template. */
function placesOf(group: readonly Problem[]): number {
  return new Set(group.map(({ pointer }) => pointer)).size;
}

const mostLines = 5;

function inOneLine(group: readonly Problem[]): Problem[] {
  const [first, ...others] = [...group].sort((one, other) => one.line - other.line);
  if (first === undefined) return [];
  const lines = [...new Set(others.map(({ line }) => line))].filter((line) => line !== first.line);
  if (lines.length === 0) return [first];
  const more = lines.length > mostLines ? ` and ${lines.length - mostLines} more` : '';
  const also = `also on line${lines.length === 1 ? '' : 's'} ${lines.slice(0, mostLines).join(', ')}${more}`;
  return [{ ...first, message: `${first.message}; ${also}` }];
}

/** The same words on the same place. */
function keyOf({ file, pointer, code, message }: Problem): string {
  return JSON.stringify([file, pointer, code, message]);
}
