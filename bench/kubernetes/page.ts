import { type Figure, shown } from '../core/figure.ts';
import type { Machine } from '../core/machine.ts';
import type { Measured } from './measured.ts';

export interface Results {
  readonly date: string;
  readonly machine: Machine;
  /** Version of the API server. */
  readonly kubernetes: string;
  readonly clientGo: string;
  readonly figures: readonly Figure[];
  readonly measured: Measured;
}

/** The results for people. */
export function pageOf({ date, machine, kubernetes, clientGo, figures, measured }: Results): string {
  const { cpu, cores, memoryGiB, system, node, sqlite, fileSystem } = machine;
  const { submission, sweep, live, loads } = measured;
  const judged = figures.filter((figure) => figure.target !== undefined);
  const others = figures.filter((figure) => figure.target === undefined);
  const complaints = [...submission.complaints, ...sweep.complaints, ...live.complaints];
  const rates = (all: readonly { readonly perSecond: number }[]) =>
    all.map(({ perSecond }) => Math.round(perSecond)).join(', ');
  const times = (all: readonly number[]) => all.map((one) => one.toFixed(2)).join(', ');
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  const requests = Object.entries(live.quiet.requests).map(([what, count]) => `${count} ${what}`);
  return [
    '# Benchmark: kubernetes',
    '',
    `${date}, ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, SQLite ${sqlite}, databases on ${fileSystem}.`,
    `Kubernetes ${kubernetes}, client-go ${clientGo}, all on this one machine: what the daemon and the loop use is not there`,
    `for the API server. Load of the machine over a minute before each part, and at the end: ${times(loads)}`,
    '(all but the first with the benchmark itself). How each figure is taken: bench/README.md.',
    '',
    '| figure | measured | target | met |',
    '| --- | ---: | ---: | --- |',
    ...judged.map(
      (figure) =>
        `| ${figure.what} | ${shown(figure)} | ${figure.target ?? ''} | ${figure.met ? 'yes' : 'no'} |`,
    ),
    '',
    '| beside them | measured |',
    '| --- | ---: |',
    ...others.map((figure) => `| ${figure.what} | ${shown(figure)} |`),
    '',
    '## Rounds',
    '',
    `Submitted a second, thresher: ${rates(submission.thresher)}; client-go: ${rates(submission.limit)};`,
    `client-go with protobuf: ${rates(submission.limitProtobuf)}.`,
    `Processor time per Job, ms, thresher: ${times(submission.thresher.map((one) => one.cpuMsPerJob))};`,
    `client-go: ${times(submission.limit.map((one) => one.cpuMsPerJob))}; with protobuf: ${times(submission.limitProtobuf.map((one) => one.cpuMsPerJob))}.`,
    `Swept a second, thresher: ${rates(sweep.thresher)}; client-go: ${rates(sweep.limit)}.`,
    `Restart to ready, ms: ${live.restarts.map((one) => one.readyMs).join(', ')}; of these until what ended meanwhile is`,
    `known: ${live.restarts.map((one) => one.seenMs).join(', ')}; until a new worker is submitted: ${live.restarts.map((one) => one.submittedMs).join(', ')}.`,
    `Resident: idle ${megabytes(live.memory.idle.rss)}, live ${megabytes(live.memory.live.rss)}, after the changes ${megabytes(live.memory.afterChanges.rss)},`,
    `at the most ${megabytes(live.memory.afterChanges.peak)}; after a restart ${live.restarts.map((one) => megabytes(one.memory.rss)).join(', ')}, at the most ${live.restarts.map((one) => megabytes(one.memory.peak)).join(', ')}.`,
    `Requests for Jobs and Pods in the quiet ${live.quiet.seconds} s, of all clients of the cluster: ${requests.join(', ') || 'none'}; rows of history: ${live.quiet.rowsChanged}.`,
    '',
    ...(complaints.length === 0
      ? []
      : ['## What the daemons complained of', '', ...complaints.map((one) => `- ${one}`), '']),
  ].join('\n');
}
