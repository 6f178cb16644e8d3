import { hostname } from 'node:os';
import { join } from 'node:path';
import { whereIs } from '../../clients/htcondor/classad.ts';
import { HTCondorClient } from '../../clients/htcondor/client.ts';
import { debugLog } from '../../clients/htcondor/debug-log.ts';
import type { ConnectionHost } from '../contracts/backend.ts';
import { FileLane } from '../../util/file-lane.ts';
import { LeftOutputs } from './output/left-outputs.ts';
import { Bundles } from './payload/bundles.ts';
import { EventLogs } from './following/event-logs.ts';
import { KnownJobs } from './following/known-jobs.ts';
import { type Job, marks } from './marks.ts';
import { isOfMachine, type Schedd, submissionHostOf } from './place/schedds.ts';
import { Removals } from './state/removals.ts';
import { JobQueue, type NamedQueue } from './job-queue.ts';
import { Owners } from './owners.ts';
import { everywhere } from './where.ts';
import { RefusedByRule } from './submitting/refused-by-rule.ts';
import { Submits } from './submitting/submits.ts';

/** Calls for files of one schedd that may be under way in Node's threads. */
const filesAtOnce = 2;
/** How long one may take, ms. */
const fileTimeout = 10_000;

/** Which log tells of a queue's jobs. */
export interface QueueLog {
  /** `eventLog` of the queue: it is read instead of one of our own. */
  readonly poolLog: string | undefined;
  readonly spooled: boolean;
}

/**
 * Condor-C and the JobRouter copy a whole job, with our marks, onto the schedd that they pass it on to, and each copy says in these attributes what
 * it was made of. What becomes of a copy is told by the job. Source: CondorJob::buildSubmitAd, JobRouter::SubmitJob.
 */
const isNoCopy = ['SubmitterGlobalJobId', 'RoutedFromJobId']
  .map((name) => `${name} =?= undefined`)
  .join(' && ');

type ScheddHost = Pick<ConnectionHost, 'factoryId' | 'stateDir' | 'clock' | 'share' | 'memoryOf' | 'log'>;

/** State that the submitter, monitor and sweeper of all queues on one schedd share. */
export class HTCondorSchedd {
  readonly client: HTCondorClient;
  /** Harvester's name of the schedd. */
  readonly submissionHost: string;
  readonly factoryId: string;
  /** Constraint that our jobs fulfil. Those of other users may, too: `owners` tells. */
  readonly mine: string;
  /** Host name of this machine. */
  readonly hostname = hostname();
  readonly submits: Submits;
  readonly owners: Owners;
  readonly jobQueue: JobQueue;
  /** Payloads of its jobs. */
  readonly bundles: Bundles;
  /** Files that its jobs left for their sources. */
  readonly outputs: LeftOutputs;
  /** For all files of its jobs: outputs and logs, which may be on a file system that hangs. */
  readonly files: FileLane;
  /** By worker: up to which attempt nothing of it may be sent any more. */
  readonly fenced = new Map<number, number>();
  /** By worker: the attempt that the schedd refused for certain, so that nothing of it can come any more. */
  readonly refused = new Map<number, number>();
  readonly refusedByRule = new RefusedByRule();
  /** By `cluster.proc`: jobs submitted since the monitor last looked. They may have ended before it looks again. */
  readonly fresh = new Map<string, Job>();
  readonly jobs = new KnownJobs();
  readonly removals: Removals;
  readonly logs: EventLogs;
  /** A queue names the pool's log, which tells of all jobs. */
  #poolLog = false;
  /** The factory's own log of job events (`dagman_log`). Undefined where the schedd cannot write to this machine. */
  readonly ownLog: string | undefined;
  /** By queue: how many of its jobs were held when the monitor last looked. */
  held: ReadonlyMap<string, number> = new Map();

  constructor(
    schedd: Pick<Schedd, 'name' | 'pool'>,
    { factoryId, stateDir, clock, share, memoryOf, log }: ScheddHost,
  ) {
    const onDebug = debugLog(log);
    const clientAt = (place: Pick<Schedd, 'name' | 'pool'>) =>
      new HTCondorClient({ place, clock, environment: process.env, onDebug });
    this.client = clientAt(schedd);
    this.submissionHost = submissionHostOf(schedd);
    this.removals = new Removals(this.submissionHost);
    this.factoryId = factoryId;
    this.mine = `${whereIs(marks.factory, factoryId)} && ${isNoCopy}`;
    const directory = join(stateDir, 'htcondor');
    // One for all schedds: the first listing ends what an earlier daemon left, and must spare what this one began on another schedd.
    const submits = join(directory, 'submits');
    this.submits = share(submits, () => new Submits(submits, clock));
    const name = this.submissionHost.replaceAll(/[^\w.@-]/g, '_');
    const { client, submissionHost, fresh } = this;
    const parts = { client, clock, log, submissionHost };
    this.owners = new Owners({ ...parts, fresh, file: join(directory, 'owners', `${name}.json`) });
    this.jobQueue = new JobQueue({
      client,
      clientAt,
      clock,
      log,
      place: schedd,
      mine: this.mine,
      memory: memoryOf('htcondor/queues'),
      names: share(`${everywhere} names`, () => new Map<string, NamedQueue>()),
    });
    this.bundles = new Bundles(join(directory, 'payloads', name));
    const lane = `${everywhere}${this.submissionHost}`;
    this.files = new FileLane({ clock, name: lane, atOnce: filesAtOnce, timeoutMs: fileTimeout });
    this.outputs = new LeftOutputs(join(directory, 'outputs', name), this.files);
    const positionsFile = join(directory, 'positions', `${name}.json`);
    this.logs = new EventLogs({ positionsFile, clock, files: this.files });
    this.ownLog = isOfMachine(schedd, this.hostname) ? join(directory, 'events', `${name}.log`) : undefined;
  }

  /** Reads from now on the events of these queues' jobs, where there is a log of them. */
  followLogs(queues: readonly QueueLog[]): void {
    this.#poolLog = queues.some(({ poolLog }) => poolLog !== undefined);
    this.logs.follow(
      queues.flatMap(({ poolLog, spooled }) => {
        const path = poolLog ?? (spooled ? undefined : this.ownLog);
        return path === undefined ? [] : [{ path, own: poolLog === undefined }];
      }),
    );
  }

  /** The log that HTCondor shall write for a queue's jobs. None beside the pool's: a second telling comes too late. */
  logOfJobs({ spooled, poolLog }: QueueLog): string | undefined {
    return spooled || poolLog !== undefined || this.#poolLog ? undefined : this.ownLog;
  }
}
