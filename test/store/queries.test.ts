import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
} from 'kysely';
import type { Dialect } from '../../src/store/dialect.ts';
import { storeOn } from '../../src/store/store.ts';
import type { Tables } from '../../src/store/tables.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import type { WorkerToStart } from '../../src/worker/worker.ts';
import { parts, type Queries, recordingStore } from '../support/recording-store.ts';
import { workerOf } from '../support/samples.ts';
import { sqliteWords } from './sqlite-words.ts';

const texts = join(import.meta.dirname, 'fixtures/sqlite-queries.sql');

const past = { finished: 30, failed: 30, cancelled: 30, missed: 30 };
const retention = { endedBefore: past, sweptBefore: 30, unusedBefore: 30, currentConfigs: new Set([1]) };
const step = { at: 20, source: 'monitor' } as const;
const place = { queue: 'Q', configId: 1, placement: 'local:/work' };
const report = { queue: 'Q', queueStatus: 'online', limits: {}, reasons: [], reportTime: 1 };
const payload = { files: [{ name: 'key', mode: 0o600, content: 'c2VjcmV0', secret: true }] };
/** A worker that a source named, with work for it. */
const named = (workerId: number): WorkerToStart => ({
  ...workerOf(workerId, {
    origin: { kind: 'toy', uid: `t${workerId}`, index: 0 },
    payloadId: String(workerId),
  }),
  payload,
});
/** Workers that have a large file in common. */
const sharing = [11, 12].map((workerId): WorkerToStart => {
  const content = 'QUJD'.repeat(500);
  return { ...named(workerId), payload: { files: [{ name: 'script', mode: 0o755, content }] } };
});
const request = (id: string) => ({ id, queue: 'Q', count: 2, by: 'http', payload }) as const;
const orphan = { connection: 'c', place: 'p', workerId: 5, queue: 'Q', why: 'x', seenTime: 1 };

const part = { queues: new Set(['Q']), ofNoQueue: true };

/** One call of everything that asks the database, and variants where these have a text of their own; in this order. */
const calls: readonly (readonly [name: string, call: (store: Queries) => Promise<unknown>])[] = [
  ['ids.begin', ({ ids }) => ids.begin(100)],
  ['ids.raise', ({ ids }) => ids.raise(100)],
  ['ids.take', ({ ids }) => ids.take(5)],
  ['queues.configId', ({ queues }) => queues.configId('Q', '{}', 1)],
  ['queues.snapshot', ({ queues }) => queues.snapshot(1)],
  ['queues.snapshotsOf', ({ queues }) => queues.snapshotsOf('Q')],
  ['queues.report', ({ queues }) => queues.report(report)],
  ['queues.all', ({ queues }) => queues.all()],
  ['queues.setControl', ({ queues }) => queues.setControl('Q', { mode: 'paused', reason: 'x', since: 1 })],
  ['queues.control', ({ queues }) => queues.control('Q')],
  ['queues.forget', ({ queues }) => queues.forget('R')],
  ['commands.add', ({ commands }) => commands.add({ kind: 'sweep', orphans: true }, 1)],
  ['commands.open', ({ commands }) => commands.open()],
  ['commands.take', ({ commands }) => commands.take(1, 2)],
  ['commands.finish', ({ commands }) => commands.finish(1, { ok: true, message: 'done' })],
  ['commands.result', ({ commands }) => commands.result(1)],
  [
    'workers.insert',
    ({ workers }) =>
      workers.insert(
        [1, 2, 3].map((id) => workerOf(id)),
        'pending',
        10,
        'x',
      ),
  ],
  ['workers.insert of named ones', ({ workers }) => workers.insert([named(6), named(7)], 'pending', 10, 'x')],
  ['workers.insert of ones that share', ({ workers }) => workers.insert(sharing, 'pending', 10, 'x')],
  ['payloads.byIds of shared ones', ({ payloads }) => payloads.byIds(['11', '12'])],
  ['workers.adopt', ({ workers }) => workers.adopt([named(8)], 'pending', 10)],
  ['workers.nextAttempt', ({ workers }) => workers.nextAttempt([1, 2], 11)],
  [
    'workers.apply',
    ({ workers }) =>
      workers.apply([
        { ...step, workerId: 1, from: 'pending', to: 'running', node: 'n', startTime: 15 },
        { ...step, workerId: 2, from: 'pending', to: 'missed', error: { code: 'lost', message: 'x' } },
      ]),
  ],
  ['workers.liveRows', ({ workers }) => workers.liveRows()],
  ['workers.liveRows of some queues', ({ workers }) => workers.liveRows(new Set(['Q']))],
  ['workers.asked', ({ workers }) => workers.asked()],
  ['workers.byId', ({ workers }) => workers.byId(1)],
  ['workers.byIds', ({ workers }) => workers.byIds([1, 2])],
  ['workers.fates', ({ workers }) => workers.fates([1, 2])],
  ['workers.list', ({ workers }) => workers.list({})],
  [
    'workers.list of a queue, in statuses, so many',
    ({ workers }) => workers.list({ queue: 'Q', statuses: ['running', 'missed'], limit: 5 }),
  ],
  ['workers.countAll', ({ workers }) => workers.countAll()],
  ['workers.lastEnded', ({ workers }) => workers.lastEnded('Q', 5)],
  ['workers.missedSince of a queue', ({ workers }) => workers.missedSince({ queue: 'Q' }, 5)],
  ['workers.missedSince of a site', ({ workers }) => workers.missedSince({ computingSite: 'S' }, 5)],
  [
    'workers.missedSince of a computing element',
    ({ workers }) => workers.missedSince({ computingElement: 'C' }, 5),
  ],
  ['workers.history', ({ workers }) => workers.history(1)],
  ['workers.intended', ({ workers }) => workers.intended([1, 2])],
  ['workers.transitionsSince', ({ workers }) => workers.transitionsSince(0, 5)],
  ['workers.configsInUse', ({ workers }) => workers.configsInUse()],
  ['workers.moveConfig', ({ workers }) => workers.moveConfig(place, 1)],
  ['workers.requestKill by ids', ({ workers }) => workers.requestKill({ ids: [3] }, 'x', 30)],
  [
    'workers.requestKill of a queue in statuses',
    ({ workers }) => workers.requestKill({ queue: 'Q', statuses: ['running'], madeUntil: 29 }, 'x', 30),
  ],
  ['workers.toKill', ({ workers }) => workers.toKill('Q', 1, 5)],
  ['workers.toSweep', ({ workers }) => workers.toSweep('Q', 1, past, 5)],
  ['workers.markSwept', ({ workers }) => workers.markSwept([2], 25)],
  ['load.alive', ({ load }) => load.alive(['Q', 'R'])],
  ['load.runningSince', ({ load }) => load.runningSince('Q', 20)],
  ['load.lastMade', ({ load }) => load.lastMade('Q')],
  ['figures.alive', ({ figures }) => figures.alive()],
  ['figures.aliveAtElements', ({ figures }) => figures.aliveAtElements()],
  ['figures.orphans', ({ figures }) => figures.orphans()],
  ['orphans.replace', ({ orphans }) => orphans.replace('c', [orphan])],
  ['orphans.keepOnly', ({ orphans }) => orphans.keepOnly(['c'])],
  ['orphans.all', ({ orphans }) => orphans.all()],
  ['retention.due', (store) => store.retention.due(retention)],
  [
    'retention.due where the configurations are unknown',
    (store) => store.retention.due({ ...retention, currentConfigs: undefined }),
  ],
  ['retention.prune', (store) => store.retention.prune(retention, async () => true)],
  ['payloads.byIds', ({ payloads }) => payloads.byIds(['6', '7'])],
  [
    'workers.apply of one with a payload',
    ({ workers }) =>
      workers.apply([{ ...step, workerId: 6, from: 'pending', to: 'running', payloadId: '6' }]),
  ],
  ['payloads.wipeUnneeded', ({ payloads }) => payloads.wipeUnneeded()],
  ['origins.known', ({ origins }) => origins.known('toy', [{ uid: 't6', index: 0 }])],
  ['origins.find', ({ origins }) => origins.find('toy', [{ uid: 't6', index: 0 }, { uid: 't7' }])],
  ['origins.unswept', ({ origins }) => origins.unswept('toy', 't6')],
  ['origins.end', ({ origins }) => origins.end('toy', [{ uid: 't9', index: 0 }], 'x', 30)],
  ['origins.withdraw', ({ origins }) => origins.withdraw('toy', [{ uid: 't10', index: 0 }], 30)],
  [
    'workers.insert where a source listens',
    ({ news, workers }) => {
      news.listen(new Set(['toy']));
      return workers.insert([named(16)], 'pending', 10, 'x');
    },
  ],
  [
    'workers.apply where a source listens',
    ({ workers }) => workers.apply([{ ...step, workerId: 16, from: 'pending', to: 'finished' }]),
  ],
  ['workers.markSwept where a source listens', ({ workers }) => workers.markSwept([16], 25)],
  [
    'origins.end where a source listens',
    ({ origins }) => origins.end('toy', [{ uid: 't10', index: 0 }], 'x', 30),
  ],
  ['origins.living', ({ origins }) => origins.living('toy')],
  ['origins.census', ({ origins }) => origins.census('toy', 30)],
  ['origins.madeSince', ({ origins }) => origins.madeSince('toy', 'CERN', { at: 5, upTo: 6 })],
  ['news.next', ({ news }) => news.next('toy', 5)],
  ['news.next of some queues', ({ news }) => news.next('toy', 5, part)],
  ['news.backlog', ({ news }) => news.backlog()],
  ['news.drop', ({ news }) => news.drop(5, 5)],
  ['news.taken of some queues', ({ news }) => news.taken('toy', 1, part)],
  ['news.taken', ({ news }) => news.taken('toy', 1)],
  ['requests.add', ({ requests }) => requests.add(request('r1'), 1)],
  ['requests.add with a key', ({ requests }) => requests.add({ ...request('r2'), key: 'k' }, 2)],
  ['requests.add with a key again', ({ requests }) => requests.add({ ...request('r3'), key: 'k' }, 3)],
  ['requests.byId', ({ requests }) => requests.byId('r1')],
  ['requests.list', ({ requests }) => requests.list({ limit: 5 })],
  ['requests.list of open ones', ({ requests }) => requests.list({ open: true, limit: 5 })],
  ['requests.countOpen', ({ requests }) => requests.countOpen()],
  ['requests.list of a queue', ({ requests }) => requests.list({ queue: 'Q', limit: 5 })],
  ['requests.workersOf', ({ requests }) => requests.workersOf('r1', 5)],
  ['requests.open', ({ requests }) => requests.open(new Set(['r1']))],
  ['requests.served', ({ requests }) => requests.served(['r1'], 4)],
  ['requests.withdraw', ({ requests }) => requests.withdraw('r2', 'x', 5)],
  ['requests.toEnd', ({ requests }) => requests.toEnd()],
  ['requests.ended', ({ requests }) => requests.ended(['r2'], 6)],
  ['requests.prune', ({ requests }) => requests.prune(10, 10)],
  ['sourceMemories.write', ({ sourceMemories }) => sourceMemories.write('toy', 'm', '{}')],
  ['sourceMemories.read', ({ sourceMemories }) => sourceMemories.read('toy', 'm')],
  ['sourceMemories.remove', ({ sourceMemories }) => sourceMemories.remove('toy', 'm')],
  [
    'retention.prune of named ones',
    async ({ news, retention: prune }) => {
      await news.taken('toy', 1e9);
      await prune.prune(retention, async () => true);
    },
  ],
];
/** Steps of plans that may come by every worker, or every transition, that there ever was. */
const reachesAll =
  /^SCAN (workers|transitions)|workers_(by_queue|ended|swept|by_origin) \(instance=\?( AND origin_kind=\?)?\)|workers_by_config|(workers|transitions) USING INTEGER PRIMARY KEY \(rowid[<>]/;
/** They ask the memory alone. */
const withoutQuery = ['retention.vacuum', 'news.listen', 'news.written'];

/** Another database, as far as texts go: PostgreSQL's words, and none of a driver. */
const otherDialect: Dialect = {
  values: (values, type) => sql`SELECT unnest(${values}::${sql.raw(type)}[])`,
  rows: (alias, columns, rows) => ({
    from: sql`«rows ${sql.raw(JSON.stringify(Object.keys(columns)))} ${rows.length}» AS ${sql.raw(alias)}`,
    column: (name) => sql.raw(`${alias}.${name}`),
  }),
  tableBy: (table) => sql.raw(table),
  unindexed: (column) => sql.raw(column),
  greatest: (one, other) => sql`greatest(${one}, ${other})`,
  erasing: (_, work) => work(),
};

/** The texts that a store sends to a database that answers nothing. */
async function textsOfOther(): Promise<Map<string, string[]>> {
  let queries: CompiledQuery[] = [];
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => {
      queries.push(query);
    },
  });
  const none = {
    file: 'none',
    db,
    dialect: otherDialect,
    changedElsewhere: () => false,
    mayAct: () => true,
    bytes: async () => 0,
    snapshot: async <T>(work: (one: Kysely<Tables>) => Promise<T>) => work(db),
    lastIds: async () => new Map(),
    setLastIds: async () => undefined,
    vacuum: async () => undefined,
    emptyLog: async () => true,
    errorOf: (error: unknown) => new ThresherError('store-failed', String(error)),
    close: () => db.destroy(),
  };
  const store = storeOn(none, 'factory');
  const found = new Map<string, string[]>();
  for (const [name, call] of calls) {
    // A query that must give a row finds none here; its text was sent all the same.
    await call(store).catch(() => undefined);
    found.set(
      name,
      queries.map((query) => query.sql),
    );
    queries = [];
  }
  await none.close();
  return found;
}

describe('the queries of the store', () => {
  it('are covered by the calls of this test', async () => {
    const { store, close } = await recordingStore();
    const methods = parts.flatMap((part) =>
      Object.getOwnPropertyNames(Object.getPrototypeOf(store[part]))
        .filter((name) => name !== 'constructor')
        .map((name) => `${part}.${name}`),
    );
    await close();
    const asked = new Set(calls.map(([name]) => name.split(' ')[0]));
    expect([...asked].sort()).to.deep.equal(methods.filter((name) => !withoutQuery.includes(name)).sort());
  });

  // A text that changes unseen may read every worker where an index has the answer. WRITE_QUERIES=1 writes the file anew.
  it('have the texts of the fixture, and SQLite carries out each', async () => {
    const { store, ran, close } = await recordingStore();
    const sections: string[] = [];
    for (const [name, call] of calls) {
      await call(store);
      const own = [...new Set(ran().map((query) => query.sql.trim()))];
      sections.push(`-- ${name}\n${own.join(';\n')};\n`);
    }
    await close();
    const found = sections.join('\n');
    if (process.env.WRITE_QUERIES === '1') writeFileSync(texts, found);
    expect(found).to.equal(readFileSync(texts, 'utf8'));
  });

  it('read none of the workers that ended long ago, but where those are counted, listed or deleted', async () => {
    const { store, sqlite, ran, close } = await recordingStore();
    const found = new Set<string>();
    for (const [name, call] of calls) {
      await call(store);
      for (const { sql: text, parameters } of ran()) {
        if (!/^\s*(select|update|delete)/i.test(text)) continue;
        const plan = sqlite.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...parameters) as { detail: string }[];
        for (const { detail } of plan)
          if (reachesAll.test(detail)) found.add(`${name.split(' ')[0] ?? name}: ${detail}`);
      }
    }
    await close();
    expect([...found].sort()).to.deep.equal([
      'ids.begin: SEARCH workers USING INTEGER PRIMARY KEY (rowid<?)', // the newest one
      'origins.census: SEARCH workers USING INTEGER PRIMARY KEY (rowid<?)', // the newest one
      'origins.madeSince: SEARCH workers USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)', // a portion
      'origins.madeSince: SEARCH workers USING INTEGER PRIMARY KEY (rowid>?)', // where a portion ends
      'retention.due: SEARCH workers USING COVERING INDEX workers_by_config (config_id=?)', // whether there is one
      'retention.prune: SEARCH transitions USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)', // a portion
      'retention.prune: SEARCH workers USING COVERING INDEX workers_by_config (config_id=?)', // whether there is one
      'workers.countAll: SEARCH workers USING COVERING INDEX workers_ended (instance=?)', // all
      'workers.list: SCAN workers', // all, or the newest
      'workers.transitionsSince: SEARCH transitions USING INTEGER PRIMARY KEY (rowid>?)', // since one
    ]);
  });

  it('are planned by statistics of every index of the workers and their transitions', async () => {
    const { sqlite, close } = await recordingStore();
    const told = sqlite.prepare(`SELECT idx || ' ' || stat FROM sqlite_stat1`).pluck().all() as string[];
    const indexes = sqlite
      .prepare(
        `SELECT name, (SELECT count(*) FROM pragma_index_info(sqlite_schema.name)) AS columns FROM sqlite_schema
          WHERE type = 'index' AND tbl_name IN ('workers', 'transitions')`,
      )
      .all() as { name: string; columns: number }[];
    await close();
    const sized = told.map((line) => line.split(' ')).map(([name, , ...columns]) => [name, columns.length]);
    expect(sized).to.have.deep.members(indexes.map(({ name, columns }) => [name, columns]));
  });

  it('do not change their texts with the number of values', async () => {
    const { store, ran, close } = await recordingStore();
    const many = Array.from({ length: 700 }, (_, at) => at + 1);
    const once = async (call: () => Promise<unknown>) => {
      await call();
      return [...new Set(ran().map((query) => query.sql))];
    };
    const pairs = [
      (ids: number[]) =>
        store.workers.insert(
          ids.map((id) => workerOf(ids.length * 1000 + id)),
          'pending',
          1,
          'x',
        ),
      (ids: number[]) =>
        store.workers.insert(
          ids.map((id) => named(ids.length * 1000 + id + 100_000)),
          'pending',
          1,
          'x',
        ),
      (ids: number[]) =>
        store.origins.known(
          'toy',
          ids.map((index) => ({ uid: 'u', index })),
        ),
      (ids: number[]) =>
        store.origins.end(
          'toy',
          ids.map((index) => ({ uid: `${ids.length}`, index })),
          'x',
          1,
        ),
      (ids: number[]) => store.payloads.byIds(ids.map(String)),
      (ids: number[]) => store.workers.byIds(ids),
      (ids: number[]) => store.workers.markSwept(ids, 1),
      (ids: number[]) =>
        store.workers.apply(
          ids.map((id) => ({ ...step, workerId: ids.length * 1000 + id, from: 'pending', to: 'running' })),
        ),
      (ids: number[]) => store.load.alive(ids.map(String)),
    ];
    for (const call of pairs) expect(await once(() => call(many))).to.deep.equal(await once(() => call([1])));
    await close();
  });

  it('contain no word of SQLite when they are made with another dialect', async () => {
    const found = await textsOfOther();
    const guilty = [...found].flatMap(([name, own]) =>
      own.flatMap((text) => sqliteWords(text).map((word) => `${name}: ${word} in ${text}`)),
    );
    expect(guilty).to.deep.equal([]);
    const without = [...found].filter(([, own]) => own.length === 0).map(([name]) => name);
    expect(without).to.deep.equal([]);
  });

  it('quote names with capitals, because PostgreSQL would make them small', async () => {
    const found = [...(await textsOfOther()).values()].flat();
    const bare = found.flatMap((text) => text.match(/\bAS [a-z]+[A-Z]\w*/g) ?? []);
    expect(bare).to.deep.equal([]);
    expect(found.join('\n')).to.contain('AS "endTime"');
  });
});
