import { Command, CommanderError } from 'commander';
import { ownSettings } from '../config/settings/harvester-file/places.ts';
import { ThresherError } from '../worker/errors.ts';
import { type Subcommand, subcommands } from './commands.ts';
import { type Environment, ExitStatus } from './environment.ts';
import { namedCommand } from './named-command.ts';
import { globalOutputOption, oneLine, passOutputOn, withoutSecrets } from './output.ts';
import { MistakesInFiles } from './problems.ts';
import { versionText } from './version.ts';

/**
 * The command line. For a subcommand that is not in `wanted` only its name is known, for the help and for suggestions.
 * @param wanted default: all
 */
export async function makeProgram(
  environment: Environment,
  wanted: (subcommand: Subcommand) => boolean = () => true,
): Promise<Command> {
  const program = new Command('thresher')
    .description('a pilot factory: keeps the right number of pilots alive for every queue')
    .option(
      '--config <file>',
      `the daemon's settings: thresher.yaml, or Harvester's panda_harvester.cfg (default: ${ownSettings}, else Harvester's own)`,
    )
    .option('--state-dir <dir>', 'its state directory, instead of the one in the settings')
    .addOption(globalOutputOption())
    .option('--version', 'show the version, and do nothing else')
    .on('option:version', () => {
      environment.out.write(versionText());
      throw new ExitStatus(0);
    })
    .hook('preAction', passOutputOn)
    .configureOutput({
      writeOut: (text) => environment.out.write(text),
      writeErr: (text) => environment.err.write(text),
      // Errors are shown where all errors are, in runProgram.
      outputError: () => undefined,
    })
    // Most commands have only their names here: how they are used stands in the table.
    .configureHelp({ subcommandTerm: (command) => `${command.name()} ${command.usage()}`.trim() })
    .exitOverride();
  for (const subcommand of subcommands) {
    const { name, summary, takes = '', hidden = false } = subcommand;
    const command = program.command(name, { hidden }).description(summary);
    if (wanted(subcommand)) (await subcommand.load())(command, environment);
    else command.usage(`[options] ${takes}`.trim());
  }
  return program;
}

/** Runs one command line. @returns the exit status: 0, 1 for what went wrong, 2 for wrong use. */
export async function runProgram(argv: readonly string[], given: Environment): Promise<number> {
  const environment = { ...given, out: withoutSecrets(given.out), err: withoutSecrets(given.err) };
  try {
    const named = namedCommand(argv);
    // `help NAME` shows the help of that command.
    const wanted = ({ name }: Subcommand) => name === named || (named === 'help' && argv.includes(name));
    const program = await makeProgram(environment, wanted);
    await program.parseAsync([...argv], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof ExitStatus) return error.status;
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // `thresher` alone: the help was shown instead of an error.
    if (error instanceof CommanderError && error.code === 'commander.help') return 2;
    const shown = error instanceof CommanderError ? toUsageError(error) : error;
    if (!(shown instanceof ThresherError)) {
      // A refusal of the operating system is no defect that a stack trace would explain.
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
