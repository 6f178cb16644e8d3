/** The take-over from htc-operator: its table, its resources, and its jobs in the real pool. */
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import type { JobId } from '../../src/clients/htcondor/classad.ts';
import { jobIdText } from '../../src/clients/htcondor/classad.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, HtcJobs, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

interface Row {
  readonly name: string;
  readonly jobId: string;
  readonly status: number;
  readonly directory: string;
}

describe('thresher htcjob import', () => {
  let plane: ControlPlane;
  let pool: Pool;
  let space: Namespace;
  let condor: CondorSpace;
  let jobs: HtcJobs;
  let site: Site;
  let environment: Record<string, string>;
  let table: string;
  const submitted: JobId[] = [];

  let usual: NodeJS.ProcessEnv;
  let daemon: RunningDaemon | undefined;

  before(async () => {
    [plane, pool] = await Promise.all([controlPlane(), condorPool()]);
    await applyCrd(plane);
    space = await plane.namespace('import');
    condor = condorSpace(pool);
    jobs = new HtcJobs(space);
    table = join(condor.directory, 'htcjobs.db');
    const queue = { demand: 'htcjob', maxWorkers: 100, nQueueLimitWorker: 100 };
    const htcjob = {
      k8s_config_file: 'kubeconfig',
      namespaces: [space.name],
      ...leaseOf(space),
      runtime: 'none',
    };
    site = condorSite(
      {
        queues: {
          Q: condorQueue(pool, { template: 'job.sub.yaml', queue, monitor: { listInterval: 1 } }),
          OTHER: condorQueue(pool, { template: 'job.sub.yaml', queue: { demand: 'none' } }),
        },
        settings: {
          master: { factoryId: condor.factory },
          sweeper: { listInterval: 1 },
          sources: { htcjob },
        },
      },
      { 'job.sub.yaml': shellTemplate(condor, 'exit 99') },
    );
    plane.writeKubeconfig(site.path('kubeconfig'));
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    environment = condorEnvironment(pool, site.directory);
    usual = { ...process.env };
    Object.assign(process.env, environment);
  });

  after(async () => {
    for (const name of Object.keys(environment)) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, usual);
    await site.clean();
    await jobs.letGo();
    await space[Symbol.asyncDispose]();
    await clearSpaces(pool, [condor]);
    const left = submitted.map((id) => `(ClusterId == ${id.cluster} && ProcId == ${id.proc})`).join(' || ');
    if (left !== '') await clientOf(pool, 'local').act('remove', left, 'the test is over', signal);
  });

  afterEach(async () => {
    daemon?.process.kill('SIGTERM');
    expect(await daemon?.ended, daemon?.output()).to.be.oneOf([0, undefined]);
    daemon = undefined;
  });

  /** Submits as htc-operator does: spooled, and with an end that is not that of the script. */
  async function submit(name: string, count: number, script = 'exit 0'): Promise<readonly Row[]> {
    const directory = join(condor.directory, `scratch-${name}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'job.sh'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    chownSync(directory, pool.uid, pool.gid);
    const text = [
      ...['universe = vanilla', 'executable = job.sh', 'arguments = $(ProcId)'],
      ...['should_transfer_files = Yes', 'when_to_transfer_output = ON_EXIT'],
      ...['output = out.$(ClusterId).$(ProcId)', 'error = err.$(ClusterId).$(ProcId)'],
      ...['log = log.$(ClusterId).$(ProcId)', 'request_memory = 64', 'request_disk = 1024'],
      `environment = "JOB_NAME=${name} TEMP_DIR=${directory}"`,
      `queue ${count}`,
    ];
    const client = clientOf(pool, 'local');
    const ids = await client.submit(text.join('\n'), { spool: true, directory }, signal);
    submitted.push(...ids);
    return ids.map((id) => ({ name, jobId: jobIdText(id), status: 1, directory }));
  }

  /** The resource as htc-operator leaves it. */
  async function create(name: string, queue: number, counts: object, by?: 'claimed'): Promise<void> {
    const script = { image: 'none', command: 'sh', source: 'exit 0' };
    const metadata = { name, finalizers: ['finalizer.htc.cern.ch'] };
    const spec = { name, script, queue };
    const made = await space.client.create(jobs.path(), { ...jobs.object(name, spec), metadata });
    const type = { 'content-type': 'application/merge-patch+json' };
    const status = { ...counts, ...(by === 'claimed' && { uniqId: made.metadata.uid }) };
    await space.client.raw('PATCH', `${jobs.path(name)}/status`, { status }, type);
  }

  function writeTable(rows: readonly Row[]): void {
    const db = new Database(table);
    db.exec(
      'DROP TABLE IF EXISTS htcjobs; CREATE TABLE htcjobs(htcjobName varchar, jobId char(10), status integer, tempDir varchar, uniqid integer)',
    );
    const insert = db.prepare('INSERT INTO htcjobs VALUES (?, ?, ?, ?, 5577006791947779410)');
    for (const { name, jobId, status, directory } of rows) insert.run(name, jobId, status, directory);
    db.close();
  }

  /** In this process, which finds the pool by its environment. */
  async function imported(...args: string[]): Promise<{ status: unknown; said: string }> {
    const { status, stdout, stderr } = await site.run('htcjob', 'import', table, ...args);
    return { status, said: stdout + stderr };
  }

  const marked = () => clientOf(pool, 'local').queue(condor.mine, ['ClusterId', 'ProcId'], signal);
  const flag = () => join(condor.directory, 'go');

  it('takes over jobs that live and counts those that ended; none runs again', async () => {
    const waiting = `while [ ! -e ${flag()} ]; do sleep 0.1; done; exit 0`;
    const [living, done, gone] = await Promise.all([
      submit('living', 2, waiting),
      submit('done', 2),
      submit('absent', 1, waiting),
    ]);
    const results = (rows: readonly Row[], ...statuses: number[]) =>
      rows.map((row, index) => ({ ...row, status: statuses[index] ?? 1 }));
    await create('living', 2, { active: 2, succeeded: 0, failed: 0 });
    await create('done', 2, { active: 0, succeeded: 1, failed: 1 });
    await create('lost', 0, { active: 1, succeeded: 0, failed: 0 });
    await create('strange', 1, { active: 1, succeeded: 0, failed: 0 });
    const stranger = { name: 'strange', jobId: living[0]?.jobId ?? '', status: 1, directory: '/elsewhere' };
    const lost = { name: 'lost', jobId: '99999999.0', status: 1, directory: '/elsewhere' };
    // Another writer of the status may write any text.
    await create('echoed', 1, { active: 1, factory: 'token=hunter7-0123456789' }, 'claimed');
    const echoed = { ...lost, name: 'echoed' };
    const table1 = [...living, ...results(done, 14, 7), ...gone, lost, stranger, echoed];
    writeTable(table1);
    daemon = site.start([], environment);

    const { conditions = [] } = await jobs.until(
      'living',
      'waits for its import',
      ({ reason }) => reason === 'HtcjobNotImported',
    );
    expect(conditions[0]?.message).to.contain('"thresher htcjob import" takes them over');

    const untilEnded = (rows: readonly Row[]) =>
      until('the jobs of one have ended', async () => {
        const open = `ClusterId == ${rows[0]?.jobId.split('.')[0] ?? ''} && JobStatus =!= 4`;
        return (await clientOf(pool, 'local').queue(open, ['ClusterId'], signal)).length === 0;
      });
    await untilEnded(done);
    const dry = await imported('--dry-run');
    expect(dry.status, dry.said).to.equal(1);
    expect(dry.said).to.match(new RegExp(`${space.name}/living +2 .*taken over`));
    expect(await marked()).to.deep.equal([]);

    const killed = site.startWith(['--config', site.config, 'htcjob', 'import', table], environment);
    let isOver = false;
    const ended = killed.ended.then(() => (isOver = true));
    await until('a job has its mark, or it is over', async () => isOver || (await marked()).length > 0);
    killed.process.kill('SIGKILL');
    await ended;

    const { status, said } = await imported();
    expect(status, said).to.equal(1);
    const isDone = (name: string) => new RegExp(`/${name} .*(taken over|nothing new)\\n`);
    expect(said).to.match(isDone('living')).and.to.match(isDone('done'));
    expect(said).to.match(/absent .*left alone: the cluster has no HTCJob of this name; its jobs go on/);
    expect(said).to.match(/lost .*left alone: job 99999999.0 is neither in the queue nor/);
    expect(said).to.match(/echoed .*left alone: factory token=\(hidden\) runs it/);
    expect(said + dry.said).not.to.contain('hunter7');
    expect(said).to.match(/strange .*left alone: job \S+ of the schedd is another one/);
    expect(
      await jobs.until('done', 'has ended', ({ completionTime }) => completionTime !== undefined),
    ).to.include({
      active: 0,
      succeeded: 1,
      failed: 1,
      completedIndexes: '0',
      failedIndexes: '1',
      reason: 'JobsFailed',
    });
    const { jobid } = await jobs.until('living', 'runs', ({ reason }) => reason === 'Running');
    expect(jobid).to.deep.equal(living.map(({ jobId }) => jobId));

    writeTable([...living, ...results(done, 14, 7)]);
    const again = await imported();
    expect(again.status, again.said).to.equal(0);
    expect(again.said)
      .to.match(/living .*nothing new\n/)
      .and.to.match(/done .*nothing new\n/);

    writeFileSync(flag(), '');
    const open = await jobs.until(
      'living',
      'has ended without a result',
      ({ reason }) => reason === 'HtcjobUnreported',
    );
    expect(open).to.include({ active: 2, succeeded: 0, failed: 0 });
    // An import counts the results of ended jobs alone.
    await untilEnded(living);
    const ids = new Set(living.map(({ jobId }) => jobId));
    await until('thresher has heard of both ends', async () => {
      const rows = (await site.workers()).filter(({ batchID }) => ids.has(batchID ?? ''));
      return rows.length === ids.size && rows.every(({ endTime }) => endTime !== null);
    });
    writeTable(results(living, 4, 7));
    const told = await imported();
    expect(told.status, told.said).to.equal(0);
    expect(
      await jobs.until('living', 'is over', ({ completionTime }) => completionTime !== undefined),
    ).to.include({ active: 0, succeeded: 1, failed: 1, completedIndexes: '0', failedIndexes: '1' });

    const lostNow = [{ ...lost }];
    writeTable(lostNow);
    const counted = await imported('--unreported', 'failed');
    expect(counted.status, counted.said).to.equal(0);
    await jobs.until(
      'lost',
      'has failed',
      ({ failed, completionTime }) => failed === 1 && completionTime !== undefined,
    );

    const workers = await site.workers();
    expect(workers.map(({ batchID }) => batchID).sort(), 'no job but those of htc-operator').to.deep.equal(
      [...living, ...done].map(({ jobId }) => jobId).sort(),
    );
    for (const name of ['living', 'done']) await jobs.delete(name);
    for (const name of ['living', 'done']) await jobs.untilGone(name);
    expect(await marked()).to.deep.equal([]);
    expect((await jobs.find('strange'))?.status).to.include({ reason: 'HtcjobNotImported', active: 1 });
  });

  it('ends with the words for a file that is not its table, a queue that does not take HTCJobs, and a schedd that is away', async () => {
    const living = await submit('away', 1, 'sleep 1000');
    await create('away', 1, { active: 1, succeeded: 0, failed: 0 });
    writeTable(living);
    process.env['_CONDOR_SCHEDD_HOST'] = 'nowhere.invalid';
    const unreachable = await imported();
    delete process.env['_CONDOR_SCHEDD_HOST'];
    expect(unreachable.status).to.equal(1);
    expect(unreachable.said).to.match(/condor_q for the local schedd/);
    expect((await jobs.find('away'))?.status?.factory).to.equal(undefined);
    expect(await marked()).to.deep.equal([]);
    const wrong = await imported('--queue', 'OTHER');
    expect(wrong.said).to.match(/no queue OTHER takes HTCJobs; these do: Q/);
    writeFileSync(table, 'no database, however long it may be'.repeat(50));
    expect((await imported()).said).to.match(/htcjobs.db: the file is not a database/);
    writeFileSync(table, '');
    expect((await imported()).said).to.match(/it has no table htcjobs/);
  });
});
