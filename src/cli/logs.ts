import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { logReaderOf } from '../daemon/log-reader.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { type Environment, type GlobalOptions, noLog } from './environment.ts';
import { withStore } from './opened.ts';
import { findWorker, workerIdArgument } from './worker.ts';
import { countArgument } from './workers.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly stderr?: true;
  readonly jobLog?: true;
  readonly tail?: number;
}

export function addLogs(command: Command, environment: Environment): void {
  command
    .argument('<id>', 'worker id', workerIdArgument)
    .option('--follow', 'go on until the worker has ended')
    .option('--stderr', 'its standard error output instead of its standard output')
    .addOption(
      new Option('--job-log', "the backend's own record of its job (the `log` of HTCondor)").conflicts(
        'stderr',
      ),
    )
    .option('--tail <n>', 'begin with this many last lines', countArgument)
    .action(async (id: number, { follow, stderr, jobLog, tail }: LogsOptions) => {
      const { clock, random, out } = environment;
      const files = new OperatorFiles({ clock });
      const stop = new AbortController();
      const end = () => {
        stop.abort();
      };
      process.once('SIGINT', end);
      await withStore(
        command.optsWithGlobals<GlobalOptions>(),
        'read',
        async ({ store, settings, factoryId }) => {
          const worker = await findWorker(store, id);
          const options = { factoryId, settings, clock, files, random, log: noLog };
          const reader = await logReaderOf(worker, store, options);
          const request = {
            stream: jobLog ? 'job-log' : stderr ? 'stderr' : 'stdout',
            follow: follow ?? false,
            ...(tail === undefined ? {} : { tail }),
          } as const;
          for await (const piece of reader.read(worker, request, stop.signal)) {
            if (!out.write(piece)) await once(out, 'drain');
          }
        },
      ).finally(() => {
        process.off('SIGINT', end);
      });
    });
}
