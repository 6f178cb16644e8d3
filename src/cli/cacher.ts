import type { Command } from 'commander';
import { readPandaServer } from '../config/settings/panda-login-files.ts';
import { nameOf } from '../config/settings/cache-items.ts';
import { isError } from '../config/settings/settings.ts';
import { type CachedView, viewOf, withFailuresOf } from '../daemon/cacher/cacher-view.ts';
import { makeCacher } from '../daemon/cacher/make-cacher.ts';
import { prepareStateDir, stateDirAt } from '../daemon/state-dir.ts';
import { readStateFile } from '../daemon/state-file.ts';
import { writeFileAtomically } from '../util/files.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { type Environment, ExitStatus, type GlobalOptions, noLog } from './environment.ts';
import { loadSettings } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { problemLine } from './problems.ts';

export function addCacher(command: Command, environment: Environment): void {
  const { out } = environment;
  const list = async (_: unknown, asked: Command) => {
    // The option may stand before or after the word "list".
    const { output } = asked.optsWithGlobals<{ output: OutputFormat }>();
    const { cacher, settings } = await cacherOf(asked, environment);
    const views = (await cacher.states()).map(viewOf);
    print(withFailuresOf(views, readStateFile(stateDirAt(settings.stateDir).cacher)), output, out);
  };
  command.addOption(outputOption()).action(async (_: unknown, asked: Command) => {
    await list(_, asked);
  });
  command
    .command('list')
    .description('show the files that the cacher fetches, with their age and their last failure')
    .addOption(outputOption())
    .action(list);
  command
    .command('refresh')
    .description('fetch all files now; a running daemon takes up what changed')
    .addOption(outputOption())
    .action(async (_: unknown, asked: Command) => {
      const { output } = asked.optsWithGlobals<{ output: OutputFormat }>();
      const { cacher, settings, fetching } = await cacherOf(asked, environment);
      prepareStateDir(settings.stateDir);
      try {
        const outcomes = await cacher.refresh('all', new AbortController().signal);
        const views = (await cacher.states()).map(viewOf);
        // `thresher cacher` shows the failures, also without a daemon.
        await writeFileAtomically(stateDirAt(settings.stateDir).cacher, `${JSON.stringify(views)}\n`);
        if (output === 'json') printJson(out, views);
        else {
          for (const [item, outcome] of outcomes) {
            const { code, message } = views.find(({ file }) => file === nameOf(item)) ?? {};
            const why = typeof message === 'string' ? `: ${message} [${code ?? ''}]` : '';
            out.write(`${nameOf(item)}: ${outcome}${why}\n`);
          }
        }
        if (views.some(({ code }) => code !== null)) throw new ExitStatus(1);
      } finally {
        await fetching.close();
      }
    });
}

async function cacherOf(command: Command, { clock, err }: Environment) {
  const settings = loadSettings(command.optsWithGlobals<GlobalOptions>());
  const files = new OperatorFiles({ clock });
  const { server, problems } = await readPandaServer(settings, files);
  for (const problem of problems.filter(isError)) err.write(`${problemLine(problem)}\n`);
  return { settings, ...makeCacher({ settings, server, clock, files, log: noLog }) };
}

function print(views: readonly CachedView[], output: OutputFormat, out: NodeJS.WritableStream): void {
  if (output === 'json') {
    printJson(out, views);
    return;
  }
  if (views.length === 0) {
    out.write('the settings name no file for the cacher to fetch (cacher.data)\n');
    return;
  }
  printTable(
    out,
    [
      { title: 'FILE', value: ({ file }) => file },
      { title: 'STATE', value: ({ state }) => state },
      { title: 'FETCHED', value: ({ fetched }) => fetched },
      { title: 'CHECKED', value: ({ checked }) => checked },
      { title: 'BYTES', value: ({ bytes }) => bytes },
      { title: 'USE', value: ({ use }) => use },
      { title: 'URL', value: ({ url }) => url },
      { title: 'MESSAGE', value: ({ message }) => message },
    ],
    views,
  );
}
