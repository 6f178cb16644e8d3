import { type Command, InvalidArgumentError } from 'commander';
import { type WorkerView, workerView } from '../daemon/view.ts';
import { parseStatuses, type WorkerStatus, workerStatuses } from '../worker/status.ts';
import { requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type Column, type OutputFormat, outputOption, printJson, printTable } from './output.ts';

export const workerColumns: readonly Column<WorkerView>[] = [
  { title: 'WORKERID', value: ({ workerID }) => workerID },
  { title: 'QUEUE', value: ({ queueName }) => queueName },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'BATCHID', value: ({ batchID }) => batchID },
  { title: 'EXIT', value: ({ nativeExitCode }) => nativeExitCode },
  { title: 'STARTED', value: ({ startTime }) => startTime },
  { title: 'ENDED', value: ({ endTime }) => endTime },
  { title: 'CE', value: ({ computingElement }) => computingElement },
  { title: 'NODE', value: ({ nodeID }) => nodeID },
  {
    title: 'ERROR',
    value: ({ errorCode, diagMessage }) => (errorCode === null ? null : `${errorCode}: ${diagMessage ?? ''}`),
  },
];

export function statusArgument(text: string): WorkerStatus[] {
  const statuses = parseStatuses(text);
  if (statuses === undefined)
    throw new InvalidArgumentError(`It must be one or more of ${workerStatuses.join(',')}.`);
  return statuses;
}

export function countArgument(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

interface WorkersOptions {
  readonly queue?: string;
  readonly status?: WorkerStatus[];
  readonly limit: number;
  readonly output: OutputFormat;
}

export function addWorkers(command: Command, environment: Environment): void {
  command
    .option('--queue <queue>', 'only workers of this queue')
    .option('--status <status,...>', 'only workers in these statuses', statusArgument)
    .option('--limit <n>', 'at most this many', countArgument, 50)
    .addOption(outputOption())
    .action(async ({ queue, status, limit, output }: WorkersOptions) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const filter = { queue, statuses: status, limit };
      const views = await withStore(options, 'read', async ({ store }) => {
        const found = await store.workers.list(filter);
        // A queue that left the file long ago may still have workers, if none of these.
        if (found.length === 0 && queue !== undefined) {
          if ((await store.workers.list({ queue, limit: 1 })).length === 0) await requireQueue(store, queue);
        }
        return found.map(workerView);
      });
      if (output === 'json') printJson(environment.out, views);
      else printTable(environment.out, workerColumns, views);
    });
}
