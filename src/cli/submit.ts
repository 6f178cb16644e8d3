import { type Command, InvalidArgumentError } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { shapeNamed } from '../daemon/pool/shape.ts';
import { newRequest } from '../daemon/requests/new-request.ts';
import { requestView } from '../daemon/requests/request-view.ts';
import { workerView } from '../daemon/view.ts';
import type { WorkerRecord } from '../store/rows.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';
import { mostWorkers } from '../worker/operator-request.ts';
import type { Payload } from '../worker/payload.ts';
import type { Requirements } from '../worker/worker.ts';
import { type Environment, ExitStatus, type GlobalOptions } from './environment.ts';
import { settingsFile, withStore } from './opened.ts';
import { oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { MistakesInFiles } from './problems.ts';
import { payloadOf, type PayloadOptions } from './request-payload.ts';
import { exitStatusOf, followRequest, noExitStatus, type Opened, untilEnded } from './wait-for-request.ts';

interface SubmitOptions extends PayloadOptions {
  readonly count: number;
  readonly shape?: string;
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
    .option('--shape <name>', 'of this size, one of the shapes of a queue with the demand htcondor-idle')
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
      const given = await payloadOf(options, argv, files);
      const globals = command.optsWithGlobals<GlobalOptions>();
      const { requirements, payload } = await shaped(queue, options.shape, given, globals, files);
      await withStore(globals, 'write', async (opened) => {
        const { store, dir } = opened;
        const { clock, random } = environment;
        const isRunning = (await daemonOn(store, dir)) !== undefined;
        const input = { queue, count: options.count, requirements, payload };
        const request = newRequest(input, 'command-line', await store.queues.all(), random, isRunning);
        await store.requests.add(request, clock.now());
        await tell(request.id, opened, options, environment);
      });
    });
}

/** @param given variables and values of the command line, which win over those of the shape */
async function shaped(
  queue: string,
  name: string | undefined,
  given: Payload,
  { config, stateDir }: GlobalOptions,
  files: OperatorFiles,
): Promise<{ readonly requirements: Partial<Requirements>; readonly payload: Payload }> {
  if (name === undefined) return { requirements: {}, payload: given };
  const answer = await shapeNamed({ queue, name }, settingsFile({ config }), stateDir, files);
  if (!answer.ok) throw new MistakesInFiles(answer.problems);
  const { requirements, env, values } = answer.shape;
  const payload = { ...given, env: { ...env, ...given.env }, values: { ...values, ...given.values } };
  return { requirements, payload };
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
    (await daemonOn(store, dir)) === undefined
      ? '; no daemon is running: it is taken up when one starts'
      : '';
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
