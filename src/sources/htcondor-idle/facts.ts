import type { Reason } from '../../plugins/contracts/index.ts';
import type { DemandFacts } from './demand.ts';
import { collectorIsFresh, type Joining, type JoinTimes, type LivingWorker } from './joining.ts';
import { countByShape } from './living.ts';
import type { PoolLook, Template } from './look/result.ts';
import type { Matching, Shape, Space } from './model.ts';
import { unknownReason } from './reasons.ts';

/** All that is known of a pool and of our workers at one moment. */
export interface Known {
  readonly look: PoolLook;
  readonly templates: readonly Template[];
  readonly living: readonly LivingWorker[];
  /** Ids of workers with slots in the pool that another source asked for, and that live: an operator may have started them by hand. */
  readonly others: ReadonlySet<number>;
  /** Undefined: the collector did not say which startds there are. */
  readonly joining: Joining | undefined;
  readonly times: JoinTimes;
}

const prefix = 'worker of ';

/** The facts of one decision. Workers on their way are whole empty machines of their shape. */
export function factsOf({ look, templates, living, others, joining, times }: Known): DemandFacts {
  const shapes = templates.map(({ shape }) => shape);
  const byKey = new Map(shapes.map((shape) => [shape.key, shape]));
  return {
    needs: look.needs,
    shapes,
    spaces: spacesOf({ look, templates, living, others, joining, times }, byKey),
    matching: withOurs(look.matching, byKey),
    unknown: look.unknown.filter(({ part }) => part === 'schedd').map(unknownReason),
    workers: countByShape(living, joining),
    free: look.concurrency,
  };
}

function spacesOf(
  { look, living, others, joining, times }: Known,
  shapes: ReadonlyMap<string, Shape>,
): readonly Space[] | Reason {
  // Without its list of schedds, or its age, a collector that has just started and knows few machines looks like any other.
  const isWhole = look.unknown.every(({ part }) => part !== 'collector');
  if (look.spaces === undefined || joining === undefined || !isWhole) return whyNoSpaces(look);
  if (collectorIsFresh(times)) {
    const age = Math.max(0, Math.round((times.now - (times.collectorStartedAt ?? 0)) / 1000));
    const message = `the collector started ${age} s ago and may not know all machines again: none is added in its first ${times.joinTimeout / 1000} s (joinTimeout)`;
    return { code: 'htcondor-idle-collector-young', message };
  }
  const ours = joining.onItsWay.flatMap(({ workerId, shape: key = '' }): Space[] => {
    const shape = shapes.get(key);
    if (shape === undefined) return [];
    const { resources: free, oneJob } = shape;
    return [{ name: `worker:${workerId}`, kind: `${prefix}${key}`, free, oneJob, shape: key }];
  });
  const alive = new Map(living.map((worker) => [worker.workerId, worker]));
  // The ad of a machine that was killed stays in the collector for 15 minutes, and no job starts there.
  const there = look.spaces.flatMap((space) => {
    const { workerId } = space;
    if (workerId === undefined || others.has(workerId)) return [space];
    const worker = alive.get(workerId);
    return worker === undefined ? [] : [ofShape(space, worker.shape)];
  });
  return [...there, ...ours];
}

/** Our record names the shape that was asked for: the ad has its name alone, which may be that of the queue. */
const ofShape = (space: Space, shape: string | undefined): Space =>
  shape === undefined ? space : { ...space, shape, kind: `shape:${shape}` };

/** Workers with slots in the pool that are none of the living ones of this source. */
export function othersIn(
  { spaces = [] }: Pick<PoolLook, 'spaces'>,
  living: readonly LivingWorker[],
): number[] {
  const own = new Set(living.map(({ workerId }) => workerId));
  const ids = new Set(spaces.flatMap(({ workerId }) => workerId ?? []));
  return [...ids].filter((workerId) => !own.has(workerId));
}

function whyNoSpaces({ unknown }: PoolLook): Reason {
  const why = unknown.find(({ part }) => part === 'collector' || part === 'slots')?.reason.message;
  const message = `the collector did not say all that it knows of the machines and schedds of the pool${why === undefined ? '' : `: ${why}`}`;
  return { code: 'htcondor-idle-unknown', message };
}

/** A worker that has no slot yet takes what its shape takes. */
function withOurs(matching: Matching, shapes: ReadonlyMap<string, Shape>): Matching {
  return {
    ...matching,
    space: (need, space) => {
      if (!space.kind.startsWith(prefix)) return matching.space(need, space);
      const shape = shapes.get(space.kind.slice(prefix.length));
      return shape === undefined ? false : matching.shape(need, shape);
    },
  };
}
