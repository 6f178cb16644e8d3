import type { DemandFacts, QueueTerms } from '../../src/sources/htcondor-idle/demand.ts';
import { noTerms } from '../../src/sources/htcondor-idle/demand.ts';
import type { Matching, Need, Resources, Shape, Space } from '../../src/sources/htcondor-idle/model.ts';
import { requestOf } from '../../src/sources/htcondor-idle/request-sizes.ts';

type Amounts = Readonly<Record<string, number>>;

export const resourcesOf = (amounts: Amounts): Resources => new Map(Object.entries(amounts));

/** Jobs that ask for so much; little memory and disk where they do not say. */
export function needOf(key: string, count: number, asked: Amounts = {}, more: Partial<Need> = {}): Need {
  const sizes = requestOf(resourcesOf({ cpus: 1, memory: 128, disk: 1024, ...asked }));
  return {
    key: `schedd#${key}`,
    schedd: 'schedd',
    count,
    owners: new Map([['alice', count]]),
    concurrency: new Map(),
    ...sizes,
    ...more,
  };
}

/** A machine with so many cores, 2 GiB of memory and 10 GiB of disk each; it costs its cores. The queue is the part of the key before `/`. */
export function shapeOf(
  key: string,
  cpus: number,
  more: Partial<Shape> & { readonly has?: Amounts } = {},
): Shape {
  const { has, ...rest } = more;
  return {
    key,
    queue: key.split('/')[0] ?? key,
    resources: resourcesOf({ cpus, memory: cpus * 2048, disk: cpus * 10_485_760, ...has }),
    oneJob: false,
    cost: cpus,
    most: Infinity,
    ...rest,
  };
}

/** A free slot of the pool. */
export function spaceOf(
  name: string,
  cpus: number,
  more: Partial<Space> & { readonly has?: Amounts } = {},
): Space {
  const { has, ...rest } = more;
  return {
    name,
    kind: name,
    free: resourcesOf({ cpus, memory: cpus * 2048, disk: cpus * 10_485_760, ...has }),
    oneJob: false,
    shape: undefined,
    ...rest,
  };
}

const holds = (machine: Resources, { exact }: Need) =>
  [...exact].every(([name, amount]) => amount <= (machine.get(name) ?? 0));

/** Machines that match what they are large enough for. */
export const bySize: Matching = {
  shape: (need, { resources }) => holds(resources, need),
  space: (need, { free }) => holds(free, need),
  pool: () => false,
};

export function factsOf(facts: Partial<DemandFacts>): DemandFacts {
  return {
    needs: [],
    shapes: [],
    spaces: [],
    matching: bySize,
    unknown: [],
    workers: new Map(),
    free: new Map(),
    ...facts,
  };
}

export const termsOf = (queues: Readonly<Record<string, Partial<QueueTerms>>>): Map<string, QueueTerms> =>
  new Map(Object.entries(queues).map(([queue, terms]) => [queue, { ...noTerms, ...terms }]));
