import type { WorkerOptions } from '../../config/queues/queue-schema.ts';
import type { Group, Request } from '../../plugins/contracts/index.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { Requirements } from '../../worker/worker.ts';

/** Workers with equal requirements that stand next to each other in the order of service. */
export interface Entry extends Group {
  /** The source that asks for them: `kind` of their origins. */
  readonly kind: string;
  /** The named workers: `count` says how many of them, from the first on. Absent: they are counted alone. */
  readonly requests?: readonly Request[];
}

/** An origin as a key of maps. */
export function keyOf(kind: string, { uid, index }: OriginKey): string {
  return `${kind}\0${index}\0${uid}`;
}

/**
 * All needs of a requested worker: its own come before those of the queue. The resource type follows from the cores where
 * the request names cores alone, as it does for the queue.
 */
export function needsOf({ requirements: own }: Request, queue: Requirements): Requirements {
  if (own === undefined) return queue;
  const byCores = own.nCore === undefined ? undefined : resourceTypeOf(own.nCore);
  // JavaScript may name a need and leave it undefined.
  const said = Object.fromEntries(
    Object.entries(own).filter(([, value]: [string, unknown]) => value !== undefined),
  );
  return { ...queue, ...said, resourceType: own.resourceType ?? byCores ?? queue.resourceType };
}

/** Options by which the workers of a queue share its slots. */
export type Sharing = Pick<WorkerOptions, 'useMaxRam' | 'diskByCores'>;

/**
 * The needs of a worker that takes a part of the queue's slot, or all of it. A disk of its own counts as it is.
 * Source: Harvester's SimpleWorkerMaker (`useMaxRam`) and `get_prorated_maxwdir_GiB` of its info_utils.
 */
export function partOfSlot(
  needs: Requirements,
  slot: Requirements,
  { useMaxRam = false, diskByCores = false }: Sharing,
): Requirements {
  const part = (whole: number) => Math.ceil((whole * needs.nCore) / slot.nCore);
  const ofSlot = needs.maxDiskCount === slot.maxDiskCount;
  return {
    ...needs,
    ...(useMaxRam && { minRamCount: Math.max(needs.minRamCount, part(slot.minRamCount)) }),
    ...(diskByCores && ofSlot && { maxDiskCount: part(slot.maxDiskCount) }),
  };
}

function resourceTypeOf(nCore: number): string {
  return nCore === 1 ? 'SCORE' : 'MCORE';
}

/**
 * Makes entries of the requests of one source, in their order. Requests of equal needs next to each other share an entry, so
 * that a limit cuts thousands of them as fast as one.
 */
export function entriesOf(
  kind: string,
  requests: readonly Request[],
  queue: Requirements,
  sharing: Sharing = {},
): Entry[] {
  const runs: { readonly requirements: Requirements; readonly requests: Request[] }[] = [];
  let before: Request | undefined;
  for (const request of requests) {
    const isAlike = before !== undefined && before.requirements === request.requirements;
    before = request;
    if (isAlike) {
      runs.at(-1)?.requests.push(request);
      continue;
    }
    const requirements = partOfSlot(needsOf(request, queue), queue, sharing);
    const last = runs.at(-1);
    if (last !== undefined && areEqual(last.requirements, requirements)) last.requests.push(request);
    else runs.push({ requirements, requests: [request] });
  }
  return runs.map((run) => ({
    kind,
    requirements: run.requirements,
    count: run.requests.length,
    requests: run.requests,
  }));
}

/** The entries without the requests of these origins, which wait no more. Counted workers stay as they are. */
export function withoutOrigins(entries: readonly Entry[], served: ReadonlySet<string>): Entry[] {
  return entries.flatMap((entry) => {
    const { kind, requirements, requests } = entry;
    if (requests === undefined) return [entry];
    const rest = requests.filter(({ origin }) => !served.has(keyOf(kind, origin)));
    return rest.length === 0 ? [] : [{ kind, requirements, count: rest.length, requests: rest }];
  });
}

function areEqual(one: Requirements, other: Requirements): boolean {
  if (one === other) return true;
  const names = Object.keys(one) as (keyof Requirements)[];
  return names.every((name) => one[name] === other[name]);
}
