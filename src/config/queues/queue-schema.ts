import type { Static } from 'typebox';
import { withoutEffect } from '../../plugins/contracts/without-effect.ts';
import Type from '../../util/type.ts';

/**
 * A limit. Harvester silently takes one that is not an integer as unset; here it is an error. Below 0 counts as 0, as
 * there. A larger one would be rounded, and is a mistake.
 */
const limit = (description: string) =>
  Type.Optional(Type.Integer({ maximum: Number.MAX_SAFE_INTEGER, description }));

/** A queue's own keys, as far as this version reads them; plugin sections have schemas of their own. */
export const QueueOptions = Type.Object({
  queueStatus: Type.String({
    default: 'online',
    description:
      '`online`, or `test`, which submits just the same; or a state in which thresher submits nothing: `offline`, `standby`, `maintenance`, `brokeroff`.',
  }),
  cricStatus: Type.Optional(
    Type.String({
      description:
        "Status of the queue in CRIC, from the cacher's file. `offline`, `standby` and `maintenance` close the queue whatever its `queueStatus`; so does `elsewhere`, if CRIC gives it to another instance. Write `online` into the queue file to run it all the same.",
    }),
  ),
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
    Type.Union(
      [
        Type.String({ minLength: 1 }),
        Type.Object(
          { name: Type.String({ minLength: 1 }), module: Type.Optional(Type.String({ minLength: 1 })) },
          { additionalProperties: true },
        ),
      ],
      {
        description:
          "The source that asks for workers: its name, or a section with `name`, its options, and `module` for a third party's. Default: the daemon's `submitter.defaultDemand`; without it, the default of the queue's backend, as the chapter on sources says.",
      },
    ),
  ),
  maxWorkers: limit('Workers alive at most. Unset counts as 0, as in Harvester.'),
  nQueueLimitWorker: limit('Workers queued (pending, submitted, idle) at most. Default: `maxWorkers`.'),
  nQueueLimitWorkerMax: limit('Upper bound of `nQueueLimitWorker`; alone, it sets it.'),
  nQueueLimitWorkerRatio: limit(
    'Workers queued at most, in per cent of the running ones, and no more than `nQueueLimitWorker`. Pull queues only. Without `nQueueLimitWorkerMin` the queue never starts from zero running workers.',
  ),
  nQueueLimitWorkerMin: limit('Minimum for `nQueueLimitWorkerRatio`. Pull queues only.'),
  nQueueLimitWorkerCores: limit('Cores of queued workers at most.'),
  nQueueLimitWorkerCoresRatio: limit(
    'Cores of queued workers at most, in per cent of the cores of running ones, and no more than `nQueueLimitWorkerCores`.',
  ),
  nQueueLimitWorkerCoresMin: limit(
    'Minimum for `nQueueLimitWorkerCoresRatio`; no less than `nQueueLimitWorkerMin` times one core, nor than one worker takes.',
  ),
  nQueueLimitWorkerMemory: limit('Memory of queued workers at most, MB.'),
  nQueueLimitWorkerMemoryRatio: limit(
    'Memory of queued workers at most, in per cent of the memory of running ones, and no more than `nQueueLimitWorkerMemory`.',
  ),
  nQueueLimitWorkerMemoryMin: limit(
    'Minimum for `nQueueLimitWorkerMemoryRatio`, MB; no less than `nQueueLimitWorkerMin` times 1000 MB, nor than one worker takes.',
  ),
  maxNewWorkersPerCycle: limit('New workers per pass at most; 0 = no such limit.'),
  credentials: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Names of the credentials that its workers need, as `thresher credentials` shows them. Default: those of `proxySecretPath` or `x509UserProxy`.',
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
    description: 'Number of them that may come at once after a quiet time, if `submissionRate` is set.',
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
        'Number of 1000 pilots that are for jobs of this label: `rc_test`, `rc_test2` (pilot type RC), `rc_alrb` (ALRB), `ptest` (PT). The rest are PR.',
    }),
  ),
  maxSubmissionAttempts: Type.Integer({
    default: 3,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description:
      'Number of attempts to submit one worker. For a worker that a source named, only attempts without an answer of the backend count: thresher tries it again after each refusal that may pass.',
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
  nCorePerNode: Type.Optional(
    Type.Integer({
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Cores of one worker if `nCore` is unset or below 1. Below 1: not said.',
    }),
  ),
  minRamCount: natural('Memory of one worker, MB; 0 = not said.'),
  maxDiskCount: natural('Disk of one worker, MB; 0 = not said.'),
  maxWalltime: natural('Wall time of one worker, s; 0 = no limit.'),
  useMaxRam: Type.Optional(
    Type.Boolean({
      description:
        "Each worker gets its part of `minRamCount` by its cores, also where its resource type has less. Default: false. CRIC's `useMaxRam`.",
    }),
  ),
  diskByCores: Type.Optional(
    Type.Boolean({
      description:
        'A worker with fewer cores than `nCore` gets its part of `maxDiskCount`. Default: false; by CRIC it is true for unified queues on Kubernetes, as in Harvester.',
    }),
  ),
  wholeSlots: Type.Optional(
    Type.Boolean({
      description:
        'A worker that the PanDA server orders takes all of `nCore` and `minRamCount`, whatever its resource type has. Default: false; by CRIC it is true for queues that are not unified, as in Harvester.',
    }),
  ),
  nCoreFactor: Type.Optional(
    Type.Union([Factor, Type.Record(Type.String(), Type.Record(Type.String(), Factor))], {
      description:
        'Number of jobs that one worker takes: thresher divides a demand counted in jobs by it. A number, or { job type or `Any`: { resource type or `Undefined`: number } }.',
    }),
  ),
  noPilotsWhenNoActiveJobs: Type.Optional(
    Type.Boolean({
      description:
        'Whether a queue whose workers follow the activated jobs of the PanDA server (`demand` `panda`, `runMode` `self`) gets none without any. True in `submitter.noPilotsWhenNoActiveJobs` of the settings counts, too; the `demand` section of the queue counts before both.',
    }),
  ),
  computingElements: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Endpoints of CEs (host:port, as `thresher worker` shows them) that throttling rules of level `ce` count.',
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

/** Options of every plugin section. */
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
  ...['common', 'demand', 'zipper', 'aux_preparator', 'extractor'],
];
