import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import { History, livingPods, workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import { SilentProxy } from '../support/postgresql-proxy.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const wanted = 3;
/** Seconds: the shortest that there is. */
const leaseDuration = 3;

describe('two daemons on one database', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let history: History;
  let database: string;
  /** Between the first site and the database. */
  let proxy: SilentProxy;
  let sites: readonly [Site, Site];

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    const server = await sharedPostgresql();
    proxy = new SilentProxy(server.directory);
    await proxy.start();
    database = await newDatabase();
    space = await plane.namespace('standby');
    history = await History.begin(space);
    const make = (url: string) =>
      kubernetesSite(
        plane,
        {
          settings: {
            master: { factoryId: 'two', shutdownTimeout: 2 },
            database: { url, sslmode: 'disable', leaseDuration },
            http: { enabled: true, port: 0 },
          },
          queues: { Q: kubernetesQueue(space, { queue: { maxWorkers: wanted, nQueueLimitWorker: wanted } }) },
        },
        { 'job.yaml': jobTemplate() },
      );
    sites = [make(proxy.url(database)), make(server.url(database))];
    await sites[1].loadCommands();
  });

  afterEach(async () => {
    proxy.heal();
    for (const site of sites) await site.clean();
    proxy.close();
    await space[Symbol.asyncDispose]();
  });

  /** Waits until all wanted workers run, and nothing is open. */
  async function expectAllRun(): Promise<void> {
    const ids = await until('all wanted workers run and no intent is open', async () => {
      const workers = await sites[1].workers();
      const running = workers.filter(({ status }) => status === 'running');
      const settled = workers.every(({ status }) => status !== 'pending');
      return running.length === wanted && settled && running.map(({ workerID }) => workerID).sort();
    });
    expect(await workersWithJobs(space)).to.deep.equal(ids);
    expect(await livingPods(space)).to.equal(wanted);
    expect(await history.twice()).to.deep.equal([]);
  }

  const says = (daemon: RunningDaemon, what: string | RegExp) =>
    until(
      () => `it says ${String(what)}:\n${daemon.output()}`,
      () => daemon.output().match(what) !== null,
    );

  const urlOf = async (daemon: RunningDaemon): Promise<string> =>
    until(
      () => `it listens:\n${daemon.output()}`,
      () => /http:\/\/\S+:\d+\//.exec(daemon.output())?.[0] ?? false,
    );

  const isStopped = (daemon: RunningDaemon): boolean =>
    readFileSync(`/proc/${daemon.pid}/stat`, 'utf8').includes(') T ');

  /** Starts the first, and the second once that has the factory. */
  async function startBoth(): Promise<readonly [RunningDaemon, RunningDaemon]> {
    const leader = sites[0].start();
    await until('it has the factory', async () => (await sites[0].workers().catch(() => [])).length > 0);
    const standby = sites[1].start();
    await says(standby, 'standby: another daemon has the factory');
    return [leader, standby];
  }

  for (const step of [
    'submit:before-intent',
    'submit:after-intent',
    'submit:before-outcome',
    'submit:after-outcome',
  ]) {
    it(`have each worker once while the leader stands still beyond its lease, and when it goes on: ${step}`, async () => {
      const paused = sites[0].startPausingAt(step);
      await until(
        () => `it stands still:\n${paused.output()}`,
        () => isStopped(paused),
      );
      const next = sites[1].start();
      // Where it begins late the lease has run out already, and it never waits.
      await says(next, ' started ');
      await expectAllRun();
      process.kill(paused.pid, 'SIGCONT');
      expect(await paused.ended, paused.output()).to.equal(1);
      expect(paused.output()).to.contain('another daemon has taken over the factory two');
      await expectAllRun();
    });
  }

  it('show who leads, and the standby takes commands and requests that the leader carries out', async () => {
    const [leader, standby] = await startBoth();
    await expectAllRun();
    const [leaderUrl, standbyUrl] = [await urlOf(leader), await urlOf(standby)];
    const ready = async (url: string) => (await fetch(`${url}readyz`)).json();
    expect(await ready(standbyUrl)).to.deep.include({ status: 'standby' });
    expect(await ready(leaderUrl)).to.deep.include({ status: 'ready' });
    const { leader: name } = (await ready(standbyUrl)) as { leader: string };
    expect(name).to.match(new RegExp(`^\\S+ pid ${leader.pid}$`));
    // A renewal that comes late on a busy machine leaves no leader for a moment.
    await until('the status names the leader', async () =>
      (await sites[1].run('status')).stdout.includes(`\nleader ${name}\n`),
    );
    expect(await (await fetch(`${standbyUrl}api/queues`)).text()).to.contain('"running":3');
    const { status, stdout } = await sites[1].run('pause', 'Q', '--reason', 'test');
    expect([status, stdout]).to.deep.equal([0, 'Q is paused\n']);
    expect(leader.output()).to.contain('command carried out');
    expect((await sites[1].queue('Q')).state).to.equal('paused');
  });

  it('go on when the leader is killed, stopped, or loses the factory in the database', async () => {
    const server = await sharedPostgresql();
    const [killed, second] = await startBoth();
    process.kill(killed.pid, 'SIGKILL');
    await says(second, 'no longer a standby');
    await expectAllRun();

    const third = sites[0].start();
    await says(third, 'standby: another daemon has the factory');
    process.kill(second.pid, 'SIGTERM');
    expect(await second.ended).to.equal(0);
    // A lease that had to run out would last for a while yet.
    const left = await server.query(
      `SELECT FROM leases WHERE expires_at > clock_timestamp() AND holder LIKE '% pid ${second.pid}'`,
      database,
    );
    expect(left, 'its lease').to.have.length(0);
    await says(third, 'no longer a standby');
    await expectAllRun();

    const fourth = sites[1].start();
    await says(fourth, 'standby: another daemon has the factory');
    await server.query(
      `UPDATE leases SET epoch = epoch + 1, expires_at = clock_timestamp() - interval '1 s'`,
      database,
    );
    expect(await third.ended, third.output()).to.equal(1);
    expect(third.output()).to.contain('[store-taken]');
    await says(fourth, 'no longer a standby');
    await expectAllRun();
  });

  it('have each worker once when the network parts the leader and the database, and when it heals', async () => {
    const [parted, standby] = await startBoth();
    await expectAllRun();
    proxy.silence();
    await says(standby, 'no longer a standby');
    const [gone = 0] = (await sites[1].workers()).map(({ workerID }) => workerID);
    await sites[1].run('kill', String(gone));
    await until('another worker has taken its place', async () => {
      const workers = await sites[1].workers();
      const running = workers.filter(({ status }) => status === 'running').map(({ workerID }) => workerID);
      return running.length === wanted && !running.includes(gone);
    });
    expect(parted.output()).to.contain('lease-expired');
    proxy.heal();
    expect(await parted.ended, parted.output()).to.equal(1);
    expect(parted.output()).to.contain('[store-taken]');
    await expectAllRun();
  });

  it('lets a standby end at once, and the leader does not notice', async () => {
    const [leader, standby] = await startBoth();
    process.kill(standby.pid, 'SIGTERM');
    expect(await standby.ended, standby.output()).to.equal(0);
    await expectAllRun();
    expect(leader.output()).not.to.contain('store-taken');
  });
});
