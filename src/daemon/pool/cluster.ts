import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { Access } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { accessSource } from '../../clients/kubernetes/place.ts';
import type { Clock } from '../../util/clock.ts';
import { OperatorFiles } from '../../util/operator-files.ts';

/** Words of the command line about the cluster. */
export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export interface ClusterParts {
  readonly clock: Clock;
  readonly random: () => number;
  /** The environment of this process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Requests per second; a command sends some tens of them. */
const pace = { perSecond: 50, burst: 100 };

/** A client of the cluster where kubectl would look for it. It connects to nothing before the first call. */
export function clusterClient(
  flags: ClusterFlags,
  { clock, random, environment }: ClusterParts,
): KubernetesClient {
  const file = flags.kubeconfig === undefined ? usualKubeconfig(environment) : resolve(flags.kubeconfig);
  const place = {
    ...(file !== undefined && { k8s_config_file: file }),
    ...(flags.context !== undefined && { k8s_context: flags.context }),
  };
  const files = new OperatorFiles({ clock });
  const access = new Access(accessSource(place, '/'), { clock, files });
  const pacer = new Pacer(pace, clock, random);
  return new KubernetesClient({ access, pacer, clock, userAgent: 'thresher' });
}

/** $KUBECONFIG, else ~/.kube/config; undefined, the service account of this Pod, where there is neither. */
function usualKubeconfig({
  KUBECONFIG: named = '',
  HOME: home = homedir(),
}: ClusterParts['environment']): string | undefined {
  const [first = ''] = named.split(':');
  if (first !== '') return resolve(first);
  const usual = join(home, '.kube/config');
  return existsSync(usual) ? usual : undefined;
}
