/** The sidecar in this process, with a factory that gives each Pod a job at once. */
import type { FastifyInstance } from 'fastify';
import type { Desk, Log, Request, WorkerNews } from '../../src/plugins/contracts/index.ts';
import type { RetrievedPodData } from '../../src/clients/interlink/wire.ts';
import type { Planner } from '../../src/sources/interlink/planner.ts';
import { PodLogs } from '../../src/sources/interlink/logs/pod-logs.ts';
import { PodBook } from '../../src/sources/interlink/pods/pod-book.ts';
import { PodFiles } from '../../src/sources/interlink/pods/pod-files.ts';
import { makeSidecarApp } from '../../src/sources/interlink/server/app.ts';
import { endServer } from '../../src/sources/interlink/server/serve.ts';
import type { PodService } from '../../src/sources/interlink/pod-service.ts';
import { Sidecar } from '../../src/sources/interlink/sidecar.ts';
import { systemClock } from '../../src/util/clock.ts';
import { isFinal, type WorkerStatus } from '../../src/worker/status.ts';
import { noRequirements } from '../../src/worker/worker.ts';
import { files as operatorFiles } from './operator-files.ts';
import { ownQueue } from './samples.ts';

/** A log that drops all. */
export const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const queue = 'pods';

interface Job {
  readonly workerId: number;
  status: WorkerStatus | 'withdrawn';
  batchId: string | null;
  /** All else that is known of it. */
  facts?: Partial<WorkerNews['worker']>;
}

export class SidecarUnderTest {
  readonly root: string;
  /** By UID: the factory's truth, which outlives the sidecar. */
  readonly jobs = new Map<string, Job>();
  /** Facts of the log, with the names of the requests. */
  readonly logged: Readonly<Record<string, unknown>>[] = [];
  readonly book: PodBook;
  readonly sidecar: Sidecar;
  /** Reasons of the queue. */
  reasons: { readonly code: string; readonly message: string }[] = [];
  /** How many jobs of each Pod have left something on the backend. */
  left = 0;
  /** Further facts of every job. */
  detail: Readonly<Record<string, unknown>> = {};
  /** Why something of every job is left. */
  whyLeft: { readonly code: string; readonly message: string } | undefined;
  /** Workers whose outputs are needed no more. */
  readonly letGo: number[] = [];
  /** How often the factory was asked for jobs by name. */
  finds = 0;
  /** Longest life of a worker of the queue, s; 0: no limit. */
  maxWalltime = 0;
  /** What was wanted last. */
  wanted: readonly Request[] = [];
  /** By how much the wall clock has been moved on, ms. */
  ahead = 0;
  /** How much longer it seems to run than it does, ms. */
  passed = 0;
  /** How often the time was asked for. */
  askedTime = 0;
  /** The sidecar's own reasons, of the last pass. */
  wantedFor: readonly { readonly code: string; readonly message: string }[] = [];
  /** Whether jobs get their ids. */
  submits = true;
  #app: FastifyInstance | undefined;
  readonly #over = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    root: string,
    planner: Planner = plainPlanner,
    createTimeout = 5000,
    keepEnded = Number.POSITIVE_INFINITY,
  ) {
    this.root = root;
    const info = (_message: string, facts: Readonly<Record<string, unknown>> = {}) => {
      this.logged.push(facts);
    };
    const log = { ...quiet, info, debug: info, warn: info };
    const files = new PodFiles(root, log, operatorFiles.laneOf(root));
    this.book = new PodBook(files, log);
    const clock = {
      ...systemClock,
      now: () => {
        this.askedTime++;
        return Date.now() + this.ahead + this.passed;
      },
      monotonic: () => systemClock.monotonic() + this.passed,
    };
    const host = { clock, log };
    this.sidecar = new Sidecar({
      host,
      book: this.book,
      planner,
      logs: new PodLogs({ host, files }),
      queue,
      createTimeout,
      lookInterval: 20,
      // A batch has to wait for nothing here: requests that come one after the other would stand in line.
      batchInterval: 1,
      keepEnded,
      longestSilence: 3_600_000,
      serve: (service, signal) => this.#serve(service, log, signal),
    });
  }

  async start(): Promise<FastifyInstance> {
    const served = new Promise<void>((resolve) => {
      this.#served = resolve;
    });
    this.#running = this.sidecar.run(this.desk(), this.#over.signal);
    // A start that fails says why.
    await Promise.race([served, this.#running]);
    if (this.#app === undefined) throw new Error('it does not serve');
    return this.#app;
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running?.catch(() => undefined);
  }

  /** One that begins after this one has stopped, on the same files and jobs. */
  next(): SidecarUnderTest {
    const next = new SidecarUnderTest(this.root);
    for (const [uid, job] of this.jobs) next.jobs.set(uid, job);
    return next;
  }

  /** Changes jobs alike, and tells of all in one call. */
  async tell(uids: string | readonly string[], more: Partial<WorkerNews['worker']>): Promise<void> {
    await this.sidecar.told([uids].flat().map((uid) => newsOf(uid, this.change(uid, more))));
  }

  /** Changes a job, of which the sidecar hears only if it asks. */
  change(uid: string, more: Partial<WorkerNews['worker']>): Job {
    const job = this.jobs.get(uid);
    if (job === undefined) throw new Error(`no job of ${uid}`);
    if (more.status !== undefined) job.status = more.status;
    job.facts = { ...job.facts, nativeStatus: null, diagMessage: null, ...more };
    return job;
  }

  #served: () => void = () => undefined;

  async #serve(service: PodService, log: Log, signal: AbortSignal): Promise<void> {
    const backend = {
      ping: () => ({ status: 'healthy', resources: { cpu: '4' } }),
      state: () => ({ trouble: undefined, totals: undefined, isHtcondor: true }),
    };
    this.#app = makeSidecarApp({ service, clock: systemClock, log, backend, version: 'test' });
    await this.#app.ready();
    this.#served();
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
    await endServer(this.#app, service, systemClock);
  }

  /** The queue asks what is wanted. */
  async pass(): Promise<void> {
    const { maxWalltime } = this;
    const { requests, reasons } = await this.sidecar.wanted({
      ...fakeQueue,
      requirements: { ...noRequirements, maxWalltime },
    });
    this.wanted = requests;
    this.wantedFor = reasons;
    for (const { origin } of requests) {
      if (!this.submits || this.jobs.has(origin.uid)) continue;
      const workerId = this.jobs.size + 1;
      this.jobs.set(origin.uid, { workerId, status: 'submitted', batchId: `${workerId}.0` });
      await this.tell(origin.uid, {});
    }
  }

  desk(): Desk {
    const desk: Partial<Desk> = {
      wake: () => {
        setTimeout(() => {
          this.pass().catch((error: unknown) => {
            this.reasons = [{ code: 'plugin-failed', message: String(error) }];
          });
        }, 2);
      },
      end: async (origins) => {
        for (const { uid } of origins) {
          const job = this.jobs.get(uid);
          if (job?.status === 'withdrawn') continue;
          if (job !== undefined) job.status = 'cancelled';
          else this.jobs.set(uid, { workerId: 0, status: 'withdrawn', batchId: null });
        }
      },
      discard: async () => this.left,
      whyLeft: () => this.whyLeft,
      dropOutputs: async (workerIds) => {
        this.letGo.push(...workerIds);
      },
      detail: async () => this.detail,
      find: async (filters) => {
        this.finds++;
        return filters.flatMap(({ uid }) => {
          const job = this.jobs.get(uid);
          return job === undefined ? [] : [newsOf(uid, job)];
        });
      },
      living: async () =>
        [...this.jobs].flatMap(([uid, job]) =>
          job.status === 'withdrawn' || isFinal(job.status) ? [] : [newsOf(uid, job)],
        ),
      reasons: () => this.reasons,
      queues: () => [queue],
      ownQueues: () => [ownQueue(queue)],
    };
    return desk as Desk;
  }
}

const fakeQueue = {
  name: queue,
  own: true,
  options: {},
  mapType: 'NoJob',
  runMode: 'self',
};

export const plainPlanner: Planner = ({ pod: { metadata, spec } }: RetrievedPodData) => ({
  payload: { argv: ['true'], env: { POD: metadata.name ?? '' } },
  requirements: {},
  containers: [...(spec.initContainers ?? []), ...spec.containers].map(({ name }) => name),
  warnings: [],
});

function newsOf(uid: string, { workerId, status, batchId, facts }: Job): WorkerNews {
  const unknown = {
    computingSite: null,
    resourceType: null,
    jobType: null,
    nCore: null,
    minRamCount: null,
    nativeStatus: null,
    exitCode: null,
    errorCode: null,
    diagMessage: null,
    node: null,
    computingElement: null,
    placement: null,
    creationTime: 1,
    submitTime: null,
    startTime: null,
    endTime: null,
  };
  const worker = { ...unknown, workerId, batchId, ...facts, status };
  return { sequence: 1, at: 0, what: 'changed', origin: { uid, index: 0 }, queue, worker };
}
