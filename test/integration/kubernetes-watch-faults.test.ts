import { expect } from 'chai';
import { join } from 'node:path';
import type { Observation } from '../../src/worker/observation.ts';
import type { Reason } from '../../src/worker/reason.ts';
import { inFiles } from '../../src/daemon/source-memory.ts';
import { Cluster } from '../../src/plugins/kubernetes/cluster.ts';
import { K8sNamespace } from '../../src/plugins/kubernetes/namespace.ts';
import { K8sMonitor } from '../../src/plugins/kubernetes/monitor.ts';
import { K8sMonitorConfig } from '../../src/plugins/kubernetes/schema.ts';
import { check } from '../../src/util/schema.ts';
import { type Fault, FaultProxy } from '../support/fault-proxy.ts';
import { type ControlPlane, controlPlane, type Namespace, type Pod } from '../support/kubernetes.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { marksOf } from '../../src/plugins/kubernetes/marks.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

/** The pilots of these Pods end now. */
async function endAll(space: Namespace, exit = '0'): Promise<void> {
  for (const { metadata } of await space.client.list<Pod>(space.core('pods')))
    await space.client.patch(space.core('pods', metadata.name), {
      metadata: { annotations: { 'play/run': '1ms', 'play/exit': exit } },
    });
}

describe('on Kubernetes a watch that breaks', () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await controlPlane();
  });

  const faults: readonly [description: string, fault: Fault, lists: boolean][] = [
    ['is refused with 410 Gone', { kind: 'status', status: 410 }, true],
    ['reports 410 Gone as an ERROR event', { kind: 'error-event', code: 410 }, true],
    ['reports an internal error as an ERROR event', { kind: 'error-event', code: 500 }, false],
    ['is cut in the middle of a line', { kind: 'cut-line' }, false],
    ['is refused with 503', { kind: 'status', status: 503 }, false],
  ];
  it('shows every end all the same, and calls nobody missing', async () => {
    // Each fault has a proxy and so a cluster of its own; all of them are followed by one daemon.
    const parts = await Promise.all(
      faults.map(async ([description, fault, lists], number) => ({
        description,
        fault,
        lists,
        queue: `Q${number}`,
        proxy: await FaultProxy.inFrontOf(plane),
        space: await plane.namespace('watch'),
      })),
    );
    const site = kubernetesSite(plane, {
      settings: { monitor: { missingGrace: 0.2 } },
      queues: Object.fromEntries(
        parts.map(({ queue, space }) => [
          queue,
          kubernetesQueue(space, {
            kubeconfig: `${queue}.kubeconfig`,
            queue: { maxWorkers: 2, nQueueLimitWorker: 2 },
          }),
        ]),
      ),
    });
    for (const { queue, proxy } of parts)
      plane.writeKubeconfig(site.path(`${queue}.kubeconfig`), { server: proxy.url });
    try {
      const daemon = site.start();
      await until(
        'all run',
        async () => (await site.workers({ status: 'running' })).length === 2 * parts.length,
      );
      site.writeQueues(
        Object.fromEntries(
          parts.map(({ queue, space }) => [
            queue,
            kubernetesQueue(space, { kubeconfig: `${queue}.kubeconfig`, queue: { queueStatus: 'offline' } }),
          ]),
        ),
      );
      await until('nobody is replaced any more', () => daemon.output().includes('was read again'));
      const broken = await Promise.all(
        parts.map(async ({ queue, proxy, space, fault, lists, description }) => {
          // One object alone is asked for where only the version of the list counts.
          const isWhole = ({ url }: { url: string }) => !/[?&]limit=1(&|$)/.test(url);
          // Jobs and Pods have a watch each: whichever is opened again first must not meet both faults.
          const resources = ['jobs', 'pods'];
          const listings = () =>
            resources.map((resource) => proxy.count({ verb: 'list', resource, when: isWhole }));
          const before = listings();
          const injected = resources.map((resource) =>
            proxy.inject({ verb: 'watch', resource, times: 1, fault }),
          );
          const haveHit = () => injected.every(({ hits }) => hits === 1);
          proxy.cutAll();
          // A cut line needs an event: the ends themselves.
          if (fault.kind === 'cut-line') await until('it watches', haveHit);
          await endAll(space);
          await until(`the fault has hit: ${description}`, haveHit);
          await until(`the ends are seen: ${description}`, async () =>
            (await site.workers({ queue })).every(({ status }) => status === 'finished'),
          );
          const isListed = () => listings().map((count, at) => count > (before[at] ?? 0));
          // The ends are seen in either: the other one may be listed a moment later.
          if (lists) await until(`both are listed: ${description}`, () => isListed().every((one) => one));
          return { description, listed: isListed() };
        }),
      );
      const expected = parts.map(({ description, lists }) => ({ description, listed: [lists, lists] }));
      expect(broken).to.deep.equal(expected);
      expect((await site.workers()).length).to.equal(2 * parts.length);
    } finally {
      await site.clean();
      await Promise.all(parts.map(({ proxy }) => proxy[Symbol.asyncDispose]()));
      await Promise.all(parts.map(({ space }) => space[Symbol.asyncDispose]()));
    }
  });

  it('is noticed when it is half open: trouble is told, nobody is gone, and all is caught up', async () => {
    await using proxy = await FaultProxy.inFrontOf(plane);
    await using space = await plane.namespace('half-open');
    const directory = temporaryDirectory();
    const file = join(directory, 'kubeconfig');
    plane.writeKubeconfig(file, { server: proxy.url });
    const context = pluginContext({ factoryId: 'factory-a', configDir: directory });
    const host = { ...context, memoryOf: inFiles(context.stateDir) };
    const config = check(K8sMonitorConfig, { k8s_config_file: 'kubeconfig', k8s_namespace: space.name });
    if (!config.ok) throw new Error(JSON.stringify(config));
    const monitor = new K8sMonitor({
      namespace: new K8sNamespace(
        new Cluster({ name: 'half-open', config: config.value, configDir: directory }, host),
        space.name,
        context,
      ),
      context,
      silence: 1500,
      options: () => config.value,
    });
    const worker = workerOf(7, { name: 'factory-a-7', queue: 'Q' });
    const { labels, annotations } = marksOf(worker, 'factory-a');
    const template = jobTemplate() as { spec: { template: { metadata: object } } };
    Object.assign(template.spec.template.metadata, { labels });
    await space.client.create(space.jobs(), {
      ...template,
      metadata: { name: worker.name, labels, annotations },
    });

    const seen: Observation[] = [];
    const gone: number[] = [];
    const troubles: Reason[] = [];
    let completed = 0;
    const stop = new AbortController();
    const observing = monitor.observe(
      {
        begin: () => undefined,
        observe: (observation) => seen.push(observation),
        gone: (workerId) => gone.push(workerId),
        complete: () => completed++,
        trouble: (reason) => troubles.push(reason),
      },
      stop.signal,
    );
    try {
      await until('it runs', () => seen.at(-1)?.status === 'running' && completed > 0);
      // The next watches are taken on, and then nothing comes through them any more.
      const stalled = proxy.inject({ verb: 'watch', fault: { kind: 'stall', lines: 0 } });
      proxy.cutAll();
      await until('both watches hang', () => stalled.hits >= 2);
      await endAll(space, '3');
      await until('the silence is told', () =>
        troubles.some(({ message }) => message.includes('has been silent')),
      );
      // By the lists behind the silence. The Job's end may come before the Pod's, which has the status.
      await until('the end is seen', () => seen.at(-1)?.exitCode === 3);
      expect(gone).to.deep.equal([]);
      const before = completed;
      proxy.heal();
      expect(seen.at(-1)).to.include({ status: 'failed' });
      // So short a silence is also that of two good watches: something has to come through both at once.
      let touches = 0;
      await until('all is known again', async () => {
        const touched = { metadata: { annotations: { 'play/touched': String(++touches) } } };
        await space.client.patch(space.jobs(worker.name), touched);
        for (const { metadata } of await space.client.list<Pod>(space.core('pods')))
          await space.client.patch(space.core('pods', metadata.name), touched);
        return completed > before;
      });
      expect(gone).to.deep.equal([]);
    } finally {
      stop.abort();
      await observing;
    }
  });
});
