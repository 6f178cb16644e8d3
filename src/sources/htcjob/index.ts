import { Access } from '../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { Pacer } from '../../clients/kubernetes/pacer.ts';
import { accessSource } from '../../clients/kubernetes/place.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { ImageJobs } from './job/image-jobs.ts';
import { HtcJobOperator } from './operator.ts';
import { HtcJobOptions, HtcJobQueueOptions } from './options.ts';

/** Runs the HTCJobs of a Kubernetes cluster. */
export const HtcJobSource = defineSource({
  name: 'htcjob',
  module: builtInSources,
  description:
    'Runs the jobs of HTCJobs, resources of a Kubernetes cluster, and keeps their status ([htcjob.md](htcjob.md)). A HTCJob runs on a queue with `"demand": "htcjob"` alone.',
  payload: ['files', 'argv', 'env'],
  config: HtcJobOptions,
  queueConfig: HtcJobQueueOptions,
  create: (options, host) => {
    const { clock, files, random, factoryId, configDir } = host;
    const access = new Access(accessSource(options, configDir), { clock, files });
    const { requestsPerSecond: perSecond } = options;
    const pacer = new Pacer({ perSecond, burst: 2 * perSecond }, clock, random);
    const client = new KubernetesClient({ access, pacer, clock, userAgent: `thresher/${factoryId}` });
    const { binds, runtime } = options;
    const maker = new ImageJobs({ binds, runtime, events: undefined });
    return new HtcJobOperator(options, client, maker, host);
  },
});
