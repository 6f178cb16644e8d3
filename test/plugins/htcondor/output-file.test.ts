import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { endOfFile } from '../../../src/plugins/htcondor/output-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the output of a job', () => {
  let directory: string;
  const path = (...names: string[]) => join(directory, ...names);
  const read = (name: string, most = 100, from = directory) => endOfFile({ directory: from, name }, most);
  const refused = async (name: string) =>
    expect(await read(name).catch((error: unknown) => error)).to.include({ code: 'no-log' });

  beforeEach(() => {
    directory = temporaryDirectory();
    mkdirSync(path('sub', 'deep'), { recursive: true });
    mkdirSync(path('secrets'));
    writeFileSync(path('secrets', 'out'), 'secret');
  });

  it('is read, its end where it is long', async () => {
    writeFileSync(path('sub', 'deep', 'out'), '0123456789');
    expect(await read('sub/deep/out')).to.equal('0123456789');
    expect(await read('./sub//deep/out', 4)).to.equal('6789');
  });

  it('is read through links of the operator, in the way to the directory of the job', async () => {
    writeFileSync(path('sub', 'out'), 'text');
    symlinkSync(path('sub'), path('link'));
    expect(await read('out', 100, path('link'))).to.equal('text');
    expect(await read('../sub/out', 100, path('sub', '..', 'secrets'))).to.equal('text');
  });

  it('is none where there is none', async () => {
    expect(await read('none')).to.equal(undefined);
    expect(await read('none/out')).to.equal(undefined);
    expect(await read('out', 100, path('none'))).to.equal(undefined);
  });

  it('is not read through a link in its place', async () => {
    symlinkSync(path('secrets', 'out'), path('out'));
    await refused('out');
  });

  it('is not read through a link in the place of a directory below that of the job', async () => {
    symlinkSync(path('secrets'), path('sub', 'link'));
    await refused('sub/link/out');
  });

  for (const [what, put] of [
    ['a pipe', (file: string) => spawnSync('mkfifo', [file])],
    [
      'a directory',
      (file: string) => {
        mkdirSync(file);
      },
    ],
    [
      'a link to a device',
      (file: string) => {
        symlinkSync('/dev/zero', file);
      },
    ],
  ] as const)
    it(`is refused at once where ${what} stands in its place`, async () => {
      put(path('out'));
      await refused('out');
    });

  it('is refused where a file stands in the place of a directory', async () => {
    writeFileSync(path('file'), '');
    await refused('file/out');
  });
});
