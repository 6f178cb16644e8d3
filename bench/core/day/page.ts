import type { machine } from '../../shared/machine.ts';
import { atLeast, atMost, type Figure, info, tablesOf } from '../../shared/figure.ts';
import { median, round } from '../../shared/statistics.ts';
import { configuration } from '../postgresql.ts';
import type { Judgement } from './judge.ts';
import type { Life } from './member.ts';
import {
  connections,
  hour,
  members,
  minute,
  queues,
  type Replay,
  runs,
  waits,
  workersPerDay,
} from './replay.ts';
import { keptHours } from './site.ts';

/** Counts at a time, real ms since the replay began. */
export interface Sample {
  readonly at: number;
  readonly due: number;
  readonly started: number;
  readonly alive: number;
  readonly simulatorCpuSeconds: number;
}

export interface Results {
  readonly benchmark: 'core-day';
  readonly date: string;
  readonly machine: ReturnType<typeof machine>;
  readonly postgresql: string;
  readonly loads: readonly [number, number];
  readonly replay: Replay;
  readonly figures: readonly Figure[];
  readonly measured: {
    readonly kills: readonly { readonly at: number; readonly member: string }[];
    /** Daemons that ended without SIGKILL, and were started again. */
    readonly ends: readonly { readonly at: number; readonly member: string; readonly lastWords: string }[];
    readonly samples: readonly Sample[];
    readonly lives: readonly Life[];
    /** From a worker being wanted to its start on the backend, real ms. */
    readonly lags: {
      readonly median: number;
      readonly p90: number;
      readonly p99: number;
      readonly most: number;
    };
    readonly fenced: number;
    readonly repeated: number;
    readonly adopted: number;
    readonly retried: number;
    readonly judgement: Judgement;
    readonly complaints: Readonly<{ [message: string]: number }>;
  };
}

/** A process has its working size after so long, real ms: as long as the longest worker lives, and a minute. */
const warmUp = ({ speed }: Replay) => (waits.most + runs.most) / speed + 60_000;
/** Memory at the begin and at the end of a life is the median of so long, ms. */
const span = 60_000;

interface Growth {
  readonly life: Life;
  /** Minutes that it lived, in all. */
  readonly lived: number;
  /** MB, medians. */
  readonly warm: number;
  readonly end: number;
  readonly most: number;
  /** MB in each minute after the warm-up, by least squares. */
  readonly slope: number;
}

/** The lives that went on long enough after their warm-up. */
function growths({ replay, measured: { lives } }: Pick<Results, 'replay' | 'measured'>): Growth[] {
  return lives.flatMap((life) => {
    const begun = life.from + warmUp(replay);
    const late = life.rss.filter(([at]) => at >= begun);
    const last = late.at(-1)?.[0] ?? -Infinity;
    if (last - begun < 2 * span) return [];
    const middle = (some: readonly (readonly [number, number])[]) =>
      round(median(some.map(([, bytes]) => bytes / 1e6)), 1);
    return [
      {
        life,
        lived: round((last - life.from) / minute, 1),
        warm: middle(late.filter(([at]) => at < begun + span)),
        end: middle(late.filter(([at]) => at > last - span)),
        most: round(Math.max(...life.rss.map(([, bytes]) => bytes)) / 1e6, 1),
        slope: round(slopeOf(late.map(([at, bytes]) => [at / minute, bytes / 1e6])), 2),
      },
    ];
  });
}

function slopeOf(points: readonly (readonly [number, number])[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const [x, y] = [mean(points.map(([at]) => at)), mean(points.map(([, size]) => size))];
  const across = points.reduce((sum, [at, size]) => sum + (at - x) * (size - y), 0);
  return across / points.reduce((sum, [at]) => sum + (at - x) ** 2, 0);
}

const perSecond = (speed: number) => (workersPerDay / 86_400) * speed;

export function figuresOf(results: Pick<Results, 'replay' | 'measured'>): Figure[] {
  const { replay, measured } = results;
  const { judgement, samples, lags, lives } = measured;
  const { doubled, withoutRow, unnoticed, alive, wrongEnd, neverStarted, started } = judgement;
  const none = { unit: 'workers', target: 0 };
  const last = samples.at(-1);
  const seconds = (last?.at ?? NaN) / 1000;
  const grown = growths(results).map(({ warm, end }) => (100 * (end - warm)) / warm);
  const behind = samples.map((one) => one.due - one.started);
  return [
    atMost('doubled', 'doubled: started twice on the backend', doubled, none),
    atMost(
      'forgotten',
      'forgotten: on the backend without a row, or over without an end in the row',
      withoutRow + unnoticed + alive,
      none,
    ),
    atMost('wrong-end', 'rows with another end than their worker', wrongEnd, none),
    atMost('never-started', 'ended rows whose worker was never started', neverStarted, none),
    atLeast('rate', 'new workers a second', round((last?.started ?? NaN) / seconds, 1), {
      unit: '1/s',
      target: Math.floor(perSecond(replay.speed)),
    }),
    ...(grown.length === 0
      ? []
      : [
          atMost(
            'growth',
            'resident memory of a daemon at its end against that after its warm-up, the worst of all lives',
            round(Math.max(...grown), 1),
            { unit: '%', target: 10 },
          ),
        ]),
    info('started', 'started in all', started, 'workers'),
    info('alive', 'alive at a time, at most', Math.max(...samples.map((one) => one.alive)), 'workers'),
    info('kills', 'SIGKILLs of daemons', measured.kills.length, 'times'),
    info('ends', 'daemons that ended by themselves', measured.ends.length, 'times'),
    info(
      'lag-median',
      'from a worker being wanted to its start, the median',
      round(lags.median / 1000, 2),
      's',
    ),
    info('lag-p99', 'the same, 99th percentile', round(lags.p99 / 1000, 1), 's'),
    info('lag-most', 'the same, the worst', round(lags.most / 1000, 1), 's'),
    info('behind', 'wanted and not started, at most', Math.max(...behind), 'workers'),
    info('retried', 'with an unknown outcome and a second attempt', measured.retried, 'workers'),
    info('repeated', 'submitted again while they were there', measured.repeated, 'workers'),
    info('fenced', 'attempts that came too late and started nothing', measured.fenced, 'workers'),
    info('adopted', 'adopted without a row', measured.adopted, 'workers'),
    info(
      'cpu-daemons',
      'processor time of all daemons, of one core',
      round((100 * lives.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)) / seconds, 0),
      '%',
    ),
    info(
      'cpu-simulator',
      'that of the simulator',
      round((100 * (last?.simulatorCpuSeconds ?? NaN)) / seconds, 0),
      '%',
    ),
  ];
}

export function pageOf(results: Results): string {
  const { date, machine: on, postgresql, loads, figures, replay, measured } = results;
  const { speed, hours } = replay;
  const settings = Object.entries(configuration).map(([name, value]) => `\`${name}=${value}\``);
  const { examples } = measured.judgement;
  const inHours = (at: number) => ((at * speed) / hour).toFixed(2);
  return [
    '# Benchmark: a day of a million workers',
    '',
    `${date}, ${on.cpu}, ${on.cores} cores, ${on.memoryGiB} GiB, ${on.system}, Node ${on.node}, databases on ${on.fileSystem}.`,
    `PostgreSQL ${postgresql} on the same machine over a Unix socket, ${settings.join(', ')}, all else by default.`,
    `Load of the machine before: ${loads[0].toFixed(1)}; after, with the benchmark's own: ${loads[1].toFixed(1)}.`,
    '',
    `${hours === 24 ? 'The whole day' : `The first ${hours} of 24 simulated hours`} at ${speed} times the speed: ${workersPerDay.toLocaleString('en')} workers a day are ${perSecond(speed).toFixed(1)} a second.`,
    `${members.length} daemons share ${queues} queues on ${connections} connections. A worker waits ${waits.least / minute} to ${waits.most / minute} and runs ${runs.least / minute} to ${runs.most / minute} simulated minutes; its traces are removed ${keptHours * 60} simulated minutes later.`,
    'Two daemons get SIGKILL in each simulated hour, at random moments, and start again 1 s later. Leases and time-outs are real: 15 s of a lease are',
    `${(15 * speed) / 60} simulated minutes. All times below are real, unless they are called simulated.`,
    '',
    ...tablesOf(figures),
    '',
    '## SIGKILLs',
    '',
    measured.kills.map(({ at, member }) => `${member} at hour ${inHours(at)}`).join(', ') || 'none',
    '',
    ...measured.ends.flatMap(({ at, member, lastWords }) => [
      `${member} ended at hour ${inHours(at)}: ${lastWords}`,
      '',
    ]),
    '## Memory of the daemons that lived long enough',
    '',
    '| daemon | started at hour | lived, min | after the warm-up, MB | at the end, MB | most, MB | slope, MB/min |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...growths(results).map(
      ({ life, lived, warm, end, most, slope }) =>
        `| ${life.member} | ${inHours(life.from)} | ${lived} | ${warm} | ${end} | ${most} | ${slope} |`,
    ),
    '',
    '## What the daemons complained of',
    '',
    ...Object.entries(measured.complaints).map(([message, count]) => `- ${count} x ${message}`),
    '',
    ...Object.entries(examples).map(
      ([kind, ids]) => `Ids of the first workers that are ${kind}: ${ids.join(', ')}.`,
    ),
    ...(Object.keys(examples).length > 0 ? [''] : []),
  ].join('\n');
}
