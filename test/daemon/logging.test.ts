import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { LogFile } from '../../src/daemon/log-file.ts';
import { createLog, formatInUse, isJournal } from '../../src/daemon/logging.ts';
import { charactersLookedAt } from '../support/masked-characters.ts';
import { program } from '../support/program.ts';
import { Site } from '../support/site.ts';
import { removeDirectory, temporaryDirectory } from '../support/temporary.ts';
import { rememberSecret } from '../../src/util/own-secrets.ts';
import { until } from '../support/until.ts';

const logrotateFile = resolve(import.meta.dirname, '../../etc/logrotate.d/thresher');

/** The numbers of `line N` in all these files together, in order. */
function numbersIn(...files: string[]): number[] {
  return files
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/ number=(\d+)$/gm)])
    .map(([, number]) => Number(number))
    .sort((a, b) => a - b);
}

const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);

describe('a log file', () => {
  it('that is renamed again and again under load loses no line and repeats none', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'thresher.log');
    const log = createLog({ level: 'info', file: path });
    let number = 0;
    for (let rotation = 0; rotation < 20; rotation++) {
      for (let burst = 0; burst < 50; burst++) {
        for (let line = 0; line < 10; line++) log.info('line', { number: number++ });
        // The rename meets writes at every stage.
        await turn();
      }
      await until('there is a file', () => existsSync(path));
      renameSync(path, `${path}.${rotation}`);
    }
    log.info('line', { number: number++ });
    await log.close();
    const files = readdirSync(directory).map((name) => join(directory, name));
    expect(files).to.have.length(21);
    expect(numbersIn(...files)).to.deep.equal(upTo(number));
  });

  it('gets every line that is written after the rename, none goes to the old file', async () => {
    const path = join(temporaryDirectory(), 'thresher.log');
    const log = createLog({ level: 'info', file: path });
    log.info('line', { number: 0 });
    await until('it is written', () => existsSync(path) && numbersIn(path).length === 1);
    renameSync(path, `${path}.1`);
    log.info('line', { number: 1 });
    await log.close();
    expect([numbersIn(`${path}.1`), numbersIn(path)]).to.deep.equal([[0], [1]]);
  });

  it('takes the file that a rotation made for it, with its mode', async () => {
    const path = join(temporaryDirectory(), 'thresher.log');
    const log = createLog({ level: 'info', file: path });
    log.info('line', { number: 0 });
    await until('it is written', () => existsSync(path) && numbersIn(path).length === 1);
    renameSync(path, `${path}.1`);
    writeFileSync(path, '', { mode: 0o600 });
    log.info('line', { number: 1 });
    await log.close();
    expect(numbersIn(path)).to.deep.equal([1]);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
  });

  it('is appended to, readable by its group only', async () => {
    const path = join(temporaryDirectory(), 'below', 'thresher.log');
    for (const number of [0, 1]) {
      const log = createLog({ level: 'info', file: path });
      log.info('line', { number });
      await log.close();
    }
    expect(numbersIn(path)).to.deep.equal([0, 1]);
    expect(statSync(path).mode & 0o037).to.equal(0);
  });

  it('that cannot be written is complained about once, and works when it can be again', async () => {
    const path = join(temporaryDirectory(), 'thresher.log');
    mkdirSync(path);
    const complaints: string[] = [];
    const file = new LogFile(path, (message) => complaints.push(message));
    for (const line of ['a\n', 'b\n', 'c\n']) {
      file.write(line);
      await file.close();
    }
    expect(complaints).to.have.length(1);
    expect(complaints[0]).to.match(/^the log \S+thresher\.log cannot be written: EISDIR/);
    removeDirectory(path);
    file.write('d\n');
    await file.close();
    expect(readFileSync(path, 'utf8')).to.equal('d\n');
    expect(complaints.slice(1)).to.deep.equal([`3 lines of the log ${path} were lost`]);
  });

  it('on a disk that hangs takes a bounded part of the memory', async () => {
    const directory = temporaryDirectory();
    const pipe = join(directory, 'pipe');
    // Nobody reads: to open it for writing lasts as long as a dead network disk.
    execFileSync('mkfifo', [pipe]);
    const complaints: string[] = [];
    const file = new LogFile(pipe, (message) => complaints.push(message));
    const line = `${'x'.repeat(999)}\n`;
    for (let written = 0; written < 6000; written++) file.write(line);
    const reader = spawn('cat', [pipe], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('the lost lines are counted', () => complaints.length > 0);
    await file.close();
    reader.kill();
    expect(complaints).to.deep.equal([`2000 lines of the log ${pipe} were lost`]);
  });
});

describe('log format', () => {
  const lines = async (
    format: 'plain' | 'json' | undefined,
    write: (log: ReturnType<typeof createLog>) => void,
  ) => {
    const path = join(temporaryDirectory(), 'log');
    const log = createLog({ level: 'debug', file: path, ...(format && { format }) });
    write(log);
    await log.close();
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  };

  it('is one line per message, whatever its facts are', async () => {
    const written = await lines('plain', (log) => {
      log.warn('said\r\ntwice', { reason: 'a\nb', deep: { text: 'c\nd' }, empty: '' });
    });
    expect(written).to.have.length(1);
    expect(written[0]).to.match(
      /^\d{4}-\S+Z WARN  said twice reason="a\\nb" deep=\{"text":"c\\nd"\} empty=""$/,
    );
  });

  it('hole 8: cuts facts that are too long or too deep for a line', async () => {
    const deep: unknown = JSON.parse('['.repeat(9000) + ']'.repeat(9000));
    for (const format of ['plain', 'json'] as const) {
      const [line = '', ...others] = await lines(format, (log) => {
        log.warn('large', { text: 'x'.repeat(1e7), list: ['y'.repeat(1e7)], deep, message: 'z'.repeat(1e7) });
      });
      expect([others, line.length < 50_000]).to.deep.equal([[], true]);
      expect(line).to.include('... (10000000 characters)').and.include('(cannot be shown)');
    }
  });

  it('hole 8: looks for secrets in facts as far as it shows them', async () => {
    rememberSecret('opaque-in-a-log-0123456789');
    const long = 'words '.repeat(200_000);
    const looked = await charactersLookedAt(() =>
      lines('plain', (log) => {
        log.warn('large', { long, list: [long] });
      }),
    );
    expect(looked).to.be.within(1, 100_000);
  });

  it('json is one object per line', async () => {
    const [line = ''] = await lines('json', (log) => {
      log.error('no', { reason: 'a\nb', message: 'detail' });
    });
    const { timestamp, ...rest } = JSON.parse(line) as Record<string, unknown>;
    expect(timestamp).to.match(/Z$/);
    expect(rest).to.deep.equal({ level: 'error', message: 'no', reason: 'a\nb', detail: 'detail' });
  });

  it('json is JSON also where a number has a secret in it', async () => {
    rememberSecret('6620194857');
    const [line = ''] = await lines('json', (log) => {
      log.error('no', { id: 6620194857, reason: 'of 6620194857' });
    });
    expect(JSON.parse(line)).to.include({ id: '(hidden)', reason: 'of (hidden)' });
  });

  it('is that of the journal only where the lines go to the journal', () => {
    expect(formatInUse({}, true)).to.equal('journald');
    expect(formatInUse({}, false)).to.equal('plain');
    expect(formatInUse({ format: 'json' }, true)).to.equal('json');
    expect(formatInUse({ format: 'plain' }, true)).to.equal('plain');
    expect(formatInUse({ format: 'journald' }, false)).to.equal('journald');
    expect(formatInUse({ file: '/var/log/t' }, true)).to.equal('plain');
    // Without a time its lines would be worth nothing in a file.
    expect(formatInUse({ format: 'journald', file: '/var/log/t' }, false)).to.equal('plain');
  });

  it('knows the journal by the descriptor that systemd named', () => {
    const file = openSync(join(temporaryDirectory(), 'file'), 'w');
    try {
      const { dev, ino } = fstatSync(file);
      expect(isJournal(`${dev}:${ino}`, file)).to.equal(true);
      expect(isJournal(`${dev}:${ino + 1}`, file)).to.equal(false);
      expect(isJournal('', file)).to.equal(false);
      expect(isJournal(undefined, file)).to.equal(false);
    } finally {
      closeSync(file);
    }
    expect(isJournal('1:2', 9999)).to.equal(false);
  });
});

describe('log of a running daemon', () => {
  let site: Site;

  afterEach(async () => {
    await site.clean();
  });

  it('carries priorities and no time where its error output is the journal', async () => {
    site = new Site({ queues: { BAD: { maxWorkers: '10' } } });
    const path = site.path('stderr');
    const file = openSync(path, 'w');
    try {
      const { dev, ino } = fstatSync(file);
      execFileSync(program(), ['--config', site.config, 'run', '--for', '0.5s'], {
        stdio: ['ignore', 'ignore', file],
        env: { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` },
      });
    } finally {
      closeSync(file);
    }
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    expect(lines.filter((line) => !/^<[3467]>[a-z]/.test(line))).to.deep.equal([]);
    expect(lines.some((line) => line.startsWith('<3>configuration error '))).to.equal(true);
    expect(lines.some((line) => line.startsWith('<6>started '))).to.equal(true);
  });

  it('survives its rotation: rename, and the next line makes a new file', async () => {
    site = new Site({ queues: {}, settings: { log: { file: 'log/thresher.log' } } });
    const path = site.path('log/thresher.log');
    const daemon = site.start();
    await until('it started', () => existsSync(path) && readFileSync(path, 'utf8').includes('started'));
    renameSync(path, `${path}.1`);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(readFileSync(path, 'utf8')).to.match(/ INFO {2}stopped\n$/);
    expect(readFileSync(`${path}.1`, 'utf8')).not.to.contain('stopped');
  });
});

/** `logrotate` is no part of every system: it is tried where it exists. */
const logrotate = ['/usr/sbin/logrotate', '/usr/bin/logrotate'].find((path) => existsSync(path));

describe('a daemon whose log file cannot be opened', () => {
  it('does not start, and says so where it can be seen', async () => {
    const site = new Site({ queues: { Q: {} }, settings: { log: { file: 'pilot.yaml/log' } } });
    try {
      const daemon = site.start(['--for', '1s']);
      expect(await daemon.ended).to.equal(1);
      expect(daemon.output()).to.match(
        /^thresher: log\.file \S+pilot\.yaml\/log cannot be opened: E[^\n]*; name a file that the daemon may write \[log-file-unusable\]\n$/,
      );
    } finally {
      await site.clean();
    }
  });
});

describe('etc/logrotate.d/thresher', () => {
  it('names the file that docs/operation.md tells to log to', () => {
    expect(readFileSync(logrotateFile, 'utf8')).to.match(/^\/var\/log\/thresher\/\*\.log \{$/m);
  });

  if (logrotate !== undefined) {
    it('rotates a log that is being written, and every line is found again', async () => {
      const directory = temporaryDirectory();
      const path = join(directory, 'thresher.log');
      const config = join(directory, 'logrotate.conf');
      const text = readFileSync(logrotateFile, 'utf8')
        .replaceAll('/var/log/thresher', directory)
        // This user may have no account of that name.
        .replace(/^ *su .*$/m, '');
      writeFileSync(config, text, { mode: 0o644 });
      const log = createLog({ level: 'info', file: path });
      let number = 0;
      for (let rotation = 0; rotation < 3; rotation++) {
        for (let line = 0; line < 100; line++) {
          log.info('line', { number: number++ });
          await turn();
        }
        await until('all is written', () => existsSync(path) && statSync(path).size > 0);
        execFileSync(logrotate, ['--force', '--state', join(directory, 'state'), config], { stdio: 'pipe' });
      }
      log.info('line', { number: number++ });
      await log.close();
      execFileSync('sh', ['-c', `gunzip ${directory}/*.gz`]);
      const rotated = readdirSync(directory).filter((name) => name.startsWith('thresher.log'));
      expect(rotated).to.have.length(4);
      expect(numbersIn(...rotated.map((name) => join(directory, name)))).to.deep.equal(upTo(number));
    });
  }
});
