import { realEnvironment } from './environment.ts';
import { runProgram } from './program.ts';

// `thresher workers | head` closes our output early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await runProgram(process.argv.slice(2), realEnvironment);
