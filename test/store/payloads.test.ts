import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { copyDatabase } from '../../src/store/sqlite/backup.ts';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { filesOf } from '../../src/store/sqlite/files.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { nextTurn } from '../../src/util/clock.ts';
import type { PayloadFile } from '../../src/worker/payload.ts';
import type { WorkerStatus } from '../../src/worker/status.ts';
import { onEachDatabase, type TestDatabase } from '../support/each-database.ts';
import { namedWorker, secretPayload, secretText } from '../support/named-workers.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** A piece of the base64 of each secret: any page that has a row's part of it has this. */
const trace = Buffer.from(secretText(30)).toString('base64').slice(0, 16);

/** How often files of a database have the secret. */
function tracesIn(...files: readonly string[]): number {
  const texts = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'latin1'));
  return texts.reduce((sum, text) => sum + text.split(trace).length - 1, 0);
}

onEachDatabase('payloads', (database) => {
  const isFile = database.name === 'SQLite';
  let beside: TestDatabase;
  let file: string;
  let store: Store;

  beforeEach(async () => {
    beside = await database.fresh();
    file = typeof beside.place === 'string' ? beside.place : '';
    store = await beside.open();
  });
  afterEach(() => store.close());

  const payload = secretPayload(secretText(30));
  const insert = (...workers: readonly ReturnType<typeof namedWorker>[]) =>
    store.workers.insert(workers, 'pending', 10, 'submitter');
  const leave = (workerId: number, payloadId: string, to: WorkerStatus = 'submitted') =>
    store.workers.apply([{ workerId, from: 'pending', to, at: 20, source: 'submitter', payloadId }]);
  const withPayload = (id: number, payloadId = String(id), work = payload) =>
    namedWorker(id, `w${id}`, { payload: work, payloadId });

  it('are given back whole, secrets in their places', async () => {
    const plain = { argv: ['./run.sh', '', 'a b', '$(x)\n"'], values: { image: 'x' } };
    const empty = {};
    await insert(withPayload(1), withPayload(2, '2', plain), withPayload(3, '3', empty), workerOf(4));
    const found = await store.payloads.byIds(['1', '2', '3', '4']);
    expect([...found]).to.deep.equal([
      ['1', payload],
      ['2', plain],
      ['3', empty],
    ]);
    expect((await store.workers.byId(1))?.payloadId).to.equal('1');
    expect((await store.workers.liveRows()).map((row) => row.payloadId)).to.have.members([
      '1',
      '2',
      '3',
      null,
    ]);
  });

  it('are written for workers that get rows, once for workers that share one', async () => {
    await insert(namedWorker(9, 'w3'));
    expect([...(await insert(withPayload(1), withPayload(2, '1'), withPayload(3)))]).to.deep.equal([1, 2]);
    expect([...(await store.payloads.byIds(['1', '3'])).keys()]).to.deep.equal(['1']);
  });

  it('are written in one transaction, also large ones and those of many workers', async () => {
    const large = { files: [{ name: 'f', mode: 0o644, content: 'A'.repeat(1_400_000) }] };
    const workers = Array.from({ length: 12 }, (_, at) => withPayload(at + 1, String(at + 1), { ...large }));
    await insert(...workers);
    const found = await store.payloads.byIds(workers.map(({ payloadId }) => payloadId ?? ''));
    expect(
      [...found.values()].filter(({ files }) => files?.[0]?.content.length === 1_400_000),
    ).to.have.length(12);
  });

  it('are written with turns for others in between, where they are many and large', async () => {
    // What payloads have in common would be written once.
    const large = (at: number) => ({ files: [{ name: 'f', mode: 0o644, content: `${at}`.repeat(600_000) }] });
    const workers = Array.from({ length: 40 }, (_, at) => withPayload(at + 1, String(at + 1), large(at)));
    let [turns, isOver] = [0, false];
    const counting = (async () => {
      for (; !isOver; turns++) await nextTurn();
    })();
    await insert(...workers);
    isOver = true;
    await counting;
    expect(turns).to.be.greaterThan(15);
    expect(await store.payloads.byIds(workers.map(({ payloadId }) => payloadId ?? ''))).to.have.property(
      'size',
      40,
    );
  });

  describe('that have large files in common', () => {
    const script = {
      name: 'script.sh',
      mode: 0o755,
      content: Buffer.alloc(900_000, 'ab').toString('base64'),
    };
    const content = Buffer.from(secretText(3000)).toString('base64');
    const secret = { name: 'key', mode: 0o600, secret: true, content };
    /** As the jobs of one HTCJob: they differ in their number, and in a token. */
    const work = (number: number, files: readonly PayloadFile[] = [script, secret]) => ({
      argv: ['./script.sh', String(number)],
      files: [
        ...files,
        {
          name: 'token',
          mode: 0o600,
          secret: true,
          content: Buffer.from(`token ${number}`).toString('base64'),
        },
      ],
    });
    const idsTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

    it('keep these once, and are given back whole', async () => {
      const ids = idsTo(100);
      await insert(...ids.map((id) => withPayload(id, String(id), work(id))));
      const found = await store.payloads.byIds(ids.map(String));
      expect(ids.map((id) => found.get(String(id)))).to.deep.equal(ids.map((id) => work(id)));
      await store.close();
      store = await beside.open();
      expect((await store.payloads.byIds(['100'])).get('100')).to.deep.equal(work(100));
      if (!isFile) return;
      const bytes = filesOf(file).reduce((sum, one) => sum + (existsSync(one) ? statSync(one).size : 0), 0);
      expect(bytes, 'of a script with 1.2 MB').to.be.lessThan(5_000_000);
    });

    it('keep them apart from those of others', async () => {
      const other = { ...script, content: script.content.replace(/^..../, 'QUJD') };
      await insert(
        ...[1, 2].map((id) => withPayload(id, String(id), work(id))),
        ...[3, 4].map((id) => withPayload(id, String(id), work(id, [other, secret]))),
        withPayload(5, '5', work(5, [script])),
      );
      const ids = ['1', '2', '3', '4', '5'];
      const found = await store.payloads.byIds(ids);
      expect(ids.map((id) => found.get(id))).to.deep.equal([
        ...[work(1), work(2), work(3, [other, secret]), work(4, [other, secret]), work(5, [script])],
      ]);
    });

    it('have them until the last of them is needed no more, and leave no byte then', async () => {
      await insert(...idsTo(3).map((id) => withPayload(id, String(id), work(id))));
      // The row is named after the first.
      await leave(1, '1');
      expect([...(await store.payloads.byIds(['1', '2', '3']))]).to.have.deep.members([
        ['2', work(2)],
        ['3', work(3)],
      ]);
      await leave(2, '2');
      await leave(3, '3');
      await store.payloads.wipeUnneeded();
      if (isFile) expect(tracesIn(...filesOf(file))).to.equal(0);
      expect(await rowsOf('payload_shares')).to.equal(0);
    });

    if (isFile)
      it('are none after a backup, which has no byte of the secret', async () => {
        await insert(...idsTo(3).map((id) => withPayload(id, String(id), work(id))));
        const copy = join(temporaryDirectory(), 'copy.db');
        writeFileSync(copy, '');
        await copyDatabase(file, copy);
        expect(tracesIn(...filesOf(copy))).to.equal(0);
        const restored = await openStore(copy, 'factory');
        expect([...(await restored.payloads.byIds(['1', '2', '3']))]).to.deep.equal([]);
        expect(await restored.payloads.wipeUnneeded()).to.equal(3);
        await restored.close();
      });

    async function rowsOf(table: string): Promise<number | undefined> {
      return (await beside.rows<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))[0]?.count;
    }
  });

  it('are refused without a name, and nothing is recorded then', async () => {
    const nameless = namedWorker(2, 'b', { payload });
    const error = await insert(withPayload(1), nameless).then(
      () => '',
      (thrown: unknown) => String(thrown),
    );
    expect(error).to.contain('the payload of worker 2 has no id');
    expect(await store.workers.list({})).to.deep.equal([]);
  });

  describe('are wiped', () => {
    for (const to of ['submitted', 'running', 'missed', 'cancelled'] as const)
      it(`in the transaction in which their last pending worker becomes ${to}`, async () => {
        await insert(withPayload(1), withPayload(2, '1'), withPayload(3));
        await leave(1, '1', to);
        expect((await store.payloads.byIds(['1', '3'])).size).to.equal(2);
        await leave(2, '1', to);
        expect([...(await store.payloads.byIds(['1', '3'])).keys()]).to.deep.equal(['3']);
      });

    it('only with a change that counts: a refused one leaves them', async () => {
      await insert(withPayload(1));
      const refused = {
        workerId: 1,
        from: 'idle',
        to: 'running',
        at: 20,
        source: 'x',
        payloadId: '1',
      } as const;
      expect(await store.workers.apply([refused])).to.deep.equal([1]);
      expect((await store.payloads.byIds(['1'])).size).to.equal(1);
    });

    it('also where they were left over, and the living ones stay', async () => {
      await insert(withPayload(1), withPayload(2));
      await store.workers.apply([{ workerId: 1, from: 'pending', to: 'missed', at: 20, source: 'x' }]);
      expect((await store.payloads.byIds(['1', '2'])).size).to.equal(2);
      expect(await store.payloads.wipeUnneeded()).to.equal(1);
      expect(await store.payloads.wipeUnneeded()).to.equal(0);
      expect([...(await store.payloads.byIds(['1', '2'])).keys()]).to.deep.equal(['2']);
    });

    // Another database keeps deleted rows until it vacuums.
    for (const [size, length] of Object.entries(
      !isFile ? {} : { 'a short secret': 30, 'a long one': 300_000 },
    ))
      it(`from the file and its log, not only from the table: ${size}`, async () => {
        const ids = Array.from({ length: 60 }, (_, at) => at + 1);
        // Of different sizes, so that rows move from page to page.
        const work = (id: number) => secretPayload(secretText(length + ((id * 37) % 400)));
        for (const id of ids) await insert(withPayload(id, String(id), work(id)));
        expect(tracesIn(...filesOf(file))).to.be.greaterThan(ids.length - 1);
        // Neither in the order in which they came nor all at once.
        for (const id of ids.toSorted((a, b) => ((a * 7) % 61) - ((b * 7) % 61))) await leave(id, String(id));
        await store.payloads.wipeUnneeded();
        expect(tracesIn(...filesOf(file))).to.equal(0);
      });

    if (isFile)
      it('from the log later, where a reader is in the way now', async () => {
        await insert(withPayload(1));
        const reader = new Database(file, { readonly: true });
        const open = reader.prepare('SELECT worker_id FROM workers').iterate();
        open.next();
        await leave(1, '1');
        await store.payloads.wipeUnneeded();
        expect(tracesIn(`${file}-wal`)).to.be.greaterThan(0);
        open.return?.();
        reader.close();
        await store.payloads.wipeUnneeded();
        expect(tracesIn(...filesOf(file))).to.equal(0);
      });
  });

  if (isFile)
    describe('in a backup', () => {
      const backUp = async () => {
        const copy = join(temporaryDirectory(), 'backup.db');
        writeFileSync(copy, '', { mode: 0o600 });
        const workers = await copyDatabase(file, copy);
        return { copy, workers };
      };

      it('have no byte of a secret, and all the rest', async () => {
        await store.queues.configId('Q', '{}', 1);
        const plain = { argv: ['./run.sh'] };
        await insert(
          ...Array.from({ length: 40 }, (_, at) => withPayload(at + 1)),
          withPayload(50, '50', plain),
        );
        for (let id = 1; id <= 20; id++) await leave(id, String(id));
        const { copy, workers } = await backUp();
        expect(tracesIn(...filesOf(copy))).to.equal(0);
        expect(filesOf(copy).filter((one) => existsSync(one))).to.deep.equal([copy]);
        expect(existsSync(`${copy}.clean`)).to.equal(false);
        expect(workers).to.equal(20);
        expect(checkDatabase(copy).findings).to.deep.equal([]);
        const restored = await openStore(copy, 'factory');
        try {
          // A payload without its secret files is none.
          expect([...(await restored.payloads.byIds(['30', '50']))]).to.deep.equal([['50', plain]]);
        } finally {
          await restored.close();
        }
      });

      it('leave no news of intents, whose rows a backup leaves out', async () => {
        store.news.listen(new Set(['toy']));
        await insert(namedWorker(1, 'a'), namedWorker(2, 'b'));
        await store.workers.apply([{ workerId: 2, from: 'pending', to: 'running', at: 20, source: 'x' }]);
        const { copy } = await backUp();
        const restored = await openStore(copy, 'factory');
        try {
          const news = await restored.news.next('toy', 10);
          expect(news.map(({ worker }) => worker.workerId)).to.deep.equal([2, 2]);
        } finally {
          await restored.close();
        }
      });
    });
});
