import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { KdcStatus } from '../env/kerberos/kdc.ts';
import { recordOf } from '../env/kubernetes/processes.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const script = resolve(import.meta.dirname, '../../scripts/test-env');

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('scripts/test-env kerberos', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();

  function testEnv(...args: readonly string[]): Promise<Ended> {
    const env = { ...process.env, THRESHER_TEST_ENV: directory };
    return new Promise((ended) => {
      execFile(script, ['kerberos', ...args], { env }, (error, stdout, stderr) => {
        ended({ status: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  }
  const status = async () => JSON.parse((await testEnv('status')).stdout) as KdcStatus;

  after(() => testEnv('stop'));

  it('starts a KDC that gives tickets, once, and ends it without a trace', async () => {
    expect((await testEnv('status')).status).to.equal(3);
    const { stdout } = await testEnv('start');
    const started = await status();
    expect(started).to.include({ running: true, config: stdout.trim() });
    await testEnv('start');
    expect((await status()).pid).to.equal(started.pid);
    const cache = join(temporaryDirectory(), 'cache');
    const env = { PATH: process.env['PATH'] ?? '', KRB5_CONFIG: started.config };
    const login = ['-k', '-t', started.keytab, '-c', `FILE:${cache}`, started.principal];
    execFileSync('kinit', login, { env });
    expect(execFileSync('klist', ['-c', cache], { env, encoding: 'utf8' })).to.contain(started.principal);
    await testEnv('stop');
    expect(recordOf(started.pid ?? 0)).to.equal(undefined);
    expect(existsSync(started.directory)).to.be.false;
    expect((await testEnv('stop')).status).to.equal(0);
  });

  it('says how it is used', async () => {
    for (const args of [[], ['build'], ['start', 'now']]) {
      const { status: code, stderr } = await testEnv(...args);
      expect(code).to.equal(1);
      expect(stderr).to.contain('usage: ./scripts/test-env kerberos start|stop|status');
    }
  });
});
