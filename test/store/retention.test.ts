import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import fc from 'fast-check';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import type { Retention } from '../../src/store/retention.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { nextTurn } from '../../src/util/clock.ts';
import { type FinalStatus, finalStatuses, workerStatuses } from '../../src/worker/status.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { insertEnded } from '../support/ended-workers.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const all = (time: number) => ({ finished: time, failed: time, cancelled: time, missed: time });
const ofWorkers = (endedBefore: number, sweptBefore = 1e9): Retention => ({
  endedBefore: all(endedBefore),
  sweptBefore,
  unusedBefore: 0,
  currentConfigs: undefined,
});
const goOn = async () => true;
const none = all(0);
const idsIn = async (store: Store) =>
  (await store.workers.list({})).map(({ workerId }) => workerId).sort((a, b) => a - b);

onEachDatabase('retention of workers', (database) => {
  it('deletes whom it may, and nobody else, whatever the times are', async () => {
    const time = fc.integer({ min: 0, max: 20 });
    const row = fc.record({
      status: fc.constantFrom(...workerStatuses),
      endTime: fc.option(time),
      sweptTime: fc.option(time),
      own: fc.boolean(),
    });
    const before = fc.record({ finished: time, failed: time, cancelled: time, missed: time });
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 40 }),
        before,
        time,
        async (rows, endedBefore, sweptBefore) => {
          const beside = await database.fresh();
          const fresh = await beside.open();
          const other = await beside.open('other');
          for (const [at, { own }] of rows.entries())
            await (own ? fresh : other).workers.insert([workerOf(at + 1)], 'pending', 10, 'x');
          // Also what no agent writes: a living worker that has an end.
          for (const [at, { status, endTime, sweptTime }] of rows.entries())
            await beside.execute(
              `UPDATE workers SET status = '${status}', end_time = ${String(endTime)}, swept_time = ${String(sweptTime)} WHERE worker_id = ${at + 1}`,
            );
          const retention = { endedBefore, sweptBefore, unusedBefore: 0, currentConfigs: undefined };
          const expected = rows.map(({ status, endTime, sweptTime, own }) => {
            const final = finalStatuses.find((one) => one === status);
            if (final === undefined || sweptTime === null) return false;
            return own && (endTime ?? 10) < endedBefore[final] && sweptTime < sweptBefore;
          });
          const due = await fresh.retention.due(retention);
          const pruned = await fresh.retention.prune(retention, goOn);
          expect(pruned).to.deep.equal(due);
          const idsOf = async (table: string) =>
            (
              await beside.rows<{ worker_id: number }>(
                `SELECT DISTINCT worker_id FROM ${table} ORDER BY worker_id`,
              )
            ).map(({ worker_id }) => worker_id);
          const left = rows.flatMap((_, at) => (expected[at] ? [] : [at + 1]));
          expect(await idsOf('workers')).to.deep.equal(left);
          expect(await idsOf('transitions')).to.deep.equal(left);
          await fresh.close();
          await other.close();
        },
      ),
      { numRuns: database.runs(60) },
    );
  });
});

describe('retention', () => {
  let file: string;
  let store: Store;

  beforeEach(async () => {
    file = join(temporaryDirectory(), 'thresher.db');
    store = await openStore(file, 'factory');
  });

  afterEach(async () => {
    await store.close();
  });

  /** Beside the store, as no agent would. */
  const change = (statements: string) => {
    const db = new Database(file);
    db.exec(statements);
    db.close();
  };

  it('leaves whom a listing calls an orphan: without the row it would be adopted as somebody new', async () => {
    const db = new Database(file);
    insertEnded(db, { from: 1, count: 3, status: 'failed', endTime: 5, sweptTime: 6 });
    db.close();
    const orphan = { connection: 'c', place: 'p', workerId: 2, queue: 'Q', why: 'it lives', seenTime: 1 };
    await store.orphans.replace('c', [orphan, { ...orphan, place: 'q', workerId: null }]);
    expect((await store.retention.prune(ofWorkers(10), goOn)).workers).to.deep.equal({ ...none, failed: 2 });
    expect(await idsIn(store)).to.deep.equal([2]);
    await store.orphans.replace('c', []);
    await store.retention.prune(ofWorkers(10), goOn);
    expect(await idsIn(store)).to.deep.equal([]);
  });

  it('gives neither the ids of deleted workers nor those of their transitions again', async () => {
    await store.ids.raise(1);
    const first = await store.ids.take(3);
    await store.workers.insert(
      [1, 2, 3].map((id) => workerOf(id)),
      'pending',
      1,
      'x',
    );
    const last = (await store.workers.transitionsSince(0, 10)).at(-1)!.id;
    change(`UPDATE workers SET status = 'failed', end_time = 5, swept_time = 6`);
    await store.retention.prune(ofWorkers(10), goOn);
    await store.close();
    store = await openStore(file, 'factory');
    expect(await idsIn(store)).to.deep.equal([]);
    expect(await store.ids.take(1)).to.equal(first + 3);
    await store.workers.insert([workerOf(4)], 'pending', 1, 'x');
    expect((await store.workers.transitionsSince(last, 10)).map(({ worker_id }) => worker_id)).to.deep.equal([
      4,
    ]);
  });

  it('deletes configurations that nobody uses any more, once they are old', async () => {
    const current = await store.queues.configId('Q', '{"a":1}', 1);
    const used = await store.queues.configId('Q', '{"a":2}', 1);
    const old = await store.queues.configId('Q', '{"a":3}', 1);
    const young = await store.queues.configId('Q', '{"a":4}', 50);
    const again = await store.queues.configId('Q', '{"a":5}', 1);
    // Taken up anew by a daemon that went back to it.
    expect(await store.queues.configId('Q', '{"a":5}', 60)).to.equal(again);
    await store.workers.insert([workerOf(1, { configId: used })], 'pending', 1, 'x');
    const retention = { ...ofWorkers(10), unusedBefore: 20 };
    const left = async () => {
      const found = await Promise.all(
        [current, used, old, young, again].map((id) => store.queues.snapshot(id)),
      );
      return found.map((row) => row !== undefined);
    };
    const known = { ...retention, currentConfigs: new Set([current]) };
    expect((await store.retention.prune(retention, goOn)).configs, 'a daemon runs, elsewhere').to.equal(0);
    expect((await store.retention.due(known)).configs).to.equal(1);
    expect((await store.retention.prune(known, goOn)).configs).to.equal(1);
    expect(await left()).to.deep.equal([true, true, false, true, true]);
    // With its last worker a configuration goes in the same pass, and is counted so beforehand.
    change(`UPDATE workers SET status = 'failed', end_time = 5, swept_time = 6`);
    expect((await store.retention.due(known)).configs).to.equal(1);
    await store.retention.prune(known, goOn);
    expect(await left()).to.deep.equal([true, false, false, true, true]);
  });

  it('deletes commands that were answered long ago, and never an open one', async () => {
    const [answered, fresh, open] = [1, 100, 1].map((at) =>
      store.commands.add({ kind: 'resume', queue: 'Q' }, at),
    );
    await store.commands.finish(await answered!, { ok: true, message: 'done' });
    await store.commands.finish(await fresh!, { ok: true, message: 'done' });
    const retention = { ...ofWorkers(0), unusedBefore: 50 };
    expect((await store.retention.due(retention)).commands).to.equal(1);
    expect((await store.retention.prune(retention, goOn)).commands).to.equal(1);
    expect(await store.commands.result(await answered!)).to.equal(undefined);
    expect(await store.commands.result(await fresh!)).to.deep.equal({ ok: true, message: 'done' });
    expect((await store.commands.open()).map(({ id }) => id)).to.deep.equal([await open!]);
  });

  it('removes transitions of workers that are not there', async () => {
    await store.workers.insert([workerOf(1)], 'pending', 1, 'x');
    change(
      `INSERT INTO transitions (worker_id, at, to_status, source)
      SELECT value, 1, 'pending', 'x' FROM generate_series(2, 12001)`.replace(
        /FROM.*/,
        "FROM json_each('[" + Array.from({ length: 12_000 }, (_, at) => at + 2).join() + "]')",
      ),
    );
    expect(checkDatabase(file).findings.map(({ check }) => check)).to.include('transition-without-worker');
    await store.retention.prune(ofWorkers(0), goOn);
    expect(checkDatabase(file).counts.transitions).to.equal(1);
  });

  it('stops between two transactions when it is told to', async () => {
    const db = new Database(file);
    insertEnded(db, { from: 1, count: 1200, status: 'finished', endTime: 5, sweptTime: 6 });
    db.close();
    const pruned = await store.retention.prune(ofWorkers(10), async () => false);
    expect(pruned.workers).to.deep.equal({ ...none, finished: 500 });
    expect(await idsIn(store)).to.have.length(700);
    expect(checkDatabase(file).findings.map(({ check }) => check)).to.not.include(
      'transition-without-worker',
    );
  });

  it('of 50,000 workers lets submitting and observing go on, and loses nothing of theirs', async () => {
    const db = new Database(file);
    for (const [at, status] of finalStatuses.entries())
      insertEnded(db, { from: at * 12_500 + 1, count: 12_500, status, endTime: 5, sweptTime: 6 });
    // Between them, and never to be touched: living ones, and ended ones that were not swept.
    insertEnded(db, { from: 60_001, count: 500, status: 'finished', endTime: 5, sweptTime: null });
    db.close();
    const events: ('deletion' | 'change')[] = [];
    let over = false;
    let next = 100_000;
    const busy = (async () => {
      while (!over) {
        const ids = Array.from({ length: 10 }, () => next++);
        await store.workers.insert(
          ids.map((id) => workerOf(id)),
          'pending',
          10,
          'submitter',
        );
        const refused = await store.workers.apply(
          ids.map((workerId) => ({ workerId, from: 'pending', to: 'running', at: 11, source: 'monitor' })),
        );
        expect(refused).to.deep.equal([]);
        events.push('change');
        await nextTurn();
      }
    })();
    const pruned = await store.retention.prune(ofWorkers(10), async () => {
      events.push('deletion');
      await nextTurn();
      return true;
    });
    over = true;
    await busy;
    expect(pruned.workers).to.deep.equal(all(12_500));
    // Whoever waits waits for a few short transactions, never for the whole.
    const waits = events
      .join(' ')
      .split('change')
      .map((between) => between.split('deletion').length - 1);
    expect(events.filter((event) => event === 'deletion').length).to.be.greaterThan(100);
    expect(Math.max(...waits)).to.be.at.most(4);
    expect(await store.workers.countAll()).to.have.deep.members([
      { queue: 'Q', status: 'running', workers: next - 100_000 },
      { queue: 'Q', status: 'finished', workers: 500 },
    ]);
    expect(checkDatabase(file).counts).to.deep.include({
      workers: next - 100_000 + 500,
      transitions: (next - 100_000) * 2 + 1000,
    });
  });

  it('gives the space back when asked to', async () => {
    const db = new Database(file);
    insertEnded(db, {
      from: 1,
      count: 3000,
      status: 'finished' satisfies FinalStatus,
      endTime: 5,
      sweptTime: 6,
    });
    const pages = () => db.pragma('page_count', { simple: true }) as number;
    const before = pages();
    await store.retention.prune(ofWorkers(10), goOn);
    await store.retention.vacuum();
    expect(pages()).to.be.lessThan(before / 4);
    db.close();
  });
});
