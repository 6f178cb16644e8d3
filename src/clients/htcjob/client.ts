import { Access, type AccessParts, type Identity } from '../kubernetes/access.ts';
import { KubernetesClient } from '../kubernetes/client.ts';
import { Pacer } from '../kubernetes/pacer.ts';
import { accessSource, clusterName } from '../kubernetes/place.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { HtcJobOptions } from './options.ts';

export interface ClientParts extends AccessParts {
  readonly random: () => number;
  /** Relative paths in the options count from here. */
  readonly configDir: string;
  /** Audit logs show it. */
  readonly userAgent: string;
}

/** The operator's client of its cluster. It connects to nothing before the first call. */
export function clientOf(options: HtcJobOptions, parts: ClientParts): KubernetesClient {
  const { clock, files, random, configDir, userAgent } = parts;
  const source = accessSource(options, configDir);
  const hasAnswered = () => client.hasAnswered;
  const confirm =
    source.kind === 'file' ? firstAlone(clusterName(options, configDir), hasAnswered) : undefined;
  const access = new Access(source, { clock, files }, confirm);
  const { requestsPerSecond: perSecond } = options;
  const pacer = new Pacer({ perSecond, burst: 2 * perSecond }, clock, random);
  const client: KubernetesClient = new KubernetesClient({ access, pacer, clock, userAgent });
  return client;
}

/**
 * A kubeconfig that is changed to name another cluster would show all HTCJobs as gone, and their jobs and outputs would go, too. So the
 * first address that has answered stays; its certificate authority may be renewed. A start with another one is noticed by its Lease.
 * @param hasAnswered whether the cluster of the last reading has
 */
function firstAlone(name: string, hasAnswered: () => boolean): (found: Identity) => Promise<void> {
  let last: string | undefined;
  return async ({ server }) => {
    if (last !== undefined && last !== server && hasAnswered()) {
      const message = `${name} named ${last} at first and now names ${server}: the HTCJobs of another cluster are not there. Put the file back as it was; if it is the same cluster, or is to be another one from now on, restart thresher`;
      throw new ThresherError('kubernetes-other-cluster', message);
    }
    last = server;
  };
}
