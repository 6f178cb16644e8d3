import Type, { type Static } from 'typebox';

const seconds = (fallback: number, description: string) =>
  Type.Number({ default: fallback, minimum: 0.1, maximum: 31_622_400, description });

const factor = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.Literal('auto')], { description });

const byJobs = 'Workers per activated job of the site, for queues with `runMode: self`; `auto` is 1.';
const without =
  'Whether queues with `runMode: self` get no worker at all without activated jobs; otherwise one stays queued.';

/** Options of the link to the PanDA server, which `pandacon` names. */
export const PandaOptions = Type.Object({
  pollInterval: seconds(5, 'Seconds between questions for commands.'),
  commandsAtOnce: Type.Integer({
    default: 20,
    minimum: 1,
    maximum: 1000,
    description: 'Commands in one answer; with as many, thresher asks again at once.',
  }),
  heartbeatInterval: seconds(600, 'Seconds between heartbeats.'),
  statisticsInterval: seconds(300, 'Seconds between reports of statistics, beside those after each order.'),
  jobsInterval: seconds(60, 'Seconds between questions for activated jobs, for queues with `runMode: self`.'),
  reportBatch: Type.Integer({
    default: 100,
    minimum: 1,
    maximum: 1000,
    description: 'Workers in one report.',
  }),
  repeatInterval: seconds(1800, 'Seconds after which a worker is reported again though nothing changed.'),
  activateWorkerFactor: Type.Union([Type.Number({ minimum: 0 }), Type.Literal('auto')], {
    default: 1,
    description: byJobs,
  }),
  noPilotsWhenNoActiveJobs: Type.Boolean({ default: false, description: without }),
});
export type PandaOptions = Static<typeof PandaOptions>;

/** Options in the `demand` section of a queue, before those of the settings. */
export const PandaQueueOptions = Type.Object({
  activateWorkerFactor: Type.Optional(factor(byJobs)),
  noPilotsWhenNoActiveJobs: Type.Optional(Type.Boolean({ description: without })),
});
export type PandaQueueOptions = Static<typeof PandaQueueOptions>;
