import type { Desk, Request } from '../../src/plugins/contracts/index.ts';
import { KubernetesError } from '../../src/clients/kubernetes/errors.ts';
import type { HtcJob, HtcJobMeta, HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import { Asking } from '../../src/sources/htcjob/asking.ts';
import { HtcJobCluster } from '../../src/sources/htcjob/cluster.ts';
import type { Note } from '../../src/sources/htcjob/events.ts';
import { ImageJobs } from '../../src/sources/htcjob/job/image-jobs.ts';
import { noOutputs, type Outputs } from '../../src/sources/htcjob/output/outputs.ts';
import { Stepper } from '../../src/sources/htcjob/stepper.ts';
import { type Followed, kept } from '../../src/sources/htcjob/followed.ts';
import { Tracked } from '../../src/sources/htcjob/tracked.ts';
import { Turns } from '../../src/sources/htcjob/turns.ts';
import { indexOf } from '../../src/clients/htcjob/numbers.ts';
import type { WorkerNews } from '../../src/worker/news.ts';
import type { Reason } from '../../src/worker/reason.ts';
import { isFinal, type WorkerStatus } from '../../src/worker/status.ts';
import { ManualClock } from './manual-clock.ts';
import { recordingLog } from './samples.ts';

const never = new AbortController().signal;

/** News of an attempt, as the database has it. */
export function newsOf(uid: string, index: number, status: WorkerStatus, exitCode: number | null = null) {
  const worker = {
    workerId: index + 1,
    status,
    nativeStatus: status,
    exitCode,
    diagMessage: null,
    batchId: '1.0',
    submitTime: 1,
    endTime: isFinal(status) ? 2 : null,
    creationTime: 1,
  };
  return {
    sequence: 1,
    at: 0,
    what: 'changed',
    origin: { uid, index },
    queue: 'Q',
    worker,
  } as unknown as WorkerNews;
}

/** The steps of one resource, with a server and a desk that write down what they are asked. */
export class StepperSite {
  readonly clock = new ManualClock();
  readonly log = recordingLog();
  /** The workers that the database knows. */
  found: WorkerNews[] = [];
  /** Origins that were ended, with the reason. */
  readonly ended: [index: number, why: string][] = [];
  /** Workers that live or have left something. */
  left = 0;
  /** Why, by worker. */
  readonly whyLeft = new Map<number, Reason>();
  /** What the backend says of it, by worker. */
  readonly details = new Map<number, Readonly<Record<string, unknown>>>();
  outputs: Outputs = noOutputs;
  queue: string | Reason | undefined = 'Q';
  /** Why the queue gives no workers. */
  reasons: readonly Reason[] = [];
  /** Why jobs may live that the database does not have. */
  unlisted: Reason | undefined;
  readonly secrets = new Map<string, Readonly<Record<string, string>>>();
  /** How far the clock of the server is ahead of ours, ms. */
  serverAhead = 0;
  /** The log of a worker; it may throw, or never come. */
  logOf: (workerId: number, stream: string) => string | Promise<string> = () => '';
  /** Worker and stream of each log that was read. */
  readonly logReads: string[] = [];
  /** Names of the HTCJobs that were read. */
  readonly reads: string[] = [];
  /** The server gives no answer to a read of a HTCJob. */
  readFails = false;
  /** Names of the Secrets that were read. */
  readonly secretReads: string[] = [];
  readonly notes: Note[] = [];
  /** "finalizer", "status REASON", "delete", in their order. */
  readonly asked: string[] = [];
  /** The preconditions of each. */
  readonly deletions: { readonly uid: string | undefined; readonly resourceVersion: string | undefined }[] =
    [];
  statuses: HtcJobStatus[] = [];
  /** What happens between a write and its answer. */
  meanwhile: (() => void) | undefined;
  /** What a server answers to a change of the finalizer, which it has not made; it may throw. */
  finalizerAnswer: ((before: HtcJob | undefined) => object) | undefined;
  readonly asking: Asking;
  readonly stepper: Stepper;
  /** By name, as the server has them. */
  readonly #objects = new Map<string, HtcJob>();
  #version = 10;

  constructor() {
    const desk: Pick<Desk, 'find' | 'end' | 'discard' | 'wake' | 'reasons' | 'detail' | 'whyLeft' | 'logs'> =
      {
        find: async () => this.found,
        end: async (origins, why) => {
          for (const { index } of origins) this.ended.push([index, why]);
        },
        discard: async () => this.left,
        whyLeft: (workerId) => this.whyLeft.get(workerId),
        wake: () => undefined,
        reasons: () => this.reasons,
        detail: async (workerId) => this.details.get(workerId),
        logs: async (workerId, { stream }) => {
          this.logReads.push(`${workerId} ${stream}`);
          const text = await this.logOf(workerId, stream);
          return (async function* () {
            yield Buffer.from(text);
          })();
        },
      };
    const { clock } = this;
    const ahead = () => this.serverAhead;
    const cluster = new HtcJobCluster({
      get clockOffset() {
        return ahead();
      },
      get: async (path: string) => {
        const name = path.split('/').at(-1) ?? '';
        if (path.includes('/htcjobs/')) {
          this.reads.push(name);
          if (this.readFails)
            throw new KubernetesError({ code: 'kubernetes-unreachable', message: path, maybeDone: false });
          const object = this.#objects.get(name);
          if (object !== undefined) return object;
        } else this.secretReads.push(name);
        const data = this.secrets.get(name);
        if (data !== undefined) return { data } as object;
        throw new KubernetesError({ code: 'kubernetes-not-found', message: path, maybeDone: false });
      },
      patch: async (path: string, object: unknown) => {
        const { status, metadata: asked } = object as Pick<HtcJob, 'status' | 'metadata'>;
        this.asked.push(path.endsWith('/status') ? `status ${status?.reason ?? ''}` : 'finalizer');
        if (status !== undefined) this.statuses.push(status);
        const [, name = ''] = /\/htcjobs\/([^/]+)/.exec(path) ?? [];
        const before = this.#objects.get(name);
        if (status === undefined && this.finalizerAnswer !== undefined) return this.finalizerAnswer(before);
        const resourceVersion = String(++this.#version);
        const { finalizers } = asked;
        const metadata = {
          ...(before?.metadata ?? asked),
          resourceVersion,
          ...(status === undefined && finalizers && { finalizers }),
        };
        if (before !== undefined) this.#objects.set(name, { ...before, metadata, ...(status && { status }) });
        this.meanwhile?.();
        return { metadata };
      },
      delete: async (_, { uid, resourceVersion }) => {
        this.asked.push('delete');
        this.deletions.push({ uid, resourceVersion });
      },
    });
    const maker = new ImageJobs({ binds: [], runtime: 'none', events: undefined });
    this.asking = new Asking({
      clock,
      desk,
      cluster,
      maker,
      queueOf: () => this.queue,
      waker: { hasRequests: () => undefined },
      turns: new Turns(),
    });
    this.stepper = new Stepper({
      leaveBehind: async () => undefined,
      factoryId: 'factory',
      clock,
      log: this.log,
      desk: desk as Desk,
      cluster,
      events: { write: (_, notes) => this.notes.push(...notes) },
      maker,
      outputs: {
        want: (...want) => {
          this.outputs.want(...want);
        },
        inStatus: (...facts) => this.outputs.inStatus(...facts),
        isOpen: (one) => this.outputs.isOpen(one),
        letGo: (one) => {
          this.outputs.letGo(one);
        },
        remove: (one) => this.outputs.remove(one),
      },
      asking: this.asking,
      whyUnlisted: () => this.unlisted,
    });
  }

  /** A resource with its finalizer. */
  track(job: HtcJob, status?: HtcJobStatus, metadata: Partial<HtcJobMeta> = {}): Tracked {
    return new Tracked(this.object(job, status, metadata));
  }

  /** The next version of it, as a watch brings it. */
  object(job: HtcJob, status?: HtcJobStatus, metadata: Partial<HtcJobMeta> = {}): Followed {
    const meta = {
      ...job.metadata,
      resourceVersion: String(++this.#version),
      finalizers: ['finalizer.htc.cern.ch'],
    };
    const object = { ...job, metadata: { ...meta, ...metadata }, ...(status && { status }) };
    this.#objects.set(meta.name, object);
    return kept(object);
  }

  /** The server has it no more, and no watch has told of that. */
  gone(name: string): void {
    this.#objects.delete(name);
  }

  step(tracked: Tracked): Promise<number | undefined> {
    return this.stepper.step(tracked, never);
  }
}

export function askedOf({ asked }: { readonly asked: ReadonlyMap<number, Request> }): readonly number[] {
  return [...asked.keys()];
}

/** Index of the first retry of job 0. */
export const firstRetry = indexOf({ round: 0, attempt: 1, number: 0 });
