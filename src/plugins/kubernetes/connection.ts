import { clusterName } from '../../clients/kubernetes/place.ts';
import type { BackendConnection, ConnectionPlace } from '../contracts/backend.ts';
import type { CheckContext } from '../contracts/definition.ts';
import type { Context } from '../contracts/context.ts';
import { Cluster } from './cluster.ts';
import type { OptionsOf } from './following/following.ts';
import { K8sNamespace } from './namespace.ts';
import { K8sMonitor } from './monitor.ts';
import { ProxySecrets } from './proxy-secrets.ts';
import { jobMaker } from './queue-template.ts';
import { Rights } from './rights.ts';
import { type K8sDaemon, type K8sSubmitterConfig, namespaceOf, type Where } from './schema.ts';
import { PilotsStarter } from './starter/pilots-starter.ts';
import { K8sSubmitter } from './submitter.ts';
import { K8sSweeper } from './sweeper.ts';

export function connectionName(config: Where, { configDir }: Pick<CheckContext, 'configDir'>): string {
  return `${clusterName(config, configDir)}/${namespaceOf(config)}`;
}

/** The workers of a queue that does not lead here are looked at, and not given up. */
const onlyLook = {
  podQueueTimeLimit: Infinity,
  pendingRules: [{ reason: '.*', graceSeconds: 0, then: 'wait' as const }],
};

/** One namespace of one cluster with all that makes, follows and ends workers there. */
export class K8sConnection implements BackendConnection<K8sSubmitterConfig> {
  readonly namespace: K8sNamespace;
  readonly monitor: K8sMonitor;
  readonly sweeper: K8sSweeper;
  readonly #daemon: K8sDaemon;
  readonly cluster: Cluster;
  readonly #rights: Rights;
  readonly #proxies: ProxySecrets;
  readonly #starter: PilotsStarter;

  constructor(place: ConnectionPlace<Where>, daemon: K8sDaemon) {
    const { config, configDir } = place;
    this.#daemon = daemon;
    this.cluster = daemon.share(clusterName(config, configDir), () => new Cluster(place, daemon));
    const namespace = new K8sNamespace(this.cluster, namespaceOf(config), daemon);
    this.namespace = namespace;
    this.#rights = new Rights(namespace, daemon.clock);
    this.#proxies = new ProxySecrets(namespace, daemon);
    this.#starter = new PilotsStarter(namespace, daemon.clock);
    const options: OptionsOf = (queue, configId) => daemon.queue(queue, configId)?.monitor ?? onlyLook;
    this.monitor = new K8sMonitor({ namespace, context: daemon, options });
    const beside = { proxies: this.#proxies, starter: this.#starter };
    this.sweeper = new K8sSweeper({ namespace, daemon, options, ...beside });
  }

  submitter(config: K8sSubmitterConfig, context: Context): K8sSubmitter {
    return new K8sSubmitter({
      namespace: this.namespace,
      rights: this.#rights,
      proxies: this.#proxies,
      starter: this.#starter,
      jobMaker: () => jobMaker(this.#daemon),
      config,
      context,
    });
  }

  queuesChanged(): void {
    const { connection, queues } = this.#daemon;
    const current = queues.filter((queue) => queue.current);
    const speaking = current.length === 0 ? queues : current;
    const sections = speaking.flatMap(({ submitter, monitor, sweeper }) => [submitter, monitor, sweeper]);
    const rates = sections.map((section) => section?.requestsPerSecond ?? Infinity);
    const wish = { perSecond: Math.min(...rates), isCurrent: current.length > 0 };
    this.cluster.pace(connection, queues.length === 0 ? undefined : wish);
  }
}
