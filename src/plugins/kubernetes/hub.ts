import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { Access, type AccessSource } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { collectionPath, jobs, objectPath, pods } from '../../clients/kubernetes/paths.ts';
import type { Context } from '../contracts/context.ts';
import type { CheckContext } from '../contracts/definition.ts';
import { factoryLabel, labelOf } from './marks.ts';
import { namespaceOf, type Where } from './schema.ts';

/** Which cluster, as the queue says. */
export function accessSource(config: Where, { configDir }: Pick<CheckContext, 'configDir'>): AccessSource {
  const { k8s_config_file: file, k8s_context: context } = config;
  if (file === undefined) return { kind: 'in-cluster' };
  return { kind: 'file', file: resolve(configDir, file), ...(context !== undefined && { context }) };
}

/** Name of a cluster: `kubernetes:/etc/thresher/kubeconfig`, with `#CONTEXT` where one is named. */
function clusterName(config: Where, context: Pick<CheckContext, 'configDir'>): string {
  const source = accessSource(config, context);
  if (source.kind === 'in-cluster') return 'kubernetes:in-cluster';
  return `kubernetes:${source.file}${source.context === undefined ? '' : `#${source.context}`}`;
}

export function connectionName(config: Where, context: Pick<CheckContext, 'configDir'>): string {
  return `${clusterName(config, context)}/${namespaceOf(config)}`;
}

interface Cluster {
  readonly client: KubernetesClient;
  readonly pacer: Pacer;
}

function clusterOf(config: Where, context: Context): Cluster {
  const { clock, random, factoryId } = context;
  const rate = { perSecond: config.requestsPerSecond, burst: 2 * config.requestsPerSecond };
  const cluster = context.share(clusterName(config, context), (): Cluster => {
    const access = new Access(accessSource(config, context), clock);
    const pacer = new Pacer(rate, clock, random);
    // Audit logs show which factory asked.
    return {
      client: new KubernetesClient({ access, pacer, clock, userAgent: `thresher/${factoryId}` }),
      pacer,
    };
  });
  cluster.pacer.change(rate);
  return cluster;
}

/** What the submitter, monitor and sweeper of all queues in one namespace of one cluster share. */
export class KubernetesHub {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly factoryId: string;
  /** Host name of this machine. */
  readonly hostname = hostname();
  /** Selects what is ours. */
  readonly selector: string;
  readonly jobs: string;
  readonly pods: string;
  /** By worker: the attempt that the server refused for certain, so that nothing of it can come any more. */
  readonly refused = new Map<number, number>();

  constructor(client: KubernetesClient, namespace: string, factoryId: string) {
    this.client = client;
    this.namespace = namespace;
    this.factoryId = factoryId;
    this.selector = `${factoryLabel}=${labelOf(factoryId)}`;
    this.jobs = collectionPath(jobs, namespace);
    this.pods = collectionPath(pods, namespace);
  }

  job(name: string): string {
    return objectPath(jobs, this.namespace, name);
  }

  pod(name: string, subresource?: string): string {
    return objectPath(pods, this.namespace, name, subresource);
  }
}

export function hubOf(config: Where, context: Context): KubernetesHub {
  const { client } = clusterOf(config, context);
  return context.share(
    connectionName(config, context),
    () => new KubernetesHub(client, namespaceOf(config), context.factoryId),
  );
}
