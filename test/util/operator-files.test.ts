import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../src/util/clock.ts';
import { mountOf, parseMounts, readMounts } from '../../src/util/mounts.ts';
import { OperatorFiles, whyUnreadable } from '../../src/util/operator-files.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const never = () => new Promise<never>(() => undefined);
const soon = () => Promise.resolve('read');

describe('the files that operators name', () => {
  it('the files that operators name are read whole', async () => {
    const file = join(temporaryDirectory(), 'template.yaml');
    writeFileSync(file, 'command: /bin/true\n');
    const { bytes } = await new OperatorFiles({ clock: systemClock }).read(file, 'template');
    expect(bytes.toString()).to.equal('command: /bin/true\n');
  });

  it('are refused with what would be right where they are pipes, devices, directories or endless', async () => {
    const directory = temporaryDirectory();
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const large = join(directory, 'large');
    execFileSync('truncate', ['-s', '1G', large]);
    const files = new OperatorFiles({ clock: systemClock });
    const why = (path: string) =>
      files.read(path, 'template').then(
        () => 'read',
        (error: unknown) => whyUnreadable(error, 'template'),
      );
    expect(await why(pipe)).to.equal('it is a pipe, not a regular file: name the file of the template');
    expect(await why('/dev/zero')).to.equal(
      'it is a device, not a regular file: name the file of the template',
    );
    expect(await why(directory)).to.equal(
      'it is a directory, not a regular file: name the file of the template',
    );
    expect(await why(large)).to.equal(
      'it has more than the 1048576 bytes that are read of it, and no template is that large: name the right file',
    );
    expect(await why(join(directory, 'none'))).to.equal(
      'cannot read the file: ENOENT: no such file or directory',
    );
  });

  describe('on a file system that hangs', () => {
    let clock: ManualClock;
    let directory: string;
    let files: OperatorFiles;

    beforeEach(() => {
      clock = new ManualClock();
      directory = temporaryDirectory();
      mkdirSync(join(directory, 'nfs'));
      files = new OperatorFiles({
        clock,
        timeoutMs: 5000,
        mounts: () => [...readMounts(), join(directory, 'nfs')],
      });
    });

    const givenUp = async (calls: readonly Promise<unknown>[]) => {
      const ends = calls.map((call) => call.catch((error: unknown) => String(error)));
      let over = false;
      const all = Promise.all(ends).finally(() => (over = true));
      await until('all calls came back', async () => {
        await clock.advance(1000);
        return over;
      });
      return all;
    };

    it('a file on a hanging file system is given up after the deadline, with the file system in the message', async () => {
      const file = join(directory, 'nfs/template.yaml');
      expect(await givenUp([files.run(file, 'reading', never)])).to.deep.equal([
        `ThresherError: reading ${file} (the file system at ${join(directory, 'nfs')}) did not come back within 5 s`,
      ]);
    });

    it('files on a hanging file system take two threads at most, and further calls learn at once that it hangs', async () => {
      let begun = 0;
      const hang = () => {
        begun++;
        return never();
      };
      const file = (at: number) => join(directory, `nfs/template-${at}.yaml`);
      await givenUp([0, 1, 2, 3].map((at) => files.run(file(at), 'reading', hang)));
      expect(begun).to.equal(2);
      const again = await files.run(file(4), 'reading', hang).catch(String);
      expect(again).to.equal(
        `ThresherError: ${file(4)} was not looked at: the file system at ${join(directory, 'nfs')} has not answered earlier calls yet`,
      );
    });

    it('hole 8: a hanging file system takes two threads of the process, whoever asks', async () => {
      const mounts = () => [...readMounts(), join(directory, 'nfs')];
      const others = new OperatorFiles({ clock, timeoutMs: 5000, mounts });
      let begun = 0;
      const hang = () => {
        begun++;
        return never();
      };
      const asked = [files, others, files, others];
      await givenUp(asked.map((one, at) => one.run(join(directory, `nfs/${at}`), 'reading', hang)));
      expect(begun).to.equal(2);
    });

    it('hole 8: any number of removals leaves a place to those that are waited for', async () => {
      const lane = files.laneOf(join(directory, 'nfs'));
      let begun = 0;
      const hang = () => {
        begun++;
        return never();
      };
      const removals = [1, 2, 3].map((at) => lane.run(`removal ${at}`, hang, 'background'));
      expect(await files.run(join(directory, 'nfs/template.yaml'), 'reading', soon)).to.equal('read');
      await givenUp(removals);
      expect(begun).to.equal(1);
    });

    it('a hanging file system delays no file of another one, nor one beside a link that leads there', async () => {
      for (const name of ['a', 'b', 'c']) symlinkSync('nfs', join(directory, name));
      const hung = ['a', 'b', 'c'].map((name) =>
        files.run(join(directory, name, 'template.yaml'), 'reading', never),
      );
      await givenUp(hung);
      expect(await files.run(join(directory, 'template.yaml'), 'reading', soon)).to.equal('read');
    });

    it('a file is read again as soon as its file system answers', async () => {
      const release: (() => void)[] = [];
      const hang = () => new Promise<void>((resolve) => release.push(resolve));
      const file = join(directory, 'nfs/template.yaml');
      await givenUp([files.run(file, 'reading', hang), files.run(file, 'reading', hang)]);
      release.forEach((go) => {
        go();
      });
      await until(
        'the file is read',
        async () => (await files.run(file, 'reading', soon).catch(() => '')) === 'read',
      );
    });
  });
});

describe('mounts', () => {
  const text = [
    '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '23 22 0:5 / /nowhere/dead\\040disk rw - nfs4 server:/x rw',
    '24 22 0:6 / /nowhere rw - tmpfs tmpfs rw',
    '',
  ].join('\n');

  it('are those of the kernel, with blanks in their names', () => {
    expect(parseMounts(text)).to.deep.equal(['/', '/nowhere/dead disk', '/nowhere']);
    expect(readMounts()).to.include('/proc');
  });

  it('hold what is below them, and nothing that only begins with the same letters', () => {
    const mounts = parseMounts(text);
    expect(mountOf('/nowhere/dead disk/a', mounts)).to.equal('/nowhere/dead disk');
    expect(mountOf('/nowhere/dead', mounts)).to.equal('/nowhere');
    expect(mountOf('/nowherex', mounts)).to.equal('/');
    expect(mountOf('/nowhere', mounts)).to.equal('/nowhere');
  });
});
