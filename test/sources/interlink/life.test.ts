import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { ContainerState, PodStatus } from '../../../src/clients/interlink/wire.ts';
import type { Planner } from '../../../src/sources/interlink/planner.ts';
import { podOf } from '../../support/interlink-client.ts';
import { plainPlanner, SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

type TestPod = ReturnType<typeof podOf>;

describe('the life of a Pod of interLink', () => {
  let root: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;

  beforeEach(() => begin(join(temporaryDirectory(), 'root')));
  afterEach(() => sidecar.stop());

  async function begin(directory: string, ...more: [number?]): Promise<void> {
    root = directory;
    sidecar = new SidecarUnderTest(root, plainPlanner, 5000, ...more);
    app = await sidecar.start();
  }

  /** The next daemon, with the jobs of the last one. */
  function next(planner?: Planner): SidecarUnderTest {
    const made = new SidecarUnderTest(root, planner);
    for (const [uid, job] of sidecar.jobs) made.jobs.set(uid, job);
    return made;
  }

  const ask = async (url: string, body: unknown) => {
    const { statusCode, payload } = await app.inject({ method: 'POST', url, payload: JSON.stringify(body) });
    return { status: statusCode, text: payload };
  };
  const create = (pod: TestPod) => ask('/create', { pod, container: null, jobConfig: {} });
  const remove = (pod: TestPod) => ask('/delete', pod);
  const statusOf = async (pod: TestPod): Promise<PodStatus> => {
    const [status] = JSON.parse((await ask('/status', [pod])).text) as PodStatus[];
    if (status === undefined) throw new Error('no status');
    return status;
  };
  const stateOf = async (pod: TestPod): Promise<ContainerState | undefined> =>
    (await statusOf(pod)).containers[0]?.state;
  const newPod = (name = 'pod') => podOf(name, randomUUID(), 'true');
  const records = () => readdirSync(join(root, 'pods'));
  const isGone = ({ metadata: { uid } }: TestPod) =>
    !existsSync(join(root, 'pods', `${uid}.json`)) && !existsSync(join(root, 'output', uid));

  /** Writes down a state as the job of a Pod does. */
  function report({ metadata: { uid } }: TestPod, main: object): void {
    const whole = { init: false, ready: false, restarts: 0, ...main };
    const file = join(root, 'output', uid, 'pod-status.json');
    writeFileSync(`${file}.new`, JSON.stringify({ version: 1, containers: { main: whole } }));
    renameSync(`${file}.new`, file);
  }

  async function running(): Promise<TestPod> {
    const pod = newPod();
    expect((await create(pod)).status).to.equal(200);
    await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 0 });
    return pod;
  }

  it('hole 1: may be shorter than the queue allows, and never longer', async () => {
    await sidecar.stop();
    const needs = { ends: 999_999_999, soon: 60, says: undefined };
    sidecar = new SidecarUnderTest(root, (data) => {
      const maxWalltime = needs[data.pod.metadata.name as keyof typeof needs];
      return Object.assign(plainPlanner(data), {
        requirements: maxWalltime === undefined ? {} : { maxWalltime },
      });
    });
    sidecar.submits = false;
    sidecar.maxWalltime = 3600;
    app = await sidecar.start();
    const creating = Object.keys(needs).map((name) => create(newPod(name)));
    const lives = () => sidecar.wanted.map(({ requirements }) => requirements?.maxWalltime).toSorted();
    await until('all are wanted', () => sidecar.wanted.length === 3);
    expect(lives()).to.have.members([3600, 60, undefined]);
    sidecar.maxWalltime = 0;
    // They are planned anew, from their files.
    await until('all are wanted again', async () => {
      await sidecar.pass();
      return sidecar.wanted.length === 3;
    });
    expect(lives()).to.have.members([999_999_999, 60, undefined]);
    sidecar.submits = true;
    await sidecar.pass();
    expect((await Promise.all(creating)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
  });

  describe('whose directory is not mounted when the daemon starts', () => {
    it('keeps its job, and has its status as soon as the directory is there', async () => {
      const pod = await running();
      await sidecar.stop();
      renameSync(root, `${root}.unmounted`);
      const after = next();
      const { uid } = pod.metadata;
      const message = `1 jobs of Pods live, and ${root}/pods has no file of any Pod: is it mounted?`;
      const failure = (error: unknown) => error as { code?: string; message?: string };
      expect(await after.tell(uid, { status: 'running' }).catch(failure)).to.include({
        code: 'interlink-lost',
      });
      expect(await after.start().catch(failure)).to.include({ code: 'interlink-lost', message });
      expect(after.jobs.get(uid)?.status).to.equal('running');
      expect(existsSync(root), 'a directory in the place of the mount').to.equal(false);

      renameSync(`${root}.unmounted`, root);
      sidecar = after;
      app = await after.start();
      expect(await stateOf(pod)).to.have.property('running');
    });

    it('loses its job only if it is the one Pod without a file', async () => {
      const [kept, lost] = [await running(), await running()];
      await sidecar.stop();
      rmSync(join(root, 'pods', `${lost.metadata.uid}.json`));
      sidecar = next();
      app = await sidecar.start();
      expect(sidecar.jobs.get(lost.metadata.uid)?.status).to.equal('cancelled');
      expect(sidecar.jobs.get(kept.metadata.uid)?.status).to.equal('running');
    });
  });

  it('A4: that was evicted is ended with the reason, by no report before that, and does not start twice', async () => {
    const pod = await running();
    const { uid } = pod.metadata;
    const startedAt = '2026-11-20T10:00:00Z';
    report(pod, { state: 'terminated', exitCode: 143, signal: 15, reason: 'Terminated', startedAt });
    await until('the report is read', async () => (await stateOf(pod))?.running?.startedAt === startedAt);
    await sidecar.tell(uid, { status: 'idle', nativeStatus: 'idle', startTime: 0 });
    await until('its job is ended', () => sidecar.jobs.get(uid)?.status === 'cancelled');
    const message = 'its job lost its machine, and a Pod starts only once';
    expect(await stateOf(pod)).to.deep.equal({ waiting: { reason: 'ContainerCreating', message } });
    await sidecar.tell(uid, { status: 'cancelled', startTime: 0 });
    const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
    expect(ended).to.include({ exitCode: 143, reason: 'Terminated', message });
  });

  it('whose job lost its machine before it started waits for another one', async () => {
    const pod = await running();
    sidecar.detail = { NumJobStarts: 0 };
    await sidecar.tell(pod.metadata.uid, { status: 'idle', nativeStatus: 'idle', startTime: 0 });
    await until('that is known', () => sidecar.book.get(pod.metadata.uid)?.isLost === false);
    expect((await stateOf(pod))?.waiting?.message).to.match(/^job 1.0 waits for a machine since \S+Z$/);
    await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 0 });
    expect(await stateOf(pod)).to.have.property('running');
    expect(sidecar.jobs.get(pod.metadata.uid)?.status).to.equal('running');
  });

  it('that had ended by itself does not run again, though its job was evicted', async () => {
    const pod = await running();
    const { uid } = pod.metadata;
    report(pod, { state: 'terminated', exitCode: 0 });
    await until('it has ended', async () => (await stateOf(pod))?.terminated);
    await sidecar.tell(uid, { status: 'idle', nativeStatus: 'idle' });
    await until('its job is ended', () => sidecar.jobs.get(uid)?.status === 'cancelled');
    await sidecar.tell(uid, { status: 'cancelled', startTime: 0, diagMessage: 'removed' });
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(0);
  });

  it('that HTCondor suspends runs on', async () => {
    const pod = await running();
    report(pod, { state: 'running', ready: true, startedAt: '2026-11-20T10:00:00Z' });
    const isRead = async () => (await stateOf(pod))?.running?.startedAt === '2026-11-20T10:00:00Z';
    await until('the report is read', isRead);
    await sidecar.tell(pod.metadata.uid, { status: 'idle', nativeStatus: 'suspended' });
    expect(await isRead()).to.equal(true);
  });

  it('A4: whose job is held waits with the reason of the hold, and warns of a release after a start', async () => {
    const pod = newPod();
    await create(pod);
    sidecar.detail = { HoldReason: 'via condor_hold\n(by user x)', NumJobStarts: 0 };
    await sidecar.tell(pod.metadata.uid, { status: 'submitted', nativeStatus: 'held' });
    const message = await until('the reason is known', async () => (await stateOf(pod))?.waiting?.message);
    expect(await stateOf(pod)).to.deep.equal({ waiting: { reason: 'JobHeld', message } });
    expect(message).to.match(/^via condor_hold.+by user x\)$/);
    await sidecar.tell(pod.metadata.uid, { status: 'submitted', nativeStatus: 'idle' });
    expect((await stateOf(pod))?.waiting?.message).to.match(/^job 1.0 waits for a machine since \S+Z$/);
    sidecar.detail = { HoldReason: 'again', NumJobStarts: 1 };
    await sidecar.tell(pod.metadata.uid, { status: 'idle', nativeStatus: 'held' });
    const warning = /^again; a release ends the Pod/;
    await until('it warns', async () => warning.test((await stateOf(pod))?.waiting?.message ?? ''));
  });

  it('that ended while the daemon was down shows its end when its files have come', async () => {
    const pod = await running();
    sidecar.left = 1;
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    expect(await stateOf(pod)).to.have.property('running');
    report(pod, { state: 'terminated', exitCode: 6 });
    sidecar.left = 0;
    const ended = await until('it has ended', async () => (await stateOf(pod))?.terminated);
    expect(ended.exitCode).to.equal(6);
  });

  it('that ended and is never deleted is forgotten some time later, and is no success then', async () => {
    await sidecar.stop();
    await begin(root, 50);
    const [pod, alive] = [newPod('ended'), newPod('alive')];
    for (const one of [pod, alive]) await create(one);
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, endTime: Date.now() });
    await until('it is forgotten', () => records().join() === `${alive.metadata.uid}.json`);
    pod.metadata.annotations = { JobID: '1.0' };
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(137);
  });

  it('that is deleted while /create waits for its job gets none', async () => {
    sidecar.submits = false;
    const pod = newPod();
    const created = create(pod);
    await until('it is accepted', () => records().length === 1);
    expect((await remove(pod)).status).to.equal(200);
    expect(await created).to.deep.equal({ status: 500, text: 'the Pod was deleted' });
    await until('nothing is left of it', () => isGone(pod));
    expect(sidecar.jobs.get(pod.metadata.uid)?.status).to.equal('withdrawn');
  });

  it('that was deleted is not made again by a request that comes late', async () => {
    const pod = await running();
    expect((await remove(pod)).status).to.equal(200);
    await until('nothing is left of it', () => isGone(pod));
    // Its record goes a moment before the memory of it.
    const why = 'the Pod was created before, and its job 1.0 was ended: cancelled';
    await until('it is forgotten', async () => {
      const late = await create(pod);
      expect(late.status).to.equal(500);
      return late.text === why;
    });
    expect(isGone(pod)).to.equal(true);
    expect(sidecar.jobs.size).to.equal(1);
  });

  it('that is deleted before its /create comes gets no job', async () => {
    const pod = newPod();
    expect((await remove(pod)).status).to.equal(200);
    expect(await create(pod)).to.deep.equal({ status: 500, text: 'the Pod was deleted' });
    expect(isGone(pod)).to.equal(true);
  });

  it('that was accepted stays so when the options change, and ends in a sentence if it has no job yet', async () => {
    const [pod, jobless] = [await running(), newPod('jobless')];
    await sidecar.stop();
    const file = ({ metadata: { uid } }: TestPod) => join(root, 'pods', `${uid}.json`);
    // A crash after it was written down.
    writeFileSync(
      file(jobless),
      readFileSync(file(pod), 'utf8').replaceAll(pod.metadata.uid, jobless.metadata.uid),
    );
    sidecar = next(() => ['the operator allows no host']);
    app = await sidecar.start();
    expect((await create(pod)).text).to.include('"PodJID":"1.0"');
    expect((await create(newPod('third'))).status).to.equal(400);
    const why = 'the Pod cannot become a job any more: the operator allows no host';
    await until('the reason is shown', async () => (await stateOf(jobless))?.waiting?.message === why);
    await until('it never gets a job', () => sidecar.jobs.get(jobless.metadata.uid)?.status === 'withdrawn');
    await sidecar.tell(jobless.metadata.uid, {});
    expect((await stateOf(jobless))?.terminated).to.include({ exitCode: 137, message: why });
  });

  it('leaves none of its Secrets in its directory when its job was killed', async () => {
    const pod = await running();
    const left = join(root, 'output', pod.metadata.uid, '.pod');
    mkdirSync(join(left, 'volumes/secret'), { recursive: true });
    writeFileSync(join(left, 'volumes/secret/password'), 'x');
    await sidecar.tell(pod.metadata.uid, { status: 'failed', exitCode: 137, startTime: 0, endTime: 1 });
    await until('it has ended', async () => (await stateOf(pod))?.terminated);
    expect(existsSync(left)).to.equal(false);
  });

  it('A14: whose file was lost is deleted with its job, and never shown without its containers', async () => {
    const pod = await running();
    const { uid } = pod.metadata;
    await sidecar.stop();
    writeFileSync(join(root, 'pods', `${uid}.json`), '{"version":');
    sidecar = next();
    app = await sidecar.start();
    sidecar.left = 1;
    expect((await remove(pod)).status).to.equal(200);
    expect(sidecar.jobs.get(uid)?.status).to.equal('cancelled');
    pod.metadata.annotations = { JobID: '1.0' };
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(137);
    sidecar.left = 0;
    await until('nothing is left of it', () => isGone(pod));
  });

  it('A3: that cannot be written down is refused in a sentence, for all who ask, and leaves nothing', async () => {
    removeDirectory(join(root, 'pods'));
    const pod = newPod();
    const answers = await Promise.all([create(pod), create(pod), create(pod)]);
    for (const { status, text } of answers) {
      expect(status).to.equal(500);
      expect(text).to.match(/pods\/.+\.json cannot be used: ENOENT/);
    }
    expect(isGone(pod)).to.equal(true);
    expect(sidecar.jobs.size).to.equal(0);
    mkdirSync(join(root, 'pods'), { mode: 0o700 });
    expect((await create(pod)).status).to.equal(200);
    expect(records()).to.deep.equal([`${pod.metadata.uid}.json`]);
  });

  it('lists the containers that the virtual kubelet keeps for itself, and ends with the others', async () => {
    const pod = await running();
    const [main] = pod.spec.containers;
    const side = { ...(main ?? { command: [], env: null, resources: {}, image: '' }), name: 'side' };
    const whole = {
      metadata: { ...pod.metadata, annotations: { 'interlink.eu/disable-offload-containers': 'side, x' } },
      spec: { ...pod.spec, containers: [...pod.spec.containers, side] },
    };
    const states = async () =>
      (await statusOf(whole)).containers.map(({ name, state }) => [name, state] as const);
    expect((await states()).map(([name, state]) => [name, ...Object.keys(state)])).to.deep.equal([
      ['main', 'running'],
      ['side', 'running'],
    ]);
    report(pod, { state: 'terminated', exitCode: 0 });
    await until('both have ended', async () =>
      (await states()).every(([, state]) => state.terminated !== undefined),
    );
    expect((await states()).map(([, state]) => state.terminated?.exitCode)).to.deep.equal([0, 0]);
  });
});
