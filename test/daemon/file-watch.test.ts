import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { FileWatch } from '../../src/daemon/file-watch.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { files } from '../support/operator-files.ts';
import { removeDirectory, temporaryDirectory } from '../support/temporary.ts';

describe('the watch of a file', () => {
  let directory: string;
  let file: string;
  let watch: FileWatch;
  let clock: ManualClock;

  beforeEach(async () => {
    directory = temporaryDirectory();
    file = join(directory, 'queues.json');
    writeFileSync(file, '{"A":1}');
    clock = new ManualClock(0);
    watch = new FileWatch(file, { settle: 500, clock, files });
    await watch.use();
  });

  /** What so many looks see, one after the other. */
  async function looks(count: number): Promise<string[]> {
    const seen: string[] = [];
    for (let look = 0; look < count; look++) {
      await clock.advance(500);
      seen.push(await watch.look());
    }
    return seen;
  }

  it('sees nothing in a file that stays as it is', async () => {
    expect(await looks(3)).to.deep.equal(['same', 'same', 'same']);
  });

  it('sees nothing in a file that was touched, or written anew with the same content', async () => {
    utimesSync(file, new Date(), new Date(0));
    expect(await watch.look()).to.equal('same');
    writeFileSync(join(directory, 'copy'), '{"A":1}');
    renameSync(join(directory, 'copy'), file);
    expect(await looks(2)).to.deep.equal(['same', 'same']);
  });

  it('sees a change again that could not be taken up', async () => {
    writeFileSync(file, '{"A":2}');
    expect(await looks(2)).to.deep.equal(['changing', 'changed']);
    await watch.use();
    expect(await looks(1)).to.deep.equal(['same']);
    watch.forget();
    expect(await looks(1)).to.deep.equal(['changed']);
  });

  it('does not take what stayed for a moment only', async () => {
    writeFileSync(file, '{"A":2}');
    expect(await watch.look()).to.equal('changing');
    await clock.advance(499);
    expect(await watch.look()).to.equal('changing');
    await clock.advance(1);
    expect(await watch.look()).to.equal('changed');
  });

  it('sees a change only when it stayed from one look to the next', async () => {
    writeFileSync(file, '{"A":2}');
    expect(await looks(2)).to.deep.equal(['changing', 'changed']);
  });

  it('waits while a file is being written, however long that takes', async () => {
    const seen: string[] = [];
    for (const part of ['{', '{"A"', '{"A":2', '{"A":2}']) {
      writeFileSync(file, part);
      seen.push(await watch.look());
    }
    expect([...seen, ...(await looks(1))]).to.deep.equal([
      ...['changing', 'changing', 'changing', 'changing', 'changed'],
    ]);
  });

  it('sees nothing in a change that was taken back before the next look', async () => {
    writeFileSync(file, 'half of it');
    expect(await watch.look()).to.equal('changing');
    writeFileSync(file, '{"A":1}');
    expect(await looks(2)).to.deep.equal(['same', 'same']);
  });

  it('says changed until somebody uses the file as it is', async () => {
    writeFileSync(file, '{"A":2}');
    expect(await looks(3)).to.deep.equal(['changing', 'changed', 'changed']);
    await watch.use();
    expect(await looks(2)).to.deep.equal(['same', 'same']);
  });

  it('sees that a file is gone, and that it came back', async () => {
    rmSync(file);
    expect(await looks(2)).to.deep.equal(['changing', 'changed']);
    await watch.use();
    expect(await looks(2)).to.deep.equal(['same', 'same']);
    writeFileSync(file, '{"A":1}');
    expect(await looks(2)).to.deep.equal(['changing', 'changed']);
  });

  it('does not mind a file that is gone for a moment, as while an editor renames', async () => {
    rmSync(file);
    expect(await watch.look()).to.equal('changing');
    writeFileSync(file, '{"A":1}');
    expect(await watch.look()).to.equal('same');
  });

  it('sees a symbolic link that leads elsewhere, as Kubernetes swaps ConfigMaps', async () => {
    const mount = join(directory, 'mount');
    for (const version of ['..1', '..2', '..3']) mkdirSync(join(mount, version), { recursive: true });
    writeFileSync(join(mount, '..1', 'queues.json'), '{"A":1}');
    writeFileSync(join(mount, '..2', 'queues.json'), '{"A":2}');
    writeFileSync(join(mount, '..3', 'queues.json'), '{"A":2}');
    const swapTo = (version: string) => {
      symlinkSync(version, join(mount, '..data_tmp'));
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    };
    swapTo('..1');
    symlinkSync(join('..data', 'queues.json'), join(mount, 'queues.json'));
    watch = new FileWatch(join(mount, 'queues.json'), { settle: 500, clock, files });
    await watch.use();
    swapTo('..2');
    removeDirectory(join(mount, '..1'));
    expect(await looks(2)).to.deep.equal(['changing', 'changed']);
    await watch.use();
    // Kubernetes renews the directory also where only another key of the ConfigMap changed.
    swapTo('..3');
    expect(await looks(2)).to.deep.equal(['same', 'same']);
  });
});
