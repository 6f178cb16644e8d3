import Type from 'typebox';
import { definePlugin } from '../../contracts/definition.ts';
import type { DemandSource } from '../../contracts/demand.ts';

/** No new workers. The default, so that nobody starts pilots by reading a file. */
export const NoDemand = definePlugin({
  kind: 'demand',
  name: 'none',
  module: 'thresher/demand',
  config: Type.Object({}),
  connections: () => [],
  create: (): DemandSource => ({
    kind: 'none',
    groups: async () => ({
      groups: [],
      reasons: [{ code: 'demand-none', message: 'demand is none: nothing asks for workers' }],
    }),
  }),
});
