import { tierNames, tierOf } from './tiers.ts';

/** A test or a hook that ran. */
export interface Timed {
  readonly file: string;
  readonly title: string;
  readonly ms: number;
}

const shownFiles = 25;
const shownTests = 25;

const seconds = (ms: number): string => (ms / 1000).toFixed(1).padStart(8);

const sum = (some: readonly Timed[]): number => some.reduce((total, { ms }) => total + ms, 0);

/** The files with the time of their tests and hooks, ms, the longest first. */
export function byFile(timed: readonly Timed[]): [file: string, ms: number][] {
  const files = [...Map.groupBy(timed, ({ file }) => file)];
  return files
    .map(([file, own]): [string, number] => [file, sum(own)])
    .sort(([, one], [, other]) => other - one);
}

/** Totals of each tier, and the slowest files and tests. */
export function durationsReport(timed: readonly Timed[], wallMs: number): string {
  const tiers = tierNames.map((tier) => {
    const own = timed.filter(({ file }) => tierOf(file) === tier);
    const files = new Set(own.map(({ file }) => file)).size;
    return `${seconds(sum(own))}  ${tier}: ${files} files`;
  });
  const tests = timed.toSorted((one, other) => other.ms - one.ms).slice(0, shownTests);
  return [
    `durations, s; the whole run took ${(wallMs / 1000).toFixed(1)}`,
    ...tiers,
    'the slowest files:',
    ...byFile(timed)
      .slice(0, shownFiles)
      .map(([file, ms]) => `${seconds(ms)}  ${file}`),
    'the slowest tests and hooks:',
    ...tests.map(({ ms, file, title }) => `${seconds(ms)}  ${file}: ${title}`),
    '',
  ].join('\n');
}

/** What is kept of a run for the order of the next: whole seconds of each file that took one. */
export function keptOf(timed: readonly Timed[]): Record<string, number> {
  const whole = byFile(timed).map(([file, ms]): [string, number] => [file, Math.round(ms / 1000)]);
  return Object.fromEntries(whole.filter(([, taken]) => taken > 0));
}
