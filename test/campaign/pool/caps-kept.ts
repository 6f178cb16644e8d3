/** The bounds of one writing of the queue file: by queue and shape. */
export type Caps = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A worker as thresher recorded it. */
export interface RecordedWorker {
  readonly workerId: number;
  readonly queue: string;
  readonly shape: string;
  /** The writing of the queue file by which it was made. */
  readonly version: number;
  /** ms UTC, of its intent. */
  readonly createdAt: number;
}

/** All that the judgement rests on. */
export interface CapFacts {
  /** The writings of the queue file, by their versions. */
  readonly written: ReadonlyMap<number, Caps>;
  readonly workers: readonly RecordedWorker[];
  /** By worker: when its process was seen last, ms UTC. A worker that never had one is missing. */
  readonly lastSeen: ReadonlyMap<number, number>;
  /** When thresher itself said that a queue runs by this version. */
  readonly taken: readonly { readonly queue: string; readonly version: number; readonly at: number }[];
}

/**
 * How the promise "never above caps" was broken:
 * - at the moment of its intent, a worker and all others of its shape that really ran later than that are at most as many as the cap
 *   in force lets live, so that a lowered cap creates none;
 * - the cap in force is the one of the newest version that thresher has said to run by: no intent by an earlier one follows;
 * - each process belongs to a worker that is recorded.
 *
 * Workers above a cap that was lowered may live until they have drained.
 */
export function brokenCaps({ written, workers, lastSeen, taken }: CapFacts): string[] {
  const lived = workers.filter(({ workerId }) => lastSeen.has(workerId));
  const known = new Set(workers.map(({ workerId }) => workerId));
  const unknown = [...lastSeen.keys()].filter((id) => !known.has(id));
  return [
    ...unknown.map((id) => `worker ${id} lived and has no record`),
    ...lived.flatMap((worker) => {
      const { workerId, queue, shape, version, createdAt } = worker;
      const cap = written.get(version)?.[queue]?.[shape] ?? 0;
      const beside = lived.filter(
        (other) =>
          other.queue === queue &&
          other.shape === shape &&
          isBefore(other, worker) &&
          (lastSeen.get(other.workerId) ?? 0) >= createdAt,
      );
      const ids = beside.map((other) => other.workerId).join(', ');
      const above =
        beside.length < cap
          ? []
          : [`worker ${workerId} of ${queue}/${shape} came beside ${ids || 'none'}: its cap was ${cap}`];
      const newest = Math.max(
        ...taken.filter((one) => one.queue === queue && one.at < createdAt).map((one) => one.version),
      );
      const late =
        version >= newest
          ? []
          : [
              `worker ${workerId} of ${queue}/${shape} was made by version ${version}, and thresher had ${newest} by then`,
            ];
      return [...above, ...late];
    }),
  ];
}

function isBefore(one: RecordedWorker, other: RecordedWorker): boolean {
  return (
    one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.workerId < other.workerId)
  );
}
