import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresqlServer } from '../../../test/support/postgresql.ts';
import { until } from '../../../test/support/until.ts';
import { machine } from '../../shared/machine.ts';
import { progressOf } from '../../shared/progress.ts';
import { configuration } from '../postgresql.ts';
import { sleep } from '../site.ts';
import { judge } from './judge.ts';
import { Member } from './member.ts';
import { figuresOf, pageOf, type Results, type Sample } from './page.ts';
import { hour, members as names, queues, type Replay } from './replay.ts';
import type { Asked, Told } from './simulator.ts';
import { writeSite } from './site.ts';

/** Between two looks at all processes, ms. */
const lookEvery = 2000;
/** A member is started so long after its SIGKILL, ms. */
const downFor = 1000;
/** Members that are killed in each simulated hour. */
const killed = 2;
/** How long the factory may take to come to rest after the last worker has ended, real ms. */
const patience = 300_000;
const database = 'day';
const progress = progressOf('day');

/** A day of a million workers, or its first hours; the results go to `results/core-day.{json,md}`. */
export async function benchDay(resultsDirectory: string, replay: Replay): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const server = new PostgresqlServer(configuration);
  const simulator = new Simulator(join(directory, 'simulator'), replay);
  let all: readonly Member[] = [];
  try {
    await server.start();
    const [about] = await server.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    await server.query(`CREATE DATABASE ${database}`);
    await simulator.ready();
    const before = loadavg()[0] ?? NaN;
    all = names.map((name) => {
      const own = join(directory, name);
      const parts = { member: name, databaseUrl: server.url(database), simulator: simulator.socket };
      return new Member(name, own, writeSite(own, { ...parts, speed: replay.speed }).config);
    });
    progress('four members share the queues out');
    // The first one makes the tables: others refuse to start meanwhile.
    for (const [at, member] of all.entries()) {
      member.start(0);
      if (at === 0) await sharedOut(server, [member]);
    }
    await sharedOut(server, all);
    const keeper = new Keeper(all);
    const { kills, samples, now } = await run(replay, simulator, all, keeper);
    progress('the last workers end');
    const rest = await settle(server, simulator, () => {
      keeper.look(now());
    });
    progress('rows and workers are compared');
    const { records, lags } = await simulator.asks('records', 'records');
    const results: Results = {
      benchmark: 'core-day',
      date: new Date().toISOString(),
      machine: machine(),
      postgresql: about?.version ?? 'unknown',
      loads: [before, loadavg()[0] ?? NaN],
      replay,
      figures: [],
      measured: {
        kills,
        ends: keeper.ends,
        samples,
        lives: all.flatMap(({ lives }) => lives),
        lags: summaryOf(lags),
        fenced: rest.fenced,
        repeated: rest.repeated,
        adopted: await countOf(server, `transitions WHERE source = 'adoption'`),
        retried: await countOf(server, 'workers WHERE attempt > 1'),
        judgement: await judge(server, database, records),
        complaints: complaintsOf(all),
      },
    };
    const complete = { ...results, figures: figuresOf(results) };
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(join(resultsDirectory, 'core-day.json'), `${JSON.stringify(thinned(complete), null, 1)}\n`);
    writeFileSync(join(resultsDirectory, 'core-day.md'), pageOf(complete));
    process.stdout.write(pageOf(complete));
  } finally {
    for (const member of all) await member.kill();
    simulator.end();
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The results with one look of fifteen, which is two a minute. */
function thinned(results: Results): Results {
  const some = <T>(looks: readonly T[]) => looks.filter((_, index) => index % 15 === 0);
  const { samples, lives } = results.measured;
  return {
    ...results,
    measured: {
      ...results.measured,
      samples: some(samples),
      lives: lives.map((life) => ({ ...life, rss: some(life.rss) })),
    },
  };
}

/** Starts again what is down, as a service manager does. */
class Keeper {
  /** Members that ended without SIGKILL. */
  readonly ends: { readonly at: number; readonly member: string; readonly lastWords: string }[] = [];
  readonly #all: readonly Member[];
  /** When each of those that are down is started. */
  readonly #down = new Map<Member, number>();

  constructor(all: readonly Member[]) {
    this.#all = all;
  }

  async kill(member: Member, at: number): Promise<void> {
    await member.kill();
    this.#down.set(member, at + downFor);
  }

  look(at: number): void {
    for (const member of this.#all) {
      const startAt = this.#down.get(member);
      if (startAt === undefined && !member.isUp) {
        this.ends.push({ at: Math.round(at), member: member.name, lastWords: member.lastWords });
        progress(`${member.name} ended by itself`);
        this.#down.set(member, at + downFor);
      } else if (startAt !== undefined && startAt <= at) {
        this.#down.delete(member);
        member.start(at);
      }
    }
  }
}

/** Replays the hours, and kills members meanwhile. */
async function run(replay: Replay, simulator: Simulator, all: readonly Member[], keeper: Keeper) {
  const lasts = (replay.hours * hour) / replay.speed;
  const due = killsOf(replay, all);
  const kills: { readonly at: number; readonly member: string }[] = [];
  const samples: Sample[] = [];
  const begun = performance.now();
  const now = () => performance.now() - begun;
  await simulator.asks('begin', 'counts');
  for (let look = 0; now() < lasts;) {
    const at = now();
    keeper.look(at);
    const [next] = due;
    if (next !== undefined && next.at <= at && next.member.isUp) {
      due.shift();
      await keeper.kill(next.member, at);
      kills.push({ at: Math.round(at), member: next.member.name });
      progress(`${next.member.name} was killed at hour ${((at * replay.speed) / hour).toFixed(2)}`);
    }
    if (at >= look) {
      look += lookEvery;
      for (const member of all) member.look(Math.round(at));
      const { due: wanted, started, alive, cpuSeconds } = await simulator.asks('counts', 'counts');
      samples.push({ at: Math.round(at), due: wanted, started, alive, simulatorCpuSeconds: cpuSeconds });
    }
    await sleep(50);
  }
  return { kills, samples, now };
}

/** Two members of each hour, at a random moment each. The first minutes of an hour belong to what the last one left. */
function killsOf({ hours, speed }: Replay, all: readonly Member[]) {
  const kills: { at: number; member: Member }[] = [];
  for (let one = 0; one < hours; one++) {
    const chosen = all.toSorted(() => Math.random() - 0.5).slice(0, killed);
    for (const member of chosen) kills.push({ at: ((one + Math.random()) * hour) / speed, member });
  }
  return kills.filter(({ at }) => at < (hours * hour) / speed).sort((left, right) => left.at - right.at);
}

/** Waits until all workers have ended and no row is alive, or nothing changes any more. */
async function settle(server: PostgresqlServer, simulator: Simulator, look: () => void) {
  for (;;) {
    look();
    const counts = await simulator.asks('counts', 'counts');
    if (counts.alive === 0 && counts.started >= counts.due) break;
    if (counts.started < counts.due) progress(`${counts.due - counts.started} are still to be submitted`);
    await sleep(2000);
  }
  await until(
    'no row is alive',
    async () => {
      look();
      const alive = `workers WHERE status NOT IN ('finished', 'failed', 'cancelled', 'missed')`;
      return (await countOf(server, alive)) === 0;
    },
    patience,
    // Rows that stay alive are what the judge looks for.
  ).catch(() => undefined);
  // Listings find what nobody follows.
  await sleep(patience / 5);
  return simulator.asks('counts', 'counts');
}

async function countOf(server: PostgresqlServer, what: string): Promise<number> {
  const [row] = await server.query<{ count: number }>(`SELECT count(*) AS count FROM ${what}`, database);
  return row?.count ?? NaN;
}

/** Waits until every queue is with one of these members, and each of them has its part. @throws when one has ended */
async function sharedOut(server: PostgresqlServer, all: readonly Member[]): Promise<void> {
  let seen = '';
  let ended: Member | undefined;
  await until(
    () => `each member has its part of the queues; they have ${seen}`,
    async () => {
      ended = all.find((member) => !member.isUp);
      if (ended !== undefined) return true;
      const rows = await server.query<{ member: string; count: number }>(
        `SELECT member, count(*) AS count FROM shares WHERE item LIKE 'queue %' GROUP BY member`,
        database,
      );
      seen = JSON.stringify(rows);
      const shared = rows.reduce((sum, { count }) => sum + count, 0);
      return shared === queues && rows.length === all.length;
    },
    180_000,
  );
  if (ended !== undefined) throw new Error(`${ended.name} ended by itself: ${ended.lastWords}`);
}

function complaintsOf(all: readonly Member[]): Readonly<{ [message: string]: number }> {
  const sum: { [message: string]: number } = {};
  for (const member of all)
    for (const [message, count] of member.complaints()) sum[message] = (sum[message] ?? 0) + count;
  return sum;
}

/** ms */
function summaryOf(lags: readonly number[]) {
  const sorted = Float64Array.from(lags).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
  return { median: at(0.5), p90: at(0.9), p99: at(0.99), most: at(1) };
}

class Simulator {
  readonly socket: string;
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;

  constructor(socket: string, { speed, hours }: Replay) {
    this.socket = socket;
    const program = join(import.meta.dirname, 'simulator.ts');
    this.#child = fork(program, [socket, String(speed), String(hours)], { execArgv: [] });
    const withParent = () => this.#child.kill('SIGKILL');
    process.once('exit', withParent);
    this.#child.once('exit', () => process.off('exit', withParent));
    this.#ready = this.#next();
  }

  async ready(): Promise<void> {
    await this.#ready;
  }

  /** One question after the other. @throws when the simulator ends before its answer */
  async asks<Kind extends Told['kind']>(asked: Asked, kind: Kind): Promise<Extract<Told, { kind: Kind }>> {
    const next = this.#next();
    this.#child.send(asked);
    const told = await next;
    if (!isOf(told, kind)) throw new Error(`the simulator answered "${told.kind}" to "${asked}"`);
    return told;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }

  #next(): Promise<Told> {
    const done = new AbortController();
    const { signal } = done;
    const ended = once(this.#child, 'exit', { signal }).then(() => {
      throw new Error('the simulator has ended');
    });
    const told = once(this.#child, 'message', { signal }).then(([one]) => one as Told);
    return Promise.race([told, ended]).finally(() => {
      ended.catch(() => undefined);
      told.catch(() => undefined);
      done.abort();
    });
  }
}

function isOf<Kind extends Told['kind']>(told: Told, kind: Kind): told is Extract<Told, { kind: Kind }> {
  return told.kind === kind;
}
