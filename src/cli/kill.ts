import type { Command } from 'commander';
import { ThresherError } from '../worker/errors.ts';
import type { WorkerStatus } from '../worker/status.ts';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { findWorker, workerIdArgument } from './worker.ts';
import { statusArgument } from './workers.ts';

interface KillOptions {
  readonly queue?: string;
  readonly status?: WorkerStatus[];
}

export function addKill(command: Command, environment: Environment): void {
  command
    .argument('[id...]', 'worker ids', (text: string, before: number[] | undefined) => [
      ...(before ?? []),
      workerIdArgument(text),
    ])
    .option('--queue <queue>', 'all living workers of this queue')
    .option('--status <status,...>', 'with --queue: only those in these statuses', statusArgument)
    .action(async (ids: number[] | undefined, { queue, status }: KillOptions) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      if ((ids === undefined || ids.length === 0) === (queue === undefined)) {
        throw new ThresherError('usage', 'kill takes worker ids, or --queue with a queue name');
      }
      if (queue === undefined) {
        if (status !== undefined) throw new ThresherError('usage', '--status goes with --queue');
        await askDaemon(options, environment, { kind: 'kill', ids: ids ?? [] }, async (store) => {
          for (const id of ids ?? []) await findWorker(store, id);
        });
      } else {
        const request = { kind: 'kill-queue', queue, ...(status && { statuses: status }) } as const;
        await askDaemon(options, environment, request, (store) => requireQueue(store, queue));
      }
    });
}
