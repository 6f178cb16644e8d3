import { once } from 'node:events';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { stringify } from 'yaml';
import { logReaderOf } from '../daemon/log-reader.ts';
import {
  type HtcJob,
  type HtcJobReader,
  htcJobDocuments,
  htcJobReader,
  workerOfJob,
  workersOf,
} from '../daemon/htcjobs.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { type Environment, type GlobalOptions, noLog } from './environment.ts';
import { addImport } from './htcjob-import.ts';
import { loadSettings, withStore } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { countArgument } from './workers.ts';

export function addHtcJob(command: Command, environment: Environment): void {
  for (const [name, { summary, made }] of Object.entries(htcJobDocuments))
    command
      .command(name)
      .description(summary)
      .action(() => {
        environment.out.write(
          made()
            .map((document) => stringify(document, { aliasDuplicateObjects: false, singleQuote: true }))
            .join('---\n'),
        );
      });
  addList(command, environment);
  addShow(command, environment);
  addEvents(command, environment);
  addLogs(command, environment);
  addImport(command, environment);
}

function addList(command: Command, environment: Environment): void {
  const list = command.command('list').description('show the HTCJobs of the cluster');
  list
    .option('--namespace <name>', 'those of this namespace alone')
    .addOption(outputOption())
    .action(async ({ namespace, output }: { namespace?: string; output: OutputFormat }) => {
      const jobs = await withReader(list, environment, (reader, signal) => reader.list(namespace, signal));
      if (output === 'json') {
        printJson(environment.out, jobs);
        return;
      }
      const count = (of: 'active' | 'succeeded' | 'failed' | 'held') => ({
        title: of.toUpperCase(),
        value: ({ status }: HtcJob) => String(status?.[of] ?? ''),
      });
      printTable(
        environment.out,
        [
          { title: 'NAMESPACE', value: ({ metadata }) => metadata.namespace },
          { title: 'NAME', value: ({ metadata }) => metadata.name },
          count('active'),
          count('succeeded'),
          count('failed'),
          count('held'),
          { title: 'CREATED', value: ({ metadata }) => metadata.creationTimestamp ?? '' },
          { title: 'REASON', value: ({ status }) => status?.reason ?? '' },
        ],
        jobs,
      );
    });
}

function addShow(command: Command, environment: Environment): void {
  const show = command.command('show').description('show a HTCJob with its status, conditions and workers');
  show
    .argument('<name>', 'NAMESPACE/NAME, or NAME where one namespace has it')
    .addOption(outputOption())
    .action(async (name: string, { output }: { output: OutputFormat }) => {
      const job = await withReader(show, environment, (reader, signal) => reader.one(name, signal));
      const workers = await withStore(show.optsWithGlobals<GlobalOptions>(), 'read', ({ store }) =>
        workersOf(store, job),
      );
      if (output === 'json') {
        printJson(environment.out, [{ ...job, workers }]);
        return;
      }
      const { metadata, spec, status } = job;
      environment.out.write(stringify({ metadata, spec, status, workers }));
    });
}

function addEvents(command: Command, environment: Environment): void {
  const events = command.command('events').description('show the Events of a HTCJob');
  events
    .argument('<name>', 'NAMESPACE/NAME, or NAME where one namespace has it')
    .addOption(outputOption())
    .action(async (name: string, { output }: { output: OutputFormat }) => {
      const found = await withReader(events, environment, async (reader, signal) =>
        reader.events(await reader.one(name, signal), signal),
      );
      if (output === 'json') {
        printJson(environment.out, found);
        return;
      }
      printTable(
        environment.out,
        [
          { title: 'TIME', value: ({ time }) => time },
          { title: 'TYPE', value: ({ type }) => type },
          { title: 'REASON', value: ({ reason }) => reason },
          { title: 'MESSAGE', value: ({ message }) => message },
        ],
        found,
      );
    });
}

function addLogs(command: Command, environment: Environment): void {
  const logs = command.command('logs').description('print the log of a job of a HTCJob');
  logs
    .argument('<name>', 'NAMESPACE/NAME, or NAME where one namespace has it')
    .addArgument(new Argument('[index]', 'number of the job, from 0').argParser(jobNumberArgument).default(0))
    .option('--follow', 'go on until the job has ended')
    .option('--stderr', 'its standard error output instead of its standard output')
    .option('--tail <n>', 'begin with this many last lines', countArgument)
    .action(
      async (
        name: string,
        index: number,
        { follow, stderr, tail }: { follow?: true; stderr?: true; tail?: number },
      ) => {
        const { clock, random, out } = environment;
        const job = await withReader(logs, environment, (reader, signal) => reader.one(name, signal));
        await withStore(
          logs.optsWithGlobals<GlobalOptions>(),
          'read',
          async ({ store, settings, factoryId }) => {
            const worker = await workerOfJob(store, job, index);
            const files = new OperatorFiles({ clock });
            const reader = await logReaderOf(worker, store, {
              factoryId,
              settings,
              clock,
              files,
              random,
              log: noLog,
            });
            const request = {
              stream: stderr ? 'stderr' : 'stdout',
              follow: follow ?? false,
              ...(tail === undefined ? {} : { tail }),
            } as const;
            for await (const piece of reader.read(worker, request, new AbortController().signal))
              if (!out.write(piece)) await once(out, 'drain');
          },
        );
      },
    );
}

async function withReader<T>(
  command: Command,
  { clock, random }: Environment,
  read: (reader: HtcJobReader, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const settings = loadSettings(command.optsWithGlobals<GlobalOptions>());
  const reader = htcJobReader(settings, { clock, random, files: new OperatorFiles({ clock }) });
  try {
    return await read(reader, AbortSignal.timeout(60_000));
  } finally {
    await reader.close();
  }
}

/** @throws InvalidArgumentError, which becomes a message of the command line */
function jobNumberArgument(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of a job, a whole number from 0.');
}
