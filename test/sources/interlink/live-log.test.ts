import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import type { LogOpts } from '../../../src/clients/interlink/wire.ts';
import { LiveLog } from '../../../src/sources/interlink/logs/live-log.ts';
import { type LogStage, readLog } from '../../../src/sources/interlink/logs/read-log.ts';
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
const mib = 1024 * 1024;

/** The directory of a job on another machine, as its backend shows it: the last bytes of a file. */
class Machine {
  readonly directory = temporaryDirectory();
  log = Buffer.alloc(0);
  times = '';
  runs = true;
  tries = 0;
  /** Sizes of the looks at the log. */
  readonly looks: number[] = [];
  readonly live: LiveLog;

  constructor() {
    this.live = new LiveLog('main', {
      directory: this.directory,
      peek: async (file, most) => {
        this.tries++;
        if (!this.runs) return undefined;
        if (file === 'main.log') this.looks.push(most);
        return file === 'main.log' ? this.log.subarray(-most) : Buffer.from(this.times).subarray(-most);
      },
    });
  }

  write(text: string): void {
    this.log = Buffer.concat([this.log, Buffer.from(text)]);
    this.times += `${this.log.length} 1800000000\n`;
  }
}

describe('A12, A13: the log of a running container of interLink on another machine', () => {
  let machine: Machine;
  let stage: LogStage;
  let text: string;
  let gone: AbortController;
  let reading: Promise<void>;

  beforeEach(() => {
    machine = new Machine();
    stage = 'open';
    text = '';
    gone = new AbortController();
    reading = Promise.resolve();
  });
  afterEach(async () => {
    gone.abort();
    await reading;
    expect(readdirSync(machine.directory)).to.deep.equal([]);
  });

  function read(opts: Partial<LogOpts> = {}) {
    return readLog({ ...all, ...opts }, gone.signal, {
      clock: systemClock,
      stage: async () => stage,
      look: (shown) => machine.live.look(shown),
      intervals: { file: 10, machine: 10 },
    });
  }

  async function whole(opts: Partial<LogOpts> = {}): Promise<string> {
    const pieces: Uint8Array[] = [];
    for await (const piece of read(opts)) pieces.push(piece);
    return Buffer.concat(pieces).toString('latin1');
  }

  function follow(opts: Partial<LogOpts> = {}): void {
    reading = (async () => {
      for await (const piece of read({ Follow: true, ...opts }))
        text += Buffer.from(piece).toString('latin1');
    })();
  }

  it('hole 8: lets all else have its turn while a long one is searched for the part that was shown', async () => {
    machine.write('a'.repeat(12 * mib));
    const directory = join(temporaryDirectory(), 'none');
    const live = new LiveLog('main', {
      directory,
      peek: async (name, most) => (name === 'main.log' ? machine.log.subarray(-most) : undefined),
    });
    const end = Buffer.concat([Buffer.from('b'), Buffer.alloc(4095, 'a')]);
    machine.log.write('b', machine.log.length - 8 * mib);
    let isOver = false;
    const look = live.look({ place: 4 * mib, end }).catch(() => (isOver = true));
    let turns = 0;
    while (!isOver) {
      await setImmediate();
      turns++;
    }
    await look;
    expect(turns).to.be.above(8);
  });

  it('has the same lines and bytes as one in a file', async () => {
    machine.write('one\n');
    machine.write('two\nthree');
    expect(await whole()).to.equal('one\ntwo\nthree');
    expect(await whole({ Tail: 2 })).to.equal('two\nthree');
    expect(await whole({ Bytes: 5 })).to.equal('one\nt');
    expect(await whole({ Tail: 1, Timestamps: true })).to.equal('2027-01-15T08:00:00Z three');
    expect(await whole({ SinceTime: '2027-01-15T08:00:01Z' })).to.equal('');
    machine.log = Buffer.from([0, 255, 128, 10, 13, 0]);
    expect(Buffer.from(await whole(), 'latin1')).to.deep.equal(machine.log);
  });

  it('has its last 10 MiB where it is longer, as kubelet keeps no more of it', async () => {
    const line = (index: number) => `line ${String(index).padStart(10, '0')}\n`;
    machine.write(Array.from({ length: 700_000 }, (_, index) => line(index)).join(''));
    const shown = await whole();
    expect(shown).to.have.length(10 * mib);
    expect(shown.endsWith(line(699_999))).to.equal(true);
    expect(await whole({ Tail: 1 })).to.equal(line(699_999));
  });

  it('is followed by its end alone, and loses and doubles no line', async () => {
    const line = (index: number) => `line ${index}\n`;
    let written = '';
    let lines = 0;
    const write = (count: number) => {
      const more = Array.from({ length: count }, () => line(lines++)).join('');
      machine.write(more);
      written += more;
    };
    write(20_000);
    follow();
    await until('the first part has come', () => text === written);
    for (const count of [1, 300, 20_000, 1]) {
      write(count);
      await until(`${count} further lines have come`, () => text === written);
    }
    expect(machine.looks[0]).to.equal(10 * mib);
    expect(machine.looks.at(-1)).to.equal(64 * 1024);
    stage = 'ended';
    await reading;
    expect(text).to.equal(written);
  });

  it('is followed where all its lines are the same', async () => {
    machine.write('waiting\n'.repeat(50_000));
    follow();
    await until('the first part has come', () => text.length === 8 * 50_000);
    for (const more of [1, 5000, 3]) {
      const length = text.length + 8 * more;
      machine.write('waiting\n'.repeat(more));
      await until(`${more} further lines have come`, () => text.length === length);
    }
  });

  it('hole 8: goes on at the right one of millions of places that look the same', async () => {
    const [place, more] = [2 * mib, 8 * mib];
    machine.log = Buffer.concat([Buffer.alloc(place + more, 'a'), Buffer.alloc(1.5 * mib, 'b')]);
    machine.times = `${machine.log.length} 1800000000\n`;
    const view = await machine.live.look({ place, end: Buffer.alloc(4096, 'a') });
    expect({ base: view?.base, end: await view?.end() }).to.deep.equal({
      base: place,
      end: machine.log.length,
    });
    expect((await view?.readAt(place + more - 1, 2))?.toString()).to.equal('ab');
    await view?.close();
  });

  it('says what it left out where it grows faster than it can be read', async () => {
    machine.write('begin\n');
    follow();
    await until('the first line has come', () => text === 'begin\n');
    machine.write(`${'x'.repeat(99)}\n`.repeat(120_000));
    await until('its end has come', () => text.length > 10 * mib);
    expect(text.slice(0, 200)).to.match(/^begin\n\nthresher: a part of the log is left out here/);
  });

  it('begins anew when it is cut', async () => {
    machine.write('before\n');
    follow();
    await until('the first line has come', () => text === 'before\n');
    machine.log = Buffer.alloc(0);
    machine.write('new\n');
    await until('the new line has come', () => text === 'before\nnew\n');
  });

  it('waits for the files of a job that has ended, though its container is known to have ended', async () => {
    machine.write('one\n');
    follow();
    await until('the first line has come', () => text === 'one\n');
    machine.runs = false;
    stage = 'ended';
    const looks = machine.tries;
    await until('it was looked for again', () => machine.tries > looks + 2);
    expect(text).to.equal('one\n');
    machine.runs = true;
    machine.write('last\n');
    stage = 'over';
    await reading;
    expect(text).to.equal('one\nlast\n');
  });
});
