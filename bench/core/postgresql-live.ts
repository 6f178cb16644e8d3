/**
 * The measured daemon on PostgreSQL: `node --expose-gc postgresql-live.ts DIRECTORY SOCKETS`, as a child of the benchmark,
 * which ends it with SIGKILL. PostgreSQL copies no database that is in use, so the bare loop writes into tables of the same
 * shape, indexes and rows in a schema of its own.
 */
import { writeFileSync } from 'node:fs';
import pg from 'pg';
import { median } from '../shared/statistics.ts';
import { backend, type FakeStatus } from './fake-backend.ts';
import { PostgresqlStatements } from './postgresql-statements.ts';
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

const [directory = '', sockets = ''] = process.argv.slice(2);
const changesPerRound = 20_000;
const rounds = 8;
const perTransaction = 500;
const idlePasses = 20;

export interface PostgresqlLive {
  readonly rss: { readonly idle: number; readonly live: number; readonly afterAll: number };
  readonly fillSeconds: number;
  readonly passMs: number;
  /** Statements that write, while the passes are made. */
  readonly idleWrites: number;
  readonly idleStatements: number;
  readonly idleSeconds: number;
  readonly byText: readonly (readonly [string, number])[];
  /** Writing statements of a pass in which one worker changed. */
  readonly controlWrites: number;
  readonly daemon: readonly number[];
  readonly bare: readonly number[];
  readonly complaints: readonly string[];
}

const counter = new PostgresqlStatements().install();
const { daemon, complaints } = await startDaemon(directory);
await until('every connection is watched', () => backend.watched === connections);
await sleep(2000);
const idle = await rss();
const fillStart = performance.now();
backend.room = workersPerQueue;
await until('all workers are known', () => daemon.liveWorkers === liveWorkers);
const fillSeconds = (performance.now() - fillStart) / 1000;
const beside = new pg.Client({ host: sockets, user: 'thresher', database: 'live' });
await beside.connect();
backend.change(0, liveWorkers, 'running');
backend.show();
await until('all workers are running', () => counter.committed >= liveWorkers);
await settled('running');
const live = await rss();

const passTimes: number[] = [];
counter.reset();
const idleStart = performance.now();
for (let pass = 0; pass < idlePasses; pass++) {
  const start = performance.now();
  backend.show();
  passTimes.push(performance.now() - start);
  await sleep(250);
}
const idleSeconds = (performance.now() - idleStart) / 1000;
const byText = [...counter.byText].sort((one, other) => other[1] - one[1]);
const idleWrites = writes();
const idleStatements = counter.total;
counter.reset();
const control = counter.committedMore(1);
backend.change(0, 1, 'idle');
backend.show();
await control;
const controlWrites = writes();
backend.change(0, 1, 'running');
backend.show();
await settled('running');

await beside.query(`CREATE SCHEMA bare; CREATE TABLE bare.workers (LIKE workers INCLUDING ALL);
  CREATE TABLE bare.transitions (LIKE transitions INCLUDING ALL); INSERT INTO bare.workers SELECT * FROM workers`);
await beside.query('ANALYZE');
const daemonRates: number[] = [];
const bareRates: number[] = [];
for (let round = 0; round < rounds; round++) {
  const from = (round * changesPerRound) % liveWorkers;
  const old: FakeStatus = round * changesPerRound < liveWorkers ? 'running' : 'idle';
  const status = old === 'running' ? 'idle' : 'running';
  const one = async () => daemonRates.push(await byDaemon(from, status));
  const other = async () => bareRates.push(await byBareLoop(from, old, status));
  // In turns: the first of a round may find the server busy with what came before.
  for (const measure of round % 2 === 0 ? [one, other] : [other, one]) await measure();
}
const afterAll = await rss();
await beside.query('DROP SCHEMA bare CASCADE');
await beside.end();
writeFileSync(paths(directory).backend, JSON.stringify(backend.save()));
const result: PostgresqlLive = {
  rss: { idle, live, afterAll },
  fillSeconds,
  passMs: median(passTimes),
  idleWrites,
  idleStatements,
  idleSeconds,
  byText,
  controlWrites,
  daemon: daemonRates,
  bare: bareRates,
  complaints,
};
await report(result);
await sleep(60_000);

async function byDaemon(from: number, status: FakeStatus): Promise<number> {
  backend.change(from, from + changesPerRound, status);
  const written = counter.committedMore(changesPerRound);
  const start = performance.now();
  backend.announce(from, from + changesPerRound);
  await written;
  return (changesPerRound * 1000) / (performance.now() - start);
}

/** Two statements with arrays for each transaction of the daemon's own batch: the barest that writes the same rows. */
async function byBareLoop(from: number, old: FakeStatus, status: FakeStatus): Promise<number> {
  const changes = backend.ids(from, from + changesPerRound).map((id) => backend.observationOf(id));
  const start = performance.now();
  for (let first = 0; first < changes.length; first += perTransaction) {
    const batch = changes.slice(first, first + perTransaction);
    const ids = batch.map(({ workerId }) => workerId);
    const natives = batch.map(({ nativeStatus }) => nativeStatus);
    const nodes = batch.map(({ node }) => node ?? null);
    const starts = batch.map(({ startTime }) => startTime ?? null);
    const at = Date.now();
    await beside.query('BEGIN');
    const { rowCount } = await beside.query({
      name: 'bare-update',
      text: `UPDATE bare.workers w SET status = $1, modification_time = $2, native_status = c.native, node_id = c.node, start_time = c.start
        FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bigint[]) AS c (id, native, node, start)
        WHERE w.worker_id = c.id AND w.status = $7`,
      values: [status, at, ids, natives, nodes, starts, old],
    });
    if (rowCount !== batch.length) throw new Error('the copy of the table has another state');
    await beside.query({
      name: 'bare-insert',
      text: `INSERT INTO bare.transitions (worker_id, at, from_status, to_status, source, native_status, message)
        SELECT id, $1, $2, $3, 'monitor', native, NULL FROM unnest($4::bigint[], $5::text[]) AS c (id, native)`,
      values: [at, old, status, ids, natives],
    });
    await beside.query('COMMIT');
  }
  return (changesPerRound * 1000) / (performance.now() - start);
}

/** Waits until the database shows this of every worker. */
async function settled(status: FakeStatus): Promise<void> {
  for (;;) {
    const { rows } = await beside.query<{ n: string }>(
      'SELECT count(*) AS n FROM workers WHERE status = $1',
      [status],
    );
    if (Number(rows[0]?.n) === liveWorkers) return;
    await sleep(200);
  }
}

/** Statements that write, but for the renewals of the lease: these come as often whatever the workers do. */
function writes(): number {
  return [...counter.byText].reduce(
    (sum, [text, count]) => (/^(insert|update(?! leases)|delete|with)/i.test(text) ? sum + count : sum),
    0,
  );
}

async function rss(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.();
    await sleep(250);
  }
  return process.memoryUsage().rss;
}
