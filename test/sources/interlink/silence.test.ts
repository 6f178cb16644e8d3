import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PodService } from '../../../src/sources/interlink/pod-service.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { makeSidecarApp } from '../../../src/sources/interlink/server/app.ts';
import { Silence } from '../../../src/sources/interlink/silence.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { quiet } from '../../support/interlink-sidecar.ts';

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
