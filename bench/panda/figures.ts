import { atMost, type Figure, info } from '../shared/figure.ts';
import { median, percentiles, round } from '../shared/statistics.ts';
import type { Answer } from './answers.ts';
import type { Measured } from './measured.ts';
import type { ReportLoad } from './report-load.ts';

const targets = { ratio: 1.2, cpuPerWorker: 0.1, polls: 12, whole: 6, afterPoll: 1, answer: 100 } as const;

export const figuresOf: { readonly [One in keyof Measured]: (measured: Measured[One]) => Figure[] } = {
  reports,
  orders,
  answers,
};

function reports({ workers, linked, alone, bare }: Measured['reports']): Figure[] {
  const all = `${workers.toLocaleString('en')} workers whose status changes once each`;
  const time = median(linked.map((load) => load.time));
  const cpu = median(linked.map(beyondIdle));
  const perMinute = (name: string) =>
    median(linked.map(({ idle }) => ((idle.calls[name] ?? 0) * 60) / idle.seconds));
  const share = median(linked.map(({ idle }) => idle.cpuShare));
  return [
    atMost(
      'report-ratio',
      `${all}: time until the server has taken all, against a bare client that sends the same batches back to back`,
      round(time / median(bare), 2),
      { unit: 'ratio', target: targets.ratio },
    ),
    atMost(
      'report-cpu',
      'processor time for a reported worker, beside that of its change without a link and of the idle daemon',
      round((cpu - beyondIdle(alone)) / workers, 3),
      { unit: 'ms', target: targets.cpuPerWorker },
    ),
    atMost(
      'idle-polls',
      'idle link: questions for commands in a minute',
      round(perMinute('acquire_commands'), 1),
      {
        unit: '1/min',
        target: targets.polls,
      },
    ),
    info('report-time', 'time until the server has taken all', round(time / 1000, 1), 's'),
    info('bare-time', 'the same of the bare client', round(median(bare) / 1000, 1), 's'),
    info('alone-cpu', 'processor time of a change without a link', round(alone.cpu / workers, 3), 'ms'),
    info(
      'idle-repeats',
      'idle link: reports of unchanged workers in a minute',
      perMinute('update_workers'),
      '1/min',
    ),
    info(
      'idle-cpu',
      'idle link with as many living workers: processor time',
      round(share * 100, 2),
      '% of a core',
    ),
    info(
      'idle-cpu-alone',
      'the same daemon without a link',
      round(alone.idle.cpuShare * 100, 2),
      '% of a core',
    ),
  ];
}

/** Processor time that is not of loops which run on at rest, ms. */
function beyondIdle({ cpu, time, idle }: ReportLoad): number {
  return cpu - idle.cpuShare * time;
}

function orders({ whole, afterPoll }: Measured['orders']): Figure[] {
  const seconds = (values: readonly number[], percent: number) =>
    round((percentiles(values)[percent] ?? NaN) / 1000, 2);
  return [
    atMost('order-whole', 'from a command at the server to its submitted workers, p99', seconds(whole, 99), {
      unit: 's',
      target: targets.whole,
    }),
    atMost(
      'order-after-poll',
      'the same from the poll that brought the command, p99',
      seconds(afterPoll, 99),
      {
        unit: 's',
        target: targets.afterPoll,
      },
    ),
    info(
      'order-whole-median',
      'from a command at the server to its submitted workers, median',
      seconds(whole, 50),
      's',
    ),
    info('order-after-poll-median', 'the same from the poll, median', seconds(afterPoll, 50), 's'),
  ];
}

function answers({ forms: all }: Measured['answers']): Figure[] {
  const [first, ...others] = all.toSorted((one, other) => other.longest - one.longest);
  if (first === undefined) return [];
  const ratio = ({ longest, parsing }: Answer) => longest / parsing;
  return [
    atMost(
      'answer-longest',
      `longest piece of work in which nothing else can run (${first.form})`,
      round(first.longest, 1),
      {
        unit: 'ms',
        target: targets.answer,
      },
    ),
    info('answer-ratio', 'the same against `JSON.parse` of that text', round(ratio(first), 1), 'ratio'),
    info(
      'answer-median',
      'longest piece, the median of all forms',
      round(median(all.map(({ longest }) => longest)), 1),
      'ms',
    ),
    ...others
      .slice(0, 4)
      .map((one, at) => info(`answer-${at + 2}`, `longest piece (${one.form})`, round(one.longest, 1), 'ms')),
  ];
}
