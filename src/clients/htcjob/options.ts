import type { Static } from 'typebox';
import Type from '../../util/type.ts';
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
      'Namespace of the Lease by which one of several operators works. `namespaces` needs it, and may not have it: no HTCJob goes on once the Lease is deleted with its namespace, so name one that users cannot delete, as the one where thresher runs. Default without `namespaces`: `default`.',
    ),
  ),
  leaseName: Type.String({
    default: 'thresher-htcjob',
    minLength: 1,
    description:
      'Name of this Lease. Operators of other namespaces need another, and the Role of each (`thresher htcjob rbac`) names its own.',
  }),
  runtime: Type.Union([...runtimes.map((name) => Type.Literal(name))], {
    default: 'apptainer',
    description:
      'How images are run where `spec.runtime` does not say: `apptainer` or `singularity` on the machine of the job, `container` where the template of the queue names `${payload.image}`, `none` without the image.',
  }),
  submitCommands: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description:
      'More commands (`request_fpgas`) and attributes (`+MyTag`) that `htcopts` may have, beside those of [htcjob.md](htcjob.md#htcopts). The queue needs them too, in `submitCommands` of its submitter. `check-config` says of each what it may do.',
  }),
  runtimes: Type.Array(Type.Union(runtimes.map((name) => Type.Literal(name))), {
    default: ['apptainer', 'singularity'],
    description:
      'Which of them a HTCJob may choose by `spec.runtime`, beside `runtime` itself. All jobs of a queue have one owner, so a job with `none` can read what other jobs have on its machine, their Secrets among it. With `container` HTCondor runs the job in its image, and reads its files outside of it: a link that the job leaves may lead there.',
  }),
  imagePaths: Type.Array(Type.String({ pattern: '^/' }), {
    default: ['/cvmfs'],
    description:
      'Directories whose files and directories may be images, by their paths. An image that is the directory of another job, or the whole machine, would show it.',
  }),
  binds: Type.Array(Type.String({ pattern: '^/[^:,]*$' }), {
    default: ['/cvmfs', '/afs', '/eos'],
    description: 'Directories that an image gets where the machine of the job has them. Absolute.',
  }),
  outputDir: Type.Optional(
    text(
      'Directory in which the outputs of jobs are kept, in `NAMESPACE/NAME-UID/NUMBER`, until their HTCJob goes. A relative path counts from the queue file. It must exist. Default: a HTCJob with `spec.output` is refused.',
    ),
  ),
  maxOutputMegabytes: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Largest output of one job, MB. thresher keeps nothing of a larger one; `max_transfer_output_mb` of its queue bounds it, too.',
  }),
  maxOutputFiles: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Most files and directories in the output of one job. thresher keeps nothing of a larger one.',
  }),
  eventsUrl: Type.Optional(
    Type.String({
      pattern: '^https?://[^\\s]+$',
      description:
        'Address to which jobs send a CloudEvent when they end: `/sources/htcjob/cloudevents` of the HTTP server of thresher, as the machines of the jobs reach it. Default: jobs send none.',
    }),
  ),
  eventKeyFile: Type.Optional(
    text(
      'File with the key that signs the tokens of these events, 32 bytes or more. Default: thresher makes one in its state directory. Operators that take over from each other need the same.',
    ),
  ),
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
