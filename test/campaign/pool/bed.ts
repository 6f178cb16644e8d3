import { execFile } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { HTCondorClient } from '../../../src/clients/htcondor/client.ts';
import { parseSnapshot } from '../../../src/config/queues/queues.ts';
import { shapeOfOrigin } from '../../../src/sources/htcondor-idle/wishes.ts';
import { writeToken } from '../../env/htcondor/pool.ts';
import { clientOf, ownPool, type Pool, type ScheddKind } from '../../support/htcondor.ts';
import { condorEnvironment, condorSite } from '../../support/htcondor-site.ts';
import type { RunningDaemon, Site } from '../../support/site.ts';
import { startdTemplate, type StartdWorkerOptions } from '../../support/startd-worker.ts';
import { until } from '../../support/until.ts';
import type { Caps, RecordedWorker } from './caps-kept.ts';
import { FaultyTools } from './faulty-tools.ts';

const run = promisify(execFile);

/** A kind of worker: a whole machine of so many cores and MiB. */
export interface BedShape {
  readonly cpus: number;
  readonly memory: number;
}

export const bedShapes: Readonly<Record<string, BedShape>> = {
  small: { cpus: 1, memory: 1024 },
  big: { cpus: 4, memory: 4096 },
};

export interface BedOptions {
  /** s */
  readonly interval: number;
  /** s */
  readonly joinTimeout: number;
  readonly worker: StartdWorkerOptions;
}

/** A job as a test submits it. */
export interface JobWish {
  readonly cpus: number;
  /** MiB */
  readonly memory: number;
  /** s */
  readonly seconds: number;
  /** It ends once this file is there, in place of `seconds`. */
  readonly gate?: string;
  /** ClassAd expression about the machine. */
  readonly requirements?: string;
}

/** A startd of ours as the collector shows it. */
export interface SlotRow {
  readonly name: string;
  readonly worker: number;
  readonly state: string;
  readonly dynamic: boolean;
  readonly address: string;
  readonly factory: string;
}

/** The same pool, as one that may drain its machines reaches it. */
function asAdministrator(pool: Pool): Pool {
  return { ...pool, local: { ...pool.local, tokens: join(pool.directory, 'administrator') } };
}

/** More than the workers of any test. */
const firstVersion = 50;

type OwnedPool = Pool & { readonly stop: () => Promise<void> };

/** A pool of its own whose only machines are workers of a thresher of its own, on the local backend. */
export class PoolBed implements AsyncDisposable {
  readonly pool: OwnedPool;
  readonly site: Site;
  readonly tools: FaultyTools;
  readonly environment: Readonly<Record<string, string>>;
  readonly #clients: Readonly<Record<ScheddKind, HTCondorClient>>;
  readonly #options: BedOptions;
  readonly #written = new Map<number, Caps>();

  private constructor(pool: OwnedPool, options: BedOptions) {
    this.pool = pool;
    this.#options = options;
    const { interval, joinTimeout } = options;
    this.site = condorSite(
      {
        queues: {},
        settings: {
          submitter: { sleepTime: 0.2 },
          sweeper: { sleepTime: 0.3 },
          monitor: { missingGrace: 1 },
          qconf: { checkInterval: 0.5 },
          sources: { 'htcondor-idle': { condorPool: pool.pool, interval, joinTimeout } },
        },
      },
      {},
    );
    const work = this.site.path('startds');
    const template = startdTemplate(pool, work, options.worker);
    writeFileSync(this.site.path('pilot.yaml'), JSON.stringify(template));
    this.tools = new FaultyTools(this.site.path('tools'), pool.programs);
    const inherited = condorEnvironment(asAdministrator(pool), this.site.directory);
    this.environment = {
      ...inherited,
      PATH: `${this.tools.directory}${delimiter}${inherited['PATH'] ?? ''}`,
    };
    this.#clients = { local: clientOf(pool, 'local'), remote: clientOf(pool, 'remote') };
  }

  static async start(options: BedOptions): Promise<PoolBed> {
    // Its own machine takes no jobs.
    const pool = await ownPool([
      'START = False',
      'CLASSAD_LIFETIME = 60',
      'REMOTE.SCHEDD_CLUSTER_INITIAL_VALUE = 100000',
    ]);
    const programs = join(pool.programs, '../..');
    // Draining asks for an administrator.
    await writeToken(pool.directory, programs, 'condor', asAdministrator(pool).local.tokens);
    const bed = new PoolBed(pool, options);
    await bed.#learn();
    return bed;
  }

  /** Another factory on the same pool, with the same slot ads. Its end leaves the pool alone. */
  beside(): PoolBed {
    const other = new PoolBed({ ...this.pool, stop: () => Promise.resolve() }, this.#options);
    for (const shape of Object.keys(bedShapes))
      copyFileSync(this.site.path(`${shape}.ad`), other.site.path(`${shape}.ad`));
    return other;
  }

  /** Writes the queue file. A running daemon reads it within a second, or at a SIGHUP. */
  writeCaps(caps: Caps): void {
    const version = this.#written.size + 1;
    this.#written.set(version, caps);
    // So many never live: as a limit the version is in all that thresher keeps of the queue.
    const maxWorkers = firstVersion + version;
    const queues = Object.entries(caps).map(([name, shapes]) => [
      name,
      {
        maxWorkers,
        nQueueLimitWorker: maxWorkers,
        demand: {
          name: 'htcondor-idle',
          shapes: Object.entries(shapes).map(([shape, most]) => ({
            name: shape,
            slotAd: `${shape}.ad`,
            most,
            nCore: bedShapes[shape]?.cpus,
            minRamCount: bedShapes[shape]?.memory,
          })),
        },
      },
    ]);
    this.site.writeQueues(Object.fromEntries(queues) as Record<string, Record<string, unknown>>);
  }

  /** All caps that were written so far, by their versions, the first of which is 1. */
  get written(): ReadonlyMap<number, Caps> {
    return this.#written;
  }

  /** By which version each queue runs, as thresher says. */
  async versions(): Promise<Map<string, number>> {
    const queues = await this.site.queues();
    return new Map(
      queues.flatMap(({ name, limits: { maxWorkers } }) =>
        typeof maxWorkers === 'number' ? [[name, maxWorkers - firstVersion] as const] : [],
      ),
    );
  }

  /** The workers of shapes as thresher recorded them. */
  recorded(): Promise<RecordedWorker[]> {
    return this.site.read(async ({ store }) => {
      const found: RecordedWorker[] = [];
      const versions = new Map<number, number>();
      for (const { workerId, queue, origin, configId, creationTime } of await store.workers.list({})) {
        const shape = shapeOfOrigin(origin)?.slice(queue.length + 1);
        if (shape === undefined) continue;
        if (!versions.has(configId)) {
          const snapshot = (await store.queues.snapshot(configId))?.snapshot ?? '{}';
          versions.set(configId, parseSnapshot(snapshot).limits.maxWorkers - firstVersion);
        }
        const version = versions.get(configId) ?? NaN;
        found.push({ workerId, queue, shape, version, createdAt: creationTime });
      }
      return found;
    });
  }

  startDaemon(more: Readonly<Record<string, string>> = {}): RunningDaemon {
    return this.site.start([], { ...this.environment, ...more });
  }

  /** @returns the cluster */
  async submit(kind: ScheddKind, wish: JobWish, count = 1): Promise<number> {
    const { cpus, memory, seconds, gate, requirements } = wish;
    const text = [
      ...(gate === undefined
        ? ['executable = /bin/sleep', `arguments = ${seconds}`]
        : ['executable = /bin/sh', `arguments = "-c 'until test -e ${gate}; do sleep 0.1; done'"`]),
      'transfer_executable = false',
      ...[
        'initialdir = /tmp',
        'should_transfer_files = YES',
        'transfer_output_files = ""',
        `request_cpus = ${cpus}`,
      ],
      ...[`request_memory = ${memory}`, 'request_disk = 1024'],
      ...(requirements === undefined ? [] : [`requirements = ${requirements}`]),
      `queue ${count}`,
    ].join('\n');
    const [job] = await this.#clients[kind].submit(text, {}, new AbortController().signal);
    if (job === undefined) throw new Error('no job was submitted');
    return job.cluster;
  }

  /**
   * Removes all jobs, and waits until the workers have left by themselves. Killed ones would leave claims behind, on which a schedd
   * starts later jobs in vain.
   */
  async empty(): Promise<void> {
    await until('all jobs are removed', async () => {
      const { signal } = new AbortController();
      const remove = (client: HTCondorClient) => client.act('remove', 'true', 'a test', signal);
      await Promise.all(Object.values(this.#clients).map(remove));
      return (await this.waiting()) === 0;
    });
    await until('all workers have left', () => this.site.liveShims().size === 0);
  }

  client(kind: ScheddKind): HTCondorClient {
    return this.#clients[kind];
  }

  /** Slots of workers, by the collector itself: no wrapper stands between. */
  async slots(): Promise<SlotRow[]> {
    const attributes = ['Name', 'ThresherWorker', 'State', 'SlotType', 'MyAddress', 'ThresherFactory'];
    const constraint = ['-constraint', 'ThresherWorker =!= undefined'];
    const stdout = await this.condor('condor_status', ...constraint, '-af', ...attributes);
    return stdout.split('\n').flatMap((line) => {
      const [name, worker, state, type, address = '', factory = ''] = line.split(' ');
      if (name === undefined || name === '' || state === undefined) return [];
      return [{ name, worker: Number(worker), state, dynamic: type === 'Dynamic', address, factory }];
    });
  }

  /** Jobs of both schedds in the queue that wait or run. */
  waiting(): Promise<number> {
    return this.#count('JobStatus == 1 || JobStatus == 2');
  }

  running(): Promise<number> {
    return this.#count('JobStatus == 2');
  }

  async #count(constraint: string): Promise<number> {
    const { signal } = new AbortController();
    const ask = (client: HTCondorClient) => client.queue(constraint, ['ClusterId'], signal);
    return (await Promise.all(Object.values(this.#clients).map(ask))).flat().length;
  }

  /** Runs a tool of HTCondor as the administrator of the pool. */
  async condor(tool: string, ...args: readonly string[]): Promise<string> {
    const env = {
      PATH: process.env['PATH'] ?? '',
      CONDOR_CONFIG: join(this.pool.directory, 'condor_config'),
    };
    return (await run(join(this.pool.programs, tool), args, { env })).stdout;
  }

  /** The process of a daemon of the pool: `condor_collector`. */
  pidOf(daemon: string): number {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        const parent = Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]);
        if (parent === this.pool.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(daemon))
          return Number(pid);
      } catch {
        // Gone meanwhile.
      }
    }
    throw new Error(`no ${daemon} runs`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.clean();
    await this.pool.stop();
  }

  /** Takes the slot ads of both shapes from real startds, as `thresher pool learn` does. */
  async #learn(): Promise<void> {
    const worker = JSON.parse(readFileSync(this.site.path('pilot.yaml'), 'utf8')) as { args: string[] };
    const learnt = Object.entries(bedShapes).map(async ([shape, { cpus, memory }], at) => {
      const id = 900_001 + at;
      const env = {
        ...process.env,
        HARVESTER_WORKER_ID: String(id),
        nCore: String(cpus),
        minRamCount: String(memory),
        THRESHER_FACTORY: 'learn',
        pandaQueueName: 'learn',
        POOL_SHAPE: shape,
        THRESHER_WORKER_DIR: this.site.path('learn'),
      };
      const stop = new AbortController();
      const startd = run('/bin/sh', worker.args, { env, signal: stop.signal }).catch(() => undefined);
      try {
        const ad = await until(`a startd of ${shape} is in the pool`, async () => {
          const found = await this.condor(
            'condor_status',
            '-long',
            '-constraint',
            `ThresherWorker =?= ${id}`,
          );
          return found.trim() !== '' && found;
        });
        const lines = ad.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('Thresher'));
        writeFileSync(this.site.path(`${shape}.ad`), `${lines.join('\n')}\n`);
        await this.condor('condor_drain', '-exit-on-completion', /^Name = "(.*)"/m.exec(ad)?.[1] ?? '');
      } finally {
        const late = setTimeout(() => {
          stop.abort();
        }, 20_000);
        await startd;
        clearTimeout(late);
      }
    });
    await Promise.all(learnt);
  }
}
