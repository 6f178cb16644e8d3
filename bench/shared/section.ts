import { type Figure, tablesOf } from './figure.ts';
import type { Circumstances } from './parts.ts';

export interface HasComplaints {
  /** Warnings and errors that the daemon logged: a run with any is not what it seems. */
  readonly complaints: readonly string[];
}

export interface Section {
  readonly title: string;
  readonly part: Circumstances & { readonly measured: HasComplaints };
  /** The software that it was measured with, and its versions. */
  readonly software: string;
  readonly figures: readonly Figure[];
  readonly rounds: readonly string[];
}

/** One part for people, with its own circumstances. */
export function sectionOf({ title, part, software, figures, rounds }: Section): string[] {
  const { date, machine, loads, measured } = part;
  const { cpu, cores, memoryGiB, system, node, sqlite, fileSystem } = machine;
  const [before, after] = loads.map((load) => load.toFixed(1));
  return [
    `## ${title}`,
    '',
    `${date}, ${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, SQLite ${sqlite}, databases on ${fileSystem},`,
    `${software}. Load of the machine before: ${before ?? ''}; after, with the benchmark's own: ${after ?? ''}.`,
    '',
    ...tablesOf(figures),
    '',
    ...rounds,
    '',
    ...measured.complaints.map((one) => `The daemon complained: ${one}`),
    ...(measured.complaints.length === 0 ? [] : ['']),
  ];
}
