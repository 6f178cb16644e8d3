/**
 * The whole suite, as one run with one verdict. Everything that a run told is in test-results/.
 *
 * - `gate.ts` runs what a landing waits for: first the units, which need nothing, while the real systems still start; then the others; then each
 *   file that failed once more: alone, in processes of its own. A file that passes then is flaky, and the run stays green; verdict.ts has the
 *   rules. It writes `gate.json`.
 * - `gate.ts soak` runs every file with other cases of the properties each time, and nothing twice. It writes `soak.json`.
 * - `gate.ts repeat N FILE ...` runs these files N times while every processor is busy with something else.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { beforeThisLanding, changesSince, type Chosen, chosenOf, git } from './affected.ts';
import { readLedger } from './ledger.ts';
import { stalledShare, stalledTotal } from './stalled.ts';
import type { Moment } from './temporary.ts';
import { filesInOrder, gateVariable, isLeftToSoak, keptDurations, type Tier, tierOf } from './tiers.ts';
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
  const told = { THRESHER_TEST_RESULTS: directory };
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

/** Where scripts/test writes down what the start of the real systems says, and how it ended. Undefined: they run already. */
const starting = process.env['THRESHER_TEST_ENVIRONMENT'];

/** How the start of the real systems ended; undefined: not yet. */
function environmentStatus(): number | undefined {
  if (starting === undefined) return 0;
  const status = read(join(starting, 'ended'));
  return status.endsWith('\n') ? Number(status) : undefined;
}

async function environmentStarted(): Promise<boolean> {
  if (environmentStatus() === undefined)
    console.log(`== waits for the test environment; what it says: ${starting ?? ''}/log`);
  while (environmentStatus() === undefined) await setTimeout(200);
  if (environmentStatus() === 0) return true;
  console.log(read(join(starting ?? '', 'log')));
  return false;
}

/** Bounds of the lines and branches that unit tests reach, %. `.c8rc.json` has those of all tests. */
const unitBounds = ['--lines', '84', '--branches', '89'];

const treeNow = () => ({ commit: git('rev-parse', 'HEAD'), changes: git('status', '--porcelain') });

/** Another seed for the properties, which is told: the same one draws the same cases again. */
function newSeed(): string {
  const seed = String(randomInt(2 ** 31));
  console.log(`== seed of the properties: THRESHER_TEST_SEED=${seed}`);
  return seed;
}

/** Runs files again and again beside programs that do nothing but keep the processors. @returns whether all runs were green */
function repeat(times: number, files: readonly string[]): boolean {
  const busy = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', `while (process.ppid === ${process.pid});`], { stdio: 'ignore' }),
  );
  let green = 0;
  try {
    for (let run = 1; run <= times; run++) {
      rmSync(join(results, 'first'), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      const environment = { THRESHER_TEST_SEED: newSeed() };
      const { status, tests, failures } = mocha('first', ['--jobs', '2', ...files], environment);
      const isGreen = status === 0 && tests !== undefined && failures.length === 0;
      if (isGreen) green++;
      console.log(
        `== ${run} of ${times}: ${isGreen ? 'green' : 'red'}, cpu stalled ${stalledShare() ?? '?'} %`,
      );
    }
  } finally {
    for (const one of busy) one.kill('SIGKILL');
  }
  console.log(`\n${green === times ? 'GREEN' : 'RED'}  ${green} of ${times} runs`);
  return green === times;
}

/** Of the files that are left to the soak: those that a landing runs all the same, and those that it only names. */
function affectedOf(leftToSoak: readonly string[]): Chosen {
  const commit = beforeThisLanding();
  if (commit === '') return { run: [], named: [] };
  return chosenOf(changesSince(commit), leftToSoak, keptDurations());
}

const [mode = 'gate', times = '', ...named] = process.argv.slice(2);
if (mode === 'repeat') process.exit(repeat(Number(times), named) ? 0 : 1);
const isSoak = mode === 'soak';
const seed = isSoak ? newSeed() : undefined;

const began = performance.now();
const stalledBefore = stalledTotal();
const tree = treeNow();
mkdirSync(results, { recursive: true });
for (const earlier of readdirSync(results).filter((name) =>
  /^(first|unit|promises|systems|again-\d+)$/.test(name),
))
  rmSync(join(results, earlier), { recursive: true, maxRetries: 10, retryDelay: 100 });
rmSync(coverage, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });

const all = filesInOrder(undefined);
const affected = isSoak ? { run: [], named: [] } : affectedOf(all.filter(isLeftToSoak));
const files = all.filter((file) => isSoak || !isLeftToSoak(file) || affected.run.includes(file));
if (affected.run.length > 0) console.log(`the change affects, of the soak: ${affected.run.join(', ')}`);

const seeded = seed === undefined ? { [gateVariable]: '1' } : { THRESHER_TEST_SEED: seed };
const covered = { ...seeded, NODE_V8_COVERAGE: join(coverage, 'tmp') };
const firsts: ToldRun[] = [];
const left = new Set(files);
/** Files at once that need more than units do: they wait more than they compute. */
const systemsAtOnce = '4';
/** Runs those of the files that have not run yet. */
const first = (name: string, tiers: readonly Tier[], environment: NodeJS.ProcessEnv) => {
  const some = [...left].filter((file) => tiers.includes(tierOf(file)));
  for (const file of some) left.delete(file);
  const atOnce = tiers.includes('unit') ? [] : ['--jobs', systemsAtOnce];
  if (some.length > 0) firsts.push(mocha(name, [...atOnce, ...some], environment));
};
const reasons: string[] = [];
// The program's coverage by its units is measured where no test has a limit of time. A soak has the time.
first('unit', ['unit'], covered);
const rest = isSoak ? covered : seeded;
// The control plane may still be built, which takes minutes.
if (environmentStatus() === undefined) first('promises', ['promises'], rest);
if (await environmentStarted()) first('systems', ['promises', 'systems'], rest);
else reasons.push('the test environment did not start, see above');
const suite = { files, ledger: readLedger(), isRepeated: !isSoak };
const repeats = repeatsOf(firsts, suite);
if (repeats.again.some((file) => tierOf(file) === 'systems')) reasons.push(...deadSystems());
const again = new Map<string, MochaRun>();
if (reasons.length === 0)
  for (const [index, file] of repeats.again.entries()) {
    console.log(`\n== again, alone: ${file}`);
    // With one job mocha would run it in its own process, which a test could end as if all were well.
    const args = ['--jobs', '2', file];
    again.set(file, mocha(`again-${index + 1}`, args, { ...seeded, THRESHER_TEST_DURATIONS: undefined }));
  }
// The coverage of a red run says nothing.
if (verdictOf(firsts, repeats, again, reasons).result === 'green') {
  const { status } = spawnSync(bin('c8'), ['report', ...(isSoak ? [] : unitBounds)], {
    cwd: checkout,
    stdio: 'inherit',
  });
  if (status !== 0) reasons.push('coverage is below its bounds, see above');
}

const verdict = verdictOf(firsts, repeats, again, reasons);
const wall = performance.now() - began;
const stalledAfter = stalledTotal();
const stalled =
  stalledBefore === null || stalledAfter === null
    ? null
    : Math.round((100 * (stalledAfter - stalledBefore)) / wall);
const seconds = Math.round(wall / 1000);
const tests = firsts.reduce((sum, run) => sum + (run.tests ?? 0), 0);
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
const whole = isSoak
  ? {
      ...summary,
      seed: Number(seed),
      failures: verdict.broken.map(({ failure }) => `${failure.file}: ${failure.title}`),
    }
  : summary;
writeFileSync(join(results, `${mode}.json`), `${JSON.stringify(whole, null, 2)}\n`);
console.log(
  `\n${linesOf({ verdict, tests, seconds, stalled, times: timesOf(firsts.flatMap((run) => run.moments)) }).join('\n')}`,
);
if (affected.named.length > 0)
  console.log(`not run, although the change affects them: ./scripts/test ${affected.named.join(' ')}`);
process.exitCode = verdict.result === 'green' ? 0 : 1;
