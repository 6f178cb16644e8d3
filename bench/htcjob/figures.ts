import { atMost, type Figure, info } from '../shared/figure.ts';
import { median, round } from '../shared/statistics.ts';
import type { Measured } from './measured.ts';

const targets = {
  ratio: 3,
  bare: 2,
  requests: 2,
  cpu: 3,
  late: 1000,
  idleRequests: 0,
  idleCpu: 0.5,
  restart: 10,
} as const;

export const figuresOf: { readonly [One in keyof Measured]: (measured: Measured[One]) => Figure[] } = {
  submission,
  ends,
  finished,
};

function submission(measured: Measured['submission']): Figure[] {
  const { jobs, htcjob, plain, status, cpu, plainCpu, requests, bare } = measured;
  const all = jobs.toLocaleString('en');
  const ratio = median(htcjob.map((seconds, nth) => seconds / (plain[nth] ?? NaN)));
  return [
    atMost(
      'submission-ratio',
      `${all} HTCJobs that are there at once: time until all jobs are submitted, against as many workers of a queue without HTCJobs`,
      round(ratio, 2),
      { unit: 'ratio', target: targets.ratio },
    ),
    atMost('requests', 'changes of the resource for each, until then', round(median(requests), 2), {
      unit: 'requests',
      target: targets.requests,
    }),
    atMost(
      'bare-ratio',
      'time until each status shows the job, against a client that changes each status twice and does nothing else',
      round(median(status.map((seconds, nth) => seconds / (bare[nth] ?? NaN))), 2),
      { unit: 'ratio', target: targets.bare },
    ),
    atMost(
      'cpu',
      "the daemon's processor time for each, until its status shows the job",
      round(median(cpu), 2),
      {
        unit: 'ms',
        target: targets.cpu,
      },
    ),
    info('submission', 'time until all jobs are submitted', round(median(htcjob), 2), 's'),
    info('plain', 'the same of workers without HTCJobs', round(median(plain), 2), 's'),
    info('status', 'time until each status shows the job', round(median(status), 2), 's'),
    info(
      'plain-cpu',
      "the daemon's processor time for a worker without HTCJob",
      round(median(plainCpu), 2),
      'ms',
    ),
    info('bare', 'time of that client', round(median(bare), 2), 's'),
  ];
}

function ends({ jobs, endToStatus, endToRow, rowToStatus }: Measured['ends']): Figure[] {
  const at = (values: readonly number[], percent: number) => Math.round(values[percent] ?? NaN);
  return [
    atMost(
      'late-p99',
      `a job's last moment to its status, 99 of 100; ${jobs} jobs in slots`,
      at(endToStatus, 99),
      {
        unit: 'ms',
        target: targets.late,
      },
    ),
    info('late-p50', 'the same, half of them', at(endToStatus, 50), 'ms'),
    info('late-row-p99', 'of it until the row of its worker, 99 of 100', at(endToRow, 99), 'ms'),
    info('late-row-p50', 'the same, half of them', at(endToRow, 50), 'ms'),
    info('late-status-p99', 'from the row to the status, 99 of 100', at(rowToStatus, 99), 'ms'),
    info('late-status-p50', 'the same, half of them', at(rowToStatus, 50), 'ms'),
  ];
}

function finished(measured: Measured['finished']): Figure[] {
  const { resources, restart, restartEmpty, idle, idleEmpty, memory, memoryEmpty } = measured;
  const all = `${resources.toLocaleString('en')} finished HTCJobs`;
  return [
    atMost('idle-requests', `${all}: requests for HTCJobs in a minute`, idle.requests - idleEmpty.requests, {
      unit: 'requests',
      target: targets.idleRequests,
    }),
    atMost(
      'idle-cpu',
      'processor time for them in a second, beside a daemon without any',
      round(idle.cpu - idleEmpty.cpu, 2),
      { unit: 'ms', target: targets.idleCpu },
    ),
    atMost(
      'restart',
      `start of the program beside ${all}, until a HTCJob that waited has its job`,
      round(median(restart), 2),
      { unit: 's', target: targets.restart },
    ),
    info('restart-empty', 'the same without any', round(median(restartEmpty), 2), 's'),
    info('idle-cpu-empty', 'processor time of an idle daemon in a second', round(idleEmpty.cpu, 2), 'ms'),
    info('memory', 'memory for each of them', round((memory - memoryEmpty) / resources / 1024, 1), 'KiB'),
  ];
}
