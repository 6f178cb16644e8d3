import type { Reason, SourceQueue } from '../../plugins/contracts/index.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import Type from '../../util/type.ts';
import { whyNotCounted } from '../counting.ts';

/** No new workers. The default, so that reading a file starts no pilots. */
export const NoneSource = defineSource({
  name: 'none',
  module: builtInSources,
  description:
    'Asks for no workers. The default of queues on Kubernetes and HTCondor. Other sources, such as `request`, may still ask for workers of the queue.',
  usual: true,
  perQueue: true,
  config: Type.Object({}),
  stands: whyNone,
  create: () => ({
    wanted: async (queue) => ({ requests: [], groups: [], reasons: whyNone(queue) }),
  }),
});

function whyNone(queue: Pick<SourceQueue, 'mapType' | 'runMode'>): readonly Reason[] {
  const reasons = whyNotCounted(queue);
  // Elsewhere setting `demand` alone changes nothing.
  if (reasons.length > 0) return reasons;
  const message =
    'demand is none: nothing asks for workers; set demand to "fill" in the queue, or submitter.defaultDemand to "fill" in the settings';
  return [{ code: 'demand-none', message }];
}
