import { join } from 'node:path';
import type { Worker } from '../../worker/worker.ts';
import { markedUnder } from './marked-processes.ts';
import { type Group, groupMembers, type Snapshot, takeSnapshot } from './processes.ts';
import { markOf } from './template.ts';
import type { ShimClaim } from './worker-files.ts';

/** Which worker, and which process it was when it was last known. */
export type Known = Pick<Worker, 'workerId' | 'attempt' | 'handle'>;

/** Which work directory, and since which boot of the machine. */
export interface Place {
  readonly root: string;
  readonly bootId: string;
}

/**
 * The living processes of these workers: their process groups where the shim is known, and whatever carries their marks.
 * @param claims the shim of each worker, as far as it is known
 * @returns pids by worker; workers without any are not in it
 */
export async function processesOf(
  claims: ReadonlyMap<number, ShimClaim | undefined>,
  { root, bootId }: Place,
  snapshot = takeSnapshot(),
): Promise<Map<number, readonly number[]>> {
  const groups = new Map<number, Group>();
  const workers = new Map<number, number>();
  for (const [workerId, claim] of claims) {
    const mark = markOf(join(root, String(workerId)));
    const here = claim !== undefined && claim.bootId === bootId && !groups.has(claim.pid);
    // A worker without a known shim is found by its mark alone: no group has a negative number.
    const group = here ? claim.pid : -workerId;
    groups.set(group, { mark, leaderStartTicks: here ? claim.startTicks : -1 });
    workers.set(group, workerId);
  }
  if (groups.size === 0) return new Map();
  return new Map(
    [...(await groupMembers(groups, snapshot))].flatMap(([group, pids]) => {
      const workerId = workers.get(group);
      return workerId === undefined ? [] : [[workerId, pids] as const];
    }),
  );
}

/** The process by which a worker lives on: its shim where that is known, or what leads those with its mark. */
export async function survivorOf(
  workerId: number,
  claim: ShimClaim | undefined,
  place: Place,
  snapshot: Snapshot,
): Promise<ShimClaim | undefined> {
  const here = claim?.bootId === place.bootId ? claim : undefined;
  const members = await processesOf(new Map([[workerId, here]]), place, snapshot);
  if (!members.has(workerId)) return undefined;
  const leader = (await markedUnder(place.root, snapshot)).get(workerId)?.leader;
  return here ?? (leader && { by: 'shim', ...leader, bootId: place.bootId });
}
