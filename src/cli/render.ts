import { type Command, InvalidArgumentError, Option } from 'commander';
import { readQueueFile, type QueueConfig, type QueueVerdict } from '../config/queues/queues.ts';
import { isError } from '../config/settings/settings.ts';
import { readConfiguration } from '../daemon/configuration.ts';
import { renderedText } from '../daemon/rendered-text.ts';
import { type RenderedWorker, renderExisting, renderNew } from '../daemon/rendering.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { knownPilotTypes } from '../plugins/contracts/pilot-options.ts';
import { maskText, withoutSecrets } from '../util/secrets.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Requirements } from '../worker/worker.ts';
import { whatIsIt } from './check-config.ts';
import { type Environment, type GlobalOptions, noLog } from './environment.ts';
import { settingsFile, withStore } from './opened.ts';
import { printJson } from './output.ts';
import { MistakesInFiles } from './problems.ts';
import { findWorker, workerIdArgument } from './worker.ts';
import { fromPointer, type Problem } from '../util/located.ts';

type RenderFormat = 'yaml' | 'sdf' | 'json';

interface RenderOptions {
  readonly worker?: number;
  readonly ncore?: number;
  readonly ram?: number;
  readonly disk?: number;
  readonly walltime?: number;
  readonly resourceType?: string;
  readonly jobType?: string;
  readonly pilotType?: string;
  readonly prodSourceLabel?: string;
  readonly output?: RenderFormat;
}

export function addRender(command: Command, environment: Environment): void {
  command
    .argument('<queue>', 'name of a queue of the queue file')
    .option('--worker <id>', 'an existing worker, by the configuration it was made with', workerIdArgument)
    .option('--ncore <number>', 'cores, instead of those of the queue; from 1', numberFrom(1))
    .option('--ram <MB>', 'memory, instead of that of the queue', numberFrom(0))
    .option('--disk <MB>', 'disk, instead of that of the queue', numberFrom(0))
    .option('--walltime <seconds>', 'wall time, instead of that of the queue', numberFrom(0))
    .option('--resource-type <type>', 'resource type, such as SCORE or MCORE')
    .option('--job-type <type>', 'job type, such as managed')
    .addOption(
      new Option('--pilot-type <type>', 'pilot type, instead of that of the queue').choices(knownPilotTypes),
    )
    .option('--prod-source-label <label>', "label of the pilot's jobs")
    .addOption(
      new Option('--output <format>', "how to print (default: the backend's own form)").choices([
        ...(['yaml', 'sdf', 'json'] as const),
      ]),
    )
    .action(async (queue: string, options: RenderOptions) => {
      const global = command.optsWithGlobals<GlobalOptions>();
      const shown =
        options.worker === undefined
          ? await newWorker(queue, options, global, environment)
          : await existingWorker(command, queue, options.worker, options, global, environment);
      print(shown, options.output ?? shown.format, environment);
    });
}

async function newWorker(
  queue: string,
  options: RenderOptions,
  { config, stateDir }: GlobalOptions,
  { clock, random }: Environment,
): Promise<RenderedWorker> {
  const files = new OperatorFiles({ clock });
  const { problems, settings, queueFile } = await readConfiguration(
    settingsFile({ config }),
    stateDir,
    files,
  );
  if (settings === undefined || queueFile === undefined) throw new MistakesInFiles(problems.filter(isError));
  const { file, catalogue } = queueFile;
  // A queue that is not listed can be shown, too.
  const read = await readQueueFile(file, catalogue, { ...queueFile.options, queueList: undefined });
  if (!read.readable) throw new MistakesInFiles(read.problems.filter(isError));
  const verdict = read.verdicts.find(({ name }) => name === queue);
  if (verdict === undefined) {
    const names = read.verdicts.map(({ name }) => name);
    const users = read.verdicts.filter(({ template }) => template === queue).map(({ name }) => name);
    const message = read.templates.includes(queue)
      ? templateOf(queue, file, users)
      : whatIsIt(queue, file, names, []);
    throw new ThresherError('no-such-queue', message);
  }
  const requirements = requirementsIn(options);
  const { config: ready, notes } = renderable(verdict, file, requirements);
  const shown = await renderNew(ready, requirements, catalogue, {
    settings,
    clock,
    files,
    random,
    log: noLog,
  });
  return { ...shown, notes: [...shown.notes, ...notes] };
}

function templateOf(name: string, file: string, queues: readonly string[]): string {
  const users = queues.length === 0 ? 'no queue uses it' : `name one of its queues: ${queues.join(', ')}`;
  return `${name} is a template in ${file}: ${users}`;
}

async function existingWorker(
  command: Command,
  queue: string,
  workerId: number,
  options: RenderOptions,
  global: GlobalOptions,
  { clock, random }: Environment,
): Promise<RenderedWorker> {
  const changed = command.options.filter(
    (option) =>
      option.attributeName() in options && Object.values<string>(attributes).includes(option.attributeName()),
  );
  if (changed.length > 0) {
    const typed = changed.map(({ long }) => long).join(', ');
    const message = `a worker that there is has its own attributes: leave out --worker, or ${typed}`;
    throw new ThresherError('usage', message);
  }
  return withStore(global, 'read', async ({ store, settings }) => {
    const record = await findWorker(store, workerId);
    if (record.queue !== queue) {
      throw new ThresherError('usage', `worker ${workerId} is one of ${record.queue}, and not of ${queue}`);
    }
    const files = new OperatorFiles({ clock });
    return renderExisting(record, store, { settings, clock, files, random, log: noLog });
  });
}

/** The option of the command line for each attribute of a worker, by its name in `RenderOptions`. */
const attributes = {
  nCore: 'ncore',
  minRamCount: 'ram',
  maxDiskCount: 'disk',
  maxWalltime: 'walltime',
  ...({ resourceType: 'resourceType', jobType: 'jobType', pilotType: 'pilotType' } as const),
  prodSourceLabel: 'prodSourceLabel',
} as const satisfies Record<string, keyof RenderOptions>;

function requirementsIn(options: RenderOptions): Partial<Requirements> {
  const named = Object.entries(attributes).map(
    ([attribute, option]) => [attribute, options[option]] as const,
  );
  return Object.fromEntries(named.filter(([, value]) => value !== undefined));
}

function print(shown: RenderedWorker, output: RenderFormat, { out }: Environment): void {
  const { worker, format, files, notes } = shown;
  const { workerId, name, queue, placement } = worker;
  if (output === 'json') {
    const document = withoutSecrets('', shown.document);
    const environment = withoutSecrets('', shown.environment);
    const whose = { queue, workerId, name, connection: placement };
    printJson(out, [{ ...whose, format, document, environment, files, notes: notes.map(maskText) }]);
    return;
  }
  if (output === 'sdf' && format !== 'sdf') {
    const message = `${queue} is not a queue of HTCondor, and has no submit text: use --output yaml or json`;
    throw new ThresherError('usage', message);
  }
  out.write(renderedText(shown, output));
}

function numberFrom(least: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < least)
      throw new InvalidArgumentError(`It is a whole number from ${least}.`);
    return Number(text);
  };
}

/** Options that name a file which goes with a worker, and which its Job or submit text does not need to be shown. */
const filesOfWorker: readonly string[] = ['executableFile', 'x509UserProxy', 'x509UserProxyAnalysis'];

/**
 * The configuration that a worker of a queue is shown by. A queue that lacks only sizes which the command line gives, or files of
 * a worker on this machine, is shown: `notes` name these files.
 * @throws MistakesInFiles for any other error
 */
function renderable(
  { config, draft, problems }: Pick<QueueVerdict, 'config' | 'draft' | 'problems'>,
  queueFile: string,
  given: Partial<Requirements>,
): { readonly config: QueueConfig; readonly notes: readonly string[] } {
  const errors = problems.filter(isError);
  const lacking = errors.filter((problem) => !isGiven(problem, given));
  const shown = config ?? draft;
  if (shown === undefined || !lacking.every((problem) => isFileOfWorker(problem, queueFile)))
    throw new MistakesInFiles(errors);
  return { config: shown, notes: lacking.map(({ message }) => `missing: ${message}`) };
}

function isGiven({ code, pointer }: Problem, given: Partial<Requirements>): boolean {
  const size = given[optionAt(pointer) as keyof Requirements];
  return code === 'size-not-said' && typeof size === 'number' && size > 0;
}

/** A template names its executable itself: then the problem is in its file. A template that is missing leaves nothing to show. */
function isFileOfWorker({ code, file, pointer }: Problem, queueFile: string): boolean {
  // The text is shown with "None" in the place of the file.
  if (code === 'file-not-said') return true;
  if (code !== 'file-unreadable') return false;
  return file === queueFile ? filesOfWorker.includes(optionAt(pointer)) : pointer === '';
}

function optionAt(pointer: string): string {
  return fromPointer(pointer).at(-1) ?? '';
}
