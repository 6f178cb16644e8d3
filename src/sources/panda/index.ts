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
import { CommandRunner } from './command-runner.ts';
import { ActiveJobs } from './jobs.ts';
import { Life } from './life.ts';
import { PandaLink } from './link.ts';
import { LinkMemory } from './memory.ts';
import { linkOptions, PandaOptions, PandaQueueOptions } from './options.ts';
import { OrderBook } from './order-book.ts';
import { Reporter } from './reporter.ts';
import { ServerHealth } from './server-health.ts';
import { Statistician } from './statistician.ts';
import { StatusFile } from './status-file.ts';

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
    return makeLink(options, host, pandaServer);
  },
});

/** Wires the parts of a link. */
export function makeLink(written: PandaOptions, host: SourceHost, server: PandaServer): PandaLink {
  const options = linkOptions(written, server.link);
  const { clock, files, log, stateDir, harvesterId } = host;
  const { url } = server;
  const login = new PandaLogin(server.login, server.caFile, { files, clock });
  const client = new PandaClient({ url, login, clock, timeout: server.timeout });
  const api = new PandaApi(client, harvesterId);
  const directory = join(stateDir, 'panda');
  const memory = new LinkMemory(directory);
  const health = new ServerHealth({ clock, log });
  const common = { api, memory, clock, log, health };
  const serverAhead = () => client.serverAhead;
  const orders = new OrderBook(common);
  const interval = options.statisticsInterval * 1000;
  const statistician = new Statistician({ ...common, serverAhead, interval });
  const life = new Life({
    ...common,
    version: readVersion(),
    heartbeatInterval: options.heartbeatInterval * 1000,
  });
  const reporter = new Reporter({
    api,
    clock,
    log,
    probe: (signal) => life.beat(signal),
    batch: options.reportBatch,
    repeatAfter: options.repeatInterval * 1000,
    host: hostname(),
    note: (outcome) => {
      health.note('reports', outcome);
    },
  });
  const commands = new CommandRunner({
    ...common,
    orders,
    statistician,
    reportAgain: (workers, signal) =>
      reporter.report(
        workers.map((news) => ({ ...news, what: 'changed' })),
        signal,
      ),
    host: hostname(),
    atOnce: options.commandsAtOnce,
  });
  return new PandaLink({
    ...common,
    orders,
    statistician,
    reporter,
    commands,
    life,
    jobs: new ActiveJobs({ ...common, interval: options.jobsInterval * 1000 }),
    status: new StatusFile(directory, { clock, log }),
    serverAhead,
    options,
    harvesterId,
    url,
  });
}
