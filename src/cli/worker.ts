import { type Command, InvalidArgumentError } from 'commander';
import { workerDetails } from '../daemon/view.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { oneLine, type OutputFormat, outputOption, printJson, printTable } from './output.ts';

export function workerIdArgument(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('A worker id is a whole number.');
  return Number(text);
}

/** @throws ThresherError `no-such-worker` */
export async function findWorker(store: Store, workerId: number): Promise<WorkerRecord> {
  const record = await store.workers.byId(workerId);
  if (record === undefined) throw new ThresherError('no-such-worker', `there is no worker ${workerId}`);
  return record;
}

export function addWorker(command: Command, environment: Environment): void {
  command
    .argument('<id>', 'worker id', workerIdArgument)
    .addOption(outputOption())
    .action(async (id: number, { output }: { output: OutputFormat }) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const details = await withStore(options, 'read', async ({ store }) =>
        workerDetails(store, await findWorker(store, id)),
      );
      if (output === 'json') {
        printJson(environment.out, [details]);
        return;
      }
      const { history, ...facts } = details;
      const shown = Object.entries(facts).filter(([, value]) => value !== null);
      const width = Math.max(...shown.map(([key]) => key.length));
      for (const [key, value] of shown) {
        const text = typeof value === 'string' ? oneLine(value) : JSON.stringify(value);
        environment.out.write(`${key.padEnd(width)}  ${text}\n`);
      }
      environment.out.write('\n');
      printTable(
        environment.out,
        [
          { title: 'TIME', value: ({ time }) => time },
          { title: 'FROM', value: ({ from }) => from },
          { title: 'TO', value: ({ to }) => to },
          { title: 'BY', value: ({ source }) => source },
          { title: 'NATIVE', value: ({ nativeStatus }) => nativeStatus },
          { title: 'MESSAGE', value: ({ message }) => message },
        ],
        history,
      );
    });
}
