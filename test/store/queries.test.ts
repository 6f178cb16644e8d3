import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { type CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import { CommandStore } from '../../src/store/commands.ts';
import { FigureStore } from '../../src/store/figures.ts';
import { LoadStore } from '../../src/store/load.ts';
import { OrphanStore } from '../../src/store/orphans.ts';
import { QueueStore } from '../../src/store/queues.ts';
import { RetentionStore } from '../../src/store/retention.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { Tables } from '../../src/store/tables.ts';
import { WorkerIds } from '../../src/store/worker-ids.ts';
import { WorkerStore } from '../../src/store/workers.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The parts of a store that ask the database. */
const parts = ['workers', 'load', 'ids', 'queues', 'commands', 'orphans', 'retention', 'figures'] as const;
type Queries = Pick<Store, (typeof parts)[number]>;

const texts = join(import.meta.dirname, 'fixtures/sqlite-queries.sql');

const past = { finished: 30, failed: 30, cancelled: 30, missed: 30 };
const retention = { endedBefore: past, sweptBefore: 30, unusedBefore: 30, currentConfigs: new Set([1]) };
const step = { at: 20, source: 'monitor' } as const;
const place = { queue: 'Q', configId: 1, placement: 'local:/work' };
const report = { queue: 'Q', queueStatus: 'online', limits: {}, reasons: [], reportTime: 1 };
const orphan = { connection: 'c', place: 'p', workerId: 5, queue: 'Q', why: 'x', seenTime: 1 };

/** One call of everything that asks the database, and variants where these have a text of their own; in this order. */
const calls: readonly (readonly [name: string, call: (store: Queries) => Promise<unknown>])[] = [
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
  ['workers.transitionsSince', ({ workers }) => workers.transitionsSince(0, 5)],
  ['workers.configsInUse', ({ workers }) => workers.configsInUse()],
  ['workers.moveConfig', ({ workers }) => workers.moveConfig(place, 1)],
  ['workers.requestKill by ids', ({ workers }) => workers.requestKill({ ids: [3] }, 'x', 30)],
  [
    'workers.requestKill of a queue in statuses',
    ({ workers }) => workers.requestKill({ queue: 'Q', statuses: ['running'] }, 'x', 30),
  ],
  ['workers.toKill', ({ workers }) => workers.toKill('Q', 1, 5)],
  ['workers.toSweep', ({ workers }) => workers.toSweep('Q', 1, past, 5)],
  ['workers.markSwept', ({ workers }) => workers.markSwept([2], 25)],
  ['load.alive', ({ load }) => load.alive(['Q', 'R'])],
  ['load.runningSince', ({ load }) => load.runningSince('Q', 20)],
  ['load.lastMade', ({ load }) => load.lastMade('Q')],
  ['figures.alive', ({ figures }) => figures.alive()],
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
  ['retention.vacuum', (store) => store.retention.vacuum()],
];

/** A store on a real database, and the statements that it ran since the last look. */
async function recording(): Promise<{
  store: Queries;
  ran: () => CompiledQuery[];
  close: () => Promise<void>;
}> {
  const file = join(temporaryDirectory(), 'thresher.db');
  await (await openStore(file, 'factory')).close();
  let ran: CompiledQuery[] = [];
  const db = new Kysely<Tables>({
    dialect: new SqliteDialect({ database: new Database(file) }),
    log: ({ query }) => {
      ran.push(query);
    },
  });
  return {
    store: {
      workers: new WorkerStore(db, 'factory'),
      load: new LoadStore(db, 'factory'),
      ids: new WorkerIds(db, 'factory'),
      queues: new QueueStore(db, 'factory'),
      commands: new CommandStore(db, 'factory'),
      orphans: new OrphanStore(db, 'factory'),
      retention: new RetentionStore(db, 'factory'),
      figures: new FigureStore(db, 'factory'),
    },
    ran() {
      const since = ran;
      ran = [];
      return since;
    },
    close: () => db.destroy(),
  };
}

describe('the queries of the store', () => {
  it('are all asked here', async () => {
    const { store, close } = await recording();
    const methods = parts.flatMap((part) =>
      Object.getOwnPropertyNames(Object.getPrototypeOf(store[part]))
        .filter((name) => name !== 'constructor')
        .map((name) => `${part}.${name}`),
    );
    await close();
    expect([...new Set(calls.map(([name]) => name.split(' ')[0]))].sort()).to.deep.equal(methods.sort());
  });

  // A text that changes unseen may read every worker where an index has the answer.
  // WRITE_QUERIES=1 writes the file anew.
  it('have the texts on SQLite that are written down, and SQLite carries out each', async () => {
    const { store, ran, close } = await recording();
    const sections: string[] = [];
    for (const [name, call] of calls) {
      await call(store);
      const own = [...new Set(ran().map(({ sql }) => sql.trim()))];
      sections.push(`-- ${name}\n${own.join(';\n')};\n`);
    }
    await close();
    const found = sections.join('\n');
    if (process.env.WRITE_QUERIES === '1') writeFileSync(texts, found);
    expect(found).to.equal(readFileSync(texts, 'utf8'));
  });
});
