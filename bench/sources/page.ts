import { sectionOf } from '../shared/section.ts';
import { figuresOf } from './figures.ts';
import type { Kept, Measured } from './measured.ts';

/** The results for people, each part with its own circumstances. */
export function pageOf({ core, ways }: Kept): string {
  return [
    '# Benchmark: sources',
    '',
    'A source of the benchmark asks for workers by name and hears of each. How each figure is taken: bench/README.md.',
    '',
    ...(core === undefined
      ? []
      : sectionOf({
          title: 'Requests and news',
          part: core,
          software: 'the backend that answers at once',
          figures: figuresOf.core(core.measured),
          rounds: coreRounds(core.measured),
        })),
    ...(ways === undefined
      ? []
      : sectionOf({
          title: 'The way of a request',
          part: ways,
          software: 'HTCondor of the test environment',
          figures: figuresOf.ways(ways.measured),
          rounds: [],
        })),
  ].join('\n');
}

function coreRounds({ named, counted }: Measured['core']): string[] {
  const all = (rates: readonly number[]) => rates.map(Math.round).join(', ');
  return [
    `Requests a second: ${all(named.flatMap(({ intents }) => intents))}.`,
    `Changes a second with news: ${all(named.flatMap(({ writes }) => writes))};`,
    `without: ${all(counted.flatMap(({ writes }) => writes))}.`,
  ];
}
