import type { Command } from 'commander';
import { type ExplainedValue, type Explanation, explainQueue } from '../config/queues/explain.ts';
import { isListed, readQueueFile } from '../config/queues/queues.ts';
import { isError } from '../config/settings/settings.ts';
import { readConfiguration } from '../daemon/configuration.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { readOrigins } from '../config/queues/origins.ts';
import { ThresherError } from '../worker/errors.ts';
import { whatIsIt } from './check-config.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { settingsFile } from './opened.ts';
import { type Column, formatTable, oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { MistakesInFiles, problemLine, problemView, worstFirst } from './problems.ts';

export function addExplain(command: Command, environment: Environment): void {
  command
    .argument('<queue>', 'name of a queue or template of the queue file')
    .addOption(outputOption())
    .action(async (name: string, { output }: { output: OutputFormat }) => {
      const { config, stateDir } = command.optsWithGlobals<GlobalOptions>();
      const files = new OperatorFiles({ clock: environment.clock });
      const { problems, queueFile } = await readConfiguration(settingsFile({ config }), stateDir, files);
      if (queueFile === undefined) throw new MistakesInFiles(problems.filter(isError));
      const { file, catalogue, options } = queueFile;
      // A queue that is not listed can be explained, too.
      const all = { ...options, queueList: undefined };
      const result = await readQueueFile(file, catalogue, all);
      if (!result.readable) throw new MistakesInFiles(result.problems.filter(isError));
      const { out } = environment;
      if (result.templates.includes(name)) {
        const { merged } = await readOrigins(file, all);
        const users = merged.queues.filter(({ template }) => template === name);
        const queues = users.map((queue) => queue.name);
        if (output === 'json') printJson(out, [{ queue: name, state: 'template', file, queues }]);
        else out.write(`${oneLine(templateText(name, file, queues))}\n`);
        return;
      }
      const explanation = await explainQueue(file, catalogue, all, name);
      if (explanation === undefined) {
        const names = result.verdicts.map((verdict) => verdict.name);
        const broken = result.verdicts.find((verdict) => verdict.name === name);
        if (broken !== undefined) throw new MistakesInFiles(broken.problems);
        throw new ThresherError('no-such-queue', whatIsIt(name, file, names, []));
      }
      const verdict = result.verdicts.find((one) => one.name === name);
      const listed = isListed(name, options.queueList);
      // The file's own problems, such as duplicate keys, belong to the queue as well.
      const whole = { ...explanation, verdict: verdict ?? explanation.verdict };
      if (output === 'json') printJson(out, [jsonOf(whole, listed)]);
      else out.write(`${textOf(whole, listed).join('\n')}\n`);
    });
}

function templateText(name: string, file: string, queues: readonly string[]): string {
  const users = queues.length === 0 ? 'no queue uses it' : `it serves ${queues.join(', ')}`;
  return `${name} is a template in ${file}: it submits nothing itself; ${users}`;
}

function jsonOf({ verdict, ...explanation }: Explanation, listed: boolean) {
  const { state, standing, problems, limits } = verdict;
  return {
    ...explanation,
    state,
    listed,
    standing: standing?.[0] ?? null,
    reasons: standing ?? [],
    limits: limits ?? null,
    problems: problems.map(problemView),
  };
}

const columns: readonly Column<ExplainedValue>[] = [
  { title: 'OPTION', value: ({ option }) => option },
  { title: 'FROM', value: ({ from }) => from },
  { title: 'LINE', value: ({ line }) => line },
  {
    title: 'VALUE',
    value: ({ value, note }) => `${JSON.stringify(value)}${note === '' ? '' : `  (${note})`}`,
  },
];

function textOf(explanation: Explanation, listed: boolean): string[] {
  const { queue, file, line, template, verdict, demand, plugins, connections, values } = explanation;
  const { state, standing = [], problems, limits } = verdict;
  // The values below say it themselves.
  const told = problems.filter(
    ({ code, severity }) => code !== 'option-without-effect' || severity === 'warning',
  );
  const submits = state === 'ready' && standing.length === 0 ? '' : 'submits nothing';
  const facts: (readonly [string, string])[] = [
    [
      'state',
      [state, ...(listed ? [] : ['not in qconf.queueList']), submits]
        .filter((part) => part !== '')
        .join(', '),
    ],
    ...standing.map((why, index) => [index === 0 ? 'why' : '', why] as const),
    ['file', `${file}:${line}`],
    ...(template === null ? [] : ([['template', template]] as const)),
    ...(demand === null ? [] : ([['demand', `${demand.value}: ${demand.why}`]] as const)),
    ...(limits === undefined ? [] : ([['limits', limitsText(limits)]] as const)),
    ...plugins.map(
      ({ section, name, resolved }) => [section, `${name}: ${resolved ?? 'not in thresher'}`] as const,
    ),
    ...(connections.length === 0 ? [] : ([['connections', connections.join(', ')]] as const)),
  ];
  const width = Math.max(...facts.map(([title]) => title.length));
  return [
    oneLine(queue),
    ...facts.map(([title, text]) => oneLine(`  ${title.padEnd(width)}  ${text}`)),
    ...(told.length === 0 ? [] : ['', ...worstFirst(told).map(problemLine)]),
    '',
    ...formatTable(columns, values),
  ];
}

function limitsText(limits: object): string {
  return Object.entries(limits as Record<string, unknown>)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(', ');
}
