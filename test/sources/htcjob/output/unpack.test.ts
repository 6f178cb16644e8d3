import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { unpack } from '../../../../src/sources/htcjob/output/unpack.ts';
import { archiveOf, inPieces } from '../../../support/archives.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const usual = { bytes: 1e6, files: 100 };

describe('the archive of a job', () => {
  const unpacked = async (archive: Buffer, bounds = usual, length = 1000) => {
    const directory = join(temporaryDirectory(), 'new');
    mkdirSync(directory);
    const result = await unpack(inPieces(archive, length), directory, bounds);
    return { directory, ...result };
  };
  const failure = (archive: Buffer, bounds = usual) =>
    unpacked(archive, bounds).then(
      () => 'none',
      (error: unknown) => (error as Error).message,
    );

  for (const format of ['gnu', 'ustar', 'posix'])
    for (const length of [7, 512, 100_000])
      it(`keeps bytes, modes and directories in the format ${format}, in pieces of ${length}`, async () => {
        const script =
          'mkdir -p a/b empty; printf "\\000\\377" > "a/b/a name"; chmod 750 "a/b/a name"; : > none; echo x > -x; echo 1 > one; ln one two';
        const { directory, files, leftOut } = await unpacked(
          archiveOf(script, `--format=${format}`),
          usual,
          length,
        );
        expect([...readFileSync(join(directory, 'a/b/a name'))]).to.deep.equal([0, 255]);
        expect(statSync(join(directory, 'a/b/a name')).mode & 0o777).to.equal(0o750);
        expect(readdirSync(directory).sort()).to.deep.equal(['-x', 'a', 'empty', 'none', 'one', 'two']);
        expect(readFileSync(join(directory, 'two'), 'utf8')).to.equal('1\n');
        expect([files, leftOut]).to.deep.equal([5, 0]);
      });

  for (const format of ['gnu', 'posix'])
    it(`keeps long names in the format ${format}`, async () => {
      const name = `${'d'.repeat(200)}/${'ü'.repeat(100)}`;
      const { directory } = await unpacked(
        archiveOf(`mkdir ${'d'.repeat(200)}; echo long > ${name}`, `--format=${format}`),
      );
      expect(readFileSync(join(directory, name), 'utf8')).to.equal('long\n');
    });

  for (const format of ['gnu', 'posix'])
    it(`keeps files apart whose names are no UTF-8 in the format ${format}`, async () => {
      const long = 'l'.repeat(110);
      // The bytes of ä and ö in ISO 8859-1.
      const script = `a=$(printf "\\344"); o=$(printf "\\366"); for i in $a $o ${long}$a ${long}$o; do echo $i > $i; done`;
      const { directory, files } = await unpacked(archiveOf(script, `--format=${format}`));
      expect(files).to.equal(4);
      expect(readdirSync(directory).sort()).to.deep.equal([`${long}ä`, `${long}ö`, 'ä', 'ö']);
      expect(readFileSync(join(directory, 'ä'), 'latin1')).to.equal('ä\n');
    });

  it('leaves out links, pipes and all that lies behind a link', async () => {
    const script = 'ln -s /etc/passwd link; ln -s / root; mkfifo pipe; echo 1 > file; chmod 4777 file';
    const { directory, leftOut } = await unpacked(archiveOf(script));
    expect(readdirSync(directory)).to.deep.equal(['file']);
    expect(statSync(join(directory, 'file')).mode & 0o7777).to.equal(0o755);
    expect(leftOut).to.equal(3);
  });

  for (const [what, options] of [
    ['leads upwards', ['--transform=s,^./file,../evil,']],
    ['leads upwards in its middle', ['--transform=s,^./file,a/../../evil,']],
    ['is absolute', ['-P', '--transform=s,^./file,/tmp/evil,']],
  ] as const)
    it(`is refused with a name that ${what}`, async () => {
      expect(await failure(archiveOf('echo 1 > file', ...options))).to.contain('leads elsewhere');
      expect(existsSync('/tmp/evil')).to.equal(false);
    });

  it('leaves out what is below a file: the file became a directory while tar packed', async () => {
    const [file, directory] = [archiveOf('echo 1 > a'), archiveOf('mkdir a; echo 1 > a/b')];
    // The first without its end, and the second behind it.
    const both = Buffer.concat([file.subarray(0, 3 * 512), directory]);
    const { directory: kept, files, leftOut } = await unpacked(both);
    expect(readFileSync(join(kept, 'a'), 'utf8')).to.equal('1\n');
    expect([files, leftOut]).to.deep.equal([1, 2]);
  });

  it('is refused over its bounds of files and of bytes, before they are written', async () => {
    const many = archiveOf('for i in 1 2 3 4 5 6; do mkdir d$i; echo $i > d$i/file; done');
    expect(await failure(many, { ...usual, files: 10 })).to.contain('more than the 10 files');
    const large = archiveOf('head -c 2000 /dev/zero > a');
    expect(await failure(large, { ...usual, bytes: 1999 })).to.contain('more than the 1999 bytes');
    expect(await failure(large, { ...usual, bytes: 2000 })).to.equal('none');
  });

  it('is refused if it is damaged, and known as cut where its end is missing', async () => {
    const archive = archiveOf('head -c 3000 /dev/zero > a');
    const damaged = Buffer.from(archive);
    damaged.writeUInt8(1, 600);
    expect(await failure(damaged)).to.contain('no archive of tar, or is damaged');
    for (const length of [0, 100, 512, 1024, 3000, 5 * 512]) {
      const error: unknown = await unpacked(archive.subarray(0, length)).catch((reason: unknown) => reason);
      expect(error, String(length)).to.include({ name: 'WrongArchive', isCut: true });
    }
  });

  it('keeps 10,000 files', async () => {
    const script = 'i=0; while [ $i -lt 10000 ]; do : > file$i; i=$((i + 1)); done';
    const { directory, files } = await unpacked(archiveOf(script), { bytes: 1e6, files: 10_001 }, 65_536);
    expect(files).to.equal(10_000);
    expect(readdirSync(directory)).to.have.length(10_000);
  });
});
