import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shimScript } from '../../../src/plugins/local/shim.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the shim of a local worker', () => {
  it('starts nothing when it wakes while a sweep removes its directory and the fence in it', async () => {
    const root = temporaryDirectory();
    const path = (...parts: string[]) => join(root, ...parts);
    // It sleeps right before it makes its claim.
    const ln = `#!/bin/sh\n: > ${path('asleep')}\nuntil [ -e ${path('awake')} ]; do sleep 0.02; done\nexec /bin/ln "$@"\n`;
    mkdirSync(path('bin'));
    writeFileSync(path('bin', 'ln'), ln, { mode: 0o755 });
    writeFileSync(path('shim'), shimScript);
    mkdirSync(path('1'));
    const shim = spawn('/bin/sh', [path('shim'), path('1'), '1', root, 'touch', path('started')], {
      env: { PATH: `${path('bin')}:${process.env.PATH ?? ''}` },
      stdio: 'ignore',
    });
    const ended = once(shim, 'exit');
    await until('it is about to make its claim', () => existsSync(path('asleep')));
    writeFileSync(path('1', 'claim.1'), '{"by":"fence"}');
    // What a sweep does: the directory away, then what is in it.
    renameSync(path('1'), path('trash'));
    rmSync(path('trash', 'claim.1'));
    writeFileSync(path('awake'), '');
    expect(await ended).to.deep.equal([124, null]);
    expect(existsSync(path('started'))).to.equal(false);
  });
});
