import { appendFileSync, mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LogOpts } from '../../../src/clients/interlink/wire.ts';
import { fileView, type InTurn, type LogView } from '../../../src/sources/interlink/logs/log-view.ts';
import { type LogParts, type LogStage, readLog } from '../../../src/sources/interlink/logs/read-log.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const all: LogOpts = {
  Tail: 0,
  Bytes: 0,
  Timestamps: false,
  Follow: false,
  Previous: false,
  SinceSeconds: 0,
  SinceTime: '0001-01-01T00:00:00Z',
};
const at = (text: string) => Date.parse(text) / 1000;

describe('A12: the log of a container of interLink', () => {
  const file = join(temporaryDirectory(), 'main.log');
  writeFileSync(file, 'one\ntwo\nthree\nfour');
  writeFileSync(
    `${file}.times`,
    `4 ${at('2026-11-20T10:00:00Z')}\n8 ${at('2026-11-20T10:00:10Z')}\n18 ${at('2026-11-20T10:01:00Z')}\n`,
  );

  const rows: readonly (readonly [title: string, opts: Partial<LogOpts>, text: string])[] = [
    ['all of it', {}, 'one\ntwo\nthree\nfour'],
    ['the last line, which has no end yet', { Tail: 1 }, 'four'],
    ['the last two lines', { Tail: 2 }, 'three\nfour'],
    ['more lines than there are', { Tail: 99 }, 'one\ntwo\nthree\nfour'],
    ['the first bytes', { Bytes: 5 }, 'one\nt'],
    ['the first bytes of the last lines', { Tail: 2, Bytes: 3 }, 'thr'],
    ['lines since a time', { SinceTime: '2026-11-20T10:00:10Z' }, 'two\nthree\nfour'],
    ['lines since a time between two', { SinceTime: '2026-11-20T10:00:30+00:00' }, 'three\nfour'],
    ['lines since a time after all', { SinceTime: '2026-11-20T12:00:00Z' }, ''],
    ['lines since long ago', { SinceSeconds: 2_000_000_000 }, 'one\ntwo\nthree\nfour'],
    ['nothing of the last second', { SinceSeconds: 1 }, ''],
    [
      'the time before each line',
      { Timestamps: true, Tail: 3 },
      '2026-11-20T10:00:10Z two\n2026-11-20T10:01:00Z three\n2026-11-20T10:01:00Z four',
    ],
  ];
  for (const [title, opts, text] of rows)
    it(`shows ${title}`, async () => {
      expect(await textOf(file, opts)).to.equal(text);
    });

  it('shows the last lines of a long log', async () => {
    const long = join(temporaryDirectory(), 'long.log');
    const lines = Array.from({ length: 50_000 }, (_, index) => `line ${index} ${'x'.repeat(index % 90)}\n`);
    writeFileSync(long, lines.join(''));
    for (const count of [1, 2, 777, 20_000])
      expect(await textOf(long, { Tail: count })).to.equal(lines.slice(-count).join(''));
  });

  it('is empty where there is none, and follows no link and no directory', async () => {
    const directory = temporaryDirectory();
    expect(await textOf(join(directory, 'none.log'), {})).to.equal('');
    symlinkSync('/etc/passwd', join(directory, 'link.log'));
    expect(await textOf(join(directory, 'link.log'), {})).to.equal('');
    mkdirSync(join(directory, 'directory.log'));
    expect(await textOf(join(directory, 'directory.log'), {})).to.equal('');
  });

  describe('hole 8: that a container made without an end', () => {
    /** Reads a log with this way of reading its file. @returns how often it was read, and how often in vain */
    async function readsOf(
      opts: Partial<LogOpts>,
      path: string,
      onRead: (reads: number) => void,
      signal = new AbortController().signal,
    ) {
      const count = { reads: 0, empty: 0 };
      const log = readLog({ ...all, ...opts }, signal, {
        ...partsOf(path, () => 'over'),
        look: async () => {
          const view = await fileView(path);
          const readAt: LogView['readAt'] = async (place, length) => {
            onRead(++count.reads);
            if (count.reads > 3000) throw new Error('it goes on and on');
            const piece = (await view?.readAt(place, length)) ?? Buffer.alloc(0);
            if (piece.length === 0) count.empty++;
            return piece;
          };
          return view && { ...view, readAt };
        },
      });
      let bytes = 0;
      for await (const piece of log) bytes += piece.length;
      return { ...count, bytes };
    }
    const none = () => undefined;
    let huge: string;

    beforeEach(() => {
      huge = join(temporaryDirectory(), 'huge.log');
      writeFileSync(huge, 'one\n');
      truncateSync(huge, 2 ** 42);
    });

    for (const opts of [{ Tail: 10 }, { SinceTime: '2026-11-20T10:00:00Z' }])
      it(`is searched no further once its reader has gone: ${JSON.stringify(opts)}`, async () => {
        writeFileSync(`${huge}.times`, `5 ${at('2026-11-20T09:00:00Z')}\n`);
        const gone = new AbortController();
        const leave = (reads: number) => {
          if (reads === 20) gone.abort();
        };
        expect(await readsOf(opts, huge, leave, gone.signal)).to.include({ reads: 20, bytes: 0 });
      });

    it('is searched no further for its last lines once it was cut', async () => {
      const cut = (reads: number) => {
        if (reads === 20) truncateSync(huge, 4);
      };
      const { reads, bytes } = await readsOf({ Tail: 10 }, huge, cut);
      expect(reads).to.be.lessThan(25);
      expect(bytes).to.equal(4);
    });

    it('has its last lines, or those since a time, searched in 64 MiB at most', async () => {
      for (const opts of [{ Tail: 10 }, { SinceTime: '2026-11-20T10:00:00Z' }]) {
        writeFileSync(`${huge}.times`, `5 ${at('2026-11-20T09:00:00Z')}\n`);
        const { reads } = await readsOf({ ...opts, Bytes: 1 }, huge, none);
        expect(reads, JSON.stringify(opts)).to.be.within(1024, 1030);
      }
      const stop = new AbortController();
      const pieces = readLog(
        { ...all, Tail: 10 },
        stop.signal,
        partsOf(huge, () => 'over'),
      );
      let bytes = 0;
      for await (const piece of pieces) bytes += piece.length;
      expect(bytes).to.equal(64 * 2 ** 20);
    });

    it('has stamps of which the last 8 MiB are read, and no step of that takes long', async () => {
      const path = join(temporaryDirectory(), 'stamped.log');
      writeFileSync(path, 'one\ntwo\n');
      writeFileSync(`${path}.times`, '');
      truncateSync(`${path}.times`, 2 ** 42);
      appendFileSync(`${path}.times`, `\n4 ${at('2026-11-20T09:00:00Z')}\n8 ${at('2026-11-20T10:00:00Z')}\n`);
      let calls = 0;
      const view = await fileView(path, (call) => {
        if (++calls > 1000) throw new Error('it goes on and on');
        return call();
      });
      expect(await view?.stamps()).to.deep.equal([
        { bytes: 4, seconds: at('2026-11-20T09:00:00Z') },
        { bytes: 8, seconds: at('2026-11-20T10:00:00Z') },
      ]);
      expect(calls).to.be.lessThan(140);
      await view?.close();
    });

    it('has stamps that are read no further once its reader has gone', async () => {
      const path = join(temporaryDirectory(), 'stamped.log');
      writeFileSync(path, 'one\ntwo\n');
      writeFileSync(`${path}.times`, '1 1\n'.repeat(1_000_000));
      const gone = new AbortController();
      let calls = 0;
      const inTurn: InTurn = async (call) => {
        calls++;
        if (calls === 10) gone.abort();
        gone.signal.throwIfAborted();
        return call();
      };
      const parts = { ...partsOf(path, () => 'over'), look: () => fileView(path, inTurn) };
      for await (const piece of readLog({ ...all, Timestamps: true }, gone.signal, parts))
        expect(piece).to.equal('none comes');
      expect(calls).to.equal(10);
    });
  });

  describe('A13: that is followed', () => {
    let followed: string;
    let stage: LogStage;
    let text: string;
    let reading: Promise<void>;
    let gone: AbortController;

    beforeEach(() => {
      followed = join(temporaryDirectory(), 'main.log');
      stage = 'open';
      text = '';
      gone = new AbortController();
    });
    afterEach(async () => {
      gone.abort();
      await reading;
    });

    function follow(opts: Partial<LogOpts> = {}): void {
      const pieces = readLog(
        { ...all, Follow: true, ...opts },
        gone.signal,
        partsOf(followed, () => stage),
      );
      reading = (async () => {
        for await (const piece of pieces) text += Buffer.from(piece).toString();
      })();
    }

    it('is waited for while it is not there, and ends with its container', async () => {
      follow();
      writeFileSync(followed, 'one\n');
      await until('the first line has come', () => text === 'one\n');
      appendFileSync(followed, 'two\n');
      stage = 'ended';
      await reading;
      expect(text).to.equal('one\ntwo\n');
    });

    it('goes on from its beginning when it is cut', async () => {
      writeFileSync(followed, 'before\n');
      follow({ Tail: 1 });
      await until('the last line has come', () => text === 'before\n');
      truncateSync(followed);
      appendFileSync(followed, 'new\n');
      await until('the new line has come', () => text === 'before\nnew\n');
    });

    it('goes on after the last line that was shown when the runner has cut off its beginning', async () => {
      const line = (index: number) => `line ${index}\n`;
      const old = Array.from({ length: 2000 }, (_, index) => line(index)).join('');
      writeFileSync(followed, old);
      writeFileSync(`${followed}.times`, `${old.length} 1800000000\n`);
      follow({ Timestamps: true, Tail: 1 });
      await until('the last line has come', () => text.endsWith(line(1999)));
      const notice = 'thresher: its beginning was cut off here\n';
      const cut = `${notice}${old.slice(old.length / 2)}${line(2000)}`;
      writeFileSync(followed, cut);
      writeFileSync(`${followed}.times`, `${cut.length} 1800000060\n`);
      await until('the next line has come', () => text.endsWith(line(2000)));
      expect(text).to.match(/^\S+ line 1999\n\S+ line 2000\n$/);
    });

    it('goes on with another file that takes its place', async () => {
      writeFileSync(followed, 'before\n');
      follow();
      await until('the first line has come', () => text === 'before\n');
      writeFileSync(`${followed}.new`, 'a longer first line\nsecond\n');
      renameSync(`${followed}.new`, followed);
      await until('all of the other file has come', () => text === 'before\na longer first line\nsecond\n');
    });

    it('ends when its reader goes away', async () => {
      writeFileSync(followed, 'one\n');
      follow();
      await until('the first line has come', () => text === 'one\n');
      gone.abort();
      await reading;
      expect(text).to.equal('one\n');
    });

    it('is read no further than its reader takes it, however long it is', async () => {
      writeFileSync(followed, '');
      truncateSync(followed, 2 ** 30);
      let read = 0;
      const pieces = readLog({ ...all, Follow: true }, gone.signal, {
        ...partsOf(followed, () => stage),
        look: async () => {
          const view = await fileView(followed);
          const readAt: LogView['readAt'] = async (place, length) => {
            read += length;
            return (await view?.readAt(place, length)) ?? Buffer.alloc(0);
          };
          return view && { ...view, readAt };
        },
      });
      for (let taken = 0; taken < 10; taken++) expect((await pieces.next()).value).to.have.length(64 * 1024);
      expect(read).to.equal(10 * 64 * 1024);
      await pieces.return(undefined);
      reading = Promise.resolve();
    });
  });

  async function textOf(path: string, opts: Partial<LogOpts>): Promise<string> {
    const pieces: Uint8Array[] = [];
    const log = readLog(
      { ...all, ...opts },
      new AbortController().signal,
      partsOf(path, () => 'over'),
    );
    for await (const piece of log) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  }
});

function partsOf(file: string, stage: () => LogStage): LogParts {
  return {
    clock: systemClock,
    stage: async () => stage(),
    look: () => fileView(file),
    intervals: { file: 20, machine: 20 },
  };
}
