import { keyOf } from '../../config/queues/credential-managers.ts';
import { type QueueConfig, siteFamilyOf } from '../../config/queues/queues.ts';
import type { SourceDefinition } from '../../plugins/contracts/index.ts';
import { messageOf } from '../../worker/errors.ts';
import type { RunConfiguration } from '../configuration.ts';
import type { PluginFactory } from '../plugin-factory.ts';
import { factoryItem, queueItem, sourceItem } from './item-names.ts';
import type { Item } from './plan-shares.ts';

export interface ItemParts {
  readonly plugins: Pick<PluginFactory, 'sharedOf'>;
  /** Which daemon is to have a queue, as the settings say. */
  readonly owners: Readonly<Record<string, string>>;
}

/** Everything that the daemons of a factory share out, by its files and by what still has workers. */
export function itemsOf(
  {
    queueFile,
    inUse,
    catalogue,
    sources,
  }: Pick<RunConfiguration, 'queueFile' | 'inUse' | 'catalogue' | 'sources'>,
  parts: ItemParts,
): Item[] {
  const configs = [...queueFile.queues, ...inUse.map(({ config }) => config)];
  const named = new Set([
    ...sources.sources.map(({ definition }) => definition.name),
    ...configs.map(({ demand }) => demand),
  ]);
  const alive = catalogue.sources.filter(({ name, perQueue }) => named.has(name) && !perQueue);
  const byQueue = Map.groupBy(configs, ({ name }) => name);
  const queues = [...byQueue].map(([queue, versions]): Item => {
    const shared = versions.map((config) => sharedBy(config, alive, parts));
    const owner = parts.owners[queue];
    return {
      name: queueItem(queue),
      keys: [...new Set(shared.flatMap(({ keys }) => keys))],
      weight: 1,
      ...(owner !== undefined && { owner }),
      ...(shared.some(({ isBound }) => isBound) && { bound: true }),
    };
  });
  const lives = alive.map(({ name }): Item => ({
    name: sourceItem(name),
    keys: [sourceItem(name)],
    weight: 0,
  }));
  return [{ name: factoryItem, keys: [], weight: 0 }, ...lives, ...queues];
}

function sharedBy(config: QueueConfig, alive: readonly SourceDefinition[], { plugins }: ItemParts) {
  const asked = alive.filter(({ name, everyQueue }) => everyQueue || name === config.demand);
  const own = [
    ...asked.map(({ name }) => sourceItem(name)),
    `siteFamily ${siteFamilyOf(config)}`,
    ...(config.credmanagers ?? []).map((choice) => `credential ${keyOf(choice)}`),
  ];
  try {
    const { keys, isBound } = plugins.sharedOf(config);
    return { keys: [...own, ...keys], isBound };
  } catch (error) {
    // A plugin of an earlier configuration is gone: nothing can be made of it on any machine.
    return { keys: [...own, `without plugins: ${messageOf(error)}`], isBound: false };
  }
}
