import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { type NodeStatus, startNode, stopNode } from '../env/kubernetes/node.ts';
import { importPoolImage } from '../env/kubernetes/pool-image.ts';
import { ControlPlane, realNode } from '../support/kubernetes.ts';
import { poolImage } from '../support/pool-image.ts';
import { PoolSite, untilTold } from '../support/pool-site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

/** A node of its own: the shared one is needed by others. */
describe('a pool of HTCondor whose node is killed', () => {
  const directory = temporaryDirectory();
  let node: NodeStatus;
  let pool: PoolSite;
  let programs: string;

  async function start(): Promise<void> {
    const assets = process.env.KUBEBUILDER_ASSETS;
    process.env.KUBEBUILDER_ASSETS = programs;
    node = await startNode(directory).finally(() => {
      if (assets === undefined) delete process.env.KUBEBUILDER_ASSETS;
      else process.env.KUBEBUILDER_ASSETS = assets;
    });
  }

  before(async () => {
    const shared = await realNode();
    const { directory: home = '' } = shared.status.node ?? {};
    programs = join(home, 'programs');
    await poolImage();
    // The packages are fetched once for all nodes.
    symlinkSync(join(dirname(home), 'pool-image'), join(directory, 'pool-image'));
    await start();
    const { server, kubeconfig, certificates, port } = node;
    const ports = { ...shared.status.ports, apiServer: port };
    const plane = new ControlPlane({ ...shared.status, server, kubeconfig, certificates, ports });
    const { image } = await importPoolImage(directory);
    pool = await PoolSite.make(plane, image);
    await pool.createSecrets();
    await pool.apply();
  });

  after(() => stopNode(directory));

  it('is whole again when the node is back, and ends all its jobs: the one that ran, and the one that waited', async () => {
    // A slot of a job comes and goes.
    const parts = (lines: readonly string[]) =>
      lines.filter((line) => /^(Machine slot1@|Scheduler |DaemonMaster )/.test(line)).sort();
    const isWhole = (lines: readonly string[]) =>
      parts(lines).length === 5 && lines.some((line) => line.startsWith('Negotiator '));
    const known = parts(await pool.untilDaemons('all daemons are listed', isWhole));
    // s, for which the schedd looks for a worker that it has lost.
    const cluster = await pool.submit([...untilTold, 'job_lease_duration = 20', 'queue 2']);
    const states = async () => (await pool.queue('-af', 'JobStatus', 'NumJobStarts')).toSorted();
    await until('one runs, and one waits', async () => (await states()).join() === '1 0,2 1');

    await powerCut();
    await start();
    await until('the queue is there again', async () => (await states()).length === 2);
    const back = await pool.untilDaemons('all are back', (lines) => isWhole(lines));
    expect(parts(back)).to.deep.equal(known);
    await pool.endJobs();
    await until('all jobs are over', async () => (await states()).length === 0);
    const columns = ['JobStatus', 'ExitCode', 'NumJobStarts'];
    const history = await pool.exec('schedd', 'condor_history', String(cluster), '-af', ...columns);
    // The worker died with the job that ran, so that it ran again.
    expect(history.trim().split('\n').sort()).to.deep.equal(['4 0 1', '4 0 2']);
  });

  /** Ends the init of the node, and with it all its processes; what was written stays. */
  async function powerCut(): Promise<void> {
    process.kill(
      Number(readFileSync(join(node.directory, 'run/super.pid'), 'utf8').split(' ')[0]),
      'SIGKILL',
    );
    const { NETID } = JSON.parse(readFileSync(join(node.directory, 'settings.json'), 'utf8')) as {
      NETID: string;
    };
    await until('its network is gone', () => !existsSync(`/sys/class/net/kn${NETID}h`));
  }
});
