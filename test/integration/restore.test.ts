import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { countStarts, type RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const wanted = 3;

describe('a restored backup', () => {
  let site: Site;

  beforeEach(() => {
    site = new Site({
      pilot: `${countStarts} exec sleep 1000`,
      settings: {
        monitor: { missingGrace: 0.2 },
        sweeper: { keepCancelled: 0, keepFailed: 0, keepMissed: 0 },
      },
      queues: { Q: { maxWorkers: wanted, nQueueLimitWorker: wanted } },
    });
  });

  afterEach(async () => {
    await site.clean();
  });

  /** The running workers once all are, their commands too, none of which is in `before`. */
  const newWorkers = (before: readonly number[] = []) =>
    until('as many workers run as are wanted', async () => {
      const ids = (await site.workers({ status: 'running' })).map(({ workerID }) => workerID);
      const started = site.starts();
      const isNew = (id: number) => started.has(id) && !before.includes(id);
      return ids.length === wanted && ids.every(isNew) && ids.sort((a, b) => a - b);
    });

  /** Ends all workers, so that nothing of them is left but the row that the backup has of them, or none. */
  async function endAll(workers: readonly number[]): Promise<void> {
    expect((await site.run('kill', '--queue', 'Q')).status).to.equal(0);
    await until('their traces are removed', () =>
      workers.every((id) => !existsSync(join(site.stateDir, 'local', String(id)))),
    );
  }

  async function replaceAll(before: readonly number[]): Promise<number[]> {
    await endAll(before);
    return newWorkers(before);
  }

  async function restore(daemon: RunningDaemon, backup: string): Promise<void> {
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(site.stateDir, `thresher.db${suffix}`), { force: true });
    copyFileSync(backup, join(site.stateDir, 'thresher.db'));
  }

  async function backUp(): Promise<string> {
    const backup = site.path('backup.db');
    expect((await site.run('db', 'backup', backup)).stderr).to.equal('');
    return backup;
  }

  const everStartedTwice = () => [...site.starts()].filter(([, count]) => count !== 1);

  it('lets a daemon go on: what was made since is adopted, nothing starts twice, no id comes again', async () => {
    const daemon = site.start();
    const saved = await newWorkers();
    const backup = await backUp();
    // Two generations that the backup knows nothing of: one that is over and gone, one that lives.
    const over = await replaceAll(saved);
    const living = await replaceAll(over);
    await restore(daemon, backup);
    const restarted = site.start();
    expect(await newWorkers(saved), restarted.output()).to.deep.equal(living);
    expect([...site.liveShims()].sort()).to.deep.equal(living.map((id) => [id, 1]));
    // Of what the backup took for running nothing is left, and that is found out.
    const ends = await until('the saved workers have ended', async () => {
      const ended = (await site.workers()).filter(
        ({ workerID, endTime }) => saved.includes(workerID) && endTime,
      );
      return ended.length === saved.length && ended.map(({ status, errorCode }) => [status, errorCode]);
    });
    expect(ends).to.deep.equal(saved.map(() => ['missed', 'ended-unseen']));
    const next = await replaceAll(living);
    expect(Math.min(...next)).to.be.greaterThan(Math.max(...living));
    expect([...site.starts().keys()].sort((a, b) => a - b)).to.include.members([
      ...saved,
      ...over,
      ...living,
      ...next,
    ]);
    expect(everStartedTwice()).to.deep.equal([]);
    expect(checkDatabase(join(site.stateDir, 'thresher.db')).findings).to.deep.equal([]);
  });

  it('holds no queue back by workers that ended after it was made', async () => {
    const throttler = {
      name: 'SimpleThrottler',
      module: 'pandaharvester.harvesterthrottler.simple_throttler',
      logicType: 'AND',
      rulesForMissed: [{ level: 'pq', timeWindow: 60, maxMissed: 0 }],
    };
    site.writeQueues({ Q: { maxWorkers: wanted, nQueueLimitWorker: wanted, throttler } });
    const daemon = site.start();
    const saved = await newWorkers();
    const backup = await backUp();
    await site.run('pause', 'Q', '--reason', 'test');
    await endAll(saved);
    await restore(daemon, backup);
    site.start();
    const others = await newWorkers(saved);
    expect(others).to.have.length(wanted);
    expect((await site.queue('Q')).reasons.map(({ code }) => code)).not.to.include('throttled');
  });

  it('gives no id again of which nothing is left', async () => {
    const daemon = site.start();
    const saved = await newWorkers();
    const backup = await backUp();
    const over = await replaceAll(saved);
    await site.run('pause', 'Q', '--reason', 'test');
    await endAll(over);
    await restore(daemon, backup);
    site.start();
    const next = await newWorkers(saved);
    expect(Math.min(...next)).to.be.greaterThan(Math.max(...over));
    expect(everStartedTwice()).to.deep.equal([]);
  });

  it('does not carry out intents of then that were carried out since', async () => {
    const crashed = site.startCrashingAt('submit:after-intent');
    expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
    const intents = (await site.workers({ status: 'pending' })).map(({ workerID }) => workerID);
    expect(intents).to.have.length(wanted);
    const backup = await backUp();
    const daemon = site.start();
    // These very intents are settled, run, and are over when the backup is restored.
    const first = await newWorkers();
    expect(first).to.have.members(intents);
    const second = await replaceAll(first);
    await restore(daemon, backup);
    site.start();
    expect(await newWorkers()).to.deep.equal(second);
    const third = await replaceAll(second);
    expect(Math.min(...third)).to.be.greaterThan(Math.max(...second));
    expect(everStartedTwice()).to.deep.equal([]);
  });
});
