import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import {
  agreedId,
  type FactoryFile,
  readFactoryFile,
  type Witnesses,
} from '../../src/daemon/factory-file.ts';
import type { WorkerView } from '../../src/daemon/view.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const dir = { factory: '/state/factory', database: '/state/thresher.db' };
const absent: FactoryFile = { kind: 'absent' };
const says = (id: string): FactoryFile => ({ kind: 'id', id });
const empty: FactoryFile = { kind: 'damaged', why: 'is empty' };
const a = { id: 'a', living: 6 };
const b = { id: 'b', living: 0 };

function outcome(witnesses: Witnesses): string | undefined {
  try {
    return agreedId(witnesses, dir);
  } catch (error) {
    if (error instanceof ThresherError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

describe('the id of a factory', () => {
  const agreed: readonly (readonly [string, Witnesses, string | undefined])[] = [
    ['is still to be drawn where nothing knows one', { file: absent, instances: [] }, undefined],
    ['is the configured one of a new factory', { file: absent, instances: [], configured: 'a' }, 'a'],
    ['is that of the file, with the database lost', { file: says('a'), instances: [] }, 'a'],
    ['is that of the file, which the database knows', { file: says('a'), instances: [a] }, 'a'],
    ['is that of the file, one of several of the database', { file: says('b'), instances: [a, b] }, 'b'],
    ['is that of the database, with the file lost', { file: absent, instances: [a] }, 'a'],
    ['is the configured one, as all say', { file: says('a'), instances: [a], configured: 'a' }, 'a'],
    [
      'is the configured one of several in the database, with the file lost',
      { file: absent, instances: [a, b], configured: 'a' },
      'a',
    ],
    [
      'may be configured anew for a factory without living workers',
      { file: absent, instances: [b], configured: 'c' },
      'c',
    ],
  ];
  for (const [what, witnesses, id] of agreed)
    it(what, () => {
      expect(outcome(witnesses)).to.equal(id);
    });

  const refused: readonly (readonly [string, Witnesses, RegExp])[] = [
    [
      'an empty file, and names the id of the database',
      { file: empty, instances: [a] },
      /^factory-file-damaged: \/state\/factory is empty: \/state\/thresher.db is of a \(6 living workers\); replace \/state\/factory by a file with one line, a$/,
    ],
    [
      'an empty file without a database, and says where the id is found',
      { file: empty, instances: [] },
      /^factory-file-damaged: .* the label thresher\/factory, .* or remove it for a new factory$/,
    ],
    [
      'an empty file without a database where an id is configured',
      { file: empty, instances: [], configured: 'a' },
      /^factory-file-damaged: .* if a \(master.factoryId\) was this factory's id before, remove \/state\/factory$/,
    ],
    [
      'a file with the id of another factory than the database',
      { file: says('c'), instances: [a] },
      /^factory-id-contradicted: \/state\/factory says c, but \/state\/thresher.db is of a \(6 living workers\): write a into \/state\/factory, or, if/,
    ],
    [
      'a file with another id than the database, also where that id is configured',
      { file: says('c'), instances: [a], configured: 'c' },
      /^factory-id-contradicted: /,
    ],
    [
      'a file that is none of several in the database',
      { file: says('c'), instances: [a, b] },
      /^factory-id-contradicted: .* write one of a, b into/,
    ],
    [
      'to choose among several of the database, with the file lost',
      { file: absent, instances: [a, b] },
      /^factory-id-contradicted: there is no \/state\/factory, and .* is of a \(6 living workers\) and b \(0 living workers\): write one of a, b into/,
    ],
    [
      'another configured id than the file',
      { file: says('a'), instances: [a], configured: 'c' },
      /^factory-id-changed: master.factoryId is c, but \/state\/factory says a$/,
    ],
    [
      'another configured id than the database with living workers, with the file lost',
      { file: absent, instances: [a, b], configured: 'c' },
      /^factory-id-changed: master.factoryId is c, but \/state\/thresher.db is of a \(6 living workers\)$/,
    ],
  ];
  for (const [what, witnesses, message] of refused)
    it(`refuses ${what}`, () => {
      expect(outcome(witnesses)).to.match(message);
    });
});

describe('the file with the id of a factory', () => {
  const cases: readonly (readonly [string, (path: string) => void, FactoryFile])[] = [
    ['that is not there', () => undefined, absent],
    [
      'that is right',
      (path) => {
        writeFileSync(path, 'factory-1\n');
      },
      says('factory-1'),
    ],
    [
      'that is empty',
      (path) => {
        writeFileSync(path, '');
      },
      empty,
    ],
    [
      'with nothing but a line',
      (path) => {
        writeFileSync(path, '\n');
      },
      empty,
    ],
    [
      'with an id of other letters',
      (path) => {
        writeFileSync(path, 'CERN_1\n');
      },
      { kind: 'damaged', why: 'says "CERN_1", which is no factory id' },
    ],
    [
      'with zeros, as a power cut leaves them',
      (path) => {
        writeFileSync(path, '\0\0');
      },
      { kind: 'damaged', why: String.raw`says "\u0000\u0000", which is no factory id` },
    ],
    [
      'with two ids',
      (path) => {
        writeFileSync(path, 'a\nb\n');
      },
      { kind: 'damaged', why: String.raw`says "a\nb", which is no factory id` },
    ],
    [
      'without end',
      (path) => {
        writeFileSync(path, 'a'.repeat(5000));
      },
      { kind: 'damaged', why: 'has more than the 1024 bytes that are read of it' },
    ],
    [
      'that is a directory',
      (path) => {
        mkdirSync(path);
      },
      { kind: 'damaged', why: 'is a directory, not a regular file' },
    ],
    [
      'that is a link',
      (path) => {
        symlinkSync('/etc/hostname', path);
      },
      { kind: 'damaged', why: 'is a symbolic link' },
    ],
  ];
  for (const [what, make, expected] of cases)
    it(`${what} is read for what it is`, () => {
      const path = join(temporaryDirectory(), 'factory');
      make(path);
      expect(readFactoryFile(path)).to.deep.equal(expected);
    });
});

describe('a daemon whose file with the id is damaged', () => {
  let site: Site;

  afterEach(async () => {
    await site.clean();
  });

  /** A daemon that ran and stopped, and left a living worker. */
  async function stopped(): Promise<string> {
    site = new Site({ queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } } });
    const daemon = site.start();
    await until(
      'a worker runs',
      async () => (await site.workers({ status: 'running' }).catch((): WorkerView[] => [])).length === 1,
    );
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    return readFileSync(join(site.stateDir, 'factory'), 'utf8').trim();
  }

  it('does not start, says what to write, and goes on with its workers once that is written', async () => {
    const id = await stopped();
    const file = join(site.stateDir, 'factory');
    for (const [content, code] of [
      ['', 'factory-file-damaged'],
      ['thresher-another\n', 'factory-id-contradicted'],
    ] as const) {
      writeFileSync(file, content);
      const { status, stderr } = await site.run('run', '--for', '1s');
      expect(status).to.equal(1);
      expect(stderr).to.match(
        new RegExp(`^thresher: [^\n]* ${id} \\(1 living worker\\)[^\n]* \\[${code}\\]\n$`),
      );
      expect(readFileSync(file, 'utf8'), 'nothing is written').to.equal(content);
    }
    writeFileSync(file, `${id}\n`);
    site.start();
    await until('the worker is followed', async () => (await site.queue('Q')).state === 'running');
    expect(await site.workers()).to.have.length(1);
    expect(site.liveShims().size).to.equal(1);
  });

  it('lets no command take it for a factory without workers', async () => {
    await stopped();
    const file = join(site.stateDir, 'factory');
    writeFileSync(file, '');
    const { status, stdout, stderr } = await site.run('workers');
    expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' });
    expect(stderr).to.match(/^thresher: .*factory is empty: .* \[factory-file-damaged\]\n$/);
    expect((await site.run('check-config')).stdout).to.match(
      /\/master\/stateDir: error: .*factory is empty.*\[factory-file-damaged\]/,
    );
    writeFileSync(file, 'thresher-another\n');
    expect((await site.run('queues')).stderr).to.contain('[factory-id-contradicted]');
    // The file alone is lost: the database knows.
    rmSync(file);
    expect((await site.run('workers')).stdout).to.contain('running');
    expect(existsSync(file), 'a command that reads writes nothing').to.equal(false);
  });

  it('draws no id where the database cannot be used', async () => {
    site = new Site({ queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } } });
    mkdirSync(site.stateDir);
    writeFileSync(join(site.stateDir, 'thresher.db'), 'no database '.repeat(200));
    expect((await site.run('run', '--for', '1s')).stderr).to.contain('[store-corrupt]');
    rmSync(join(site.stateDir, 'thresher.db'));
    new Database(join(site.stateDir, 'thresher.db'))
      .exec(
        "CREATE TABLE kysely_migration (name TEXT, timestamp TEXT); INSERT INTO kysely_migration VALUES ('9999-future', '')",
      )
      .close();
    expect((await site.run('run', '--for', '1s')).stderr).to.contain('[store-newer]');
    expect(existsSync(join(site.stateDir, 'factory'))).to.equal(false);
  });
});
