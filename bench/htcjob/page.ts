import { sectionOf } from '../shared/section.ts';
import { figuresOf } from './figures.ts';
import type { Kept, Measured } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ submission, ends, finished }: Kept): string {
  const software = ({ htcondor, kubernetes }: { readonly htcondor: string; readonly kubernetes: string }) =>
    `HTCondor ${htcondor}, Kubernetes ${kubernetes}`;
  return [
    '# Benchmark: htcjob',
    '',
    'The API server, the pool and the daemon are on one machine. How each figure is taken: bench/README.md.',
    '',
    ...(submission === undefined
      ? []
      : sectionOf({
          title: 'Submission',
          part: submission,
          software: software(submission),
          figures: figuresOf.submission(submission.measured),
          rounds: submissionRounds(submission.measured),
        })),
    ...(ends === undefined
      ? []
      : sectionOf({
          title: 'Ends',
          part: ends,
          software: software(ends),
          figures: figuresOf.ends(ends.measured),
          rounds: [],
        })),
    ...(finished === undefined
      ? []
      : sectionOf({
          title: 'Finished HTCJobs, and a restart',
          part: finished,
          software: software(finished),
          figures: figuresOf.finished(finished.measured),
          rounds: finishedRounds(finished.measured),
        })),
  ].join('\n');
}

const list = (values: readonly number[], digits: number) =>
  values.map((value) => value.toFixed(digits)).join(', ');

function submissionRounds({ htcjob, plain, cpu }: Measured['submission']): string[] {
  return [
    `Seconds of the rounds, HTCJobs: ${list(htcjob, 2)}; workers without: ${list(plain, 2)}. Processor time for each HTCJob, ms: ${list(cpu, 2)}.`,
  ];
}

function finishedRounds({ restart, restartEmpty }: Measured['finished']): string[] {
  return [`Seconds of the starts: ${list(restart, 2)}; without HTCJobs: ${list(restartEmpty, 2)}.`];
}
