import { hostname } from 'node:os';
import { join } from 'node:path';
import { whereIs } from '../../clients/htcondor/classad.ts';
import { HTCondorClient } from '../../clients/htcondor/client.ts';
import type { Context } from '../contracts/context.ts';
import { FileLane } from '../../util/file-lane.ts';
import { EventLogs } from './following/event-logs.ts';
import { KnownJobs } from './following/known-jobs.ts';
import { type Job, marks } from './marks.ts';
import { isOfMachine, type Schedd, submissionHostOf } from './place/schedds.ts';
import { Submits } from './submitting/submits.ts';

/** What connections begin with. */
const prefix = 'htcondor:';

/** Calls for files of one schedd that may be under way in Node's threads. */
const filesAtOnce = 2;
/** How long one may take, ms. */
const fileTimeout = 10_000;

export function connectionName(schedd: Pick<Schedd, 'name' | 'pool'>): string {
  return `${prefix}${submissionHostOf(schedd)}`;
}

/** Which schedd a connection is: also one that the queue does not name any more, where its workers of before are. */
export function scheddOfConnection(connection: string): Pick<Schedd, 'name' | 'pool'> {
  const host = connection.slice(prefix.length);
  if (host === 'LOCAL') return {};
  const comma = host.indexOf(',');
  const [name, pool] = [host.slice(0, comma), host.slice(comma + 1)];
  return { ...(name !== 'None' && { name }), ...(pool !== 'None' && { pool }) };
}

/** What the submitter, monitor and sweeper of all queues on one schedd share. */
export class HTCondorHub {
  readonly client: HTCondorClient;
  /** Harvester's name of the schedd. */
  readonly submissionHost: string;
  readonly factoryId: string;
  /** Constraint of what is ours. */
  readonly mine: string;
  /** Host name of this machine. */
  readonly hostname = hostname();
  readonly submits: Submits;
  /** For all files of its jobs: outputs and logs, which may be on a file system that hangs. */
  readonly files: FileLane;
  /** By worker: up to which attempt nothing of it may be sent any more. */
  readonly fenced = new Map<number, number>();
  /** By worker: the attempt that the schedd refused for certain, so that nothing of it can come any more. */
  readonly refused = new Map<number, number>();
  /** By `cluster.proc`: jobs that were submitted since the monitor last looked. They may have ended before it looks again. */
  readonly fresh = new Map<string, Job>();
  readonly jobs = new KnownJobs();
  readonly logs: EventLogs;
  /** By queue: the log that tells of its jobs. */
  readonly #logsOfQueues = new Map<string, { path: string | undefined; own: boolean; configId: number }>();
  /** The factory's own log of job events (`dagman_log`). Undefined where the schedd cannot write to this machine. */
  readonly ownLog: string | undefined;
  /** By queue: how many of its jobs were held when the monitor last looked. */
  held: ReadonlyMap<string, number> = new Map();

  constructor(
    schedd: Pick<Schedd, 'name' | 'pool'>,
    context: Pick<Context, 'factoryId' | 'stateDir' | 'clock'>,
  ) {
    const { factoryId, stateDir, clock } = context;
    this.client = new HTCondorClient({ place: schedd, clock, environment: process.env });
    this.submissionHost = submissionHostOf(schedd);
    this.factoryId = factoryId;
    this.mine = whereIs(marks.factory, factoryId);
    const directory = join(stateDir, 'htcondor');
    this.submits = new Submits(join(directory, 'submits'), clock);
    const name = this.submissionHost.replaceAll(/[^\w.@-]/g, '_');
    const lane = `${prefix}${this.submissionHost}`;
    this.files = new FileLane({ clock, name: lane, atOnce: filesAtOnce, timeoutMs: fileTimeout });
    const positionsFile = join(directory, 'positions', `${name}.json`);
    this.logs = new EventLogs({ positionsFile, clock, files: this.files });
    this.ownLog = isOfMachine(schedd, this.hostname) ? join(directory, 'events', `${name}.log`) : undefined;
  }

  /**
   * Reads from now on the events of a queue's jobs, where there is a log of them.
   * @param poolLog of the queue's section; it is read instead of one of our own
   */
  followLog(
    { queue, configId }: Pick<Context, 'queue' | 'configId'>,
    { poolLog, spooled }: { readonly poolLog: string | undefined; readonly spooled: boolean },
  ): void {
    const path = poolLog ?? (spooled ? undefined : this.ownLog);
    // A plugin of an earlier configuration may be made later.
    if (configId < (this.#logsOfQueues.get(queue)?.configId ?? 0)) return;
    this.#logsOfQueues.set(queue, { path, own: poolLog === undefined, configId });
    this.logs.follow(
      [...this.#logsOfQueues.values()].flatMap(({ path, own }) =>
        path === undefined ? [] : [{ path, own }],
      ),
    );
  }

  /** The log that HTCondor shall write for a queue's jobs. None beside the pool's: what is told twice is told too late. */
  logOfJobs({ spooled }: { readonly spooled: boolean }): string | undefined {
    const others = [...this.#logsOfQueues.values()].some(({ own }) => !own);
    return spooled || others ? undefined : this.ownLog;
  }
}

export function hubOf(connection: string, context: Context): HTCondorHub {
  return context.share(connection, () => new HTCondorHub(scheddOfConnection(connection), context));
}
