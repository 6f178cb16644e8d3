import Database from 'better-sqlite3';
import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const at = (workDir: string) => ({
  submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml', workDir },
  monitor: {
    name: 'LocalMonitor',
    module: 'thresher/local',
    pollInterval: 0.1,
    killGrace: 1,
    workDir,
  },
  sweeper: { name: 'LocalSweeper', module: 'thresher/local', killGrace: 1, workDir },
});
const moved = { ...at('two'), maxWorkers: 0 };
const neighbour = { ...at('one'), maxWorkers: 0 };
const before = { Q: { ...at('one'), maxWorkers: 2, nQueueLimitWorker: 2 }, N: neighbour };

describe('a queue that an operator moves to another connection', () => {
  let site: Site;
  let daemon: RunningDaemon;
  let ids: number[];

  beforeEach(async () => {
    site = new Site({
      pilot: 'echo hello; exec sleep 1000',
      settings: { monitor: { missingGrace: 0.2 }, sweeper: { keepCancelled: 0 } },
      queues: before,
    });
    daemon = site.start();
    ids = await running(2);
  });

  afterEach(async () => {
    await site.clean();
  });

  const running = (count: number) =>
    until(`${count} workers run`, async () => {
      const workers = await site.workers({ status: 'running', queue: 'Q' });
      return workers.length === count && workers.map(({ workerID }) => workerID).sort((a, b) => a - b);
    });

  async function endDaemon(): Promise<void> {
    daemon.process.kill('SIGKILL');
    await daemon.ended;
  }

  function edit(statement: string, ...values: unknown[]): void {
    const db = new Database(join(site.stateDir, 'thresher.db'));
    db.prepare(statement).run(...values);
    db.close();
  }

  async function killAndSweep(): Promise<void> {
    const [first = 0] = ids;
    // A worker counts as running before its pilot writes anything.
    await until(
      'its log can be read',
      async () => (await site.run('logs', String(first))).stdout === 'hello\n',
    );
    const killed = await site.run('kill', ...ids.map(String));
    expect(killed).to.include({ status: 0, stdout: '2 of 2 workers are being ended\n' });
    await until('both are cancelled', async () => {
      const workers = await site.workers({ status: 'cancelled' });
      return workers.length === 2;
    });
    await until('their directories are removed', () =>
      ids.every((id) => !existsSync(site.path('one', String(id)))),
    );
    expect(site.liveProcesses()).to.equal(0);
  }

  it('keeps its workers within reach when the database is lost: they are adopted, ended and swept', async () => {
    await endDaemon();
    site.writeQueues({ Q: moved, N: neighbour });
    site.removeDatabase();
    site.start();
    expect(await running(2)).to.deep.equal(ids);
    await killAndSweep();
  });

  it('gets back the workers that an earlier version adopted with a configuration of elsewhere', async () => {
    site.writeQueues({ Q: moved, N: neighbour });
    daemon.process.kill('SIGHUP');
    await until('the queue is moved', () => daemon.output().includes('was read again'));
    await endDaemon();
    edit(`UPDATE workers SET config_id = (SELECT max(config_id) FROM configs WHERE queue = 'Q')`);
    edit(`DELETE FROM configs WHERE queue = 'Q' AND config_id NOT IN (SELECT config_id FROM workers)`);
    const restarted = site.start();
    // The rows say that they run already before the daemon has begun.
    await until('the workers get another configuration', () =>
      restarted.output().includes('workers get another configuration'),
    );
    expect(await running(2)).to.deep.equal(ids);
    await killAndSweep();
  });

  it('sees the end of its workers by an earlier configuration whose connection no other queue uses', async () => {
    site.writeQueues({ Q: moved, N: neighbour });
    daemon.process.kill('SIGHUP');
    await until('the queue is moved', () => daemon.output().includes('was read again'));
    await endDaemon();
    edit(`UPDATE workers SET config_id = (SELECT max(config_id) FROM configs WHERE queue = 'Q')`);
    site.writeQueues({ Q: moved });
    const restarted = site.start();
    await until('the workers get an earlier configuration', () =>
      restarted.output().includes('workers get another configuration'),
    );
    site.killEverything();
    await until('both are failed', async () => (await site.workers({ status: 'failed' })).length === 2);
  });

  it('is told where its workers are when no configuration leads there, and that nothing ends them', async () => {
    await endDaemon();
    site.writeQueues({ Q: moved });
    edit(`UPDATE configs SET snapshot = replace(snapshot, '"one"', '"two"')`);
    const restarted = site.start();
    await until('it says so', () => restarted.output().includes('worker-unreachable'));
    const { status, stderr } = await site.run('kill', ...ids.map(String));
    expect(status).to.equal(1);
    expect(stderr).to.contain('0 of 2 workers are being ended; 2 cannot be ended');
    expect(stderr).to.contain(`no configuration leads to local:${site.path('one')} any more`);
    // The end was asked for: it comes as soon as a queue leads there.
    site.writeQueues({ Q: moved, N: neighbour });
    restarted.process.kill('SIGHUP');
    await until('both are cancelled', async () => (await site.workers({ status: 'cancelled' })).length === 2);
  });
});
