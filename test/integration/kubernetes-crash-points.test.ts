import { expect } from 'chai';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import { History, livingPods, workerJobs, workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { ofGate } from '../support/tiers.ts';
import { until } from '../support/until.ts';

const wanted = 2;
const limits = { maxWorkers: wanted, nQueueLimitWorker: wanted };

describe('on Kubernetes a daemon killed at any step', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let site: Site;
  let history: History;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('crash');
    history = await History.begin(space);
  });

  afterEach(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  function makeSite(play: Record<string, string> = {}): Site {
    site = kubernetesSite(
      plane,
      {
        settings: { sweeper: { keepFinished: 0, keepMissed: 0 } },
        queues: { Q: kubernetesQueue(space, { queue: limits }) },
      },
      { 'job.yaml': jobTemplate(play) },
    );
    return site;
  }

  async function crashAt(step: string, database: string): Promise<void> {
    const daemon = site.startCrashingAt(step);
    expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
    if (database === 'removed') site.removeDatabase();
  }

  /** Waits until all wanted workers run, and returns their ids in order. */
  async function allRun(): Promise<number[]> {
    return until('all wanted workers run and no intent is open', async () => {
      const workers = await site.workers();
      const running = workers.filter(({ status }) => status === 'running');
      const settled = workers.every(({ status }) => status !== 'pending');
      return running.length === wanted && settled && running.map(({ workerID }) => workerID).sort();
    });
  }

  const submitSteps = [
    ['before the row', 'submit:before-intent'],
    ['after the row', 'submit:after-intent'],
    ['before the outcome is written', 'submit:before-outcome'],
    ['after the outcome is written', 'submit:after-outcome'],
  ] as const;
  const submits = submitSteps.flatMap(([description, step]) =>
    ['kept', 'removed'].map((database) => ({ description, step, database })),
  );
  for (const { description, step, database } of ofGate(
    submits,
    (one) =>
      one.step === 'submit:before-outcome' || (one.step === 'submit:after-intent' && one.database === 'kept'),
  ))
    it(`makes no second Job and forgets none: submit, ${description}, the database ${database}`, async () => {
      makeSite();
      await crashAt(step, database);
      site.start();
      const ids = await allRun();
      // Each living row has its Job, and each Job its row.
      expect(await workersWithJobs(space)).to.deep.equal(ids);
      expect(await livingPods(space)).to.equal(wanted);
      expect(await history.twice()).to.deep.equal([]);
    });

  for (const database of ofGate(['kept', 'removed'], (one) => one === 'kept')) {
    it(`goes on with a kill, the database ${database}`, async () => {
      // The Pods take a while to end: the kill is under way when the daemon dies, and when the next one starts.
      makeSite({ terminating: '1500ms' });
      const daemon = site.startCrashingAt('kill:after-kill');
      const ids = await until('all run', async () => {
        const running = await site.workers({ status: 'running' }).catch(() => []);
        return running.length === wanted && running.map(({ workerID }) => String(workerID));
      });
      await site.run('pause', 'Q', '--reason', 'test');
      await site.run('kill', ...ids);
      expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
      if (database === 'removed') site.removeDatabase();
      site.writeQueues({ Q: kubernetesQueue(space, { queue: { ...limits, queueStatus: 'offline' } }) });
      site.start();
      await until('no Pod is left', async () => (await livingPods(space)) === 0);
      expect(await workersWithJobs(space)).to.deep.equal([]);
      if (database === 'kept') {
        await until('both are cancelled', async () =>
          (await site.workers()).every(({ status }) => status === 'cancelled'),
        );
      } else {
        // Of what was seen of them by their last Pods nothing may stay alive in the books.
        await until('no row is open', async () =>
          (await site.workers()).every(({ endTime }) => endTime !== null),
        );
      }
      expect(await history.twice()).to.deep.equal([]);
    });
  }

  // Marked as swept, there is nothing left of it that a database could be lost for.
  const databases = {
    'before-remove': ['kept', 'removed'],
    'after-remove': ['kept', 'removed'],
    'after-mark': ['kept'],
  };
  const sweeps = Object.entries(databases).flatMap(([step, each]) =>
    each.map((database) => ({ step, database })),
  );
  for (const { step, database } of ofGate(
    sweeps,
    (one) => one.step === 'after-remove' && one.database === 'kept',
  ))
    it(`goes on with a sweep: ${step}, the database ${database}`, async () => {
      makeSite({ run: '100ms' });
      await crashAt(`sweep:${step}`, database);
      site.writeQueues({ Q: kubernetesQueue(space, { queue: { ...limits, queueStatus: 'offline' } }) });
      site.start();
      // A fence may stay for a while.
      await until('neither Job nor Pod is left', async () => {
        const jobs = await workerJobs(space);
        return jobs.length === 0 && (await livingPods(space)) === 0;
      });
      await until('every row is ended', async () =>
        (await site.workers()).every(({ status }) => ['finished', 'missed'].includes(status)),
      );
      expect(await history.twice()).to.deep.equal([]);
    });
});
