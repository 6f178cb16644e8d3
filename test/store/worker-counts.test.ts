import { expect } from 'chai';
import fc from 'fast-check';
import type { Store } from '../../src/store/store.ts';
import { finalStatuses, type WorkerStatus, workerStatuses } from '../../src/worker/status.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { workerOf } from '../support/samples.ts';
import { type Queries, recordingStore } from '../support/recording-store.ts';

interface Row {
  readonly queue: string;
  readonly status: WorkerStatus;
  readonly endTime: number | null;
}

const row = fc.record({
  queue: fc.constantFrom('Q', 'R'),
  status: fc.constantFrom(...workerStatuses),
  endTime: fc.option(fc.integer({ min: 0, max: 30 })),
});

/** When a row without an end of its own was changed last. */
const changedAt = 15;

async function fill(store: Store, rows: readonly Row[]): Promise<void> {
  const workers = rows.map(({ queue }, at) => workerOf(at + 1, { queue, computingSite: `site of ${queue}` }));
  await store.workers.insert(workers, 'pending', changedAt, 'x');
  await store.workers.apply(
    rows.map(({ status, endTime }, at) => ({
      workerId: at + 1,
      from: 'pending' as const,
      to: status,
      at: changedAt,
      source: 'x',
      ...(isEnd(status) && endTime !== null && { endTime }),
    })),
  );
}

const isEnd = (status: WorkerStatus) => (finalStatuses as readonly WorkerStatus[]).includes(status);

onEachDatabase('counts of workers', (database) => {
  it('are those of the rows, whatever they are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 40 }),
        fc.integer({ min: 0, max: 31 }),
        async (rows, since) => {
          const store = await database.openNew();
          await fill(store, rows);
          const counted = await store.workers.countAll();
          const expected = Map.groupBy(rows, ({ queue, status }) => `${queue} ${status}`);
          expect(
            new Map(counted.map(({ queue, status, workers }) => [`${queue} ${status}`, workers])),
          ).to.deep.equal(new Map([...expected].map(([key, group]) => [key, group.length])));
          for (const queue of ['Q', 'R']) {
            const missed = rows.filter(
              (one) => one.queue === queue && one.status === 'missed' && (one.endTime ?? changedAt) >= since,
            );
            expect(await store.workers.missedSince({ queue }, since)).to.equal(missed.length);
            const site = { computingSite: `site of ${queue}` };
            expect(await store.workers.missedSince(site, since)).to.equal(missed.length);
            const ends = rows
              .map(({ endTime, ...one }, at) => ({ ...one, workerId: at + 1, endTime: endTime ?? changedAt }))
              .filter((one) => one.queue === queue && isEnd(one.status))
              .sort((a, b) => b.endTime - a.endTime || b.workerId - a.workerId);
            expect((await store.workers.lastEnded(queue, 5)).map(({ workerId }) => workerId)).to.deep.equal(
              ends.slice(0, 5).map(({ workerId }) => workerId),
            );
          }
          await store.close();
        },
      ),
      { numRuns: database.runs(40) },
    );
  });

  it('of the missed are also by computing element', async () => {
    const store = await database.openNew();
    const ids = [1, 2, 3, 4, 5, 6];
    await store.workers.insert(
      ids.map((id) => workerOf(id)),
      'pending',
      1,
      'x',
    );
    const sent = { from: 'pending', to: 'submitted', at: 5, source: 'x', computingElement: 'ce1' } as const;
    await store.workers.apply([1, 2, 3, 4].map((workerId) => ({ ...sent, workerId })));
    const end = { to: 'missed', at: 20, source: 'x' } as const;
    await store.workers.apply(
      ids.map((workerId) => ({ ...end, workerId, from: workerId <= 4 ? 'submitted' : 'pending' })),
    );
    expect(await store.workers.missedSince({ computingElement: 'ce1' }, 20)).to.equal(4);
    expect(await store.workers.missedSince({ computingElement: 'ce1' }, 21)).to.equal(0);
    expect(await store.workers.missedSince({ computingElement: 'ce2' }, 0)).to.equal(0);
    expect((await store.workers.byId(1))?.computingElement).to.equal('ce1');
    await store.close();
  });

  it('of the missed leave out those of which nothing says when they ended', async () => {
    const store = await database.openNew();
    const ids = [1, 2, 3];
    await store.workers.insert(
      ids.map((id) => workerOf(id, { queue: 'Q', computingSite: 'S' })),
      'pending',
      1,
      'x',
    );
    const codes = ['ended-unseen', 'lost', undefined];
    await store.workers.apply(
      ids.map((workerId, at) => {
        const code = codes[at];
        const end = { workerId, from: 'pending', to: 'missed', at: 20, source: 'x' } as const;
        return code === undefined ? end : { ...end, error: { code, message: 'x' } };
      }),
    );
    for (const scope of [{ queue: 'Q' }, { computingSite: 'S' }])
      expect(await store.workers.missedSince(scope, 20)).to.equal(2);
    await store.close();
  });

  it('say of the last ends what the times were, newest first', async () => {
    const store = await database.openNew();
    await store.workers.insert([workerOf(1), workerOf(2)], 'pending', 1, 'x');
    const end = { from: 'pending', to: 'failed', at: 40, source: 'x' } as const;
    await store.workers.apply([
      { ...end, workerId: 1, submitTime: 10, startTime: 20, endTime: 30 },
      { ...end, workerId: 2 },
    ]);
    expect(await store.workers.lastEnded('Q', 10)).to.deep.equal([
      { workerId: 2, status: 'failed', submitTime: null, startTime: null, endTime: 40 },
      { workerId: 1, status: 'failed', submitTime: 10, startTime: 20, endTime: 30 },
    ]);
    expect(await store.workers.lastEnded('R', 10)).to.deep.equal([]);
    expect(await store.workers.lastEnded('Q', 0)).to.deep.equal([]);
    await store.close();
  });
});

describe('the plan of', () => {
  const past = { finished: 1, failed: 1, cancelled: 1, missed: 1 };
  const retention = { endedBefore: past, sweptBefore: 1, unusedBefore: 1, currentConfigs: new Set([1]) };
  const queries: [what: string, run: (store: Queries) => Promise<unknown>, searches: RegExp[]][] = [
    [
      'counting all workers',
      ({ workers }) => workers.countAll(),
      [
        /SEARCH workers USING COVERING INDEX workers_alive \(instance=\?\)/,
        /SEARCH workers USING COVERING INDEX workers_ended \(instance=\?\)/,
      ],
    ],
    [
      'the last ends of a queue',
      ({ workers }) => workers.lastEnded('Q', 20),
      [/SEARCH workers USING INDEX workers_ended \(instance=\? AND queue=\? AND status=\?\)/],
    ],
    [
      'the missed of a queue',
      ({ workers }) => workers.missedSince({ queue: 'Q' }, 5),
      [/INDEX workers_ended \(instance=\? AND queue=\? AND status=\? AND <expr>>\?\)/],
    ],
    [
      'the missed of a site',
      ({ workers }) => workers.missedSince({ computingSite: 'S' }, 5),
      [/INDEX workers_missed_by_site \(instance=\? AND computing_site=\? AND status=\? AND <expr>>\?\)/],
    ],
    [
      'the missed of a computing element',
      ({ workers }) => workers.missedSince({ computingElement: 'C' }, 5),
      [
        /INDEX workers_missed_by_element \(instance=\? AND computing_element=\? AND status=\? AND <expr>>\?\)/,
      ],
    ],
    [
      'counting the living at computing elements',
      ({ figures }) => figures.aliveAtElements(),
      [
        /SEARCH workers USING COVERING INDEX workers_alive_by_element \(instance=\?( AND queue>\?)?\)|SCAN workers USING COVERING INDEX workers_alive_by_element/,
      ],
    ],
    [
      'a pass of kills',
      ({ workers }) => workers.toKill('Q', 1, 5, { after: 3, except: ['a'] }),
      [/SEARCH workers USING INDEX workers_to_kill \(instance=\? AND queue=\?/],
    ],
    [
      'a sweep',
      ({ workers }) => workers.toSweep('Q', 1, past, 5, { workers: [1, 2], places: ['a'] }),
      [/SEARCH workers USING INDEX workers_unswept \(instance=\? AND queue=\?/],
    ],
    [
      'a deletion',
      (store) => store.retention.prune(retention, async () => true),
      [
        /COVERING INDEX workers_swept \(instance=\? AND status=\? AND <expr><\?\)/,
        /SEARCH transitions USING (COVERING )?INDEX transitions_by_worker \(worker_id=\?\)/,
        /SEARCH workers USING COVERING INDEX workers_by_config \(config_id=\?\)/,
      ],
    ],
    [
      'what a deletion would delete',
      (store) => store.retention.due(retention),
      [/COVERING INDEX workers_swept \(instance=\? AND status=\? AND <expr><\?\)/],
    ],
  ];

  for (const [what, run, searches] of queries) {
    it(`${what} reads by index, and never all workers or all transitions`, async () => {
      const { store, sqlite, ran, close } = await recordingStore();
      await run(store);
      const plans = ran()
        .filter(({ sql }) => !/^(BEGIN|COMMIT)/.test(sql))
        .flatMap(({ sql, parameters }) => sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters))
        .map((step) => (step as { detail: string }).detail);
      await close();
      for (const search of searches)
        expect(
          plans.some((plan) => search.test(plan)),
          plans.join('\n'),
        ).to.equal(true);
      expect(plans.filter((plan) => /SCAN (workers|transitions)/.test(plan))).to.deep.equal([]);
    });
  }
});
