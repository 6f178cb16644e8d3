import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { applyFinalizerPolicy, type HtcJobObject, type HtcJobs, isOver } from '../support/htcjobs.ts';
import { HtcJobHome } from '../support/htcjob-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

interface ManagedMeta {
  readonly managedFields: readonly { readonly manager: string; readonly subresource?: string }[];
}

describe('HTCJobs', () => {
  let home: HtcJobHome;
  let jobs: HtcJobs;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    home = await HtcJobHome.open();
    ({ jobs, site } = home);
    daemon = site.start();
  });
  after(() => home[Symbol.asyncDispose]());

  it('B1: one runs, and its status goes from active to succeeded', async () => {
    const { metadata } = await jobs.create('zero', 'while ! [ -e "$GO" ]; do sleep 0.1; done; echo A', {
      env: [{ name: 'GO', value: site.path('go') }],
    });
    const active = await jobs.until('zero', 'is active', ({ active }) => active === 1);
    expect(active).to.include({ succeeded: 0, failed: 0, held: 0, uniqId: metadata.uid });
    expect(active.jobid).to.have.length(1);
    expect(active.startTime).to.be.a('string');
    writeFileSync(site.path('go'), '');
    const ended = await jobs.until('zero', 'has succeeded', ({ succeeded }) => succeeded === 1);
    expect(ended).to.include({ active: 0, failed: 0, reason: 'Succeeded', completedIndexes: '0' });
    expect(ended.completionTime).to.be.a('string');
    expect(ended.jobid).to.deep.equal(active.jobid);
    await until('Events tell of it', async () => {
      const told = (await jobs.events('zero')).map((event) => event.split(':')[0]);
      return ['Submitted', 'Succeeded'].every((reason) => told.includes(reason));
    });
  });

  it('is shown by thresher htcjob: in the list, with its status and workers, its Events and its log', async () => {
    await jobs.create('shown', 'echo "job $1 says hello"', { queue: 2 });
    await jobs.until('shown', 'has ended', isOver);
    const name = `${home.space.name}/shown`;
    const told = async (...args: string[]) => {
      const { status, stdout, stderr } = await site.run('htcjob', ...args);
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
      return stdout;
    };
    const line = new RegExp(`^${home.space.name} +shown +0 +2 +0 +0 .* Succeeded$`, 'm');
    expect(await told('list')).to.match(line);
    expect(await told('show', 'shown')).to.match(/succeeded: 2\n[^]*workers:\n[^]*status: finished/);
    expect(await told('logs', name, '1')).to.equal('job 1 says hello\n');
    await until('its Events are shown', async () => /Succeeded +all 2 jobs/.test(await told('events', name)));
    const { status, stderr } = await site.run('htcjob', 'show', 'nothing');
    expect({ status, stderr }).to.deep.equal({
      status: 1,
      stderr: 'thresher: there is no HTCJob nothing [no-such-htcjob]\n',
    });
  });

  it('B2: one of a queue of 3 runs three jobs, each with its number as the argument', async () => {
    await jobs.create('three', 'echo "$@" > "$OUT/$1"', {
      queue: 3,
      env: [{ name: 'OUT', value: site.directory }],
    });
    const ended = await jobs.until('three', 'has ended', isOver);
    expect(ended).to.include({ active: 0, succeeded: 3, failed: 0 });
    expect(ended.jobIds).to.have.length(3);
    const texts = [0, 1, 2].map((number) => readFileSync(site.path(String(number)), 'utf8'));
    expect(texts).to.deep.equal(['0\n', '1\n', '2\n']);
  });

  it('B3: one that fails says so, with its return code', async () => {
    await jobs.create('notzero', 'exit 7');
    const ended = await jobs.until('notzero', 'has failed', ({ failed }) => failed === 1);
    expect(ended).to.include({ active: 0, succeeded: 0, reason: 'JobsFailed' });
    expect(ended.returnCodes).to.deep.equal([{ index: 0, exitCode: 7 }]);
    const failed = ended.conditions?.find(({ type }) => type === 'Failed');
    expect(failed).to.include({ status: 'True', reason: 'JobsFailed' });
    expect(failed?.message).to.match(/^1 of 1 jobs failed; job 0 ended with return code 7/);
  });

  it('B5: one that is deleted ends its jobs, leaves nothing of them, and only then is gone', async () => {
    await jobs.create('long', 'sleep 1000', { queue: 2 });
    await jobs.until('long', 'is active', ({ active }) => active === 2);
    expect((await jobs.find('long'))?.metadata.finalizers).to.deep.equal(['finalizer.htc.cern.ch']);
    const workers = await home.workersOf('long');
    expect(workers.map(({ job }) => job)).to.deep.equal([0, 1]);
    await until('they run', () => home.living(workers).length === 2);
    await jobs.delete('long');
    await jobs.untilGone('long');
    expect(home.living(workers)).to.deep.equal([]);
    const after = (await site.workers()).filter((one) =>
      workers.some(({ workerID }) => workerID === one.workerID),
    );
    expect(after.map(({ status }) => status)).to.deep.equal(['cancelled', 'cancelled']);
    for (const { workerID } of workers)
      expect(existsSync(site.path('state/local', String(workerID)))).to.equal(false);
  });

  it('one that ended leaves nothing either when it is deleted, and its name can be used again', async () => {
    const first = await jobs.create('again', 'exit 0');
    await jobs.until('again', 'has succeeded', ({ succeeded }) => succeeded === 1);
    const [worker] = await home.workersOf('again');
    await jobs.delete('again');
    await jobs.untilGone('again');
    expect(existsSync(site.path('state/local', String(worker?.workerID)))).to.equal(false);
    const second = await jobs.create('again', 'exit 3');
    const ended = await jobs.until('again', 'has failed', ({ failed }) => failed === 1);
    expect(ended.uniqId).to.equal(second.metadata.uid).and.not.to.equal(first.metadata.uid);
  });

  it('C4: one has its finalizer from the beginning where the policy is there, and is changed twice', async () => {
    const { client } = home.space;
    const remove = await applyFinalizerPolicy(home.space);
    try {
      let count = 0;
      const created = await until('the policy is in force', async () => {
        const one = await jobs.create(`early-${count++}`, 'sleep 1000');
        return one.metadata.finalizers !== undefined && one;
      });
      expect(created.metadata.finalizers).to.deep.equal(['finalizer.htc.cern.ch']);
      const early = created.metadata.name;
      await jobs.until(early, 'is active', ({ active }) => active === 1);
      const changes = ((await jobs.find(early))?.metadata as unknown as ManagedMeta).managedFields;
      // thresher wrote its status alone: a change of the finalizer would stand there.
      expect(
        changes.filter(({ manager }) => manager === 'thresher').map(({ subresource }) => subresource),
      ).to.deep.equal(['status']);
      const own = { metadata: { name: 'own', finalizers: ['example.org/own'] } };
      const other = await client.create(jobs.path(), { ...created, ...own, status: undefined });
      expect((other as HtcJobObject).metadata.finalizers).to.have.members([
        'example.org/own',
        'finalizer.htc.cern.ch',
      ]);
      await client.patch(jobs.path('own'), { metadata: { finalizers: ['finalizer.htc.cern.ch'] } });
      const all = ['own', ...Array.from({ length: count }, (_, one) => `early-${one}`)];
      for (const one of all) await jobs.delete(one);
      for (const one of all) await jobs.untilGone(one);
    } finally {
      await remove();
    }
  });

  it('an operator that is told to stop ends in order', async () => {
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
  });
});
