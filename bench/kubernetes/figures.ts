import { atLeast, atMost, type Figure, info } from '../shared/figure.ts';
import { median, round } from '../shared/statistics.ts';
import type { Measured, Part } from './measured.ts';

const targets = {
  submissionRatio: 0.9,
  submissionCpuMs: 1,
  lateMs: 1000,
  memoryBase: 40e6,
  memoryPerWorker: 2048,
  restartMs: 10_000,
  sweepRatio: 0.8,
} as const;

export const figuresOf: { readonly [One in Part]: (measured: Measured[One]) => Figure[] } = {
  submission,
  sweep,
  live: (measured) => [...live(measured), ...restart(measured)],
};

function submission({ thresher, limit, limitJson, perRound }: Measured['submission']): Figure[] {
  const ratio = round(ratioOf(thresher, limit), 2);
  const cpu = round(median(thresher.map((one) => one.cpuMsPerJob)), 2);
  const rate = (of: typeof limit) => Math.round(median(of.map((one) => one.perSecond)));
  const cpuOf = (of: typeof limit) => round(median(of.map((one) => one.cpuMsPerJob)), 2);
  return [
    atLeast(
      'submission-ratio',
      `${perRound} workers submitted, 32 at once: rate against client-go's, which sends protobuf`,
      ratio,
      { unit: 'ratio', target: targets.submissionRatio },
    ),
    atLeast(
      'submission-ratio-json',
      'the same against client-go with JSON, as thresher sends it',
      round(ratioOf(thresher, limitJson), 2),
      { unit: 'ratio', target: targets.submissionRatio },
    ),
    atMost('submission-cpu', 'processor time per worker, database and watch included', cpu, {
      unit: 'ms',
      target: targets.submissionCpuMs,
    }),
    info(
      'submission-rate',
      'workers submitted, from the first intent to the last row',
      rate(thresher),
      '1/s',
    ),
    info('limit-rate', 'Jobs created by client-go, protobuf', rate(limit), '1/s'),
    info('limit-cpu', 'its processor time per Job', cpuOf(limit), 'ms'),
    info('limit-json-rate', 'Jobs created by client-go with JSON', rate(limitJson), '1/s'),
    info('limit-json-cpu', 'its processor time per Job', cpuOf(limitJson), 'ms'),
  ];
}

function sweep({ thresher, limit, workers }: Measured['sweep']): Figure[] {
  const rate = (of: typeof limit) => Math.round(median(of.map((one) => one.perSecond)));
  const cpuOf = (of: typeof limit) => round(median(of.map((one) => one.cpuMsPerWorker)), 2);
  return [
    atLeast(
      'sweep-ratio',
      `${workers} ended workers gone, Jobs and Pods: rate against client-go's`,
      round(ratioOf(thresher, limit), 2),
      { unit: 'ratio', target: targets.sweepRatio },
    ),
    info('sweep-rate', 'workers swept, from the command to the last row', rate(thresher), '1/s'),
    info('sweep-cpu', 'processor time per worker', cpuOf(thresher), 'ms'),
    info(
      'limit-sweep-rate',
      'Jobs and their Pods deleted by client-go, until both are gone',
      rate(limit),
      '1/s',
    ),
    info('limit-sweep-cpu', 'its processor time per Job', cpuOf(limit), 'ms'),
  ];
}

function live({ workers, memory, quiet, changes, fillSeconds }: Measured['live']): Figure[] {
  const { memoryBase, memoryPerWorker } = targets;
  const allowed = memoryBase + memoryPerWorker * workers;
  const above = (what: keyof typeof memory) => megabytes(memory[what].rss - memory.idle.rss);
  const requests = Object.values(quiet.requests).reduce((sum, count) => sum + count, 0);
  return [
    atMost(
      'late-p99',
      `a Pod's end to its row, 99 of 100, at ${Math.round(changes.perSecond)}/s`,
      changes.sinceSent[99] ?? NaN,
      {
        unit: 'ms',
        target: targets.lateMs,
      },
    ),
    info('late-p50', 'the same, half of them', changes.sinceSent[50] ?? NaN, 'ms'),
    info('late-most', 'the same, the latest', changes.sinceSent[100] ?? NaN, 'ms'),
    info(
      'late-answered',
      'counted from the answer to the patch, 99 of 100',
      changes.sinceAnswered[99] ?? NaN,
      'ms',
    ),
    info('change-cpu', 'processor time per change', round(changes.cpuMsPerChange, 2), 'ms'),
    atMost(
      'quiet-requests',
      `requests per worker in ${quiet.seconds} s in which nothing changed`,
      round(requests / workers, 4),
      {
        unit: 'requests',
        target: 0.001,
      },
    ),
    info('quiet-cpu', 'processor time meanwhile', round(quiet.cpuSeconds / quiet.seconds, 4), 'cores'),
    atMost('memory-live', `resident above the idle daemon, ${workers} workers`, above('live'), {
      unit: 'MB',
      target: megabytes(allowed),
    }),
    atMost('memory-after', 'the same after the changes', above('afterChanges'), {
      unit: 'MB',
      target: megabytes(allowed),
    }),
    info('memory-idle', 'resident, the idle daemon itself', megabytes(memory.idle.rss), 'MB'),
    info('memory-peak', 'the most it ever was', megabytes(memory.afterChanges.peak), 'MB'),
    info('fill', 'from none to all of them running, the cluster included', round(fillSeconds, 0), 's'),
  ];
}

function restart({ restarts, workers, memory }: Measured['live']): Figure[] {
  return [
    atMost(
      'restart',
      `restart with ${workers} workers: complete and correct, new ones submitted`,
      Math.round(median(restarts.map((one) => one.readyMs))),
      { unit: 'ms', target: targets.restartMs },
    ),
    info(
      'restart-memory',
      'resident above the idle daemon, some time after it',
      megabytes(median(restarts.map((one) => one.memory.rss)) - memory.idle.rss),
      'MB',
    ),
  ];
}

interface HasRate {
  readonly perSecond: number;
}

/** Median over the rounds: what ran beside one was likely to run beside the other. */
function ratioOf(ours: readonly HasRate[], theirs: readonly HasRate[]): number {
  return median(ours.map(({ perSecond }, index) => perSecond / (theirs[index]?.perSecond ?? NaN)));
}

function megabytes(bytes: number): number {
  return round(bytes / 1e6, 1);
}
