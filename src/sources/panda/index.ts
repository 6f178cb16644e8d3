import { hostname } from 'node:os';
import { join } from 'node:path';
import { PandaApi } from '../../clients/panda/api.ts';
import { PandaClient } from '../../clients/panda/client.ts';
import { PandaLogin } from '../../clients/panda/login.ts';
import type { SourceHost, SourceQueue } from '../../plugins/contracts/index.ts';
import type { PandaServer } from '../../plugins/contracts/panda-server.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { readVersion } from '../../util/version.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { PandaLink } from './link.ts';
import { makeLink } from './make-link.ts';
import { LinkMemory } from './memory.ts';
import { linkOptions, PandaOptions, PandaQueueOptions, type LinkOptions } from './options.ts';
import { RefusedReports } from './refused-reports.ts';
import { StatusFile } from './status-file.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { PandaCallName } from '../../plugins/contracts/panda-status.ts';
import type { BesideTask } from './beside.ts';
import { Dialogs } from './dialogs.ts';
import { lookAtProcess, ServiceMetrics } from './metrics.ts';

interface MessageParts {
  readonly api: Pick<PandaApi, 'addDialogs' | 'updateServiceMetrics'>;
  readonly note: (call: PandaCallName, outcome: PandaOutcome<unknown>) => void;
  readonly settings: LinkOptions;
  /** Name of this machine. */
  readonly machine: string;
  readonly host: Pick<SourceHost, 'clock' | 'stateDir' | 'takeWarnings' | 'credentials'>;
}

/** Harvester's pace, ms. */
const paces = { dialogs: 60_000, metrics: 300_000 };

/** Messages to the operators of the server: warnings of this daemon, and how its process does. */
function messages({ api, note, settings, machine, host }: MessageParts): readonly BesideTask[] {
  const { clock, stateDir, takeWarnings: take, credentials } = host;
  const { dialogsAtOnce: most, dialogLevel: level } = settings;
  const noteAs = (call: PandaCallName) => (outcome: PandaOutcome<unknown>) => {
    note(call, outcome);
  };
  const dialogs = new Dialogs({ api, clock, take, most, level, note: noteAs('dialogs') });
  const look = () => lookAtProcess(stateDir);
  const metricsNote = noteAs('metrics');
  const metrics = new ServiceMetrics({ api, clock, host: machine, look, credentials, note: metricsNote });
  return [
    { name: 'dialogs', interval: paces.dialogs, turn: (signal) => dialogs.turn(signal) },
    { name: 'metrics', interval: paces.metrics, turn: (signal) => metrics.turn(signal) },
  ];
}

/** Workers of other queues need jobs that a factory fetches, whoever says how many there are to be. */
const isServed = ({ mapType }: Pick<SourceQueue, 'mapType'>) => mapType === 'NoJob';

/** Workers on the demand of a PanDA server. */
export const PandaSource = defineSource({
  name: 'panda',
  module: builtInSources,
  description:
    'Asks for the workers that the PanDA server of the settings (`pandacon`) orders, for queues with `mapType: NoJob` and `runMode: slave`; or for as many as their sites have activated jobs, for those with `runMode: self`. The server hears of each of them. The source of such queues where the settings name a server with a login.',
  config: PandaOptions,
  queueConfig: PandaQueueOptions,
  needsServer: true,
  takes: (queue, server) => server !== undefined && isServed(queue),
  stands: (queue) => {
    if (isServed(queue)) return [];
    const { mapType } = queue;
    const message = `mapType is ${mapType}: its workers need jobs from the PanDA server, which thresher does not fetch; set it to "NoJob" where pilots fetch their own`;
    return [{ code: 'panda-queue-unserved', message }];
  },
  create: (options, host) => {
    const { pandaServer } = host;
    if (pandaServer === undefined)
      throw new ThresherError('source-not-made', 'the settings name no PanDA server with a login (pandacon)');
    return linkTo(pandaServer, options, host);
  },
});

function linkTo(server: PandaServer, options: PandaOptions, host: SourceHost): PandaLink {
  const { clock, files, log, stateDir, harvesterId } = host;
  const { url, timeout } = server;
  const login = new PandaLogin(server.login, server.caFile, { files, clock });
  const client = new PandaClient({ url, login, clock, timeout });
  const directory = join(stateDir, 'panda');
  const api = new PandaApi(client, harvesterId);
  const settings = linkOptions(options, server.link);
  return makeLink({
    api,
    serverAhead: () => client.serverAhead,
    memory: new LinkMemory(host.memory),
    refused: new RefusedReports(host.memory),
    status: new StatusFile(directory, { clock, log }),
    options: settings,
    logUrls: host.logUrls,
    beside: (note) => messages({ api, note, settings, machine: hostname(), host }),
    version: readVersion(),
    host: hostname(),
    clock,
    log,
    harvesterId,
    url,
  });
}
