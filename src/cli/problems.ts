import { relative } from 'node:path';
import type { Problem } from '../util/located.ts';
import { fromPointer } from '../util/pointer.ts';
import { ThresherError } from '../worker/errors.ts';
import { oneLine } from './output.ts';

/** A problem as JSON shows it. */
export function problemView({ file, pointer, line, severity, code, message }: Problem) {
  return { file, pointer, line, severity, code, message };
}

/** `file:line pointer: severity: message [code]`, in one line whatever the file holds. */
export function problemLine(problem: Problem): string {
  return oneLine(`${place(problem)}: ${problem.severity}: ${problem.message} [${problem.code}]`);
}

/** Mistakes in files that keep a command from its work. Each has its own place and code; the error has the first one's. */
export class MistakesInFiles extends ThresherError {
  constructor(problems: readonly Problem[]) {
    super(problems[0]?.code ?? 'syntax', problems.map(problemLine).join('\n'));
  }
}

function place({ file, line, pointer }: Problem): string {
  const directory = process.cwd();
  const near = relative(directory, file);
  // Below the working directory the shorter name is the clearer one; a service works in /.
  const shown = directory !== '/' && near !== '' && !near.startsWith('..') ? near : file;
  return `${shown}${line > 0 ? `:${line}` : ''}${pointer === '' ? '' : ` ${pointer}`}`;
}

/** How several problems that differ by their subject only are said in one sentence. */
const folded: Partial<Record<Problem['code'], string>> = {
  'plugin-not-there': 'thresher does not have yet',
  'plugin-dropped': 'dropped by Harvester, with none in their place',
  'file-unreadable': 'not on this machine',
  'unread-option': 'neither thresher nor Harvester reads',
  'plugin-not-needed': 'not needed by a pull queue and ignored',
  'credmanager-not-applied': 'credential managers that thresher does not run',
};

/**
 * The problems of one queue as lines. Several of a kind from the same entry of the file become one, at the place of the
 * first: sixty queues would otherwise bury what matters.
 */
export function foldedLines(problems: readonly Problem[]): string[] {
  const groups = new Map<string, Problem[]>();
  for (const [at, problem] of problems.entries()) {
    const { code, severity, file, pointer, subject } = problem;
    const [entry = ''] = fromPointer(pointer);
    // A warning has more to say than its subject.
    const known = folded[code] !== undefined || code === 'unread-setting';
    const alone = subject === undefined || !known || severity === 'warning';
    const key = JSON.stringify(alone ? [at] : [code, severity, file, code === 'unread-setting' ? '' : entry]);
    groups.set(key, [...(groups.get(key) ?? []), problem]);
  }
  return [...groups.values()].sort(bySeverity).map((group) => {
    const [first] = group;
    if (first === undefined) return '';
    if (group.length === 1) return problemLine(first);
    if (first.code === 'unread-setting') return unreadSettings(first, group);
    const subjects = group.map(({ subject = '', line }) => `${subject} (line ${line})`).join(', ');
    return problemLine({ ...first, message: `${folded[first.code] ?? first.message}: ${subjects}` });
  });
}

/** An existing panda_harvester.cfg has dozens of them, which say the same of the file as a whole. */
function unreadSettings(first: Problem, group: readonly Problem[]): string {
  const subjects = group.map(({ subject = '' }) => subject);
  const sections = subjects.filter((subject) => subject.startsWith('[')).length;
  const counts = [counted(sections, 'section'), counted(subjects.length - sections, 'key')];
  const what = counts.filter((count) => !count.startsWith('0 ')).join(' and ');
  const message = `thresher does not read ${what}, which have no effect: ${subjects.join(', ')}`;
  return problemLine({ ...first, pointer: '', line: 0, message });
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Errors first; otherwise the order stays. */
export function worstFirst(problems: readonly Problem[]): Problem[] {
  return problems
    .map((problem) => [problem])
    .sort(bySeverity)
    .flat();
}

const order = ['error', 'warning', 'notice'];

function bySeverity([a]: readonly Problem[], [b]: readonly Problem[]): number {
  return order.indexOf(a?.severity ?? '') - order.indexOf(b?.severity ?? '');
}

/**
 * "3 errors, 1 warning, 55 notices". A problem that several queues have from one template counts once: one fix removes
 * it.
 */
export function countProblems(problems: readonly Problem[]): string {
  return (['error', 'warning', 'notice'] as const)
    .map((severity) => {
      const places = new Set(
        problems
          .filter((problem) => problem.severity === severity)
          .map(({ file, pointer, code, message }) => JSON.stringify([file, pointer, code, message])),
      );
      return counted(places.size, severity);
    })
    .join(', ');
}
