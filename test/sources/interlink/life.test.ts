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

  it('of an older copy of the directory: no job of newer Pods is ended, and those that are there are served', async () => {
    const pods: TestPod[] = [];
    for (let nth = 0; nth < 10; nth++) pods.push(await running());
    const [kept, ...lost] = pods as [TestPod, ...TestPod[]];
    await sidecar.stop();
    for (const { metadata } of lost) rmSync(join(root, 'pods', `${metadata.uid}.json`));
    sidecar = next();
    app = await sidecar.start();
    const jobsOf = (some: readonly TestPod[]) =>
      new Set(some.map(({ metadata: { uid } }) => sidecar.jobs.get(uid)?.status));
    const left = () => sidecar.logged.filter(({ code }) => code === 'interlink-missing');
    expect(jobsOf(pods)).to.deep.equal(new Set(['running']));
    expect(left().map(({ message }) => message)).to.have.length(1);
    await sidecar.pass();
    expect(sidecar.wantedFor.map(({ code }) => code)).to.deep.equal(['interlink-missing']);
    expect(sidecar.wantedFor[0]?.message).to.match(
      /^9 jobs of Pods live, and \S+\/pods has no files of these/,
    );
    expect(await stateOf(kept)).to.have.property('running');
    for (const { metadata } of lost) metadata.annotations = { JobID: '1.0' };
    expect((await ask('/status', [lost[0]])).status).to.equal(500);

    // Most of them end, and one is left.
    const [last, gone, ...others] = lost as [TestPod, TestPod, ...TestPod[]];
    await sidecar.tell(
      others.map(({ metadata: { uid } }) => uid),
      { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 },
    );
    expect((await remove(gone)).status).to.equal(200);
    await sidecar.tell(gone.metadata.uid, {});
    await sidecar.tell(last.metadata.uid, { status: 'running' });
    expect(jobsOf([gone])).to.deep.equal(new Set(['cancelled']));
    expect(jobsOf([last, kept])).to.deep.equal(new Set(['running']));
    expect(left()).to.have.length(1);
    await sidecar.tell(last.metadata.uid, { status: 'finished', exitCode: 0, startTime: 0, endTime: 1 });
    await sidecar.pass();
    expect(sidecar.wantedFor).to.deep.equal([]);
  });

  describe('whose database was lost', () => {
    /** The next daemon knows no job. */
    async function loseDatabase(): Promise<void> {
      await sidecar.stop();
      sidecar = new SidecarUnderTest(root);
      app = await sidecar.start();
    }

    /** @returns how it ends */
    async function ended(pod: TestPod) {
      const { uid } = pod.metadata;
      await until('its job is given up', async () => {
        await sidecar.pass();
        return sidecar.jobs.get(uid)?.status;
      });
      expect(sidecar.wanted).to.deep.equal([]);
      expect(sidecar.jobs.get(uid)?.status).to.equal('withdrawn');
      await sidecar.tell(uid, {});
      return until('it has ended', async () => (await stateOf(pod))?.terminated);
    }

    const lost = 'interlink-job-lost: the database does not know the job of this Pod any more';

    it('does not run a second time: it ended while no daemon ran, and ends as its report says', async () => {
      const pod = await running();
      report(pod, { state: 'terminated', exitCode: 0 });
      await loseDatabase();
      expect(await ended(pod)).to.include({ exitCode: 0 });
      expect(await create(pod)).to.deep.include({ status: 200 });
    });

    it('does not run a second time where its job left nothing: it is lost then', async () => {
      const pod = await running();
      await loseDatabase();
      const { exitCode, reason, message } = await ended(pod);
      expect([exitCode, reason]).to.deep.equal([137, 'ContainerStatusUnknown']);
      expect(message).to.include(lost);
      expect(sidecar.logged).to.deep.include({
        pod: pod.metadata.uid,
        job: '1.0',
        code: 'interlink-job-lost',
      });
    });

    it('does not run a second time where an earlier version wrote its file, and its job has left something', async () => {
      const pod = await running();
      await sidecar.stop();
      const file = join(root, 'pods', `${pod.metadata.uid}.json`);
      const record = JSON.parse(readFileSync(file, 'utf8')) as object;
      const data = { pod, container: null, jobConfig: {} };
      writeFileSync(file, JSON.stringify({ ...record, job: undefined, data }));
      writeFileSync(join(root, 'output', pod.metadata.uid, 'job.err'), '');
      await loseDatabase();
      expect((await ended(pod)).message).to.include(lost);
    });

    it('has the job that the listing of its backend finds, and is not given up before that', async () => {
      const pod = await running();
      const before = [...sidecar.jobs];
      await sidecar.stop();
      sidecar = new SidecarUnderTest(root);
      sidecar.reasons = [{ code: 'not-listed', message: 'the schedd is being listed' }];
      app = await sidecar.start();
      for (let pass = 0; pass < 3; pass++) await sidecar.pass();
      const message = 'its job is looked for, since the database does not know it';
      expect(await stateOf(pod)).to.deep.equal({ waiting: { reason: 'ContainerCreating', message } });
      expect((await create(pod)).text).to.include('"PodJID":"1.0"');
      // Such a word stands in the place of the one before it.
      sidecar.reasons = [{ code: 'paused', message: 'paused' }];
      await sidecar.pass();
      for (const [uid, job] of before) sidecar.jobs.set(uid, job);
      sidecar.reasons = [];
      await sidecar.pass();
      await until('it runs', async () => (await stateOf(pod))?.running);
      expect([sidecar.jobs.get(pod.metadata.uid)?.status, sidecar.wanted]).to.deep.equal(['running', []]);
    });

    it('gets its job where it had none', async () => {
      sidecar.submits = false;
      const pod = newPod();
      const first = create(pod);
      await until('it is accepted', () => records().length === 1);
      // A kill leaves its file as it is: a stop would refuse it.
      const file = join(root, 'pods', `${pod.metadata.uid}.json`);
      const text = readFileSync(file);
      await sidecar.stop();
      await first;
      mkdirSync(join(root, 'output', pod.metadata.uid), { recursive: true });
      writeFileSync(file, text);
      sidecar = new SidecarUnderTest(root);
      app = await sidecar.start();
      await until('it has its job', async () => {
        await sidecar.pass();
        return sidecar.jobs.get(pod.metadata.uid)?.batchId;
      });
    });

    it('has no Secrets in its file any more, and the id of its job, as soon as it has a job', async () => {
      const pod = await running();
      const file = join(root, 'pods', `${pod.metadata.uid}.json`);
      const record = () => JSON.parse(readFileSync(file, 'utf8')) as object;
      await until('that is written down', () => 'job' in record());
      expect(record()).to.include({ job: '1.0' }).and.not.to.have.property('data');
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

  it('that ended is kept from when its end was heard, whatever the clock of the schedd says, also after a restart', async () => {
    const day = 86_400_000;
    const keep = 7 * day;
    await sidecar.stop();
    await begin(root, keep);
    const [first, ...later] = [await running(), await running(), await running()];
    const end = async (pod: TestPod, endTime: number) => {
      report(pod, { state: 'terminated', exitCode: 0 });
      await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 1, endTime });
      const file = join(root, 'pods', `${pod.metadata.uid}.json`);
      await until('its end is written down', () => readFileSync(file, 'utf8').includes('"end":'));
    };
    await end(first, Date.now() + 9 * day);
    sidecar.passed = day;
    await end(later[0], Date.now() - 9 * day);
    await end(later[1], 5000);
    sidecar.passed = 7.5 * day;
    await until('the first is forgotten', () => isGone(first));
    for (const pod of later) expect((await stateOf(pod))?.terminated?.exitCode).to.equal(0);

    await sidecar.stop();
    const jobs = [...sidecar.jobs];
    sidecar = new SidecarUnderTest(root, plainPlanner, 5000, keep);
    for (const [uid, job] of jobs) sidecar.jobs.set(uid, job);
    sidecar.ahead = 8.5 * day;
    app = await sidecar.start();
    await until('the others are forgotten', () => later.every(isGone));
  });

  it('that ended is not forgotten because the clock jumps ahead, before so long has passed', async () => {
    const day = 86_400_000;
    await sidecar.stop();
    await begin(root, 7 * day);
    const pod = await running();
    const end = { status: 'finished', exitCode: 0, startTime: 1, endTime: 5000 } as const;
    report(pod, { state: 'terminated', exitCode: 0 });
    await sidecar.tell(pod.metadata.uid, end);
    const file = join(root, 'pods', `${pod.metadata.uid}.json`);
    await until('its end is written down', () => readFileSync(file, 'utf8').includes('"end":'));
    const looks = async () => {
      const { askedTime } = sidecar;
      await until('it was looked at', () => sidecar.askedTime > askedTime + 5);
    };
    await looks();
    sidecar.ahead = 8 * day;
    await looks();
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(0);
    sidecar.passed = 8 * day;
    await until('it is forgotten', () => isGone(pod));
  });

  it('whose file of an earlier version does not say when its end was heard is kept from the first start, and not anew from each', async () => {
    const day = 86_400_000;
    const pod = await running();
    const file = join(root, 'pods', `${pod.metadata.uid}.json`);
    report(pod, { state: 'terminated', exitCode: 0 });
    await sidecar.tell(pod.metadata.uid, { status: 'finished', exitCode: 0, startTime: 1, endTime: 5000 });
    await until('its end is written down', () => readFileSync(file, 'utf8').includes('"end":'));
    await sidecar.stop();
    const jobs = [...sidecar.jobs];
    const record = JSON.parse(readFileSync(file, 'utf8')) as object;
    expect(record).to.have.property('heardAt');
    writeFileSync(file, JSON.stringify({ ...record, heardAt: undefined }));
    const start = async (ahead: number) => {
      sidecar = new SidecarUnderTest(root, plainPlanner, 5000, 7 * day);
      for (const [uid, job] of jobs) sidecar.jobs.set(uid, job);
      sidecar.ahead = ahead;
      app = await sidecar.start();
    };
    await start(20 * day);
    await until('that is noted', () => readFileSync(file, 'utf8').includes('"heardAt":'));
    expect((await stateOf(pod))?.terminated?.exitCode).to.equal(0);
    await sidecar.stop();
    await start(27.5 * day);
    await until('it is forgotten', () => isGone(pod));
  });

  it('whose job could not be written down at its first news is written down at a later look', async () => {
    const pod = newPod();
    const { files } = sidecar.book;
    const save = files.save.bind(files);
    let failures = 0;
    files.save = (record) => {
      if (record.job === undefined || failures > 0) return save(record);
      failures++;
      return Promise.reject(new Error('no space left on device'));
    };
    await create(pod);
    await until('its first record failed', () => failures > 0);
    const file = join(root, 'pods', `${pod.metadata.uid}.json`);
    await until('it is written down', () => readFileSync(file, 'utf8').includes('"job":"1.0"'));
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
    const record = JSON.parse(readFileSync(file(pod), 'utf8')) as object;
    const data = { pod: jobless, container: null, jobConfig: {} };
    writeFileSync(
      file(jobless),
      JSON.stringify({ ...record, job: undefined, uid: jobless.metadata.uid, data }),
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
    await sidecar.book.marked();
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
