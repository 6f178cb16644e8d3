/**
 * One daemon on the backend that answers at once, as a child of the benchmark: `core-load.ts DIRECTORY named|counted`. `named`: the
 * benchmark's source asks for each worker and hears of each change; `counted`: the queue is filled, and no source hears anything.
 */
import { backend } from '../core/fake-backend.ts';
import { report, sleep, startDaemon, until } from '../core/site.ts';
import { StatementCounter } from '../core/statements.ts';
import { median } from '../shared/statistics.ts';
import { asker, requestsOf } from './asker.ts';
import { fakeQueue, writeSite } from './site.ts';

const [directory = '', mode = ''] = process.argv.slice(2);
const named = mode === 'named';
const workers = 20_000;
/** All that one pass takes. */
const atOnce = 10_000;
const rounds = 7;
const steady = { perSecond: 5000, seconds: 10 } as const;
const idleFor = 5000;

export interface CoreLoad {
  /** Requests a second, each pass of 10,000: from asking to their commit. Empty where nothing was asked for. */
  readonly intents: readonly number[];
  /** Changes a second, seen at once, to their commit. */
  readonly writes: readonly number[];
  /** ms of processor time for each change. */
  readonly cpuPerChange: number;
  readonly steady: {
    /** Between commit and the source's ear, ms; 0 without one. */
    readonly tellLag: number;
    readonly written: number;
    readonly told: number;
    readonly inOrder: boolean;
    readonly cpuShare: number;
  };
  /** SQL statements in a second in which nothing happens. */
  readonly idle: number;
  readonly complaints: readonly string[];
}

const counter = new StatementCounter().install();
writeSite(directory, { queues: fakeQueue(named ? 'none' : 'fill', workers), asks: named });
const { daemon, complaints } = await startDaemon(directory);
await until('the connection is watched', () => backend.watched === 1);
if (named) await until('the source lives', () => asker.desk !== undefined);
await sleep(2000);

counter.reset();
await sleep(idleFor);
const idle = counter.total / (idleFor / 1000);

let told = 0;
let inOrder = true;
let last = -1;
asker.onNews = (news) => {
  told += news.length;
  for (const { sequence } of news) {
    inOrder &&= sequence > last;
    last = sequence;
  }
};

const intents: number[] = [];
backend.room = workers;
if (named) {
  for (let from = 0; from < workers; from += atOnce) {
    const committed = counter.committedMore(atOnce);
    const start = performance.now();
    asker.ask('BENCH', requestsOf(`round-${from}`, atOnce));
    await committed;
    intents.push((atOnce * 1000) / (performance.now() - start));
    await until('they are submitted', () => backend.workers === from + atOnce);
  }
  asker.stop();
}
await until('all workers are submitted', () => backend.workers === workers);
await until('all workers are known', () => daemon.liveWorkers === workers);
await sleep(2000);

const writes: number[] = [];
let cpuMicros = 0;
for (let round = 0; round < rounds; round++) {
  backend.change(0, workers, round % 2 === 0 ? 'running' : 'idle');
  const committed = counter.committedMore(workers);
  const before = told;
  const cpu = process.cpuUsage();
  const start = performance.now();
  backend.announce(0, workers);
  await committed;
  writes.push((workers * 1000) / (performance.now() - start));
  // News of these changes are part of their cost.
  if (named) await until('all is told', () => told >= before + workers, 30_000);
  await sleep(1000);
  const { user, system } = process.cpuUsage(cpu);
  cpuMicros += user + system;
}

const result: CoreLoad = {
  intents,
  writes,
  cpuPerChange: cpuMicros / 1000 / (rounds * workers),
  steady: await feedSteadily(),
  idle,
  complaints,
};
await report(result);
await sleep(60_000);

async function feedSteadily(): Promise<CoreLoad['steady']> {
  const { perSecond, seconds } = steady;
  const total = perSecond * seconds;
  const toldBefore = told;
  const already = counter.committed;
  const committedAt: number[] = [];
  const lags: number[] = [];
  let written = 0;
  let heard = 0;
  counter.onCommit = () => {
    const now = performance.now();
    const rows = counter.committed - already;
    while (written < rows) {
      committedAt.push(now);
      written++;
    }
  };
  const ear = asker.onNews;
  asker.onNews = (news) => {
    ear(news);
    heard += news.length;
    lags.push(performance.now() - (committedAt[heard - 1] ?? performance.now()));
  };
  const cpu = process.cpuUsage();
  const start = performance.now();
  let fed = 0;
  while (fed < total) {
    const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * perSecond));
    for (; fed < due; fed++) {
      const at = fed % workers;
      const status = Math.floor(fed / workers) % 2 === 0 ? 'idle' : 'running';
      backend.change(at, at + 1, status);
      backend.announce(at, at + 1);
    }
    await sleep(5);
  }
  const { user, system } = process.cpuUsage(cpu);
  const cpuShare = (user + system) / 1000 / (performance.now() - start);
  await until('what was fed is written', () => written >= total, 30_000);
  if (named) await until('what was written is told', () => heard >= total, 30_000);
  counter.onCommit = () => undefined;
  const tellLag = lags.length === 0 ? 0 : median(lags);
  return { tellLag, written, told: told - toldBefore, inOrder, cpuShare };
}
