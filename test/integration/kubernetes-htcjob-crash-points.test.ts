import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { FaultProxy, type Rule } from '../support/fault-proxy.ts';
import { htcJobSite } from '../support/htcjob-site.ts';
import { applyCrd, HtcJobs } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { toySteps } from '../support/toy-site.ts';
import { until } from '../support/until.ts';

/** The operator's writes of the life of one resource, in their order. */
const writes: readonly (readonly [what: string, rule: Omit<Rule, 'fault'>])[] = [
  ['the finalizer', { verb: 'patch', resource: 'htcjobs' }],
  ['the status before the jobs', { verb: 'patch', resource: 'htcjobs/status' }],
  ['the status with their ids', { verb: 'patch', resource: 'htcjobs/status', skip: 1 }],
];

describe('a HTCJob through SIGKILL of its operator', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let proxy: FaultProxy;
  let jobs: HtcJobs;
  let site: Site;

  before(async () => {
    plane = await controlPlane();
    await applyCrd(plane);
  });

  beforeEach(async () => {
    space = await plane.namespace('htcjob');
    proxy = await FaultProxy.inFrontOf(plane);
    jobs = new HtcJobs(space);
    site = htcJobSite(plane, space, {}, { server: proxy.url });
  });

  afterEach(async () => {
    await site.clean();
    await proxy[Symbol.asyncDispose]();
    await jobs.letGo();
    await space[Symbol.asyncDispose]();
  });

  const started = () => site.path('started');
  /** Numbers of the jobs, once for each time that one was started. */
  const starts = () =>
    existsSync(started()) ? readFileSync(started(), 'utf8').trim().split('\n').sort() : [];
  const create = () =>
    jobs.create('three', `echo "$1" >> ${started()}; while ! [ -e ${site.path('go')} ]; do sleep 0.1; done`, {
      queue: 3,
    });

  async function expectWhole(): Promise<void> {
    await jobs.until('three', 'is active', ({ active }) => active === 3);
    await until('each was started', () => starts().length >= 3);
    appendFileSync(site.path('go'), '');
    const ended = await jobs.until(
      'three',
      'has ended',
      ({ completionTime }) => completionTime !== undefined,
    );
    expect(ended).to.include({ active: 0, succeeded: 3, failed: 0 });
    expect(starts()).to.deep.equal(['0', '1', '2']);
    await jobs.delete('three');
    await jobs.untilGone('three');
    expect(site.liveProcesses()).to.equal(0);
  }

  for (const [what, rule] of writes)
    it(`has each job once, killed at the write of ${what}, which the server carries out late`, async () => {
      const release = Promise.withResolvers<undefined>();
      const fault = { kind: 'late', until: release.promise } as const;
      const injected = proxy.inject({ ...rule, times: 1, fault });
      const first = site.start();
      await create();
      await until('the write is on its way', () => injected.hits === 1);
      first.process.kill('SIGKILL');
      await first.ended;
      site.start();
      await jobs.until('three', 'is active', ({ active }) => active === 3);
      release.resolve(undefined);
      const late = () => proxy.requests.find((request) => request.fault === 'late');
      await until('the server has answered the late write', () => late()?.status !== undefined);
      // A late write is of an older version, and changes nothing.
      expect(late()?.status).to.equal(409);
      await expectWhole();
    });

  for (const [description, step] of toySteps)
    it(`has each job once, killed ${description}`, async () => {
      await create();
      const crashed = site.startCrashingAt(step);
      expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
      site.start();
      await expectWhole();
    });

  it('runs none of its ended jobs again where the database was lost', async () => {
    const daemon = site.start();
    await jobs.create('half', `echo "$1" >> ${started()}; test "$1" = 0 || sleep 1000`, { queue: 2 });
    await jobs.until('half', 'has half of its jobs ended', ({ succeeded, active }) => {
      return succeeded === 1 && active === 1;
    });
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    site.removeDatabase();
    site.start();
    await until(
      'the living job was adopted',
      async () => (await site.workers({ status: 'running' })).length === 1,
    );
    await jobs.until('half', 'has both again', ({ succeeded, active }) => succeeded === 1 && active === 1);
    expect(starts()).to.deep.equal(['0', '1']);
  });

  for (const [what, rule] of [['deletion', { verb: 'patch', resource: 'htcjobs', skip: 1 }]] as const)
    it(`is gone, and all its jobs with it, killed at the last write of its ${what}`, async () => {
      const release = Promise.withResolvers<undefined>();
      const injected = proxy.inject({ ...rule, times: 1, fault: { kind: 'late', until: release.promise } });
      const first = site.start();
      await create();
      await jobs.until('three', 'is active', ({ active }) => active === 3);
      await jobs.delete('three');
      await until('the write is on its way', () => injected.hits === 1);
      first.process.kill('SIGKILL');
      await first.ended;
      site.start();
      await jobs.untilGone('three');
      release.resolve(undefined);
      expect(site.liveProcesses()).to.equal(0);
      expect((await site.workers()).map(({ status }) => status)).to.deep.equal(Array(3).fill('cancelled'));
    });

  it('is deleted whole while it is submitted, and so are a hundred at once', async () => {
    site.start();
    const names = Array.from({ length: 100 }, (_, number) => `job-${number}`);
    await Promise.all(names.map((name) => jobs.create(name, 'sleep 1000')));
    await until('some were submitted', async () => (await site.workers()).length > 10);
    await Promise.all(names.map((name) => jobs.delete(name)));
    await until('all are gone', async () => (await jobs.list()).length === 0);
    await until('no job of them lives', () => site.liveProcesses() === 0);
    expect(new Set((await site.workers()).map(({ status }) => status))).to.deep.equal(new Set(['cancelled']));
  });
});
