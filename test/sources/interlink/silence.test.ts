import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PodService } from '../../../src/sources/interlink/pod-service.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { makeSidecarApp } from '../../../src/sources/interlink/server/app.ts';
import { Silence } from '../../../src/sources/interlink/silence.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { podOf } from '../../support/interlink-client.ts';
import { quiet, SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { headOf, RawConnection } from '../../support/raw-http.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const minute = 60_000;
const hour = 60 * minute;

describe('a Pod that interLink asks for no more', () => {
  const containers = [{ name: 'main', image: 'x' }];
  const podOf = (isAnswered: boolean) => {
    const identity = { uid: 'u', name: 'pod', namespace: 'default' };
    const pod = new TrackedPod({ version: 1, ...identity, containers, initContainers: [], acceptedAt: 0 });
    pod.isAnswered = isAnswered;
    return pod;
  };

  /** Minutes until the Pod is forgotten, of 48 hours. */
  function forgottenAfter(
    pod: TrackedPod,
    each: (minute: number, silence: Silence) => void = (at, silence) => {
      silence.heardPing(at * minute);
    },
  ): number | undefined {
    const silence = new Silence(24 * hour);
    for (let at = 0; at <= 48 * 60; at++) {
      each(at, silence);
      if (silence.forgotten([pod], at * minute).length > 0) return at;
    }
    return undefined;
  }

  it('is forgotten after 10 minutes if its /create got no answer, and after a day otherwise', () => {
    expect(forgottenAfter(podOf(false))).to.equal(11);
    expect(forgottenAfter(podOf(true))).to.equal(24 * 60 + 1);
  });

  it('is never forgotten while no pings come, for interLink is away', () => {
    expect(forgottenAfter(podOf(false), () => undefined)).to.equal(undefined);
  });

  it('is never forgotten while it is asked for, while /create waits, or after its end', () => {
    const asked = podOf(true);
    const ask = (at: number, silence: Silence) => {
      silence.heardPing(at * minute);
      asked.silentFor = 0;
    };
    expect(forgottenAfter(asked, ask)).to.equal(undefined);
    const waiting = podOf(false);
    waiting.waitingRequests = 1;
    expect(forgottenAfter(waiting)).to.equal(undefined);
    const none = { workerId: null, native: null, exitCode: 1, message: null, batchId: null };
    const ended = podOf(true);
    ended.take({ ...none, status: 'failed', startTime: null, endTime: null });
    expect(forgottenAfter(ended)).to.equal(undefined);
  });

  it('is not forgotten by a daemon that stood still for days, with the questions of that time still to be read', () => {
    const silence = new Silence(24 * hour);
    const pod = podOf(true);
    silence.heardPing(0);
    expect(silence.forgotten([pod], 0)).to.deep.equal([]);
    silence.heardPing(72 * hour);
    pod.silentFor = 0;
    expect(silence.forgotten([pod], 72 * hour)).to.deep.equal([]);
    expect(pod.silentFor).to.be.at.most(minute);
  });

  it('is not counted as silent by the pings of a monitoring probe: only those with a session are of interLink', async () => {
    let pings = 0;
    const heardPing = () => {
      pings++;
    };
    const service = { trouble: undefined, heardPing } as Partial<PodService> as PodService;
    const backend = {
      ping: () => ({ status: 'healthy' }),
      state: () => ({ trouble: undefined, totals: undefined, isHtcondor: true }),
    };
    const app = makeSidecarApp({ service, clock: systemClock, log: quiet, backend, version: 'test' });
    const fixture = join(import.meta.dirname, '../../fixtures/interlink/GET-status-ping.json');
    const { headers } = JSON.parse(readFileSync(fixture, 'utf8')) as { headers: Record<string, string> };
    const { 'Interlink-Http-Session': session = '', ...plain } = headers;
    const ping = async (of: Record<string, string>) =>
      (await app.inject({ method: 'GET', url: '/status', headers: of, payload: '[]' })).statusCode;
    expect(await ping(plain)).to.equal(200);
    expect(pings).to.equal(0);
    expect(await ping({ ...plain, 'InterLink-Http-Session': session })).to.equal(200);
    expect(pings).to.equal(1);
    await app.close();
  });
});

describe('a question of interLink that is refused', () => {
  const nearlyForgotten = 3_590_000;
  let sidecar: SidecarUnderTest;
  let app: Awaited<ReturnType<SidecarUnderTest['start']>>;
  let uid: string;

  const ask = async (
    method: 'GET' | 'POST',
    url: string,
    body: string,
    more: Record<string, string> = {},
  ) => {
    const headers = { 'content-type': 'application/json', 'interlink-http-session': 's', ...more };
    return app.inject({ method, url, headers, payload: body });
  };
  const silentFor = () => sidecar.book.get(uid)?.silentFor ?? NaN;
  const forget = () => {
    const pod = sidecar.book.get(uid);
    if (pod !== undefined) pod.silentFor = nearlyForgotten;
  };
  const info = async () => {
    const { payload } = await ask('GET', '/system-info', '{}');
    return JSON.parse(payload) as { status: string; backend_connected: boolean; message?: string };
  };

  beforeEach(async () => {
    sidecar = new SidecarUnderTest(join(temporaryDirectory(), 'root'));
    app = await sidecar.start();
    uid = randomUUID();
    const pod = podOf('pod', uid, 'true');
    const { statusCode } = await ask(
      'POST',
      '/create',
      JSON.stringify({ pod, container: null, jobConfig: {} }),
    );
    expect(statusCode).to.equal(200);
    await sidecar.tell(uid, { status: 'running', startTime: 0 });
    forget();
  });
  afterEach(() => sidecar.stop());

  const many = (count: number, one: (index: number) => unknown) =>
    JSON.stringify(Array.from({ length: count }, (_, index) => one(index)));
  const refused: readonly (readonly [string, number, () => [string, Record<string, string>?]])[] = [
    ['a body that is too long', 413, () => ['[]', { 'content-length': String(300 * 1024 * 1024) }]],
    [
      'a Pod that is too long',
      413,
      () => [many(1, () => ({ metadata: { labels: 'x'.repeat(17_000_000) } }))],
    ],
    ['too many values', 413, () => [many(250_001, (at) => at)]],
    ['lists within lists', 400, () => ['['.repeat(1000)]],
    ['no JSON', 400, () => ['[{]']],
    ['no list', 400, () => ['{"metadata":{}}']],
    ['a Pod that has a wrong form', 400, () => [many(2, () => ({ metadata: { uid: 1 } }))]],
  ];
  for (const [what, status, bodyOf] of refused)
    it(`counts as one for each Pod, since it may have been for any: ${what}`, async () => {
      const answer = await ask('GET', '/status', ...bodyOf());
      expect([answer.statusCode, silentFor()], answer.payload.slice(0, 200)).to.satisfy(
        ([of, silent]: number[]) => of === status && (silent ?? NaN) < 1000,
      );
    });

  it('for too many Pods counts for those that it names', async () => {
    const metadata = { name: 'pod', namespace: 'default' };
    const named = (first: string) =>
      many(10_001, (at) => ({ metadata: { ...metadata, uid: at === 10_000 ? first : randomUUID() } }));
    expect((await ask('GET', '/status', named(uid))).statusCode).to.equal(413);
    expect(silentFor()).to.be.lessThan(1000);
  });

  it('counts also where it broke off before its body had come', async () => {
    await app.listen({ host: '127.0.0.1', port: 0 });
    const connection = await RawConnection.to({ port: (app.server.address() as AddressInfo).port });
    connection.send(`${headOf('GET', '/status', { Host: 'unix', 'Content-Length': '1000' })}[{"metadata":`);
    connection.finish();
    connection.close();
    await until('it counts', () => silentFor() < 1000);
  });

  it('counts also where its connection was closed because too many are open', async () => {
    await app.listen({ host: '127.0.0.1', port: 0 });
    app.server.maxConnections = 1;
    const { port } = app.server.address() as AddressInfo;
    const first = await RawConnection.to({ port });
    await until(
      'one is open',
      () =>
        new Promise<boolean>((resolve) => {
          app.server.getConnections((_error, count) => {
            resolve(count === 1);
          });
        }),
    );
    const second = await RawConnection.to({ port });
    await until('it counts', () => silentFor() < 1000);
    for (const one of [first, second]) one.close();
  });

  it('counts for no Pod where it was none of interLink: a ping, one of a web page, and another path', async () => {
    sidecar.reasons = [{ code: 'no-such-queue', message: 'there is no queue' }];
    expect((await ask('GET', '/status', '[]')).statusCode).to.equal(503);
    await ask(
      'GET',
      '/status',
      many(1, () => ({ metadata: {} })),
      { origin: 'http://x' },
    );
    await ask('GET', '/statuses', '{');
    await ask('POST', '/delete', '{');
    expect(silentFor()).to.be.at.least(nearlyForgotten);
    expect((await info()).message).to.equal('there is no queue');
  });

  it('is told to the operator while it lasts, once in the log, and costs the node nothing', async () => {
    expect(await info()).to.include({ status: 'ok' });
    for (let time = 0; time < 3; time++) await ask('GET', '/status', '[{]');
    const told = sidecar.logged.filter(({ code }) => code === 'interlink-unread');
    expect(told).to.deep.equal([{ code: 'interlink-unread', reason: 'the body is no JSON' }]);
    await sidecar.pass();
    expect(sidecar.wantedFor.map(({ code }) => code)).to.deep.equal(['interlink-unread']);
    expect(await info()).to.include({ status: 'warning', backend_connected: true });
    expect((await info()).message).to.include(
      'interLink asks for Pods and gets no answer: the body is no JSON',
    );
    expect((await ask('GET', '/status', '[]')).statusCode, 'a ping').to.equal(200);
  });
});
