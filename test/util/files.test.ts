import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../src/util/files.ts';
import { temporaryDirectory } from '../support/temporary.ts';

describe('writing a file atomically', () => {
  it('replaces the old content as a whole and leaves nothing beside it', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'factory');
    writeFileSync(file, 'a much longer old content');
    await writeFileAtomically(file, 'new');
    expect(readFileSync(file, 'utf8')).to.equal('new');
    expect(readdirSync(directory)).to.deep.equal(['factory']);
  });

  it('gives a secret its permissions from the first byte', async () => {
    const file = join(temporaryDirectory(), 'token');
    await writeFileAtomically(file, 'secret', 0o600);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
  });

  it('a failed atomic write leaves the old file and nothing beside it', async () => {
    const directory = temporaryDirectory();
    const taken = join(directory, 'taken');
    mkdirSync(taken);
    writeFileSync(join(taken, 'inside'), 'kept');
    const error: unknown = await writeFileAtomically(taken, 'new').catch((thrown: unknown) => thrown);
    expect(hasCode(error, 'EISDIR', 'ENOTEMPTY', 'EEXIST')).to.equal(true);
    expect(readdirSync(directory)).to.deep.equal(['taken']);
    expect(readFileSync(join(taken, 'inside'), 'utf8')).to.equal('kept');
  });

  it('an atomic write fails with the path when the directory is missing', async () => {
    const file = join(temporaryDirectory(), 'no', 'file');
    const error: unknown = await writeFileAtomically(file, 'new').catch((thrown: unknown) => thrown);
    expect(hasCode(error, 'ENOENT')).to.equal(true);
    expect(hasCode(error, 'EACCES', 'EPERM')).to.equal(false);
  });
});

describe('the code of an error', () => {
  it('the code of an error is looked for in errors only', () => {
    expect(hasCode({ code: 'ENOENT' }, 'ENOENT')).to.equal(false);
    expect(hasCode(new Error('ENOENT'), 'ENOENT')).to.equal(false);
    expect(hasCode(undefined, 'ENOENT')).to.equal(false);
  });
});

describe('making a directory', () => {
  it('makes what is missing above it, and takes what is there', async () => {
    const path = join(temporaryDirectory(), 'a', 'b', 'c');
    await Promise.all([ensureDirectory(path), ensureDirectory(path)]);
    await ensureDirectory(path);
    expect(statSync(path).isDirectory()).to.equal(true);
  });

  it('making a directory fails at once when nothing can be made, instead of trying for ever', async () => {
    const error: unknown = await ensureDirectory('/proc/nothing/here').catch((thrown: unknown) => thrown);
    expect(hasCode(error, 'ENOENT')).to.equal(true);
  });

  it('making a directory fails when a file is in the way', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const error: unknown = await ensureDirectory(join(file, 'below')).catch((thrown: unknown) => thrown);
    expect(hasCode(error, 'ENOTDIR')).to.equal(true);
    const itself: unknown = await ensureDirectory(file).catch((thrown: unknown) => thrown);
    expect(hasCode(itself, 'EEXIST')).to.equal(true);
  });
});
