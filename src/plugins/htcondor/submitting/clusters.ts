import type { Payload } from '../../../worker/payload.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import { hasBundle } from '../payload/bundle.ts';
import { isOwnNumber } from '../template/commands.ts';

/**
 * The workers of each `condor_submit`, in their order. Each group has one of its own, so that its workers are the processes of
 * one cluster; the workers without a group share one. A worker with a bundle has another program than one without, and a cluster
 * has one program, and one set of the commands that payloads bring.
 */
export function clustersOf<W extends WorkerToStart>(workers: readonly W[]): (readonly W[])[] {
  const numberOf = numbersOfCommands();
  return [...Map.groupBy(workers, (worker) => clusterOf(worker, numberOf)).values()];
}

type Commands = NonNullable<Payload['submit']>;

/** A number for each set of commands that a cluster may have in common. The jobs of a HTCJob have one set of up to 100 kB, which is looked at once. */
function numbersOfCommands(): (commands: Commands) => number {
  const known = new Map<Commands, number>();
  const byText = new Map<string, number>();
  return (commands) => {
    const before = known.get(commands);
    if (before !== undefined) return before;
    const shared = Object.entries(commands).map(([key, value]) =>
      isOwnNumber(key, value) ? [key] : [key, value],
    );
    const text = JSON.stringify(shared);
    const number = byText.get(text) ?? byText.size;
    byText.set(text, number);
    known.set(commands, number);
    return number;
  };
}

const noCommands: Commands = {};

/** Each source has groups of its own. */
function clusterOf(worker: WorkerToStart, numberOf: (commands: Commands) => number): string {
  const { groupId, origin, payload } = worker;
  const group = groupId === undefined ? null : [origin.kind, groupId];
  const commands = numberOf(payload?.submit ?? noCommands);
  return JSON.stringify([hasBundle(worker), payload?.output, commands, group]);
}
