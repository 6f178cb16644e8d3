import { expect } from 'chai';
import fc from 'fast-check';
import { readEntryLines, writeEntryLines } from '../../../src/config/cric/entry-lines.ts';
import type { JsonObject } from '../../../src/util/json.ts';

const ours = { pilot_manager: 'Harvester', harvester: 'us' };
const all = () => true;
const none = () => false;
const written = (entries: Iterable<readonly [string, JsonObject]>) =>
  Buffer.from(writeEntryLines(new Map(entries)));
const of = (entries: Record<string, JsonObject>) => written(Object.entries(entries));
const namesIn = async (...asked: Parameters<typeof readEntryLines>) => [
  ...((await readEntryLines(...asked))?.entries.keys() ?? []),
];

describe('the queues of CRIC, an entry a line', () => {
  it('come back as they were written, with their lines, whatever their names', async () => {
    const name = fc.string({ unit: 'binary' });
    const entry = fc.record({ status: fc.json(), harvester: name, 'a":{b': fc.jsonValue() });
    const entries = fc.uniqueArray(fc.tuple(name, entry), { minLength: 1, selector: ([key]) => key });
    await fc.assert(
      fc.asyncProperty(entries, async (some) => {
        const bytes = written(some);
        const read = await readEntryLines(bytes, all, 'us');
        expect(read?.lines.size).to.equal(some.length);
        const lines = bytes.toString('utf8').split('\n');
        for (const [index, [key, value]] of some.entries()) {
          const whole: unknown = JSON.parse(JSON.stringify({ pilot_manager: null, ...value }));
          expect(read?.entries.get(key)).to.deep.equal(whole);
          expect(read?.lines.get(key)).to.equal(index + 2);
          expect(lines[index + 1]?.startsWith(JSON.stringify(key))).to.equal(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('are those asked for by name, and those of this instance alone', async () => {
    const bytes = of({
      MINE: ours,
      OTHERS: { ...ours, harvester: 'us2' },
      PUSHED: { ...ours, pilot_manager: 'APF' },
      ASKED: { status: 'online' },
      'QUOTED":{': ours,
    });
    expect(await namesIn(bytes, (name) => name === 'ASKED', 'us')).to.deep.equal([
      'MINE',
      'ASKED',
      'QUOTED":{',
    ]);
    expect(await namesIn(bytes, none, 'nobody')).to.deep.equal([]);
  });

  it('hole 8: are none where an entry is too deep to be written again', async () => {
    const deep = `${'['.repeat(9000)}${']'.repeat(9000)}`;
    const bytes = of({ Q: { status: 'online', deep: '@' } });
    const damaged = Buffer.from(bytes.toString('utf8').replace('"@"', deep));
    expect(await readEntryLines(damaged, all, 'us')).to.equal(undefined);
    expect((await readEntryLines(damaged, none, 'us'))?.entries.size).to.equal(0);
  });

  it('hole 8: are without those of more values than honest ones have, which are named', async () => {
    const values = (count: number) => ({ status: 'online', list: Array<number>(count).fill(1) });
    // Beside those of its list, the line has four.
    const read = await readEntryLines(of({ MOST: values(9_996), MORE: values(9_997), B: ours }), all, 'us');
    expect([...(read?.entries.keys() ?? [])]).to.deep.equal(['MOST', 'B']);
    expect([...(read?.leftOut ?? [])]).to.deep.equal([['MORE', 'more than 10000 values']]);
    expect(read?.lines.get('B')).to.equal(4);
  });

  it('are JSON, so that other programs can read them', () => {
    expect(JSON.parse(of({ A: { ...ours, x: [1] }, B: {} }).toString('utf8'))).to.deep.equal({
      A: { ...ours, x: [1] },
      B: { pilot_manager: null, harvester: null },
    });
  });

  it('are not taken from a file that is cut, or not of this form', async () => {
    const bytes = of({ A: ours, B: ours });
    for (const cut of [0, 1, 2, 10, bytes.length - 1])
      expect(await readEntryLines(bytes.subarray(0, cut), all, 'us'), String(cut)).to.equal(undefined);
    for (const text of ['', '{}', '{"A": {}}', '{\nno\n}\n', '{\n"A":1\n}\n', '{\n"A":{"x":\n}\n'])
      expect(await readEntryLines(Buffer.from(text), all, 'us'), text).to.equal(undefined);
  });
});
