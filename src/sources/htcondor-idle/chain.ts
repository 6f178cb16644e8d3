import type { Reason } from '../../worker/reason.ts';
import type { DecideCode } from './decide-codes.ts';
import type { Step } from './demand.ts';
import { countOf, type Growth, type Stage } from './grow.ts';
import type { Group, Machine } from './packing/groups.ts';
import type { NewPile } from './packing/spare.ts';
import { count } from './words.ts';

/** What became of the jobs of one group. */
export interface GroupJobs {
  readonly idle: number;
  readonly limited: number;
  readonly fitting: number;
  readonly unsure: number;
  /** Those that need new workers. */
  readonly left: number;
}

/** What the chain of a queue is made of. */
export interface ChainFacts {
  readonly jobs: ReadonlyMap<Group, GroupJobs>;
  readonly unservable: number;
  readonly unknown: readonly Reason[];
}

/** The chain of a queue, link by link. */
class Chain {
  readonly steps: Step[] = [];
  n = 0;

  add(to: number, unit: Step['unit'], reason: Reason): void {
    this.n = to;
    this.steps.push({ n: to, unit, reason });
  }

  /** One link for a number that changed. */
  change(by: number, unit: Step['unit'], code: DecideCode, message: (number: number) => string): void {
    if (by !== 0) this.add(this.n + by, unit, { code, message: message(Math.abs(by)) });
  }
}

/** All idle jobs that count, and what is unknown: the head of each chain. */
export function headOf({ jobs, unknown }: Pick<ChainFacts, 'jobs' | 'unknown'>): Step[] {
  const chain = new Chain();
  const idle = [...jobs.values()].reduce((sum, one) => sum + one.idle, 0);
  chain.add(idle, 'jobs', {
    code: 'htcondor-idle-jobs',
    message: `${count(idle, 'idle job')} found no slot in a negotiation cycle`,
  });
  for (const reason of unknown) chain.add(idle, 'jobs', reason);
  return chain.steps;
}

/** The chain of a queue with these shapes, from the idle jobs to the workers that it is asked for. */
export function chainOf(own: readonly Machine[], facts: ChainFacts, growth: Growth): Step[] {
  const chain = new Chain();
  for (const { n, unit, reason } of headOf(facts)) chain.add(n, unit, reason);
  const indexes = new Set(own.map(({ index }) => index));
  const matching = [...facts.jobs].filter(([{ shapes }]) => shapes.some((index) => indexes.has(index)));
  const sum = (kind: keyof GroupJobs) => matching.reduce((total, [, jobs]) => total + jobs[kind], 0);

  chain.change(sum('idle') - chain.n, 'jobs', 'htcondor-idle-no-match', (number) => {
    const lost = facts.unservable === 0 ? '' : `; ${facts.unservable} of them match nothing at all`;
    return `${count(number, 'job')} and the machines of the queue do not match${lost}`;
  });
  chain.change(
    -sum('limited'),
    'jobs',
    'htcondor-idle-limited',
    (number) => `${count(number, 'job')} wait for a concurrency limit`,
  );
  const groups = new Set(matching.map(([group]) => group));
  chain.change(
    -sum('fitting') - jobsIn(growth.wanted.stocked, groups),
    'jobs',
    'htcondor-idle-fitting',
    (number) => `free slots and workers on their way take ${count(number, 'job')}`,
  );
  chain.change(
    -sum('unsure'),
    'jobs',
    'htcondor-idle-unknown',
    (number) => `HTCondor did not say whether free slots take ${count(number, 'job')}`,
  );
  const mine = jobsIn(
    growth.wanted.piles.filter(({ machine }) => own.includes(machine)),
    groups,
  );
  chain.change(
    mine - chain.n,
    'jobs',
    'htcondor-idle-elsewhere',
    (number) => `cheaper workers of other queues take ${count(number, 'job')}`,
  );
  if (chain.n > 0)
    chain.add(countOf(growth.wanted, own), 'workers', {
      code: 'htcondor-idle-packed',
      message: `${count(chain.n, 'job')} need ${sayWorkers(growth.wanted, own)}`,
    });
  addCaps(chain, own, growth);
  return chain.steps;
}

function addCaps(
  chain: Chain,
  own: readonly Machine[],
  { wanted, firm, pressed, paced, caps }: Growth,
): void {
  const queue = own[0]?.shape.queue ?? '';
  for (const machine of own) {
    const fewer = countOf(wanted, [machine]) - countOf(firm, [machine]);
    const cap = caps.shape.get(machine);
    const isOwn = cap !== undefined && cap.atMost <= countOf(firm, [machine]);
    if (fewer > 0) cut(chain, fewer, isOwn ? cap.reason : caps.firm.get(queue)?.reason);
  }
  takeOver(chain, own, wanted, firm);
  const less = countOf(firm, own) - countOf(pressed, own);
  if (less > 0) cut(chain, less, (caps.pressed.get(queue) ?? caps.firm.get(queue))?.reason);
  takeOver(chain, own, firm, pressed, less);
  const later = countOf(pressed, own) - countOf(paced, own);
  if (later > 0) cut(chain, later, caps.paced.get(queue)?.reason);
}

function cut(chain: Chain, by: number, reason: Reason | undefined): void {
  const last = chain.steps.at(-1);
  // Two shapes that one cap cuts make one link.
  if (reason !== undefined && last?.reason === reason) chain.steps.pop();
  // No cap of its own: jobs that no longer need a worker here, since a shape that took over holds them as well.
  const why = reason ?? {
    code: 'htcondor-idle-packed',
    message: `the machines that take over hold the jobs of ${by} more`,
  };
  chain.add(chain.n - by, 'workers', why);
}

/** Workers of shapes that got more than they had before the caps. */
function takeOver(chain: Chain, own: readonly Machine[], before: Stage, after: Stage, less = 0): void {
  const more = own.reduce(
    (total, machine) => total + Math.max(0, countOf(after, [machine]) - countOf(before, [machine])),
    0,
  );
  const by = less > 0 ? 0 : more;
  chain.change(
    by,
    'workers',
    'htcondor-idle-takes-over',
    (number) => `${count(number, 'worker')} more, for jobs of shapes that are at a limit`,
  );
}

/** How many jobs, of these groups, are in machines. */
export function jobsIn(piles: readonly NewPile[], groups?: ReadonlySet<Group>): number {
  let total = 0;
  for (const { count: workers, jobs } of piles)
    for (const [group, each] of jobs) if (groups?.has(group) !== false) total += workers * each;
  return total;
}

function sayWorkers(stage: Stage, own: readonly Machine[]): string {
  const parts = own.flatMap((machine) => {
    const number = countOf(stage, [machine]);
    return number === 0 ? [] : [`${count(number, 'worker')} of ${machine.shape.key}`];
  });
  return parts.join(', ');
}
