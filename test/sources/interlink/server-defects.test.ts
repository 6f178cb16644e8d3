import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { ContainerState, PodStatus } from '../../../src/clients/interlink/wire.ts';
import { InterlinkOptions } from '../../../src/sources/interlink/options.ts';
import type { Planner } from '../../../src/sources/interlink/planner.ts';
import { isLoopback } from '../../../src/sources/interlink/server/listen.ts';
import { check } from '../../../src/util/schema.ts';
import { podOf } from '../../support/interlink-client.ts';
import { plainPlanner, SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { type KubeletPod, VirtualKubelet } from '../../support/virtual-kubelet.ts';

/** By the numbers of the list of defects of interLink's HTCondor plugin; those of a Pod as a job are tested in `pod/`. */
describe('the server of the sidecar has none of the known defects of a plugin', () => {
  let top: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  const begun: SidecarUnderTest[] = [];

  async function start(planner: Planner = plainPlanner): Promise<void> {
    const jobs = begun.at(-1)?.jobs ?? [];
    sidecar = new SidecarUnderTest(join(top, 'root'), planner);
    for (const [uid, job] of jobs) sidecar.jobs.set(uid, job);
    begun.push(sidecar);
    app = await sidecar.start();
  }

  beforeEach(async () => {
    top = temporaryDirectory();
    await start();
  });
  afterEach(async () => {
    for (const one of begun.splice(0)) await one.stop();
  });

  const ask = async (method: 'GET' | 'POST', url: string, body: unknown) => {
    const headers = { 'content-type': 'application/json' };
    const { statusCode, payload } = await app.inject({ method, url, headers, payload: JSON.stringify(body) });
    return { status: statusCode, text: payload };
  };
  const kubelet = new VirtualKubelet((method, path, body) => ask(method, path, body));
  const create = (pod: unknown) => ask('POST', '/create', { pod, container: null, jobConfig: {} });
  const statusOf = async (pod: unknown) =>
    (JSON.parse((await ask('GET', '/status', [pod])).text) as PodStatus[])[0];
  const states = async (pod: unknown): Promise<readonly ContainerState[]> => {
    const status = await statusOf(pod);
    return [...(status?.initContainers ?? []), ...(status?.containers ?? [])].map(({ state }) => state);
  };
  const files = () => readdirSync(top, { recursive: true }).map(String).sort();
  /** A Pod with these containers. */
  function many(names: readonly string[], inits: readonly string[] = []): KubeletPod {
    const { metadata } = podOf('many', randomUUID(), 'true');
    const container = (name: string) => ({ name, image: 'busybox', command: ['true'] });
    return { metadata, spec: { containers: names.map(container), initContainers: inits.map(container) } };
  }
  function leave(uid: string, containers: Record<string, object>): void {
    const directory = join(top, 'root/output', uid);
    mkdirSync(directory, { recursive: true });
    const usual = { init: false, state: 'terminated', ready: false, restarts: 0 };
    const all = Object.entries(containers).map(([name, one]) => [name, { ...usual, ...one }] as const);
    writeFileSync(
      join(directory, 'pod-status.json'),
      JSON.stringify({ version: 1, containers: Object.fromEntries(all) }),
    );
  }

  it('defect 1: only this machine reaches the server by default, and a fault shows neither code nor a console', async () => {
    const options = check(InterlinkOptions, {});
    expect(options.ok && isLoopback(options.value.host)).to.equal(true);
    await start(() => {
      throw new Error('a fault\n    at secret (/srv/thresher/plan.ts:1:1)');
    });
    const failed = await create(podOf('fault', randomUUID(), 'true'));
    expect(failed.status).to.equal(500);
    expect(failed.text)
      .to.match(/^thresher failed to answer: a fault/)
      .and.match(/^[^\n]*$/);
    expect(failed.text).not.to.match(/node:internal|answers\.ts/);
    for (const path of ['/console', '/?__debugger__=yes&cmd=1', '/debug/pprof', '/json'])
      expect((await ask('GET', path, {})).status, path).to.equal(404);
    expect((await ask('GET', '/status', [])).status, 'it goes on').to.equal(200);
  });

  it('defect 3: /create, /status and /delete check the names, and a missing UID is a sentence', async () => {
    const named = podOf('pod', randomUUID(), 'true');
    const bad = [
      { ...named, metadata: { ...named.metadata, uid: '../../x' } },
      { ...named, metadata: { ...named.metadata, name: '../x' } },
      { ...named, metadata: { ...named.metadata, uid: undefined } },
    ];
    for (const pod of bad)
      for (const answer of [
        await create(pod),
        await ask('GET', '/status', [pod]),
        await ask('POST', '/delete', pod),
      ]) {
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.text).to.match(/^the (uid|name) ".*" is no (uid|name)|^the Pod has no uid$/);
      }
    expect(files()).to.deep.equal(['root', 'root/output', 'root/pods']);
  });

  it('defect 4: no other user reads the files of a Pod, whatever the umask, and /delete leaves none', async () => {
    const umask = process.umask(0);
    try {
      top = temporaryDirectory();
      await start();
      const pod = podOf('private', randomUUID(), 'true');
      expect((await create(pod)).status).to.equal(200);
      for (const name of files().filter((file) => file.includes('/')))
        expect(statSync(join(top, name)).mode & 0o077, name).to.equal(0);
      expect(files()).to.include(`root/pods/${pod.metadata.uid}.json`);
      writeFileSync(join(top, 'root/output', pod.metadata.uid, 'main.log'), 'a secret');
      expect((await ask('POST', '/delete', pod)).status).to.equal(200);
      await until('nothing is left', () => files().join() === 'root,root/output,root/pods');
    } finally {
      process.umask(umask);
    }
  });

  it('defect 10: a Pod whose job left no file at all ends, and not well', async () => {
    const tracked = await kubelet.create(many(['main', 'side'], ['first']));
    const { uid } = tracked.pod.metadata;
    await sidecar.tell(uid, { status: 'running', startTime: 1000 });
    await sidecar.tell(uid, { status: 'finished', exitCode: 0, endTime: Date.now() });
    await until('the virtual kubelet knows the end', async () => {
      await kubelet.look([tracked]);
      return tracked.isOver;
    });
    expect(tracked.phase).to.equal('Failed');
  });

  it('defect 11: a job that was removed, killed or lost is no success', async () => {
    for (const status of ['cancelled', 'missed', 'failed', 'finished'] as const) {
      const tracked = await kubelet.create(many(['main']));
      const { uid } = tracked.pod.metadata;
      await sidecar.tell(uid, { status, exitCode: null, endTime: 2000 });
      const [state] = await states(tracked.pod);
      expect(state?.terminated?.exitCode, status).to.equal(137);
      expect(state?.terminated?.finishedAt, 'in UTC').to.equal('1970-01-01T00:00:02Z');
      await kubelet.look([tracked]);
      expect(tracked.phase, status).to.equal('Failed');
    }
  });

  it('defect 11: each container has a state and a code of its own, init containers too', async () => {
    const { pod } = await kubelet.create(many(['good', 'bad'], ['first']));
    const { uid } = pod.metadata;
    leave(uid, { first: { init: true, exitCode: 0 }, good: { exitCode: 0 }, bad: { exitCode: 3 } });
    await sidecar.tell(uid, { status: 'failed', exitCode: 3, startTime: 1000, endTime: 2000 });
    expect((await states(pod)).map(({ terminated }) => terminated?.exitCode)).to.deep.equal([0, 0, 3]);
  });

  it('defect 11: a probe that has not succeeded is told, a held job says why, and an unknown Pod has a state', async () => {
    const { pod } = await kubelet.create(many(['main']));
    const { uid } = pod.metadata;
    await sidecar.tell(uid, { status: 'idle', nativeStatus: 'held', diagMessage: 'no such file' });
    expect(await states(pod)).to.deep.equal([{ waiting: { reason: 'JobHeld', message: 'no such file' } }]);
    await sidecar.tell(uid, { status: 'running', startTime: 1000 });
    leave(uid, { main: { state: 'running', ready: false } });
    await until('it waits for its probe', async () => {
      const [state] = await states(pod);
      return state?.waiting?.reason === 'Waiting for probes to be ready.';
    });
    const lost = many(['main']);
    lost.metadata.annotations = { JobID: '1.0' };
    expect((await states(lost))[0]?.terminated?.exitCode).to.equal(137);
  });

  it('defect 14: a thousand statuses come from memory: they ask the factory for nothing', async () => {
    const { pod } = await kubelet.create(many(['main']));
    await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 1000 });
    const before = sidecar.finds;
    const unknown = many(['main']);
    for (let count = 0; count < 500; count++) {
      expect((await statusOf(pod))?.containers).to.have.length(1);
      expect((await statusOf(unknown))?.containers).to.have.length(1);
    }
    expect(sidecar.finds).to.equal(before);
  });

  it('defect 15: one Pod is one job, also after a restart, and its UID does not stay in memory', async () => {
    const pod = many(['main']);
    const [one, other] = await Promise.all([create(pod), create(pod)]);
    expect(one).to.deep.equal(other);
    await begun.at(-1)?.stop();
    await start();
    expect(await create(pod)).to.deep.equal(one);
    expect(sidecar.jobs.size).to.equal(1);
    expect((await ask('POST', '/delete', many(['main']))).status, 'an unknown Pod').to.equal(200);
    expect((await ask('POST', '/delete', pod)).status).to.equal(200);
    await until('it is forgotten', () => sidecar.book.all.length === 0);
    expect(sidecar.jobs.get(pod.metadata.uid)?.status).to.equal('cancelled');
  });
});
