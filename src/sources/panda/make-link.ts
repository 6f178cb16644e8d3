import type { Log } from '../../plugins/contracts/index.ts';
import type { PandaApi } from '../../clients/panda/api.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { BesideTask } from './beside.ts';
import { CommandRunner } from './command-runner.ts';
import { ActiveJobs } from './jobs.ts';
import { Life } from './life.ts';
import { type LinkParts, PandaLink } from './link.ts';
import { latestOrder, OrderBook } from './order-book.ts';
import { Reporter, type ReporterParts } from './reporter.ts';
import { ServerHealth } from './server-health.ts';
import { Statistician } from './statistician.ts';

/** The calls of the server that the link makes. */
export type LinkApi = Pick<
  PandaApi,
  | 'heartbeat'
  | 'currentWorkerId'
  | 'resourceTypes'
  | 'acquireCommands'
  | 'acknowledge'
  | 'reportStatistics'
  | 'updateWorkers'
  | 'activeJobs'
  | 'workerStatistics'
>;

export interface MakeLink extends Pick<
  LinkParts,
  'memory' | 'status' | 'serverAhead' | 'options' | 'clock' | 'log' | 'harvesterId' | 'url'
> {
  readonly api: LinkApi;
  readonly version: string;
  /** Name of this machine. */
  readonly host: string;
  readonly logUrls?: ReporterParts['logUrls'];
  readonly refused?: ReporterParts['kept'];
  /** Makes the tasks beside the link, whose calls are noted so. */
  readonly beside?: (note: ServerHealth['note']) => readonly BesideTask[];
}

/** Each may have 100 ids, and one answer has its bounds: what is beyond them would be lost. */
const mostCommands = 100;

/**
 * How far the server's clock is ahead, as the date of its answers says it. What is before the server may have written that date: by one far
 * ahead no statistics would ever be older than an order, and all workers would count as made for it.
 */
export function believedAhead(
  said: () => ClockDifference | undefined,
  log: Log,
): () => ClockDifference | undefined {
  let isTold = false;
  return () => {
    const difference = said();
    const { ahead } = difference ?? { ahead: 0 };
    const isTooFar = ahead > latestOrder;
    if (isTooFar && !isTold)
      log.warn(
        'the date of the answers of the PanDA server is far ahead of the clock of this machine, and is not believed',
        {
          secondsAhead: Math.round(ahead / 1000),
        },
      );
    isTold = isTooFar;
    return isTooFar ? undefined : difference;
  };
}

/** Wires the parts of a link. */
export function makeLink(make: MakeLink): PandaLink {
  const { api, memory, clock, log, options, host, version, logUrls, refused } = make;
  const health = new ServerHealth({ clock, log });
  const common = { ...make, health };
  const serverAhead = believedAhead(make.serverAhead, log);
  const orders = new OrderBook({ memory, clock, log, serverAhead });
  const statistician = new Statistician({
    ...common,
    serverAhead,
    interval: options.statisticsInterval * 1000,
  });
  const life = new Life({ ...common, version, heartbeatInterval: options.heartbeatInterval * 1000 });
  const reporter = new Reporter({
    api,
    clock,
    log,
    host,
    logUrls,
    kept: refused,
    batch: options.reportBatch,
    repeatAfter: options.repeatInterval * 1000,
    probe: (signal) => life.beat(signal),
    note: (outcome) => {
      health.note('reports', outcome);
    },
  });
  const commands = new CommandRunner({
    ...common,
    serverAhead,
    orders,
    statistician,
    reportAgain: (workers, signal) => reporter.again(workers, signal),
    atOnce: Math.min(options.commandsAtOnce, mostCommands),
  });
  const jobs = new ActiveJobs({ ...common, interval: options.jobsInterval * 1000 });
  const beside =
    make.beside?.((call, outcome) => {
      health.note(call, outcome);
    }) ?? [];
  return new PandaLink({ ...common, orders, statistician, reporter, commands, life, jobs, beside });
}
