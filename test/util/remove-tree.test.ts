import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../src/util/clock.ts';
import { FileLane } from '../../src/util/file-lane.ts';
import { removeTree } from '../../src/util/remove-tree.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const laneOn = (clock = systemClock) => new FileLane({ clock, name: 'tree', atOnce: 1, timeoutMs: 5000 });

describe('removeTree', () => {
  let directory: string;
  const path = (...names: string[]) => join(directory, ...names);

  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it('removes a tree with all kinds of things in it, and nothing behind a link', async () => {
    mkdirSync(path('tree', 'a', 'b'), { recursive: true });
    mkdirSync(path('kept'));
    writeFileSync(path('kept', 'file'), '');
    symlinkSync(path('kept'), path('tree', 'a', 'link'));
    symlinkSync('nowhere', path('tree', 'dangling'));
    spawnSync('mkfifo', [path('tree', 'a', 'b', 'pipe')]);
    for (let n = 0; n < 300; n++) writeFileSync(path('tree', 'a', String(n)), '');
    await removeTree(path('tree'), laneOn());
    expect(readdirSync(directory)).to.deep.equal(['kept']);
    expect(existsSync(path('kept', 'file'))).to.equal(true);
  });

  it('removes a link itself, and a file', async () => {
    mkdirSync(path('kept'));
    symlinkSync(path('kept'), path('link'));
    writeFileSync(path('file'), '');
    await removeTree(path('link'), laneOn());
    await removeTree(path('file'), laneOn());
    expect(readdirSync(directory)).to.deep.equal(['kept']);
  });

  it('hole 8: removes a tree that is deeper than any path can say, whatever bytes its names have', async () => {
    const name = 'x'.repeat(200);
    const deepen = `mkdir tree; cd tree; for n in $(seq 60); do mkdir ${name} "$n"; touch file; cd ${name}; done`;
    expect(spawnSync('bash', ['-c', deepen], { cwd: directory }).status).to.equal(0);
    const odd = Buffer.concat([Buffer.from(path('tree', 'odd')), Buffer.from([0xff])]);
    mkdirSync(odd);
    writeFileSync(Buffer.concat([odd, Buffer.from('/'), Buffer.from([0xfe])]), '');
    await removeTree(path('tree'), laneOn());
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it('removeTree succeeds when the file does not exist', async () => {
    await removeTree(path('none'), laneOn());
  });

  it('leaves a place of its lane to other work, however many trees are removed', async () => {
    const trees = Array.from({ length: 16 }, (_, n) => path(String(n)));
    for (const tree of trees) {
      mkdirSync(tree);
      for (let n = 0; n < 200; n++) writeFileSync(join(tree, String(n)), '');
    }
    const lane = new FileLane({ clock: systemClock, name: 'trees', atOnce: 2, timeoutMs: 20_000 });
    const removals = Promise.all(trees.map((tree) => removeTree(tree, lane)));
    for (let n = 0; n < 20; n++) await lane.run('other work', () => Promise.resolve());
    const left = trees.flatMap((tree) => readdirSync(tree));
    expect(left.length).to.be.above(1600);
    await removals;
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it('lets other work of its lane have its turn in between', async () => {
    for (let n = 0; n < 20; n++) mkdirSync(path('tree', String(n)), { recursive: true });
    const lane = laneOn();
    let done = false;
    const removal = removeTree(path('tree'), lane).then(() => {
      done = true;
    });
    await lane.run('a look', () => Promise.resolve());
    expect(done).to.equal(false);
    await removal;
  });

  it('is given up where the file system does not answer', async () => {
    const clock = new ManualClock();
    const lane = laneOn(clock);
    lane.run('a look', () => new Promise(() => undefined)).catch(() => undefined);
    const removal = removeTree(path('tree'), lane).catch((error: unknown) => error);
    await clock.advance(5000);
    expect(await removal).to.include({ code: 'file-timeout' });
  });
});
