import type { SourceGauge } from '../../plugins/contracts/index.ts';
import type { Decision } from './demand.ts';
import type { Joining } from './joining.ts';
import type { PoolLook } from './look/result.ts';
import type { Need } from './model.ts';

export interface GaugeFacts {
  readonly look: PoolLook;
  readonly decision: Decision;
  readonly joining: Joining | undefined;
  /** By key of a need that nothing takes: the condition that fails, in HTCondor's words. */
  readonly causes: ReadonlyMap<string, string>;
  /** Seconds since the last look that was whole; undefined: there was none. */
  readonly age: number | undefined;
}

/** Owners and causes that are told apart; the jobs of all others count as `other`. */
const mostTold = 50;

/** The last decision in numbers. */
export function gaugesOf({ look, decision, joining, causes, age }: GaugeFacts): SourceGauge[] {
  const { jobs, shapes, unservable } = decision;
  const gauge = (name: string, help: string, values: SourceGauge['values']): SourceGauge => ({
    name: `thresher_pool_${name}`,
    help,
    values,
  });
  const one = (value: number) => [{ labels: {}, value }];
  const workers = (state: string, count: number) => ({ labels: { state }, value: count });
  const counts: readonly (readonly [string, number])[] = Object.entries(jobs);
  const parts = counts.filter(([state]) => state !== 'idle');
  return [
    gauge('idle_jobs', 'Waiting jobs over which a negotiation cycle has passed.', one(jobs.idle)),
    gauge('fresh_jobs', 'Waiting jobs over which no negotiation cycle has passed yet.', one(look.fresh)),
    gauge(
      'jobs',
      'The waiting jobs of the last decision, by what becomes of them.',
      parts.map(([state, value]) => ({ labels: { state }, value })),
    ),
    gauge(
      'demand_workers',
      'New workers that the waiting jobs can use, before any cap.',
      shapes.map(({ shape: { key: shape, queue }, wanted }) => ({ labels: { queue, shape }, value: wanted })),
    ),
    gauge(
      'asked_workers',
      'New workers that were asked for.',
      shapes.map(({ shape: { key: shape, queue }, workers: value }) => ({ labels: { queue, shape }, value })),
    ),
    gauge(
      'unservable_jobs',
      'Waiting jobs that neither a shape nor a slot of the pool takes, by owner.',
      bounded('owner', byOwner(unservable)),
    ),
    gauge(
      'unservable_jobs_by_cause',
      'The same, by the condition that fails, in the words of HTCondor.',
      bounded('cause', byCause(unservable, causes)),
    ),
    ...(age === undefined
      ? []
      : [gauge('look_age_seconds', 'Time since the pool was last read as a whole.', one(age))]),
    gauge(
      'unknown_parts',
      'Parts of the pool that gave no answer in the last look.',
      [...Map.groupBy(look.unknown, ({ part }) => part)].map(([part, list]) => ({
        labels: { part },
        value: list.length,
      })),
    ),
    ...(joining === undefined
      ? []
      : [
          gauge('workers', 'Living workers by how they stand with the pool.', [
            workers('on_its_way', joining.onItsWay.length),
            workers('joined', joining.joined.length),
            workers('vanished', joining.vanished.length),
            workers('not_joined', joining.late.length),
          ]),
        ]),
  ];
}

function byOwner(needs: readonly Need[]): Map<string, number> {
  const jobs = new Map<string, number>();
  for (const { owners } of needs)
    for (const [owner, count] of owners) jobs.set(owner, (jobs.get(owner) ?? 0) + count);
  return jobs;
}

function byCause(needs: readonly Need[], causes: ReadonlyMap<string, string>): Map<string, number> {
  const jobs = new Map<string, number>();
  for (const { key, count } of needs) {
    const cause = causes.get(key) ?? 'unknown';
    jobs.set(cause, (jobs.get(cause) ?? 0) + count);
  }
  return jobs;
}

/** Those with most jobs keep their names. */
function bounded(label: string, jobs: ReadonlyMap<string, number>): SourceGauge['values'] {
  const sorted = [...jobs].toSorted(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
  const rest = sorted.slice(mostTold).reduce((sum, [, count]) => sum + count, 0);
  return [
    ...sorted.slice(0, mostTold).map(([name, value]) => ({ labels: { [label]: name }, value })),
    ...(rest > 0 ? [{ labels: { [label]: 'other' }, value: rest }] : []),
  ];
}
