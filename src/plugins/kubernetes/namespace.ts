import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { collectionPath, jobs, objectPath, pods } from '../../clients/kubernetes/paths.ts';
import type { Reflector } from '../../clients/kubernetes/reflector.ts';
import type { Clock } from '../../util/clock.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import type { Host } from '../contracts/context.ts';
import type { ClusterPin } from './cluster-pin.ts';
import { factoryLabel, labelOf } from './marks.ts';

/** How many Events are written per second, and at once: a mass kill is no reason to fill those of the cluster. */
const eventRate = { perSecond: 5, burst: 25 };

/** Shared by the submitters, monitors and sweepers of all queues in one namespace of one cluster. */
export class K8sNamespace {
  readonly #clock: Clock;
  readonly client: KubernetesClient;
  readonly name: string;
  readonly factoryId: string;
  /** How many Events may be written. */
  readonly events: TokenBucket;
  /** Selects what is ours. */
  readonly selector: string;
  readonly jobs: string;
  readonly pods: string;
  /** By worker: the attempt that the server refused for certain, so that nothing of it can come any more. */
  readonly refused = new Map<number, number>();

  /** By path of a collection: what follows it, and is told of the versions that others list it at. */
  readonly followed = new Map<string, Pick<Reflector<unknown>, 'version' | 'listed'>>();

  /** Which cluster it is on. */
  readonly pin: ClusterPin;

  constructor(
    { client, pin }: { readonly client: KubernetesClient; readonly pin: ClusterPin },
    name: string,
    { factoryId, clock }: Pick<Host, 'factoryId' | 'clock'>,
  ) {
    this.#clock = clock;
    this.events = new TokenBucket(eventRate.perSecond, eventRate.burst, clock);
    this.client = client;
    this.pin = pin;
    this.name = name;
    this.factoryId = factoryId;
    this.selector = `${factoryLabel}=${labelOf(factoryId)}`;
    this.jobs = collectionPath(jobs, name);
    this.pods = collectionPath(pods, name);
  }

  /**
   * ms UTC, for comparison with times that the cluster gave: by its clock where that is behind ours, so that a clock of ours that runs ahead
   * gives no worker up; else by ours, since a proxy may have set the date of its answers, and made all waits longer than they are.
   */
  now(): number {
    return this.#clock.now() + Math.min(0, this.client.clockOffset);
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  job(name: string): string {
    return objectPath(jobs, this.name, name);
  }

  pod(name: string, subresource?: string): string {
    return objectPath(pods, this.name, name, subresource);
  }
}
