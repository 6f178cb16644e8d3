import { basename } from 'node:path';
import { boundedValue, rangeRefusal } from '../../../clients/htcondor/submit-commands.ts';
import { ThresherError, toReason } from '../../../worker/errors.ts';
import { withHostname } from '../../../util/hostname.ts';
import type { WorkerError, WorkerToStart } from '../../../worker/worker.ts';
import { payloadRefusal } from '../../contracts/payload-refusal.ts';
import { payloadKeyOf } from '../../contracts/placeholders.ts';
import { bringsProgram } from '../payload/bundle.ts';
import { identityText, marks } from '../marks.ts';
import { ceName } from '../place/ce-list.ts';
import { bundlePath, ownProgram, withBundle } from './bundled.ts';
import { ownNumbersOf, withCommands } from './commands.ts';
import { outputPath, withLeftOutput } from './left-output.ts';
import { type BatchFacts, logSubdirOf, type Values, valuesOf } from './placeholders.ts';
import { hasNewLine } from '../one-line.ts';
import { classAdText, textOf } from './quoting.ts';
import { type Command, contradicts, type Statement } from './statements.ts';
import { type Column, rowsOf } from './rows.ts';
import { checkAmounts, withinRange } from './sizes.ts';
import type { CondorTemplate } from './template.ts';

export interface DescribedBatch {
  /** The text for `condor_submit`; "" where no worker is left. */
  readonly description: string;
  /** Its workers in the order of their processes: the first is `CLUSTER.0`. */
  readonly workers: readonly WorkerToStart[];
  /** Those that HTCondor cannot be told of, and why. */
  readonly rejected: ReadonlyMap<number, WorkerError>;
}

export interface DescribeOptions extends BatchFacts {
  /** The factory's own job log, beside the job's: `dagman_log`. Absolute. */
  readonly factoryLog?: string;
  /** The queue of the workers. */
  readonly queue?: string;
  /** Number of the queue's configuration. */
  readonly configId?: number;
  /** Where the bundle of each worker lies: all of the batch have one, or none has. */
  readonly bundleOf?: (worker: WorkerToStart) => string;
  /** The file that the output of a worker becomes. */
  readonly outputOf?: (worker: WorkerToStart) => string;
}

/**
 * One submit description for a whole batch: `queue ... from` with a row per worker. What is the same for all workers
 * stands there once; what differs is in the rows. There is one queue statement because HTCondor 24 no longer takes several,
 * which is how Harvester submits; and so no command of one worker can be left over for the next.
 * @param workers all with the same `output` in their payloads, and the same `submit` but for its numbers (`isOwnNumber`)
 */
export function describeBatch(
  template: CondorTemplate,
  workers: readonly WorkerToStart[],
  options: DescribeOptions,
): DescribedBatch {
  const rejected = new Map<number, WorkerError>();
  let keys: ReadonlySet<string>;
  let images: ReadonlySet<string>;
  let statements: readonly Statement[];
  let custom: readonly (readonly [string, string])[];
  try {
    custom = customAttributes(options.config);
    const ofQueue = [...template.statements, ...accountOf(template, options.config)];
    const own = withCommands(ofQueue, workers[0]?.payload?.submit, options.config.submitCommands);
    const all = [...lastOfEach(own), ...defaultsFor({ ...template, statements: own }, options)];
    const leaves = workers[0]?.payload?.output;
    const usual = typeof leaves === 'boolean' ? withLeftOutput(all, leaves) : all;
    keys = payloadKeysOf(usual);
    images = payloadKeysOf(usual.filter((one) => one.kind === 'command' && isImage.test(one.key)));
    statements =
      options.bundleOf === undefined ? usual : withBundle(usual, { spooled: options.config.useSpool });
  } catch (error) {
    if (!(error instanceof ThresherError)) throw error;
    const reason = toReason(error);
    return { description: '', workers: [], rejected: new Map(workers.map((one) => [one.workerId, reason])) };
  }
  const rendered = workers.flatMap((worker) => {
    const refusal =
      keys.size === 0 && worker.payload === undefined ? undefined : payloadRefusal(worker, keys, images);
    if (refusal !== undefined) {
      rejected.set(worker.workerId, refusal);
      return [];
    }
    try {
      checkAmounts(worker, options.config);
      return [{ worker, texts: renderAll(statements, valuesFor(worker, template, options)) }];
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      rejected.set(worker.workerId, toReason(error));
      return [];
    }
  });
  const [first] = rendered;
  if (first === undefined) return { description: '', workers: [], rejected };
  const lines: string[] = [];
  const columns: Column[] = [];
  for (const [index, statement] of statements.entries()) {
    if (statement.kind === 'verbatim') lines.push(statement.text);
    if (statement.kind === 'custom-attributes')
      lines.push(...custom.map(([key, text]) => `${key} = ${text}`));
    if (statement.kind !== 'command') continue;
    const text = first.texts[index] ?? '';
    // A default that says nothing.
    if (statement.line === 0 && rendered.every(({ texts }) => texts[index] === '')) continue;
    if (rendered.every(({ texts }) => texts[index] === text)) {
      lines.push(`${statement.key} = ${text}`);
      continue;
    }
    columns.push({ key: statement.key, texts: rendered.map(({ texts }) => texts[index] ?? '') });
  }
  const described = rendered.map(({ worker }) => worker);
  const identities = described.map((worker) => plain(classAdText(identityText(worker))));
  const rows = rowsOf(described, columns, identities);
  const description = [
    ...lines,
    ...rows.lines,
    // Last, so that nothing in the template can say otherwise.
    ...marksOf(options),
    ...(described.some(({ payload }) => payload !== undefined) ? boundsOf(statements, options) : []),
    ...rows.queue,
  ].join('\n');
  return { description, workers: described, rejected };
}

/**
 * What the job of a third party may not do while it runs. HTCondor lets it set attributes `Chirp...` of its ad to any expression, of any size and of what
 * HTCondor keeps from users (`condor_chirp`; `WantDelayedUpdates` is true by default). And it brings back files of any size, also such as took no disk on
 * the machine of the job: a schedd whose disk is full does not start again.
 */
function boundsOf(statements: readonly Statement[], { config }: DescribeOptions): string[] {
  const most = config.max_transfer_output_mb;
  const isSaid = statements.some((one) => one.kind === 'command' && transferBound.test(one.key));
  return [
    '+WantDelayedUpdates = False',
    ...(most > 0 && !isSaid ? [`max_transfer_output_mb = ${most}`] : []),
  ];
}

const transferBound = /^(max_transfer_output_mb|(\+|my\.)?maxtransferoutputmb)$/i;

/** Commands whose value is the image that a job runs in. */
const isImage = /^(container|docker)_?image$|^(\+|my\.)singularityimage$/i;

/** The keys of payload values that a template names. */
export function payloadKeysOf(statements: readonly Statement[]): ReadonlySet<string> {
  const names = statements.flatMap((one) => (one.kind === 'command' ? one.names : []));
  return new Set(names.flatMap((name) => payloadKeyOf(name) ?? []));
}

/** Keys that the factory writes itself, in the form of `keyOf`. */
const ownMarks: ReadonlySet<string> = new Set([
  'my.harvesterid',
  ...Object.values(marks).map((name) => `my.${name.toLowerCase()}`),
]);

/**
 * The last of two statements of one command counts, as in HTCondor. Only that one is written, since HTCondor warns of macros that
 * no command uses. A template with branches stays as it is.
 */
function lastOfEach(statements: readonly Statement[]): Statement[] {
  if (statements.some(({ kind }) => kind === 'verbatim')) return [...statements];
  const last = new Map(statements.map((one) => [one.kind === 'command' ? keyOf(one.key) : '', one]));
  const contradiction = contradicts(statements);
  return statements.filter((one) => {
    if (one.kind !== 'command') return true;
    const key = keyOf(one.key);
    return last.get(key) === one && !ownMarks.has(key) && one !== contradiction;
  });
}

/** `+Name` and `My.name` are the same attribute. */
function keyOf(key: string): string {
  return key.toLowerCase().replace(/^\+/, 'my.');
}

function renderAll(statements: readonly Statement[], values: Values): string[] {
  return statements.map((statement) => {
    if (statement.kind !== 'command') return '';
    const text = statement.render(values);
    return whole(statement.key, withinRange(statement, text));
  });
}

/** @throws ThresherError `htcondor-value` for a text that its line does not end. */
function whole(key: string, text: string): string {
  // HTCondor trims a line before it looks for it.
  if (!text.trimEnd().endsWith('\\')) return text;
  const message = `${key} ends with a backslash, by which the next line would become a part of it`;
  throw new ThresherError('htcondor-value', message);
}

function marksOf({ factoryId, harvesterId, factoryLog, queue, configId, ce }: DescribeOptions): string[] {
  return [
    `+${marks.factory} = ${classAdString(factoryId)}`,
    `+harvesterID = ${classAdString(harvesterId)}`,
    `+${marks.worker} = "$(thresherWorker)"`,
    `+${marks.identity} = "$(thresherIdentity)"`,
    ...(queue === undefined ? [] : [`+${marks.queue} = ${classAdString(queue)}`]),
    ...(configId === undefined ? [] : [`+${marks.config} = ${configId}`]),
    ...(ce === undefined ? [] : [`+${marks.ce} = ${classAdString(ceName(ce))}`]),
    ...(factoryLog === undefined ? [] : [`dagman_log = ${plain(factoryLog)}`]),
  ];
}

function classAdString(text: string): string {
  return `"${plain(classAdText(text))}"`;
}

function customAttributes({
  customSubmitAttributes,
}: DescribeOptions['config']): (readonly [string, string])[] {
  return Object.entries(customSubmitAttributes).map(([name, value]) => {
    const key = `+${name}`;
    const text = String(value);
    // CRIC may have any expression there, which nobody but HTCondor knows the value of.
    const refusal = rangeRefusal(key, text.trim());
    if (refusal !== undefined)
      throw new ThresherError(
        'htcondor-value',
        `${name} of customSubmitAttributes (jdl.plusattr in CRIC): ${refusal}`,
      );
    return [key, whole(name, plain(boundedValue(key, text)))];
  });
}

/**
 * A text that stands once for all workers: names and options, which no placeholder made inert.
 * @throws ThresherError `htcondor-value` for what would end the line and begin a command of its own.
 */
function plain(text: string): string {
  if (hasNewLine(text)) {
    const message = `${JSON.stringify(text)} has a new line or another control character; it must be one line of text`;
    throw new ThresherError('htcondor-value', message);
  }
  return text.replaceAll('$', () => '$(DOLLAR)');
}

/** `gtag` is the address of the job's output, and so depends on what the template calls it. Source: Harvester's make_a_jdl. */
function valuesFor(worker: WorkerToStart, template: CondorTemplate, options: DescribeOptions): Values {
  const known = { ...valuesOf(worker, options), ...ownNumbersOf(worker.payload?.submit) };
  const values = withBundleOf(worker, known, options);
  const { logBaseURL } = options.config;
  const output = template.statements.findLast(
    (one): one is Command => one.kind === 'command' && one.key.toLowerCase() === 'output',
  );
  if (logBaseURL === undefined || output === undefined) return values;
  const base = withHostname(logBaseURL, options.hostname)
    .replaceAll('${harvester_id}', () => options.harvesterId)
    .replaceAll('[ScheddHostname]', () => scheddHostname(options.submissionHost))
    .replaceAll('$', () => '$(DOLLAR)');
  return {
    ...values,
    gtag: { live: `${base}/${logSubdirOf(options.now)}/${basename(output.render(values))}` },
  };
}

function withBundleOf(
  worker: WorkerToStart,
  values: Values,
  { bundleOf, outputOf }: DescribeOptions,
): Values {
  return {
    ...values,
    ...(bundleOf !== undefined && {
      [bundlePath]: bundleOf(worker),
      [ownProgram]: bringsProgram(worker.payload),
    }),
    ...(outputOf !== undefined && { [outputPath]: outputOf(worker) }),
  };
}

/** "ap1.site" of "schedd@ap1.site:9618,collector". */
function scheddHostname(submissionHost: string): string {
  return (submissionHost.split(',', 1)[0] ?? '').replace(/^[^@]*@/, '').replace(/:\d+$/, '');
}

/** Where the job runs on a machine of the pool itself; a CE reads attributes that its template names. */
const onSlots = ['vanilla', 'container', 'docker', 'parallel'];

/** The accounting group that the queue names, and the user in it, unless the template has its own. No payload has another then. */
function accountOf(
  { statements }: CondorTemplate,
  { accounting_group, accounting_group_user }: DescribeOptions['config'],
): Command[] {
  const said = (key: string) =>
    statements.some((one) => one.kind === 'command' && one.key.toLowerCase() === key);
  return Object.entries({ accounting_group, accounting_group_user }).flatMap(([key, text]) =>
    text === undefined || said(key)
      ? []
      : [{ kind: 'command', key, line: 0, names: [], text: '', render: () => plain(text) }],
  );
}

/** Commands that a template need not have. What it says itself, counts. Submit text of Harvester gets no sizes it did not ask for. */
function defaultsFor(template: CondorTemplate, { config }: DescribeOptions): Command[] {
  const said = new Set(
    template.statements.map((one) => (one.kind === 'command' ? one.key.toLowerCase() : '')),
  );
  const sized = template.kind === 'yaml' && onSlots.includes(template.universe);
  const has = (key: string, wanted: boolean, render: Command['render']): Command[] =>
    wanted && !said.has(key) ? [{ kind: 'command', key, line: 0, names: [], text: '', render }] : [];
  const value = (key: string, text: string | undefined, when = true) =>
    has(key, text !== undefined && when, () => plain(text ?? ''));
  const number = (name: string) => (values: Values) => textOf(values[name] ?? null);
  // Where the queue does not say a size the pool's own default is right, and 1 MB is not.
  const size = (name: string, option: 'minRamCount' | 'maxDiskCount') => (values: Values) =>
    Number(values[option]) > 0 ? number(name)(values) : '';
  const custom: Command[] = template.statements.some(({ kind }) => kind === 'custom-attributes')
    ? []
    : customAttributes(config).map(([key, text]) => ({
        kind: 'command',
        key,
        line: 0,
        names: [],
        text: '',
        render: () => text,
      }));
  return [
    ...has('request_cpus', sized, number('nCoreTotal')),
    ...has('request_memory', sized, size('requestRam', 'minRamCount')),
    ...has('request_disk', sized, size('requestDisk', 'maxDiskCount')),
    ...has('request_gpus', sized && config.requestGpus > 0, number('requestGpus')),
    // A job that runs longer is held with code 47, and its worker has failed.
    ...has('allowed_execute_duration', sized && !said.has('allowed_job_duration'), ({ maxWalltime }) =>
      typeof maxWalltime === 'number' && maxWalltime > 0 ? String(maxWalltime) : '',
    ),
    ...value('container_image', config.container_image, template.universe === 'container'),
    ...custom,
  ];
}
