import { parseFormat } from './pieces.ts';
import { type Statement, textCommand } from './statements.ts';

/** A mistake in a template. */
export interface Finding {
  readonly line: number;
  readonly code: 'template-wrong' | 'template-risky' | 'unknown-placeholder' | 'syntax' | 'variable-passed';
  readonly message: string;
}

export interface Parsed {
  readonly statements: readonly Statement[];
  readonly findings: readonly Finding[];
}

/** Keys may be macros of the author's own as well; "+" and "My." mark attributes. */
const assignment = /^\s*([+A-Za-z_][\w.]*)\s*=(.*)$/s;
const branch = /^\s*(if|elif|else|endif)\b/i;

/**
 * Harvester's `.sdf`: submit text with Python's `{placeholders}`. Lines that begin with `#` are left out before
 * anything is replaced, as Harvester does, so braces in them do not count.
 */
export function parseSdf(source: string): Parsed {
  const statements: Statement[] = [];
  const findings: Finding[] = [];
  let queued: number | undefined;
  for (const { text, line } of logicalLines(source)) {
    const wrong = (message: string) => findings.push({ line, code: 'template-wrong', message });
    if (text.trim() === '' || text.trimStart().startsWith('#')) continue;
    const queue = /^\s*queue\b(.*)$/is.exec(text);
    if (queue !== null && !/^\s*=/.test(queue[1] ?? '')) {
      const count = (queue[1] ?? '').trim();
      if (count !== '' && count !== '1') {
        wrong(`"queue ${count}" would make other jobs than one for each worker: write "queue 1"`);
      } else if (queued !== undefined) {
        wrong(
          `there is a queue already on line ${queued}; a template makes one job: keep one "queue 1", at the end`,
        );
      }
      queued ??= line;
      continue;
    }
    if (queued !== undefined) {
      wrong(`this stands behind the queue of line ${queued} and would count for no job: move it before`);
      continue;
    }
    if (/^\s*\{customSubmitAttributes\}\s*$/.test(text)) {
      statements.push({ kind: 'custom-attributes', line });
      continue;
    }
    if (branch.test(text)) {
      statements.push({ kind: 'verbatim', text: text.trim(), line });
      continue;
    }
    const match = assignment.exec(text);
    if (match === null) {
      wrong(`"${text.trim().slice(0, 60)}" is no command: write KEY = VALUE`);
      continue;
    }
    const [, key = '', value = ''] = match;
    const parsed = parseFormat(value.trim());
    if (!parsed.ok) {
      findings.push({ line, ...parsed.problem });
      continue;
    }
    statements.push(textCommand(key, parsed.pieces, line));
  }
  return { statements, findings };
}

/** Lines without comments, those that end in a backslash joined with the next. */
function logicalLines(source: string): { text: string; line: number }[] {
  const joined: { text: string; line: number }[] = [];
  let open: { text: string; line: number } | undefined;
  for (const [index, raw] of source.split(/\r?\n/).entries()) {
    if (raw.startsWith('#')) continue;
    const goesOn = raw.endsWith('\\');
    const text = goesOn ? raw.slice(0, -1) : raw;
    if (open === undefined) open = { text, line: index + 1 };
    // HTCondor drops the blanks that begin the next line.
    else open.text += text.trimStart();
    if (goesOn) continue;
    joined.push(open);
    open = undefined;
  }
  if (open !== undefined) joined.push(open);
  return joined;
}
