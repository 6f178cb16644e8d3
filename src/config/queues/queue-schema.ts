import Type, { type Static } from 'typebox';
import { withoutEffect } from '../../plugins/contracts/without-effect.ts';

/**
 * A limit. Harvester takes one that is not an integer as unset, without a word; here it is an error. Below 0 counts as 0,
 * as there. A larger one would be rounded, and is a slip of the pen.
 */
const limit = (description: string) =>
  Type.Optional(Type.Integer({ maximum: Number.MAX_SAFE_INTEGER, description }));

/** A queue's own keys, as far as this version reads them; plugin sections have schemas of their own. */
export const QueueOptions = Type.Object({
  queueStatus: Type.String({
    default: 'online',
    description:
      '`online`, or `test`, which submits just the same; or a state in which nothing is submitted: `offline`, `standby`, `maintenance`, `brokeroff`.',
  }),
  prodSourceLabel: Type.String({ default: 'managed', description: 'Label of the jobs the pilots are for.' }),
  mapType: Type.Union(
    [Type.Literal('NoJob'), Type.Literal('OneToOne'), Type.Literal('ManyToOne'), Type.Literal('OneToMany')],
    { default: 'OneToOne', description: '`NoJob`: pull, pilots fetch their own jobs. The others push.' },
  ),
  runMode: Type.Union([Type.Literal('self'), Type.Literal('slave')], {
    default: 'self',
    description: '`slave`: the PanDA server sets the number of workers.',
  }),
  demand: Type.Optional(
    Type.Union([Type.Literal('fill'), Type.Literal('none')], {
      description: "What asks for workers. Default: the daemon's `submitter.defaultDemand`.",
    }),
  ),
  maxWorkers: limit('Workers alive at most. Unset counts as 0, as in Harvester.'),
  nQueueLimitWorker: limit('Workers queued (pending, submitted, idle) at most. Default: `maxWorkers`.'),
  nQueueLimitWorkerMax: limit('Upper bound of `nQueueLimitWorker`; alone, it sets it.'),
  nQueueLimitWorkerRatio: limit(
    'Workers queued at most, in per cent of the running ones, and no more than `nQueueLimitWorker`. Pull queues only. Without `nQueueLimitWorkerMin` nothing starts from zero running workers.',
  ),
  nQueueLimitWorkerMin: limit('What `nQueueLimitWorkerRatio` gives at least. Pull queues only.'),
  nQueueLimitWorkerCores: limit('Cores of queued workers at most.'),
  nQueueLimitWorkerCoresRatio: limit(
    'Cores of queued workers at most, in per cent of the cores of running ones, and no more than `nQueueLimitWorkerCores`.',
  ),
  nQueueLimitWorkerCoresMin: limit(
    'What `nQueueLimitWorkerCoresRatio` gives at least; no less than `nQueueLimitWorkerMin` times one core, nor than one worker takes.',
  ),
  nQueueLimitWorkerMemory: limit('Memory of queued workers at most, MB.'),
  nQueueLimitWorkerMemoryRatio: limit(
    'Memory of queued workers at most, in per cent of the memory of running ones, and no more than `nQueueLimitWorkerMemory`.',
  ),
  nQueueLimitWorkerMemoryMin: limit(
    'What `nQueueLimitWorkerMemoryRatio` gives at least, MB; no less than `nQueueLimitWorkerMin` times 1000 MB, nor than one worker takes.',
  ),
  maxNewWorkersPerCycle: limit('New workers per pass at most; 0 = no such limit.'),
  credentials: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Names of the credentials that its workers need, as `thresher credentials` shows them. Default: found from `proxySecretPath` or `x509UserProxy`.',
    }),
  ),
  submissionRate: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'New workers of this queue per second on average. Default: no such limit.',
    }),
  ),
  submissionBurst: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How many of them may come at once after a quiet time, where there is a `submissionRate`.',
  }),
  siteFamily: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Queues of one family share TinyThrottler's limits. Default: the queue's site.",
    }),
  ),
  prodSourceLabelRandomWeightsPermille: Type.Optional(
    Type.Record(Type.String(), Type.Number({ minimum: 0 }), {
      description:
        'How many of 1000 pilots are for jobs of this label: `rc_test`, `rc_test2` (pilot type RC), `rc_alrb` (ALRB), `ptest` (PT). The rest are PR.',
    }),
  ),
  maxSubmissionAttempts: Type.Integer({
    default: 3,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How often the submission of one worker is tried.',
  }),
});
export type QueueOptions = Static<typeof QueueOptions>;

const natural = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }));

const Factor = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** Options of a queue's `submitter` section that say what a worker is like, whatever the backend. */
export const WorkerOptions = Type.Object({
  nCore: Type.Optional(
    Type.Integer({
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Cores of one worker. Unset or below 1: `nCorePerNode`, else 1.',
    }),
  ),
  nCorePerNode: natural('Cores of one worker where `nCore` does not say.'),
  minRamCount: natural('Memory of one worker, MB; 0 = not said.'),
  maxDiskCount: natural('Disk of one worker, MB; 0 = not said.'),
  maxWalltime: natural('Wall time of one worker, s; 0 = no limit.'),
  nCoreFactor: Type.Optional(
    Type.Union([Factor, Type.Record(Type.String(), Type.Record(Type.String(), Factor))], {
      description:
        'How many jobs one worker takes: demand counted in jobs is divided by it. A number, or { job type or `Any`: { resource type or `Undefined`: number } }.',
    }),
  ),
  computingElements: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Endpoints of CEs (host:port, as `thresher worker` shows them) that throttling rules of level `ce` look at.',
    }),
  ),
});
export type WorkerOptions = Static<typeof WorkerOptions>;

/** Options of the `workerMaker` section. Source: Harvester's SimpleWorkerMaker. */
export const WorkerMakerOptions = Type.Object({
  jobAttributesToUse: withoutEffect(
    'it names attributes that pushed jobs set of their workers, and thresher takes no jobs yet',
  ),
  pilotTypeRandomWeightsPermille: withoutEffect(
    'as in Harvester since June 2019; `prodSourceLabelRandomWeightsPermille` of the queue weighs pilots',
  ),
});
export type WorkerMakerOptions = Static<typeof WorkerMakerOptions>;

/** What every plugin section has. */
export const SectionHead = Type.Object({
  name: Type.String({ minLength: 1 }),
  module: Type.String({ minLength: 1 }),
});

/** Sections that hold a plugin, and whether a queue can do without. Source: Harvester's queue_config_mapper. */
export const sections = {
  submitter: { kind: 'submitter', needed: true },
  monitor: { kind: 'monitor', needed: true },
  sweeper: { kind: 'sweeper', needed: true },
  messenger: { kind: 'messenger', needed: false },
  throttler: { kind: 'throttler', needed: false },
  workerMaker: { kind: 'inert', needed: false },
  preparator: { kind: 'inert', needed: false },
  stager: { kind: 'inert', needed: false },
} as const;
export type SectionName = keyof typeof sections;

/** Sections into which a queue's `common` is copied, and that are merged key by key with the template's. */
export const mergedSections: readonly string[] = [
  ...Object.keys(sections),
  ...['common', 'zipper', 'aux_preparator', 'extractor'],
];
