import type { QueueConfig } from '../config/queues/queues.ts';

/** One configuration of a queue. */
export interface QueueVersion {
  readonly configId: number;
  readonly config: QueueConfig;
}

/** How a configuration runs: `current` may submit, an older one follows its workers to their end. */
export interface PlannedVersion extends QueueVersion {
  readonly current: boolean;
}

export interface ReloadState {
  /** The configurations that run as current ones. */
  readonly current: readonly QueueVersion[];
  /** Earlier configurations whose workers are followed. */
  readonly older: readonly QueueVersion[];
  /** The queues as the file has them now. */
  readonly file: readonly QueueVersion[];
  /** The configurations that workers in the database carry, and those that a pass under way may still submit with. */
  readonly inUse: readonly QueueVersion[];
  /** Ids of older configurations that a listing may adopt workers with at this moment. */
  readonly held: ReadonlySet<number>;
}

export interface ReloadPlan {
  readonly stay: readonly PlannedVersion[];
  readonly leave: readonly PlannedVersion[];
  readonly come: readonly PlannedVersion[];
}

/**
 * Says which configurations go on, end and begin when the queue file was read anew:
 *
 * 1. a queue that is as it was keeps its current configuration;
 * 2. a queue that changed, or is new, gets the file's;
 * 3. a configuration that was current until now becomes an older one, even where no row names it: a pass under way may still
 *    submit with it;
 * 4. an older configuration stays as long as workers carry it, or a listing may adopt some with it. The prune loop plans again,
 *    with the queues as they run, so that the last worker of a removed queue needs no reload.
 */
export function planReload({ current, older, file, inUse, held }: ReloadState): ReloadPlan {
  const running = [...asPlanned(current, true), ...asPlanned(older, false)];
  const wantedIds = new Map(file.map(({ config, configId }) => [config.name, configId]));
  const isWanted = ({ config, configId }: QueueVersion) => wantedIds.get(config.name) === configId;
  const replaced = current.filter((version) => !isWanted(version));
  const adopting = older.filter(({ configId }) => held.has(configId));
  const followed = new Map(
    [...inUse, ...replaced, ...adopting]
      .filter((version) => !isWanted(version))
      .map((version) => [version.configId, version]),
  );
  const planned = [...asPlanned(file, true), ...asPlanned([...followed.values()], false)];
  const runningKeys = new Set(running.map(keyOf));
  const plannedKeys = new Set(planned.map(keyOf));
  return {
    stay: running.filter((version) => plannedKeys.has(keyOf(version))),
    leave: running.filter((version) => !plannedKeys.has(keyOf(version))),
    come: planned.filter((version) => !runningKeys.has(keyOf(version))),
  };
}

function asPlanned(versions: readonly QueueVersion[], current: boolean): PlannedVersion[] {
  return versions.map(({ config, configId }) => ({ config, configId, current }));
}

/** A configuration that becomes an older one is another one: its loops do not submit. */
export function keyOf({ configId, current }: PlannedVersion): string {
  return `${current ? 'current' : 'older'} ${configId}`;
}
