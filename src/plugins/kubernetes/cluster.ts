import { Access } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { accessSource, clusterName } from '../../clients/kubernetes/place.ts';
import type { ConnectionPlace } from '../contracts/backend.ts';
import type { Host } from '../contracts/context.ts';
import { ClusterPin } from './cluster-pin.ts';
import type { Where } from './schema.ts';

/** Requests per second where no queue of the cluster says anything. */
const usualRate = 200;

/** Shared by all namespaces of one cluster: the client, its pace, and which cluster it is. */
export class Cluster {
  readonly client: KubernetesClient;
  readonly pin: ClusterPin;
  readonly pacer: Pacer;
  /** By connection: the least rate that its queues ask for. The least of all counts. */
  readonly #rates = new Map<string, number>();

  constructor({ config, configDir }: ConnectionPlace<Where>, daemon: Host) {
    const { clock, files, random, factoryId } = daemon;
    this.pin = new ClusterPin(clusterName(config, configDir), daemon);
    const access = new Access(accessSource(config, configDir), { clock, files }, (found) => {
      this.pin.confirm(found);
    });
    this.pacer = new Pacer(rateOf(usualRate), clock, random);
    // Audit logs show which factory asked.
    const userAgent = `thresher/${factoryId}`;
    this.client = new KubernetesClient({ access, pacer: this.pacer, clock, userAgent });
  }

  /** @param perSecond Infinity where no queue of the connection asks for a rate */
  pace(connection: string, perSecond: number): void {
    if (Number.isFinite(perSecond)) this.#rates.set(connection, perSecond);
    else this.#rates.delete(connection);
    this.pacer.change(rateOf(this.#rates.size === 0 ? usualRate : Math.min(...this.#rates.values())));
  }
}

function rateOf(perSecond: number) {
  return { perSecond, burst: 2 * perSecond };
}
