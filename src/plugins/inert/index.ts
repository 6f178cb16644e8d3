import Type from '../../util/type.ts';
import { definePlugin } from '../contracts/definition.ts';

/**
 * Plugins that every Harvester file names and that have nothing to do here: stage-in and stage-out of pushed jobs, and the
 * worker maker, whose work is the daemon's own. They are accepted, so that a queue file can be used as it is.
 */
const accepted: readonly (readonly [module: string, name: string])[] = [
  ['pandaharvester.harvesterpreparator.dummy_preparator', 'DummyPreparator'],
  ['pandaharvester.harvesterpreparator.pilotmover_preparator', 'PilotmoverPreparator'],
  ['pandaharvester.harvesterstager.dummy_stager', 'DummyStager'],
  ['pandaharvester.harvesterworkermaker.simple_worker_maker', 'SimpleWorkerMaker'],
];

export const inertPlugins = accepted.map(([module, name]) =>
  definePlugin({
    kind: 'inert',
    name,
    module,
    // Their options are Harvester's affair and are not reported as unread.
    config: Type.Object({}),
    create: () => null,
  }),
);
