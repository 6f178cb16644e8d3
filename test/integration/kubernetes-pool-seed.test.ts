import { expect } from 'chai';
import { type ControlPlane, type KubeObject, realNode } from '../support/kubernetes.ts';
import { poolImage } from '../support/pool-image.ts';
import { PoolSite, untilTold } from '../support/pool-site.ts';
import { until } from '../support/until.ts';

const isLater = ({ kind = '', metadata: { name } }: KubeObject) =>
  ['Deployment', 'StatefulSet'].includes(kind) && name !== 'htcondor-central-manager';
const machines = (lines: readonly string[]) => lines.filter((line) => /^(Machine|Slot) /.test(line));

/** The steps of "A simple HTCondor cluster on Kubernetes", in their order: a pool password, three workloads, replicas, a killed head. */
describe('a pool of HTCondor on a real node, step by step', () => {
  let plane: ControlPlane;
  let site: PoolSite;

  before(async () => {
    plane = await realNode();
    site = await PoolSite.make(plane, await poolImage(), 'password');
  });

  after(async () => {
    await site[Symbol.asyncDispose]();
  });

  it('C1: with the pool password of a Secret, the daemons are in condor_status -any', async () => {
    await site.createSecret('htcondor-pool-password', 'password', 'password');
    // The central manager comes first, with its Service.
    await site.apply((object) => !isLater(object));
    await site.pod('central-manager');
    await site.apply(isLater);
    // The worker's may be listed before those of the others, each of which tells its own.
    await site.untilDaemons(
      'all daemons are listed',
      (lines) =>
        ['Collector ', 'Negotiator ', 'Scheduler ', 'Machine '].every((start) =>
          lines.some((line) => line.startsWith(start)),
        ) && lines.filter((line) => line.startsWith('DaemonMaster htcondor-')).length === 3,
    );
    const shown = await site.status('-any');
    expect(shown.split('\n')[0]).to.match(/^MyType +TargetType +Name/);
    expect(shown).to.match(/^Collector +None +My Pool/m);
    expect(shown).to.match(/^Negotiator +None +htcondor-central-manager-/m);
    expect(shown).to.match(/^Scheduler +None +htcondor-schedd/m);
    expect(shown.match(/^DaemonMaster +None +htcondor-/gm)).to.have.lengthOf(3);
    expect(shown).to.match(/^Machine +Job +slot1@htcondor-worker-/m);
  });

  it('C2: the manifests give three Pods that run, and the slot of the worker is listed', async () => {
    const pods = await until('three Pods are ready', async () => {
      const found = (
        await Promise.all((['central-manager', 'schedd', 'worker'] as const).map((role) => site.pods(role)))
      ).flat();
      const ready = found.filter(({ status }) =>
        status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      );
      return ready.length === 3 && found;
    });
    expect(pods.map(({ status }) => status.phase)).to.deep.equal(['Running', 'Running', 'Running']);
    expect(await site.slots()).to.have.lengthOf(1);
  });

  it('C3: with `replicas: 2` there are two workers and twice the slots', async () => {
    await site.scale('htcondor-worker', 2);
    const lines = await site.untilDaemons('two machines are listed', (all) => machines(all).length === 2);
    const workers = (await site.pods('worker')).map(({ metadata }) => `Machine slot1@${metadata.name}`);
    expect(machines(lines)).to.have.members(workers);
  });

  it('C4: workers and schedd return to the central manager that replaces a killed one', async () => {
    const before = await site.pod('central-manager');
    const pods = (await site.pods('worker')).map(({ metadata }) => metadata.name);
    const wanted = pods.flatMap((name) => [`DaemonMaster ${name}`, `Machine slot1@${name}`]).sort();
    expect(wanted).to.have.lengthOf(4);
    const ofWorkers = (lines: readonly string[]) =>
      lines.filter((line) => /^(DaemonMaster htcondor-worker|Machine) ?/.test(line)).sort();
    const areBack = (lines: readonly string[]) =>
      ofWorkers(lines).length === wanted.length &&
      ['Scheduler ', 'DaemonMaster htcondor-schedd'].every((start) =>
        lines.some((line) => line.startsWith(start)),
      );
    await site.untilDaemons('all are there', areBack);
    await site.kill('central-manager');
    const after = await until('another Pod runs', async () => {
      const pod = await site.pod('central-manager');
      return pod.metadata.name !== before.metadata.name && pod;
    });
    const lines = await site.untilDaemons('all are back', areBack);
    expect(ofWorkers(lines)).to.deep.equal(wanted);
    expect(lines).to.include(`Negotiator ${after.metadata.name}`);
    const restarts = (await site.pods('worker')).flatMap(({ status }) => status.containerStatuses ?? []);
    expect(restarts.map(({ restartCount }) => restartCount)).to.deep.equal([0, 0]);
  });

  it('keeps its jobs when the Pod of the schedd is killed: those that wait, and those that run', async () => {
    // s, for which a worker keeps a job without its schedd.
    const lease = 'job_lease_duration = 600';
    await site.submit([...untilTold, lease, 'queue 2']);
    await site.submit([...untilTold, lease, 'queue']);
    const states = () => site.queue('-af', 'JobStatus', 'NumJobStarts');
    await until(
      'two of three jobs run, and the schedd has written their start down',
      async () => (await states()).filter((state) => state === '2 1').length === 2,
    );
    await site.kill('schedd');
    await until('the queue is there again', async () => (await states()).length === 3);
    await until(
      'the schedd has taken up those that ran',
      async () => (await site.queue('-constraint', 'NumJobReconnects == 1', '-af', 'ProcId')).length === 2,
    );
    await site.endJobs();
    await until('all jobs are over', async () => (await states()).length === 0, 120_000);
    const columns = ['ExitCode', 'NumJobStarts', 'NumJobReconnects'];
    const history = await site.exec('schedd', 'condor_history', '-af', ...columns);
    // Nothing ran twice: the schedd took up the two that ran.
    expect(history.trim().split('\n').sort()).to.deep.equal(['0 1 1', '0 1 1', '0 1 undefined']);
  });
});
