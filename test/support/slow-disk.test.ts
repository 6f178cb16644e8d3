import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';

describe('a slow disk', () => {
  it('gives what is asked of it at once in any order', async () => {
    const program = `
      import { readFile } from 'node:fs/promises';
      const first = new Set();
      const read = async (at) => { await readFile('/dev/null'); return at; };
      for (let round = 0; round < 100; round++) first.add(await Promise.race([0, 1, 2, 3].map(read)));
      console.log([...first].sort().join());`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--import=${join(import.meta.dirname, 'slow-disk.ts')}`,
      '--input-type=module',
      '--eval',
      program,
    ]);
    expect(stdout).to.equal('0,1,2,3\n');
  });
});
