import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { FaultProxy } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Namespace, type Pod } from '../support/kubernetes.ts';
import { History, workerJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { until } from '../support/until.ts';

const two = { maxWorkers: 2, nQueueLimitWorker: 2 };

describe('on Kubernetes one daemon', () => {
  let plane: ControlPlane;
  let space: Namespace;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('isolation');
  });

  afterEach(async () => {
    await space[Symbol.asyncDispose]();
  });

  it('keeps the pace of a queue while one cluster refuses connections and another hangs', async () => {
    await using hanging = await FaultProxy.inFrontOf(plane);
    hanging.inject({ fault: { kind: 'stall' } });
    const site = kubernetesSite(
      plane,
      {
        // A queue that waited for a call which hangs would not come to its end here.
        settings: { master: { pluginTimeout: 600 } },
        queues: {
          CLOSED: kubernetesQueue(space, { kubeconfig: 'closed.kubeconfig', queue: two }),
          HANGS: kubernetesQueue(space, { kubeconfig: 'hangs.kubeconfig', queue: two }),
          FINE: kubernetesQueue(space, { queue: two }),
        },
      },
      { 'job.yaml': jobTemplate({ run: '50ms' }) },
    );
    // Nothing listens on port 1.
    plane.writeKubeconfig(site.path('closed.kubeconfig'), { server: 'https://127.0.0.1:1' });
    plane.writeKubeconfig(site.path('hangs.kubeconfig'), { server: hanging.url });
    try {
      const daemon = site.start();
      // Each end is seen and replaced: three workers one after the other in each of two places, while one call of the other queue hangs.
      await until('six have ended during one call', async () => {
        const ended = await site.workers({ queue: 'FINE', status: 'finished' });
        const ends = ended.map(({ endTime }) => Date.parse(endTime ?? '') - performance.timeOrigin);
        return hanging.requests.some(
          ({ at, endedAt = Infinity }) => ends.filter((end) => end > at && end < endedAt).length >= 6,
        );
      });
      const reasons = async (queue: string) => {
        const [first] = (await site.queue(queue)).reasons;
        return `${first?.code ?? ''}: ${first?.message ?? ''}`;
      };
      expect(await reasons('CLOSED')).to.match(
        /^(not-listed|status-unknown): .*127\.0\.0\.1:1 refuses connections/,
      );
      expect(await reasons('HANGS')).to.match(/^(not-listed|status-unknown): /);
      for (const queue of ['CLOSED', 'HANGS']) expect(await site.workers({ queue })).to.deep.equal([]);
      expect(hanging.requests.length, daemon.output()).to.be.within(1, 60);
    } finally {
      await site.clean();
    }
  });

  it('ends within its time on SIGTERM while the API server hangs, and loses nothing', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    const history = await History.begin(space);
    const site = kubernetesSite(
      plane,
      {
        settings: { master: { shutdownTimeout: 1, pluginTimeout: 600 }, monitor: { missingGrace: 0.2 } },
        queues: { Q: kubernetesQueue(space, { queue: two }) },
      },
      undefined,
      { server: proxy.url },
    );
    try {
      const first = site.start();
      // One Job is made; the creation of the other, and all that is asked after that, never gets an answer.
      const creation = { verb: 'create', resource: 'jobs' } as const;
      const held = proxy.inject({ ...creation, skip: 1, fault: { kind: 'stall' } });
      await until('a creation hangs', () => held.hits === 1);
      proxy.inject({ fault: { kind: 'stall' } });
      await until('one Job is there', async () => (await workerJobs(space)).length === 1);
      first.process.kill('SIGTERM');
      // Calls hang for minutes: by force it would end by SIGKILL.
      expect(await first.ended, first.output()).to.equal(0);
      expect(await site.workers()).to.have.length(2);

      proxy.heal();
      site.start();
      await until('both run', async () => (await site.workers({ status: 'running' })).length === 2);
      expect(await site.workers(), 'the same two').to.have.length(2);
      expect(await history.twice()).to.deep.equal([]);
    } finally {
      await site.clean();
    }
  });

  it('never exceeds its limits, through random kills', async () => {
    const limits = { A: 3, B: 2 };
    const history = await History.begin(space);
    const site = kubernetesSite(
      plane,
      {
        settings: { submitter: { sleepTime: 0.05 } },
        queues: Object.fromEntries(
          Object.entries(limits).map(([name, limit]) => [
            name,
            kubernetesQueue(space, { queue: { maxWorkers: limit, nQueueLimitWorker: limit } }),
          ]),
        ),
      },
      // Short pilots: ends and starts all the time, so that every kill hits the daemon at work.
      { 'job.yaml': jobTemplate({ run: '200ms' }) },
    );
    const most = new Map<string, number>();
    const watching = new AbortController();
    const watch = (async () => {
      while (!watching.signal.aborted) {
        // Jobs before Pods: what was there then and lives now lived all the time between. A Job whose Pod is over needs a
        // moment to say so itself, and takes no place meanwhile.
        const jobs = await workerJobs(space);
        const pods = await space.client.list<Pod>(space.core('pods'));
        const over = pods.filter(({ status }) => ['Succeeded', 'Failed'].includes(status.phase));
        const ended = new Set(over.map(({ metadata }) => metadata.labels?.['thresher/worker-id']));
        const living = jobs.filter(({ metadata }) => !ended.has(metadata.labels?.['thresher/worker-id']));
        const counts = Map.groupBy(living, ({ metadata }) => metadata.labels?.['thresher/queue'] ?? '');
        for (const [queue, { length }] of counts) most.set(queue, Math.max(most.get(queue) ?? 0, length));
        await sleep(20);
      }
    })();
    try {
      // The moments are random, and the same for the same seed; counted from when it is at work.
      const moments = fc.sample(fc.integer({ min: 0, max: 2000 }), { numRuns: 5, seed: 20261121 });
      for (const moment of moments) {
        const daemon = site.start();
        await until('it is at work', () => daemon.output().includes('started'));
        await sleep(moment);
        daemon.process.kill('SIGKILL');
        await daemon.ended;
      }
      site.start();
      const before = await until('it can be asked', async () => (await site.workers()).length);
      await until('it goes on after all of this', async () => (await site.workers()).length > before + 5);
      // On a slow machine a look may come between two short pilots.
      await until('Jobs of both queues were seen', () => Object.keys(limits).every((name) => most.has(name)));
    } finally {
      watching.abort();
      await watch;
      await site.clean();
    }
    expect(most.get('A')).to.be.within(1, limits.A);
    expect(most.get('B')).to.be.within(1, limits.B);
    expect(await history.twice()).to.deep.equal([]);
  });
});
