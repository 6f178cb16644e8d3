import { mostOfJob } from '../../worker/worker.ts';
import { longestRanges } from './numbers.ts';
import {
  apiVersion,
  htcJobKind,
  htcJobs,
  longestJobId,
  mostJobs,
  mostRetries,
  outputDirectory,
  runtimes,
} from './resource.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Longest script, characters: an object of the API may have 1.5 MB, and the payload of a job 1 MiB. */
const longestSource = 1_000_000;
const longestOptions = 65_536;

const text = (description: string, more: Schema = {}): Schema => ({
  type: 'string',
  description,
  maxLength: 1024,
  ...more,
});
const count = (description: string, more: Schema = {}): Schema => ({
  type: 'integer',
  format: 'int32',
  minimum: 0,
  description,
  ...more,
});
const quantity = (description: string): Schema => ({
  'x-kubernetes-int-or-string': true,
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  maxLength: 32,
  pattern: String.raw`^[0-9]+(\.[0-9]+)?([kMGTPE]i?|Ki)?$`,
  description,
});
const jobNumber = { minimum: 1, maximum: mostJobs };

const script: Schema = {
  type: 'object',
  required: ['image', 'command', 'source'],
  properties: {
    image: text('Container image that the job runs in.', { minLength: 1 }),
    command: {
      description:
        'Program that runs the script: a text, split at blanks, or a list with its arguments. No shell reads it.',
      'x-kubernetes-preserve-unknown-fields': true,
    },
    source: text('The script. Its argument is the number of the job, from 0 on.', {
      maxLength: longestSource,
    }),
    queue: count('Number of jobs; spec.queue counts first.', jobNumber),
  },
};

const env: Schema = {
  type: 'array',
  maxItems: 500,
  description: 'Environment of the script. No shell reads it.',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  items: {
    type: 'object',
    required: ['name', 'value'],
    properties: {
      name: text('Name.', { pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 256 }),
      value: text('Value.', { maxLength: 65_536 }),
    },
  },
};

const secrets: Schema = {
  type: 'array',
  maxItems: 20,
  description: 'Secrets of the namespace whose keys become files of the job, readable for it alone.',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  items: {
    type: 'object',
    required: ['name'],
    properties: {
      name: text('Name of the Secret.', {
        maxLength: 253,
        pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      }),
      keys: {
        type: 'array',
        maxItems: 50,
        description: 'These keys alone.',
        'x-kubernetes-list-type': 'set',
        items: { type: 'string', maxLength: 253 },
      },
      optional: { type: 'boolean', description: 'A Secret or key that is not there is no mistake.' },
    },
  },
};

const spec: Schema = {
  type: 'object',
  required: ['name', 'script'],
  properties: {
    name: text('A name for people. Jobs have that of the resource.', { minLength: 1, maxLength: 253 }),
    script,
    // htc-operator wrote it into resources that did not say it.
    queue: count('Number of jobs; 0 counts as 1.', { ...jobNumber, minimum: 0 }),
    htcopts: text('Lines of a submit description.', { maxLength: longestOptions }),
    runtime: text('Program that runs the image.', { enum: [...runtimes] }),
    env,
    secrets,
    requests: {
      type: 'object',
      description: 'Needs of one job.',
      properties: {
        cpus: count('Cores.', { minimum: 1, maximum: mostOfJob.cpus }),
        memory: quantity('Memory, such as 2Gi.'),
        disk: quantity('Scratch disk, such as 10Gi.'),
        gpus: count('GPUs.', { maximum: mostOfJob.gpus }),
      },
    },
    output: {
      type: 'object',
      description: 'Files that the operator keeps of each job. Absent: none.',
      properties: {
        directory: text('Path below the directory of the namespace.', outputDirectory),
        files: {
          type: 'array',
          minItems: 1,
          maxItems: 100,
          description: 'These files and directories alone, by their paths in the directory of the job.',
          'x-kubernetes-list-type': 'set',
          items: {
            type: 'string',
            minLength: 1,
            maxLength: 1000,
            'x-kubernetes-validations': [
              {
                rule: `!self.startsWith('/') && self.split('/').all(part, part != '' && part != '.' && part != '..')`,
                message: 'a file of the output is a relative path without "..", in the directory of the job',
              },
            ],
          },
        },
      },
    },
    queueName: text('Queue of thresher that runs the jobs.', { minLength: 1, maxLength: 256 }),
    suspend: { type: 'boolean', description: 'While true no job runs; those that run are ended.' },
    ttlSecondsAfterFinished: count('The resource is deleted so many seconds after its end.'),
    activeDeadlineSeconds: count('Jobs that still run so long after the first was submitted are ended.', {
      minimum: 1,
    }),
    backoffLimit: count('Number of failed jobs that are run again.', { maximum: mostRetries }),
  },
};

const jobIds = (description: string): Schema => ({
  type: 'array',
  maxItems: mostJobs,
  description,
  'x-kubernetes-list-type': 'atomic',
  items: { type: 'string', maxLength: longestJobId },
});
const ranges = (description: string): Schema => text(description, { maxLength: longestRanges });
const time = (description: string): Schema => ({ type: 'string', format: 'date-time', description });

const status: Schema = {
  type: 'object',
  properties: {
    active: count('Jobs that were submitted and have not ended, held ones among them.'),
    succeeded: count('Jobs that ended with return code 0.'),
    failed: count('Jobs that ended otherwise.'),
    held: count('Jobs that HTCondor holds.'),
    jobid: jobIds('Ids of the jobs, CLUSTER.PROC, in the order of their numbers.'),
    jobIds: jobIds('The same as jobid.'),
    clusterId: text('Cluster of the first job.'),
    uniqId: text('Id of the jobs for the operator.'),
    reason: text('Why it stands as it stands, in a word.'),
    factory: text('The factory that runs it.'),
    takenOver: { type: 'boolean', description: 'Its jobs were submitted by htc-operator.' },
    round: count('How often it was suspended.'),
    retried: count('How many failed jobs were run again.'),
    completedIndexes: ranges('Numbers of the jobs that succeeded: 0-4,7.'),
    failedIndexes: ranges('Numbers of the jobs that failed: 5,8-9.'),
    // Without a bound on their number: another writer's conditions stay beside those of thresher, and would keep them away.
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
        properties: {
          type: { type: 'string', maxLength: 316 },
          status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
          reason: { type: 'string', maxLength: 1024 },
          message: { type: 'string', maxLength: 32_768 },
          lastTransitionTime: time('When the status changed last.'),
        },
      },
    },
    returnCodes: {
      type: 'array',
      maxItems: mostJobs,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['index'],
      description: 'Return codes that are not 0, and those that jobs reported themselves.',
      items: {
        type: 'object',
        required: ['index'],
        properties: {
          index: count('Number of the job.', { maximum: mostJobs - 1 }),
          exitCode: { type: 'integer', description: 'By HTCondor, which decides.' },
          reported: { type: 'integer', description: 'By the event that the job sent.' },
        },
      },
    },
    outputDirectory: text('Where outputs are, below the directory of the operator.'),
    outputIndexes: ranges('Numbers of the jobs whose output is kept: 0-4,7.'),
    outputMissing: ranges('Numbers of the jobs that left no output: 5.'),
    observedGeneration: { type: 'integer', format: 'int64' },
    startTime: time('When its first job was submitted.'),
    completionTime: time('When its last job ended.'),
  },
};

/** Fields that may change while the jobs run: they say for how long, and not what runs. */
const changeable = ['suspend', 'ttlSecondsAfterFinished', 'activeDeadlineSeconds', 'backoffLimit'];

/**
 * "self.spec.env equals oldSelf.spec.env" for each other field. Objects are compared field by field: CEL would not let a whole
 * spec be compared whose changeable parts it must leave out.
 */
const unchanged = Object.keys(spec['properties'] as object)
  .filter((field) => !changeable.includes(field))
  .map(
    (field) =>
      `(has(self.spec.${field}) == has(oldSelf.spec.${field}) && (!has(self.spec.${field}) || self.spec.${field} == oldSelf.spec.${field}))`,
  )
  .join(' && ');

const column = (name: string, jsonPath: string, more = {}) => ({ name, type: 'integer', jsonPath, ...more });

/** The CustomResourceDefinition, as `thresher htcjob crd` prints it. */
export function crd(): Schema {
  const [, version = ''] = apiVersion.split('/');
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${htcJobs.resource}.${htcJobs.group}` },
    spec: {
      group: htcJobs.group,
      // A CRD that was stored as v1beta1, such as htc-operator's, has `true`, which v1 does not allow.
      preserveUnknownFields: false,
      scope: 'Namespaced',
      names: {
        kind: htcJobKind,
        listKind: `${htcJobKind}List`,
        plural: htcJobs.resource,
        singular: 'htcjob',
        shortNames: ['htcj'],
        categories: ['all'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            column('Active', '.status.active'),
            column('Succeeded', '.status.succeeded'),
            column('Failed', '.status.failed'),
            column('Held', '.status.held'),
            column('Age', '.metadata.creationTimestamp', { type: 'date' }),
            column('Reason', '.status.reason', { type: 'string' }),
          ],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: 'Jobs on HTCondor that run a script in a container.',
              required: ['spec'],
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec,
                status,
              },
              'x-kubernetes-validations': [
                {
                  rule: `!has(oldSelf.status) || !has(oldSelf.status.uniqId) || (${unchanged})`,
                  message: `its jobs may have been submitted, or it has ended, so the spec cannot change any more, but for ${changeable.join(', ')}: delete it and create it anew, or create another one`,
                },
              ],
            },
          },
        },
      ],
    },
  };
}
