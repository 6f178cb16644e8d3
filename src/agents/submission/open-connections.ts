import type { Reason } from '../../worker/reason.ts';
import type { QueueRuntime } from '../queue-runtime.ts';

type Connected = Pick<QueueRuntime, 'connected'>;

/**
 * Why nothing at all may be submitted for a queue, if so. As long as a connection was not listed once, rows may be missing
 * that limits must count; and before it was heard of, it would get nothing of the first batch. After that one that is silent
 * keeps its own workers, which count, and the others go on.
 */
export function closedAltogether({ connected }: Connected): Reason | undefined {
  const closed = [...connected.values()].flatMap(({ connection }) => {
    const reason = connection.closed;
    return reason === undefined ? [] : [{ reason, heard: connection.heard }];
  });
  const decisive =
    closed.find(({ heard }) => !heard) ?? (closed.length === connected.size ? closed[0] : undefined);
  return decisive?.reason;
}

/**
 * Whether something is known of a placement. A submitter whose configuration does not lead there would ask somewhere else, and
 * take for absent what lives.
 */
export function isOpen({ connected }: Connected, placement: string): boolean {
  const there = connected.get(placement);
  return there !== undefined && there.connection.closed === undefined;
}

/** The placements that new workers may get. All of them if none is open: one was a moment ago. */
export function openPlacements(runtime: Connected): readonly string[] {
  const all = [...runtime.connected.keys()];
  const open = all.filter((placement) => isOpen(runtime, placement));
  return open.length === 0 ? all : open;
}
