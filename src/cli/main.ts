import { keepCompiled } from './compile-cache.ts';

keepCompiled(process.env);

// Who closes our error output, or fills its disk, loses lines: that must not end a daemon.
process.stderr.on('error', () => undefined);
// `thresher workers | head` closes our output early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`thresher: the output cannot be written: ${error.message}\n`);
  process.exit(1);
});
// Imported only now: what is imported before is not kept compiled.
const [{ realEnvironment }, { runProgram }] = await Promise.all([
  import('./environment.ts'),
  import('./program.ts'),
]);
process.exitCode = await runProgram(process.argv.slice(2), realEnvironment);
