import type { Command } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { readRequestReasons, type WhyWaiting } from '../daemon/requests/request-file.ts';
import { type RequestView, requestView, whyRequestWaits } from '../daemon/requests/request-view.ts';
import { daemonDown, workerView } from '../daemon/view.ts';
import type { QueueReport } from '../store/queues.ts';
import type { RequestRecord } from '../store/requests.ts';
import type { Store } from '../store/store.ts';
import { similar } from '../util/nearest.ts';
import { ThresherError } from '../worker/errors.ts';
import { workerStatuses } from '../worker/status.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type Column, oneLine, type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { whyNoMore } from './queues.ts';
import { countArgument, workerColumns } from './workers.ts';

/** A request, and why it waits. */
interface Shown extends RequestView {
  readonly why: string | null;
}

const columns: readonly Column<Shown>[] = [
  { title: 'REQUEST', value: ({ id }) => id },
  { title: 'QUEUE', value: ({ queueName }) => queueName },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'COUNT', value: ({ count }) => count },
  { title: 'WORKERS', value: ({ workers }) => workersText(workers) },
  { title: 'CREATED', value: ({ creationTime }) => creationTime },
  { title: 'BY', value: ({ by }) => by },
  { title: 'WHY', value: ({ why, withdrawReason }) => withdrawReason ?? why },
];

/** Workers in the table of one request. */
const shownWorkers = 100;

interface RequestsOptions {
  readonly queue?: string;
  readonly waiting?: true;
  readonly limit: number;
  readonly output: OutputFormat;
}

export function addRequests(command: Command, environment: Environment): void {
  const { out } = environment;
  command
    .argument('[request]', 'id of a request: show it with its workers')
    .option('--queue <queue>', 'only requests to this queue')
    .option('--waiting', 'only those that lack workers')
    .option('--limit <n>', 'at most this many', countArgument, 50)
    .addOption(outputOption())
    .action(async (id: string | undefined, { queue, waiting, limit, output }: RequestsOptions) => {
      await withStore(command.optsWithGlobals<GlobalOptions>(), 'read', async ({ store, dir }) => {
        const records =
          id === undefined
            ? await store.requests.list({ queue, open: waiting, limit })
            : [await findRequest(store, id)];
        const known = {
          isRunning: (await daemonOn(store, dir)) !== undefined,
          queues: await store.queues.all(),
          own: readRequestReasons(dir),
        };
        const shown = records.map((record) => withReason(record, known));
        if (id === undefined) {
          if (output === 'json') printJson(out, shown);
          else printTable(out, columns, shown);
          return;
        }
        const workers = (await store.requests.workersOf(id, shownWorkers)).map(workerView);
        if (output === 'json') {
          printJson(
            out,
            shown.map((request) => ({ ...request, shownWorkers: workers })),
          );
          return;
        }
        for (const request of shown) printFacts(out, request);
        out.write('\n');
        printTable(out, workerColumns, workers);
      });
    });
}

/** @throws ThresherError `no-such-request` */
export async function findRequest(store: Store, id: string): Promise<RequestRecord> {
  const record = await store.requests.byId(id);
  if (record !== undefined) return record;
  const known = (await store.requests.list({ limit: 100 })).map((one) => one.id);
  const near = similar(id, known);
  const hint = near.length > 0 ? `; did you mean ${near.join(', ')}?` : '';
  throw new ThresherError('no-such-request', `there is no request ${id}${hint}`);
}

/** Facts that the last daemon left in the state directory. */
interface Known {
  readonly isRunning: boolean;
  readonly queues: readonly QueueReport[];
  readonly own: WhyWaiting;
}

function withReason(record: RequestRecord, { isRunning, queues, own }: Known): Shown {
  const view = requestView(record);
  if (view.state !== 'waiting') return { ...view, why: null };
  const queue = queues.find((report) => report.queue === record.queue);
  const reasons = whyRequestWaits(record, queue, own(record));
  return { ...view, why: whyNoMore({ reasons: isRunning ? reasons : [daemonDown, ...reasons] }) };
}

function workersText(workers: RequestView['workers']): string {
  return workerStatuses
    .filter((status) => (workers[status] ?? 0) > 0)
    .map((status) => `${workers[status] ?? 0} ${status}`)
    .join(', ');
}

function printFacts(out: NodeJS.WritableStream, { workers, payload, ...facts }: Shown): void {
  const shown = Object.entries({
    ...facts,
    workers: workersText(workers),
    payload: payload.join(', '),
  }).filter(([, value]) => value !== null && value !== '');
  const width = Math.max(...shown.map(([key]) => key.length));
  for (const [key, value] of shown) {
    const text = typeof value === 'string' ? oneLine(value) : JSON.stringify(value);
    out.write(`${key.padEnd(width)}  ${text}\n`);
  }
}
