import { flushCompileCache } from 'node:module';
import { keepCompiled } from './compile-cache.ts';
import { neverWaitForThreads } from './end.ts';
import { HangUps } from './hang-ups.ts';
import { namedCommand } from './named-command.ts';

const argv = process.argv.slice(2);
// The rest is loaded only afterwards: that takes a second, in which a SIGHUP would end a daemon.
const hangUps = new HangUps();
const daemon = namedCommand(argv) === 'run';
if (daemon) {
  hangUps.hold();
  neverWaitForThreads();
}
// Modules imported before this line are not in the compile cache.
keepCompiled(process.env);
// A reader that closes our error output, or a full disk behind it, loses lines: that must not end a daemon.
process.stderr.on('error', () => undefined);
// `thresher workers | head` closes our output early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`thresher: the output cannot be written: ${error.message}\n`);
  process.exit(1);
});
const { realEnvironment } = await import('./environment.ts');
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(argv, { ...realEnvironment, hangUps });
if (daemon) {
  // Node writes what it compiled when it ends by itself, which a daemon does not.
  flushCompileCache();
  // Handles that a plugin left open must not keep a daemon.
  process.exit();
}
