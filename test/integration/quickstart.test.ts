import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { runProgram } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const checkout = resolve(import.meta.dirname, '../..');

describe('the two minutes of a new user', () => {
  it('./scripts/quickstart shows pilots start and finish', async () => {
    const stateDir = temporaryDirectory();
    // Somebody may be at their own two minutes on this machine.
    const args = ['--for', '2m', '--state-dir', stateDir, '--http-port', '0'];
    const child = spawn(resolve(checkout, 'scripts/quickstart'), args);
    let output = '';
    child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
    const closed = once(child, 'close');
    const shown = [/worker \d+ of EXAMPLE_SCORE: finished/, /worker \d+ of EXAMPLE_MCORE: finished/];
    await until(
      () => `pilots of both queues have finished:\n${output}`,
      () => shown.every((line) => line.test(output)),
    ).finally(() => child.kill('SIGTERM'));
    const [status] = (await closed) as [number | null];
    expect(status, output).to.equal(0);
    expect(output).to.match(/^status page: http:\/\/127\.0\.0\.1:\d+\/$/m);
    expect(output).to.match(/worker \d+ of EXAMPLE_SCORE: running/);
    expect(output).to.match(/worker \d+ of EXAMPLE_MCORE: finished/);
    const id = /worker (\d+) of EXAMPLE_SCORE: finished/.exec(output)?.[1] ?? '';
    const logs = await runProgram(
      '--config',
      resolve(checkout, 'etc/thresher.yaml'),
      '--state-dir',
      stateDir,
      'logs',
      id,
    );
    expect(logs.stdout).to.match(
      new RegExp(`^pilot ${id} of \\S+ at EXAMPLE_SCORE on [^]*pilot ${id} is done\n$`),
    );
  });
});
