import type { Owners } from '../../src/plugins/htcondor/owners.ts';

/** A schedd of a unit test has the jobs of one user. */
export const anyOwner: Pick<Owners, 'know' | 'expect' | 'isOurs' | 'constraint'> = {
  know: async () => undefined,
  expect: () => undefined,
  isOurs: () => true,
  constraint: () => 'true',
};

/** A `queue` statement with a job for each row; each variable is `$(name)` in the text before it. Values are without commas, and only the last may have blanks. */
export function queueRows(variables: readonly string[], rows: readonly (readonly string[])[]): string {
  return [`queue ${variables.join(',')} from (`, ...rows.map((row) => row.join(',')), ')', ''].join('\n');
}
