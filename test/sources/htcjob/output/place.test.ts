import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { misfitOf } from '../../../../src/clients/htcjob/resource.ts';
import { directoryOf, outputProblems, OutputPlace } from '../../../../src/sources/htcjob/output/place.ts';
import { HeldDirectory, type OnFiles } from '../../../../src/sources/htcjob/output/directory.ts';
import { unpack } from '../../../../src/sources/htcjob/output/unpack.ts';
import { htcJob } from '../../../support/htc-jobs.ts';
import { archiveOf, inPieces } from '../../../support/archives.ts';
import { removeDirectory, temporaryDirectory } from '../../../support/temporary.ts';

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
      const flaw = misfitOf(htcJob({ output: { directory } }).spec);
      expect(flaw).to.match(/^spec.output must be an object, with a directory that is a relative path/);
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
    expect(refused).to.contain('/mine" is a link');
    await place.remove(parts).catch(() => undefined);
    expect(readdirSync(join(elsewhere, 'zero-1-2'))).to.deep.equal(['0']);
  });

  for (const part of ['..', '.', '', '../..', 'a/..', 'a\0'])
    it(`neither makes nor removes anything by ${JSON.stringify(part)}, however it came there`, async () => {
      // So deep that a version which leaves the directory of outputs stays in that of this test.
      const above = join(root, 'a', 'b', 'c', 'd');
      mkdirSync(join(above, 'beside', 'empty'), { recursive: true });
      mkdirSync(join(above, 'outputs', 'mine'), { recursive: true });
      place = new OutputPlace(join(above, 'outputs'), (_, work) => work());
      for (const way of [
        [part, 'beside', 'empty'],
        ['mine', part, 'x'],
      ]) {
        const refusals = [
          await place.make(way, '0', async () => undefined).catch((error: unknown) => error),
          await place.remove(way).catch((error: unknown) => error),
        ];
        for (const refusal of refusals) expect(refusal).to.include({ code: 'htcjob-output' });
      }
      expect(readdirSync(join(above, 'beside'))).to.deep.equal(['empty']);
    });

  it('is not made by thresher: it may be mounted elsewhere', async () => {
    renameSync(root, `${root}-away`);
    const message = await make('0').catch((error: unknown) => (error as Error).message);
    expect(message).to.contain('make it, or mount it');
    expect(existsSync(root)).to.equal(false);
    renameSync(`${root}-away`, root);
  });

  it('is not taken for empty while it is away, and holds up no deletion', async () => {
    await make('0');
    renameSync(root, `${root}-away`);
    const refusal = await place.has(parts, '0').catch((error: unknown) => error);
    expect(refusal)
      .to.include({ code: 'htcjob-output' })
      .and.have.property('message')
      .that.contains('make it, or mount it');
    await place.remove(parts);
    renameSync(`${root}-away`, root);
    expect(await place.has(parts, '0')).to.equal(true);
    await place.remove(parts);
    expect(await place.has(parts, '0')).to.equal(false);
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

  it('hole 8: names a link that has the name of an output', async () => {
    await make('0');
    symlinkSync(temporaryDirectory(), join(root, ...parts, '1'));
    expect(await messageFrom(place.has(parts, '1'))).to.contain('/mine/zero-1-2/1" is a link');
  });

  describe('of which a user changes the names meanwhile', () => {
    const bounds = { bytes: 1e6, files: 1000 };
    let victim: string;
    let before: number;

    /** Moves what has this name away, and gives the name to a link that leads to the directory of another user. */
    const swap = (...way: readonly string[]) => {
      const path = join(root, ...way);
      renameSync(path, join(root, 'moved'));
      symlinkSync(victim, path);
    };
    /** Swaps when this call of that kind is about to begin. */
    const swapping = (what: string, call: number, ...way: readonly string[]) => {
      let calls = 0;
      const onFiles: OnFiles = (said, work) => {
        if (said === what && ++calls === call) swap(...way);
        return work();
      };
      place = new OutputPlace(root, onFiles);
    };
    const unpackWhile = (archive: Buffer, at: number, change: () => void) =>
      place.make(parts, '0', (directory) => {
        const pieces = async function* () {
          yield* inPieces(archive.subarray(0, at));
          change();
          yield* inPieces(archive.subarray(at));
        };
        return unpack(pieces(), directory, bounds);
      });

    beforeEach(() => {
      victim = temporaryDirectory();
      for (const name of ['file0', 'file1', 'file2', 'result']) writeFileSync(join(victim, name), 'theirs');
      before = openFiles();
    });

    afterEach(() => {
      expect(readdirSync(victim)).to.deep.equal(['file0', 'file1', 'file2', 'result']);
      expect(openFiles()).to.equal(before);
    });

    it('hole 8: unpacks nothing behind a link in the place of the new output', async () => {
      const archive = archiveOf('for i in 1 2 3 4 5 6; do head -c 2000 /dev/zero > new$i; done');
      const partial = [...parts, '.partial-0'];
      const failed = unpackWhile(archive, 8000, () => {
        swap(...partial);
      });
      expect(await messageFrom(failed)).to.contain('/mine/zero-1-2/.partial-0" is a link');
      expect(readdirSync(join(root, ...parts))).to.deep.equal([]);
      // The room of the files is free again, wherever they went.
      expect(readdirSync(join(root, 'moved'))).to.deep.equal([]);
      await unpackWhile(archive, 8000, () => undefined);
      expect(readdirSync(join(root, ...parts, '0'))).to.have.length(6);
    });

    it('unpacks nothing behind a link in the place of the directory of the resource', async () => {
      const archive = archiveOf('for i in 1 2 3 4 5 6; do head -c 2000 /dev/zero > new$i; done');
      await unpackWhile(archive, 8000, () => {
        swap(...parts);
      });
      expect(readdirSync(join(root, 'moved/0'))).to.have.length(6);
    });

    it('hole 8: unpacks nothing behind a link in the place of a directory of the archive', async () => {
      const dirs = Array.from({ length: 20 }, (_, index) => `d${index}`);
      const pieces = [
        'mkdir a; echo 1 > a/one',
        `mkdir ${dirs.join(' ')}; for d in ${dirs.join(' ')}; do echo 1 > $d/file; done`,
        'mkdir a; echo 2 > a/two',
      ].map((script) => entriesOf(archiveOf(script)));
      const at = pieces.slice(0, 2).reduce((sum, piece) => sum + piece.length, 0);
      const archive = Buffer.concat([...pieces, Buffer.alloc(1024)]);
      const failed = unpackWhile(archive, at, () => {
        swap(...parts, '.partial-0/a');
      });
      expect(await messageFrom(failed)).to.contain('"the output/a" is a link');
      expect(readdirSync(join(root, 'moved'))).to.deep.equal(['one']);
      expect(readdirSync(join(root, ...parts))).to.deep.equal([]);
    });

    it('hole 8: gives no link the name of an output, also not one of the last moment', async () => {
      swapping('renaming an output', 1, ...parts, '.partial-0');
      expect(await messageFrom(make('0'))).to.contain('/mine/zero-1-2/0" is a link');
    });

    for (const [what, way] of [
      ['an output', [...parts, '0']],
      ['the directory of the resource', parts],
    ] as const)
      it(`hole 8: removes nothing behind a link in the place of ${what} that it removes`, async () => {
        const path = join(root, ...parts, '0');
        mkdirSync(path, { recursive: true });
        for (const name of ['file0', 'file1', 'file2']) writeFileSync(join(path, name), '');
        // The directories come first: two calls find out that they are no files.
        swapping('removing a file', 4, ...way);
        expect(await messageFrom(place.remove(parts))).to.contain(`/${way.join('/')}" is a link`);
        expect(existsSync(join(root, 'moved'))).to.equal(true);
        // Of a link that was there before, its name goes alone.
        await place.remove(parts);
        expect(existsSync(join(root, 'mine'))).to.equal(false);
      });

    it('removes a deep output, and a wide one, with few open descriptors', async () => {
      const [deep, wide] = [join(root, ...parts, '0', 'd/'.repeat(200)), join(root, ...parts, '1')];
      for (const path of [deep, wide]) mkdirSync(path, { recursive: true });
      for (let index = 0; index < 1500; index++) writeFileSync(join(wide, `file${index}`), '');
      for (const path of [deep, wide])
        writeFileSync(Buffer.concat([Buffer.from(path), Buffer.of(0x2f, 0xff, 0xfe)]), 'its name is no text');
      let most = 0;
      place = new OutputPlace(root, (_, work) => {
        most = Math.max(most, openFiles());
        return work();
      });
      await place.remove(parts);
      expect(readdirSync(root)).to.deep.equal([]);
      expect(most - before).to.be.within(1, 25);
    });

    it('keeps a deep archive with few open descriptors', async () => {
      // Deep ways that begin alike, and files in turn in them.
      const [first, second] = [`a/${'d/'.repeat(200)}`, `b/${'d/'.repeat(200)}`];
      const script = `mkdir -p ${first} ${second}; for i in 1 2 3; do echo $i > ${first}$i; ln ${first}$i ${second}$i; done`;
      let most = 0;
      const pieces = async function* () {
        for await (const piece of inPieces(archiveOf(script))) {
          most = Math.max(most, openFiles());
          yield piece;
        }
      };
      await place.make(parts, '0', (directory) => unpack(pieces(), directory, bounds));
      expect(readdirSync(join(root, ...parts, '0', second))).to.deep.equal(['1', '2', '3']);
      expect(most - before).to.be.within(1, 25);
    });

    for (const [what, content] of [
      ['by another program', '#!/bin/sh\n/usr/bin/touch "$ASKED"; exec /usr/bin/find "$@"\n'],
      ['by itself where that is not there', undefined],
    ] as const)
      it(`hole 8: reads the names of a large directory ${what}, and removes them whatever they are`, async () => {
        const programs = temporaryDirectory();
        const asked = join(programs, 'asked');
        if (content !== undefined) writeFileSync(join(programs, 'find'), content, { mode: 0o755 });
        const path = join(root, 'large');
        mkdirSync(path);
        for (let index = 0; index < 2500; index++)
          writeFileSync(join(path, `${'x'.repeat(150)}\n${index}`), '');
        writeFileSync(Buffer.concat([Buffer.from(path), Buffer.of(0x2f, 0xff, 0xfe)]), 'its name is no text');
        // A directory of tmpfs has no size by its names.
        const isLarge = statSync(path).size > 128 * 1024;
        const { PATH, ASKED } = process.env;
        Object.assign(process.env, { PATH: programs, ASKED: asked });
        const directory = await HeldDirectory.open(root, (_, work) => work());
        try {
          await directory.remove('large');
        } finally {
          await directory.close();
          process.env['PATH'] = PATH;
          if (ASKED === undefined) delete process.env['ASKED'];
        }
        expect(readdirSync(root)).to.deep.equal([]);
        expect(existsSync(asked)).to.equal(isLarge && content !== undefined);
      });

    it('hole 8: takes a bounded number of files, and the others when it is asked again', async () => {
      const path = join(root, 'busy');
      mkdirSync(path);
      for (let index = 0; index < 100; index++) writeFileSync(join(path, String(index)), '');
      const directory = await HeldDirectory.open(root, (_, work) => work());
      const refused = await messageFrom(directory.remove('busy', 60));
      expect(refused).to.contain('more than 60 files');
      expect(readdirSync(path)).to.have.length(41);
      await directory.remove('busy', 60);
      await directory.close();
      expect(readdirSync(root)).to.deep.equal([]);
    });

    for (const [what, how] of [
      ['remove', 'begins'],
      ['remove', 'ends'],
      ['make', 'begins'],
      ['make', 'ends'],
    ] as const)
      it(`hole 8: a call of ${what} that was given up and ${how} late changes nothing of another user`, async () => {
        let isGivenUp = true;
        let tries = 0;
        for (; isGivenUp; tries++) {
          isGivenUp = false;
          let calls = 0;
          let late: () => Promise<unknown> = async () => undefined;
          place = new OutputPlace(root, async (_, work) => {
            if (calls++ !== tries) return work();
            isGivenUp = true;
            const begun = how === 'ends' ? work() : undefined;
            begun?.catch(() => undefined);
            late = () => begun ?? work();
            throw new Error('given up');
          });
          for (const user of ['mine', 'theirs']) {
            removeDirectory(join(root, user));
            for (const name of ['0', '.partial-0']) {
              mkdirSync(join(root, user, 'zero-1-2', name), { recursive: true });
              writeFileSync(join(root, user, 'zero-1-2', name, 'file'), user);
            }
          }
          const theirs = ['theirs', 'theirs/zero-1-2'].map((way) => join(root, way));
          const had = readdirSync(join(root, 'theirs'), { recursive: true });
          await (what === 'make' ? make('0') : place.remove(parts)).catch(() => undefined);
          // They get the numbers of the descriptors that are free again.
          const opened = theirs.map((path) => openSync(path, 'r'));
          await late().catch(() => undefined);
          expect(readdirSync(join(root, 'theirs'), { recursive: true }), `call ${tries}`).to.deep.equal(had);
          for (const file of opened) closeSync(file);
          expect(openFiles(), `call ${tries}`).to.equal(before);
        }
        expect(tries).to.be.greaterThan(5);
      });
  });
});

async function messageFrom(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error: unknown) => (error as Error).message,
  );
}

/** Descriptors of this process: the list of them needs one, too. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').length - 1;
}

/** The entries of an archive without the blocks of zeros that end it. */
function entriesOf(archive: Buffer): Buffer {
  let end = archive.length;
  while (end >= 512 && archive.subarray(end - 512, end).every((byte) => byte === 0)) end -= 512;
  return archive.subarray(0, end);
}
