import { atLeast, atMost, type Figure, info } from '../shared/figure.ts';
import { round } from '../shared/statistics.ts';
import type { EndsOfWay } from './ends.ts';
import type { Measured } from './measured.ts';

const targets = { answer: 2000, lost: 0, gap: 200, status: 20, programs: 0, cpu: 1, late: 2000 } as const;

export const figuresOf: { readonly [One in keyof Measured]: (measured: Measured[One]) => Figure[] } = {
  create,
  status,
  end,
};

function create(measured: Measured['create']): Figure[] {
  const { pods, answers, failures, jobs, submits, meanGap, leastGap, programs, cpu, bare } = measured;
  const others = Object.values(programs).reduce((sum, count) => sum + count, 0) - submits;
  const ms = { unit: 'ms', target: targets.answer };
  return [
    atMost(
      'create-p99',
      `${pods} Pods, 20 a second: from /create to its answer, 99 of 100`,
      at(answers, 99),
      ms,
    ),
    atMost('lost', 'Pods without a job in the queue of the schedd, or with two', Math.abs(pods - jobs), {
      unit: 'Pods',
      target: targets.lost,
    }),
    atMost('failures', 'answers other than 200', failures.length, { unit: 'answers', target: targets.lost }),
    atLeast('gap', 'from one `condor_submit` to the next, on average', Math.round(meanGap), {
      unit: 'ms',
      target: targets.gap,
    }),
    info('create-p50', 'from /create to its answer, half of them', at(answers, 50), 'ms'),
    info('create-max', 'the same, the longest', at(answers, 100), 'ms'),
    info('bare-p50', 'one `condor_submit -spool` of one such job by hand, half of them', at(bare, 50), 'ms'),
    info(
      'create-ratio',
      'an answer against that, half of them: it waits for its batch, which has several jobs',
      round(at(answers, 50) / at(bare, 50), 1),
      'ratio',
    ),
    info('submits', '`condor_submit`s for all Pods', submits, 'programs'),
    info('least-gap', 'the shortest time between two of them', leastGap, 'ms'),
    info('others', 'other programs meanwhile', others, 'programs'),
    info('create-cpu', "the daemon's processor time for each Pod", round(cpu, 1), 'ms'),
  ];
}

function status({ pods, answers, cpu, programs }: Measured['status']): Figure[] {
  return [
    atMost(
      'status-p99',
      `${pods} Pods, one in each /status, one after the other: from the question to its answer, 99 of 100`,
      at(answers, 99, 1),
      { unit: 'ms', target: targets.status },
    ),
    atMost('status-programs', 'programs started for them', programs, {
      unit: 'programs',
      target: targets.programs,
    }),
    atMost('status-cpu', "the daemon's processor time for each", round(cpu, 2), {
      unit: 'ms',
      target: targets.cpu,
    }),
    info('status-p50', 'the same, half of them', at(answers, 50, 1), 'ms'),
  ];
}

function end({ pods, local, reports, asked }: Measured['end']): Figure[] {
  const ms = { unit: 'ms', target: targets.late };
  const late = (id: string, what: string, { late: values }: EndsOfWay) =>
    atMost(
      `${id}-p99`,
      `${what}: from a container's last moment to the status that shows it, 99 of ${pods}`,
      at(values, 99),
      ms,
    );
  const half = (id: string, what: string, { late: values }: EndsOfWay) =>
    info(`${id}-p50`, `${what}: half of them`, at(values, 50), 'ms');
  return [
    late('local', 'the schedd of this machine', local),
    late('reports', 'a schedd that spools, and jobs that send their states', reports),
    late('asked', 'a schedd that spools alone', asked),
    atMost('wrong', 'ends with another exit code than 0', local.wrong + reports.wrong + asked.wrong, {
      unit: 'ends',
      target: targets.lost,
    }),
    half('local', 'the schedd of this machine', local),
    half('reports', 'a schedd that spools, and jobs that send their states', reports),
    half('asked', 'a schedd that spools alone', asked),
  ];
}

function at(values: readonly number[], percent: number, digits = 0): number {
  return round(values[percent] ?? NaN, digits);
}
