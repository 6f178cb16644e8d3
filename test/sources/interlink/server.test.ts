import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { PodStatus } from '../../../src/clients/interlink/wire.ts';
import { podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the server of the sidecar for interLink', () => {
  let top: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;

  beforeEach(async () => {
    top = temporaryDirectory();
    sidecar = new SidecarUnderTest(join(top, 'root'));
    app = await sidecar.start();
  });
  afterEach(() => sidecar.stop());

  const ask = (method: 'GET' | 'POST', url: string, body: unknown, headers: Record<string, string> = {}) =>
    app.inject({
      method,
      url,
      headers: { 'content-type': 'application/json', ...headers },
      payload: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const create = (pod: unknown) => ask('POST', '/create', { pod, container: null, jobConfig: {} });
  const statusOf = async (pod: unknown) =>
    (JSON.parse((await ask('GET', '/status', [pod])).payload) as PodStatus[])[0];
  const files = () => readdirSync(join(top, 'root'), { recursive: true }).map(String).sort();

  it('A2: a hundred Pods at once, each asked for three times, get one job each, and statuses one by one', async () => {
    const pods = Array.from({ length: 100 }, (_, index) => podOf(`pod-${index}`, randomUUID(), 'true'));
    const answers = await Promise.all([...pods, ...pods, ...pods].map((pod) => create(pod)));
    expect(answers.map(({ statusCode }) => statusCode)).to.deep.equal(answers.map(() => 200));
    expect(new Set(answers.map(({ payload }) => payload)).size).to.equal(100);
    expect(sidecar.jobs.size).to.equal(100);
    for (const pod of pods) {
      await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 0 });
      const status = await statusOf(pod);
      expect(status).to.include({ UID: pod.metadata.uid, name: pod.metadata.name, namespace: 'default' });
      expect(status?.containers[0]?.state.running).to.deep.equal({ startedAt: '1970-01-01T00:00:00Z' });
    }
  });

  it('two Pods of one name are two Pods, and the deletion of one leaves the other', async () => {
    const [one, other] = [podOf('same', randomUUID(), 'true'), podOf('same', randomUUID(), 'true')];
    expect((await create(one)).payload).not.to.equal((await create(other)).payload);
    expect((await ask('POST', '/delete', one)).statusCode).to.equal(200);
    await until('the first is gone', () => !files().includes(`pods/${one.metadata.uid}.json`));
    expect(files()).to.include(`pods/${other.metadata.uid}.json`);
    expect(sidecar.jobs.get(other.metadata.uid)?.status).to.equal('submitted');
  });

  it('A3: a job that is not submitted in time is an error with its reason, and nothing of the Pod is left', async () => {
    await sidecar.stop();
    sidecar = new SidecarUnderTest(join(top, 'root'), undefined, 50);
    sidecar.submits = false;
    app = await sidecar.start();
    sidecar.reasons = [{ code: 'status-unknown', message: 'the schedd does not answer' }];
    const pod = podOf('late', randomUUID(), 'true');
    const answer = await create(pod);
    expect(answer.statusCode).to.equal(500);
    expect(answer.payload).to.equal('the job was not submitted within 0.05 s: the schedd does not answer');
    expect(answer.headers['content-type']).to.match(/^text\/plain/);
    await until('nothing is left of it', () => files().join() === 'output,pods');
    expect(sidecar.jobs.get(pod.metadata.uid)?.status).to.equal('withdrawn');
    expect((await ask('GET', '/status', [])).statusCode, 'the ping (A10)').to.equal(503);
  });

  it('hole 8: a caller that goes while its Pod is being written down takes nothing with it', async () => {
    await sidecar.stop();
    sidecar = new SidecarUnderTest(join(top, 'root'), undefined, 50);
    sidecar.submits = false;
    app = await sidecar.start();
    const { files: podFiles } = sidecar.book;
    const add = podFiles.add.bind(podFiles);
    const [begun, mayGoOn] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    podFiles.add = async (...given) => {
      begun.resolve(undefined);
      await mayGoOn.promise;
      return add(...given);
    };
    const left = Promise.withResolvers<undefined>();
    app.server.on('connection', (socket) => {
      socket.once('close', () => {
        left.resolve(undefined);
      });
    });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const caller = new AbortController();
    const pod = podOf('early', randomUUID(), 'true');
    const body = JSON.stringify({ pod, container: null, jobConfig: {} });
    const headers = { 'content-type': 'application/json' };
    const call = fetch(`${url}/create`, { method: 'POST', headers, body, signal: caller.signal }).catch(
      String,
    );
    await begun.promise;
    caller.abort();
    await Promise.all([call, left.promise]);
    podFiles.add = add;
    mayGoOn.resolve(undefined);
    await until('it is written down', () => files().includes(`pods/${pod.metadata.uid}.json`));
    // This one waits for its job for as long as the first would have.
    expect((await create(podOf('other', randomUUID(), 'true'))).statusCode).to.equal(500);
    expect(sidecar.book.get(pod.metadata.uid)?.isWanted).to.equal(true);
    sidecar.submits = true;
    await sidecar.pass();
    expect(sidecar.jobs.get(pod.metadata.uid)?.status).to.equal('submitted');
  });

  it('A14: /delete answers 200 for Pods in any state, and twice', async () => {
    const pod = podOf('gone', randomUUID(), 'true');
    expect((await ask('POST', '/delete', pod)).statusCode).to.equal(200);
    await create(pod);
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0 });
    for (let again = 0; again < 2; again++)
      expect((await ask('POST', '/delete', pod)).statusCode).to.equal(200);
    await until('nothing is left of it', () => files().join() === 'output,pods');
  });

  it('the Secrets of a Pod leave the disk with the end of its job', async () => {
    const pod = podOf('secret', randomUUID(), 'true');
    const secrets = [{ metadata: { name: 's' }, data: { key: 'c2VjcmV0LXZhbHVl' } }];
    await ask('POST', '/create', { pod, container: [{ name: 'main', secrets }], jobConfig: {} });
    const file = join(top, 'root/pods', `${pod.metadata.uid}.json`);
    expect(readFileSync(file, 'utf8')).to.include('c2VjcmV0LXZhbHVl');
    await sidecar.tell(pod.metadata.uid, { status: 'failed', exitCode: 2 });
    expect(readFileSync(file, 'utf8')).not.to.include('c2VjcmV0LXZhbHVl');
    expect((await statusOf(pod))?.containers[0]?.state.terminated?.exitCode).to.equal(2);
  });

  it('A8: a Pod that is not known waits, or has vanished where it once had a job', async () => {
    const pod = podOf('unknown', randomUUID(), 'true');
    expect((await statusOf(pod))?.containers[0]?.state.waiting?.reason).to.equal('ContainerCreating');
    pod.metadata.annotations = { JobID: '5.0' };
    expect((await statusOf(pod))?.containers[0]?.state.terminated?.exitCode).to.equal(137);
    expect((await ask('GET', '/status', [{ metadata: pod.metadata }])).statusCode).to.equal(404);
  });

  it('A25: the session and the trace of interLink are in the log', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await ask('GET', '/status', [], { 'interlink-http-session': 'GetStatus#61726', traceparent: trace });
    await until('it is logged', () => sidecar.logged.some(({ session }) => session === 'GetStatus#61726'));
    expect(sidecar.logged.find(({ session }) => session !== undefined)).to.include({ traceparent: trace });
  });

  it('a report that a job left shows the end of its container before the job has ended', async () => {
    const pod = podOf('reports', randomUUID(), 'true');
    await create(pod);
    const { uid } = pod.metadata;
    await sidecar.tell(uid, { status: 'running', startTime: 0 });
    const main = { init: false, state: 'terminated', exitCode: 0, ready: false, restarts: 0 };
    writeFileSync(
      join(top, 'root/output', uid, 'pod-status.json'),
      JSON.stringify({ version: 1, containers: { main } }),
    );
    const ended = await until(
      'it has ended',
      async () => (await statusOf(pod))?.containers[0]?.state.terminated,
    );
    expect(ended.exitCode).to.equal(0);
    await sidecar.tell(uid, { status: 'finished', exitCode: 0 });
    const record = join(top, 'root/pods', `${uid}.json`);
    await until('its end is written down', () => readFileSync(record, 'utf8').includes('"end"'));
    await sidecar.stop();

    sidecar = new SidecarUnderTest(join(top, 'root'));
    app = await sidecar.start();
    expect((await statusOf(pod))?.containers[0]?.state.terminated?.exitCode).to.equal(0);
  });

  it('a full disk refuses /create and /delete in a sentence, ends the job all the same, and stops nothing else', async () => {
    const [one, other] = [podOf('one', randomUUID(), 'true'), podOf('other', randomUUID(), 'true')];
    await create(one);
    const { files: podFiles } = sidecar.book;
    const [add, save] = [podFiles.add.bind(podFiles), podFiles.save.bind(podFiles)];
    podFiles.add = () => Promise.reject(new Error('ENOSPC: no space left on device'));
    podFiles.save = () => Promise.reject(new Error('ENOSPC: no space left on device'));
    for (const answer of [await create(other), await ask('POST', '/delete', one)]) {
      expect(answer.statusCode).to.equal(500);
      expect(answer.payload).to.match(/^[^\n]*ENOSPC: no space left on device$/);
    }
    expect(sidecar.jobs.get(one.metadata.uid)?.status).to.equal('cancelled');
    expect(files().filter((name) => name.includes(other.metadata.uid))).to.deep.equal([]);
    expect((await ask('GET', '/status', [])).statusCode).to.equal(200);
    expect((await statusOf(one))?.UID).to.equal(one.metadata.uid);
    Object.assign(podFiles, { add, save });
    expect((await create(other)).statusCode).to.equal(200);
    expect((await ask('POST', '/delete', one)).statusCode).to.equal(200);
    await until('the first is gone', () => !files().includes(`pods/${one.metadata.uid}.json`));
  });

  it('A27: no name leads out of the directory', async () => {
    const hostile = [
      '../x',
      '..',
      '/etc/x',
      'a/b',
      'a\0b',
      '$(touch x)',
      'x'.repeat(300),
      '',
      'a b',
      'ü',
      '.',
    ];
    for (const name of hostile) {
      const uid = randomUUID();
      const named = podOf('pod', uid, 'true');
      const pods = [
        podOf('pod', name, 'true'),
        podOf(name, uid, 'true'),
        { ...named, metadata: { ...named.metadata, namespace: name } },
        {
          ...named,
          spec: { ...named.spec, containers: [{ name, image: 'x', command: ['sh', '-c', 'true'] }] },
        },
      ];
      for (const pod of pods) expect((await create(pod)).statusCode, JSON.stringify(name)).to.equal(400);
      expect((await ask('POST', '/delete', pods[0])).statusCode).to.equal(400);
      expect((await ask('GET', '/status', [pods[0]])).statusCode).to.equal(400);
      const Opts = {};
      const asked = { Namespace: 'default', PodUID: name, PodName: 'pod', ContainerName: name, Opts };
      expect((await ask('GET', '/getLogs', asked)).statusCode).to.be.oneOf([400, 404]);
    }
    expect(files()).to.deep.equal(['output', 'pods']);
    expect(readdirSync(top)).to.deep.equal(['root']);
  });

  it('hole 8: of what is asked of a log reads what it knows, beside any number of other keys', async () => {
    const others = Object.fromEntries(Array.from({ length: 300_000 }, (_, at) => [`k${at}`, 1]));
    const asked = {
      Namespace: 'default',
      PodUID: randomUUID(),
      PodName: 'pod',
      ContainerName: 'main',
      Opts: {},
    };
    const [answer, same] = [
      await ask('GET', '/getLogs', { ...others, ...asked }),
      await ask('GET', '/getLogs', asked),
    ];
    expect(answer.statusCode).to.equal(same.statusCode).and.equal(404);
  });
});
