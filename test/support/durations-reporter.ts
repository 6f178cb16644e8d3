/**
 * Mocha's dots, each failure at once, and afterwards how long everything took. THRESHER_TEST_DURATIONS=keep also rewrites durations.json, by which
 * the next run orders its files.
 */
import { writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import Mocha from 'mocha';
import { durationsReport, keptOf, type Timed } from './durations.ts';
import { keptDurations, testFiles } from './tiers.ts';

const checkout = resolve(import.meta.dirname, '../..');

export default class DurationsReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    const start = performance.now();
    const timed: Timed[] = [];
    // The hooks for all files have no file of their own.
    const note = ({ file, duration, ...one }: Mocha.Test | Mocha.Hook, title = one.title) => {
      if (file !== undefined && duration !== undefined)
        timed.push({ file: relative(checkout, file), title, ms: duration });
    };
    runner.on('pass', (test) => {
      note(test, test.fullTitle());
    });
    runner.on('fail', (test, error: Error) => {
      note(test, test.fullTitle());
      // A run takes minutes: who waits for it need not wait for its end.
      process.stdout.write(
        `\n  failed: ${test.file ?? ''}: ${test.fullTitle()}\n${error.stack ?? error.message}\n`,
      );
    });
    runner.on('hook end', (hook) => {
      note(hook, `${hook.title} ${hook.parent?.fullTitle() ?? ''}`.trim());
    });
    runner.once('end', () => {
      process.stdout.write(durationsReport(timed, performance.now() - start));
      if (process.env['THRESHER_TEST_DURATIONS'] !== 'keep') return;
      // Files that did not run keep what they had, unless they are gone.
      const kept = { ...Object.fromEntries(keptDurations()), ...keptOf(timed) };
      const known = new Set(testFiles());
      const sorted = Object.entries(kept)
        .filter(([file]) => known.has(file))
        .sort(([, one], [, other]) => other - one);
      const text = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
      writeFileSync(join(checkout, 'test/support/durations.json'), text);
    });
  }
}
