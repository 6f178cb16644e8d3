/** Licences whose packages may go with ours, which is Apache-2.0, by SPDX id: permissive ones. Source: spdx.org/licenses */
const fitting: readonly string[] = [
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  // Of a port of Python's argparse: Python's own licence without its history.
  'PSF-2.0',
  // No conditions at all.
  'Unlicense',
];

export interface LockFile {
  readonly packages: Readonly<Record<string, { readonly license?: string }>>;
}

/** Whether an SPDX expression can be fulfilled: one of alternatives is enough, all of a combination are needed. */
function fits(expression: string): boolean {
  const alternatives = expression.replace(/[()]/g, ' ').split(/\sOR\s/);
  // What is nested deeper is looked at by people.
  if (alternatives.length > 1 && /\sAND\s/.test(expression)) return false;
  const fit = (id: string) => fitting.includes(id.trim());
  return alternatives.length > 1 ? alternatives.some(fit) : expression.split(/\sAND\s/).every(fit);
}

/** The packages of a lock file, for production or development, whose licence does not go with ours or is not told. */
export function unfitLicences({ packages }: LockFile): string[] {
  return Object.entries(packages)
    .filter(([, { license }]) => license === undefined || !fits(license))
    .map(([path, { license }]) => `${path || 'thresher'}: ${license ?? 'none'}`);
}
