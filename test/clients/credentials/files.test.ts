import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  exposure,
  fileVersion,
  readSecretFile,
  replaceBy,
  replaceSecretFile,
} from '../../../src/clients/credentials/files.ts';
import { systemClock } from '../../../src/util/clock.ts';
import type { ThresherError } from '../../../src/worker/errors.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

async function complaint(call: Promise<unknown>): Promise<[code: string, message: string]> {
  try {
    await call;
  } catch (error) {
    return [(error as ThresherError).code, (error as Error).message];
  }
  throw new Error('it succeeded');
}

const good = () => undefined;

describe('a secret file that is read', () => {
  it('a secret file is refused when it is missing, a directory, a pipe or far too long, and a pipe blocks no reader', async () => {
    const directory = temporaryDirectory();
    const [missing, why] = await complaint(readSecretFile(join(directory, 'nothing')));
    expect([missing, why]).to.deep.equal([
      'credential-missing',
      `${join(directory, 'nothing')} does not exist`,
    ]);
    expect(await complaint(readSecretFile(directory))).to.deep.equal([
      'credential-wrong',
      `${directory} is not a plain file`,
    ]);
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect((await complaint(readSecretFile(pipe)))[1]).to.contain('is not a plain file');
    const long = join(directory, 'long');
    writeFileSync(long, Buffer.alloc(1024 * 1024 + 1));
    expect((await complaint(readSecretFile(long)))[1]).to.contain('too long for a credential');
    expect((await complaint(readSecretFile(`${long}/below`)))[0]).to.equal('credential-missing');
  });

  it('a secret file is reported when other users can read or change it, or own it', async () => {
    const path = join(temporaryDirectory(), 'proxy');
    writeFileSync(path, 'x', { mode: 0o600 });
    const me = process.getuid?.() ?? 0;
    expect(exposure(path, await readSecretFile(path), me)).to.equal(undefined);
    chmodSync(path, 0o644);
    const file = await readSecretFile(path);
    expect(exposure(path, file, me)).to.deep.equal({
      code: 'credential-exposed',
      message: `${path} holds a secret and has mode 0644 (0600 would be right)`,
    });
    expect(exposure('p', { mode: 0o620, owner: 7 }, 8)?.message).to.equal(
      'p holds a secret and has mode 0620 (0600 would be right) and belongs to user 7 (the daemon runs as user 8)',
    );
    expect(exposure('p', { mode: 0o400, owner: 0 }, 8)).to.equal(undefined);
  });

  it('has another version whenever it is replaced, removed or made', async () => {
    const path = join(temporaryDirectory(), 'proxy');
    const versions = [await fileVersion(path)];
    for (const content of ['a', 'b']) {
      await replaceSecretFile(path, systemClock, content);
      versions.push(await fileVersion(path));
      expect(await fileVersion(path)).to.equal(versions.at(-1));
    }
    expect(new Set(versions).size).to.equal(3);
  });
});

describe('a secret file that is written', () => {
  it('has mode 0600 whatever the umask and whatever mode it was made with, and nothing is left beside it', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'proxy');
    const before = process.umask(0);
    try {
      await replaceSecretFile(path, systemClock, 'one');
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      let beside = 0;
      await replaceBy(
        path,
        systemClock,
        async (temporary) => {
          await writeFile(temporary, 'two', { mode: 0o666 });
          beside = statSync(join(temporary, '..')).mode & 0o777;
        },
        good,
      );
      expect(beside).to.equal(0o700);
    } finally {
      process.umask(before);
    }
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    expect(readFileSync(path, 'utf8')).to.equal('two');
    expect(readdirSync(directory)).to.deep.equal(['proxy']);
  });

  it('stays as it was when nothing is written, when it fails, and when the check does not like it', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'proxy');
    await replaceSecretFile(path, systemClock, 'good');
    const write = (temporary: string) => writeFile(temporary, 'bad');
    const fail = () => {
      throw new Error('no');
    };
    const tries: [make: (temporary: string) => Promise<void>, check: () => void][] = [
      [async () => undefined, good],
      [async () => fail(), good],
      [write, fail],
      [
        async (temporary) => {
          symlinkSync('/etc/passwd', temporary);
        },
        good,
      ],
      [
        async (temporary) => {
          mkdirSync(temporary);
        },
        good,
      ],
    ];
    for (const [make, check] of tries) await complaint(replaceBy(path, systemClock, make, check));
    expect((await complaint(replaceBy(path, systemClock, async () => undefined, good)))[0]).to.equal(
      'credential-tool',
    );
    expect(readFileSync(path, 'utf8')).to.equal('good');
    expect(readdirSync(directory)).to.deep.equal(['proxy']);
  });

  it('is what a link leads to, and the link stays one', async () => {
    const directory = temporaryDirectory();
    const link = join(directory, 'link');
    writeFileSync(join(directory, 'real'), 'old');
    symlinkSync('real', link);
    await replaceSecretFile(link, systemClock, 'new');
    expect(lstatSync(link).isSymbolicLink()).to.be.true;
    expect(readFileSync(join(directory, 'real'), 'utf8')).to.equal('new');
  });

  it('is refused with its reason where it cannot be', async () => {
    const directory = temporaryDirectory();
    const [code, message] = await complaint(replaceSecretFile(join(directory, 'a/b'), systemClock, 'x'));
    expect(code).to.equal('credential-unwritable');
    expect(message).to.contain(`${join(directory, 'a')} is no directory: make one`);
    writeFileSync(join(directory, 'file'), '');
    const below = await complaint(replaceSecretFile(join(directory, 'file/b'), systemClock, 'x'));
    expect(below[1]).to.contain('file is no directory');
    mkdirSync(join(directory, 'dir/full'), { recursive: true });
    const onto = await complaint(replaceSecretFile(join(directory, 'dir'), systemClock, 'x'));
    expect(onto[0]).to.equal('credential-unwritable');
    expect(readdirSync(directory).sort()).to.deep.equal(['dir', 'file']);
  });

  it('is rid of what a crash left beside it, but not of what another is making', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'proxy');
    const [old, fresh] = ['1', '2'].map((digit) =>
      join(directory, `.proxy.${digit.repeat(8)}-1111-1111-1111-111111111111.new`),
    );
    for (const left of [old ?? '', fresh ?? '']) mkdirSync(left);
    const hoursAgo = new Date(Date.now() - 2 * 3_600_000);
    utimesSync(old ?? '', hoursAgo, hoursAgo);
    await replaceSecretFile(path, systemClock, 'x');
    expect(readdirSync(directory)).to.have.members(['proxy', fresh?.slice(directory.length + 1)]);
  });

  it('is always one of two wholes when two write it at once', async () => {
    const path = join(temporaryDirectory(), 'proxy');
    const [a, b] = ['a'.repeat(200_000), 'b'.repeat(200_000)];
    for (let round = 0; round < 10; round++) {
      await Promise.all([replaceSecretFile(path, systemClock, a), replaceSecretFile(path, systemClock, b)]);
      expect(readFileSync(path, 'utf8')).to.be.oneOf([a, b]);
    }
  });

  it('a secret file keeps its owner, whichever user replaces it', async () => {
    const file = join(temporaryDirectory(), 'proxy');
    writeFileSync(file, 'old', { mode: 0o600 });
    // Whoever is not root has no other owner to give.
    if (process.getuid?.() === 0) chownSync(file, 1000, 1000);
    const before = statSync(file);
    await replaceSecretFile(file, systemClock, 'new');
    const { uid, gid } = statSync(file);
    expect({ uid, gid }).to.deep.equal({ uid: before.uid, gid: before.gid });
    expect(readFileSync(file, 'utf8')).to.equal('new');
  });
});
