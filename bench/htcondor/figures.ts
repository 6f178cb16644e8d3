import { atLeast, atMost, type Figure, info } from '../shared/figure.ts';
import { median, round } from '../shared/statistics.ts';
import type { Late } from './ends.ts';
import type { Measured } from './measured.ts';

const targets = {
  submissionRatio: 1.5,
  singlesRatio: 20,
  programs: 0.05,
  pollRatio: 1.2,
  lateMs: 1000,
} as const;

export const figuresOf: { readonly [One in keyof Measured]: (measured: Measured[One]) => Figure[] } = {
  submission,
  poll,
  ends,
};

function submission(measured: Measured['submission']): Figure[] {
  const { thresher, bare, singles, single, perRound, programs } = measured;
  const allSingly = singles.map((seconds) => (seconds * perRound) / single);
  const started = programs.map((one) => Object.values(one).reduce((sum, count) => sum + count, 0));
  const ms = (all: readonly number[]) => Math.round(median(all) * 1000);
  return [
    atMost(
      'submission-ratio',
      `${perRound} workers submitted: time against one bare condor_submit`,
      round(ratioOf(thresher, bare), 2),
      { unit: 'ratio', target: targets.submissionRatio },
    ),
    atLeast(
      'singles-ratio',
      `times faster than ${perRound} bare ones, reckoned from ${single}`,
      round(ratioOf(allSingly, thresher), 1),
      { unit: 'ratio', target: targets.singlesRatio },
    ),
    atMost(
      'programs',
      'programs started per worker: submitted, looked at, removed',
      round(median(started) / perRound, 4),
      { unit: 'programs', target: targets.programs },
    ),
    info('submission', 'from the first intent to the last row', ms(thresher), 'ms'),
    info('bare', 'one bare condor_submit', ms(bare), 'ms'),
    info('singles', `${single} bare condor_submit of one job`, ms(singles), 'ms'),
  ];
}

function poll({ workers, looks, bareToFile, bareToNothing, cpu, programs }: Measured['poll']): Figure[] {
  const ms = (all: readonly number[]) => Math.round(median(all));
  const started = Object.values(programs).reduce((sum, count) => sum + count, 0);
  return [
    atMost(
      'poll-ratio',
      `one look at ${workers} jobs: time against a bare condor_q into a file`,
      round(ratioOf(looks, bareToFile), 2),
      { unit: 'ratio', target: targets.pollRatio },
    ),
    atMost('poll-programs', 'programs started per look', round(started / looks.length, 2), {
      unit: 'programs',
      target: 1,
    }),
    info('poll', 'one look', ms(looks), 'ms'),
    info('poll-cpu', "the daemon's own processor time for it", ms(cpu), 'ms'),
    info('bare-file', 'the bare condor_q into a file', ms(bareToFile), 'ms'),
    info('bare-nothing', 'the bare condor_q into /dev/null', ms(bareToNothing), 'ms'),
    info('poll-ratio-nothing', 'one look against that', round(ratioOf(looks, bareToNothing), 2), 'ratio'),
  ];
}

function ends({ scheduler, slots }: Measured['ends']): Figure[] {
  const of = (late: Late) => `${late.jobs} at ${Math.round(late.perSecond)}/s`;
  const at = (values: readonly number[], percent: number) => Math.round(values[percent] ?? NaN);
  const all = (late: Late, id: string): Figure[] => [
    info(`${id}-p50`, 'the same, half of them', at(late.endToRow, 50), 'ms'),
    info(`${id}-event-p99`, "of it until HTCondor's event, 99 of 100", at(late.endToEvent, 99), 'ms'),
    info(`${id}-row-p50`, 'from the event to the row, half of them', at(late.eventToRow, 50), 'ms'),
    info(`${id}-row-p99`, 'from the event to the row, 99 of 100', at(late.eventToRow, 99), 'ms'),
    info(`${id}-cpu`, "the daemon's processor time per end", round(late.cpuMsPerEnd, 2), 'ms'),
  ];
  return [
    atMost(
      'late-p99',
      `a job's last moment to its row, 99 of 100; ${of(scheduler)}`,
      at(scheduler.endToRow, 99),
      { unit: 'ms', target: targets.lateMs },
    ),
    ...all(scheduler, 'late'),
    info('slots-p99', `jobs in slots, 99 of 100; ${of(slots)}`, at(slots.endToRow, 99), 'ms'),
    ...all(slots, 'slots'),
  ];
}

/** Median over the rounds: what ran beside one was likely to run beside the other. */
function ratioOf(ours: readonly number[], theirs: readonly number[]): number {
  return median(ours.map((value, index) => value / (theirs[index] ?? NaN)));
}
