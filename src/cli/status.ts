import type { Command } from 'commander';
import {
  type CredentialView,
  type CredentialViewOptions,
  viewCredentials,
} from '../daemon/credentials/credential-view.ts';
import { type Configuration, readConfiguration } from '../daemon/configuration.ts';
import { isTrouble } from '../daemon/every-code.ts';
import { type Holder, runningDaemon } from '../daemon/lock.ts';
import { daemonOn, openBesideDaemon } from '../daemon/reader.ts';
import { readServices } from '../daemon/services/service-file.ts';
import { type MemberView, membersView } from '../daemon/sharing/members-view.ts';
import { type StateDir, stateDirAt } from '../daemon/state-dir.ts';
import { type QueueView, queueViews } from '../daemon/view.ts';
import { sourcesOf } from '../config/queues/sources.ts';
import { isError } from '../config/settings/settings.ts';
import { placed } from '../daemon/reports/queue-reports.ts';
import { isoTime } from '../util/clock.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { toReason } from '../worker/errors.ts';
import { type Environment, type GlobalOptions, noLog } from './environment.ts';
import { settingsFile } from './opened.ts';
import { type Column, formatTable, oneLine, type OutputFormat, outputOption, printJson } from './output.ts';
import { MistakesInFiles } from './problems.ts';
import { queueColumns } from './queues.ts';

/** Something that an operator has to look at. */
interface Trouble {
  /** "queue Q", "service http", "credential /tmp/x509". */
  readonly where: string;
  readonly code: string;
  readonly message: string;
}

interface ServiceView {
  readonly name: string;
  readonly state: string;
  readonly since: string;
  readonly reason: string | null;
}

interface Status {
  readonly daemon: {
    readonly state: 'running' | 'stopped' | 'never ran';
    readonly pid: number | null;
    readonly version: string | null;
    readonly since: string | null;
    readonly stateDir: string;
    /** Who has the factory where a database tells: host and process. */
    readonly leader?: string | null;
    /** The daemons that share the factory. */
    readonly members?: readonly MemberView[];
  };
  readonly queues: readonly QueueView[];
  readonly services: readonly ServiceView[];
  readonly credentials: Awaited<ReturnType<typeof viewCredentials>>;
  /** Requests of operators that lack workers. */
  readonly waitingRequests: number;
  readonly troubles: readonly Trouble[];
}

export function addStatus(command: Command, environment: Environment): void {
  command.addOption(outputOption()).action(async ({ output }: { output: OutputFormat }) => {
    const { config, stateDir } = command.optsWithGlobals<GlobalOptions>();
    const files = new OperatorFiles({ clock: environment.clock });
    const read = await readConfiguration(settingsFile({ config }), stateDir, files);
    const { settings, queueFile, problems } = read;
    if (settings === undefined || queueFile === undefined)
      throw new MistakesInFiles(problems.filter(isError));
    const status = await statusOf({ settings, queueFile }, environment, files);
    if (output === 'json') printJson(environment.out, [status]);
    else environment.out.write(`${textOf(status).join('\n')}\n`);
  });
}

type Readable = { readonly [Key in 'settings' | 'queueFile']: NonNullable<Configuration[Key]> };

async function statusOf(
  { settings, queueFile }: Readable,
  environment: Environment,
  files: OperatorFiles,
): Promise<Status> {
  const { clock, random } = environment;
  const dir = stateDirAt(settings.stateDir);
  const holder = runningDaemon(dir);
  const stored = await whatIsStored({ settings, queueFile }, dir);
  const services = holder === undefined ? [] : readServices(dir);
  const { signal } = new AbortController();
  const asked = { settings, queueFile, clock, random, log: noLog, signal };
  const { credentials, unseen } = await credentialsOf(asked);
  const sources = await sourcesOf(settings, queueFile.catalogue, files);
  const troubles: Trouble[] = [
    ...stored.troubles,
    ...unseen,
    ...sources.problems
      .filter(isError)
      .map((problem) => ({ where: 'settings', code: problem.code, message: placed(problem) })),
    ...stored.queues.flatMap(({ name, reasons }) =>
      reasons
        .filter((reason) => isTrouble(reason) && reason.code !== 'daemon-not-running')
        .map(({ code, message }) => ({ where: `queue ${name}`, code, message })),
    ),
    ...services
      .filter(({ state }) => state === 'failing')
      .map(({ name, reason }) => ({
        where: `service ${name}`,
        code: reason?.code ?? 'service-failing',
        message: reason?.message ?? 'it does not do its work',
      })),
    ...credentials.filter(({ state }) => state !== 'good').map(troubleOf),
  ];
  return {
    daemon: { ...daemonOf(holder, stored.hasRun, settings.stateDir), ...stored.leads },
    queues: stored.queues,
    services: services.map(({ name, state, since, reason }) => ({
      name,
      state,
      since: isoTime(since),
      reason: reason?.message ?? null,
    })),
    credentials,
    waitingRequests: stored.waitingRequests,
    troubles,
  };
}

interface Stored {
  readonly hasRun: boolean;
  readonly queues: readonly QueueView[];
  readonly waitingRequests: number;
  readonly troubles: readonly Trouble[];
  readonly leads: Pick<Status['daemon'], 'leader' | 'members'>;
}

function troubleOf({ name, state, message, expires }: CredentialView): Trouble {
  const where = `credential ${name}`;
  const why = message ?? `it ends at ${expires ?? 'an unknown time'}`;
  if (state === 'soon') return { where, code: 'credential-soon', message: why };
  return { where, code: state === 'ending' ? 'credential-ending' : 'credential-bad', message: why };
}

/** Credentials that cannot be looked at are a trouble. */
async function credentialsOf(asked: CredentialViewOptions) {
  try {
    return { credentials: await viewCredentials(asked), unseen: [] };
  } catch (error) {
    const { code, message } = toReason(error);
    return { credentials: [], unseen: [{ where: 'credentials', code, message }] };
  }
}

/** A database that cannot be read is one of the troubles. */
async function whatIsStored({ settings }: Readable, dir: StateDir): Promise<Stored> {
  const nothing = { hasRun: false, queues: [], waitingRequests: 0, troubles: [], leads: {} };
  try {
    const { store } = await openBesideDaemon(settings, 'read');
    try {
      const waitingRequests = await store.requests.countOpen();
      const queues = await queueViews(store, await daemonOn(store, dir));
      const members = membersView((await store.sharedOut?.()) ?? { members: [], shares: [] });
      const leader = store.leader && ((await store.leader())?.holder ?? null);
      const alone = leader === undefined ? {} : { leader };
      const leads = members.some(({ state }) => state === 'up') ? { members } : alone;
      return { hasRun: true, queues, waitingRequests, troubles: [], leads };
    } finally {
      await store.close();
    }
  } catch (error) {
    const { code, message } = toReason(error);
    if (code === 'store-missing') return nothing;
    return { ...nothing, hasRun: true, troubles: [{ where: 'database', code, message }] };
  }
}

function daemonOf(
  holder: Holder | 'unknown' | undefined,
  hasRun: boolean,
  stateDir: string,
): Status['daemon'] {
  const none = { pid: null, version: null, since: null, stateDir };
  if (holder === undefined) return { ...none, state: hasRun ? 'stopped' : 'never ran' };
  if (holder === 'unknown') return { ...none, state: 'running' };
  const { pid, version, startedAt } = holder;
  return { state: 'running', pid, version, since: isoTime(startedAt), stateDir };
}

const serviceColumns: readonly Column<ServiceView>[] = [
  { title: 'SERVICE', value: ({ name }) => name },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'SINCE', value: ({ since }) => since },
  { title: 'WHY', value: ({ reason }) => reason },
];

const memberColumns: readonly Column<MemberView>[] = [
  { title: 'MEMBER', value: ({ name }) => name },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'DAEMON', value: ({ holder }) => holder },
  { title: 'HAS', value: ({ queues, others }) => [...others, ...queues.toSorted()].join(', ') },
];

const credentialColumns: readonly Column<Status['credentials'][number]>[] = [
  { title: 'CREDENTIAL', value: ({ name }) => name },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'ENDS', value: ({ expires }) => expires },
];

/** The queue's name, state and counts: the reasons stand below, where they are troubles. */
const shortQueueColumns = queueColumns.slice(0, -1);

function textOf(status: Status): string[] {
  const { daemon, queues, services, credentials, waitingRequests, troubles } = status;
  const { state, pid, version, since, stateDir, leader, members = [] } = daemon;
  const about = pid === null ? '' : `, pid ${pid}, version ${version ?? '?'}, since ${since ?? '?'}`;
  const section = (lines: readonly string[], rows: number) => (rows === 0 ? [] : ['', ...lines]);
  return [
    oneLine(`daemon ${state}${about}, on ${stateDir}`),
    ...(leader === undefined
      ? []
      : [leader === null ? 'no daemon has the factory' : oneLine(`leader ${leader}`)]),
    ...(waitingRequests === 0
      ? []
      : [
          `${waitingRequests} ${waitingRequests === 1 ? 'request waits' : 'requests wait'}: thresher requests --waiting`,
        ]),
    ...section(formatTable(memberColumns, members), members.length),
    ...section(formatTable(shortQueueColumns, queues), queues.length),
    ...section(formatTable(serviceColumns, services), services.length),
    ...section(formatTable(credentialColumns, credentials), credentials.length),
    '',
    ...(troubles.length === 0
      ? ['no troubles']
      : troubles.map(({ where, code, message }) => oneLine(`${where}: ${message} [${code}]`))),
  ];
}
