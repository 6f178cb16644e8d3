import { hostname } from 'node:os';
import { join } from 'node:path';
import { PandaApi } from '../../clients/panda/api.ts';
import { PandaClient } from '../../clients/panda/client.ts';
import { PandaLogin } from '../../clients/panda/login.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { SourceHost, SourceQueue } from '../../plugins/contracts/index.ts';
import type { PandaServer } from '../../plugins/contracts/panda-server.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import type { Clock } from '../../util/clock.ts';
import { readVersion } from '../../util/version.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { BesideTask } from './beside.ts';
import { Dialogs } from './dialogs.ts';
import type { PandaLink } from './link.ts';
import { makeLink } from './make-link.ts';
import { LinkMemory } from './memory.ts';
import { lookAtProcess, ServiceMetrics } from './metrics.ts';
import { type LinkOptions, linkOptions, PandaOptions, PandaQueueOptions } from './options.ts';
import type { ServerHealth } from './server-health.ts';
import { StatusFile } from './status-file.ts';

const isServed = ({ runMode, mapType }: Pick<SourceQueue, 'mapType' | 'runMode'>) =>
  runMode === 'slave' || mapType === 'NoJob';

/** Workers on the demand of a PanDA server. */
export const PandaSource = defineSource({
  name: 'panda',
  module: builtInSources,
  description:
    'Asks for the workers that the PanDA server of the settings (`pandacon`) orders, for queues with `runMode: slave`; or for as many as their sites have activated jobs, for queues with `runMode: self` and `mapType: NoJob`. The server hears of each of them. The source of such queues where the settings name a server with a login.',
  config: PandaOptions,
  queueConfig: PandaQueueOptions,
  needsServer: true,
  takes: (queue, server) => server !== undefined && isServed(queue),
  stands: (queue) => {
    if (isServed(queue)) return [];
    const { runMode, mapType } = queue;
    const message = `the PanDA server asks for no workers of a queue with runMode ${runMode} and mapType ${mapType}`;
    return [{ code: 'panda-queue-unserved', message }];
  },
  create: (options, host) => {
    const { pandaServer } = host;
    if (pandaServer === undefined)
      throw new ThresherError('source-not-made', 'the settings name no PanDA server with a login (pandacon)');
    return linkTo(pandaServer, options, host);
  },
});

function linkTo(server: PandaServer, written: PandaOptions, host: SourceHost): PandaLink {
  const { clock, files, log, stateDir, harvesterId } = host;
  const { url, timeout } = server;
  const login = new PandaLogin(server.login, server.caFile, { files, clock });
  const client = new PandaClient({ url, login, clock, timeout });
  const api = new PandaApi(client, harvesterId);
  const directory = join(stateDir, 'panda');
  const options = linkOptions(written, server.link);
  return makeLink({
    api,
    serverAhead: () => client.serverAhead,
    memory: new LinkMemory(directory),
    status: new StatusFile(directory, { clock, log }),
    options,
    version: readVersion(),
    host: hostname(),
    clock,
    log,
    logUrls: host.logUrls,
    beside: (health) => besideTasks({ api, clock, health, options, host }),
    harvesterId,
    url,
  });
}

interface BesideParts {
  readonly api: PandaApi;
  readonly clock: Clock;
  readonly health: ServerHealth;
  readonly options: LinkOptions;
  readonly host: SourceHost;
}

/** Harvester's pace of messages for the server's operators and of metrics, ms. */
const paces = { dialogs: 60_000, metrics: 300_000 };

function besideTasks({ api, clock, health, options, host }: BesideParts): readonly BesideTask[] {
  const { takeWarnings: take, credentials, stateDir } = host;
  const noteAs = (call: 'dialogs' | 'metrics') => (outcome: PandaOutcome<unknown>) => {
    health.note(call, outcome);
  };
  const { dialogsAtOnce: most, dialogLevel: level } = options;
  const dialogs = new Dialogs({ api, clock, take, most, level, note: noteAs('dialogs') });
  const look = () => lookAtProcess(stateDir);
  const note = noteAs('metrics');
  const metrics = new ServiceMetrics({ api, clock, host: hostname(), look, credentials, note });
  return [
    { name: 'dialogs', interval: paces.dialogs, turn: (signal) => dialogs.turn(signal) },
    { name: 'metrics', interval: paces.metrics, turn: (signal) => metrics.turn(signal) },
  ];
}
