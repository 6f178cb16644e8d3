/** Restarts of the API server and of the schedd below a working operator, which has the printed rights alone and follows all namespaces. */
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { rights } from '../../src/clients/htcjob/manifests.ts';
import { clientOf, type CondorSpace, condorSpace, ownPool, scheddPid } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, applyRights, HtcJobs, isOver } from '../support/htcjobs.ts';
import { type Namespace, OwnControlPlane } from '../support/kubernetes.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

describe('HTCJobs on HTCondor', function () {
  this.timeout(240_000);
  let own: OwnControlPlane;
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let space: CondorSpace;
  let namespace: Namespace;
  let jobs: HtcJobs;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    [own, pool] = await Promise.all([OwnControlPlane.start(), ownPool()]);
    const { plane } = own;
    await applyCrd(plane);
    await plane.client.create('/api/v1/namespaces', { metadata: { name: 'thresher-htcjob' } });
    await applyRights(plane, rights());
    namespace = await plane.namespace('htcjob');
    jobs = new HtcJobs(namespace);
    space = condorSpace(pool);
    const queue = { demand: 'htcjob', maxWorkers: 100, nQueueLimitWorker: 100 };
    const htcjob = { k8s_config_file: 'kubeconfig', leaseNamespace: 'thresher-htcjob', runtime: 'none' };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { template: 'job.sub.yaml', queue }) },
        settings: { sources: { htcjob }, master: { factoryId: space.factory } },
      },
      { 'job.sub.yaml': shellTemplate(space, 'exit 99') },
    );
    const token = await plane.token('thresher-htcjob', 'thresher-htcjob');
    plane.writeKubeconfig(site.path('kubeconfig'), { token });
    // The jobs are those of the pool's user, who reads the payloads below the state directory.
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    daemon = site.start([], condorEnvironment(pool, site.directory));
  });

  after(async () => {
    await site.clean();
    await pool.stop();
    await own[Symbol.asyncDispose]();
  });

  const file = (name: string) => join(space.directory, name);
  /** Job $1 writes that it begins, and waits for a file of its own. */
  const waiting = (name: string) =>
    `echo "$1" >> ${file(name)}; while ! [ -e ${file(name)}.go$1 ]; do sleep 0.2; done`;
  const go = (name: string, number: number) => {
    writeFileSync(`${file(name)}.go${number}`, '');
  };
  const starts = (name: string) =>
    existsSync(file(name)) ? readFileSync(file(name), 'utf8').trim().split('\n').sort() : [];
  const begun = (name: string, count: number) =>
    until(`${count} jobs of ${name} have begun`, () => starts(name).length >= count);
  const inQueue = () => clientOf(pool, 'local').queue(space.mine, ['ClusterId', 'ProcId'], signal);

  async function crashSchedd(): Promise<void> {
    const before = scheddPid(pool, 'local');
    process.kill(before, 'SIGKILL');
    await until('the next schedd runs', () => scheddPid(pool, 'local') !== before, 60_000);
  }

  it('run each job once through a restart of the API server, with a true status right after', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    await jobs.create('long', waiting('long'), { queue: 3 });
    await begun('long', 3);
    const { jobIds } = await jobs.until('long', 'is active', ({ active }) => active === 3);
    // Some are in the middle of their submission.
    await Promise.all(names.map((name) => jobs.create(name, `echo "$1" >> ${file(name)}`)));
    await own.kill('kube-apiserver');
    go('long', 1);
    await until('the job that may end has left the queue', async () => {
      return !(await inQueue()).some(
        ({ ProcId, ClusterId }) => jobIds?.[1] === `${String(ClusterId)}.${String(ProcId)}`,
      );
    });
    await own.restart();
    const after = await jobs.until('long', 'has one that ended', ({ succeeded }) => succeeded === 1);
    expect(after).to.include({ active: 2, failed: 0, completedIndexes: '1' });
    for (const name of names) {
      const ended = await jobs.until(name, 'has ended', isOver);
      expect(ended, daemon.output().slice(-2000)).to.include({ succeeded: 1, failed: 0, active: 0 });
      expect(starts(name)).to.deep.equal(['0']);
    }
    go('long', 0);
    go('long', 2);
    const ended = await jobs.until('long', 'has ended', isOver);
    expect(ended).to.deep.include({ succeeded: 3, failed: 0, active: 0, jobIds });
    expect(starts('long')).to.deep.equal(['0', '1', '2']);
  });

  it('run each job once through a crash of the schedd: its running jobs go on, and a deletion waits for it', async () => {
    await jobs.create('over', waiting('over'), { queue: 2 });
    await jobs.create('gone', waiting('gone'), { queue: 2 });
    await Promise.all([begun('over', 2), begun('gone', 2)]);
    const { jobIds } = await jobs.until('over', 'is active', ({ active }) => active === 2);
    await jobs.until('gone', 'is active', ({ active }) => active === 2);
    const crashed = crashSchedd();
    await Promise.all([
      jobs.create('meanwhile', `echo "$1" >> ${file('meanwhile')}`, { queue: 2 }),
      jobs.delete('gone'),
    ]);
    await crashed;
    await jobs.untilGone('gone');
    const ended = await jobs.until('meanwhile', 'has ended', isOver);
    expect(ended, daemon.output().slice(-2000)).to.include({ succeeded: 2, failed: 0, active: 0 });
    expect(starts('meanwhile')).to.deep.equal(['0', '1']);
    const after = await jobs.until('over', 'is as it was', ({ active }) => active === 2);
    expect(after).to.deep.include({ succeeded: 0, failed: 0, held: 0, jobIds });
    expect(await inQueue()).to.have.length(2);
    go('over', 0);
    go('over', 1);
    expect(await jobs.until('over', 'has ended', isOver)).to.deep.include({
      succeeded: 2,
      failed: 0,
      jobIds,
    });
    expect(starts('over')).to.deep.equal(['0', '1']);
    await until('nothing is in the queue', async () => (await inQueue()).length === 0);
  });

  it('have Events written with the printed rights, and their operator ends in order at SIGTERM', async () => {
    const told = (await jobs.events('over')).map((event) => event.split(':')[0]);
    expect(told).to.include.members(['Submitted', 'Succeeded']);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
  });
});
