import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { batchInterval } from '../../src/sources/interlink/requests.ts';
import { condorPool, forgetHistory, type Pool } from '../support/htcondor.ts';
import type { ContainerState } from '../../src/clients/interlink/wire.ts';
import type { InterlinkClient } from '../support/interlink-client.ts';
import {
  InterlinkCondor,
  nowhere,
  type TestPod,
  untilEnded,
  untilRuns,
  untilState,
} from '../support/interlink-condor.ts';
import { dataRoot } from '../support/interlink-site.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

/** It counts its starts, and goes on until the test lets it end. */
const waiting = 'echo start >> starts; until [ -e go ]; do sleep 0.1; done; exit 0';
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

describe('the life of a Pod of interLink on a real schedd', function () {
  this.timeout(240_000);
  let pool: Pool;
  let condor: InterlinkCondor;
  let daemon: RunningDaemon;
  let client: InterlinkClient;
  /** A line for each start of condor_q. */
  let questions: string;

  before(async () => {
    pool = await condorPool();
    condor = new InterlinkCondor(pool);
    const { site, environment } = condor;
    questions = site.path('questions');
    const recorder = `#!/bin/sh\necho asked >> ${questions}\nexec ${pool.programs}/condor_q "$@"\n`;
    writeFileSync(site.path('condor_q'), recorder);
    chmodSync(site.path('condor_q'), 0o755);
    environment['PATH'] = `${site.directory}:${environment['PATH'] ?? ''}`;
    ({ daemon, client } = await condor.start());
  });
  after(() => condor.clean());

  const removeAll = async (...pods: TestPod[]) => {
    for (const pod of pods) expect((await client.remove(pod)).status).to.equal(200);
  };

  /** Sends /create, and goes away when the Pod is accepted, before the answer. */
  const sendAndLeave = async (pod: TestPod) => {
    const body = JSON.stringify({ pod, container: null, jobConfig: {} });
    const sent = request({ socketPath: condor.site.path('sidecar.sock'), method: 'POST', path: '/create' });
    let isAnswered = false;
    sent.on('response', () => (isAnswered = true));
    sent.on('error', () => undefined);
    const closed = new Promise((resolve) => sent.on('close', resolve));
    sent.end(body);
    const file = condor.site.path(dataRoot, 'pods', `${pod.metadata.uid}.json`);
    await until('the Pod is accepted', () => existsSync(file));
    sent.destroy();
    await closed;
    expect(isAnswered, 'the answer came first').to.equal(false);
  };

  it('A1, A2: a Pod is one job however often it is sent, and another UID of the same name is another job', async () => {
    const [pod, other] = [condor.pod('one', 'true', nowhere), condor.pod('one', 'true', nowhere)];
    await sendAndLeave(pod);
    const answers = await Promise.all(Array.from({ length: 10 }, () => client.created(pod)));
    const [{ PodJID: jid } = { PodJID: '' }] = answers;
    expect(answers).to.deep.equal(answers.map(() => ({ PodUID: pod.metadata.uid, PodJID: jid })));
    const { PodJID: second } = await client.created(other);
    expect(await condor.jobIds()).to.deep.equal([jid, second].sort());
    expect(await client.status(pod)).to.include({
      UID: pod.metadata.uid,
      JID: jid,
      name: 'one',
      namespace: 'default',
    });
    expect((await client.state(pod)).waiting?.reason).to.equal('ContainerCreating');

    await removeAll(pod);
    await until('the job of the first is gone', async () => (await condor.jobIds()).join() === second);
    await until('nothing is left of the first', () => !condor.isLeft(pod));
    // Its record goes a moment before the memory of it.
    await until('the same UID is not made again', async () =>
      /^the Pod was created before, and its job \S+ was ended/.test((await client.create(pod)).text),
    );
    await removeAll(other);
  });

  it('A4: waiting, held with the reason, running and done, each as it is', async () => {
    const [held, done, failing] = [
      condor.pod('held', 'true', nowhere),
      condor.pod('done', waiting),
      condor.pod('failing', 'exit 3'),
    ];
    const [{ PodJID: jid }] = await Promise.all([
      client.created(held),
      client.created(done),
      client.created(failing),
    ]);
    expect((await client.state(held)).waiting?.reason).to.equal('ContainerCreating');
    await condor.act('hold', jid, 'the test holds it');
    const isHeld = ({ waiting: state }: ContainerState) =>
      state?.reason === 'JobHeld' && state.message !== undefined;
    expect((await untilState(client, held, 'is held', isHeld)).waiting?.message).to.match(
      /the test holds it/,
    );
    await condor.act('release', jid, 'the test releases it');
    await untilState(client, held, 'waits again', (state) => state.waiting?.reason === 'ContainerCreating');

    expect(await untilRuns(client, done)).to.match(time);
    condor.put(done, 'go');
    const end = await untilEnded(client, done);
    expect(end).to.include({ exitCode: 0, reason: 'Completed' });
    expect(end.startedAt).to.match(time);
    expect(end.finishedAt).to.match(time);
    expect(await untilEnded(client, failing)).to.include({ exitCode: 3, reason: 'Error' });
    await removeAll(held, done, failing);
  });

  it('A4: a Pod whose job is evicted, or held and released, ends with the reason, and its containers start once', async () => {
    const [evicted, held] = [condor.pod('evicted', waiting), condor.pod('paused', waiting)];
    const jids = await Promise.all([evicted, held].map(async (pod) => (await client.created(pod)).PodJID));
    for (const pod of [evicted, held])
      await until('its container has started', () => condor.read(pod, 'starts') === 'start\n');
    await Promise.all([evicted, held].map((pod) => untilRuns(client, pod)));
    await condor.vacate(jids[0] ?? '');
    await condor.act('hold', jids[1] ?? '', 'the test holds it');
    await untilState(client, held, 'is held', (state) => state.waiting?.reason === 'JobHeld');
    await condor.act('release', jids[1] ?? '', 'the test releases it');
    for (const pod of [evicted, held]) {
      const ended = await untilEnded(client, pod);
      expect(ended.exitCode, pod.metadata.name).to.be.oneOf([137, 143]);
      expect(ended.message).to.match(/lost its machine, and a Pod starts only once/);
      expect(condor.read(pod, 'starts')).to.equal('start\n');
    }
    await until('the jobs are gone', async () => !(await condor.jobIds()).some((id) => jids.includes(id)));
    await removeAll(evicted, held);
  });

  it('A5: a container that is killed, a job that is killed, and one that is removed are no success', async () => {
    const killed = condor.pod('killed', 'kill -9 $$$$');
    // The runner is the parent of the process that looks after the container.
    const lost = condor.pod(
      'lost',
      'read -r _ _ _ runner _ < /proc/$PPID/stat; kill -9 "$runner"; sleep 1000',
    );
    const removed = condor.pod('removed', waiting);
    await Promise.all([killed, lost].map((pod) => client.created(pod)));
    const { PodJID: jid } = await client.created(removed);
    await untilRuns(client, removed);
    // A Pod runs with its job, which makes ready before it starts containers.
    await until('its container has started', () => condor.read(removed, 'starts') === 'start\n');
    await condor.act('remove', jid, 'an operator removes it');
    const ended = await untilEnded(client, removed);
    expect(ended.exitCode).to.be.oneOf([137, 143]);
    expect(ended.message).to.match(/an operator removes it/);
    expect(await untilEnded(client, killed)).to.include({ exitCode: 137, reason: 'Error' });
    expect((await untilEnded(client, lost)).exitCode).to.equal(137);
    await removeAll(killed, lost, removed);
  });

  it('A8: a job that vanished behind the back is terminated with a message', async () => {
    // The runner gets no time to write its end down.
    const pod = condor.pod('vanished', waiting, 'kill_sig = SIGKILL');
    const { PodJID: jid } = await client.created(pod);
    await untilRuns(client, pod);
    daemon.process.kill('SIGSTOP');
    try {
      await condor.act('remove', jid, 'thresher does not see it');
      await until('the queue forgets it', async () => !(await condor.jobIds('any')).includes(jid));
      forgetHistory(pool, 'local', condor.space);
    } finally {
      daemon.process.kill('SIGCONT');
    }
    const ended = await untilEnded(client, pod);
    expect(ended).to.include({ exitCode: 137, reason: 'ContainerStatusUnknown' });
    expect(ended.message).to.match(/./);
    expect((await client.status(pod)).containers).to.have.length(1);
    await removeAll(pod);
  });

  it('A14: /delete ends a running Pod, a finished and an unknown one, also when it comes again', async () => {
    const [running, finished, unknown] = [
      condor.pod('running', waiting),
      condor.pod('finished', 'true'),
      condor.pod('x', 'true'),
    ];
    await Promise.all([client.created(running), client.created(finished)]);
    await untilRuns(client, running);
    await untilEnded(client, finished);
    for (let again = 0; again < 2; again++) await removeAll(running, finished, unknown);
    await until('no file of them is left', () => !condor.isLeft(running) && !condor.isLeft(finished));
    expect(await condor.jobIds()).to.deep.equal([]);
    await removeAll(running, finished, unknown);
  });

  it('A25: the job that curl asks for over the unix socket is on the schedd, and the log has its session', async () => {
    const pod = condor.pod('curled', 'true', nowhere);
    const body = JSON.stringify({ pod, container: null, jobConfig: {} });
    const session = 'CreatePod#25';
    const { stdout } = await run('curl', [
      '--silent',
      ...['--unix-socket', condor.site.path('sidecar.sock'), '--write-out', '\n%{http_code}', '--data', body],
      ...['--header', 'Content-Type: application/json', '--header', `InterLink-Http-Session: ${session}`],
      'http://unix/create',
    ]);
    const [answer = '', status] = stdout.split('\n');
    expect(status).to.equal('200');
    expect(await condor.jobIds()).to.include((JSON.parse(answer) as { PodJID: string }).PodJID);
    await until('the log has the session', () => daemon.output().includes(session));
    await removeAll(pod);
    await until('its job is removed', async () => (await condor.jobIds()).length === 0);
  });

  it('A27: a Pod with a hostile name gets 400, no job and no file', async () => {
    const files = readdirSync(condor.site.path(dataRoot, 'pods')).sort();
    for (const hostile of ['../x', '$(touch x)', 'a;b', 'a/../../b']) {
      const pod = condor.pod('named', 'true', nowhere);
      const { metadata } = pod;
      for (const wrong of [{ uid: hostile }, { name: hostile }, { namespace: hostile }])
        expect((await client.create({ ...pod, metadata: { ...metadata, ...wrong } })).status).to.equal(400);
    }
    expect(await condor.jobIds()).to.deep.equal([]);
    // The file of an earlier Pod may go meanwhile; none may come.
    expect(files).to.include.members(readdirSync(condor.site.path(dataRoot, 'pods')));
  });

  it('A26: after SIGKILL of the daemon the statuses go on, and no job is made again', async () => {
    const [pod, ended] = [condor.pod('goes-on', waiting), condor.pod('over', 'exit 4')];
    const created = await Promise.all([client.created(pod), client.created(ended)]);
    await untilRuns(client, pod);
    await untilEnded(client, ended);
    const before = await client.status(ended);
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    ({ daemon, client } = await condor.start({ heldTimeout: 1 }));
    expect(await client.status(ended)).to.deep.equal(before);
    await untilRuns(client, pod);
    expect(await Promise.all([client.created(pod), client.created(ended)])).to.deep.equal(created);
    condor.put(pod, 'go');
    expect((await untilEnded(client, pod)).exitCode).to.equal(0);
    expect(condor.read(pod, 'starts')).to.equal('start\n');
    await removeAll(pod, ended);
  });

  it('A4: a Pod whose job is held for too long is terminated with the reason', async () => {
    const pod = condor.pod('held', 'true', nowhere);
    await condor.act('hold', (await client.created(pod)).PodJID, 'an operator forgot it');
    const ended = await untilEnded(client, pod);
    expect(ended.exitCode).to.equal(137);
    expect(ended.message).to.match(/an operator forgot it/);
    await until('its job is removed', async () => (await condor.jobIds()).length === 0);
    await removeAll(pod);
  });

  it('A9: the statuses of 200 Pods, created at once, cost one question of the schedd in each interval', async () => {
    const pods = Array.from({ length: 200 }, (_, index) => condor.pod(`many-${index}`, 'true', nowhere));
    for (const [index, { spec }] of pods.entries())
      Object.assign(spec.containers[0] ?? {}, {
        resources: { requests: { memory: `${32 + (index % 5)}Mi` } },
      });
    const sent = performance.now();
    const created = await Promise.all(pods.map((pod) => client.created(pod)));
    const batches = 1 + Math.ceil((performance.now() - sent) / batchInterval);
    const clusters = new Set(created.map(({ PodJID }) => PodJID.split('.')[0]));
    expect(clusters.size, 'a condor_submit makes one cluster').to.be.at.most(batches);
    expect(await condor.jobIds()).to.deep.equal(created.map(({ PodJID }) => PodJID).sort());
    const asked = () => (existsSync(questions) ? readFileSync(questions, 'utf8').split('\n').length - 1 : 0);
    const [before, begun] = [asked(), performance.now()];
    for (let round = 0; round < 5; round++)
      for (const [index, pod] of pods.entries()) {
        const { JID, containers } = await client.status(pod);
        expect(JID).to.equal(created[index]?.PodJID);
        expect(containers[0]?.state.waiting?.reason).to.equal('ContainerCreating');
      }
    const intervals = (performance.now() - begun) / 500;
    expect(asked() - before).to.be.at.most(Math.ceil(intervals) + 1);
    await until('the schedd is asked', () => asked() > before);
    await Promise.all(pods.map((pod) => removeAll(pod)));
    await until('no job is left', async () => (await condor.jobIds()).length === 0);
    await until('no file is left', () => pods.every((pod) => !condor.isLeft(pod)));
  });
});
