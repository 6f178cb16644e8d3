import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, HtcJobs, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { removeDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const kinds = ['local', 'remote'] as const;

const conditionOf = ({ conditions }: HtcJobStatus) => conditions?.find(({ type }) => type === 'OutputKept');

describe('the output of HTCJobs on HTCondor', function () {
  this.timeout(240_000);
  let plane: ControlPlane;
  let pool: Pool;
  let space: CondorSpace;
  let namespace: Namespace;
  let jobs: HtcJobs;
  let site: Site;
  let environment: Record<string, string>;
  const usual = new Map<string, string | undefined>();
  let daemon: ReturnType<Site['start']>;

  before(async () => {
    [plane, pool] = await Promise.all([controlPlane(), condorPool()]);
    await applyCrd(plane);
    namespace = await plane.namespace('htcjob');
    jobs = new HtcJobs(namespace);
    space = condorSpace(pool);
    const queue = { demand: 'htcjob', maxWorkers: 50, nQueueLimitWorker: 50 };
    const htcjob = {
      k8s_config_file: 'kubeconfig',
      namespaces: [namespace.name],
      ...leaseOf(namespace),
      runtime: 'none',
      outputDir: 'outputs',
      maxOutputMegabytes: 2,
    };
    const queues = Object.fromEntries(
      kinds.map((kind) => [kind, condorQueue(pool, { kind, template: 'job.sub.yaml', queue })]),
    );
    // Nothing is said of the files that come back, as in the template that thresher ships.
    const template: Record<string, unknown> = shellTemplate(space, 'exit 99');
    delete template['transfer_output_files'];
    site = condorSite(
      { queues, settings: { sources: { htcjob }, master: { factoryId: space.factory } } },
      { 'job.sub.yaml': template },
    );
    plane.writeKubeconfig(site.path('kubeconfig'));
    for (const directory of [site.stateDir, site.path('logs'), site.path('outputs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    environment = condorEnvironment(pool, site.directory);
    daemon = site.start([], environment);
    // The command line of this process finds the pool as the daemon does.
    for (const name of Object.keys(environment)) usual.set(name, process.env[name]);
    Object.assign(process.env, environment);
  });

  after(async () => {
    for (const [name, value] of usual) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
    await site.clean();
    await jobs.letGo();
    await namespace[Symbol.asyncDispose]();
    await clearSpaces(pool, [space]);
  });

  const kept = (status: HtcJobStatus, path: string) =>
    site.path(`outputs/${status.outputDirectory ?? ''}/${path}`);
  const text = (status: HtcJobStatus, path: string) => readFileSync(kept(status, path), 'utf8');
  /** Files that wait for the operator, and logs of jobs, in the state directory. */
  const left = () => {
    const directory = join(site.stateDir, 'htcondor/outputs');
    return existsSync(directory)
      ? readdirSync(directory).flatMap((one) => readdirSync(join(directory, one)))
      : [];
  };
  const untilSaid = (name: string, reason: string) =>
    jobs.until(name, `has ${reason}`, (status) => conditionOf(status)?.reason === reason);

  for (const kind of kinds) {
    it(`B8: is fetched once from a ${kind} schedd, kept until the HTCJob goes, and leaves nothing`, async () => {
      const script = `
        echo "said $1"
        echo "result of $1" > result.txt
        mkdir -p deep/er; printf '\\000\\377' > "deep/er/a name"; chmod 750 "deep/er/a name"
        mkdir -p mod/cache; echo read-only > mod/cache/file; chmod -R a-w mod
        ln -s /etc/passwd link; echo secret > thresher-payload/secret; : > .hidden
        exit "$1"`;
      const name = `b8-${kind}`;
      await jobs.create(name, script, { queue: 3, queueName: kind, output: {} });
      const status = await jobs.until(name, 'has its outputs', (one) => one.outputIndexes === '0-2');
      expect(status).to.include({ succeeded: 1, failed: 2 });
      expect(status.outputDirectory).to.match(new RegExp(`^${namespace.name}/${name}-`));
      for (const number of [0, 1, 2]) {
        expect(readdirSync(kept(status, `${number}`)).sort()).to.deep.equal(
          ['.hidden', '_condor_stderr', '_condor_stdout', 'deep', 'mod', 'result.txt'].sort(),
        );
        expect(text(status, `${number}/mod/cache/file`)).to.equal('read-only\n');
        expect(text(status, `${number}/result.txt`)).to.equal(`result of ${number}\n`);
        expect(text(status, `${number}/_condor_stdout`)).to.equal(`said ${number}\n`);
        expect([...readFileSync(kept(status, `${number}/deep/er/a name`))]).to.deep.equal([0, 255]);
        expect(statSync(kept(status, `${number}/deep/er/a name`)).mode & 0o777).to.equal(0o750);
      }
      const waiting = () => left().filter((one) => /^\d+$/.test(one));
      await until('the operator has taken all outputs', () => waiting().length === 0);
      // Nothing of the jobs lies where the template of the queue has its files.
      expect(readdirSync(space.directory)).to.deep.equal([]);
      expect(
        (await jobs.until(name, 'says so', (one) => conditionOf(one)?.status === 'True')).failed,
      ).to.equal(2);
      await jobs.delete(name);
      await jobs.untilGone(name);
      expect(readdirSync(site.path('outputs'))).to.deep.equal([]);
      expect(left()).to.deep.equal([]);
    });

    it(`has logs of a ${kind} schedd, as long as the HTCJob, and no other files, where none are wanted`, async () => {
      const name = `plain-${kind}`;
      const script = `echo "said $1"; echo "wrong $1" >&2; echo file > file; echo "a log" > "out.$1"
        while [ "$1" = 1 ] && ! [ -e ${space.directory}/go-${kind} ]; do sleep 0.2; done`;
      const ids = { queueName: kind, queue: 2 };
      await jobs.create(name, script, ids);
      await jobs.until(name, 'has run one', (one) => one.succeeded === 1 && one.active === 1);
      const logs = (...words: readonly string[]) =>
        site.run('htcjob', 'logs', `${namespace.name}/${name}`, ...words);
      const following = logs('1', '--follow');
      expect((await logs()).stdout).to.equal('said 0\n');
      expect((await logs('0', '--stderr')).stdout).to.contain('wrong 0');
      const wrong = await logs('2');
      expect(wrong.status).to.equal(1);
      expect(wrong.stderr).to.contain('has no job 2: its jobs are 0 to 1');
      writeFileSync(join(space.directory, `go-${kind}`), '');
      expect((await following).stdout).to.equal('said 1\n');
      await jobs.until(name, 'has ended', (one) => one.succeeded === 2);
      rmSync(join(space.directory, `go-${kind}`));
      expect((await logs('1')).stdout).to.equal('said 1\n');
      expect(readdirSync(space.directory)).to.deep.equal([]);
      expect(readdirSync(site.path('outputs'))).to.deep.equal([]);
      await jobs.delete(name);
      await jobs.untilGone(name);
      expect(left()).to.deep.equal([]);
    });

    it(`says why a job on a ${kind} schedd has no output, and keeps the files that were named`, async () => {
      const large = jobs.create(`large-${kind}`, 'head -c 3000000 /dev/urandom > large', {
        queueName: kind,
        output: {},
      });
      const some = jobs.create(`some-${kind}`, 'mkdir a; echo 1 > a/b; chmod 500 a; echo 2 > c; echo 3 > d', {
        queueName: kind,
        output: { directory: 'my/results', files: ['a', 'd', 'none'] },
      });
      const killed = jobs.create(`killed-${kind}`, 'echo 1 > file; kill -9 "$PPID"; sleep 100', {
        queueName: kind,
        output: {},
      });
      await Promise.all([large, some, killed]);
      const status = await untilSaid(`some-${kind}`, 'OutputKept');
      expect(status.outputDirectory).to.contain(`${namespace.name}/my/results/some-${kind}-`);
      expect(readdirSync(kept(status, '0')).sort()).to.deep.equal([
        '_condor_stderr',
        '_condor_stdout',
        'a',
        'd',
      ]);
      expect(text(status, '0/a/b')).to.equal('1\n');
      expect(text(status, '0/_condor_stderr')).to.contain('the job left no none');
      const tooLarge = await untilSaid(`large-${kind}`, 'OutputMissing');
      expect(tooLarge).to.include({ succeeded: 1, outputMissing: '0' });
      expect(conditionOf(tooLarge)?.message).to.contain('larger than 1953 kB');
      const ended = await untilSaid(`killed-${kind}`, 'OutputMissing');
      expect(ended).to.include({ failed: 1, outputMissing: '0' });
      const names = ['large', 'some', 'killed'].map((one) => `${one}-${kind}`);
      await Promise.all(names.map((name) => jobs.delete(name)));
      await Promise.all(names.map((name) => jobs.untilGone(name)));
      expect(readdirSync(site.path('outputs'))).to.deep.equal([]);
      expect(left()).to.deep.equal([]);
    });
  }

  for (const kind of kinds)
    it(`hole 6: keeps no deleted HTCJob on a ${kind} schedd: after a retry, with its directory away, while a job ends`, async () => {
      const gate = join(space.directory, `ends-${kind}`);
      const output = { queueName: kind, output: {} };
      await jobs.create(`again-${kind}`, 'echo 1 > file; exit 1', { ...output, backoffLimit: 1 });
      await untilSaid(`again-${kind}`, 'OutputKept');
      await jobs.create(`ends-${kind}`, `while ! [ -e ${gate} ]; do sleep 0.1; done; echo 1 > file`, output);
      await jobs.until(`ends-${kind}`, 'runs', ({ active }) => active === 1);
      renameSync(site.path('outputs'), site.path('away'));
      try {
        await jobs.create(`left-${kind}`, 'echo 1 > file', output);
        await untilSaid(`left-${kind}`, 'OutputNotKept');
        writeFileSync(gate, '');
        const names = ['again', 'ends', 'left'].map((one) => `${one}-${kind}`);
        await Promise.all(names.map((name) => jobs.delete(name)));
        await Promise.all(names.map((name) => jobs.untilGone(name)));
        expect(left()).to.deep.equal([]);
      } finally {
        renameSync(site.path('away'), site.path('outputs'));
        rmSync(gate, { force: true });
      }
      removeDirectory(site.path('outputs'));
      mkdirSync(site.path('outputs'));
    });

  it('comes once the directory is back, also if the operator was killed meanwhile', async () => {
    renameSync(site.path('outputs'), site.path('away'));
    await Promise.all(
      kinds.map((kind) => jobs.create(`away-${kind}`, 'echo 1 > file', { queueName: kind, output: {} })),
    );
    for (const kind of kinds) {
      const status = await untilSaid(`away-${kind}`, 'OutputNotKept');
      expect(conditionOf(status)?.message).to.contain('of outputDir cannot be used');
      expect(status.succeeded).to.equal(1);
    }
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    renameSync(site.path('away'), site.path('outputs'));
    site.start([], environment);
    for (const kind of kinds) {
      const status = await untilSaid(`away-${kind}`, 'OutputKept');
      expect(text(status, '0/file')).to.equal('1\n');
      await jobs.delete(`away-${kind}`);
      await jobs.untilGone(`away-${kind}`);
    }
    expect(readdirSync(site.path('outputs'))).to.deep.equal([]);
  });
});
