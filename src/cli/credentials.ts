import type { Command } from 'commander';
import { readConfiguration } from '../daemon/configuration.ts';
import { isError } from '../config/settings/settings.ts';
import {
  type CredentialView,
  type CredentialViewOptions,
  managerMistakes,
  renewCredential,
  viewCredentials,
} from '../daemon/credentials/credential-view.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { type Environment, ExitStatus, type GlobalOptions, noLog } from './environment.ts';
import { settingsFile } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { MistakesInFiles, problemLine } from './problems.ts';

export function addCredentials(command: Command, environment: Environment): void {
  const { out } = environment;
  command.addOption(outputOption()).action(async ({ output }: { output: OutputFormat }, command: Command) => {
    const asked = await optionsOf(command, environment);
    await tellMistakes(asked, environment);
    print(await viewCredentials(asked), output, out);
  });
  command
    .command('check')
    .description('show the same, with exit status 1 if one is bad or ends soon')
    .addOption(outputOption())
    .action(async (_: unknown, command: Command) => {
      // The option may stand before or after the word "check".
      const { output } = command.optsWithGlobals<{ output: OutputFormat }>();
      const asked = await optionsOf(command, environment);
      const isWrong = await tellMistakes(asked, environment);
      const views = await viewCredentials(asked);
      print(views, output, out);
      if (isWrong || views.some(({ state }) => state !== 'good')) throw new ExitStatus(1);
    });
  command
    .command('renew')
    .description('renew a credential, or push it again, now')
    .argument('<name>', 'name of a credential or of its manager, as `thresher credentials` shows it')
    .action(async (name: string, _: unknown, command: Command) => {
      const outcomes = await renewCredential(name, await optionsOf(command, environment));
      for (const outcome of outcomes) {
        const why = outcome.kind === 'failed' ? `: ${outcome.error.message} [${outcome.error.code}]` : '';
        out.write(`${outcome.name}: ${outcome.kind}${why}\n`);
      }
      if (outcomes.some(({ kind }) => kind === 'failed')) throw new ExitStatus(1);
    });
}

async function optionsOf(command: Command, { clock, random }: Environment) {
  const { config, stateDir } = command.optsWithGlobals<GlobalOptions>();
  const files = new OperatorFiles({ clock });
  const { settings, queueFile, problems } = await readConfiguration(
    settingsFile({ config }),
    stateDir,
    files,
  );
  if (settings === undefined || queueFile === undefined) throw new MistakesInFiles(problems.filter(isError));
  return { settings, queueFile, clock, random, log: noLog, signal: new AbortController().signal };
}

/** Managers that cannot be made show nothing, which must not look as if all were well. @returns whether there are any. */
async function tellMistakes(options: CredentialViewOptions, { err }: Environment): Promise<boolean> {
  const mistakes = await managerMistakes(options);
  for (const problem of mistakes) err.write(`${problemLine(problem)}\n`);
  return mistakes.some(isError);
}

function print(views: readonly CredentialView[], output: OutputFormat, out: NodeJS.WritableStream): void {
  if (output === 'json') {
    printJson(out, views);
    return;
  }
  printTable(
    out,
    [
      { title: 'CREDENTIAL', value: ({ name }) => name },
      { title: 'STATE', value: ({ state }) => state },
      { title: 'ENDS', value: ({ expires }) => expires },
      { title: 'LEFT', value: ({ remaining }) => (remaining === null ? null : duration(remaining)) },
      { title: 'VO', value: ({ vo }) => vo },
      { title: 'SUBJECT', value: ({ subject }) => subject },
      { title: 'MANAGER', value: ({ manager }) => manager },
      { title: 'MESSAGE', value: ({ message }) => message },
    ],
    views,
  );
}

/** "3d 4h", "5h 12m", "40m", "-2m". */
function duration(seconds: number): string {
  const sign = seconds < 0 ? '-' : '';
  const minutes = Math.floor(Math.abs(seconds) / 60);
  const [days, hours, rest] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24, minutes % 60];
  if (days > 0) return `${sign}${days}d ${hours}h`;
  return hours > 0 ? `${sign}${hours}h ${rest}m` : `${sign}${rest}m`;
}
