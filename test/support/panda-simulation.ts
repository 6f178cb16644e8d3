import type { PandaCommand } from '../../src/clients/panda/api.ts';
import { pandaTime } from '../../src/clients/panda/times.ts';
import type {
  Desk,
  KnownWorker,
  OriginKey,
  SourceQueue,
  WorkerNews,
} from '../../src/plugins/contracts/index.ts';
import type { PandaLink } from '../../src/sources/panda/link.ts';
import { makeLink } from '../../src/sources/panda/make-link.ts';
import { LinkMemory } from '../../src/sources/panda/memory.ts';
import { linkOptions, type PandaQueueOptions } from '../../src/sources/panda/options.ts';
import type { StatusFile } from '../../src/sources/panda/status-file.ts';
import { isFinal } from '../../src/worker/status.ts';
import { ManualClock } from './manual-clock.ts';
import { recordingLog, requirements, ownQueue } from './samples.ts';
import { memoryFor } from './source-memory.ts';

const period = 300;

export interface Simulated {
  /** When the server makes its orders within their period, s. */
  readonly serverPhase: number;
  /** When the factory starts, and so reports statistics, s. */
  readonly start: number;
  /** How many workers the factory makes in a second. */
  readonly rate: number;
  /** How long the news of a worker take, s. */
  readonly newsDelay?: number;
  /** How many queued workers the server wants. */
  readonly target?: number;
  /** How long after it read the statistics the server makes its order, s. */
  readonly serverDelay?: number;
  /** How long a worker is queued, and then runs, s. */
  readonly lasts?: number;
  /** How far the server's clock is ahead, s. */
  readonly ahead?: number;
  /** How far it is ahead by the date of its answers, if that is another one, s. */
  readonly saidAhead?: number;
  /** Of the calls with statistics, from 1: those without an answer, and how long after it the server carries each out, s. */
  readonly lateStatistics?: ReadonlyMap<number, number>;
}

interface Row {
  readonly origin: OriginKey;
  readonly worker: KnownWorker;
}

/** The daemon died there. */
class Died extends Error {}

/**
 * A factory and a PanDA server with the server's own rule, on a clock that is turned by hand. The link is the real one. Its surroundings
 * count what they do for it, so that the daemon can die at any of these effects.
 */
export class PandaSimulation {
  readonly clock = new ManualClock();
  readonly log = recordingLog();
  /** Effects so far: calls of the server, writes of the memory, questions to the database. */
  effects = 0;
  /** The daemon dies before or after this effect. */
  deathAt: { readonly effect: number; readonly when: 'before' | 'after' } | undefined;
  readonly workers: Row[] = [];
  /** Orders that the server made, and how many workers each was of. */
  readonly orders: number[] = [];
  link!: PandaLink;
  readonly #options: Required<Simulated>;
  #seconds = 0;
  #memory = '';
  #withdrawn = new Set<string>();
  #stop = new AbortController();
  #life: Promise<unknown> = Promise.resolve();
  #generation = 0;
  #news: { readonly at: number; readonly news: WorkerNews }[] = [];
  #lastId = 0;
  /** What the server was told last. */
  #queued: number | undefined;
  #told = 0;
  /** Statistics of calls without an answer. */
  #late: { readonly at: number; readonly queued: number }[] = [];
  /** Queued workers in the statistics that the server read for its next order. */
  #read: number | undefined;
  #commands: PandaCommand[] = [];
  #commandId = 0;
  #isOrderLost = false;
  /** What the last poll got, and the memory does not have yet. */
  #given: readonly PandaCommand[] = [];
  /** How many of the next worker are due. */
  #room = 0;

  constructor(options: Simulated) {
    const { ahead = 0 } = options;
    const usual = { newsDelay: 0, target: 100, serverDelay: 0, lasts: Infinity, ahead, saidAhead: ahead };
    this.#options = { ...usual, lateStatistics: new Map(), ...options };
  }

  /** Lets the factory begin, again after a death. */
  start(): void {
    const generation = ++this.#generation;
    this.#stop = new AbortController();
    this.deathAt = undefined;
    const memory = new LinkMemory(
      memoryFor(
        (text) =>
          this.#effect(generation, () => {
            this.#memory = text;
            this.#given = [];
          }),
        () => (this.#memory === '' ? undefined : this.#memory),
      ),
    );
    const nothing = { kind: 'ok', data: null } as const;
    const call = <Data>(data: () => Data) =>
      this.#effect(generation, () => ({ kind: 'ok', data: data() }) as const);
    this.link = makeLink({
      api: {
        heartbeat: async () => nothing,
        currentWorkerId: async () => ({ kind: 'ok', data: 0 }),
        resourceTypes: async () => ({ kind: 'ok', data: [] }),
        activeJobs: async () => ({ kind: 'ok', data: {} }),
        workerStatistics: async () => ({ kind: 'ok', data: {} }),
        updateWorkers: async (workers) => ({ kind: 'ok', data: workers.map(() => true) }),
        acquireCommands: () =>
          call(() => {
            this.#given = this.#commands.splice(0);
            return this.#given;
          }),
        acknowledge: () => call(() => null),
        reportStatistics: (_, statistics) =>
          this.#effect(generation, () => {
            const numbers = Object.values(statistics).flatMap((byType) => Object.values(byType));
            const queued = numbers.reduce((sum, { submitted = 0 }) => sum + submitted, 0);
            const late = this.#options.lateStatistics.get(++this.#told);
            if (late === undefined) {
              this.#queued = queued;
              return nothing;
            }
            this.#late.push({ at: this.#seconds + late, queued });
            return { kind: 'failed', code: 'panda-no-answer', message: 'lost', maybeDone: true };
          }),
      },
      memory,
      status: { write: async () => undefined } as unknown as StatusFile,
      serverAhead: () => ({ ahead: this.#options.saidAhead * 1000, within: 1000 }),
      options: linkOptions({ heartbeatInterval: 600, statisticsInterval: 300, jobsInterval: 60 }),
      clock: this.clock,
      log: this.log,
      harvesterId: 'simulated',
      url: 'https://simulated',
      version: '1',
      host: 'here',
    });
    this.#life = this.link.run(this.#desk(generation), this.#stop.signal).catch((error: unknown) => {
      if (!(error instanceof Died)) throw error;
    });
  }

  /** The daemon is gone: nothing that it had under way happens any more. */
  die(): void {
    this.#isOrderLost ||= this.#given.length > 0;
    this.#given = [];
    this.#generation++;
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    this.die();
    await this.#life;
  }

  /** The daemon died, and was not started again. */
  get isDead(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The daemon died between the server's answer with an order and the write of it: the server gives none twice. */
  get isOrderLost(): boolean {
    return this.#isOrderLost;
  }

  get queued(): number {
    return this.workers.filter(({ worker: { status } }) => status === 'submitted').length;
  }

  /** Lets so many seconds go by. */
  async run(seconds: number, eachSecond?: () => void): Promise<void> {
    const { serverPhase, serverDelay, start } = this.#options;
    for (let left = seconds; left > 0; left--) {
      await this.clock.advance(1000);
      const now = ++this.#seconds;
      if (now === start) this.start();
      for (const { at, queued } of this.#late) if (at === now) this.#queued = queued;
      if (now % period === serverPhase) this.#read = this.#queued;
      if (now % period === (serverPhase + serverDelay) % period) this.#order();
      this.#age();
      if (now > start) await this.#pass();
      eachSecond?.();
    }
  }

  /** A command that an operator of the server makes. */
  command(command: string, params: unknown): void {
    const creation = pandaTime(this.clock.now() + this.#options.ahead * 1000);
    this.#commands = this.#commands.filter((one) => one.command !== command);
    this.#commands.push({ command_id: ++this.#commandId, command, params, creation_date: creation });
  }

  /** Workers start, and end. */
  #age(): void {
    const { lasts } = this.#options;
    if (lasts === Infinity) return;
    for (const [at, row] of this.workers.entries()) {
      const { status, creationTime } = row.worker;
      if (isFinal(status as 'submitted')) continue;
      const age = this.clock.now() - (creationTime ?? 0);
      const now = age > 2 * lasts * 1000 ? 'finished' : age > lasts * 1000 ? 'running' : status;
      if (now !== status) this.workers[at] = { ...row, worker: { ...row.worker, status: now } };
    }
  }

  /** The server's rule: no statistics, no order; else what lacks, by the last statistics. */
  #order(): void {
    if (this.#read === undefined) return;
    const wanted = Math.max(0, this.#options.target - this.#read);
    this.orders.push(wanted);
    this.command('SET_N_WORKERS_JOBTYPE:Q', { managed: { SCORE: wanted } });
  }

  /** One pass of the queue's submitter, and the news that are due. */
  async #pass(): Promise<void> {
    const { rate, newsDelay } = this.#options;
    const generation = this.#generation;
    const queue: SourceQueue<PandaQueueOptions> = {
      name: 'Q',
      requirements,
      own: true,
      options: {},
      mapType: 'NoJob',
      runMode: 'slave',
    };
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const { series = [] } = await this.link.wanted(queue);
    const requests = series.flatMap(({ requests: some }) => [...some]);
    if (generation !== this.#generation) return;
    const had = new Set([...this.workers.map(({ origin }) => keyOf(origin)), ...this.#withdrawn]);
    this.#room = Math.min(this.#room + rate, Math.max(1, rate));
    const free = requests.filter(({ origin }) => !had.has(keyOf(origin))).slice(0, this.#room);
    this.#room -= free.length;
    for (const { origin, requirements: needs } of free) this.#make(origin, needs?.resourceType ?? 'SCORE');
    const due = this.#news.filter(({ at }) => at + newsDelay * 1000 <= this.clock.now());
    this.#news = this.#news.filter((one) => !due.includes(one));
    await this.link.told(
      due.map(({ news }) => news),
      signal,
    );
    await this.clock.settle();
  }

  #make(origin: OriginKey, resourceType: string): void {
    const workerId = ++this.#lastId;
    const at = this.clock.now();
    const worker = {
      workerId,
      status: 'submitted',
      computingSite: 'Q',
      resourceType,
      creationTime: at,
    } as unknown as KnownWorker;
    this.workers.push({ origin, worker });
    const news: WorkerNews = { sequence: workerId, at, what: 'added', origin, queue: 'Q', worker };
    this.#news.push({ at, news });
  }

  #desk(generation: number): Desk {
    const known = ({ origin, worker }: Row): WorkerNews => ({
      sequence: 0,
      at: 0,
      what: 'known',
      origin,
      queue: 'Q',
      worker,
    });
    const effect = <T>(work: () => T) => this.#effect(generation, work);
    return {
      wake: () => undefined,
      end: (origins) =>
        effect(() => {
          for (const origin of origins) {
            const at = this.workers.findIndex((row) => keyOf(row.origin) === keyOf(origin));
            const row = this.workers[at];
            if (row === undefined) this.#withdrawn.add(keyOf(origin));
            else this.workers[at] = { ...row, worker: { ...row.worker, status: 'cancelled' } };
          }
        }),
      withdraw: (origins) =>
        effect(() => {
          const made = new Set(this.workers.map(({ origin }) => keyOf(origin)));
          for (const key of origins.map(keyOf)) if (!made.has(key)) this.#withdrawn.add(key);
        }),
      find: (filters) =>
        effect(() =>
          this.workers.filter(({ origin }) => filters.some(({ uid }) => uid === origin.uid)).map(known),
        ),
      living: () =>
        effect(() => this.workers.filter(({ worker }) => worker.status === 'submitted').map(known)),
      census: () =>
        effect(() => {
          const alike = { queue: 'Q', computingSite: 'Q', resourceType: 'SCORE', jobType: 'managed' };
          const living = [{ ...alike, status: 'submitted' as const, workers: this.queued }];
          return { at: this.clock.now(), upTo: this.#lastId, living };
        }),
      output: async () => undefined,
      dropOutputs: async () => undefined,
      madeSince: (_, { at, upTo }) =>
        effect(() => {
          const made = this.workers.filter(
            ({ worker: { workerId, creationTime } }) => (workerId ?? 0) > upTo || (creationTime ?? 0) > at,
          );
          return new Map([['SCORE', made.length]]);
        }),
      queued: async () => this.queued,
      alive: async () => new Set(),
      discard: async () => 0,
      whyLeft: () => undefined,
      expectEnd: () => undefined,
      detail: async () => undefined,
      logs: () => Promise.reject(new Error('none')),
      peek: async () => undefined,
      reasons: () => [],
      unlisted: () => undefined,
      queues: () => ['Q'],
      ownQueues: () => [ownQueue('Q', { runMode: 'slave' })],
      keepIdsAbove: async () => undefined,
    };
  }

  async #effect<T>(generation: number, work: () => T): Promise<T> {
    if (generation !== this.#generation) throw new Died();
    await Promise.resolve();
    const effect = ++this.effects;
    const dies = this.deathAt?.effect === effect ? this.deathAt.when : undefined;
    if (dies === 'before') this.#dieAt();
    const result = work();
    if (dies === 'after') this.#dieAt();
    return result;
  }

  #dieAt(): never {
    this.die();
    throw new Died();
  }
}

function keyOf({ uid, index }: OriginKey): string {
  return `${index} ${uid}`;
}
