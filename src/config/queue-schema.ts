import Type, { type Static } from 'typebox';

/**
 * A limit. Harvester takes one that is not an integer as unset, without a word; here it is an error. Below 0 counts as 0,
 * as there.
 */
const limit = (description: string) => Type.Optional(Type.Integer({ description }));

/** A queue's own keys, as far as this version reads them; plugin sections have schemas of their own. */
export const QueueOptions = Type.Object({
  queueStatus: Type.String({
    default: 'online',
    description:
      '`online`, or a state in which nothing is submitted: `offline`, `standby`, `maintenance`, `brokeroff`.',
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
  maxNewWorkersPerCycle: limit('New workers per pass at most; 0 = no such limit.'),
  maxSubmissionAttempts: Type.Integer({
    default: 3,
    minimum: 1,
    description: 'How often the submission of one worker is tried.',
  }),
});
export type QueueOptions = Static<typeof QueueOptions>;

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
  workerMaker: { kind: 'inert', needed: false },
  preparator: { kind: 'inert', needed: false },
  stager: { kind: 'inert', needed: false },
} as const;
export type SectionName = keyof typeof sections;

/** Sections into which a queue's `common` is copied, and that are merged key by key with the template's. */
export const mergedSections: readonly string[] = [
  ...Object.keys(sections),
  ...['common', 'throttler', 'zipper', 'aux_preparator', 'extractor'],
];
