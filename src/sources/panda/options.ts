import Type, { type Static } from 'typebox';
import type { PandaLinkSettings, PandaServer } from '../../plugins/contracts/panda-server.ts';

const seconds = (fallback: number, description: string) =>
  Type.Number({ default: fallback, minimum: 0.1, maximum: 31_622_400, description });

const factor = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.Literal('auto')], { description });

const byJobs = 'Workers per activated job of the site, for queues with `runMode: self`; `auto` is 1.';
const without =
  'Whether queues with `runMode: self` get no worker at all without activated jobs; otherwise one stays queued.';

/** Options of the link to the PanDA server that Harvester has no settings for. */
export const PandaOptions = Type.Object({
  heartbeatInterval: seconds(600, 'Seconds between heartbeats.'),
  statisticsInterval: seconds(300, 'Seconds between reports of statistics, beside those after each order.'),
  jobsInterval: seconds(60, 'Seconds between questions for activated jobs, for queues with `runMode: self`.'),
});
export type PandaOptions = Static<typeof PandaOptions>;

/** All options of the link: its own, and those from Harvester's sections of the settings. */
export type LinkOptions = PandaOptions & PandaLinkSettings;

/** For a server that comes with none: those of an empty file of settings. */
const usual: PandaLinkSettings = {
  pollInterval: 5,
  commandsAtOnce: 20,
  reportBatch: 100,
  repeatInterval: 1800,
  dialogsAtOnce: 50,
  dialogLevel: 'WARNING',
  activateWorkerFactor: 1,
  noPilotsWhenNoActiveJobs: false,
};

export function linkOptions(options: PandaOptions, { link = usual }: Pick<PandaServer, 'link'>): LinkOptions {
  return { ...options, ...link };
}

/** Options in the `demand` section of a queue, before those of the settings. */
export const PandaQueueOptions = Type.Object({
  activateWorkerFactor: Type.Optional(factor(byJobs)),
  noPilotsWhenNoActiveJobs: Type.Optional(Type.Boolean({ description: without })),
});
export type PandaQueueOptions = Static<typeof PandaQueueOptions>;
