import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { PoolStatus, ScheddAccess } from '../env/htcondor/pool.ts';
import { recordOf } from '../env/kubernetes/processes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const script = resolve(import.meta.dirname, '../../scripts/test-env');

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('scripts/test-env htcondor', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();

  function testEnv(...args: readonly string[]): Promise<Ended> {
    const env = { ...process.env, THRESHER_TEST_ENV: directory };
    return new Promise((ended) => {
      execFile(script, ['htcondor', ...args], { env }, (error, stdout, stderr) => {
        ended({ status: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  }
  const status = async () => JSON.parse((await testEnv('status')).stdout) as PoolStatus;

  after(() => testEnv('stop'));

  it('starts a pool with two schedds that run jobs, once, and ends it without a trace', async () => {
    expect((await testEnv('status')).status).to.equal(3);
    const { stdout, stderr } = await testEnv('start');
    const started = await status();
    expect(started, stderr).to.deep.include({ running: true });
    expect(started.local.config).to.equal(stdout.trim());
    await testEnv('start');
    expect((await status()).pid).to.equal(started.pid);
    const job = 'executable = /bin/true\ntransfer_executable = false\nqueue\n';
    const call = ({ config, tokens }: ScheddAccess, command: string, args: readonly string[], input = '') =>
      execFileSync(join(started.programs ?? '', command), args, {
        input,
        encoding: 'utf8',
        stdio: 'pipe',
        env: { PATH: process.env['PATH'] ?? '', CONDOR_CONFIG: config, _CONDOR_SEC_TOKEN_DIRECTORY: tokens },
      });
    const remote = ['-name', started.remote.schedd, '-pool', started.pool ?? ''];
    for (const [access, place] of [
      [started.local, []],
      [started.remote, remote],
    ] as const) {
      expect(call(access, 'condor_submit', [...place, '-terse', '-'], job)).to.equal('1.0 - 1.0\n');
    }
    // The remote one knows nothing of a schedd, or of a pool.
    expect(() => call(started.remote, 'condor_q', [])).to.throw();
    expect(() => call({ ...started.remote, tokens: directory }, 'condor_q', remote)).to.throw();
    await testEnv('stop');
    expect(recordOf(started.pid ?? 0)).to.equal(undefined);
    expect(existsSync(started.directory)).to.be.false;
    expect((await testEnv('stop')).status).to.equal(0);
  });

  it('keeps what somebody else needs', async () => {
    await testEnv('start', '--for', String(process.pid));
    const { pid } = await status();
    await testEnv('start', '--for', String(process.ppid));
    await testEnv('stop', '--for', String(process.ppid));
    expect(await status()).to.include({ running: true, pid });
    await testEnv('stop', '--for', String(process.pid));
    expect((await status()).running).to.be.false;
    const { status: code, stderr } = await testEnv('start', '--for', '999999999');
    expect(code).to.equal(1);
    expect(stderr).to.contain('--for is 999999999: there is no such process');
  });

  it('begins anew where all that needed it were killed, as those of an earlier run of tests', async () => {
    const other = execFile('sleep', ['1000']);
    await testEnv('start', '--for', String(other.pid));
    const before = await status();
    other.kill('SIGKILL');
    await until('it is gone', () => recordOf(other.pid ?? 0) === undefined);
    await testEnv('start', '--for', String(process.pid));
    const after = await status();
    expect(after.running).to.equal(true);
    expect(after.pid).to.not.equal(before.pid);
    expect(recordOf(before.pid ?? 0)).to.equal(undefined);
    await testEnv('stop', '--for', String(process.pid));
  });

  it('says how it is used', async () => {
    for (const args of [[], ['build'], ['start', 'now'], ['start', '--for', 'me'], ['--fast']]) {
      const { status: code, stderr } = await testEnv(...args);
      expect(code).to.equal(1);
      expect(stderr).to.match(
        /usage: \.\/scripts\/test-env htcondor start\|stop\|status|write the id of a process/,
      );
    }
  });
});
