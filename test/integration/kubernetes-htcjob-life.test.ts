import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { HtcJobHome, htcJobSite } from '../support/htcjob-site.ts';
import { HtcJobs, isOver } from '../support/htcjobs.ts';
import type { Namespace } from '../support/kubernetes.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('the life of a HTCJob', () => {
  let home: HtcJobHome;
  let space: Namespace;
  let jobs: HtcJobs;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    home = await HtcJobHome.open();
    ({ space, jobs, site } = home);
    daemon = site.start();
  });
  after(() => home[Symbol.asyncDispose]());

  it('waits while it is suspended, ends its jobs when it is suspended later, and runs them anew after', async () => {
    const file = site.path('started');
    await jobs.create('late', `echo x >> ${file}; sleep 1000`, { suspend: true });
    const waits = await jobs.until('late', 'is suspended', ({ reason }) => reason === 'Suspended');
    expect(waits.active).to.equal(0);
    expect(existsSync(file)).to.equal(false);
    await jobs.change('late', { suspend: false });
    await jobs.until('late', 'runs', ({ reason }) => reason === 'Running');
    const [first] = await home.workersOf('late');
    await jobs.change('late', { suspend: true });
    const suspended = await jobs.until('late', 'has ended its job', ({ reason, active }) => {
      return reason === 'Suspended' && active === 0;
    });
    expect(suspended).to.include({ failed: 0, succeeded: 0 });
    expect(suspended.completionTime).to.equal(undefined);
    expect(home.living(await home.workersOf('late'))).to.deep.equal([]);
    await jobs.change('late', { suspend: false });
    await jobs.until('late', 'runs again', ({ reason }) => reason === 'Running');
    const workers = await home.workersOf('late');
    expect(workers.map(({ status }) => status)).to.deep.equal(['cancelled', 'running']);
    expect(workers[0]?.workerID).to.equal(first?.workerID);
    await jobs.delete('late');
  });

  it('is over when activeDeadlineSeconds are, and its jobs with it', async () => {
    await jobs.create('slow', 'sleep 1000', { queue: 2, activeDeadlineSeconds: 3 });
    const ended = await jobs.until('slow', 'has failed', isOver);
    expect(ended).to.include({ active: 0, failed: 2, reason: 'DeadlineExceeded' });
    expect(home.living(await home.workersOf('slow'))).to.deep.equal([]);
  });

  it('runs as many failed jobs again as backoffLimit says', async () => {
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
    const file = site.path('short');
    await jobs.create('short', `echo x >> ${file}`, { ttlSecondsAfterFinished: 1 });
    await jobs.untilGone('short');
    expect(readFileSync(file, 'utf8')).to.equal('x\n');
  });

  it('says why it waits: a queue that is not there, one that takes none, and one that is paused', async () => {
    await jobs.create('nowhere', 'exit 0', { queueName: 'NONE' });
    const waits = await jobs.until('nowhere', 'waits', ({ reason }) => reason === 'NoSuchQueue');
    const condition = waits.conditions?.find(({ type }) => type === 'Waiting');
    expect(condition).to.include({ status: 'True' });
    expect(condition?.message).to.equal('there is no queue NONE; queues that take HTCJobs: Q');
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
    await jobs.create('wrong', 'exit 0', { htcopts: '+MaxRuntime = 10\nqueue 5' });
    const refused = await jobs.until('wrong', 'is refused', isOver);
    expect(refused).to.include({ active: 0, failed: 1, reason: 'Invalid' });
    const { message = '' } = refused.conditions?.find(({ type }) => type === 'Failed') ?? {};
    expect(message).to.match(/^\/spec\/htcopts: .*line 2/);
    expect(await home.workersOf('wrong')).to.deep.equal([]);
    await jobs.delete('wrong');
    await jobs.untilGone('wrong');
  });

  it('waits for a Secret that it names, and gets it as a file of its own', async () => {
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

  it('keeps a true status beside a writer that changes it all the time', async () => {
    const go = site.path('go');
    const nonsense = {
      active: 7,
      succeeded: 5,
      failed: 2,
      reason: 'Nonsense',
      jobid: ['0.0'],
      jobIds: ['0.0'],
    };
    await jobs.create('contested', `while ! [ -e ${go} ]; do sleep 0.1; done`);
    let written = 0;
    const over = new AbortController();
    const writer = async () => {
      while (!over.signal.aborted) {
        await space.client.patch(`${jobs.path('contested')}/status`, { status: nonsense });
        await space.client.patch(jobs.path('contested'), {
          metadata: { labels: { written: String(written++) } },
        });
      }
    };
    const writing = writer();
    try {
      await until('its job runs beside the writer', async () => {
        const workers = await home.workersOf('contested');
        return written > 20 && home.living(workers).length === 1;
      });
      writeFileSync(go, '');
      await jobs.until('contested', 'has an end', isOver);
      const before = written;
      await until('the writer has written after the end', () => written > before + 5);
    } finally {
      over.abort();
      await writing;
    }
    const ended = await jobs.until('contested', 'is itself again', ({ reason }) => reason === 'Succeeded');
    expect(ended).to.include({ active: 0, succeeded: 1, failed: 0, completedIndexes: '0' });
    expect(ended.jobid).to.have.length(1).and.not.to.include('0.0');
    expect(await home.workersOf('contested')).to.have.length(1);
  });

  it('cannot be changed once its jobs may have been submitted, but for what says how long they run', async () => {
    const script = { image: 'none', command: 'sh', source: 'exit 0' };
    await jobs.create('fixed', 'exit 0');
    await jobs.until('fixed', 'has ended', isOver);
    const refused: readonly object[] = [
      { script: { ...script, source: 'exit 1' } },
      { script: { ...script, command: ['sh', '-e'] } },
      { queue: 2 },
      { env: [{ name: 'A', value: 'b' }] },
      { htcopts: '+WantOS = 1' },
      { name: 'other' },
      { runtime: null },
      { requests: { cpus: 2 } },
    ];
    for (const spec of refused) {
      const answer = await space.client.raw('PATCH', jobs.path('fixed'), JSON.stringify({ spec }), {
        'content-type': 'application/merge-patch+json',
      });
      expect(answer.status, JSON.stringify(spec)).to.equal(422);
      expect(answer.text).to.match(
        /the spec cannot change any more, but for .*: delete it and create it anew/,
      );
    }
    const changes = {
      suspend: true,
      ttlSecondsAfterFinished: 3600,
      activeDeadlineSeconds: 60,
      backoffLimit: 2,
    };
    expect((await jobs.change('fixed', changes)).spec).to.include(changes);
    await space.client.patch(jobs.path('fixed'), { metadata: { labels: { a: 'b' } } });
  });

  it('has a short name, and the columns that kubectl prints', async () => {
    const { resources } = await space.client.request<{
      resources: { name: string; shortNames?: string[] }[];
    }>('GET', '/apis/htc.cern.ch/v1alpha1');
    expect(resources.find(({ name }) => name === 'htcjobs')?.shortNames).to.deep.equal(['htcj']);
    const table = await space.client.request<{
      columnDefinitions: { name: string }[];
      rows: { cells: unknown[] }[];
    }>('GET', jobs.path('fixed'), undefined, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' });
    const titles = table.columnDefinitions.map(({ name }) => name);
    expect(titles).to.deep.equal(['Name', 'Active', 'Succeeded', 'Failed', 'Held', 'Age', 'Reason']);
    const cells = table.rows[0]?.cells.filter((_, index) => titles[index] !== 'Age');
    expect(cells).to.deep.equal(['fixed', 0, 1, 0, 0, 'Succeeded']);
  });

  it('hole 8: keeps the finalizers of others, however many those are', async () => {
    const finalizers = Array.from({ length: 40 }, (_, at) => `other.example/${at}`);
    const object = jobs.object('many', {
      name: 'many',
      script: { image: 'none', command: 'sh', source: 'exit 0' },
      runtime: 'none',
    });
    await space.client.create(jobs.path(), { ...object, metadata: { name: 'many', finalizers } });
    await jobs.until('many', 'has succeeded', isOver);
    const finalizersOf = async () => (await jobs.find('many'))?.metadata.finalizers;
    expect(await finalizersOf()).to.deep.equal([...finalizers, 'finalizer.htc.cern.ch']);
    await jobs.delete('many');
    await until('ours is gone', async () => (await finalizersOf())?.length === finalizers.length);
    expect(await finalizersOf()).to.deep.equal(finalizers);
    await space.client.patch(jobs.path('many'), { metadata: { finalizers: null } });
    await jobs.untilGone('many');
  });

  it('ends its jobs also when its finalizer was taken away by force, beside a new one of its name', async () => {
    const file = site.path('forced');
    await jobs.create('forced', `trap '' TERM; while :; do sleep 1; done`);
    await jobs.until('forced', 'runs', ({ reason }) => reason === 'Running');
    const old = await home.workersOf('forced');
    expect(home.living(old)).to.have.length(1);
    // The operator sees neither the deletion nor the finalizer go.
    daemon.process.kill('SIGSTOP');
    await jobs.delete('forced');
    await space.client.patch(jobs.path('forced'), { metadata: { finalizers: null } });
    await jobs.untilGone('forced');
    const { metadata } = await jobs.create('forced', `echo x >> ${file}; exit 3`);
    expect(home.living(old)).to.have.length(1);
    daemon.process.kill('SIGCONT');
    const ended = await jobs.until('forced', 'has ended', isOver);
    expect(ended).to.include({ uniqId: metadata.uid, failed: 1, succeeded: 0, active: 0 });
    await until('the job of the old one has ended', () => home.living(old).length === 0);
    expect(readFileSync(file, 'utf8')).to.equal('x\n');
  });

  it('gets its jobs while those of an earlier one of its name are still being removed', async () => {
    const file = site.path('twice');
    await jobs.create('twice', `echo old >> ${file}; trap '' TERM; while :; do sleep 1; done`, { queue: 2 });
    await jobs.until('twice', 'runs', ({ active }) => active === 2);
    await until('both have started', () => readFileSync(file, 'utf8') === 'old\nold\n');
    const old = await home.workersOf('twice');
    await jobs.delete('twice');
    await until('the name is free', () => jobs.create('twice', `echo new >> ${file}`).catch(() => undefined));
    // The name is free only after the last of these jobs.
    expect(home.living(old)).to.deep.equal([]);
    expect(await jobs.until('twice', 'has ended', isOver)).to.include({ succeeded: 1 });
    expect(readFileSync(file, 'utf8')).to.equal('old\nold\nnew\n');
  });

  it('runs with the longest names, and with any text in spec.name and its variables, which no shell reads', async () => {
    const names = ['a'.repeat(253), `${'b'.repeat(229)}.${'c'.repeat(20)}`];
    const text = `"a' b\n$(touch ${site.path('trap')}) \`id\` \${HOME} \\ ü\u{1F41F} ../..`;
    const show = `printf '%s|%s' "$JOB_NAME" "$V" > ${site.directory}/shown.$1.$(printf %s "$JOB_NAME" | wc -c)`;
    for (const name of names)
      await jobs.create(name, show, { name: text, env: [{ name: 'V', value: text }], queue: 2 });
    for (const name of names) {
      expect(await jobs.until(name, 'has ended', isOver)).to.include({ succeeded: 2 });
      for (const number of [0, 1]) {
        const shown = readFileSync(site.path(`shown.${number}.${name.length}`), 'utf8');
        expect(shown).to.equal(`${name}|${text}`);
      }
      await until('Events tell of it', async () => {
        return (await jobs.events(name)).some((event) => event.startsWith('Succeeded: '));
      });
      await jobs.delete(name);
    }
    for (const name of names) await jobs.untilGone(name);
    expect(existsSync(site.path('trap'))).to.equal(false);
  });

  it('runs a script of 900 kB byte for byte, with CRLF, without a last new line', async () => {
    const lines = `: '\u00fc\t\r\n"$(id)\\'\r\n`.repeat(45_000).slice(0, 880_000);
    const source = `cat "$0" > ${site.path('copy')}\nexit 0\n${lines}# no new line`;
    await jobs.create('large', source);
    expect(await jobs.until('large', 'has ended', isOver)).to.include({ succeeded: 1 });
    expect(readFileSync(site.path('copy'), 'utf8') === source).to.equal(true);
  });

  it('keeps its labels, and goes with its owner, and its jobs end', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'workflow' } };
    const { metadata } = await space.client.create(space.core('configmaps'), owner);
    const { apiVersion, kind } = owner;
    const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
    const script = { image: 'none', command: 'sh', source: 'sleep 1000' };
    const object = jobs.object('', { name: 'owned', runtime: 'none', script });
    const labels = { workflow: 'w', 'workflows.argoproj.io/workflow': 'w' };
    const created = await space.client.create(jobs.path(), {
      ...object,
      metadata: { generateName: 'owned-', labels, ownerReferences: [reference] },
    });
    const { name } = created.metadata;
    await jobs.until(name, 'runs', ({ reason }) => reason === 'Running');
    const running = await jobs.find(name);
    expect(running?.metadata.labels).to.deep.equal(labels);
    expect(running?.metadata.ownerReferences).to.deep.equal([reference]);
    const workers = await home.workersOf(name);
    expect(home.living(workers)).to.have.length(1);
    await space.client.delete(space.core('configmaps', 'workflow'));
    await jobs.untilGone(name);
    expect(home.living(workers)).to.deep.equal([]);
  });

  it('is gone with its namespace, and so are its jobs; those of other namespaces go on', async () => {
    const others = new HtcJobs(home.other);
    const go = site.path('go-on');
    const started = site.path('lost');
    await others.create('lost', `echo x >> ${started}; sleep 1000`, { queue: 3 });
    await jobs.create('kept', `while ! [ -e ${go} ]; do sleep 0.1; done`);
    await others.until('lost', 'runs', ({ active }) => active === 3);
    await jobs.until('kept', 'runs', ({ reason }) => reason === 'Running');
    await home.other[Symbol.asyncDispose]();
    await others.untilGone('lost');
    expect(site.liveShims().size).to.equal(1);
    writeFileSync(go, '');
    expect(await jobs.until('kept', 'has ended', isOver)).to.include({ succeeded: 1 });
    await until('the namespace is gone', async () => {
      return (await home.plane.client.find(`/api/v1/namespaces/${home.other.name}`)) === undefined;
    });
  });

  it('has one operator: another waits, says so, and takes over when the first has stopped', async () => {
    const other = htcJobSite(home.plane, [space, home.other]);
    await untilSaid(daemon, 'this daemon is the operator of HTCJobs');
    try {
      const second = other.start();
      await untilSaid(second, 'HTCJobs wait for the Lease');
      await jobs.create('two', 'exit 0');
      expect(await jobs.until('two', 'has ended', isOver)).to.include({ succeeded: 1 });
      expect(await other.workers()).to.deep.equal([]);
      const reasons = (await other.queue('Q')).reasons.map(({ code }) => code);
      expect(reasons).to.include('htcjob-lease');
      await jobs.create('stays', `while ! [ -e ${site.path('stays-on')} ]; do sleep 0.2; done`);
      await jobs.until('stays', 'is active', ({ active }) => active === 1);
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      await jobs.create('three', 'exit 0');
      expect(await jobs.until('three', 'has ended', isOver)).to.include({ succeeded: 1 });
      expect(await other.workers()).to.have.length(1);
      // What the first one has claimed stays with it, though the second one holds the Lease.
      daemon = site.start();
      writeFileSync(site.path('stays-on'), '');
      expect(await jobs.until('stays', 'has ended', isOver)).to.include({ succeeded: 1 });
      await jobs.delete('two');
      await jobs.untilGone('two');
      expect((await site.queue('Q')).reasons.map(({ code }) => code)).to.include('htcjob-lease');
      // An operator that ends in order leaves the Lease behind: the first one has it at its next looks.
      second.process.kill('SIGTERM');
      expect(await second.ended, second.output()).to.equal(0);
      await untilSaid(daemon, 'this daemon is the operator of HTCJobs');
    } finally {
      await other.clean();
    }
  });
});
