import type { Worker } from '../../../worker/worker.ts';

/** A command whose value differs between workers. */
export interface Column {
  readonly key: string;
  /** One value for the worker in each row, as a submit description has it. */
  readonly texts: readonly string[];
}

export interface Rows {
  /** The commands. */
  readonly lines: readonly string[];
  /** Macros that they need, and the `queue` statement. */
  readonly queue: readonly string[];
}

/**
 * HTCondor divides a row at commas and blanks, and has no quotes for them. So these stand for them; a blank can only be
 * cut out of the middle of a value, because values are trimmed.
 */
const pieces = {
  comma: ['thresherComma = ,'],
  blank: ['thresherPair = a b', 'thresherBlank = $SUBSTR(thresherPair,1,1)'],
} as const;

/**
 * The commands that differ, and one row for each worker. A value is in the row, unless it uses macros of HTCondor in
 * which commas and blanks have a meaning: then it becomes a macro of its own, named with the worker's id. Macros for
 * everything would take `condor_submit` four times as long: it looks each up among all of them.
 * @param identities the last column: the rest of a row is not divided any more
 */
export function rowsOf(
  workers: readonly Worker[],
  columns: readonly Column[],
  identities: readonly string[],
): Rows {
  const lines: string[] = [];
  const macros: string[] = [];
  const names: string[] = [];
  const rows = workers.map(({ workerId }) => [String(workerId)]);
  for (const [index, { key, texts }] of columns.entries()) {
    if (texts.some(usesMacros)) {
      const macro = `thresherV${index}W`;
      for (const [row, { workerId }] of workers.entries())
        macros.push(`${macro}${workerId} = ${texts[row] ?? ''}`);
      lines.push(`${key} = $(${macro}$(thresherWorker))`);
      continue;
    }
    const name = `thresherV${index}`;
    names.push(name);
    for (const [row, fields] of rows.entries()) fields.push(fieldOf(texts[row] ?? ''));
    lines.push(`${key} = $(${name})`);
  }
  const written = rows.map((fields, row) => [...fields, identities[row] ?? ''].join(','));
  const used = (macro: string) => written.some((row) => row.includes(`$(${macro})`));
  return {
    lines,
    queue: [
      ...(used('thresherComma') ? pieces.comma : []),
      ...(used('thresherBlank') ? pieces.blank : []),
      ...macros,
      `queue ${['thresherWorker', ...names, 'thresherIdentity'].join(',')} from (`,
      ...written,
      ')',
      '',
    ],
  };
}

/** Whether commas or blanks may stand inside of a macro: `$(Cluster)` and `$ENV(HOME)` have none. */
function usesMacros(text: string): boolean {
  return text.replaceAll(/\$[A-Za-z]*\([\w.]*\)/g, '').includes('$');
}

/** Nothing would be no field at all; a macro that does not exist is nothing. */
function fieldOf(text: string): string {
  if (text === '') return '$(thresherNothing)';
  return text.replaceAll(',', '$(thresherComma)').replaceAll(/\s/g, '$(thresherBlank)');
}
