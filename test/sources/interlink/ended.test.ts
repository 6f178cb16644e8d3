import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { ContainerState, PodStatus } from '../../../src/clients/interlink/wire.ts';
import { podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

type TestPod = ReturnType<typeof podOf>;

describe('a Pod of interLink whose job has ended', () => {
  let root: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;

  beforeEach(async () => {
    root = join(temporaryDirectory(), 'root');
    sidecar = new SidecarUnderTest(root);
    app = await sidecar.start();
  });
  afterEach(() => sidecar.stop());

  const ask = async (url: string, body: unknown) => {
    const { statusCode, payload } = await app.inject({ method: 'POST', url, payload: JSON.stringify(body) });
    return { status: statusCode, text: payload };
  };
  const remove = (pod: TestPod) => ask('/delete', pod);
  const stateOf = async (pod: TestPod): Promise<ContainerState | undefined> => {
    const [status] = JSON.parse((await ask('/status', [pod])).text) as PodStatus[];
    return status?.containers[0]?.state;
  };
  const newPod = () => podOf('pod', randomUUID(), 'true');
  const fileOf = ({ metadata: { uid } }: TestPod, name: string) => join(root, 'output', uid, name);
  const isGone = (pod: TestPod) =>
    !existsSync(join(root, 'pods', `${pod.metadata.uid}.json`)) && !existsSync(fileOf(pod, ''));

  const whole = (main: object) =>
    JSON.stringify({ version: 1, containers: { main: { init: false, ready: false, restarts: 0, ...main } } });

  function report(pod: TestPod, main: object): void {
    const file = fileOf(pod, 'pod-status.json');
    writeFileSync(`${file}.new`, whole(main));
    renameSync(`${file}.new`, file);
  }

  async function running(): Promise<TestPod> {
    const pod = newPod();
    expect((await ask('/create', { pod, container: null, jobConfig: {} })).status).to.equal(200);
    await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 0 });
    return pod;
  }

  async function endUnfetched(pod: TestPod): Promise<void> {
    sidecar.left = 1;
    sidecar.whyLeft = { code: 'output-awaited', message: 'no directory' };
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
  }

  async function finishAfter({ metadata: { uid } }: TestPod, days: number): Promise<void> {
    const pod = sidecar.book.get(uid);
    if (pod === undefined) throw new Error('no such Pod');
    await sidecar.book.finish(pod, sidecar.desk(), performance.now() + days * 86_400_000);
  }

  it('hole 8: counts its report for nothing where that is too deep, or wrong and long; other Pods end meanwhile', async () => {
    const [deep, long, other] = [await running(), await running(), await running()];
    const nested = '['.repeat(3000) + ']'.repeat(3000);
    writeFileSync(fileOf(deep, 'pod-status.json'), whole({ state: 0 }).replace('0', nested));
    writeFileSync(fileOf(long, 'pod-status.json'), whole({ state: 'x-'.repeat(120_000) }));
    for (const { metadata } of [deep, long, other])
      await sidecar.tell(metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    for (const pod of [deep, long, other]) {
      await finishAfter(pod, 1);
      expect(await stateOf(pod)).to.have.property('terminated');
    }
  });

  for (const [when, restarts] of [
    ['in news of both', false],
    ['at a start', true],
  ] as const)
    it(`keeps no other from its end where its files fail, ${when}, and ends when they are right again`, async () => {
      const pods = [await running(), await running()] as const;
      const uids = pods.map(({ metadata: { uid } }) => uid);
      const ended = { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 } as const;
      if (restarts) {
        for (const uid of uids) sidecar.change(uid, ended);
        await sidecar.stop();
        sidecar = sidecar.next();
      }
      const { files } = sidecar.book;
      const reportSince = files.reportSince.bind(files);
      files.reportSince = async (uid, seen) => {
        if (uid === uids[0]) throw new Error('EIO: i/o error, read');
        return reportSince(uid, seen);
      };
      if (restarts) app = await sidecar.start();
      else await sidecar.tell(uids, ended);
      await until('the other has ended', async () => (await stateOf(pods[1]))?.terminated);
      expect(await stateOf(pods[0])).not.to.have.property('terminated');
      const code = 'plugin-failed';
      expect(sidecar.logged).to.deep.include({ pods: [uids[0]], code, message: 'EIO: i/o error, read' });
      files.reportSince = reportSince;
      await until('it has ended', async () => (await stateOf(pods[0]))?.terminated);
    });

  it('keeps no daemon from its start where something else is in the place of its directory', async () => {
    const [pod, other] = [await running(), await running()];
    removeDirectory(fileOf(pod, ''));
    writeFileSync(fileOf(pod, ''), '');
    await sidecar.stop();
    sidecar = sidecar.next();
    app = await sidecar.start();
    const uids = [pod, other].map(({ metadata: { uid } }) => uid);
    expect(sidecar.logged.map(({ pod: uid }) => uid)).to.include(uids[0]);
    await sidecar.tell(uids, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    for (const one of [pod, other]) await until('it has ended', async () => (await stateOf(one))?.terminated);
  });

  it('that succeeded waits with the reason while its files cannot be fetched, and ends as it did', async () => {
    const pod = await running();
    await endUnfetched(pod);
    const waiting = await until('it says why', async () => (await stateOf(pod))?.waiting);
    const message = 'the job has ended, and its files have not come yet: no directory';
    expect(waiting).to.deep.equal({ reason: 'OutputAwaited', message });
    await finishAfter(pod, 9.9);
    expect(await stateOf(pod)).to.deep.equal({ waiting });
    report(pod, { state: 'terminated', exitCode: 0 });
    sidecar.left = 0;
    const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
    expect(ended.exitCode).to.equal(0);
  });

  it('A26: keeps its id and its state through a restart while its files come', async () => {
    const pod = await running();
    sidecar.left = 1;
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    const before = (await ask('/status', [pod])).text;
    await sidecar.stop();
    sidecar = sidecar.next();
    sidecar.left = 1;
    app = await sidecar.start();
    expect((await ask('/status', [pod])).text).to.equal(before);
  });

  it('is no success where its files did not come for ten days', async () => {
    const pod = await running();
    await endUnfetched(pod);
    await finishAfter(pod, 10.1);
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(137);
  });

  it('that is deleted waits for no files', async () => {
    const pod = await running();
    sidecar.left = 1;
    await remove(pod);
    await until('its files are let go', () => sidecar.letGo.length > 0);
    sidecar.left = 0;
    await until('nothing is left of it', () => isGone(pod));
    expect(sidecar.letGo).to.deep.equal([sidecar.jobs.get(pod.metadata.uid)?.workerId]);
  });

  it('says the last words of its job where that left no report', async () => {
    const pod = await running();
    const words = 'thresher: the payload cannot be unpacked: is there room on the disk?';
    writeFileSync(fileOf(pod, 'job.err'), `${'x'.repeat(9000)}\n${words}\n\n`);
    const diagMessage = 'ended with exit status 125';
    await sidecar.tell(pod.metadata.uid, { status: 'failed', exitCode: 125, startTime: 0, diagMessage });
    const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
    const message = `${diagMessage}; the job's last words: ${words}`;
    expect(ended).to.include({ exitCode: 125, message });
  });

  it('says the same words when its news come again', async () => {
    const pod = await running();
    const { uid } = pod.metadata;
    const end = { status: 'failed', exitCode: 125, startTime: 0 } as const;
    await sidecar.tell(uid, { ...end, diagMessage: 'ended with exit status 125' });
    const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
    await sidecar.tell(uid, { ...end, status: 'cancelled', diagMessage: 'Via condor_rm (by user thresher)' });
    expect(await stateOf(pod)).to.deep.equal({ terminated: ended });
  });

  it('succeeds though its last report has the time of the one before it', async () => {
    const pod = await running();
    const atSameTime = (main: object) => {
      report(pod, main);
      utimesSync(fileOf(pod, 'pod-status.json'), 1000, 1000);
    };
    atSameTime({ state: 'running', ready: true });
    await until('it is seen to run', async () => sidecar.book.get(pod.metadata.uid)?.report);
    atSameTime({ state: 'terminated', exitCode: 3 });
    await until('the next report is seen', async () => (await stateOf(pod))?.terminated?.exitCode === 3);
    // As where the number of a file comes again: only its bytes are other ones.
    writeFileSync(fileOf(pod, 'pod-status.json'), whole({ state: 'terminated', exitCode: 0 }));
    utimesSync(fileOf(pod, 'pod-status.json'), 1000, 1000);
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    await until('it has ended', () => sidecar.book.get(pod.metadata.uid)?.hasEnded);
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(0);
  });

  it('is waited for by the time that passes, however the wall clock steps', async () => {
    const pod = await running();
    sidecar.left = 1;
    const { now } = Date;
    try {
      await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
      Date.now = () => now() + 86_400_000;
      await finishAfter(pod, 0);
    } finally {
      Date.now = now;
    }
    expect((await stateOf(pod))?.terminated).to.equal(undefined);
  });

  for (const name of ['pod-status.json', 'job.err'])
    it(`is looked after like any other where its job leaves a pipe or a link as ${name}`, async () => {
      const [piped, linked, other] = [await running(), await running(), await running()];
      execFileSync('mkfifo', [fileOf(piped, name)]);
      symlinkSync('/etc/passwd', fileOf(linked, name));
      for (const pod of [piped, linked, other])
        await sidecar.tell(pod.metadata.uid, { status: 'failed', exitCode: 1, startTime: 0 });
      for (const pod of [piped, linked, other]) {
        const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
        expect(ended.exitCode).to.equal(1);
        expect(ended.message).not.to.match(/root/);
      }
    });

  it('is answered though another one of the same question is none', async () => {
    const pod = await running();
    const wrong = { ...newPod(), metadata: { ...newPod().metadata, uid: '../x' } };
    const empty = { ...newPod(), spec: { containers: [] } };
    const { status, text } = await ask('/status', [wrong, pod, empty]);
    expect(status).to.equal(200);
    expect((JSON.parse(text) as PodStatus[]).map(({ UID }) => UID)).to.deep.equal([pod.metadata.uid]);
    expect((await ask('/status', [wrong])).status).to.equal(400);
    expect((await ask('/status', [empty])).status).to.equal(404);
  });
});
