import { isSpent, type LedgerEntry } from './ledger.ts';
import { tierOf } from './tiers.ts';

/** A test, a hook or a file that failed. */
export interface Failure {
  /** `unknown`: mocha named none. */
  readonly file: string;
  /** Its title with those of its groups. */
  readonly title: string;
  /** The title of a test alone; empty for a hook and a file. */
  readonly own: string;
  readonly message: string;
  readonly stack: string;
  /** How long it took. */
  readonly seconds: number;
  /** Share of the minute before in which a process waited for a processor, %; null: unknown. */
  readonly stalled: number | null;
}

/** One run of mocha. */
export interface MochaRun {
  readonly status: number;
  /** Undefined: mocha itself died before its end. */
  readonly tests: number | undefined;
  readonly failures: readonly Failure[];
}

/** More failed files than this are no chance: none of them is repeated. */
const mostFailed = 6;
/** More files than this that failed, and passed alone, are no chance either. */
const mostFlaky = 3;

export interface Suite {
  readonly files: readonly string[];
  readonly ledger: readonly LedgerEntry[];
  /** Whether a failed file may run once more. */
  readonly isRepeated: boolean;
}

/** Which failed files run again, and why the others do not. */
export interface Repeats {
  readonly again: readonly string[];
  /** By file; `''` stands for the whole run. */
  readonly refused: ReadonlyMap<string, string>;
}

/** Why a failure is never one by chance. The first match counts. */
const certain: readonly {
  readonly is: (failure: Failure, suite: Suite) => boolean;
  readonly why: string;
}[] = [
  { is: (_, { isRepeated }) => !isRepeated, why: 'a soak repeats nothing' },
  { is: ({ file }, { files }) => !files.includes(file), why: 'mocha names no file of the suite' },
  { is: ({ file }) => tierOf(file) === 'unit', why: 'a unit test is not repeated' },
  { is: ({ message }) => /^Property failed after\b/.test(message), why: 'a property is not repeated' },
  {
    is: ({ message }) => /^Pending test forbidden|`\.only`/.test(message),
    why: 'a rule of the suite is not repeated',
  },
  { is: ({ file }, { ledger }) => isSpent(file, ledger), why: 'the ledger names the file twice already' },
];

/** Why a run of mocha proves nothing; undefined: what it told counts. */
function oddityOf({ status, tests, failures }: MochaRun): string | undefined {
  if (tests === undefined) return `mocha died before its end, with ${status}`;
  if (failures.length === 0)
    return status === 0 ? undefined : `mocha ended with ${status} and told of no failure`;
  return status === 0 ? 'mocha told of failures and ended with 0' : undefined;
}

/** Decides what is repeated, alone, after the first runs: together they ran each file once. */
export function repeatsOf(runs: readonly MochaRun[], suite: Suite): Repeats {
  const byFile = Map.groupBy(
    runs.flatMap(({ failures }) => failures),
    ({ file }) => file,
  );
  const whole = (why: string): Repeats => ({ again: [], refused: new Map([['', why]]) });
  const odd = runs.map(oddityOf).find((why) => why !== undefined);
  if (odd !== undefined) return whole(odd);
  if (byFile.size > mostFailed)
    return whole(`${byFile.size} files failed, and more than ${mostFailed} are no chance`);
  const refused = new Map<string, string>();
  for (const [file, own] of byFile) {
    const reason = certain.find(({ is }) => own.some((failure) => is(failure, suite)));
    if (reason !== undefined) refused.set(file, reason.why);
  }
  return { again: [...byFile.keys()].filter((file) => !refused.has(file)), refused };
}

export interface Verdict {
  readonly result: 'green' | 'red';
  readonly flaky: readonly Failure[];
  /** Each with why it counts. */
  readonly broken: readonly { readonly failure: Failure; readonly why: string }[];
  /** Reasons beside the failures of tests. */
  readonly reasons: readonly string[];
}

/**
 * Judges the first runs and the repeats.
 * @param again the second run of each repeated file. Its status counts, since a file that cannot be loaded tells of no failure, and the number of its
 *   tests, since a test may end mocha with 0
 * @param more reasons for which the run is red whatever the tests say
 */
export function verdictOf(
  runs: readonly MochaRun[],
  { refused }: Repeats,
  again: ReadonlyMap<string, MochaRun>,
  more: readonly string[] = [],
): Verdict {
  const passedAlone = (file: string) => {
    const { status, tests = 0, failures } = again.get(file) ?? { status: 1, failures: [] };
    return status === 0 && tests > 0 && failures.length === 0;
  };
  const failures = runs.flatMap((run) => run.failures);
  const flaky = failures.filter(({ file }) => passedAlone(file));
  const broken = failures
    .filter(({ file }) => !passedAlone(file))
    .map((failure) => {
      const second = again.get(failure.file);
      const same = second?.failures.some(({ title }) => title === failure.title) === true;
      const alone = same ? 'failed again alone' : 'its file failed again alone';
      const unrepeated = refused.get(failure.file) ?? 'not repeated';
      return { failure, why: second === undefined ? unrepeated : alone };
    });
  const files = new Set(flaky.map(({ file }) => file)).size;
  const tooMany = `${files} files passed only alone, and more than ${mostFlaky} are no chance`;
  const whole = refused.get('');
  const reasons = [...(whole === undefined ? [] : [whole]), ...(files > mostFlaky ? [tooMany] : []), ...more];
  const result = broken.length === 0 && reasons.length === 0 ? 'green' : 'red';
  return { result, flaky, broken, reasons };
}

/** When a file ran, ms since the epoch, as temporary.ts notes it. */
export interface FileTimes {
  readonly file: string;
  readonly began: number;
  /** Infinity: its process died. */
  readonly ended: number;
  /** Ends of the tests that failed. */
  readonly failed: readonly number[];
}

/** The files that ran when one failed. */
export function besides(file: string, times: readonly FileTimes[]): readonly string[] {
  const own = times.find((one) => one.file === file);
  if (own === undefined) return [];
  const [at = own.ended] = own.failed;
  const until = Number.isFinite(at) ? at : own.began;
  return times
    .filter((one) => one !== own && one.began <= until && one.ended >= until)
    .map((one) => one.file);
}

export interface Told {
  readonly verdict: Verdict;
  readonly tests: number;
  readonly seconds: number;
  /** Share of the whole run in which a process waited for a processor, %; null: unknown. */
  readonly stalled: number | null;
  readonly times: readonly FileTimes[];
}

/** Failures that are told with all that is known; the others get a line. */
const toldWhole = 1;
const mostLines = 10;
const longest = 300;
const repeating = '   ./scripts/test ';

/** The end of a run's output: ten lines at most, and everything else is in test-results/. */
export function linesOf({ verdict, tests, seconds, stalled, times }: Told): readonly string[] {
  const { result, flaky, broken, reasons } = verdict;
  const files = new Set(flaky.map(({ file }) => file)).size;
  const failed = broken.length === 0 ? `${tests} tests` : `${broken.length} of ${tests} tests failed`;
  const minutes = `${Math.floor(seconds / 60)}:${String(Math.round(seconds) % 60).padStart(2, '0')}`;
  const some = files === 0 ? '' : `, ${files} flaky ${files === 1 ? 'file' : 'files'}`;
  const head = `${result.toUpperCase()}  ${failed}${some}, ${minutes}${stalledText(stalled)}`;
  const lines = [
    ...broken.flatMap(({ failure, why }, index) =>
      index < toldWhole
        ? whole(failure, why, times)
        : [` ${nameOf(failure)}: ${firstLine(failure.message)} (${why})`],
    ),
    ...flaky.map((failure) => {
      const share = failure.stalled === null ? '' : `cpu stalled ${failure.stalled} %; `;
      return `flaky: ${nameOf(failure)}: ${firstLine(failure.message)} (${share}passed alone): put it into test/support/flaky.json`;
    }),
  ];
  const room = mostLines - 1 - reasons.length;
  const shown =
    lines.length > room
      ? [...lines.slice(0, room - 1), ` and ${lines.length - room + 1} more: test-results/`]
      : lines;
  return [head, ...reasons.map((reason) => ` ${reason}`), ...shown].map((line) =>
    // A command that is cut is of no use.
    line.length > longest && !line.startsWith(repeating) ? `${line.slice(0, longest)}…` : line,
  );
}

function whole(failure: Failure, why: string, times: readonly FileTimes[]): readonly string[] {
  const beside = besides(failure.file, times);
  const others = beside.length === 0 ? 'no other file' : beside.join(', ');
  const only = failure.own === '' ? '' : ` --fgrep '${failure.own.replaceAll("'", `'\\''`)}'`;
  const share = failure.stalled === null ? '' : `, cpu stalled ${failure.stalled} % of the minute before`;
  const [first = '', second] = failure.message.split('\n').filter((line) => line.trim() !== '');
  return [
    ` ${nameOf(failure)}`,
    `   ${first}`,
    ...(second === undefined ? [] : [`   ${second.trim()}`]),
    `   took ${failure.seconds} s${share}; beside it: ${others}; ${why}`,
    `${repeating}${failure.file}${only}`,
  ];
}

/** With the line of the test's file in the stack. */
function nameOf({ file, title, stack }: Failure): string {
  const [, after = ''] = stack.split(`${file}:`);
  const [line] = /^\d+/.exec(after) ?? [];
  return `${file}${line === undefined ? '' : `:${line}`}  ${title.replaceAll('\n', ' ')}`;
}

const firstLine = (text: string) => text.split('\n')[0] ?? '';

function stalledText(share: number | null): string {
  return share === null ? '' : `, cpu stalled ${share} %`;
}
