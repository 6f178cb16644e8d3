import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import type { SourceHost } from '../../plugins/contracts/index.ts';

/** The calls of the API server that the operator makes. */
export type OperatorClient = Pick<
  KubernetesClient,
  'list' | 'watch' | 'version' | 'get' | 'create' | 'patch' | 'delete' | 'clockOffset'
>;

export type OperatorHost = Pick<SourceHost, 'factoryId' | 'clock' | 'random' | 'log' | 'memory'>;
