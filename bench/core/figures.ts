import type { Figure } from '../shared/figure.ts';
import type { Measured } from './measured.ts';
import { median, round } from '../shared/statistics.ts';
import { liveWorkers } from './site.ts';

const targets = {
  bytesPerWorker: 2048,
  changesPerSecond: 5000,
  /** Background loops have SQL per queue; one statement per thousand workers would not be theirs. */
  statementsPerWorker: 0.001,
  restartMs: 5000,
} as const;

export function figuresOf({ live, restarts, bareReads }: Measured): Figure[] {
  return [...memory(live.memory), ...idlePasses(live), ...writes(live), ...restart(restarts, bareReads)];
}

function memory({ idle, live, afterListing, afterAll, backendBytes }: Measured['live']['memory']): Figure[] {
  const { bytesPerWorker } = targets;
  const perWorker = (bytes: number) => Math.round(bytes / liveWorkers);
  const judged = (id: string, what: string, measured: number): Figure => ({
    id,
    what,
    measured,
    unit: 'B/worker',
    target: `<= ${bytesPerWorker}`,
    met: measured <= bytesPerWorker,
  });
  const info = (id: string, what: string, measured: number): Figure => ({
    id,
    what,
    measured,
    unit: 'B/worker',
  });
  return [
    judged(
      'memory-live',
      'resident above the idle daemon, once all were submitted and observed',
      perWorker(live.rss - idle.rss),
    ),
    judged(
      'memory-after-listing',
      'the same after a listing of everything for orphans, which comes every 10 minutes by default',
      perWorker(afterListing.rss - idle.rss),
    ),
    judged('memory-after-all', 'the same after all rounds of changes', perWorker(afterAll.rss - idle.rss)),
    info(
      'memory-in-use',
      'the same without the free pages that V8 keeps for later',
      perWorker(afterListing.leastRss - idle.leastRss),
    ),
    info('memory-heap', 'JavaScript heap in use, of these', perWorker(afterListing.heapUsed - idle.heapUsed)),
    info('memory-backend', "the fake backend's own store, of these", perWorker(backendBytes)),
  ];
}

function idlePasses({ idle }: Measured['live']): Figure[] {
  const { passes, unchanged, none, oneChanged, passMs, duringPasses } = idle;
  const perWorker = unchanged.statements / passes / liveWorkers;
  const perSecond = (window: typeof none) => round(window.statements / window.seconds, 1);
  const { statementsPerWorker } = targets;
  const writes = (window: typeof none) =>
    window.byText.reduce(
      (sum, [text, count]) => (/^(insert|update|delete)/i.test(text) ? sum + count : sum),
      0,
    );
  return [
    {
      id: 'idle-sql',
      what: 'SQL statements per worker in a pass over unchanged workers, those of all background loops included',
      measured: perWorker,
      unit: 'statements',
      target: `< ${statementsPerWorker}`,
      met: perWorker < statementsPerWorker,
    },
    {
      id: 'idle-sql-own',
      what: `SQL statements of ${passes} such passes themselves`,
      measured: duringPasses + writes(unchanged),
      unit: 'statements',
      target: '0',
      met: duringPasses + writes(unchanged) === 0,
    },
    {
      id: 'idle-sql-background',
      what: 'SQL statements of all loops while such passes are made',
      measured: perSecond(unchanged),
      unit: '1/s',
    },
    {
      id: 'idle-sql-empty',
      what: 'the same beside it: an empty daemon, no passes',
      measured: perSecond(none),
      unit: '1/s',
    },
    {
      id: 'idle-sql-control',
      what: 'writing SQL statements of a pass in which one worker changed (the counter is alive)',
      measured: writes(oneChanged),
      unit: 'statements',
    },
    {
      id: 'idle-pass',
      what: 'time of one pass over 100,000 unchanged workers',
      measured: round(passMs, 1),
      unit: 'ms',
    },
  ];
}

function writes({
  writes: { daemon, bare, blockedMs, cpuMicrosPerChange },
  steady,
}: Measured['live']): Figure[] {
  const { changesPerSecond } = targets;
  const rate = median(daemon);
  const bareRate = median(bare);
  const keptUp = steady.written === steady.fed && steady.perSecond >= changesPerSecond;
  return [
    {
      id: 'write-rate',
      what: 'state changes written, seen by a monitor all at once',
      measured: Math.round(rate),
      unit: '1/s',
      target: `>= ${changesPerSecond}`,
      met: rate >= changesPerSecond,
    },
    {
      id: 'write-bare',
      what: 'the same rows from a bare loop beside it',
      measured: Math.round(bareRate),
      unit: '1/s',
    },
    {
      id: 'write-ratio',
      what: 'daemon against bare loop, median of the rounds',
      measured: round(median(daemon.map((one, index) => one / (bare[index] ?? NaN))), 2),
      unit: 'ratio',
    },
    {
      id: 'write-cpu',
      what: 'processor time of one change',
      measured: round(cpuMicrosPerChange, 1),
      unit: 'µs',
    },
    {
      id: 'steady-lag',
      what: `a stream of ${steady.perSecond} changes a second for ${steady.seconds} s: longest from seen to committed`,
      measured: round(steady.lagMs.highest, 0),
      unit: 'ms',
      target: 'all written',
      met: keptUp,
    },
    {
      id: 'steady-cpu',
      what: 'share of one core during that stream',
      measured: round(steady.cpuShare, 2),
      unit: 'cores',
    },
    {
      id: 'write-stall',
      what: 'longest time the process answered nothing while 20,000 changes seen at once were written',
      measured: Math.round(blockedMs),
      unit: 'ms',
    },
  ];
}

function restart(restarts: Measured['restarts'], bareReads: readonly number[]): Figure[] {
  const of = (key: 'started' | 'shown' | 'ready' | 'blockedMs') =>
    Math.round(median(restarts.map((one) => one[key])));
  const { restartMs } = targets;
  const info = (id: string, what: string, measured: number): Figure => ({ id, what, measured, unit: 'ms' });
  return [
    {
      id: 'restart-ready',
      what: 'restart after SIGKILL with 100,000 live rows: from the process to new submissions in every queue',
      measured: of('ready'),
      unit: 'ms',
      target: `<= ${restartMs}`,
      met: of('ready') <= restartMs,
    },
    info('restart-loaded', 'of these: until the rows are in memory and the loops run', of('started')),
    info('restart-shown', 'of these: until all workers were shown by the backend', of('shown')),
    info('restart-bare', 'beside it: a process that only reads these rows', Math.round(median(bareReads))),
    {
      id: 'restart-ratio',
      what: 'restart against that process, median of the rounds',
      measured: round(median(restarts.map(({ ready }, index) => ready / (bareReads[index] ?? NaN))), 2),
      unit: 'ratio',
    },
    info('restart-stall', 'longest time the process answered nothing during a restart', of('blockedMs')),
  ];
}
