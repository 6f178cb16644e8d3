/**
 * The measured daemon: memory, SQL of idle passes, and the rate of writing. `node --expose-gc live.ts DIRECTORY`, as a child
 * of the benchmark, which ends it with SIGKILL: a restart then finds what a crash leaves.
 */
import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { type BareChange, BareLoop } from './bare.ts';
import { backend, type FakeStatus } from './fake-backend.ts';
import {
  connections,
  liveWorkers,
  paths,
  report,
  sleep,
  startDaemon,
  until,
  workersPerQueue,
} from './site.ts';
import { Stalls } from './stalls.ts';
import { StatementCounter } from './statements.ts';
import { median } from '../shared/statistics.ts';

const [directory = ''] = process.argv.slice(2);
const site = paths(directory);
const idlePasses = 20;
const changesPerRound = 20_000;
const rounds = 7;
const steady = { perSecond: 5000, seconds: 10 } as const;

export interface Memory {
  /** Bytes after garbage collections as they come by themselves. */
  readonly rss: number;
  /** Bytes after a collection that gives back the pages V8 keeps for later, too. */
  readonly leastRss: number;
  readonly heapUsed: number;
  readonly external: number;
}

export interface WindowOfStatements {
  readonly statements: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly byText: readonly (readonly [string, number])[];
}

export interface LiveResult {
  readonly memory: {
    readonly idle: Memory;
    readonly live: Memory;
    readonly afterListing: Memory;
    readonly afterAll: Memory;
    readonly backendBytes: number;
    /** Highest RSS of the process so far, bytes. */
    readonly peak: number;
  };
  readonly fillSeconds: number;
  readonly idle: {
    readonly passes: number;
    readonly passMs: number;
    readonly duringPasses: number;
    readonly none: WindowOfStatements;
    readonly unchanged: WindowOfStatements;
    readonly oneChanged: WindowOfStatements;
  };
  readonly listingBlockedMs: number;
  readonly writes: {
    readonly changesPerRound: number;
    readonly daemon: readonly number[];
    readonly bare: readonly number[];
    readonly blockedMs: number;
    readonly cpuMicrosPerChange: number;
  };
  readonly steady: {
    readonly perSecond: number;
    readonly seconds: number;
    readonly fed: number;
    readonly written: number;
    readonly lagMs: { readonly median: number; readonly highest: number };
    readonly cpuShare: number;
  };
  readonly complaints: readonly string[];
}

const counter = new StatementCounter().install();
const { daemon, complaints } = await startDaemon(directory);
await until('every connection is watched', () => backend.watched === connections);
await sleep(3000);
const idle = await memory();
const none = await countStatements(0);

const fillStart = performance.now();
backend.room = workersPerQueue;
await until('all workers are submitted', () => backend.workers === liveWorkers);
await until('all workers are known', () => daemon.liveWorkers === liveWorkers);
const fillSeconds = (performance.now() - fillStart) / 1000;
await sleep(1500);
await changeAll('running', () => {
  backend.show();
});
await sleep(1500);
const live = await memory();

const passTimes: number[] = [];
let duringPasses = 0;
const unchanged = await countStatements(idlePasses, () => {
  const before = counter.total;
  const start = performance.now();
  backend.show();
  passTimes.push(performance.now() - start);
  duringPasses += counter.total - before;
});
// The counter is alive: where one worker changed, it sees the transaction.
const oneChanged = await countStatements(1, () => {
  backend.change(0, 1, 'idle');
  backend.show();
});
backend.change(0, 1, 'running');
backend.show();
await sleep(200);

const listing = new Stalls();
listing.start();
backend.showStrangers();
await sleep(3000);
const listingBlockedMs = listing.stop();
const afterListing = await memory();

const copy = `${site.database}.bare`;
await copyDatabase();
const bareLoop = new BareLoop(copy);
const daemonRates: number[] = [];
const bareRates: number[] = [];
let blockedMs = 0;
let cpuMicros = 0;
for (let round = 0; round < rounds; round++) {
  const from = (round * changesPerRound) % liveWorkers;
  const old: FakeStatus = Math.floor((round * changesPerRound) / liveWorkers) % 2 === 0 ? 'running' : 'idle';
  const status = old === 'running' ? 'idle' : 'running';
  const to = from + changesPerRound;
  backend.change(from, to, status);
  const written = counter.committedMore(changesPerRound);
  const cpu = process.cpuUsage();
  const stalls = new Stalls();
  stalls.start();
  const start = performance.now();
  backend.announce(from, to);
  await written;
  daemonRates.push((changesPerRound * 1000) / (performance.now() - start));
  await sleep(20);
  blockedMs = Math.max(blockedMs, stalls.stop());
  const { user, system } = process.cpuUsage(cpu);
  cpuMicros += user + system;
  bareRates.push((changesPerRound * 1000) / bareLoop.write(bareChanges(from, to, old)));
}
bareLoop.close();
await changeAll('running', () => {
  backend.announce(0, liveWorkers);
});
const steadyResult = await feedSteadily();
await changeAll('running', () => {
  backend.announce(0, liveWorkers);
});
const afterAll = await memory();
writeFileSync(site.backend, JSON.stringify(backend.save()));

const result: LiveResult = {
  memory: { idle, live, afterListing, afterAll, backendBytes: backend.bytes, peak: peakRss() },
  fillSeconds,
  idle: { passes: idlePasses, passMs: median(passTimes), duringPasses, none, unchanged, oneChanged },
  listingBlockedMs,
  writes: {
    changesPerRound,
    daemon: daemonRates,
    bare: bareRates,
    blockedMs,
    cpuMicrosPerChange: cpuMicros / (rounds * changesPerRound),
  },
  steady: steadyResult,
  complaints,
};
await report(result);
await sleep(60_000);

/** Resident memory after the daemon had time to collect garbage. */
async function memory(): Promise<Memory> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.();
    await sleep(250);
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  return { rss, leastRss: process.memoryUsage().rss, heapUsed, external };
}

function peakRss(): number {
  return process.resourceUsage().maxRSS * 1024;
}

/** All statements of this process, background loops included, while `passes` passes are made a quarter of a second apart. */
async function countStatements(
  passes: number,
  pass: () => void = () => undefined,
): Promise<WindowOfStatements> {
  counter.reset();
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let round = 0; round < Math.max(passes, idlePasses); round++) {
    if (round < passes) pass();
    await sleep(250);
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    statements: counter.total,
    seconds: (performance.now() - start) / 1000,
    cpuSeconds: (user + system) / 1e6,
    byText: [...counter.byText].sort((a, b) => b[1] - a[1]),
  };
}

/** Brings all workers to `status` and waits until the database has it. */
async function changeAll(status: FakeStatus, show: () => void): Promise<void> {
  backend.change(0, liveWorkers, status);
  show();
  const reader = new Database(site.database, { readonly: true });
  const count = reader.prepare(`SELECT count(*) FROM workers WHERE status = ?`).pluck();
  await until(`all workers are ${status}`, () => count.get(status) === liveWorkers);
  reader.close();
}

async function copyDatabase(): Promise<void> {
  const reader = new Database(site.database, { readonly: true });
  await reader.backup(copy);
  reader.close();
}

function bareChanges(from: number, to: number, old: FakeStatus): BareChange[] {
  return backend.ids(from, to).map((workerId) => {
    const { status, nativeStatus, node = null, startTime = null } = backend.observationOf(workerId);
    return { workerId, from: old, to: status, nativeStatus, node, startTime };
  });
}

/** A stream of changes at the rate that is asked for: does the writer keep up, how late is it, what does it cost? */
async function feedSteadily(): Promise<LiveResult['steady']> {
  const { perSecond, seconds } = steady;
  const total = perSecond * seconds;
  const fedAt = new Float64Array(total);
  const lags: number[] = [];
  let written = 0;
  const already = counter.committed;
  counter.onCommit = () => {
    // The oldest change of this transaction waited longest.
    lags.push(performance.now() - (fedAt[written] ?? 0));
    written = counter.committed - already;
  };
  const cpu = process.cpuUsage();
  const start = performance.now();
  let fed = 0;
  while (fed < total) {
    const now = performance.now();
    const due = Math.min(total, Math.floor(((now - start) / 1000) * perSecond));
    fedAt.fill(now, fed, due);
    backend.change(fed, due, 'idle');
    backend.announce(fed, due);
    fed = due;
    await sleep(5);
  }
  const { user, system } = process.cpuUsage(cpu);
  const cpuShare = (user + system) / 1000 / (performance.now() - start);
  await until('what was fed is written', () => written >= total, 30_000);
  counter.onCommit = () => undefined;
  const lagMs = { median: median(lags), highest: Math.max(...lags) };
  return { perSecond, seconds, fed, written, lagMs, cpuShare };
}
