import { Access } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { accessSource, clusterName } from '../../clients/kubernetes/place.ts';
import type { ConnectionHost, ConnectionPlace } from '../contracts/backend.ts';
import type { Host } from '../contracts/context.ts';
import { ClusterPin } from './cluster-pin.ts';
import type { Where } from './schema.ts';

/** Requests per second where no queue of the cluster says anything. */
const usualRate = 200;

/** The rate that the queues of one connection ask for. */
export interface PaceWish {
  /** Infinity where no queue of the connection asks for a rate. */
  readonly perSecond: number;
  /** False where only earlier configurations lead there. */
  readonly isCurrent: boolean;
}

/** Shared by all namespaces of one cluster: the client, its pace, and which cluster it is. */
export class Cluster {
  readonly client: KubernetesClient;
  readonly pin: ClusterPin;
  readonly pacer: Pacer;
  /** By connection. */
  readonly #wishes = new Map<string, PaceWish>();

  constructor(
    { config, configDir }: ConnectionPlace<Where>,
    daemon: Host & Pick<ConnectionHost, 'memoryOf'>,
  ) {
    const { clock, files, random, factoryId } = daemon;
    this.pin = new ClusterPin(clusterName(config, configDir), daemon);
    const access = new Access(accessSource(config, configDir), { clock, files }, (found) =>
      this.pin.confirm(found),
    );
    this.pacer = new Pacer(rateOf(usualRate), clock, random);
    // Audit logs show which factory asked.
    const userAgent = `thresher/${factoryId}`;
    this.client = new KubernetesClient({ access, pacer: this.pacer, clock, userAgent });
  }

  /**
   * The least rate counts. A queue that moved to another namespace leaves its former configuration behind in the old one: the
   * rates of such connections count only while no connection of the cluster has a current queue.
   * @param wish undefined once no queue leads to the connection
   */
  pace(connection: string, wish: PaceWish | undefined): void {
    if (wish === undefined) this.#wishes.delete(connection);
    else this.#wishes.set(connection, wish);
    const all = [...this.#wishes.values()];
    const current = all.filter(({ isCurrent }) => isCurrent);
    const least = Math.min(...(current.length === 0 ? all : current).map(({ perSecond }) => perSecond));
    this.pacer.change(rateOf(Number.isFinite(least) ? least : usualRate));
  }
}

function rateOf(perSecond: number) {
  return { perSecond, burst: 2 * perSecond };
}
