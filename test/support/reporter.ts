/**
 * Mocha's dots, and each failure at once. With THRESHER_TEST_RESULTS=DIRECTORY the failures also go to `failures.jsonl` there, the number of tests
 * to `tests.json`, and the summary is left to test/support/gate.ts. With THRESHER_TEST_DURATIONS the reporter tells how long everything took;
 * `keep` also rewrites durations.json, by which the next run orders its files.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import Mocha from 'mocha';
import { durationsReport, keptOf, type Timed } from './durations.ts';
import { stalledShare } from './stalled.ts';
import { keptDurations, testFiles } from './tiers.ts';
import type { Failure } from './verdict.ts';

const checkout = resolve(import.meta.dirname, '../..');

export default class SuiteReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    const start = performance.now();
    const timed: Timed[] = [];
    let tests = 0;
    const results = process.env['THRESHER_TEST_RESULTS'];
    // The hooks for all files have no file of their own.
    const note = ({ file, duration, ...one }: Mocha.Test | Mocha.Hook, title = one.title) => {
      if (file !== undefined && duration !== undefined)
        timed.push({ file: relative(checkout, file), title, ms: duration });
    };
    runner.on('pass', (test) => {
      tests++;
      note(test, test.fullTitle());
    });
    runner.on('fail', (test, error: Error) => {
      tests++;
      note(test, test.fullTitle());
      const failure = failureOf(test, error);
      // A run takes minutes: its readers need not wait for its end.
      process.stdout.write(`\n  failed: ${failure.file}: ${failure.title}\n${failure.stack}\n`);
      if (results !== undefined)
        appendFileSync(join(results, 'failures.jsonl'), `${JSON.stringify(failure)}\n`);
    });
    runner.on('hook end', (hook) => {
      note(hook, `${hook.title} ${hook.parent?.fullTitle() ?? ''}`.trim());
    });
    runner.once('end', () => {
      if (results !== undefined) writeFileSync(join(results, 'tests.json'), JSON.stringify(tests));
      const durations = process.env['THRESHER_TEST_DURATIONS'];
      if (durations === undefined) return;
      process.stdout.write(durationsReport(timed, performance.now() - start));
      if (durations === 'keep') keep(timed);
    });
  }

  override epilogue(): void {
    if (process.env['THRESHER_TEST_RESULTS'] === undefined) super.epilogue();
    else process.stdout.write('\n');
  }
}

/** A worker process that dies, and a file that cannot be loaded, have no test: mocha tells their file with the error. */
function failureOf(test: Mocha.Runnable, error: Error & { readonly file?: string }): Failure {
  const file = test.file ?? error.file;
  return {
    file: file === undefined ? 'unknown' : relative(checkout, file),
    title: test.fullTitle(),
    own: 'type' in test && test.type === 'test' ? test.title : '',
    message: error.message,
    stack: error.stack ?? error.message,
    seconds: Math.round((test.duration ?? 0) / 100) / 10,
    stalled: stalledShare(),
  };
}

/** Files that did not run keep what they had, unless they are gone. */
function keep(timed: readonly Timed[]): void {
  const kept = { ...Object.fromEntries(keptDurations()), ...keptOf(timed) };
  const known = new Set(testFiles());
  const sorted = Object.entries(kept)
    .filter(([file]) => known.has(file))
    .sort(([, one], [, other]) => other - one);
  const text = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
  writeFileSync(join(checkout, 'test/support/durations.json'), text);
}
