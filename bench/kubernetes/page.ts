import type { Figure } from '../shared/figure.ts';
import { type HasComplaints, sectionOf } from '../shared/section.ts';
import { figuresOf } from './figures.ts';
import type { Circumstances, Kept, Measured } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ submission, sweep, live }: Kept): string {
  return [
    '# Benchmark: kubernetes',
    '',
    'The control plane, the daemon and the client-go loop are on one machine: what a client uses is not there for the API',
    'server. How each figure is taken: bench/README.md.',
    '',
    ...(submission === undefined
      ? []
      : section('Submission', submission, figuresOf.submission(submission.measured), [
          ...submissionRounds(submission.measured),
        ])),
    ...(sweep === undefined
      ? []
      : section('Sweep', sweep, figuresOf.sweep(sweep.measured), sweepRounds(sweep.measured))),
    ...(live === undefined
      ? []
      : section('Live workers', live, figuresOf.live(live.measured), liveRounds(live.measured))),
  ].join('\n');
}

function section(
  title: string,
  part: Circumstances & { readonly measured: HasComplaints },
  figures: readonly Figure[],
  rounds: readonly string[],
): string[] {
  const software = `Kubernetes ${part.kubernetes}, client-go ${part.clientGo}`;
  return sectionOf({ title, part, software, figures, rounds });
}

function submissionRounds({ thresher, limit, limitJson }: Measured['submission']): string[] {
  const cpu = (all: typeof limit) => times(all.map((one) => one.cpuMsPerJob));
  return [
    `Rounds, submitted a second, thresher: ${rates(thresher)}; client-go: ${rates(limit)}; with JSON: ${rates(limitJson)}.`,
    `Processor time per Job, ms, thresher: ${cpu(thresher)}; client-go: ${cpu(limit)}; with JSON: ${cpu(limitJson)}.`,
  ];
}

function sweepRounds({ thresher, limit }: Measured['sweep']): string[] {
  return [`Rounds, swept a second, thresher: ${rates(thresher)}; client-go: ${rates(limit)}.`];
}

function liveRounds({ restarts, memory, quiet }: Measured['live']): string[] {
  const each = (what: 'readyMs' | 'seenMs' | 'submittedMs') => restarts.map((one) => one[what]).join(', ');
  const requests = Object.entries(quiet.requests).map(([what, count]) => `${count} ${what}`);
  return [
    `Rounds, restart to ready, ms: ${each('readyMs')}; of these until what ended meanwhile is known: ${each('seenMs')};`,
    `until a new worker is submitted: ${each('submittedMs')}.`,
    `Resident: idle ${megabytes(memory.idle.rss)}, live ${megabytes(memory.live.rss)}, after the changes ${megabytes(memory.afterChanges.rss)}, at the most ${megabytes(memory.afterChanges.peak)};`,
    `after a restart ${restarts.map((one) => megabytes(one.memory.rss)).join(', ')}, at the most ${restarts.map((one) => megabytes(one.memory.peak)).join(', ')}.`,
    `Requests for Jobs and Pods in the quiet ${quiet.seconds} s, of all clients of the cluster: ${requests.join(', ') || 'none'}; rows of history: ${quiet.rowsChanged}.`,
  ];
}

function rates(all: readonly { readonly perSecond: number }[]): string {
  return all.map(({ perSecond }) => Math.round(perSecond)).join(', ');
}

function times(all: readonly number[]): string {
  return all.map((one) => one.toFixed(2)).join(', ');
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
