/**
 * Runs all test files side by side, then each that failed once more: alone, in processes of its own. A file that passes then is flaky, and the run
 * stays green; verdict.ts has the rules. Everything that a run told is in test-results/, with `gate.json` for the whole of it.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readLedger } from './ledger.ts';
import { stalledTotal } from './stalled.ts';
import type { Moment } from './temporary.ts';
import { filesInOrder, tierOf } from './tiers.ts';
import { type Failure, type FileTimes, linesOf, type MochaRun, repeatsOf, verdictOf } from './verdict.ts';

const checkout = resolve(import.meta.dirname, '../..');
const results = join(checkout, 'test-results');
const coverage = join(checkout, 'coverage');
const bin = (name: string) => join(checkout, 'node_modules/.bin', name);

interface ToldRun extends MochaRun {
  readonly moments: readonly Moment[];
}

/** Runs mocha. @param name of the directory below test-results/ that keeps what it told */
function mocha(name: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): ToldRun {
  const directory = join(results, name);
  mkdirSync(directory, { recursive: true });
  const told = { NODE_V8_COVERAGE: join(coverage, 'tmp'), THRESHER_TEST_RESULTS: directory };
  const env = { ...process.env, ...told, ...environment };
  const { status } = spawnSync(bin('mocha'), args, { cwd: checkout, stdio: 'inherit', env });
  const tests = read(join(directory, 'tests.json'));
  const moments = linesIn<Moment>(join(directory, 'files.jsonl')).map((moment) => ({
    ...moment,
    file: relative(checkout, moment.file),
  }));
  return {
    status: status ?? 1,
    tests: tests === '' ? undefined : Number(tests),
    failures: linesIn<Failure>(join(directory, 'failures.jsonl')).map((failure) => {
      const { title, file } = failure;
      const moment = moments.find((one) => one.title === title && one.file === file);
      return { ...failure, stalled: moment?.stalled ?? failure.stalled };
    }),
    moments,
  };
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function linesIn<T>(file: string): T[] {
  return read(file)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

function timesOf(moments: readonly Moment[]): FileTimes[] {
  return [...Map.groupBy(moments, ({ file }) => file)].map(([file, own]) => ({
    file,
    began: own.find(({ what }) => what === 'began')?.at ?? 0,
    ended: own.find(({ what }) => what === 'ended')?.at ?? Infinity,
    failed: own.filter(({ what }) => what === 'failed').map(({ at }) => at),
  }));
}

/** The shared systems that the tests of the last tier need. After one has died, each file that needs it fails for this one cause. */
function deadSystems(): string[] {
  const systems = [
    ['kubernetes', 'status', '--node'],
    ['htcondor', 'status'],
    ['panda', 'status'],
  ];
  return systems.flatMap((args) => {
    const { status } = spawnSync(join(checkout, 'scripts/test-env'), args, {
      cwd: checkout,
      stdio: 'ignore',
    });
    return status === 0 ? [] : [`the shared ${args[0] ?? ''} of the tests does not run any more`];
  });
}

/** Empty where the sources came without their history. Root may run the tests in the checkout of another user. */
function git(...args: readonly string[]): string {
  const own = ['-c', `safe.directory=${checkout}`, '--no-optional-locks', ...args];
  try {
    return execFileSync('git', own, {
      cwd: checkout,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}
const treeNow = () => ({ commit: git('rev-parse', 'HEAD'), changes: git('status', '--porcelain') });

const began = performance.now();
const stalledBefore = stalledTotal();
const tree = treeNow();
mkdirSync(results, { recursive: true });
for (const earlier of readdirSync(results).filter((name) => /^(first|again-\d+)$/.test(name)))
  rmSync(join(results, earlier), { recursive: true });
rmSync(coverage, { recursive: true, force: true });

const first = mocha('first', []);
const repeats = repeatsOf(first, { files: filesInOrder(undefined), ledger: readLedger() });
const reasons = repeats.again.some((file) => tierOf(file) === 'systems') ? deadSystems() : [];
const again = new Map<string, MochaRun>();
if (reasons.length === 0)
  for (const [index, file] of repeats.again.entries()) {
    console.log(`\n== again, alone: ${file}`);
    // With one job mocha would run it in its own process, which a test could end as if all were well.
    const args = ['--jobs', '2', file];
    again.set(file, mocha(`again-${index + 1}`, args, { THRESHER_TEST_DURATIONS: undefined }));
  }
// The coverage of a red run says nothing.
if (verdictOf(first, repeats, again, reasons).result === 'green') {
  const { status } = spawnSync(bin('c8'), ['report'], { cwd: checkout, stdio: 'inherit' });
  if (status !== 0) reasons.push('coverage is below its bounds, see above');
}

const verdict = verdictOf(first, repeats, again, reasons);
const wall = performance.now() - began;
const stalledAfter = stalledTotal();
const stalled =
  stalledBefore === null || stalledAfter === null
    ? null
    : Math.round((100 * (stalledAfter - stalledBefore)) / wall);
const seconds = Math.round(wall / 1000);
const tests = first.tests ?? 0;
const treeAfter = treeNow();
writeFileSync(join(results, 'flaky.json'), `${JSON.stringify(verdict.flaky, null, 2)}\n`);
const summary = {
  commit: tree.commit,
  // A tree that changed under the run is not the one of its commit.
  dirty: [tree, treeAfter].some(({ commit, changes }) => commit !== tree.commit || changes !== ''),
  result: verdict.result,
  tests,
  seconds,
  flaky: verdict.flaky.map(({ file, title }) => `${file}: ${title}`),
};
writeFileSync(join(results, 'gate.json'), `${JSON.stringify(summary, null, 2)}\n`);
console.log(`\n${linesOf({ verdict, tests, seconds, stalled, times: timesOf(first.moments) }).join('\n')}`);
process.exitCode = verdict.result === 'green' ? 0 : 1;
