import { chainOf, type ChainFacts, type GroupJobs, headOf, jobsIn } from './chain.ts';
import type { Decision, DemandFacts, JobCounts, QueueTerms } from './demand.ts';
import { countOf, grow, type Growth } from './grow.ts';
import { withinLimits } from './limited.ts';
import type { Need, Space } from './model.ts';
import { type Group, groupsOf, type Machine } from './packing/groups.ts';
import { Resourceful } from './packing/sizes.ts';
import { fillSpaces, type Fitting, sortSpaces } from './packing/spaces.ts';

/**
 * Decides how many new workers of each shape the waiting jobs can use: jobs go into free slots and workers on their way first, then into
 * new whole machines. Each job counts once. Pure: the same facts give the same decision, in whatever order they come.
 * @param terms by queue; a missing queue sets none
 */
export function decide(given: DemandFacts, terms: ReadonlyMap<string, QueueTerms>): Decision {
  const facts = inOrder(given);
  const { needs, spaces, matching } = facts;
  const known = 'code' in spaces ? undefined : spaces;
  const resources = new Resourceful([
    ...facts.shapes.map((shape) => shape.resources),
    ...(known ?? []).map(({ free }) => free),
  ]);
  const machines = facts.shapes.map((shape, index) => ({
    shape,
    index,
    free: resources.had(shape.resources),
  }));
  const groups = groupsOf(
    needs.filter(({ count }) => count > 0),
    machines,
    matching.shape,
    resources,
  );
  const idle = new Set(
    groups.filter(({ shapes, unsure }) => shapes.length + unsure.length === 0).flatMap(({ needs }) => needs),
  );
  const within = withinLimits(
    groups.flatMap((group) => group.needs),
    facts.free,
    (need) => !idle.has(need) || poolTakes(need, facts) !== false,
  );
  // A shape that HTCondor did not judge for some job: that job may go where such a worker is on its way.
  const judged = machines
    .filter(({ index }) => !groups.some(({ unsure }) => unsure.includes(index)))
    .map(({ shape }) => shape);
  const { whole, others } = sortSpaces(known ?? [], judged, resources);
  const stock = new Map(machines.map((machine) => [machine, whole.get(machine.shape.key) ?? 0]));
  const fitted = fillSpaces(groups, within, others, { matching, resources });
  const fates = groups.flatMap((group) => group.needs.map((need) => fateOf(need, group, fitted, facts)));
  const jobs = new Map(groups.map((group) => [group, groupJobs(group, within, fitted)]));
  const demand = new Map(
    known === undefined
      ? []
      : [...jobs].flatMap(([group, { left }]) =>
          left > 0 && group.shapes.length > 0 ? [[group, left]] : [],
        ),
  );
  const growth = grow(demand, machines, stock, { workers: facts.workers, terms });
  const unservable = fates.flatMap(({ need, fate }) => (fate === 'unservable' ? [need] : []));
  const counts = countsOf(jobs, fates, growth, known === undefined);
  return {
    shapes: machines.map((machine) => ({
      shape: machine.shape,
      workers: countOf(growth.paced, [machine]),
      wanted: countOf(growth.wanted, [machine]),
      jobs: jobsIn(growth.paced.piles.filter((pile) => pile.machine === machine)),
    })),
    jobs: counts,
    unservable,
    reasons: reasonsOf(
      machines,
      { jobs, unservable: counts.unservable, unknown: facts.unknown },
      growth,
      spaces,
    ),
  };
}

/** Ties are broken by names alone, so that the order in which daemons answered never matters. */
function inOrder(facts: DemandFacts): DemandFacts {
  const { needs, shapes, spaces } = facts;
  return {
    ...facts,
    needs: needs.toSorted((a, b) => compared(a.key, b.key)),
    shapes: shapes.toSorted((a, b) => compared(a.key, b.key)),
    spaces: 'code' in spaces ? spaces : spaces.toSorted((a, b) => compared(a.name, b.name)),
  };
}

function compared(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

type Fate = 'shapes' | 'pool' | 'unservable' | 'unknown';

/** Which kind of machine takes the jobs of a need at all. */
function fateOf(
  need: Need,
  group: Group,
  fitted: ReadonlyMap<Need, Fitting>,
  facts: DemandFacts,
): { readonly need: Need; readonly fate: Fate; readonly left: number } {
  const { fitting = 0, left = 0 } = fitted.get(need) ?? {};
  const fate = (): Fate => {
    if (group.shapes.length > 0) return 'shapes';
    const taken = fitting > 0 || poolTakes(need, facts);
    if (taken === true) return 'pool';
    return group.unsure.length > 0 || taken === undefined ? 'unknown' : 'unservable';
  };
  return { need, fate: fate(), left };
}

/** Whether any machine that is there takes the job, now or later. */
function poolTakes(need: Need, { spaces, matching }: DemandFacts): boolean | undefined {
  const pool = matching.pool(need);
  if (pool === true) return true;
  if ('code' in spaces) return undefined;
  const answers = new Set(firstOfKinds(spaces).map((space) => matching.space(need, space)));
  if (answers.has(true)) return true;
  return pool === undefined || answers.has(undefined) ? undefined : false;
}

const kinds = new WeakMap<readonly Space[], readonly Space[]>();

function firstOfKinds(spaces: readonly Space[]): readonly Space[] {
  const known = kinds.get(spaces) ?? [...new Map(spaces.map((space) => [space.kind, space])).values()];
  kinds.set(spaces, known);
  return known;
}

function groupJobs(
  { needs }: Group,
  within: ReadonlyMap<Need, number>,
  fitted: ReadonlyMap<Need, Fitting>,
): GroupJobs {
  const sum = (of: (need: Need) => number) => needs.reduce((total, need) => total + of(need), 0);
  const idle = sum(({ count }) => count);
  return {
    idle,
    limited: idle - sum((need) => within.get(need) ?? 0),
    fitting: sum((need) => fitted.get(need)?.fitting ?? 0),
    unsure: sum((need) => fitted.get(need)?.unsure ?? 0),
    left: sum((need) => fitted.get(need)?.left ?? 0),
  };
}

function countsOf(
  jobs: ReadonlyMap<Group, GroupJobs>,
  fates: readonly { readonly fate: Fate; readonly left: number }[],
  growth: Growth,
  isBlind: boolean,
): JobCounts {
  const sum = (kind: keyof GroupJobs) => [...jobs.values()].reduce((total, one) => total + one[kind], 0);
  const left = (fate: Fate) => fates.reduce((total, one) => total + (one.fate === fate ? one.left : 0), 0);
  const served = jobsIn(growth.paced.piles);
  const stocked = jobsIn(growth.paced.stocked);
  return {
    idle: sum('idle'),
    limited: sum('limited'),
    fitting: sum('fitting') + stocked,
    served,
    capped: isBlind ? 0 : left('shapes') - served - stocked,
    waiting: left('pool'),
    unservable: left('unservable'),
    unknown: sum('unsure') + left('unknown') + (isBlind ? left('shapes') : 0),
  };
}

function reasonsOf(
  machines: readonly Machine[],
  facts: ChainFacts,
  growth: Growth,
  spaces: DemandFacts['spaces'],
): Decision['reasons'] {
  const queues = Map.groupBy(machines, ({ shape }) => shape.queue);
  return new Map(
    [...queues].map(([queue, own]) => [
      queue,
      'code' in spaces
        ? [...headOf(facts), { n: 0, unit: 'workers', reason: spaces }]
        : chainOf(own, facts, growth),
    ]),
  );
}
