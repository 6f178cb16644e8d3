import { type Command, InvalidArgumentError } from 'commander';
import { runningDaemon } from '../daemon/lock.ts';
import { newRequest } from '../daemon/requests/new-request.ts';
import { requestView } from '../daemon/requests/request-view.ts';
import { workerView } from '../daemon/view.ts';
import type { WorkerRecord } from '../store/rows.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import { mostWorkers } from '../worker/operator-request.ts';
import { type Environment, ExitStatus, type GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { payloadOf, type PayloadOptions } from './request-payload.ts';
import { exitStatusOf, followRequest, noExitStatus, type Opened, untilEnded } from './wait-for-request.ts';

interface SubmitOptions extends PayloadOptions {
  readonly count: number;
  readonly wait?: true;
  readonly follow?: true;
  readonly output: OutputFormat;
}

/** Exit status after Ctrl-C, as shells have it. */
const interrupted = 130;

function countArgument(text: string): number {
  const count = Number(text);
  if (/^\d{1,9}$/.test(text) && count >= 1 && count <= mostWorkers) return count;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${mostWorkers}.`);
}

const collect = (text: string, before: readonly string[] | undefined) => [...(before ?? []), text];

export function addSubmit(command: Command, environment: Environment): void {
  command
    .usage('[options] <queue> [-- arg...]')
    .argument('<queue>', 'name of a queue')
    .argument('[arg...]', "after --: program and arguments, in the place of the template's own")
    .option('--count <n>', 'so many workers', countArgument, 1)
    .option('--file <path[:name]>', 'a file that each worker gets, with its permissions', collect)
    .option('--secret-file <path[:name]>', 'a file that only the worker may read', collect)
    .option('--env <name=value>', "a variable beside the template's own", collect)
    .option('--value <name=value>', 'text for ${payload.NAME} in the template', collect)
    .option(
      '--wait',
      `wait for the end; exit status: the worst of the workers, ${noExitStatus} where one has none`,
    )
    .option('--follow', 'the same, and show the standard output of the workers, one after the other')
    .addOption(outputOption())
    .action(async (queue: string, argv: string[], options: SubmitOptions) => {
      if (options.follow === true && options.output === 'json')
        throw new ThresherError('usage', '--follow prints logs, and --output json does not go with it');
      const files = new OperatorFiles({ clock: environment.clock });
      const payload = await payloadOf(options, argv, files);
      await withStore(command.optsWithGlobals<GlobalOptions>(), 'write', async (opened) => {
        const { store, dir } = opened;
        const { clock, random } = environment;
        const isRunning = runningDaemon(dir) !== undefined;
        const input = { queue, count: options.count, payload };
        const request = newRequest(input, 'command-line', await store.queues.all(), random, isRunning);
        await store.requests.add(request, clock.now());
        await tell(request.id, opened, options, environment);
      });
    });
}

async function tell(
  id: string,
  opened: Opened,
  options: SubmitOptions,
  environment: Environment,
): Promise<void> {
  const { store, dir } = opened;
  const { out, err } = environment;
  const isWaiting = options.wait === true || options.follow === true;
  const isJson = options.output === 'json';
  const record = await store.requests.byId(id);
  if (record === undefined) throw new ThresherError('no-such-request', `there is no request ${id}`);
  const workers = `${record.count} ${record.count === 1 ? 'worker' : 'workers'} of ${record.queue}`;
  const later =
    runningDaemon(dir) === undefined ? '; no daemon is running: it is taken up when one starts' : '';
  // The log of a worker is alone on the standard output.
  if (isJson && !isWaiting) printJson(out, [requestView(record)]);
  else (isWaiting ? err : out).write(`request ${id}: ${oneLine(workers)}${later}\n`);
  if (!isWaiting) return;
  const stop = new AbortController();
  const onInterrupt = () => {
    stop.abort();
  };
  process.once('SIGINT', onInterrupt);
  try {
    if (options.follow === true) await followRequest(id, opened, environment, stop.signal);
    const ended = await untilEnded(id, opened, environment, stop.signal);
    if (ended === undefined) {
      err.write(`thresher: request ${id} goes on; "thresher withdraw ${id}" takes it back\n`);
      throw new ExitStatus(interrupted);
    }
    const now = (await store.requests.byId(id)) ?? record;
    if (isJson) printJson(out, [{ ...requestView(now), ended: ended.map(workerView) }]);
    else for (const worker of ended) err.write(`${oneLine(endOf(worker))}\n`);
    const status = exitStatusOf(ended, record.count);
    if (status !== 0) throw new ExitStatus(status);
  } finally {
    process.removeListener('SIGINT', onInterrupt);
  }
}

function endOf({ workerId, status, exitCode, errorCode, diagMessage }: WorkerRecord): string {
  const exit = exitCode === null ? '' : `, exit status ${exitCode}`;
  const why = errorCode === null ? '' : ` (${errorCode}: ${diagMessage ?? ''})`;
  return `worker ${workerId}: ${status}${exit}${why}`;
}
