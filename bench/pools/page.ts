import { atMost, type Figure, info } from '../shared/figure.ts';
import { sectionOf } from '../shared/section.ts';
import { median, percentiles, round } from '../shared/statistics.ts';
import type { Kept, Measured } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ decision, packing, asked, worker }: Kept): string {
  const software = ({ htcondor }: { readonly htcondor: string }) => `HTCondor ${htcondor}`;
  return [
    '# Benchmark: pools',
    '',
    'The pool and the source are on one machine. How each figure is taken: bench/README.md.',
    '',
    ...(decision === undefined
      ? []
      : sectionOf({
          title: 'Decision',
          part: decision,
          software: software(decision),
          figures: decisionFigures(decision.measured),
          rounds: [],
        })),
    ...(packing === undefined
      ? []
      : sectionOf({
          title: 'Packing',
          part: packing,
          software: software(packing),
          figures: packingFigures(packing.measured),
          rounds: [],
        })),
    ...(asked === undefined
      ? []
      : sectionOf({
          title: 'A schedd with many jobs',
          part: asked,
          software: software(asked),
          figures: askedFigures(asked.measured),
          rounds: asked.measured.looks.map(
            ({ programs }, index) =>
              `- look ${index + 1}: ${Object.entries(programs)
                .map(([name, count]) => `${name} × ${count}`)
                .join(', ')}`,
          ),
        })),
    ...(worker === undefined
      ? []
      : sectionOf({
          title: 'From a waiting job to the Pod of its worker',
          part: worker,
          software: software(worker),
          figures: workerFigures(worker.measured),
          rounds: [],
        })),
  ].join('\n');
}

/** s that a worker may take beside the interval. */
const grace = 2;

function workerFigures({ jobs, shapes, interval, waits, sinceSubmission }: Measured['worker']): Figure[] {
  const at = (values: readonly number[], percent: number) => round(percentiles(values)[percent] ?? NaN, 2);
  const what = `${jobs} jobs one by one, ${shapes} shapes, a look each ${interval} s`;
  return [
    atMost(
      'worker-p99',
      `from the cycle that passed over a job to its Pod, 99 of 100; ${what}`,
      at(waits, 99),
      {
        unit: 's',
        target: interval + grace,
      },
    ),
    info('worker-p50', 'the same, half of them', at(waits, 50), 's'),
    info('submitted-p99', 'from its submission, 99 of 100', at(sinceSubmission, 99), 's'),
    info('submitted-p50', 'the same, half of them', at(sinceSubmission, 50), 's'),
  ];
}

function decisionFigures({ jobs, kinds, templates, rounds, workers }: Measured['decision']): Figure[] {
  const of = (pick: (one: (typeof rounds)[number]) => number) => round(median(rounds.map(pick)), 2);
  const what = `${jobs.toLocaleString('en')} jobs of ${kinds} kinds, ${templates} shapes`;
  return [
    atMost(
      'decision',
      `a decision over ${what}, beside its bare condor_q calls`,
      of(({ bare, first }) => first / bare),
      {
        unit: 'ratio',
        target: 1.5,
      },
    ),
    info(
      'bare',
      'the bare calls',
      of(({ bare }) => bare),
      'ms',
    ),
    info(
      'first',
      'the decision',
      of(({ first }) => first),
      'ms',
    ),
    info(
      'next',
      'the next decision over the same kinds',
      of(({ next }) => next),
      'ms',
    ),
    info('workers', 'workers that it asks for', workers, 'workers'),
  ];
}

function askedFigures({ jobs, kinds, looks }: Measured['asked']): Figure[] {
  const later = looks.slice(1);
  const asks = (pattern: RegExp) =>
    Math.max(
      0,
      ...later.map(({ programs }) =>
        Object.entries(programs).reduce((sum, [name, count]) => sum + (pattern.test(name) ? count : 0), 0),
      ),
    );
  const what = `${jobs.toLocaleString('en')} jobs of ${kinds} kinds`;
  return [
    atMost('asked', `questions to a schedd with ${what}, each look after the first`, asks(/^schedd:/), {
      unit: 'programs',
      target: 1,
    }),
    atMost('whole', 'those of them for whole ads', asks(/^schedd: .*-long/), { unit: 'programs', target: 0 }),
    info('first', 'the first look', round(looks[0]?.time ?? NaN, 0), 'ms'),
    info('later', 'each later look', round(median(later.map(({ time }) => time)), 0), 'ms'),
    info(
      'memory',
      'resident memory of the process',
      round(Math.max(0, ...looks.map(({ rss }) => rss)) / 1e6, 0),
      'MB',
    ),
  ];
}

function packingFigures({ jobs, sizes, shapes, spaces, times, workers }: Measured['packing']): Figure[] {
  const [first = NaN, ...later] = times;
  const what = `${jobs.toLocaleString('en')} jobs of ${sizes} sizes, ${shapes} shapes, ${spaces} free slots`;
  return [
    atMost(
      'packing',
      `processor time of a decision over ${what}, HTCondor's answers known`,
      round(median(later), 1),
      {
        unit: 'ms',
        target: 60,
      },
    ),
    info('first', 'the first decision of a process, which compiles', round(first, 1), 'ms'),
    info('workers', 'workers that it asks for', workers, 'workers'),
  ];
}
