import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PodStatus } from '../../../src/clients/interlink/wire.ts';
import { UnknownPods } from '../../../src/sources/interlink/status/pod-statuses.ts';
import { podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const minute = 60_000;

describe('a Pod that interLink asks for before its /create', () => {
  it('may come for a quarter of an hour after it was asked for first', () => {
    const unknown = new UnknownPods();
    for (const at of [7, 14]) expect(unknown.mayCome('a', at * minute)).to.equal(true);
    expect(unknown.mayCome('b', 20 * minute)).to.equal(true);
    expect(unknown.mayCome('a', 22 * minute)).to.equal(false);
    expect(unknown.mayCome('b', 22 * minute)).to.equal(true);
  });

  it('is forgotten when its /create has come', async () => {
    const sidecar = new SidecarUnderTest(join(temporaryDirectory(), 'root'));
    const app = await sidecar.start();
    const pod = podOf('pod', randomUUID(), 'true');
    const ask = async (url: string, body: unknown) =>
      (await app.inject({ method: 'POST', url, payload: JSON.stringify(body) })).payload;
    const state = async () =>
      (JSON.parse(await ask('/status', [pod])) as PodStatus[])[0]?.containers[0]?.state;
    const now = performance.now.bind(performance);
    try {
      expect(await state()).to.have.property('waiting');
      await ask('/create', { pod, container: null, jobConfig: {} });
      await ask('/delete', pod);
      await until('nothing is left of it', () => sidecar.book.get(pod.metadata.uid) === undefined);
      performance.now = () => now() + 20 * minute;
      expect(await state()).to.have.property('waiting');
    } finally {
      performance.now = now;
      await sidecar.stop();
    }
  });

  it('hole 8: with more containers than any Pod has gets no answer, and keeps no other from one', async () => {
    const sidecar = new SidecarUnderTest(join(temporaryDirectory(), 'root'));
    const app = await sidecar.start();
    const pods = ['large', 'small'].map((name) => podOf(name, randomUUID(), 'true'));
    const containers = Array.from({ length: 1001 }, (_, at) => ({ name: `c${at}`, image: 'a' }));
    const [large, small] = pods.map((pod, at) =>
      at === 0 ? { ...pod, spec: { ...pod.spec, containers } } : pod,
    );
    const ask = (url: string, body: unknown) =>
      app.inject({ method: 'POST', url, payload: JSON.stringify(body) });
    try {
      const both = JSON.parse((await ask('/status', [large, small])).payload) as PodStatus[];
      expect(both.map(({ name }) => name)).to.deep.equal(['small']);
      const alone = await ask('/status', [large]);
      expect([alone.statusCode, alone.payload]).to.match(/^413,.*lists more than 1000 containers/);
      expect((await ask('/delete', large)).statusCode).to.equal(200);
    } finally {
      await sidecar.stop();
    }
  });

  it('takes no more memory than 10,000 Pods need', () => {
    const unknown = new UnknownPods();
    for (let index = 0; index <= 10_000; index++) unknown.mayCome(`${index}`, 0);
    expect(unknown.mayCome('10000', 60 * minute), 'kept').to.equal(false);
    expect(unknown.mayCome('0', 60 * minute), 'the oldest is forgotten').to.equal(true);
  });
});
