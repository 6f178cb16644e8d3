import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JobEvent } from '../../../../src/clients/htcondor/event-types.ts';
import { EventLogs } from '../../../../src/plugins/htcondor/following/event-logs.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { FileLane } from '../../../../src/util/file-lane.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const record = (proc: number) =>
  `012 (007.${String(proc).padStart(3, '0')}.000) 2026-11-21 20:00:00 Job was held.\n...\n`;

describe('logs of job events', () => {
  let directory: string;
  let log: string;
  let warnings: string[];

  beforeEach(() => {
    directory = temporaryDirectory();
    log = join(directory, 'log');
    warnings = [];
  });

  const sink = () => {
    const nothing = () => undefined;
    const warn = (message: string, facts?: object) => warnings.push(`${message} ${JSON.stringify(facts)}`);
    return { debug: nothing, info: nothing, error: nothing, warn };
  };
  function logs(own: boolean): EventLogs {
    const positionsFile = join(directory, 'positions', 'schedd.json');
    const files = new FileLane({ clock: systemClock, name: 'schedd', atOnce: 2, timeoutMs: 10_000 });
    const made = new EventLogs({ positionsFile, clock: systemClock, files });
    made.follow([{ path: log, own }]);
    return made;
  }
  const read = async (from: EventLogs) => {
    const events: JobEvent[] = [];
    const missed = await from.read(sink(), (some) => {
      for (const event of some) events.push(event);
    });
    return { procs: events.map(({ proc }) => proc), missed };
  };

  it('are read from where they were read before, and those of our own from the beginning', async () => {
    writeFileSync(log, record(1));
    const [own, pools] = [logs(true), logs(false)];
    expect(await read(own)).to.deep.equal({ procs: [1], missed: false });
    expect(await read(pools)).to.deep.equal({ procs: [], missed: false });
    appendFileSync(log, record(2));
    expect(await read(own)).to.deep.equal({ procs: [2], missed: false });
    expect(await read(pools)).to.deep.equal({ procs: [2], missed: false });
    expect(await read(own)).to.deep.equal({ procs: [], missed: false });
  });

  it('need not be there yet', async () => {
    for (const own of [true, false]) {
      const one = logs(own);
      expect(await read(one)).to.deep.equal({ procs: [], missed: false });
    }
    const one = logs(false);
    await read(one);
    writeFileSync(log, record(1));
    expect(await read(one)).to.deep.equal({ procs: [1], missed: false });
  });

  it('are read on by the next daemon from where all was dealt with for certain', async () => {
    writeFileSync(log, record(1));
    const first = logs(true);
    await read(first);
    await first.keep();
    appendFileSync(log, record(2));
    await read(first);
    await first.keep();
    // What was read since the last look but one may be in no database.
    expect(await read(logs(true))).to.deep.equal({ procs: [2], missed: false });
    expect(await read(logs(false))).to.deep.equal({ procs: [2], missed: false });
  });

  for (const text of [
    '',
    '{"',
    '[]',
    '3',
    '{"LOG": {"inode": "x"}}',
    '{"LOG": {"inode": 1, "offset": -1}}',
  ]) {
    it(`are read from the beginning where what was kept is "${text}"`, async () => {
      writeFileSync(log, record(1));
      const first = logs(true);
      await read(first);
      await first.keep();
      await first.keep();
      writeFileSync(join(directory, 'positions', 'schedd.json'), text.replace('LOG', log));
      expect(await read(logs(true))).to.deep.equal({ procs: [1], missed: false });
    });
  }

  it('say that something was missed where a record is spoilt, and go on behind it', async () => {
    const one = logs(true);
    writeFileSync(log, `${record(1)}012 (007.0${record(2)}rubbish\n${record(3)}`);
    expect(await read(one)).to.deep.equal({ procs: [1, 3], missed: true });
    expect(warnings).to.have.length(1);
    expect(await read(one)).to.deep.equal({ procs: [], missed: false });
    // Users can spoil as many as they like.
    appendFileSync(log, `012 (007.0${record(2)}`.repeat(50));
    expect(await read(one)).to.deep.equal({ procs: [], missed: true });
    expect(warnings).to.have.length(1);
  });

  it('hole 8: hand on all that a long absence left, piece by piece', async () => {
    writeFileSync(log, record(1).repeat(150_000));
    const pieces: number[] = [];
    const missed = await logs(true).read(sink(), ({ length }) => pieces.push(length));
    expect({ missed, warnings, sum: pieces.reduce((sum, one) => sum + one, 0) }).to.deep.equal({
      missed: false,
      warnings: [],
      sum: 150_000,
    });
    expect(Math.max(...pieces)).to.be.lessThan(50_000);
  });

  it('read once more what was not taken in', async () => {
    writeFileSync(log, record(1));
    const one = logs(true);
    const failing = () => {
      throw new Error('the database is full');
    };
    expect(await one.read(sink(), failing)).to.equal(true);
    expect(await read(one)).to.deep.equal({ procs: [1], missed: false });
  });

  it('hole 1: take no text of a user for an event where a record is longer than what is read at once', async () => {
    const most = 2 * 1024 * 1024;
    const head = record(1).split('\n')[0] ?? '';
    const forged = '005 (777.000.000) 2026-11-21 20:00:00 Job terminated.';
    const text = 'x'.repeat(most - head.length - 2);
    writeFileSync(log, `${head}\n\t${text}${forged}\n...\n${record(2)}`);
    expect(await read(logs(true))).to.deep.equal({ procs: [2], missed: true });
  });

  it('wait for the end of a record that is being written', async () => {
    const one = logs(true);
    writeFileSync(log, record(1).slice(0, 20));
    expect(await read(one)).to.deep.equal({ procs: [], missed: false });
    appendFileSync(log, record(1).slice(20));
    expect(await read(one)).to.deep.equal({ procs: [1], missed: false });
  });

  it('are followed through a rotation, and a lost one is missed', async () => {
    const one = logs(false);
    writeFileSync(log, record(1));
    await read(one);
    appendFileSync(log, record(2));
    renameSync(log, `${log}.old`);
    writeFileSync(log, record(3));
    expect((await read(one)).procs).to.deep.equal([2, 3]);
    renameSync(log, join(directory, 'away'));
    writeFileSync(log, record(4));
    // What was read of the older one is read again: nobody knows how much of what is lost was read.
    expect(await read(one)).to.deep.equal({ procs: [1, 2, 4], missed: true });
  });

  it('of our own are emptied before they fill the disk; those of the pool are not ours to touch', async () => {
    const much = record(1).repeat(Math.ceil((33 * 2 ** 20) / record(1).length));
    writeFileSync(log, much);
    const pools = logs(false);
    await read(pools);
    expect(statSync(log).size).to.equal(much.length);
    const own = logs(true);
    expect((await read(own)).missed).to.equal(true);
    expect(statSync(log).size).to.equal(0);
    await read(own);
    appendFileSync(log, record(2));
    expect(await read(own)).to.deep.equal({ procs: [2], missed: false });
  });

  it('keep no thread where a pipe stands in their place, and lead to no other file by a link', async () => {
    spawnSync('mkfifo', [join(directory, 'pipe')]);
    const much = record(1).repeat(Math.ceil((33 * 2 ** 20) / record(1).length));
    writeFileSync(join(directory, 'target'), much);
    symlinkSync(join(directory, 'target'), log);
    const one = logs(true);
    one.follow([
      { path: log, own: true },
      { path: join(directory, 'pipe'), own: false },
    ]);
    await read(one);
    expect(statSync(join(directory, 'target')).size).to.equal(much.length);
    expect(warnings).to.have.length(1);
  });

  it('hole 3: that have what is no record are told of without the secrets in it, cut or whole', async () => {
    const one = logs(true);
    one.follow([{ path: log, own: true }]);
    writeFileSync(log, `torn https://u:${'hunter7'.repeat(100)}@host/x\n...\n${record(1)}`);
    await read(one);
    expect(warnings).to.have.length(1);
    expect(JSON.stringify(warnings)).to.include('torn https://u:(hidden)').and.not.include('hunter7');
  });

  it('that cannot be read are told of once, and keep nobody from the others', async () => {
    const one = logs(true);
    const other = join(directory, 'other');
    one.follow([
      { path: log, own: true },
      { path: join(log, 'below'), own: false },
      { path: other, own: true },
    ]);
    writeFileSync(log, record(1));
    writeFileSync(other, record(2));
    chmodSync(log, 0o644);
    expect(await read(one)).to.deep.equal({ procs: [1, 2], missed: true });
    expect(await read(one)).to.deep.equal({ procs: [], missed: false });
    expect(warnings).to.have.length(1);
  });
});
