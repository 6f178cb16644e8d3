import { expect } from 'chai';
import { execFile } from 'node:child_process';
import {
  container,
  type ControlPlane,
  controlPlane,
  type KubeObject,
  type Namespace,
  type Pod,
} from '../support/kubernetes.ts';
import { program } from '../support/program.ts';
import { ScriptedStartds } from '../support/scripted-startds.ts';
import { until } from '../support/until.ts';

interface Deployment extends KubeObject {
  readonly spec: { readonly replicas: number };
}

interface Said {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A real API server with its controllers; Pods and startds are played. */
describe('thresher pool scale', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let startds: ScriptedStartds;

  const path = () => `/apis/apps/v1/namespaces/${space.name}/deployments/htcondor-worker`;
  const replicas = async () => (await space.client.get<Deployment>(path())).spec.replicas;
  const living = async () => {
    const pods = await space.client.list<Pod>(space.core('pods'), 'app=worker');
    return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const names = async () => (await living()).map(({ metadata }) => metadata.name).sort();

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('pool');
    startds = new ScriptedStartds();
    await space.client.create(`/apis/apps/v1/namespaces/${space.name}/deployments`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'htcondor-worker' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'worker' } },
        template: { metadata: { labels: { app: 'worker' } }, spec: { containers: [container('worker')] } },
      },
    });
    await joined(1);
  });

  afterEach(async () => {
    await space[Symbol.asyncDispose]();
  });

  /** Waits until so many Pods run, and gives each a startd that has none. */
  async function joined(count: number): Promise<string[]> {
    await until(`${count} Pods run`, async () => {
      const pods = await living();
      return pods.length === count && pods.every(({ status }) => status.phase === 'Running');
    });
    const found = await names();
    for (const name of found) startds.set(name);
    return found;
  }

  function scale(...args: string[]): Promise<Said> {
    const cluster = ['--kubeconfig', plane.status.kubeconfig, '--namespace', space.name];
    const typed = ['pool', 'scale', ...cluster, '--condor-pool', '127.0.0.1:1', ...args];
    const env = { ...process.env, PATH: `${startds.programs}:${process.env['PATH'] ?? ''}` };
    return new Promise((resolve) => {
      execFile(program(), typed, { env }, (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
      });
    });
  }

  it('gives more workers at once, also while the collector does not answer; fewer only when it does', async () => {
    const grown = await scale('3');
    expect(grown).to.deep.equal({ status: 0, stdout: 'htcondor-worker: 1 -> 3 workers\n', stderr: '' });
    startds.stopCollector();
    const again = await scale('4');
    expect(again.stdout).to.match(
      /contact the condor_collector.*: drains of an earlier command, if any, go on/,
    );
    expect(await replicas()).to.equal(4);
    const less = await scale('1');
    expect(less.status).to.equal(1);
    expect(less.stderr).to.match(/contact the condor_collector.*\[condor-unreachable\]/);
    expect(await replicas()).to.equal(4);
  });

  it('takes idle workers, keeps the busy one, and repeats itself without a change', async () => {
    await scale('3');
    const [busy = '', ...others] = await joined(3);
    startds.set(busy, { busyCores: 2 });
    const said = await scale('1');
    expect(said.status, said.stderr).to.equal(0);
    expect(said.stdout).to.contain(`3 -> 1 workers: ${others.join(', ')} can go`);
    expect(await names()).to.deep.equal([busy]);
    expect(startds.drains(busy)).to.equal(false);
    for (const name of others) startds.remove(name);
    expect((await scale('1')).stdout).to.equal('htcondor-worker has 1 worker\n');
  });

  it('waits for a busy worker within its time, goes on when repeated, and takes a drain back', async () => {
    const [only = ''] = await names();
    startds.set(only, { busyCores: 1 });
    const late = await scale('0', '--timeout', '0');
    expect(late.status).to.equal(1);
    expect(late.stderr).to.match(
      /has 1 workers and should have 0: .* is busy, and is asked to drain\. Repeat.*\[pool-scale\]/,
    );
    expect([await replicas(), startds.drains(only)]).to.deep.equal([1, true]);

    expect((await scale('1')).status).to.equal(0);
    expect(startds.drains(only)).to.equal(false);

    await scale('0', '--timeout', '0');
    startds.set(only, { busyCores: 0 });
    expect((await scale('0')).status).to.equal(0);
    expect(await names()).to.deep.equal([]);
  });

  it('never drains a busy worker that would lose its jobs by it', async () => {
    const [only = ''] = await names();
    startds.set(only, { busyCores: 1, retirement: 0 });
    const said = await scale('0', '--timeout', '0');
    expect(said.status).to.equal(1);
    expect(said.stderr).to.match(/a drain would end its jobs: its MaxJobRetirementTime is below 86400 s/);
    expect([await replicas(), startds.drains(only)]).to.deep.equal([1, false]);
  });

  it('takes a worker that the collector does not know for busy', async () => {
    const [only = ''] = await names();
    startds.remove(only);
    const said = await scale('0', '--timeout', '0');
    expect(said.stderr).to.match(/1 more runs without being known to the collector/);
    expect(await replicas()).to.equal(1);
  });

  it('says which Deployment is not there, and how to make or name it', async () => {
    const said = await scale('2', '--deployment', 'nothing');
    expect(said.status).to.equal(1);
    expect(said.stderr).to.match(
      /there is no Deployment nothing in the namespace pool-\w+: `thresher pool manifests --apply` makes it/,
    );
  });
});
