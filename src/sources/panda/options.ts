import type { Static } from 'typebox';
import type { PandaLinkSettings } from '../../plugins/contracts/panda-server.ts';
import Type from '../../util/type.ts';

const seconds = (fallback: number, description: string) =>
  Type.Number({ default: fallback, minimum: 0.1, maximum: 31_622_400, description });

/** Options of the link to the PanDA server beside those of Harvester's file, which stand in its sections. */
export const PandaOptions = Type.Object({
  heartbeatInterval: seconds(600, 'Seconds between heartbeats.'),
  statisticsInterval: seconds(300, 'Seconds between reports of statistics, beside those after each order.'),
  jobsInterval: seconds(60, 'Seconds between questions for activated jobs, for queues with `runMode: self`.'),
});
export type PandaOptions = Static<typeof PandaOptions>;

/** Options in the `demand` section of a queue, before those of the settings. */
export const PandaQueueOptions = Type.Object({
  activateWorkerFactor: Type.Optional(
    Type.Union([Type.Number({ minimum: 0 }), Type.Literal('auto')], {
      description:
        'Workers per activated job of the site, for queues with `runMode: self`; `auto`: 1 by the number of instances that report workers of the site. Default: `submitter.activateWorkerFactor` of the settings.',
    }),
  ),
  noPilotsWhenNoActiveJobs: Type.Optional(
    Type.Boolean({
      description:
        'Whether such a queue gets no worker at all without activated jobs. Default: `noPilotsWhenNoActiveJobs` of the submitter of the queue, or of the settings.',
    }),
  ),
});
export type PandaQueueOptions = Static<typeof PandaQueueOptions>;

/** Everything that the settings say of the link. */
export type LinkOptions = PandaOptions & PandaLinkSettings;

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

export function linkOptions(options: PandaOptions, settings: PandaLinkSettings = usual): LinkOptions {
  return { ...settings, ...options };
}
