import type { Command } from 'commander';
import { managersOf } from '../config/queues/credential-managers.ts';
import {
  judgeTemplates,
  type QueueFileResult,
  type QueueVerdict,
  readQueueFile,
} from '../config/queues/queues.ts';
import { type StartWrite, startWrites, writeText } from '../config/queues/start-writes.ts';
import { queueStates, stateOf } from '../config/queues/queue-config.ts';
import { type Configuration, readConfiguration, type Readable } from '../daemon/configuration.ts';
import { rehearse } from '../daemon/rehearsal.ts';
import { fromPointer, type Problem } from '../util/located.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { similar } from '../util/nearest.ts';
import { ThresherError } from '../worker/errors.ts';
import { type Environment, ExitStatus, type GlobalOptions, noLog } from './environment.ts';
import { settingsFile } from './opened.ts';
import { oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { wouldNotStart } from './start-checks.ts';
import { counted, countProblems, foldedLines, problemLine, problemView, worstFirst } from './problems.ts';
import { type Found, equalToldOnce, templatesToldOnce } from './told-once.ts';

interface CheckOptions {
  readonly output: OutputFormat;
  readonly strict?: true;
  readonly server?: true;
}

/** The requested part of the findings. */
interface Report extends Found {
  /** Each template as a queue that used it; only of a file that has templates and no queue. */
  readonly templates: readonly QueueVerdict[];
  /** Undefined where the settings do not even say which the queue file is. */
  readonly queueFile: QueueFileResult | undefined;
  /** Files and Secrets that credential managers would write if a daemon started with these queues. */
  readonly writes: readonly StartWrite[];
}

export function addCheckConfig(command: Command, environment: Environment): void {
  command
    .argument('[queue...]', 'only these queues, listed in qconf.queueList or not')
    .option('--strict', 'exit status 1 also with a warning')
    .option(
      '--server',
      'also ask the API server of each Kubernetes queue whether it would take its Job; it keeps nothing',
    )
    .addOption(outputOption())
    .action(async (queues: string[], { output, strict, server }: CheckOptions) => {
      const { config, stateDir } = command.optsWithGlobals<GlobalOptions>();
      const files = new OperatorFiles({ clock: environment.clock });
      const found = await readConfiguration(settingsFile({ config }), stateDir, files);
      const start = found.settings === undefined ? [] : await wouldNotStart(found.settings, files);
      const ofSettings = [...(await ofManagers(found)), ...(found.queueFile?.sources.problems ?? [])];
      const problems = [...found.problems, ...start, ...ofSettings];
      const judged = await makeReport({ ...found, problems }, queues);
      const asked = server ? await withServers(judged, found, environment) : judged;
      const report = { ...asked, writes: await writesOf(asked, found) };
      if (output === 'json') printJson(environment.out, jsonOf(report));
      else environment.out.write(`${textOf(report, queues.length > 0).join('\n')}\n`);
      const wrong = strict ? ['error', 'warning'] : ['error'];
      if (allProblems(report).some(({ severity }) => wrong.includes(severity))) throw new ExitStatus(1);
    });
}

/** Mistakes of the credential managers of the settings; those of queues are checked with their queues. */
async function ofManagers({ settings, queueFile }: Configuration): Promise<readonly Problem[]> {
  if (settings === undefined || queueFile === undefined) return [];
  const { catalogue, options, sources } = queueFile;
  return (await managersOf(settings, catalogue, options.files, sources)).problems;
}

/** The writes of the settings' managers and of those of ready queues. */
async function writesOf(
  { verdicts }: Pick<Report, 'verdicts'>,
  { settings, queueFile }: Configuration,
): Promise<readonly StartWrite[]> {
  if (settings === undefined || queueFile === undefined) return [];
  const { catalogue, options, sources } = queueFile;
  const queues = verdicts.flatMap(({ config }) => config ?? []);
  const { choices } = await managersOf(settings, catalogue, options.files, sources);
  return startWrites(choices, queues, catalogue, options.files);
}

/** A report whose writes are not known yet. */
type Judged = Omit<Report, 'writes'>;

async function makeReport(
  { problems, queueFile: readable }: Configuration,
  wanted: readonly string[],
): Promise<Judged> {
  if (readable === undefined) return { general: problems, verdicts: [], templates: [], queueFile: undefined };
  const { file, catalogue, options } = readable;
  const all = await readQueueFile(file, catalogue, options);
  const ofFile = all.problems.filter(({ queue }) => queue === undefined);
  const judged = all.readable ? await judgeTemplates(file, catalogue, options) : [];
  const alone = all.verdicts.length === 0 && all.unlisted.length === 0;
  if (wanted.length === 0 || !all.readable) {
    const found = { general: [...problems, ...ofFile], verdicts: all.verdicts };
    if (alone) return { ...found, templates: judged, queueFile: all };
    return { ...templatesToldOnce(found, judged), templates: [], queueFile: all };
  }
  const queueFile = await readWanted(readable, all, wanted);
  const { verdicts } = queueFile;
  const templates = new Set(verdicts.map(({ template }) => template));
  const near = queueFile.problems.filter(({ queue, pointer }) => {
    const [entry] = fromPointer(pointer);
    return queue === undefined && (entry === undefined || templates.has(entry));
  });
  const theirs = judged.filter(({ name }) => templates.has(name));
  const found = templatesToldOnce({ general: [...problems, ...near], verdicts }, theirs);
  return { ...found, templates: [], queueFile };
}

/** With what the servers say to the queues that are ready so far. */
async function withServers(
  report: Judged,
  { settings, queueFile }: Configuration,
  { clock, random }: Environment,
): Promise<Judged> {
  if (settings === undefined || queueFile === undefined) return report;
  const configs = report.verdicts.flatMap(({ config }) => config ?? []);
  const { signal } = new AbortController();
  const { file, catalogue } = queueFile;
  const { files } = queueFile.options;
  const options = { settings, catalogue, queueFile: file, clock, files, random, log: noLog, signal };
  const said = await rehearse(configs, options);
  const verdicts = report.verdicts.map((verdict) => {
    const problems = [...verdict.problems, ...(said.get(verdict.name) ?? [])];
    // A server that did not answer has refused nothing.
    const answers = problems.filter(({ code }) => code !== 'server-unknown');
    return { ...verdict, problems, state: stateOf(answers) };
  });
  return { ...report, verdicts };
}

/** Only these queues, each once, also those that `qconf.queueList` leaves out. @throws ThresherError `no-such-queue` */
async function readWanted(
  { file, catalogue, options }: Readable,
  all: QueueFileResult,
  wanted: readonly string[],
): Promise<QueueFileResult> {
  const names = [...all.verdicts.map(({ name }) => name), ...all.unlisted];
  const unknown = [...new Set(wanted)].filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    const lines = unknown.map((name) => whatIsIt(name, file, names, all.templates));
    throw new ThresherError('no-such-queue', lines.join('\n'));
  }
  const result = await readQueueFile(file, catalogue, { ...options, queueList: wanted });
  return { ...result, unlisted: all.unlisted };
}

/** A hint for a name that is no queue: the name is a template, or probably a misspelt queue. */
export function whatIsIt(
  name: string,
  file: string,
  queues: readonly string[],
  templates: readonly string[],
): string {
  if (templates.includes(name))
    return `${name} is a template in ${file}: it is checked with each of its queues`;
  const near = similar(name, queues);
  const hint =
    near.length > 0
      ? `did you mean ${near.join(', ')}?`
      : `it has ${queues.length} queues: ${queues.slice(0, 10).join(', ')}${queues.length > 10 ? ', ...' : ''}`;
  return `there is no queue ${name} in ${file}; ${hint}`;
}

function allProblems({ general, verdicts, templates }: Judged): Problem[] {
  return [...general, ...[...templates, ...verdicts].flatMap(({ problems }) => problems)];
}

function jsonOf({ general, verdicts, templates, writes }: Report) {
  const whole = { queue: null, state: null, problems: general.map(problemView), writes };
  return [
    ...(general.length > 0 || writes.length > 0 ? [whole] : []),
    ...[...templates, ...verdicts].map(({ name, state, problems }) => ({
      queue: name,
      state,
      problems: problems.map(problemView),
    })),
  ];
}

/**
 * The worst comes at the end, where a terminal stands still. A user who names queues gets every problem on its own
 * line.
 */
function textOf(report: Report, inFull: boolean): string[] {
  const { queueFile, writes } = report;
  const judged = { general: report.general, verdicts: [...report.templates, ...report.verdicts] };
  const { rest, once } = inFull ? { rest: judged, once: [] } : equalToldOnce(judged);
  const { general, verdicts } = rest;
  const width = Math.max(0, ...verdicts.map(({ name }) => oneLine(name).length));
  const shown = new Map<string, string>();
  const first = bySeverityUp(general).map((some) => (inFull ? some.map(problemLine) : foldedLines(some)));
  const toldOnce = bySeverityUp(once).map((some) => some.map(problemLine));
  const lines = [
    ...writes.map((write) => oneLine(writeText(write))),
    ...first.flatMap((some, severity) => [...some, ...(toldOnce[severity] ?? [])]),
  ];
  for (const state of queueStates) {
    for (const verdict of verdicts.filter((one) => one.state === state)) {
      const unlisted = queueFile?.unlisted.includes(verdict.name) ? ['not in qconf.queueList'] : [];
      const isTemplate = report.templates.some(({ name }) => name === verdict.name);
      const template = isTemplate ? ['a template, checked as a queue that used it'] : [];
      const standing = [...template, ...unlisted, ...(verdict.standing?.slice(0, 1) ?? [])].join('; ');
      // For a queue that does not run, this is not the first reason.
      const remark =
        standing === '' ? '' : state === 'ready' ? `submits nothing: ${standing}` : `(${standing})`;
      lines.push(`${oneLine(verdict.name).padEnd(width)}  ${state.padEnd(10)}  ${oneLine(remark)}`.trimEnd());
      const own = inFull ? worstFirst(verdict.problems).map(problemLine) : unseen(verdict, shown);
      lines.push(...own.map((line) => `  ${line}`));
    }
  }
  return [...lines, summary(report)];
}

/** Notices, then warnings, then errors: without a queue below them they are the last that is read. */
function bySeverityUp(problems: readonly Problem[]): Problem[][] {
  return (['notice', 'warning', 'error'] as const).map((severity) =>
    problems.filter((problem) => problem.severity === severity),
  );
}

/** A remark that a queue shares with one above, through their template, is not repeated. */
function unseen({ name, problems }: QueueVerdict, shown: Map<string, string>): string[] {
  const lines: string[] = [];
  const before = new Map<string, string[]>();
  for (const line of foldedLines(problems)) {
    const above = shown.get(line);
    if (above === undefined) {
      shown.set(line, name);
      lines.push(line);
    } else before.set(above, [...(before.get(above) ?? []), /\[([\w-]+)\]$/.exec(line)?.[1] ?? line]);
  }
  return [
    ...lines,
    ...[...before].map(([queue, codes]) => `as ${oneLine(queue)} above: ${codes.join(', ')}`),
  ];
}

function summary(report: Report): string {
  const { verdicts, queueFile } = report;
  const problems = countProblems(allProblems(report));
  if (queueFile?.readable !== true) return `no queue could be read; ${problems}`;
  const left = queueFile.unlisted.filter((name) => verdicts.every((verdict) => verdict.name !== name)).length;
  const unlisted = left === 0 ? '' : `; ${left} more not in qconf.queueList`;
  const found = `${countedBy('queue', verdicts)}; ${problems}`;
  const { templates } = report;
  const known = queueFile.templates.length;
  // A file of templates alone has been judged by them.
  const alone = templates.length > 0 ? `; ${countedBy('template', templates)}` : '';
  const beside = verdicts.length > 0 || known === 0 ? '' : `; ${counted(known, 'template')}`;
  return `${found}${alone === '' ? beside : alone}${unlisted}`;
}

/** "2 queues: 1 ready, 1 incomplete, 0 refused"; states of none are not worth a word. */
function countedBy(what: string, verdicts: readonly QueueVerdict[]): string {
  const states = queueStates.map(
    (state) => `${verdicts.filter((verdict) => verdict.state === state).length} ${state}`,
  );
  const all = counted(verdicts.length, what);
  return verdicts.length === 0 ? all : `${all}: ${states.join(', ')}`;
}
