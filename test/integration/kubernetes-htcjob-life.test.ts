import { existsSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import { htcJobSite } from '../support/htcjob-site.ts';
import { applyCrd, HtcJobs } from '../support/htcjobs.ts';
import { type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const isOver = ({ completionTime }: { readonly completionTime?: string }) => completionTime !== undefined;

describe('the life of a HTCJob', function () {
  this.timeout(180_000);
  let plane: ControlPlane;
  let space: Namespace;
  let jobs: HtcJobs;
  let site: Site;

  before(async () => {
    plane = await controlPlane();
    await applyCrd(plane);
  });

  beforeEach(async () => {
    space = await plane.namespace('htcjob');
    jobs = new HtcJobs(space);
    site = htcJobSite(plane, space);
  });

  afterEach(async () => {
    await site.clean();
    await jobs.letGo();
    await space[Symbol.asyncDispose]();
  });

  it('waits while it is suspended, ends its jobs when it is suspended later, and runs them anew after', async () => {
    site.start();
    const file = site.path('started');
    await jobs.create('late', `echo x >> ${file}; sleep 1000`, { suspend: true });
    const waits = await jobs.until('late', 'is suspended', ({ reason }) => reason === 'Suspended');
    expect(waits.active).to.equal(0);
    expect(existsSync(file)).to.equal(false);
    await jobs.change('late', { suspend: false });
    await jobs.until('late', 'runs', ({ reason }) => reason === 'Running');
    const [first] = await site.workers();
    await jobs.change('late', { suspend: true });
    const suspended = await jobs.until('late', 'has ended its job', ({ reason, active }) => {
      return reason === 'Suspended' && active === 0;
    });
    expect(suspended).to.include({ failed: 0, succeeded: 0 });
    expect(suspended.completionTime).to.equal(undefined);
    expect(site.liveProcesses()).to.equal(0);
    await jobs.change('late', { suspend: false });
    await jobs.until('late', 'runs again', ({ reason }) => reason === 'Running');
    const workers = await site.workers();
    expect(workers.map(({ status }) => status)).to.deep.equal(['running', 'cancelled']);
    expect(workers[1]?.workerID).to.equal(first?.workerID);
  });

  it('is over when activeDeadlineSeconds are, and its jobs with it', async () => {
    site.start();
    await jobs.create('slow', 'sleep 1000', { queue: 2, activeDeadlineSeconds: 3 });
    const ended = await jobs.until('slow', 'has failed', isOver);
    expect(ended).to.include({ active: 0, failed: 2, reason: 'DeadlineExceeded' });
    expect(site.liveProcesses()).to.equal(0);
  });

  it('runs as many failed jobs again as backoffLimit says', async () => {
    site.start();
    const count = 'echo x >> "$DIRECTORY/$1"; test $(wc -l < "$DIRECTORY/$1") -gt "$1"';
    const env = [{ name: 'DIRECTORY', value: site.directory }];
    // Job 0 ends well at once, job 1 at its second attempt, job 2 at its third.
    await jobs.create('again', count, { queue: 3, backoffLimit: 3, env });
    const ended = await jobs.until('again', 'has ended', isOver);
    expect(ended).to.include({ succeeded: 3, failed: 0, retried: 3, completedIndexes: '0-2' });
    await jobs.create('enough', 'exit 1', { backoffLimit: 1 });
    const failed = await jobs.until('enough', 'has failed', isOver);
    expect(failed).to.include({ succeeded: 0, failed: 1, retried: 1 });
  });

  it('is deleted by itself ttlSecondsAfterFinished after its end', async () => {
    site.start();
    await jobs.create('short', 'exit 0', { ttlSecondsAfterFinished: 1 });
    await jobs.untilGone('short');
    expect((await site.workers()).map(({ status }) => status)).to.deep.equal(['finished']);
  });

  it('says why it waits: a queue that is not there, one that takes none, and one that is paused', async () => {
    site.start();
    await jobs.create('nowhere', 'exit 0', { queueName: 'NONE' });
    const waits = await jobs.until('nowhere', 'waits', ({ reason }) => reason === 'NoSuchQueue');
    const condition = waits.conditions?.find(({ type }) => type === 'Waiting');
    expect(condition).to.include({ status: 'True' });
    expect(condition?.message).to.equal('there is no queue NONE; these do: Q');
    await until('an Event says so', async () => {
      return (await jobs.events('nowhere')).includes(`NoSuchQueue: ${condition?.message ?? ''}`);
    });
    await jobs.create('elsewhere', 'exit 0', { queueName: 'OTHER' });
    await jobs.until('elsewhere', 'waits', ({ reason }) => reason === 'HtcjobQueue');
    await site.run('pause', 'Q', '--reason', 'test');
    await jobs.create('held', 'exit 0');
    await jobs.until('held', 'waits', ({ reason }) => reason === 'Paused');
    await site.run('resume', 'Q');
    const ended = await jobs.until('held', 'has succeeded', isOver);
    expect(ended.conditions?.find(({ type }) => type === 'Waiting')?.status).to.equal('False');
  });

  it('is refused at once with a forbidden line of htcopts, and its line is named', async () => {
    site.start();
    await jobs.create('wrong', 'exit 0', { htcopts: '+MaxRuntime = 10\nqueue 5' });
    const refused = await jobs.until('wrong', 'is refused', isOver);
    expect(refused).to.include({ active: 0, failed: 1, reason: 'Invalid' });
    const { message = '' } = refused.conditions?.find(({ type }) => type === 'Failed') ?? {};
    expect(message).to.match(/^\/spec\/htcopts: .*line 2/);
    expect(await site.workers()).to.deep.equal([]);
    await jobs.delete('wrong');
    await jobs.untilGone('wrong');
  });

  it('waits for a Secret that it names, and gets it as a file of its own', async () => {
    site.start();
    await jobs.create('secret', 'test "$(cat "$THRESHER_PAYLOAD_DIR/secrets/login/word")" = hush', {
      secrets: [{ name: 'login' }],
    });
    const waits = await jobs.until('secret', 'waits', ({ reason }) => reason === 'HtcjobSecret');
    expect(waits.conditions?.find(({ type }) => type === 'Waiting')?.message).to.match(
      /^there is no Secret login/,
    );
    const data = { word: Buffer.from('hush').toString('base64') };
    await space.client.create(space.core('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'login' },
      data,
    });
    expect(await jobs.until('secret', 'has ended', isOver)).to.include({ succeeded: 1 });
  });

  it('has its own status back after another writer changed it, and goes on', async () => {
    site.start();
    const go = site.path('go');
    await jobs.create('contested', `while ! [ -e ${go} ]; do sleep 0.1; done`);
    await jobs.until('contested', 'runs', ({ reason }) => reason === 'Running');
    const other = { status: { active: 7, succeeded: 5, reason: 'Nonsense' } };
    await space.client.patch(`${jobs.path('contested')}/status`, other);
    await jobs.until(
      'contested',
      'is itself again',
      ({ active, reason }) => active === 1 && reason === 'Running',
    );
    await space.client.patch(jobs.path('contested'), { metadata: { labels: { touched: 'yes' } } });
    writeFileSync(go, '');
    expect(await jobs.until('contested', 'has ended', isOver)).to.include({ active: 0, succeeded: 1 });
  });

  it('ends with its jobs also when its finalizer was taken away by force', async () => {
    site.start();
    await jobs.create('forced', 'sleep 1000');
    await jobs.until('forced', 'runs', ({ reason }) => reason === 'Running');
    await jobs.delete('forced');
    await space.client.patch(jobs.path('forced'), { metadata: { finalizers: null } }).catch(() => undefined);
    await jobs.untilGone('forced');
    await until('its job has ended', () => site.liveProcesses() === 0);
  });

  it('is gone with its namespace, and so are its jobs', async () => {
    const daemon = site.start();
    await jobs.create('lost', 'sleep 1000', { queue: 3 });
    await jobs.until('lost', 'runs', ({ active }) => active === 3);
    await space[Symbol.asyncDispose]();
    await jobs.untilGone('lost');
    expect(site.liveProcesses()).to.equal(0);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
  });

  it('has one operator: another waits, says so, and takes over when the first has stopped', async () => {
    const first = site.start();
    await jobs.create('one', 'exit 0');
    await jobs.until('one', 'has ended', isOver);
    const other = htcJobSite(plane, space);
    try {
      const second = other.start();
      await untilSaid(second, 'HTCJobs wait for the Lease');
      await jobs.create('two', 'exit 0');
      expect(await jobs.until('two', 'has ended', isOver)).to.include({ succeeded: 1 });
      expect(await other.workers()).to.deep.equal([]);
      const reasons = (await other.queue('Q')).reasons.map(({ code }) => code);
      expect(reasons).to.include('htcjob-lease');
      first.process.kill('SIGKILL');
      await first.ended;
      await jobs.create('three', 'exit 0');
      expect(await jobs.until('three', 'has ended', isOver)).to.include({ succeeded: 1 });
      expect(await other.workers()).to.have.length(1);
    } finally {
      await other.clean();
    }
  });
});
