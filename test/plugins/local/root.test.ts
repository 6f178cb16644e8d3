import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { WorkRoot } from '../../../src/plugins/local/root.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

for (const births of ['known', 'unknown'] as const)
  describe(`the record of a work directory on a file system where births are ${births}`, () => {
    let directory: string;
    let root: WorkRoot;
    const path = () => join(directory, 'work');
    const mark = () => join(path(), '.thresher-root');
    const records = () => join(directory, 'state', 'local-roots');
    const record = () => join(records(), readdirSync(records())[0] ?? expect.fail('there is no record'));
    const read = () => JSON.parse(readFileSync(record(), 'utf8')) as Record<string, string>;
    const change = (changes: Record<string, string>) => {
      writeFileSync(record(), JSON.stringify({ ...read(), ...changes }));
    };
    /** Another file stands in its place whenever it was written. */
    const written = () => statSync(record()).ino;

    beforeEach(async () => {
      directory = temporaryDirectory();
      const lane = new FileLane({ clock: systemClock, name: 'root', atOnce: 2, timeoutMs: 5000 });
      root = new WorkRoot(path(), { factoryId: 'own', stateDir: join(directory, 'state') }, lane, (where) => {
        const found = statSync(where, { throwIfNoEntry: false });
        const born = births === 'known' ? '1234' : '0';
        return Promise.resolve(found && { device: String(found.dev), inode: String(found.ino), born });
      });
      await root.prepare();
    });

    it('is written once, and not again while the directory is the same', async () => {
      const before = written();
      for (let n = 0; n < 3; n++) {
        expect(await root.require()).to.equal(true);
        await root.prepare();
      }
      expect(written()).to.equal(before);
    });

    it('is written again where the directory was mounted anew with its mark, and only then', async () => {
      change({ device: '1' });
      expect(await root.require()).to.equal(true);
      const after = written();
      expect(read().device).to.equal(String(statSync(path()).dev));
      await root.require();
      expect(written()).to.equal(after);
    });

    it('names the same directory after its mark was removed, and the same mark is written again', async () => {
      const { mark: old } = read();
      rmSync(mark());
      expect(await root.require()).to.equal(true);
      await root.prepare();
      expect(readFileSync(mark(), 'utf8')).to.equal(`${old ?? ''}\n`);
      expect(read().mark).to.equal(old);
    });

    for (const [what, damage] of [
      [
        'could not be written',
        () => {
          rmSync(mark());
        },
      ],
      [
        'was left empty by a power cut',
        () => {
          writeFileSync(mark(), '');
        },
      ],
    ] as const)
      it(`gets the mark later that ${what}`, async () => {
        damage();
        change({ mark: '' });
        expect(await root.require()).to.equal(true);
        await root.prepare();
        expect(read().mark).to.match(/^[0-9a-f-]{36}$/);
        expect(readFileSync(mark(), 'utf8')).to.equal(`${read().mark ?? ''}\n`);
      });

    it('names no other directory, nor one with another mark', async () => {
      writeFileSync(mark(), 'another\n');
      change({ born: births === 'known' ? '1' : '0' });
      expect(await root.require().catch((error: unknown) => error)).to.include({ code: 'local-root-lost' });
      rmSync(mark());
      change({ inode: '1' });
      expect(await root.require().catch((error: unknown) => error)).to.include({ code: 'local-root-lost' });
    });
  });
