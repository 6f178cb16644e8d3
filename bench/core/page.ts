import { type Figure, tablesOf } from '../shared/figure.ts';
import type { Measured } from './measured.ts';
import type { Machine } from '../shared/machine.ts';

export interface Results {
  readonly date: string;
  readonly machine: Machine;
  readonly figures: readonly Figure[];
  readonly measured: Measured;
}

/** The results for people. */
export function pageOf({ date, machine, figures, measured: { live, restarts } }: Results): string {
  const { cpu, cores, memoryGiB, system, node, sqlite, fileSystem } = machine;
  const { idle, unchanged } = { ...live.idle, idle: live.idle.none };
  const complaints = [...live.complaints, ...restarts.flatMap((one) => one.complaints)];
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  return [
    '# Benchmark: core',
    '',
    `${date}, ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, SQLite ${sqlite}, databases on ${fileSystem}.`,
    '100,000 live workers of 10 queues on 2 connections of a backend that answers at once. How each figure is taken:',
    'bench/README.md.',
    '',
    ...tablesOf(figures),
    '',
    '## Rounds',
    '',
    `Changes a second, daemon: ${live.writes.daemon.map(Math.round).join(', ')}.`,
    `Changes a second, bare loop: ${live.writes.bare.map(Math.round).join(', ')}.`,
    `Restart to ready, ms: ${restarts.map(({ ready }) => ready).join(', ')}.`,
    `Resident: idle ${megabytes(live.memory.idle.rss)}, live ${megabytes(live.memory.live.rss)}, after a listing ${megabytes(live.memory.afterListing.rss)},`,
    `at the most ${megabytes(live.memory.peak)}; after a restart ${restarts.map(({ rss }) => megabytes(rss)).join(', ')}.`,
    `Longest time without an answer during a listing: ${Math.round(live.listingBlockedMs)} ms.`,
    '',
    '## SQL while 20 passes over 100,000 unchanged workers were made',
    '',
    `${unchanged.statements} statements in ${unchanged.seconds.toFixed(1)} s; beside it, an empty daemon without passes: ${idle.statements} in ${idle.seconds.toFixed(1)} s.`,
    '',
    ...unchanged.byText.map(([text, count]) => `- ${count} x \`${text}\``),
    '',
    ...(complaints.length === 0
      ? []
      : ['## What the daemons complained of', '', ...complaints.map((one) => `- ${one}`), '']),
  ].join('\n');
}
