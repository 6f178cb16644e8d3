import type { WorkerToStart } from '../../../worker/worker.ts';
import { hasBundle } from '../payload/bundle.ts';
import { isOwnNumber } from '../template/commands.ts';

/**
 * The workers of each `condor_submit`, in their order. Each group has one of its own, so that its workers are the processes of
 * one cluster; the workers without a group share one. A worker with a bundle has another program than one without, and a cluster
 * has one program, and one set of the commands that payloads bring.
 */
export function clustersOf<W extends WorkerToStart>(workers: readonly W[]): (readonly W[])[] {
  return [...Map.groupBy(workers, clusterOf).values()];
}

/** Each source has groups of its own. */
function clusterOf(worker: WorkerToStart): string {
  const { groupId, origin, payload } = worker;
  const group = groupId === undefined ? null : [origin.kind, groupId];
  const commands = Object.entries(payload?.submit ?? {});
  const shared = commands.map(([key, value]) => (isOwnNumber(key, value) ? [key] : [key, value]));
  return JSON.stringify([hasBundle(worker), payload?.output, shared, group]);
}
