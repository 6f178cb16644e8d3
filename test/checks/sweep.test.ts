import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { isAlive, recordOf } from '../env/kubernetes/processes.ts';
import { removeDirectory } from '../support/temporary.ts';
import { root } from './copied-tree.ts';

const sweep = (TMPDIR: string) =>
  spawnSync(process.execPath, [join(root, 'test/env/sweep.ts')], {
    env: { ...process.env, TMPDIR },
    encoding: 'utf8',
  });

describe('a sweep', () => {
  it('ends and removes what killed tests have left, and nothing of tests that still run', async () => {
    const place = mkdtempSync(join(tmpdir(), 'sweep-'));
    // A process that has ended made one directory, and this process the other.
    const gone = spawn('true');
    const { pid: owner = 0 } = gone;
    await once(gone, 'close');
    const [theirs, mine] = [owner, process.pid].map((pid) => join(place, `thresher-test-${pid}-x`));
    for (const directory of [theirs, mine]) mkdirSync(directory ?? '');
    const server = (variable: string, value: string) =>
      spawn('sleep', ['1000'], { env: { [variable]: value }, detached: true, stdio: 'ignore' });
    const run = (pid: number) => `${pid}:${recordOf(pid)?.startTicks ?? 1}`;
    const left = [
      server('THRESHER_TEST_RUN', run(owner)),
      server('CONDOR_CONFIG', `${theirs ?? ''}/condor_config`),
      server('DATA', `x:${theirs ?? ''}/data:${theirs ?? ''}`),
    ];
    const living = [
      server('THRESHER_TEST_RUN', run(process.pid)),
      server('CONDOR_CONFIG', `${mine ?? ''}/condor_config`),
      server('OTHER', `${theirs ?? ''}:${mine ?? ''}`),
    ];
    try {
      const alive = (one: (typeof left)[number]) => recordOf(one.pid ?? 0);
      const before = [...left, ...living].map(alive);
      expect(before).to.not.include(undefined);
      const { status, stderr } = sweep(place);
      expect(status, stderr).to.equal(0);
      expect(stderr).to.match(/^test-env: ends \d+ processes of tests that were killed\n/);
      expect(before.map((one) => one !== undefined && isAlive(one))).to.deep.equal([
        ...left.map(() => false),
        ...living.map(() => true),
      ]);
      expect([theirs, mine].map((directory) => existsSync(directory ?? ''))).to.deep.equal([false, true]);
      expect(sweep(place)).to.include({ status: 0, stderr: '' });
    } finally {
      for (const one of [...left, ...living]) one.kill('SIGKILL');
      removeDirectory(place);
    }
  });
});
