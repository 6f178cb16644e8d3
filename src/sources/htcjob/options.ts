import Type, { type Static } from 'typebox';
import { runtimes } from './resource.ts';

const text = (description: string) => Type.String({ minLength: 1, description });

/** Options in `sources.htcjob` of the settings. */
export const HtcJobOptions = Type.Object({
  k8s_config_file: Type.Optional(
    text(
      'kubeconfig of the cluster whose HTCJobs are run. Default: the service account of the Pod that thresher runs in.',
    ),
  ),
  k8s_context: Type.Optional(text('Context in that kubeconfig. Default: its current one.')),
  namespaces: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'Namespaces whose HTCJobs are run. Empty: all.',
  }),
  queue: Type.Optional(
    text(
      'Queue of HTCJobs without `spec.queueName`. Default: the one queue with `"demand": "htcjob"`, if there is one alone.',
    ),
  ),
  leaseNamespace: Type.Optional(
    text(
      'Namespace of the Lease by which one of several operators works. Default: the first of `namespaces`, or `default`.',
    ),
  ),
  leaseName: Type.String({
    default: 'thresher-htcjob',
    minLength: 1,
    description: 'Name of this Lease. Operators of other namespaces need another.',
  }),
  runtime: Type.Union(
    runtimes.map((runtime) => Type.Literal(runtime)),
    {
      default: 'apptainer',
      description:
        'How an image is run on its machine where `spec.runtime` does not say: `none` runs the command without it.',
    },
  ),
  binds: Type.Array(Type.String({ pattern: '^/' }), {
    default: ['/cvmfs', '/afs', '/eos'],
    description: 'Directories of the machine that each image gets, where they exist.',
  }),
  requestsPerSecond: Type.Number({
    default: 200,
    exclusiveMinimum: 0,
    description: 'Requests to the API server per second, on average.',
  }),
});
export type HtcJobOptions = Static<typeof HtcJobOptions>;

/** Options in the `demand` of a queue. */
export const HtcJobQueueOptions = Type.Object({
  namespaces: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'Namespaces whose HTCJobs may run on this queue. Empty: all.',
  }),
});
export type HtcJobQueueOptions = Static<typeof HtcJobQueueOptions>;
