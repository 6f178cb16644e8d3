import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { inFiles, memoriesToRead, sourceMemories } from '../../src/daemon/source-memory.ts';
import type { Store } from '../../src/store/store.ts';
import { onEachDatabase } from '../support/each-database.ts';
import { temporaryDirectory } from '../support/temporary.ts';

onEachDatabase('the memory of a source', (database) => {
  let store: Store;
  let stateDir: string;
  let file: string;

  beforeEach(async () => {
    store = await database.openNew();
    stateDir = temporaryDirectory();
    file = join(stateDir, 'toy', 'orders.json');
  });

  afterEach(async () => {
    await store.close();
  });

  const inRows = () => sourceMemories(stateDir, store, true)('toy');
  const besideRows = () => sourceMemories(stateDir, store, false)('toy');
  const leave = (text: string) => {
    mkdirSync(join(stateDir, 'toy'));
    writeFileSync(file, text);
  };

  it('is what was written last under a name, for this source alone', async () => {
    for (const memories of [sourceMemories(stateDir, store, true), inFiles(stateDir)]) {
      const [toy, other] = [memories('toy'), memories('other')];
      expect(await toy.read('orders.json')).to.equal(undefined);
      await toy.write('orders.json', 'first');
      await toy.write('orders.json', 'second "ü"');
      await toy.write('more.json', 'more');
      expect(await toy.read('orders.json')).to.equal('second "ü"');
      expect(await other.read('orders.json')).to.equal(undefined);
    }
  });

  it('is seen on another machine where it is in the database', async () => {
    await inRows().write('orders.json', 'known');
    expect(existsSync(file)).to.equal(false);
    const elsewhere = sourceMemories(temporaryDirectory(), store, true)('toy');
    expect(await elsewhere.read('orders.json')).to.equal('known');
    expect(elsewhere.placeOf('orders.json')).to.equal(
      `toy orders.json in the table source_memories of ${store.file}`,
    );
  });

  it('moves from a file into the database, once', async () => {
    leave('from before');
    expect(await inRows().read('orders.json')).to.equal('from before');
    expect(existsSync(file)).to.equal(false);
    expect(await inRows().read('orders.json')).to.equal('from before');
    // What a daemon on this machine left long ago does not count.
    writeFileSync(file, 'stale');
    expect(await inRows().read('orders.json')).to.equal('from before');
    // Nor does it once an operator has removed the row.
    await store.sourceMemories.remove('toy', 'orders.json');
    expect(await inRows().read('orders.json')).to.equal(undefined);
  });

  it('is right in the database also where a file that a daemon left cannot be removed', async () => {
    await inRows().write('orders.json', 'right');
    // `rm` refuses a directory.
    mkdirSync(file, { recursive: true });
    for (const memory of [inRows(), inRows()]) {
      expect(await memory.read('orders.json')).to.equal('right');
      await memory.write('orders.json', 'right');
    }
  });

  it('moves from a file once, however many ask for it at the same time', async () => {
    leave('from before');
    const memory = inRows();
    const read = store.sourceMemories.read.bind(store.sourceMemories);
    let asked = 0;
    store.sourceMemories.read = async (...of) => {
      const row = await read(...of);
      // The second one has its answer when the first one has moved the file.
      if (++asked === 2) await new Promise((moved) => setTimeout(moved, 50));
      return row;
    };
    const all = await Promise.all([memory.read('orders.json'), memory.read('orders.json')]);
    expect(all).to.deep.equal(['from before', 'from before']);
  });

  it('is seen by commands where it is, and left as it is', async () => {
    await inRows().write('orders.json', 'a row');
    leave('a file');
    const memory = memoriesToRead(stateDir, store, true)('toy');
    expect(memory.placeOf('orders.json')).to.equal(inRows().placeOf('orders.json'));
    expect(memoriesToRead(stateDir, store)('toy').placeOf('orders.json')).to.equal(file);
    expect(await memory.read('orders.json')).to.equal('a row');
    await store.sourceMemories.remove('toy', 'orders.json');
    expect(await memory.read('orders.json')).to.equal('a file');
    await memory.write('orders.json', 'changed');
    for (const all of [memory, memoriesToRead(stateDir)('toy')])
      expect(await all.read('orders.json')).to.equal('a file');
    expect(await store.sourceMemories.read('toy', 'orders.json')).to.equal(undefined);
  });

  it('moves back into a file, and counts more than what was there', async () => {
    await inRows().write('orders.json', 'newer');
    leave('stale');
    expect(await besideRows().read('orders.json')).to.equal('newer');
    expect(readFileSync(file, 'utf8')).to.equal('newer');
    await besideRows().write('orders.json', 'newest');
    expect(await besideRows().read('orders.json')).to.equal('newest');
    expect(await store.sourceMemories.read('toy', 'orders.json')).to.equal(undefined);
  });
});
