import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const checkout = resolve(import.meta.dirname, '../..');

/** A test that failed by chance once: a debt, paid by the commit that repairs it and removes the entry. */
export interface LedgerEntry {
  readonly file: string;
  /** Its title with those of its groups. */
  readonly title: string;
  /** All 40 digits of the commit that it failed on. */
  readonly commit: string;
  /** Why it fails by chance. */
  readonly mechanism: string;
  /** The number of runs in which it failed by chance. */
  readonly times: number;
}

/** Bounds of the ledger: beyond them its debts are paid before anything else lands. */
const bounds = { entries: 5, commits: 100 };
/** A file that failed by chance so often is not repeated any more. */
const mostTimes = 2;

export function readLedger(root = checkout): readonly LedgerEntry[] {
  return JSON.parse(readFileSync(join(root, 'test/support/flaky.json'), 'utf8')) as LedgerEntry[];
}

export function isSpent(file: string, ledger: readonly LedgerEntry[]): boolean {
  const times = ledger.filter((entry) => entry.file === file).map((entry) => entry.times);
  return times.reduce((sum, one) => sum + one, 0) >= mostTimes;
}

export interface LedgerFacts {
  /** Titles of the tests of a file; empty where it is gone. */
  readonly titlesOf: (file: string) => readonly string[];
  /** Number of commits since then; undefined where the clone does not have that commit. */
  readonly ageOf: (commit: string) => number | undefined;
}

/** A title that mocha gives to a hook, and to a file that cannot run. */
const noTest = /"(before|after) (all|each)" hook\b|^Uncaught error outside test suite$/;

/** Finds what the ledger may not have. */
export function faultsOf(
  ledger: readonly LedgerEntry[],
  { titlesOf, ageOf }: LedgerFacts,
): readonly string[] {
  const faults = ledger.flatMap(({ file, title, commit, mechanism, times }) => {
    const place = `${file}: ${title}`;
    const age = ageOf(commit);
    const titles = titlesOf(file);
    return [
      ...(mechanism.trim() === '' ? [`${place}: has no mechanism`] : []),
      ...(/^[0-9a-f]{40}$/.test(commit) ? [] : [`${place}: its commit is no 40 digits`]),
      ...(Number.isSafeInteger(times) && times > 0 ? [] : [`${place}: times is no number from 1 on`]),
      ...(titles.includes(title) || (titles.length > 0 && noTest.test(title))
        ? []
        : [`${place}: there is no such test any more`]),
      ...(age !== undefined && age > bounds.commits
        ? [`${place}: is ${age} commits old, and ${bounds.commits} may be: repair the test`]
        : []),
    ];
  });
  const many = `${ledger.length} entries, and ${bounds.entries} may be: repair one first`;
  return ledger.length > bounds.entries ? [many, ...faults] : faults;
}
