import { sectionOf } from '../shared/section.ts';
import { figuresOf } from './figures.ts';
import type { Kept, Measured } from './measured.ts';

const software = 'panda-server 1.0.4 of the test environment, which shares these cores';

/** The results for people, each part with its own circumstances. */
export function pageOf({ reports, orders, answers }: Kept): string {
  return [
    '# Benchmark: panda',
    '',
    'A daemon with a link to a real PanDA server. How each figure is taken: bench/README.md.',
    '',
    ...(reports === undefined
      ? []
      : sectionOf({
          title: 'Reports',
          part: reports,
          software,
          figures: figuresOf.reports(reports.measured),
          rounds: reportRounds(reports.measured),
        })),
    ...(orders === undefined
      ? []
      : sectionOf({
          title: 'The way of an order',
          part: orders,
          software,
          figures: figuresOf.orders(orders.measured),
          rounds: [`${orders.measured.whole.length} orders of 5 workers, each for a queue of its own.`],
        })),
    ...(answers === undefined
      ? []
      : sectionOf({
          title: 'Answers that are as large as they may be',
          part: answers,
          software,
          figures: figuresOf.answers(answers.measured),
          rounds: [`${answers.measured.forms.length} forms of answers and commands.`],
        })),
  ].join('\n');
}

function reportRounds({ linked, bare }: Measured['reports']): string[] {
  const seconds = (times: readonly number[]) => times.map((ms) => (ms / 1000).toFixed(1)).join(', ');
  return [
    `Seconds of the daemon: ${seconds(linked.map(({ time }) => time))}; of the bare client: ${seconds(bare)}.`,
  ];
}
