import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { networkFileSystem, prepareStateDir } from '../../src/daemon/state-dir.ts';
import { Site, untilSaid } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const one = { maxWorkers: 1, nQueueLimitWorker: 1 };

describe('daemon', () => {
  let site: Site;

  afterEach(async () => {
    await site.clean();
  });

  const running = () =>
    until('it runs', async () => (await site.workers({ status: 'running' }).catch(() => [])).length > 0);

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`ends in bounded time on ${signal}, and its workers go on`, async () => {
      site = new Site({ queues: { Q: one } });
      const daemon = site.start();
      await running();
      daemon.process.kill(signal);
      // By force it would end after its time, by SIGKILL.
      expect(await daemon.ended, daemon.output()).to.equal(0);
      expect(site.liveShims().size).to.equal(1);
    });
  }

  it('stops by itself with --for', async () => {
    site = new Site({ queues: { Q: one } });
    const daemon = site.start(['--for', '2s']);
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(daemon.output()).to.contain('started');
  });

  it('never shares a state directory: the second daemon says who holds it', async () => {
    site = new Site({ queues: { Q: one } });
    const first = site.start();
    await running();
    const second = site.start();
    expect(await second.ended).to.equal(1);
    expect(second.output()).to.match(
      new RegExp(
        `^thresher: the daemon with pid ${first.pid} on \\S+, started \\S+Z works on ${site.stateDir} \\[already-running\\]\\n$`,
      ),
    );
    // A lock dies with its holder, however that ends.
    first.process.kill('SIGKILL');
    await first.ended;
    const third = site.start(['--for', '0.2s']);
    expect(await third.ended, third.output()).to.equal(0);
  });

  it('never shares a state directory among containers, in each of which the daemon is PID 1', async () => {
    site = new Site({ queues: {} });
    const first = site.startAsFirst();
    await untilSaid(first, /started/);
    const second = site.startAsFirst();
    expect(await second.ended).to.equal(1);
    expect(second.output()).to.match(/^thresher: the daemon with pid 1 on \S+, .* \[already-running\]\n$/);
    first.process.kill('SIGKILL');
    await first.ended;
    const third = site.startAsFirst(['--for', '0.2s']);
    expect(await third.ended, third.output()).to.equal(0);
  });

  it('starts the sound queues of a file and refuses the others with file and line', async () => {
    site = new Site({
      queues: { Q: one, BAD: { maxWorkers: '10' }, ODD: { submitter: { name: 'X', module: 'y' } } },
    });
    const daemon = site.start();
    await running();
    const bad = await site.queue('BAD');
    expect(bad.state).to.equal('refused');
    expect(bad.reasons[0]?.code).to.equal('queue-refused');
    expect(bad.reasons[0]?.message).to.match(
      /panda_queueconfig\.json:\d+ \/\w+\/maxWorkers: maxWorkers is "10"; it must be an integer: write 10 without quotes$/,
    );
    expect((await site.queue('ODD')).state).to.equal('refused');
    await untilSaid(daemon, /ERROR configuration error.*\/BAD\/maxWorkers/);
  });

  it('runs on with no queues when the queue file is broken, and says so', async () => {
    site = new Site({ queues: {} });
    writeFileSync(site.queueFile, '{ "Q": { ');
    const daemon = site.start(['--for', '1s']);
    expect(await daemon.ended).to.equal(0);
    expect(daemon.output()).to.match(/ERROR configuration error .*line=1 .*detail="not valid JSON: /);
  });

  const unusable: [what: string, prepare: () => string, says: RegExp][] = [
    [
      'cannot be made',
      () => '/proc/thresher',
      /state directory \/proc\/thresher cannot be used: .* \[state-dir-unusable\]/,
    ],
    [
      'is a file',
      () => {
        writeFileSync(site.stateDir, '');
        return site.stateDir;
      },
      /cannot be used: .* \[state-dir-unusable\]/,
    ],
    [
      'holds a database that is none',
      () => {
        mkdirSync(site.stateDir);
        writeFileSync(
          join(site.stateDir, 'thresher.db'),
          'this is no database, but it is long enough to look like one'.repeat(20),
        );
        return site.stateDir;
      },
      /not a database.* \[store-corrupt\]/,
    ],
    [
      'holds the database of a newer version',
      () => {
        mkdirSync(site.stateDir);
        const db = new Database(join(site.stateDir, 'thresher.db'));
        db.exec(
          "CREATE TABLE kysely_migration (name TEXT, timestamp TEXT); INSERT INTO kysely_migration VALUES ('9999-future', '')",
        );
        db.close();
        return site.stateDir;
      },
      /written by a newer version of thresher \(it has 9999-future\) \[store-newer\]/,
    ],
  ];
  for (const [what, prepare, says] of unusable) {
    it(`refuses a state directory that ${what}, in one line`, async () => {
      site = new Site({ queues: { Q: one } });
      const stateDir = prepare();
      const { status, stderr } = await site.run('--state-dir', stateDir, 'run', '--for', '1s');
      expect(status).to.equal(1);
      expect(stderr)
        .to.match(/^thresher: [^\n]+\n$/)
        .and.to.match(says);
    });
  }

  it('loses nothing on a full disk, says so, and goes on when there is room', async () => {
    site = new Site({
      pilot: 'while [ ! -e $SITE_DIR/end ]; do sleep 0.05; done',
      queues: { Q: { maxWorkers: 20, nQueueLimitWorker: 20, common: { workDir: 'work' } } },
    });
    const { daemon, stateDir, run } = site.startOnSmallDisk('4m');
    const workers = async (status: string) => {
      const { stdout } = await run('workers', '--status', status, '--output', 'json');
      return (JSON.parse(stdout) as unknown[]).length;
    };
    await until('twenty run', async () => (await workers('running')) === 20);
    const filler = join(stateDir, 'filler');
    fillDisk(filler);
    writeFileSync(site.path('end'), '');
    await until('it says that the disk is full', () =>
      /the disk with the database is full/.test(daemon.output()),
    );
    rmSync(filler);
    await until('every end is known', async () => (await workers('finished')) >= 20);
    // And it works on: others take their places.
    await until('new ones came', async () => (await workers('finished')) > 20);
  });
});

/** Writes until nothing goes in any more. */
function fillDisk(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const size of [65536, 4096, 512, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}

describe('state directory', () => {
  it('on a network file system is refused with its name', () => {
    const directory = temporaryDirectory();
    expect(() => prepareStateDir(directory, () => 0x6969)).to.throw(/is on NFS: SQLite needs a local disk/);
    expect(() => prepareStateDir(directory, () => 0x0bd00bd0)).to.throw(/is on Lustre/);
    // As Node gives it on platforms where the number is signed.
    expect(networkFileSystem(0xff534d42 | 0)).to.equal('CIFS');
    expect(prepareStateDir(directory).path).to.equal(directory);
  });
});
