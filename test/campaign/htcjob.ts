import { chmodSync, chownSync, mkdirSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ad } from '../../src/clients/htcondor/json-objects.ts';
import { markedWorker } from '../../src/worker/marked.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { ownPool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, type HtcJobObject, HtcJobs, isOver, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';
import { attemptOf } from '../../src/clients/htcjob/numbers.ts';
import type { HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import { type Arena, type Fault, limits, type Seen } from './arena.ts';
import type { Dice } from './dice.ts';
import { masterOfCampaigns, type OwnPool, settings, StruckPool } from './htcondor.ts';
import { faultsOf, type Spell, usualSpells } from './kubernetes.ts';

/** What the operator writes. */
const writes = { verb: 'patch', resource: 'htcjobs' } as const;
const statuses = { verb: 'patch', resource: 'htcjobs/status' } as const;

const spells: readonly Spell[] = [
  ...[writes, statuses].flatMap((rule): Spell[] => [
    {
      name: `answers to changes of ${rule.resource} are lost`,
      weight: 3,
      rule,
      fault: () => ({ kind: 'cut-after' }),
      lasts: [500, 3000],
    },
    {
      name: `changes of ${rule.resource} are carried out late`,
      weight: 3,
      rule,
      fault: (dice) => ({ kind: 'late', until: sleep(dice.between(500, 5000)) }),
      lasts: [300, 1500],
    },
  ]),
  ...usualSpells,
];

/** ms. */
const longestEnd = 180_000;

/**
 * HTCJobs of a user who keeps both queues busy: a real API server behind a proxy that makes faults, and a real pool whose schedd is killed.
 * Each job leaves a file with its HTCJob, number and worker, so that it is known which ran, and how often.
 */
export class HtcJobArena implements Arena {
  readonly site: Site;
  readonly environment: Readonly<Record<string, string>>;
  readonly hidden: ReadonlySet<number>;
  readonly faults: readonly Fault[];
  readonly #struck: StruckPool;
  readonly #space: Namespace;
  readonly #proxy: FaultProxy;
  readonly #jobs: HtcJobs;
  readonly #over = new AbortController();
  readonly #user: Promise<void>;
  /** Names of HTCJobs that their user suspended for a while. */
  readonly #suspended = new Set<string>();
  readonly #commanded = new Set<number>();
  #made = 0;

  static async open(): Promise<HtcJobArena> {
    const [plane, pool] = await Promise.all([controlPlane(), ownPool()]);
    await applyCrd(plane);
    return new HtcJobArena(plane, pool, await plane.namespace('campaign'), await FaultProxy.inFrontOf(plane));
  }

  private constructor(plane: ControlPlane, pool: OwnPool, space: Namespace, proxy: FaultProxy) {
    this.#struck = new StruckPool(pool, () => this.site);
    this.#space = space;
    this.#proxy = proxy;
    this.#jobs = new HtcJobs(space);
    this.hidden = this.#struck.hidden;
    this.faults = [
      ...faultsOf(proxy, spells),
      ...this.#struck.faults,
      { name: 'a HTCJob is deleted', weight: 4, strike: (dice) => this.#deleteOne(dice) },
      { name: 'a HTCJob is suspended for a while', weight: 2, strike: (dice) => this.#suspendOne(dice) },
    ];
    const htcjob = {
      k8s_config_file: 'kubeconfig',
      namespaces: [space.name],
      ...leaseOf(space),
      runtime: 'none',
    };
    const master = { factoryId: this.#struck.space.factory, ...masterOfCampaigns };
    this.site = condorSite(
      { queues: {}, settings: { master, ...settings, sources: { htcjob } } },
      { 'job.sub.yaml': shellTemplate(this.#struck.space, 'exit 99', { request_memory: 64 }) },
    );
    plane.writeKubeconfig(this.site.path('kubeconfig'), { server: proxy.url });
    // The jobs are those of the pool's user, who reads the payloads below the state directory.
    for (const directory of [this.site.stateDir, this.site.path('logs')]) mkdirSync(directory);
    chmodSync(this.site.stateDir, 0o711);
    chownSync(this.site.path('logs'), pool.uid, pool.gid);
    this.environment = condorEnvironment(pool, this.site.directory);
    this.writeQueues({});
    this.#user = this.#keepBusy();
  }

  writeQueues(change: Readonly<Record<string, unknown>>): void {
    const queue = (limit: number) =>
      condorQueue(this.#struck.pool, {
        template: 'job.sub.yaml',
        queue: { demand: 'htcjob', maxWorkers: limit, nQueueLimitWorker: limit, ...change },
      });
    this.site.writeQueues(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, queue(limit)])),
    );
  }

  living(): Promise<readonly Seen[] | undefined> {
    return this.#struck.living();
  }

  starts(): ReadonlyMap<number, number> {
    return this.#struck.starts();
  }

  commanded(workerIds: readonly number[]): void {
    for (const id of workerIds) this.#commanded.add(id);
  }

  async heal(): Promise<void> {
    this.#proxy.heal();
    this.#proxy.cutAll();
    await this.#struck.heal();
  }

  /** No job has run twice, every HTCJob ends as its jobs did, and one that is deleted goes, with its jobs. */
  async settle(breaks: (what: string) => void): Promise<void> {
    this.#over.abort();
    await this.#user;
    this.writeQueues({});
    const open = async () =>
      (await this.#jobs.list()).filter(
        ({ metadata, status }) => metadata.deletionTimestamp !== undefined || !isOver(status ?? {}),
      );
    const none = async () => (await open()).length === 0;
    await until('all HTCJobs have ended', none, longestEnd).catch(async () => {
      for (const { metadata, status } of await open())
        breaks(
          `HTCJob ${metadata.name} has no end: ${JSON.stringify({ ...metadata, managedFields: 0, status })}`,
        );
    });
    const ran = this.#ran();
    const struck = await this.#struckNumbers();
    const rows = new Map((await this.site.workers()).map((row) => [row.workerID, row]));
    const rowOf = (id: number) => {
      const { status = 'without a row', errorCode = '', diagMessage = '' } = rows.get(id) ?? {};
      return `${id} ${status} ${errorCode ?? ''} ${diagMessage ?? ''}`;
    };
    for (const { metadata, spec, status } of await this.#jobs.list()) {
      const { name } = metadata;
      if (this.#suspended.has(name) || !isOver(status ?? {})) continue;
      for (let number = 0; number < (spec.queue ?? 1); number++) {
        const workers = ran.get(`${name}.${number}`) ?? [];
        const isStruck =
          struck.has(`${metadata.uid ?? ''} ${number}`) ||
          workers.some((id) => this.hidden.has(id) || this.#commanded.has(id));
        if (isStruck) continue;
        // Of a job that ended before its status was written, a lost database leaves nothing (docs/htcjob.md).
        const isForgotten = workers.length > 1 && !rows.has(workers[0] ?? 0);
        if (workers.length !== 1 && !isForgotten)
          breaks(`job ${number} of HTCJob ${name} ran as ${workers.map(rowOf).join('; ') || 'none'}`);
        if (!isIn(status?.completedIndexes, number))
          breaks(
            `job ${number} of HTCJob ${name} has succeeded, and its status is ${JSON.stringify(status)}`,
          );
      }
    }
    for (const { metadata } of await this.#jobs.list()) await this.#jobs.delete(metadata.name);
    const gone = async () => (await this.#jobs.list()).length === 0;
    await until('all HTCJobs are gone', gone, longestEnd).catch(async (error: unknown) => {
      breaks(`${String(error)}: ${JSON.stringify(await this.#jobs.list())}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#user;
    await this.site.clean();
    await this.#jobs.letGo();
    await this.#struck[Symbol.asyncDispose]();
    await this.#proxy[Symbol.asyncDispose]();
    await this.#space[Symbol.asyncDispose]();
  }

  /** Asks for a little more than the queues may run, and deletes nothing: what has ended is looked at in the end. */
  async #keepBusy(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const all = await this.#jobs.list();
      for (const [queue, limit] of Object.entries(limits)) {
        const wanted = all
          .filter(
            ({ metadata, spec }) => spec.queueName === queue && metadata.deletionTimestamp === undefined,
          )
          .filter(({ metadata: { name } }) => !this.#suspended.has(name))
          .reduce((sum, { spec, status }) => sum + (spec.queue ?? 1) - ended(status), 0);
        if (wanted >= 2 * limit) continue;
        const number = ++this.#made;
        await this.#create(`${queue.toLowerCase()}-${number}`, queue, 1 + (number % 3));
      }
      await sleep(200);
    }
  }

  async #create(name: string, queueName: string, queue: number): Promise<void> {
    const { directory } = this.#struck.space;
    const source = [
      'cluster=$(sed -n "s/^ClusterId = //p" "$_CONDOR_JOB_AD")',
      `worker=$(sed -n 's/^harvesterWorkerID = "\\(.*\\)"$/\\1/p' "$_CONDOR_JOB_AD")`,
      `touch "${directory}/start.$worker.$cluster" "${directory}/ran.${name}.$1.$worker"`,
      `sleep $((worker % 4 + 1))`,
    ].join('\n');
    await this.#jobs.create(name, source, { queue, queueName, backoffLimit: 3 });
  }

  /** The workers that ran, by HTCJob and number. */
  #ran(): ReadonlyMap<string, readonly number[]> {
    const ran = new Map<string, number[]>();
    for (const file of readdirSync(this.#struck.space.directory)) {
      const [what, name = '', number = '', worker] = file.split('.');
      if (what !== 'ran') continue;
      const key = `${name}.${number}`;
      ran.set(
        key,
        [...(ran.get(key) ?? []), Number(worker)].toSorted((a, b) => a - b),
      );
    }
    return ran;
  }

  /** "UID NUMBER" of jobs that a fault or a command removed or held, by what the schedd has of them. */
  async #struckNumbers(): Promise<ReadonlySet<string>> {
    const attributes = ['ClusterId', 'ProcId', 'harvesterWorkerID', 'thresherIdentity'];
    const { client, space } = this.#struck;
    const { signal } = new AbortController();
    const ads: readonly Ad[] = await client.history(space.mine, attributes, 100_000, signal);
    return new Set(
      ads.flatMap((ad) => {
        const { origin } = markedWorker(ad['thresherIdentity']) ?? {};
        const workerId = Number(ad['harvesterWorkerID']);
        if (origin === undefined || !(this.hidden.has(workerId) || this.#commanded.has(workerId))) return [];
        return [`${origin.uid} ${attemptOf(origin.index).number}`];
      }),
    );
  }

  async #pickOne(dice: Dice): Promise<HtcJobObject | undefined> {
    const all = await this.#jobs.list();
    return dice.pick(
      all.filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && !isOver(status ?? {})),
    );
  }

  async #deleteOne(dice: Dice): Promise<void> {
    const one = await this.#pickOne(dice);
    if (one === undefined) return;
    await this.#jobs.delete(one.metadata.name);
  }

  async #suspendOne(dice: Dice): Promise<void> {
    const one = await this.#pickOne(dice);
    if (one === undefined) return;
    const { name } = one.metadata;
    this.#suspended.add(name);
    await this.#jobs.change(name, { suspend: true });
    await sleep(dice.between(0, 6000));
    await this.#jobs.change(name, { suspend: false }).catch(() => undefined);
  }
}

function ended({ succeeded = 0, failed = 0 }: HtcJobStatus = {}): number {
  return succeeded + failed;
}

/** @param ranges `0-4,7` */
function isIn(ranges: string | undefined, number: number): boolean {
  return (ranges ?? '').split(',').some((range) => {
    const [first = '', last = first] = range.split('-');
    return first !== '' && Number(first) <= number && number <= Number(last);
  });
}
