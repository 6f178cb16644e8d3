import { expect } from 'chai';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { Pacer } from '../../../src/clients/kubernetes/pacer.ts';
import { type Decision, lastWarnings, tell } from '../../../src/plugins/kubernetes/events.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import { ClusterPin } from '../../../src/plugins/kubernetes/cluster-pin.ts';
import { K8sNamespace } from '../../../src/plugins/kubernetes/namespace.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { kubeconfig, makeClient, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { KubernetesStub, marked } from '../../support/kubernetes-stub.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { charactersLookedAt } from '../../support/masked-characters.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { json, startScriptedServer, status } from '../../support/scripted-server.ts';
import { until } from '../../support/until.ts';

const { signal } = new AbortController();
const decision: Decision = { job: { name: 'factory-1', uid: 'a' }, reason: 'Killed', message: 'ended' };

function namespaceWith(client: KubernetesClient, clock: Clock): K8sNamespace {
  const pin = new ClusterPin('test', { stateDir: '/nonexistent', memoryOf: inFiles('/nonexistent') });
  return new K8sNamespace({ client, pin }, 'grid', { factoryId: 'factory', clock });
}

describe('the Events that thresher writes', () => {
  it('are no more than five a second after a burst of 25, and the rest is not written at all', () => {
    const clock = new ManualClock();
    const created: object[] = [];
    const client = { create: async (_path: string, event: object) => created.push(event) };
    const namespace = namespaceWith(client as unknown as KubernetesClient, clock);
    const context = pluginContext({ clock });
    const told = (count: number) => {
      created.length = 0;
      for (let turn = 0; turn < count; turn++) tell(namespace, context, decision, signal);
      return created.length;
    };
    return clock
      .advance(60_000)
      .then(() => {
        expect(told(1000)).to.equal(25);
        return clock.advance(2000);
      })
      .then(() => {
        expect(told(1000)).to.equal(10);
        expect(told(1000)).to.equal(0);
      });
  });

  it('show no login of ours that is in what the cluster said', async () => {
    const secret = 'opaque-7c3e0b9d2f5a4816';
    rememberSecret(secret);
    const created: object[] = [];
    const client = { create: async (_path: string, event: object) => created.push(event) };
    const clock = new ManualClock();
    const namespace = namespaceWith(client as unknown as KubernetesClient, clock);
    await clock.advance(60_000);
    const message = `${'x'.repeat(990)} FailedMount: Bearer ${secret}`;
    tell(namespace, pluginContext({ clock }), { ...decision, message }, signal);
    expect(JSON.stringify(created)).to.contain('FailedMount: ').and.not.contain(secret.slice(0, 4));
  });

  it('hole 8: are looked at as far as they are shown', async () => {
    rememberSecret('opaque-as-far-0123456789');
    const created: { readonly message: string }[] = [];
    const client = { create: async (_path: string, event: never) => created.push(event) };
    const clock = new ManualClock();
    const namespace = namespaceWith(client as unknown as KubernetesClient, clock);
    await clock.advance(60_000);
    const told = { ...decision, message: 'words '.repeat(100_000) };
    const work = () => {
      tell(namespace, pluginContext({ clock }), told, signal);
    };
    expect(await charactersLookedAt(work)).to.be.within(1, 5000);
    expect(created[0]?.message).to.have.length.within(900, 1024);
  });

  it('hole 3: show no piece of a secret of others that begins before their cut', async () => {
    const created: object[] = [];
    const words = `https://u:${'hunter7'.repeat(100)}@host/x`;
    const client = {
      create: async (_path: string, event: object) => created.push(event),
      list: async (_path: string, _: object, record: (object: object) => unknown) =>
        record({ involvedObject: { uid: 'a' }, reason: 'Failed', message: `${'x'.repeat(280)} ${words}` }),
    };
    const clock = new ManualClock();
    const namespace = namespaceWith(client as unknown as KubernetesClient, clock);
    await clock.advance(60_000);
    const message = `${'x'.repeat(1000)} ${words}`;
    tell(namespace, pluginContext({ clock }), { ...decision, message }, signal);
    expect(JSON.stringify(created)).to.contain('xxx').and.not.contain('hunter7');
    const warning = (await lastWarnings(namespace, ['a'], signal)).get('a');
    expect(warning).to.contain('Failed: xxx').and.not.contain('hunter7');
  });

  it('are few where two hundred workers are killed at once', async () => {
    const stub = await KubernetesStub.start();
    try {
      const sweeper = stub.plugin('sweeper', { requestsPerSecond: 10_000 });
      const workers = Array.from({ length: 200 }, (_, index) =>
        workerOf(index + 1, {
          handle: { batchID: `factory-${index + 1}`, uid: `uid-of-factory-${index + 1}` },
        }),
      );
      for (const { workerId, name } of workers)
        stub.jobs.set(name, { metadata: marked(workerId), status: {} });
      const begun = performance.now();
      const outcomes = await sweeper.kill(workers, signal);
      const seconds = (performance.now() - begun) / 1000;
      expect([...outcomes.values()].every(({ kind }) => kind === 'gone')).to.equal(true);
      expect(stub.count('create', 'events')).to.be.at.most(25 + 5 * (seconds + 1));
      expect(stub.count('delete', 'jobs')).to.equal(200);
    } finally {
      await stub.stop();
    }
  });

  it('pause nobody where the server has no patience for them', async () => {
    const server = await startScriptedServer();
    const clock = new ManualClock();
    const pacer = new Pacer({ perSecond: 1000, burst: 1000 }, clock, () => 0);
    const client = makeClient(writeKubeconfig(kubeconfig({ server: server.url })), { pacer, clock });
    try {
      server.always((response, seen) => {
        const busy = status(429, 'TooManyRequests', 'busy', {}, { 'retry-after': '300' });
        (seen.method === 'POST' ? busy : json(200, { metadata: {} }))(response, seen);
      });
      await clock.advance(1000);
      const namespace = namespaceWith(client, clock);
      await clock.advance(1000);
      tell(namespace, pluginContext({ clock }), decision, signal);
      await until('it was asked', () => server.requests.length > 0);
      await client.get('/api/v1/namespaces/grid/pods/a', { signal });
      expect(pacer.pausedFor).to.equal(0);
      expect(server.requests.map(({ method }) => method)).to.deep.equal(['POST', 'GET']);
    } finally {
      await client.close();
      await server.stop();
    }
  });
});

describe('the last warnings of a cluster', () => {
  it('hole 8: are looked at as far as they are shown, and are cut', async () => {
    const secret = 'opaque-last-warning-012345';
    rememberSecret(secret);
    const long = `Bearer ${secret} ${'words '.repeat(20_000)}`;
    const items = Array.from({ length: 20 }, (_, at) => ({
      involvedObject: { uid: `u${at}` },
      reason: at === 0 ? `Odd ${long}` : 'FailedMount',
      message: long,
      lastTimestamp: '2026-01-01T00:00:00Z',
    }));
    const list = async (_path: string, _options: object, record: (object: object) => unknown) => {
      for (const item of items) record(item);
    };
    const namespace = namespaceWith({ list } as unknown as KubernetesClient, new ManualClock());
    let found: ReadonlyMap<string, string> = new Map();
    const uids = items.map(({ involvedObject }) => involvedObject.uid);
    const looked = await charactersLookedAt(
      async () => (found = await lastWarnings(namespace, uids, signal)),
    );
    expect(looked).to.be.within(1, 20 * 3000);
    expect(found.size).to.equal(20);
    for (const text of found.values())
      expect(text).to.have.length.at.most(450).and.contain('(hidden)').and.not.contain(secret.slice(0, 8));
    expect(found.get('u1')).to.match(/^FailedMount: .*\(hidden\) words/);
  });
});
