import type { Requirements, Worker } from '../../worker/worker.ts';

/** Facts of its worker that a template of any backend may name, beside the backend's own. */
export const identityPlaceholders = [
  ...['workerID', 'harvesterID', 'factoryID', 'hostname', 'queueName', 'computingSite', 'accessPoint'],
] as const;

/** Placeholders for the needs and the purpose of the worker. */
export const requirementPlaceholders = [
  ...(['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'] as const),
  ...(['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'] as const),
] as const satisfies readonly (keyof Requirements)[];

/**
 * The values of all of these. `hostname` is this machine's as `hostnameFor` has it, which is short unless `useFQDN`
 * says else; `accessPoint` is empty where the worker has none.
 */
export function workerPlaceholders(
  worker: Worker,
  factory: { readonly factoryId: string; readonly harvesterId: string; readonly hostname: string },
): Record<string, string | number> {
  return {
    workerID: worker.workerId,
    harvesterID: factory.harvesterId,
    factoryID: factory.factoryId,
    hostname: factory.hostname,
    queueName: worker.queue,
    computingSite: worker.computingSite,
    accessPoint: worker.accessPoint ?? '',
    ...worker.requirements,
  };
}
