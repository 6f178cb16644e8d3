import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { directoryOf, outputProblems, OutputPlace } from '../../../../src/sources/htcjob/output/place.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const meta = { namespace: 'mine', name: 'zero', uid: '1-2', resourceVersion: '1' };

describe('the directory of outputs', () => {
  let root: string;
  let place: OutputPlace;
  const parts = ['mine', 'zero-1-2'];
  const make = (name: string) =>
    place.make(parts, name, async (directory) => {
      writeFileSync(join(directory, 'file'), name);
    });

  beforeEach(() => {
    root = temporaryDirectory();
    place = new OutputPlace(root, (_, work) => work());
  });

  it('gives each resource a directory of its own, below the one that it names', () => {
    expect(directoryOf(meta, {})).to.deep.equal(['mine', 'zero-1-2']);
    expect(directoryOf(meta, { output: { directory: 'a/b' } })).to.deep.equal(['mine', 'a', 'b', 'zero-1-2']);
  });

  for (const directory of [
    '../other',
    '/etc',
    'a/../b',
    'a//b',
    '',
    '.hidden',
    '-x',
    'a b',
    'a\n',
    'x'.repeat(201),
  ])
    it(`refuses ${JSON.stringify(directory.slice(0, 20))} as the directory of a resource`, () => {
      const [problem] = outputProblems({ output: { directory } }, true);
      expect(problem?.at).to.equal('/spec/output/directory');
      expect(problem?.message).to.contain('it must be a relative path');
    });

  for (const file of ['../other', '/etc/passwd', 'a/../b', '', 'a/', 'a\nb', './a'])
    it(`refuses ${JSON.stringify(file)} as a file of the output`, () => {
      const [problem] = outputProblems({ output: { files: ['right', file] } }, true);
      expect(problem?.at).to.equal('/spec/output/files/1');
    });

  it('refuses a resource that asks for output where none is kept', () => {
    expect(outputProblems({}, false)).to.deep.equal([]);
    const [problem] = outputProblems({ output: {} }, false);
    expect(problem?.message).to.contain('outputDir of sources.htcjob is not set');
  });

  it('gives an output its name once it is whole', async () => {
    expect(await place.has(parts, '0')).to.equal(false);
    const failed = place.make(parts, '0', async (directory) => {
      writeFileSync(join(directory, 'half'), '');
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    });
    expect(await failed.catch((error: unknown) => (error as Error).message)).to.contain('no space');
    expect(await place.has(parts, '0')).to.equal(false);
    // Room for others is made at once.
    expect(readdirSync(join(root, ...parts))).to.deep.equal([]);
    await make('0');
    expect(await place.has(parts, '0')).to.equal(true);
    expect(readdirSync(join(root, ...parts, '0'))).to.deep.equal(['file']);
  });

  it('begins anew after a crash in the middle', async () => {
    mkdirSync(join(root, ...parts, '.partial-0'), { recursive: true });
    writeFileSync(join(root, ...parts, '.partial-0/other'), '');
    await make('0');
    expect(readdirSync(join(root, ...parts))).to.deep.equal(['0']);
    expect(readdirSync(join(root, ...parts, '0'))).to.deep.equal(['file']);
  });

  it('follows no link below it, neither to write nor to remove', async () => {
    const elsewhere = temporaryDirectory();
    mkdirSync(join(elsewhere, 'zero-1-2/0'), { recursive: true });
    symlinkSync(elsewhere, join(root, 'mine'));
    const refused = await make('1').catch((error: unknown) => (error as Error).message);
    expect(refused).to.contain('a link or a file is in the way');
    await place.remove(parts).catch(() => undefined);
    expect(readdirSync(join(elsewhere, 'zero-1-2'))).to.deep.equal(['0']);
  });

  it('is not made by thresher: it may be mounted elsewhere', async () => {
    renameSync(root, `${root}-away`);
    const message = await make('0').catch((error: unknown) => (error as Error).message);
    expect(message).to.contain('make it, or mount it');
    expect(existsSync(root)).to.equal(false);
    await place.remove(parts);
    renameSync(`${root}-away`, root);
  });

  it('loses all of a resource that goes, and keeps those of others', async () => {
    await make('0');
    await make('1');
    const other = ['mine', 'other-3'];
    await place.make(other, '0', async () => undefined);
    await place.remove(parts);
    expect(readdirSync(join(root, 'mine'))).to.deep.equal(['other-3']);
    await place.remove(parts);
    await place.remove(other);
    expect(readdirSync(root)).to.deep.equal([]);
  });
});
