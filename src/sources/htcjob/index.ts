import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { clientOf } from './client.ts';
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
    const client = clientOf(options, { ...host, userAgent: `thresher/${host.factoryId}` });
    const { binds, runtime } = options;
    const maker = new ImageJobs({ binds, runtime, events: undefined });
    return new HtcJobOperator(options, client, maker, host);
  },
});
