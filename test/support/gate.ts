/**
 * Runs all test files side by side, then each that failed once more: alone, in processes of its own. A file that passes then is flaky, and the run
 * stays green; verdict.ts has the rules. What was seen is in test-results/, with `gate.json` for the whole run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readLedger } from './ledger.ts';
import { filesInOrder, tierOf } from './tiers.ts';
import { type Failure, type FileTimes, linesOf, type MochaRun, repeatsOf, verdictOf } from './verdict.ts';

const checkout = resolve(import.meta.dirname, '../..');
const results = join(checkout, 'test-results');
const bin = (name: string) => join(checkout, 'node_modules/.bin', name);

/** Runs mocha. @param name of the directory below test-results/ that keeps what it told */
function mocha(name: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): MochaRun {
  const directory = join(results, name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const env = { ...process.env, ...environment, THRESHER_TEST_RESULTS: directory };
  const { status } = spawnSync(bin('mocha'), args, { cwd: checkout, stdio: 'inherit', env });
  return {
    status: status ?? 1,
    tests: Number(read(join(directory, 'tests.json')) || '0'),
    failures: linesIn<Failure>(join(directory, 'failures.jsonl')),
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

/** A line of files.jsonl, as temporary.ts writes it. */
interface Moment {
  readonly file: string;
  readonly what: 'began' | 'failed' | 'ended';
  readonly at: number;
}

function timesOf(moments: readonly Moment[]): FileTimes[] {
  return [...Map.groupBy(moments, ({ file }) => file)].map(([file, own]) => ({
    file: relative(checkout, file),
    began: own.find(({ what }) => what === 'began')?.at ?? 0,
    ended: own.find(({ what }) => what === 'ended')?.at ?? Infinity,
    failed: own.filter(({ what }) => what === 'failed').map(({ at }) => at),
  }));
}

/** Time in which a process waited for a processor since the machine began, ms; undefined where the kernel does not count it. */
function stalledSince(): number | undefined {
  const [, total] = /^some .*total=(\d+)/m.exec(read('/proc/pressure/cpu')) ?? [];
  return total === undefined ? undefined : Number(total) / 1000;
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

function git(...args: readonly string[]): string {
  try {
    return execFileSync('git', args, {
      cwd: checkout,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    // The sources may have come without their history.
    return '';
  }
}

const began = performance.now();
const stalledBefore = stalledSince();
mkdirSync(results, { recursive: true });
const coverage = join(checkout, 'coverage');
rmSync(coverage, { recursive: true, force: true });
const ledger = readLedger();
const first = mocha('first', [], { NODE_V8_COVERAGE: join(coverage, 'tmp') });
const repeats = repeatsOf(first, { files: filesInOrder(undefined), ledger });

const reasons = repeats.again.some((file) => tierOf(file) === 'systems') ? deadSystems() : [];
const again = new Map<string, MochaRun>();
if (reasons.length === 0)
  for (const [index, file] of repeats.again.entries()) {
    console.log(`\n== again, alone: ${file}`);
    again.set(file, mocha(`again-${index + 1}`, ['--jobs', '1', file]));
  }
const ofTests = verdictOf(first, repeats, again, reasons);
// Of a run that is red, coverage says nothing.
if (ofTests.result === 'green') {
  const { status } = spawnSync(bin('c8'), ['report'], { cwd: checkout, stdio: 'inherit' });
  if (status !== 0) reasons.push('coverage is below its bounds, see above');
}

const verdict = verdictOf(first, repeats, again, reasons);
const wall = performance.now() - began;
const stalledAfter = stalledSince();
const stalled =
  stalledBefore === undefined || stalledAfter === undefined
    ? null
    : Math.round((100 * (stalledAfter - stalledBefore)) / wall);
const seconds = Math.round(wall / 1000);
const told = {
  verdict,
  tests: first.tests,
  seconds,
  stalled,
  times: timesOf(linesIn<Moment>(join(results, 'first/files.jsonl'))),
};
writeFileSync(join(results, 'flaky.json'), `${JSON.stringify(verdict.flaky, null, 2)}\n`);
const summary = {
  commit: git('rev-parse', 'HEAD'),
  dirty: git('status', '--porcelain') !== '',
  result: verdict.result,
  tests: first.tests,
  seconds,
  flaky: verdict.flaky.map(({ file, title }) => `${file}: ${title}`),
};
writeFileSync(join(results, 'gate.json'), `${JSON.stringify(summary, null, 2)}\n`);
console.log(`\n${linesOf(told).join('\n')}`);
process.exitCode = verdict.result === 'green' ? 0 : 1;
