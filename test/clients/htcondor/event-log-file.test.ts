import { appendFileSync, copyFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LogPosition, type LogRead, readLog } from '../../../src/clients/htcondor/event-log-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const now = Date.UTC(2026, 10, 21, 20);
const event = (cluster: number) =>
  `000 (${cluster}.000.000) 2026-11-21 19:40:39 Job submitted from host: <a>\n...\n`;

/** A reader as it is after a restart: it has nothing but its position. */
function reader(path: string) {
  let stored: string | undefined;
  const all = async () => {
    const found: number[] = [];
    const reads: LogRead[] = [];
    for (let more = true; more;) {
      const read = await readLog(
        path,
        stored === undefined ? undefined : (JSON.parse(stored) as LogPosition),
        now,
      );
      found.push(...read.events.map(({ cluster }) => cluster));
      reads.push(read);
      if (read.position) stored = JSON.stringify(read.position);
      more = read.more;
    }
    return {
      found,
      gap: reads.some(({ gap }) => gap),
      garbage: reads.flatMap(({ garbage }) =>
        garbage.map(({ file, at, excerpt }) => ({ file, at, excerpt })),
      ),
    };
  };
  return { all };
}

describe('the file of an event log', () => {
  let path: string;
  beforeEach(() => {
    path = join(temporaryDirectory(), 'EventLog');
  });

  it('is read on where it was left, half a record later', async () => {
    const { all } = reader(path);
    expect(await all()).to.deep.equal({ found: [], gap: false, garbage: [] });
    writeFileSync(path, event(1) + event(2).slice(0, 30));
    expect((await all()).found).to.deep.equal([1]);
    expect((await all()).found).to.deep.equal([]);
    appendFileSync(path, event(2).slice(30) + event(3));
    expect(await all()).to.deep.equal({ found: [2, 3], gap: false, garbage: [] });
  });

  for (const [how, names] of [
    ['.old', ['.old']],
    ['numbers', ['.1', '.2', '.3']],
  ] as const) {
    it(`the event log is followed through a rotation to ${how}`, async () => {
      const { all } = reader(path);
      writeFileSync(path, event(1));
      await all();
      let next = 2;
      for (let round = 0; round < names.length; round++) {
        appendFileSync(path, event(next++));
        for (const [at, name] of [...names.entries()].reverse()) {
          const from = at === 0 ? path : `${path}${names[at - 1] ?? ''}`;
          try {
            renameSync(from, `${path}${name}`);
          } catch {
            // There is none yet.
          }
        }
        writeFileSync(path, event(next++));
      }
      const { found, gap } = await all();
      expect(gap).to.equal(false);
      expect(found).to.deep.equal(Array.from({ length: next - 2 }, (_, at) => at + 2));
    });
  }

  it('is not left before the next one has begun, and half a record at its end is told of', async () => {
    const { all } = reader(path);
    writeFileSync(path, event(1));
    await all();
    renameSync(path, `${path}.old`);
    appendFileSync(`${path}.old`, event(2));
    writeFileSync(path, '');
    expect((await all()).found).to.deep.equal([2]);
    appendFileSync(`${path}.old`, event(3).slice(0, 20));
    appendFileSync(path, event(4));
    expect(await all()).to.deep.equal({
      found: [4],
      gap: false,
      garbage: [{ file: `${path}.old`, at: event(1).length * 2, excerpt: event(3).slice(0, 20).trim() }],
    });
  });

  it('has a gap where it was rotated away, cut, or is another one with the same inode', async () => {
    const { all } = reader(path);
    writeFileSync(path, event(1));
    await all();
    copyFileSync(path, `${path}.copy`);
    rmSync(path);
    expect((await all()).gap).to.equal(true);
    writeFileSync(path, event(2) + event(3));
    expect(await all()).to.deep.include({ found: [2, 3], gap: true });
    truncateSync(path, 0);
    appendFileSync(path, event(4));
    expect(await all()).to.deep.include({ found: [4], gap: true });
    // The same inode, other contents, longer than before.
    writeFileSync(path, event(5) + event(6) + event(7));
    expect(await all()).to.deep.include({ found: [5, 6, 7], gap: true });
    expect(await all()).to.deep.equal({ found: [], gap: false, garbage: [] });
  });

  it('is read in pieces where it is long', async () => {
    const { all } = reader(path);
    const count = 60_000;
    writeFileSync(path, Array.from({ length: count }, (_, at) => event(at)).join(''));
    const { found, garbage } = await all();
    expect(garbage).to.deep.equal([]);
    expect(found).to.have.length(count);
    expect(found.every((cluster, at) => cluster === at)).to.equal(true);
  });
});
