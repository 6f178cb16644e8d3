import { setTimeout as sleep } from 'node:timers/promises';
import { type Fault as ProxyFault, FaultProxy, type Rule } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Job, type Namespace } from '../support/kubernetes.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { type Arena, type Fault, limits, type Seen } from './arena.ts';
import type { Dice } from './dice.ts';
import { PodWatch } from './pod-watch.ts';

const settings = {
  master: { shutdownTimeout: 2, pluginTimeout: 3 },
  submitter: { sleepTime: 0.2 },
  sweeper: { sleepTime: 0.3, keepFinished: 1, keepFailed: 1, keepCancelled: 1, keepMissed: 1 },
  monitor: { missingGrace: 1 },
};

/** A fault that stays for a while, and hits whatever is asked in that time. */
export interface Spell {
  readonly name: string;
  readonly weight: number;
  readonly rule: Omit<Rule, 'fault'>;
  readonly fault: (dice: Dice) => ProxyFault;
  /** ms, least and most. */
  readonly lasts: readonly [number, number];
}

const creations = { verb: 'create', resource: 'jobs' } as const;

/** Of any request. */
export const usualSpells: readonly Spell[] = [
  {
    name: 'every answer is lost',
    weight: 2,
    rule: {},
    fault: () => ({ kind: 'cut-after' }),
    lasts: [200, 2000],
  },
  {
    name: 'the API server refuses',
    weight: 3,
    rule: {},
    fault: (dice) => ({ kind: 'status', status: dice.pick([403, 409, 429, 500, 503, 504]) ?? 500 }),
    lasts: [200, 3000],
  },
  { name: 'the API server hangs', weight: 2, rule: {}, fault: () => ({ kind: 'stall' }), lasts: [500, 4000] },
  {
    name: 'watches are too old',
    weight: 2,
    rule: { verb: 'watch' },
    fault: (dice) => ({ kind: 'error-event', code: 410, lines: dice.between(0, 3) }),
    lasts: [200, 2000],
  },
  {
    name: 'watches are cut in the middle of an event',
    weight: 2,
    rule: { verb: 'watch' },
    fault: (dice) => ({ kind: 'cut-line', lines: dice.between(0, 3) }),
    lasts: [200, 2000],
  },
];

const spells: readonly Spell[] = [
  {
    name: 'answers of creations are lost',
    weight: 4,
    rule: creations,
    fault: () => ({ kind: 'cut-after' }),
    lasts: [500, 3000],
  },
  {
    name: 'creations are cut off before they arrive',
    weight: 2,
    rule: creations,
    fault: () => ({ kind: 'cut-before' }),
    lasts: [500, 3000],
  },
  {
    name: 'creations are carried out late',
    weight: 4,
    rule: creations,
    fault: (dice) => ({ kind: 'late', until: sleep(dice.between(500, 5000)) }),
    lasts: [300, 1500],
  },
  ...usualSpells,
];

/** Faults of a proxy in front of an API server. */
export function faultsOf(proxy: FaultProxy, some: readonly Spell[]): Fault[] {
  const cast = ({ name, weight, rule, fault, lasts }: Spell): Fault => ({
    name,
    weight,
    strike: async (dice) => {
      const injected = proxy.inject({ ...rule, fault: fault(dice) });
      await sleep(dice.between(...lasts));
      injected.remove();
      // A hanging connection hangs on after its fault: the load balancer in front gives it up.
      if (name === 'the API server hangs') proxy.cutAll();
    },
  });
  const cut: Fault = {
    name: 'all connections are cut',
    weight: 2,
    strike: () => {
      proxy.cutAll();
      return Promise.resolve();
    },
  };
  return [...some.map(cast), cut];
}

/** A real API server with a proxy in front of it, which makes the faults; Pods are played by kwok. */
export class KubernetesArena implements Arena {
  readonly site: Site;
  readonly environment = {};
  readonly hidden = new Set<number>();
  readonly faults: readonly Fault[];
  readonly #space: Namespace;
  readonly #proxy: FaultProxy;
  readonly #pods: PodWatch;

  static async open(): Promise<KubernetesArena> {
    const plane = await controlPlane();
    const space = await plane.namespace('campaign');
    return new KubernetesArena(plane, space, await FaultProxy.inFrontOf(plane), await PodWatch.begin(space));
  }

  private constructor(plane: ControlPlane, space: Namespace, proxy: FaultProxy, pods: PodWatch) {
    this.#space = space;
    this.#proxy = proxy;
    this.#pods = pods;
    const templates = { 'job.yaml': jobTemplate({ run: '1500ms' }) };
    this.site = kubernetesSite(plane, { settings, queues: {} }, templates, { server: proxy.url });
    this.writeQueues({});
    this.faults = [
      ...faultsOf(proxy, spells),
      { name: 'a Job is deleted by hand', weight: 2, strike: (dice) => this.#deleteOne(dice) },
    ];
  }

  writeQueues(change: Readonly<Record<string, unknown>>): void {
    const queue = (limit: number) =>
      kubernetesQueue(this.#space, { queue: { maxWorkers: limit, nQueueLimitWorker: limit, ...change } });
    this.site.writeQueues(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, queue(limit)])),
    );
  }

  living(): Promise<readonly Seen[]> {
    return Promise.resolve(this.#pods.living());
  }

  starts(): ReadonlyMap<number, number> {
    return this.#pods.starts();
  }

  heal(): Promise<void> {
    this.#proxy.heal();
    this.#proxy.cutAll();
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.clean();
    await this.#pods[Symbol.asyncDispose]();
    await this.#proxy[Symbol.asyncDispose]();
    await this.#space[Symbol.asyncDispose]();
  }

  /**
   * Deletes a Job of which thresher knows that it was made. Where the answer to a creation was lost, a Job that a person deletes
   * meanwhile looks like one that never was: thresher makes it again, and there is no second one beside it.
   */
  async #deleteOne(dice: Dice): Promise<void> {
    const workers = await this.site.workers().catch(() => []);
    const known = new Set(workers.flatMap(({ workerID, batchID }) => (batchID === null ? [] : [workerID])));
    const workerOf = ({ metadata }: Job) => Number(metadata.labels?.['thresher/worker-id']);
    const jobs = await this.#space.client.list<Job>(this.#space.jobs(), 'thresher/factory');
    const victim = dice.pick(
      jobs.filter((job) => job.metadata.deletionTimestamp === undefined && known.has(workerOf(job))),
    );
    if (victim === undefined) return;
    this.hidden.add(workerOf(victim));
    await this.#space.client.delete(this.#space.jobs(victim.metadata.name));
  }
}
