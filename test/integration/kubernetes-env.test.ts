import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { Status } from '../env/kubernetes/status.ts';
import { isAlive, recordOf } from '../env/kubernetes/processes.ts';
import { controlPlane, OwnControlPlane } from '../support/kubernetes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const script = resolve(import.meta.dirname, '../../scripts/test-env');

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function testEnv(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended> {
  const env = { ...process.env, ...environment };
  return new Promise((ended) => {
    execFile(script, args, { env }, (error, stdout, stderr) => {
      ended({ status: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const programs = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kwok'];

/** Living processes that were started for an environment: its directory stands in their arguments. */
function processesIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return programs.some((name) => command.includes(`/${name}\0`)) && command.includes(directory);
      } catch {
        return false;
      }
    })
    .map(Number);
}

describe('scripts/test-env kubernetes', function () {
  this.timeout(900_000);
  let environment: { THRESHER_TEST_ENV: string; KUBEBUILDER_ASSETS: string };

  /** An environment of its own in an empty directory, with the programs of the shared one. */
  beforeEach(async () => {
    const { status } = await controlPlane();
    const directory = temporaryDirectory();
    const assets = join(temporaryDirectory(), 'assets');
    mkdirSync(assets);
    for (const [name, program] of Object.entries(status.programs)) {
      symlinkSync(program?.path ?? '', join(assets, name));
    }
    environment = { THRESHER_TEST_ENV: directory, KUBEBUILDER_ASSETS: assets };
  });

  afterEach(async () => {
    await testEnv(['kubernetes', 'stop'], environment);
  });

  const status = async (): Promise<Status & { exit: number }> => {
    const { stdout, status: exit } = await testEnv(['kubernetes', 'status'], environment);
    return { ...(JSON.parse(stdout) as Status), exit };
  };

  it('starts once when it is started by several at once, and stop leaves nothing', async () => {
    const started = await Promise.all(
      ['1', '2', '3'].map(() => testEnv(['kubernetes', 'start'], environment)),
    );
    const directory = environment.THRESHER_TEST_ENV;
    const kubeconfig = `${join(directory, 'kubernetes/kubeconfig')}\n`;
    expect(started.map(({ status: exit, stdout, stderr }) => [exit, stdout, stderr])).to.deep.equal(
      started.map(() => [0, kubeconfig, '']),
    );
    const running = await status();
    expect(running).to.include({ exit: 0, running: true });
    expect(Object.keys(running.pids)).to.deep.equal(programs);
    expect(processesIn(directory)).to.have.members(Object.values(running.pids));
    // The shared one has the usual ports.
    expect(running.ports?.apiServer).to.not.equal((await controlPlane()).status.ports.apiServer);
    expect(Object.values(running.programs).map((program) => program?.from)).to.deep.equal(
      programs.map(() => 'KUBEBUILDER_ASSETS'),
    );

    expect(await testEnv(['kubernetes', 'stop'], environment)).to.deep.equal({
      status: 0,
      stdout: '',
      stderr: '',
    });
    expect(processesIn(directory)).to.deep.equal([]);
    expect(readdirSync(directory)).to.have.members(['build.lock', 'kubernetes.lock']);
    expect(await status()).to.deep.include({ exit: 3, running: false, pids: {} });
    expect((await testEnv(['kubernetes', 'stop'], environment)).status, 'a second stop').to.equal(0);
  });

  it('stays while one of those that need it lives', async () => {
    const other = execFile('sleep', ['1000']);
    const mine = ['--for', String(process.pid)];
    const theirs = ['--for', String(other.pid)];
    await testEnv(['kubernetes', 'start', ...mine], environment);
    await testEnv(['kubernetes', 'start', ...theirs], environment);
    expect((await status()).holders).to.deep.equal([process.pid, other.pid]);
    await testEnv(['kubernetes', 'stop', ...mine], environment);
    expect(await status()).to.deep.include({ running: true, holders: [other.pid] });
    await testEnv(['kubernetes', 'start', ...mine], environment);
    other.kill('SIGKILL');
    await until('it is gone', () => recordOf(other.pid ?? 0) === undefined);
    await testEnv(['kubernetes', 'stop', ...mine], environment);
    expect(await status()).to.include({ running: false });
  });

  it('begins anew where all that needed it were killed, as those of an earlier run of tests', async () => {
    const other = execFile('sleep', ['1000']);
    await testEnv(['kubernetes', 'start', '--for', String(other.pid)], environment);
    const before = await status();
    other.kill('SIGKILL');
    await until('it is gone', () => recordOf(other.pid ?? 0) === undefined);
    await testEnv(['kubernetes', 'start', '--for', String(process.pid)], environment);
    const after = await status();
    expect(after).to.deep.include({ running: true, holders: [process.pid] });
    expect(Object.values(after.pids)).to.not.include.members(Object.values(before.pids).slice(0, 1));
  });

  it('starts again what was killed, with its data, on its port', async () => {
    await using own = await OwnControlPlane.start();
    const before = own.plane.status;
    const space = await own.plane.namespace('kept');
    await own.kill('kube-apiserver');
    const refused = await space.client.raw('GET', '/readyz').then(
      () => 'answered',
      (error: unknown) => (error as NodeJS.ErrnoException).code,
    );
    expect(refused).to.be.oneOf(['ECONNREFUSED', 'ECONNRESET']);
    await own.restart();
    expect(await space.client.find(`/api/v1/namespaces/${space.name}`)).to.not.equal(undefined);
    const { stdout } = await testEnv(['kubernetes', 'status'], {
      THRESHER_TEST_ENV: own.directory,
    });
    const after = JSON.parse(stdout) as Status;
    expect(after.ports).to.deep.equal(before.ports);
    expect(after.pids.etcd).to.equal(before.pids.etcd);
    expect(after.pids['kube-apiserver']).to.not.equal(before.pids['kube-apiserver']);
  });

  it('says which program ended, with the end of its log, and leaves nothing running', async () => {
    const broken = '#!/bin/sh\necho "unknown flag: --nonsense" >&2\nexit 2\n';
    const path = join(environment.KUBEBUILDER_ASSETS, '../broken');
    mkdirSync(path);
    for (const name of programs) {
      if (name !== 'kube-apiserver')
        symlinkSync(join(environment.KUBEBUILDER_ASSETS, name), join(path, name));
    }
    writeFileSync(join(path, 'kube-apiserver'), broken, { mode: 0o755 });
    const { status: exit, stderr } = await testEnv(['kubernetes', 'start'], {
      ...environment,
      KUBEBUILDER_ASSETS: path,
    });
    expect(exit).to.equal(1);
    expect(stderr).to.match(
      /^test-env: kube-apiserver ended:\nunknown flag: --nonsense\n\(all of it is in .*kube-apiserver\.log\)\n$/,
    );
    expect(processesIn(environment.THRESHER_TEST_ENV)).to.deep.equal([]);
  });

  it('names what is missing to build the programs', async () => {
    const bin = temporaryDirectory();
    for (const name of [
      'bash',
      'sh',
      'node',
      'npm',
      'flock',
      'cmp',
      'readlink',
      'dirname',
      'basename',
      'mkdir',
    ]) {
      const found = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, name)));
      symlinkSync(join(found ?? '', name), join(bin, name));
    }
    const { status: exit, stderr } = await testEnv(['kubernetes', 'start'], {
      THRESHER_TEST_ENV: environment.THRESHER_TEST_ENV,
      KUBEBUILDER_ASSETS: '',
      PATH: bin,
    });
    expect(exit).to.equal(1);
    expect(stderr).to.match(/^test-env: there is no Go: etcd, .*kwok must be built, which needs Go 1\.26/);
    expect(stderr).to.contain('https://go.dev/dl');
  });

  const wrong: readonly [args: string[], message: string][] = [
    [[], 'there is no test environment without a name: only kubernetes'],
    [['condor', 'start'], 'there is no test environment "condor": only kubernetes'],
    [['kubernetes'], 'nothing is no action'],
    [['kubernetes', 'restart'], '"restart" is no action'],
    [['kubernetes', 'status', 'now'], 'too many arguments: now'],
    [['kubernetes', 'start', '--nodes'], "Unknown option '--nodes'"],
    [['kubernetes', 'start', '--for', 'me'], '--for is "me": write the id of a process'],
    [['kubernetes', 'start', '--for', '4194305'], '--for is 4194305: there is no such process'],
  ];
  for (const [args, message] of wrong) {
    it(`refuses: test-env ${args.join(' ')}`, async () => {
      const { status: exit, stderr, stdout } = await testEnv(args, environment);
      expect({ exit, stdout }).to.deep.equal({ exit: 1, stdout: '' });
      expect(stderr.startsWith(`test-env: ${message}`), stderr).to.equal(true);
      expect(
        readdirSync(environment.THRESHER_TEST_ENV).filter((name) => name === 'kubernetes'),
      ).to.deep.equal([]);
    });
  }

  it('takes a process for another when its id was used again', () => {
    const mine = recordOf(process.pid);
    expect(mine && isAlive(mine)).to.equal(true);
    expect(isAlive({ pid: process.pid, startTicks: 1 })).to.equal(false);
  });

  it('takes other ports where its own are taken', async () => {
    const servers: Server[] = [];
    try {
      for (const port of [12379, 12380, 26443]) {
        const server = createServer();
        servers.push(server);
        // Or somebody else has it: as good.
        await new Promise<void>((ready) => {
          server.once('error', () => {
            ready();
          });
          server.listen(port, '127.0.0.1', ready);
        });
      }
      const { status: exit, stderr } = await testEnv(['kubernetes', 'start'], environment);
      expect(exit, stderr).to.equal(0);
      const { ports, running } = await status();
      expect(running).to.equal(true);
      expect(Object.values(ports ?? {})).to.not.include.members([12379, 12380, 26443]);
    } finally {
      for (const server of servers) server.close();
    }
  });
});
