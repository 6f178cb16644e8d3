import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { openStore, openStoreBeside, type Store } from '../../src/store/store.ts';
import { workerStatuses } from '../../src/worker/status.ts';
import { requirements } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Row = Readonly<Record<string, unknown>>;

/** Files that earlier versions wrote, as they left them: made once, and never again. */
const earlier = {
  '0002-retention': 'fixtures/version-0002-retention.db.gz',
  '0003-computing-element': 'fixtures/version-0003-computing-element.db.gz',
} as const;

function unpacked(file: string): string {
  const copy = join(temporaryDirectory(), 'thresher.db');
  writeFileSync(copy, gunzipSync(readFileSync(join(import.meta.dirname, file))));
  return copy;
}

function contents(file: string): Map<string, Row[]> {
  const db = new Database(file, { readonly: true });
  try {
    const tables = db
      .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
      .pluck()
      .all() as string[];
    return new Map(
      tables.map((table) => [table, db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all() as Row[]]),
    );
  } finally {
    db.close();
  }
}

/** Rows with the columns that they had before, for later versions may add some. */
function inColumnsOf(before: readonly Row[], after: readonly Row[]): Row[] {
  const [{ ...columns } = {}] = before;
  return after.map((row) => Object.fromEntries(Object.keys(columns).map((name) => [name, row[name]])));
}

for (const [version, file] of Object.entries(earlier))
  describe(`a database of version ${version}`, () => {
    it('is opened by the daemon, keeps every row, and is sound', async () => {
      const copy = unpacked(file);
      const before = contents(copy);
      expect(before.get('workers')).to.have.length(54);
      expect(before.get('transitions')).to.have.length(144);
      await (await openStore(copy, 'factory')).close();
      const after = contents(copy);
      for (const [table, rows] of before) {
        // Migrations are only ever added.
        const kept = table.startsWith('kysely') ? after.get(table)?.slice(0, rows.length) : after.get(table);
        expect(inColumnsOf(rows, kept ?? []), table).to.deep.equal(rows);
      }
      expect(checkDatabase(copy).findings).to.deep.equal([]);
    });

    describe('says of', () => {
      let store: Store;

      beforeEach(async () => {
        const copy = unpacked(file);
        await (await openStore(copy, 'factory')).close();
        store = await openStoreBeside(copy, 'factory', 'write');
      });
      afterEach(() => store.close());

      it('its workers what was written', async () => {
        expect((await store.workers.list({})).length).to.equal(54);
        const counts = await store.workers.countAll();
        for (const status of workerStatuses) {
          const workers = counts.filter((one) => one.status === status).map((one) => one.workers);
          expect(
            workers.reduce((sum, one) => sum + one, 0),
            status,
          ).to.equal(6);
        }
        const [failed] = await store.workers.list({ queue: 'Q', statuses: ['failed'], limit: 1 });
        const id = failed?.workerId ?? 0;
        expect(failed).to.deep.include({
          computingSite: 'SITE',
          origin: { kind: 'fill', uid: 'Q', index: id },
          requirements,
          placement: 'local:/work',
          handle: { batchID: `b${id}`, pid: id },
          nativeStatus: 'native failed',
          exitCode: 7,
          errorCode: 'exit-status',
          diagMessage: `why ${id}`,
          node: `node${id}`,
          detail: { containers: [id] },
          computingElement: null,
          creationTime: 10_000,
          submitTime: 11_000,
          startTime: 11_500,
          endTime: 12_000 + id,
        });
        expect((await store.workers.history(id)).map(({ to_status }) => to_status)).to.deep.equal([
          ...['pending', 'submitted', 'failed'],
        ]);
        expect((await store.workers.byId(1000))?.computingElement).to.equal('ce.site.test:9619');
        const killed = (await store.workers.liveRows()).filter((row) => row.killed);
        expect(killed.every((row) => row.queue === 'Q' && row.status === 'running')).to.equal(true);
        expect(killed.length).to.be.greaterThan(0);
      });

      it('everything else what was written', async () => {
        expect(await store.ids.take(1)).to.equal(1060);
        expect(await store.queues.snapshot(1)).to.deep.equal({
          queue: 'Q',
          snapshot: '{"name":"Q","maxWorkers":60}',
        });
        const [one, two] = await store.queues.all();
        expect(one).to.deep.equal({
          queue: 'Q',
          queueStatus: 'online',
          limits: { maxWorkers: 60, nQueueLimitWorker: null },
          reasons: [{ code: 'queue-limit', message: 'full' }],
          reportTime: 15_000,
        });
        expect(two?.control).to.deep.equal({ mode: 'paused', reason: 'downtime', since: 15_500 });
        expect(await store.commands.open()).to.deep.equal([
          { id: 2, command: { kind: 'sweep', orphans: false } },
        ]);
        expect(await store.commands.result(1)).to.deep.equal({ ok: true, message: 'paused' });
        expect(await store.orphans.all()).to.have.length(1);
      });
    });
  });
