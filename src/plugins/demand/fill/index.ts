import Type from 'typebox';
import { definePlugin } from '../../contracts/definition.ts';
import type { Demand, DemandQueue, DemandSource } from '../../contracts/demand.ts';

/** As many workers as the limits let through: `nQueueLimitWorker` queued, up to `maxWorkers` alive. */
export const FillDemand = definePlugin({
  kind: 'demand',
  name: 'fill',
  module: 'thresher/demand',
  config: Type.Object({}),
  connections: () => [],
  create: (): DemandSource => ({ kind: 'fill', groups: async (queue) => fill(queue) }),
});

function fill(queue: DemandQueue): Demand {
  const nothing = (code: string, message: string) => ({ groups: [], reasons: [{ code, message }] });
  if (queue.mapType !== 'NoJob') {
    return nothing('demand-push', `mapType is ${queue.mapType}: its workers need jobs from the PanDA server`);
  }
  if (queue.runMode === 'slave')
    return nothing('demand-slave', 'runMode is slave: the PanDA server sets the number');
  return { groups: [{ requirements: queue.requirements, count: Infinity }], reasons: [] };
}
