import { sectionOf } from '../shared/section.ts';
import type { EndsOfWay } from './ends.ts';
import { figuresOf } from './figures.ts';
import type { Kept, Measured } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ create, status, end }: Kept): string {
  const software = ({ htcondor }: { readonly htcondor: string }) => `HTCondor ${htcondor}`;
  return [
    '# Benchmark: interlink',
    '',
    'The pool, the daemon and its client are on one machine. How each figure is taken: bench/README.md. On paper, the plugin that it',
    'replaces starts one `condor_q` for each Pod every 5 s: 100 programs a second for 500 Pods.',
    '',
    ...(create === undefined
      ? []
      : sectionOf({
          title: 'Creation',
          part: create,
          software: software(create),
          figures: figuresOf.create(create.measured),
          rounds: create.measured.failures.slice(0, 5),
        })),
    ...(status === undefined
      ? []
      : sectionOf({
          title: 'Status',
          part: status,
          software: software(status),
          figures: figuresOf.status(status.measured),
          rounds: [],
        })),
    ...(end === undefined
      ? []
      : sectionOf({
          title: 'Ends',
          part: end,
          software: software(end),
          figures: figuresOf.end(end.measured),
          rounds: programsOf(end.measured),
        })),
  ].join('\n');
}

function programsOf({ pods, local, reports, asked }: Measured['end']): string[] {
  const list = ({ programs }: EndsOfWay) =>
    Object.entries(programs)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  return [
    `Programs that the daemon started for ${pods} Pods, from the first /create until nothing was left of them after /delete:`,
    '',
    `- the schedd of this machine: ${list(local)}`,
    `- a schedd that spools, and jobs that send their states: ${list(reports)}`,
    `- a schedd that spools alone: ${list(asked)}`,
  ];
}
