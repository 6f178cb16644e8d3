import { HTCondorError } from './errors.ts';

/** One job per row; each variable is `$(name)` in the submit text. */
export interface ItemRows {
  readonly variables: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/**
 * What stands for characters that would end a value, or a row, or begin a macro. A space has no other way: values of macros
 * are trimmed, so it is cut out of the middle of one. `DOLLAR` is HTCondor's own, and is not expanded again.
 */
const macros = ['thresher_comma = ,', 'thresher_pair = a b', 'thresher_space = $SUBSTR(thresher_pair,1,1)'];
const inert: Readonly<Record<string, string>> = {
  $: '$(DOLLAR)',
  ',': '$(thresher_comma)',
  ' ': '$(thresher_space)',
};

/**
 * The `queue` statement of rows in which every value is inert: `$(HOME)`, commas and spaces arrive as they are. What quotes
 * mean is for the text around `$(name)`: inside of `arguments = "..."` they must be doubled by whoever writes it.
 * @throws HTCondorError `condor-submit-wrong` for what no row can hold.
 */
export function queueStatement({ variables, rows }: ItemRows): string {
  for (const name of variables) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw wrong(`"${name}" is no name of a variable`);
  }
  // The first column keeps a row from being a comment or the closing brace, the last one a backslash from joining two.
  const names = ['thresher_row', ...variables, 'thresher_end'];
  const lines = rows.map((row, at) => {
    if (row.length !== variables.length) {
      throw wrong(`row ${at + 1} has ${row.length} values for ${variables.length} variables`);
    }
    const values = row.map((value, column) => inertValue(value, at + 1, variables[column] ?? ''));
    return [`${at}`, ...values, 'end'].join(',');
  });
  return [...macros, `queue ${names.join(',')} from (`, ...lines, ')', ''].join('\n');
}

function inertValue(value: string, row: number, variable: string): string {
  const control = /[\u0000-\u001f\u007f\u0085\u2028\u2029]/.exec(value);
  if (control !== null) {
    const code = control[0].charCodeAt(0).toString(16).padStart(4, '0');
    throw wrong(`row ${row}, variable ${variable}: the value has a control character (U+${code})`);
  }
  if (/\$\$+(\(|\[|\w+\()/.test(value)) {
    throw wrong(
      `row ${row}, variable ${variable}: the value has $$, which HTCondor replaces when it matches a job`,
    );
  }
  if (value === '') return '$(thresher_none)';
  // A lone dollar only: two macros of it side by side would be a $$ of their own.
  return value.replaceAll(/(?<!\$)\$(?!\$)|[, ]/g, (character) => inert[character] ?? '');
}

function wrong(what: string): HTCondorError {
  return new HTCondorError({
    code: 'condor-submit-wrong',
    message: `${what}; nothing was submitted`,
    maybeDone: false,
  });
}
