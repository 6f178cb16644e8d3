import type { Figure } from '../shared/figure.ts';
import type { Circumstances } from '../shared/parts.ts';
import { type HasComplaints, sectionOf } from '../shared/section.ts';
import { figuresOf } from './figures.ts';
import type { Kept, Measured, MeasuredWith } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ submission, poll, ends }: Kept): string {
  return [
    '# Benchmark: htcondor',
    '',
    'The pool, the daemon and the commands beside it are on one machine. How each figure is taken: bench/README.md.',
    '',
    ...(submission === undefined
      ? []
      : section(
          'Submission',
          submission,
          figuresOf.submission(submission.measured),
          submissionRounds(submission.measured),
        )),
    ...(poll === undefined
      ? []
      : section('Poll', poll, figuresOf.poll(poll.measured), pollRounds(poll.measured))),
    ...(ends === undefined
      ? []
      : section('Ends', ends, figuresOf.ends(ends.measured), endsNotes(ends.measured))),
  ].join('\n');
}

function section(
  title: string,
  part: Circumstances & MeasuredWith & { readonly measured: HasComplaints },
  figures: readonly Figure[],
  rounds: readonly string[],
): string[] {
  return sectionOf({ title, part, software: `HTCondor ${part.htcondor}`, figures, rounds });
}

function submissionRounds({ thresher, bare, singles, single, programs }: Measured['submission']): string[] {
  const ms = (all: readonly number[]) => all.map((one) => Math.round(one * 1000)).join(', ');
  const started = programs.map((one) =>
    Object.entries(one)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  );
  return [
    `Rounds, ms, thresher: ${ms(thresher)}; one condor_submit: ${ms(bare)}; ${single} of them: ${ms(singles)}.`,
    `Programs that each round started, until its last job was gone: ${started.join('; ')}.`,
  ];
}

function pollRounds({ looks, bareToFile, bareToNothing, cpu }: Measured['poll']): string[] {
  const ms = (all: readonly number[]) => all.map(Math.round).join(', ');
  return [
    `Rounds, ms, thresher: ${ms(looks)}, of which its own processor time ${ms(cpu)}; condor_q into a file: ${ms(bareToFile)};`,
    `into /dev/null: ${ms(bareToNothing)}.`,
  ];
}

function endsNotes({ scheduler, slots }: Measured['ends']): string[] {
  return [
    `The first are ${scheduler.jobs} jobs of the scheduler universe, which the schedd runs itself: starters and shadows of jobs in slots`,
    `need more processor time than two cores have at that rate. Beside them ${slots.jobs} in slots, asked to end as fast.`,
  ];
}
