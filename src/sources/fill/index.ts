import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import Type from '../../util/type.ts';
import { whyNotCounted } from '../counting.ts';

/** As many workers as the limits let through: `nQueueLimitWorker` queued, up to `maxWorkers` alive. */
export const FillSource = defineSource({
  name: 'fill',
  module: builtInSources,
  description:
    'Asks for as many workers as the limits of the queue let through: up to `nQueueLimitWorker` queued ones and `maxWorkers` living ones. The default of queues on the local backend.',
  perQueue: true,
  config: Type.Object({}),
  stands: whyNotCounted,
  create: () => ({
    wanted: async (queue) => {
      const reasons = whyNotCounted(queue);
      const groups = reasons.length === 0 ? [{ requirements: queue.requirements, count: Infinity }] : [];
      return { requests: [], groups, reasons };
    },
  }),
});
