import { hostname } from 'node:os';
import { Access } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { collectionPath, jobs, objectPath, pods } from '../../clients/kubernetes/paths.ts';
import { accessSource, clusterName } from '../../clients/kubernetes/place.ts';
import type { Reflector } from '../../clients/kubernetes/reflector.ts';
import type { Clock } from '../../util/clock.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { CheckContext } from '../contracts/definition.ts';
import type { FilledJob } from './template/fill.ts';
import { ClusterPin } from './cluster-pin.ts';
import { factoryLabel, labelOf } from './marks.ts';
import { namespaceOf, type Where } from './schema.ts';

export function connectionName(config: Where, context: Pick<CheckContext, 'configDir'>): string {
  return `${clusterName(config, context.configDir)}/${namespaceOf(config)}`;
}

interface Cluster {
  readonly client: KubernetesClient;
  readonly pacer: Pacer;
  readonly pin: ClusterPin;
  /** The least that the sections of each queue say of the rate, in its newest configuration; the least of all counts. */
  readonly rates: Map<string, { readonly configId: number; readonly perSecond: number }>;
}

/** How many Events are written per second, and at once: a mass kill is no reason to fill those of the cluster. */
const eventRate = { perSecond: 5, burst: 25 };
/** Requests per second where no queue of the cluster says anything. */
const usualRate = 200;

function clusterOf(config: Where, context: Context): Cluster {
  const { clock, files, random, factoryId, queue, configId } = context;
  const name = clusterName(config, context.configDir);
  const cluster = context.share(name, (): Cluster => {
    const source = accessSource(config, context.configDir);
    const pin = new ClusterPin(name, context);
    const access = new Access(source, { clock, files }, (found) => {
      pin.confirm(found);
    });
    const pacer = new Pacer(rateOf(usualRate), clock, random);
    // Audit logs show which factory asked.
    const client = new KubernetesClient({ access, pacer, clock, userAgent: `thresher/${factoryId}` });
    return { client, pacer, pin, rates: new Map() };
  });
  const { requestsPerSecond = Infinity } = config;
  const before = cluster.rates.get(queue) ?? { configId: -1, perSecond: Infinity };
  // Earlier configurations may be made after the current one; of that, one section says it and another need not.
  if (configId > before.configId) cluster.rates.set(queue, { configId, perSecond: requestsPerSecond });
  else if (configId === before.configId)
    cluster.rates.set(queue, { configId, perSecond: Math.min(before.perSecond, requestsPerSecond) });
  const least = Math.min(...cluster.rates.values().map(({ perSecond }) => perSecond));
  cluster.pacer.change(rateOf(Number.isFinite(least) ? least : usualRate));
  return cluster;
}

function rateOf(perSecond: number) {
  return { perSecond, burst: 2 * perSecond };
}

/** The Job of a worker, as its submitter would make it; undefined where nobody here can. */
export type JobMaker = (worker: Worker) => FilledJob | undefined;
/** The same for workers of any queue, whose templates may still have to be read. */
export type BatchJobMaker = (worker: Worker) => Promise<FilledJob | undefined>;

/** What the submitter, monitor and sweeper of all queues in one namespace of one cluster share. */
export class KubernetesHub {
  readonly #clock: Clock;
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly factoryId: string;
  /** How many Events may be written. */
  readonly events: TokenBucket;
  /** Host name of this machine. */
  readonly hostname = hostname();
  /** Selects what is ours. */
  readonly selector: string;
  readonly jobs: string;
  readonly pods: string;
  /** By worker: the attempt that the server refused for certain, so that nothing of it can come any more. */
  readonly refused = new Map<number, number>();
  /** By queue: reads its template as it is now, and gives what makes Jobs of it; undefined where that is broken. */
  readonly jobMakers = new Map<string, () => Promise<JobMaker | undefined>>();

  /** By path of a collection: what follows it, and is told of the versions that others list it at. */
  readonly followed = new Map<string, Pick<Reflector<unknown>, 'version' | 'listed'>>();

  /** Which cluster it is on. */
  readonly pin: ClusterPin;

  constructor(
    { client, pin }: Pick<Cluster, 'client' | 'pin'>,
    namespace: string,
    { factoryId, clock }: Pick<Context, 'factoryId' | 'clock'>,
  ) {
    this.#clock = clock;
    this.events = new TokenBucket(eventRate.perSecond, eventRate.burst, clock);
    this.client = client;
    this.pin = pin;
    this.namespace = namespace;
    this.factoryId = factoryId;
    this.selector = `${factoryLabel}=${labelOf(factoryId)}`;
    this.jobs = collectionPath(jobs, namespace);
    this.pods = collectionPath(pods, namespace);
  }

  /** ms UTC by the cluster's clock: that is whose times are compared with it. */
  now(): number {
    return this.#clock.now() + this.client.clockOffset;
  }

  /** Makes the Jobs of many workers, whatever their queues: each template is read once, when it is first needed. */
  jobsOfBatch(): BatchJobMaker {
    const makers = new Map<string, Promise<JobMaker | undefined> | undefined>();
    return async (worker) => {
      const { queue } = worker;
      if (!makers.has(queue)) makers.set(queue, this.jobMakers.get(queue)?.());
      return (await makers.get(queue))?.(worker);
    };
  }

  job(name: string): string {
    return objectPath(jobs, this.namespace, name);
  }

  pod(name: string, subresource?: string): string {
    return objectPath(pods, this.namespace, name, subresource);
  }
}

export function hubOf(config: Where, context: Context): KubernetesHub {
  const cluster = clusterOf(config, context);
  return context.share(
    connectionName(config, context),
    () => new KubernetesHub(cluster, namespaceOf(config), context),
  );
}
