import { atLeast, atMost, type Figure, info } from '../shared/figure.ts';
import { median, percentiles, round } from '../shared/statistics.ts';
import type { CoreLoad } from './core-load.ts';
import type { Measured } from './measured.ts';

const targets = { intents: 5000, news: 5000, worse: 1.1 } as const;

export const figuresOf: { readonly [One in keyof Measured]: (measured: Measured[One]) => Figure[] } = {
  core,
  ways,
};

const p99 = (values: readonly number[]) => round(percentiles(values)[99] ?? NaN, 1);
const medianOf = (loads: readonly CoreLoad[], of: (load: CoreLoad) => number) => median(loads.map(of));

function core({ named, counted }: Measured['core']): Figure[] {
  const intents = Math.round(median(named.flatMap((load) => load.intents)));
  const writes = (loads: readonly CoreLoad[]) => medianOf(loads, (load) => median(load.writes));
  const told = named.every(({ steady }) => steady.inOrder && steady.told === steady.written);
  const perSecond = named.map(({ steady }) => steady.written / 10);
  const cpu = (loads: readonly CoreLoad[]) => medianOf(loads, (load) => load.cpuPerChange);
  const share = (loads: readonly CoreLoad[]) => medianOf(loads, (load) => load.steady.cpuShare);
  const idle = (loads: readonly CoreLoad[]) =>
    round(
      medianOf(loads, (load) => load.idle),
      2,
    );
  const news: Figure = {
    id: 'news',
    what: 'changes a second for 10 s, each told to its source, all of them and in order',
    measured: told ? Math.round(median(perSecond)) : 0,
    unit: '1/s',
    target: `>= ${targets.news}`,
    met: told && median(perSecond) >= targets.news,
  };
  return [
    atLeast('intents', '10,000 requests of one source, from asking to their commit as intents', intents, {
      unit: '1/s',
      target: targets.intents,
    }),
    news,
    atMost(
      'steady-ratio',
      'processor time of that stream against the same stream without news, median of the rounds',
      round(share(named) / share(counted), 2),
      { unit: 'ratio', target: targets.worse },
    ),
    {
      id: 'idle-sql',
      what: 'SQL statements a second that an idle source adds',
      measured: round(Math.max(0, idle(named) - idle(counted)), 2),
      unit: '1/s',
      target: '0',
      met: idle(named) <= idle(counted),
    },
    info('writes-named', 'changes a second with news', Math.round(writes(named)), '1/s'),
    info('writes-counted', 'the same without', Math.round(writes(counted)), '1/s'),
    info('cpu-named', 'processor time of a change with its news', round(cpu(named) * 1000, 1), 'µs'),
    info('cpu-counted', 'the same without', round(cpu(counted) * 1000, 1), 'µs'),
    info(
      'tell-lag',
      'from the commit to the ear of the source, median',
      round(
        medianOf(named, (load) => load.steady.tellLag),
        1,
      ),
      'ms',
    ),
    info('steady-named', 'share of one core in the stream, with news', round(share(named), 2), 'cores'),
    info('steady-counted', 'the same without', round(share(counted), 2), 'cores'),
    info(
      'burst-ratio',
      '20,000 changes seen at once: time to write them with news of each, against without',
      round(writes(counted) / writes(named), 2),
      'ratio',
    ),
  ];
}

function ways({ local, htcondor, condorSubmit }: Measured['ways']): Figure[] {
  const before = (ways: typeof local) => ways.asked.map((ms, index) => ms - (ways.bare[index] ?? 0));
  return [
    atMost(
      'way-local',
      'local: from asking to the call of the backend and back into the database, without the call, p99',
      p99(before(local)),
      {
        unit: 'ms',
        target: 100,
      },
    ),
    atMost('way-htcondor', 'HTCondor: the same', p99(before(htcondor)), { unit: 'ms', target: 100 }),
    info('asked-local', 'local: from asking to accepted, p99', p99(local.asked), 'ms'),
    info('bare-local', 'local: the bare call of the backend, p99', p99(local.bare), 'ms'),
    info('asked-htcondor', 'HTCondor: from asking to accepted, p99', p99(htcondor.asked), 'ms'),
    info('bare-htcondor', 'HTCondor: the bare call of the backend, p99', p99(htcondor.bare), 'ms'),
    info('condor-submit', 'beside it: condor_submit of the same pilot by hand, p99', p99(condorSubmit), 'ms'),
  ];
}
