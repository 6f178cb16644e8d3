import Type from 'typebox';
import { definePlugin } from '../../contracts/definition.ts';
import type { DemandSource } from '../../contracts/demand.ts';

/** No new workers. The default, so that reading a file starts no pilots. The daemon says why (`whyNoDemand`). */
export const NoDemand = definePlugin({
  kind: 'demand',
  name: 'none',
  module: 'thresher/demand',
  config: Type.Object({}),
  create: (): DemandSource => ({ kind: 'none', groups: async () => ({ groups: [], reasons: [] }) }),
});
