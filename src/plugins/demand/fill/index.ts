import Type from 'typebox';
import { definePlugin } from '../../contracts/definition.ts';
import type { DemandSource } from '../../contracts/demand.ts';

/**
 * As many workers as the limits let through: `nQueueLimitWorker` queued, up to `maxWorkers` alive. The daemon asks it only for
 * queues that it can fill (`whyNoDemand`).
 */
export const FillDemand = definePlugin({
  kind: 'demand',
  name: 'fill',
  module: 'thresher/demand',
  config: Type.Object({}),
  create: (): DemandSource => ({
    kind: 'fill',
    groups: async ({ requirements }) => ({ groups: [{ requirements, count: Infinity }], reasons: [] }),
  }),
});
