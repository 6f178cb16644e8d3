import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  NotPlainFile,
  openPlainFile,
  type PlainFileRules,
  readPlainFile,
  readPlainFileSync,
} from '../../src/util/plain-file.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const rules: PlainFileRules = { largest: 100_000, links: 'refuse' };

/** Both readers; the synchronous one is called as if it were not. */
const readers = [
  ['readPlainFile', readPlainFile],
  [
    'readPlainFileSync',
    (path: string, some: PlainFileRules) => Promise.resolve().then(() => readPlainFileSync(path, some)),
  ],
] as const;

for (const [name, read] of readers)
  describe(name, () => {
    let directory: string;
    const path = (file: string) => join(directory, file);
    const refusal = async (file: string, some = rules) => {
      const error: unknown = await read(file, some).catch((thrown: unknown) => thrown);
      if (!(error instanceof NotPlainFile)) throw new Error(`not refused: ${String(error)}`);
      return `${error.why}: ${error.message.replace(error.path, 'it')}`;
    };

    beforeEach(() => {
      directory = temporaryDirectory();
    });

    it('reads a file with its time, also an empty one and one of several pieces', async () => {
      for (const size of [0, 1, 65_536, 99_999, 100_000]) {
        writeFileSync(path('file'), Buffer.alloc(size, 'x'));
        const { bytes, stats } = await read(path('file'), rules);
        expect(bytes.equals(readFileSync(path('file')))).to.equal(true);
        expect(stats.mtimeMs).to.be.greaterThan(0);
      }
    });

    it('reads a file of the kernel, which says that it is empty', async () => {
      const { bytes } = await read('/proc/self/status', rules);
      expect(bytes.toString()).to.match(/^Name:/);
    });

    it('refuses a pipe at once, though it has no writer', async () => {
      spawnSync('mkfifo', [path('pipe')]);
      expect(await refusal(path('pipe'))).to.equal('not-a-file: it is a pipe, not a regular file');
    });

    it('refuses a directory', async () => {
      expect(await refusal(directory)).to.equal('not-a-file: it is a directory, not a regular file');
    });

    it('refuses a device without end', async () => {
      expect(await refusal('/dev/zero')).to.equal('not-a-file: it is a device, not a regular file');
    });

    it('refuses a socket', async () => {
      const server = createServer().listen(path('socket'));
      await new Promise((resolve) => server.once('listening', resolve));
      expect(await refusal(path('socket'))).to.equal('not-a-file: it is not a regular file');
      server.close();
    });

    it('refuses a link where links are refused, and follows it where they are not', async () => {
      writeFileSync(path('file'), 'text');
      symlinkSync(path('file'), path('link'));
      expect(await refusal(path('link'))).to.equal('link: it is a symbolic link');
      const { bytes } = await read(path('link'), { ...rules, links: 'follow' });
      expect(bytes.toString()).to.equal('text');
    });

    it('refuses a link to a pipe where links are followed', async () => {
      spawnSync('mkfifo', [path('pipe')]);
      symlinkSync(path('pipe'), path('link'));
      expect(await refusal(path('link'), { ...rules, links: 'follow' })).to.match(
        /^not-a-file: it is a pipe/,
      );
    });

    it('refuses a file that is too large, before it reads any of it', async () => {
      writeFileSync(path('file'), Buffer.alloc(100_001));
      expect(await refusal(path('file'))).to.equal(
        'too-large: it has more than the 100000 bytes that are read of it',
      );
    });

    it('refuses a file without end that says that it is empty', async () => {
      expect(await refusal('/proc/self/status', { ...rules, largest: 10 })).to.match(/^too-large/);
    });

    it('a missing file fails as open(2) fails', async () => {
      const error: unknown = await read(path('none'), rules).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'ENOENT' });
    });

    it('a file in the place of a directory fails as open(2) fails', async () => {
      writeFileSync(path('file'), '');
      mkdirSync(path('directory'));
      const error: unknown = await read(path('file/none'), rules).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'ENOTDIR' });
    });
  });

describe('a file that grows while it is read', () => {
  it('is refused as soon as it is over the bound', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, Buffer.alloc(70_000));
    const reading = readPlainFile(file, rules).catch((thrown: unknown) => thrown);
    // No piece was read yet: the read has not left this turn.
    appendFileSync(file, Buffer.alloc(70_000));
    const error = await reading;
    expect(error).to.be.instanceOf(NotPlainFile).and.to.include({ why: 'too-large' });
  });
});

describe('openPlainFile', () => {
  it('opens a file that its caller closes', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, 'text');
    const file = await openPlainFile(path, 'refuse');
    expect((await file.readFile()).toString()).to.equal('text');
    await file.close();
  });
});
