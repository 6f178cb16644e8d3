import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import type { OnFiles } from '../../../../src/sources/htcjob/output/directory.ts';
import { unpack } from '../../../../src/sources/htcjob/output/unpack.ts';
import { archiveOf, inPieces } from '../../../support/archives.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const bounds = { bytes: 100_000, files: 30 };
/** Hardly more than the archives of the mutations have. */
const tight = { bytes: 4000, files: 12 };
const block = 512;

describe('the archive of a job that may be hostile', () => {
  const fresh = () => {
    const directory = join(temporaryDirectory(), 'new');
    mkdirSync(directory);
    return directory;
  };

  for (const format of ['gnu', 'posix'])
    it(`keeps a name of several blocks in the format ${format}, wherever its pieces end`, async () => {
      // A decoder of single pieces loses a character whose bytes two of them share: the file would get another name.
      const parent = `${'ü'.repeat(120)}/`.repeat(3);
      const archive = archiveOf(`mkdir -p ${parent}; echo long > ${parent}file`, `--format=${format}`);
      for (let at = 3; at < archive.length; at += 211) {
        const directory = fresh();
        const pieces = async function* () {
          yield archive.subarray(0, at);
          yield archive.subarray(at);
        };
        await unpack(pieces(), directory, bounds);
        expect(readdirSync(join(directory, parent)), String(at)).to.deep.equal(['file']);
      }
    });

  it('is never decompressed', async () => {
    const archive = archiveOf('head -c 50000 /dev/zero > a');
    for (const compressed of [
      gzipSync(archive, { level: 0 }),
      zstdCompressSync(archive),
      gzipSync(archive),
    ]) {
      // What is shorter than a block counts as cut.
      const padded = Buffer.concat([compressed, Buffer.alloc(1024)]);
      const directory = fresh();
      const error: unknown = await unpack(inPieces(padded), directory, bounds).catch(
        (reason: unknown) => reason,
      );
      expect(error).to.include({ name: 'WrongArchive', isCut: false });
      expect(readdirSync(directory)).to.deep.equal([]);
    }
  });

  it('is read no faster than its files are written', async () => {
    const archive = archiveOf('head -c 90000 /dev/zero > a');
    let [read, written, furthest] = [0, 0, 0];
    const pieces = async function* () {
      for await (const piece of inPieces(archive)) {
        read += piece.length;
        furthest = Math.max(furthest, read - written);
        yield piece;
      }
    };
    const onFiles: OnFiles = async (what, work) => {
      const had = read;
      // A reader that runs ahead would take more pieces in this time.
      await new Promise((resolve) => setTimeout(resolve, 1));
      const result = await work();
      if (what === 'writing a file') written = had;
      return result;
    };
    await unpack(pieces(), fresh(), bounds, onFiles);
    expect(read).to.be.greaterThan(90_000);
    expect(furthest).to.be.lessThan(5000);
  });

  it('changes nothing outside of its directory, and breaks no bound, in 500 mutations', async () => {
    const script = [
      `mkdir -p a/b ${'d'.repeat(80)}; echo 1 > a/b/one; ln a/b/one two; ln -s /etc link; mkfifo pipe`,
      `echo 3 > ${'d'.repeat(80)}/${'ü'.repeat(40)}; head -c 3000 /dev/zero > zeros; truncate -s 1M sparse`,
    ].join('; ');
    const archives = ['gnu', 'posix', 'ustar'].map((format) =>
      archiveOf(script, `--format=${format}`, ...(format === 'ustar' ? ['--exclude=sparse'] : ['--sparse'])),
    );
    const odd = fc.constantFrom(...Buffer.from('\0./0123567LKxgSsV9-\n\x1f\x80\xff', 'latin1'));
    const byte = fc.oneof(odd, fc.nat(255)).map((one) => Buffer.of(one));
    const many = 'many/directories/that/are/more/than/may/be/kept/of/an/output/one\0';
    const outside = ['../beside\0', '../', '/../', 'a/../../beside\0', './../new/x\0', '..\0'];
    const names = [many, ...outside].map((name) => Buffer.from(name));
    const sizes = ['00000007000\0', '00000010000\0', '77777777777\0'].map((size) => Buffer.from(size));
    const change = fc.oneof(
      fc.record({ at: fc.nat(), place: fc.nat(2 * block - 1), bytes: byte }),
      // The fields of the name and of the name that a link leads to, of the size and of the type.
      fc.record({ at: fc.nat(), place: fc.constantFrom(0, 157), bytes: fc.constantFrom(...names) }),
      fc.record({ at: fc.nat(), place: fc.constant(124), bytes: fc.constantFrom(...sizes) }),
      fc.record({ at: fc.nat(), place: fc.constant(156), bytes: byte }),
    );
    const mutation = fc.record({
      archive: fc.constantFrom(...archives),
      changes: fc.array(change, { minLength: 1, maxLength: 6 }),
      doubled: fc.option(fc.nat()),
      length: fc.option(fc.nat()),
      piece: fc.integer({ min: 1, max: 3000 }),
      isSummed: fc.boolean(),
    });
    const outcomes = { whole: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(mutation, async (chosen) => {
        const directory = fresh();
        const beside = join(directory, '../beside');
        writeFileSync(beside, 'untouched');
        const error: unknown = await unpack(inPieces(mutant(chosen), chosen.piece), directory, tight).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        outcomes[error === undefined ? 'whole' : 'refused']++;
        // Either it is wrong, or the file system refuses what it asks for.
        if (error !== undefined) expect(isExpected(error), inspect(error)).to.equal(true);
        expect(readdirSync(join(directory, '..')).sort()).to.deep.equal(['beside', 'new']);
        expect(readFileSync(beside, 'utf8')).to.equal('untouched');
        expect(lstatSync(beside).nlink).to.equal(1);
        requireHarmless(directory);
      }),
      { numRuns: 500, seed: 1, endOnFailure: true },
    );
    // Neither only noise nor only what changes nothing.
    expect(outcomes.whole).to.be.greaterThan(50);
    expect(outcomes.refused).to.be.greaterThan(50);
  });
});

interface Mutation {
  readonly archive: Buffer;
  /** Bytes at a place of a header, or of the block behind it. */
  readonly changes: readonly { readonly at: number; readonly place: number; readonly bytes: Buffer }[];
  /** A block that is there twice. */
  readonly doubled: number | null;
  readonly length: number | null;
  /** Whether the sums of the headers are right again: else nearly all mutants end at the first one. */
  readonly isSummed: boolean;
}

function mutant({ archive, changes, doubled, length, isSummed }: Mutation): Buffer {
  let bytes = Buffer.from(archive);
  const headers: number[] = [];
  for (let at = 0; at < bytes.length; at += block)
    if (bytes.toString('latin1', at + 257, at + 262) === 'ustar') headers.push(at);
  for (const { at, place, bytes: changed } of changes)
    changed.copy(bytes, (headers[at % headers.length] ?? 0) + place);
  if (isSummed) for (const at of headers) writeSum(bytes.subarray(at, at + block));
  if (doubled !== null) {
    const at = (doubled % (bytes.length / block)) * block;
    bytes = Buffer.concat([bytes.subarray(0, at + block), bytes.subarray(at)]);
  }
  return length === null || length % 4 !== 0 ? bytes : bytes.subarray(0, length % bytes.length);
}

function writeSum(header: Buffer): void {
  header.write(' '.repeat(8), 148, 'latin1');
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof Error && (error.name === 'WrongArchive' || ('errno' in error && 'syscall' in error))
  );
}

/** Plain files and directories alone, within the bounds. */
function requireHarmless(directory: string): void {
  let bytes = 0;
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  for (const name of names) {
    const facts = lstatSync(join(directory, name));
    expect(facts.isFile() || facts.isDirectory(), name).to.equal(true);
    expect(facts.mode & 0o7022, name).to.equal(0);
    if (facts.isFile()) bytes += facts.size / facts.nlink;
  }
  expect(names.length).to.be.at.most(tight.files);
  expect(bytes).to.be.at.most(tight.bytes);
}
