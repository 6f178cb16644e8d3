import { Command, CommanderError } from 'commander';
import { ownSettings } from '../config/harvester/places.ts';
import { ThresherError } from '../worker/errors.ts';
import { addCheckConfig } from './check-config.ts';
import { addCredentials } from './credentials.ts';
import { addDb } from './db.ts';
import { addCompletion } from './completion.ts';
import { addDrain } from './drain.ts';
import { type Environment, ExitStatus } from './environment.ts';
import { addExplain } from './explain.ts';
import { addKill } from './kill.ts';
import { addLogs } from './logs.ts';
import { addMan } from './man.ts';
import { addOrphans } from './orphans.ts';
import { globalOutputOption, oneLine, passOutputOn } from './output.ts';
import { addPause } from './pause.ts';
import { MistakesInFiles } from './problems.ts';
import { addQueues } from './queues.ts';
import { addRender } from './render.ts';
import { addResume } from './resume.ts';
import { addRun } from './run.ts';
import { addSweep } from './sweep.ts';
import { addVersion } from './version.ts';
import { addWorker } from './worker.ts';
import { addWorkers } from './workers.ts';

const subcommands = [
  ...[addRun, addQueues, addWorkers, addWorker, addLogs, addKill],
  ...[addPause, addResume, addDrain, addSweep, addOrphans],
  ...[addCredentials, addCheckConfig, addExplain, addRender, addDb, addCompletion, addMan, addVersion],
];

export function makeProgram(environment: Environment): Command {
  const program = new Command('thresher')
    .description('a pilot factory: keeps the right number of pilots alive for every queue')
    .option(
      '--config <file>',
      `the daemon's settings: thresher.yaml, or Harvester's panda_harvester.cfg (default: ${ownSettings}, else where Harvester has its own)`,
    )
    .option('--state-dir <dir>', 'its state directory, instead of the one in the settings')
    .addOption(globalOutputOption())
    .hook('preAction', passOutputOn)
    .configureOutput({
      writeOut: (text) => environment.out.write(text),
      writeErr: (text) => environment.err.write(text),
      // Errors are shown where all errors are, in runProgram.
      outputError: () => undefined,
    })
    .exitOverride();
  for (const add of subcommands) add(program, environment);
  return program;
}

/** Runs one command line. @returns the exit status: 0, 1 for what went wrong, 2 for wrong use. */
export async function runProgram(argv: readonly string[], environment: Environment): Promise<number> {
  try {
    await makeProgram(environment).parseAsync([...argv], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof ExitStatus) return error.status;
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // `thresher` alone: the help was shown instead of an error.
    if (error instanceof CommanderError && error.code === 'commander.help') return 2;
    const shown = error instanceof CommanderError ? toUsageError(error) : error;
    if (!(shown instanceof ThresherError)) {
      // What the operating system refuses is no defect that a stack trace would help with.
      if (!(error instanceof Error && 'code' in error)) throw error;
      environment.err.write(`thresher: ${error.message}\n`);
      return 1;
    }
    const suffix = shown instanceof MistakesInFiles ? '' : ` [${shown.code}]`;
    for (const line of shown.message.split('\n'))
      environment.err.write(`thresher: ${oneLine(line)}${suffix}\n`);
    return shown.code === 'usage' ? 2 : 1;
  }
}

/** In one line: a suggestion follows its error. */
function toUsageError({ message }: CommanderError): ThresherError {
  const text = message
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ');
  return new ThresherError('usage', text);
}
