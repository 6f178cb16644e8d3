import type { Command } from 'commander';
import { isError } from '../config/settings/settings.ts';
import { readConfiguration } from '../daemon/configuration.ts';
import { runningDaemon } from '../daemon/lock.ts';
import {
  kindsOfLink,
  type PandaLinkView,
  type PandaSiteView,
  type PandaView,
  pandaView,
  readLinkStatus,
} from '../daemon/panda-view.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import { stateDirAt } from '../daemon/state-dir.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { NewsBacklog } from '../store/news.ts';
import type { Problem } from '../util/located.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { toReason } from '../worker/errors.ts';
import { type Environment, ExitStatus, type GlobalOptions } from './environment.ts';
import { settingsFile } from './opened.ts';
import { type Column, formatTable, oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { MistakesInFiles, problemLine } from './problems.ts';

export function addPanda(command: Command, environment: Environment): void {
  command.addOption(outputOption()).action(async ({ output }: { output: OutputFormat }) => {
    const { config, stateDir } = command.optsWithGlobals<GlobalOptions>();
    const { clock, out } = environment;
    const files = new OperatorFiles({ clock });
    const read = await readConfiguration(settingsFile({ config }), stateDir, files);
    const { settings, queueFile } = read;
    if (settings === undefined || queueFile === undefined)
      throw new MistakesInFiles(read.problems.filter(isError));
    const { catalogue, sources } = queueFile;
    const dir = stateDirAt(settings.stateDir);
    const view = await pandaView({
      server: sources.pandaServer,
      status: readLinkStatus(dir),
      backlog: await backlogOf(settings, kindsOfLink(catalogue.sources)),
      daemonRuns: runningDaemon(dir) !== undefined,
      now: clock.now(),
    });
    const ofPanda = sources.problems.filter(({ pointer }) => !pointer.startsWith('/sources'));
    if (output === 'json') printJson(out, [view]);
    else out.write(`${textOf(view, ofPanda, sources.linkIsOff ?? false, clock.now()).join('\n')}\n`);
    if (ofPanda.some(isError)) throw new ExitStatus(1);
  });
}

/** Undefined where no daemon ever ran. */
async function backlogOf(
  settings: LoadedSettings,
  kinds: ReadonlySet<string>,
): Promise<readonly NewsBacklog[] | undefined> {
  try {
    const { store } = await openBesideDaemon(settings, 'read');
    try {
      return (await store.news.backlog()).filter(({ kind }) => kinds.has(kind));
    } finally {
      await store.close();
    }
  } catch (error) {
    if (toReason(error).code === 'store-missing') return undefined;
    throw error;
  }
}

type Failure = PandaLinkView['failures'][number];
type CarriedOut = PandaLinkView['commands'][number];

const siteColumns: readonly Column<PandaSiteView>[] = [
  { title: 'SITE', value: ({ site }) => site },
  { title: 'QUEUES', value: ({ queues }) => queues.join(', ') },
  { title: 'STATISTICS', value: ({ statistics }) => statistics },
  { title: 'ORDER OF', value: ({ order }) => order?.created ?? null },
  { title: 'SAID', value: ({ order }) => (order === null ? null : numbers(order.said)) },
  { title: 'WANTED', value: ({ order }) => (order === null ? null : numbers(order.wanted)) },
  { title: 'REST', value: ({ order }) => order?.rest ?? null },
  { title: 'JOBS', value: ({ jobs }) => jobs && jobsText(jobs) },
];

function jobsText({ activated, instances }: NonNullable<PandaSiteView['jobs']>): string {
  return instances === null
    ? String(activated)
    : `${activated}, for ${instances} ${instances === 1 ? 'instance' : 'instances'}`;
}

const commandColumns: readonly Column<CarriedOut>[] = [
  { title: 'TIME', value: ({ at }) => at },
  { title: 'ID', value: ({ id }) => id },
  { title: 'COMMAND', value: ({ command }) => command },
  { title: 'OUTCOME', value: ({ outcome }) => outcome },
];

function textOf(view: PandaView, problems: readonly Problem[], isOff: boolean, now: number): string[] {
  const { server, link } = view;
  const lines = problems.map(problemLine);
  if (server === null && link === null)
    return isOff
      ? [...lines, 'the link is off: see the problem of pandacon, and docs/panda.md']
      : [...lines, 'the settings name no PanDA server with a login: pandacon, and docs/panda.md'];
  return [
    ...lines,
    ...headOf(view, now).map(([name, text]) => oneLine(`${name.padEnd(9)}${text}`)),
    ...(link === null ? [] : tablesOf(link)),
  ];
}

/** The facts in one line each. */
function headOf({ server, login, daemonRuns, link, outbox }: PandaView, now: number): [string, string][] {
  const lines: [string, string][] = [
    ['server', server ?? `none in the settings; it was ${link?.url ?? '?'}`],
  ];
  if (login !== null) lines.push(['login', loginText(login, now)]);
  if (link === null)
    lines.push(['link', daemonRuns ? 'it has not begun: no queue needs it' : 'it never ran: no daemon runs']);
  else {
    const since = daemonRuns ? `since ${link.started}` : 'no daemon runs';
    lines.push([
      'link',
      `as ${link.harvesterId}, ${link.starting ?? 'ready'}, ${since}; as of ${link.at} (${ago(link.at, now)})`,
    ]);
    const answers = Object.entries(link.answered).map(([call, at]) => `${call} ${ago(at, now)}`);
    lines.push(['answers', answers.length === 0 ? 'none yet' : answers.join(', ')]);
    lines.push(['reports', reportsText(link.reports, now)]);
  }
  if (outbox !== null) lines.push(['outbox', outboxText(outbox, now)]);
  return lines;
}

function loginText(
  { kind, file, subject, expires, problem }: NonNullable<PandaView['login']>,
  now: number,
): string {
  const where = file ?? 'a token in the settings';
  const end = expires === null ? [] : [`ends ${expires} (${ago(expires, now)})`];
  const rest = [...(subject === null ? [] : [subject]), ...end, ...(problem === null ? [] : [problem])];
  return `${kind}, ${[where, ...rest].join(', ')}`;
}

function reportsText({ taken, lastTaken, refused }: PandaLinkView['reports'], now: number): string {
  const last = lastTaken === null ? '' : `, the last one ${ago(lastTaken, now)}`;
  const some = refused.slice(0, 10).join(', ');
  const more = refused.length > 10 ? `, and ${refused.length - 10} more` : '';
  const bad = refused.length === 0 ? '' : `; the server refuses those of the workers ${some}${more}`;
  return `${taken} taken since the start${last}${bad}`;
}

function outboxText({ waiting, oldest }: NonNullable<PandaView['outbox']>, now: number): string {
  if (waiting === 0) return 'empty: the server knows every change';
  return `${waiting} ${waiting === 1 ? 'change waits' : 'changes wait'}, the oldest came ${ago(oldest ?? '', now)}`;
}

function tablesOf({ failures, sites, commands }: PandaLinkView): string[] {
  return [
    ...(failures.length === 0 ? [] : ['', ...failures.flatMap(failureLines)]),
    ...(sites.length === 0 ? [] : ['', ...formatTable(siteColumns, sites)]),
    ...(commands.length === 0 ? [] : ['', ...formatTable(commandColumns, commands)]),
  ];
}

function failureLines({ call, since, code, message, remedy }: Failure): string[] {
  const fails = oneLine(`${call} fails since ${since}: ${message} [${code}]`);
  return remedy === null ? [fails] : [fails, `  ${remedy}`];
}

function numbers(byType: Readonly<Record<string, number>>): string {
  const some = Object.entries(byType).filter(([, count]) => count > 0);
  return some.length === 0 ? '0' : some.map(([type, count]) => `${count} ${type}`).join(', ');
}

/** "5 s ago", "in 3 h". */
function ago(time: string, now: number): string {
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  const size = Math.abs(seconds);
  const text =
    size < 120
      ? `${size} s`
      : size < 7200
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} d`;
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}
