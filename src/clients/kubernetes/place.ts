import { resolve } from 'node:path';
import type { AccessSource } from './access.ts';

/** Which cluster a configuration names. */
export interface ClusterPlace {
  readonly k8s_config_file?: string;
  readonly k8s_context?: string;
}

/** Relative paths count from `directory`. */
export function accessSource(
  { k8s_config_file: file, k8s_context: context }: ClusterPlace,
  directory: string,
): AccessSource {
  if (file === undefined) return { kind: 'in-cluster' };
  return { kind: 'file', file: resolve(directory, file), ...(context !== undefined && { context }) };
}

/** Name of a cluster: `kubernetes:/etc/thresher/kubeconfig`, with `#CONTEXT` where one is named. */
export function clusterName(place: ClusterPlace, directory: string): string {
  const source = accessSource(place, directory);
  if (source.kind === 'in-cluster') return 'kubernetes:in-cluster';
  return `kubernetes:${source.file}${source.context === undefined ? '' : `#${source.context}`}`;
}

/** Name of a key of a Secret as a credential. */
export function secretKeyName(cluster: string, namespace: string, secret: string, key: string): string {
  return `${cluster}/${namespace}/${secret}/${key}`;
}
