/** The operator in this process, with its real database and a server that counts: promises about numbers of requests. */
import { expect } from 'chai';
import { SourceDesk } from '../../../src/agents/sources/desk.ts';
import type { HtcJob } from '../../../src/clients/htcjob/resource.ts';
import { HtcJobOptions, type HtcJobQueueOptions } from '../../../src/clients/htcjob/options.ts';
import type { SourceHttpAnswer, SourceQueue } from '../../../src/plugins/contracts/index.ts';
import { ImageJobs } from '../../../src/sources/htcjob/job/image-jobs.ts';
import { tokenOf } from '../../../src/sources/htcjob/job/token.ts';
import { HtcJobOperator, type OutputOptions } from '../../../src/sources/htcjob/operator.ts';
import { OutputPlace } from '../../../src/sources/htcjob/output/place.ts';
import { defaultsOf } from '../../../src/util/schema-defaults.ts';
import { nextTurn } from '../../../src/util/clock.ts';
import type { Reason } from '../../../src/worker/reason.ts';
import { KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import { isFinal, type WorkerStatus } from '../../../src/worker/status.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { HtcJobServer } from '../../support/htcjob-server.ts';
import { newsOf } from '../../support/htcjob-stepper.ts';
import { memoryOf } from '../../support/source-memory.ts';
import { requirements, workerOf, ownQueue } from '../../support/samples.ts';

const key = Buffer.alloc(48, 7);
const queue: SourceQueue<HtcJobQueueOptions> = {
  name: 'Q',
  requirements,
  own: true,
  options: { namespaces: [] },
  mapType: 'NoJob',
  runMode: 'self',
};

describe('the operator of HTCJobs', () => {
  let parts: AgentParts;
  let server: HtcJobServer;
  let operator: HtcJobOperator;
  let stop: AbortController;
  let running: Promise<void>;
  let lastId: number;
  let memory: ReturnType<typeof memoryOf>;
  /** Workers whose end a monitor is to look for. */
  let expected: number[];
  /** Why jobs may live that the database does not have. */
  let unlisted: Reason | undefined;

  beforeEach(async () => {
    unlisted = undefined;
    parts = await AgentParts.open();
    parts.store.news.listen(new Set(['htcjob']));
    server = new HtcJobServer();
    lastId = 0;
    memory = memoryOf(new Map());
    expected = [];
    parts.events.on('endsExpected', ({ workerIds }) => expected.push(...workerIds));
    start();
  });
  afterEach(async () => {
    await end();
    await parts[Symbol.asyncDispose]();
  });

  function start(namespaces: string[] = [], outputs?: OutputOptions): void {
    const { clock, log } = parts;
    const maker = new ImageJobs({ binds: [], runtime: 'none', events: undefined });
    const host = { factoryId: 'factory', clock, random: () => 0.5, log, memory };
    const options = { ...defaultsOf(HtcJobOptions)(), namespaces };
    operator = new HtcJobOperator(options, server, maker, host, key, outputs);
    stop = new AbortController();
    const desk = new SourceDesk('htcjob', {
      ...parts.context,
      queues: () => ['Q'],
      queuesOf: () => [ownQueue('Q', queue)],
      reasonsOf: () => [],
      unlistedOf: () => unlisted,
      wakeSubmitter: () => undefined,
      logsOf: () => Promise.reject(new Error('none')),
      outputsOf: () => Promise.reject(new Error('none')),
    });
    running = operator.run(desk, stop.signal);
  }

  async function end(): Promise<void> {
    stop.abort();
    await running;
  }

  /** Lets time go by in small steps until it holds. */
  async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    for (let turn = 0; turn < 2000; turn++) {
      if (await holds()) return;
      await parts.clock.advance(50);
    }
    const tail = parts.log.lines.slice(-5).map(({ message, facts }) => `${message} ${JSON.stringify(facts)}`);
    throw new Error(
      `in vain waited for: ${what}; asked: ${server.asked.slice(-5).join()}; the log: ${tail.join('; ')}`,
    );
  }

  /** Gives so many workers, as a queue without limits would. */
  async function serve(count: number): Promise<void> {
    await until(`${count} jobs are asked for`, async () => {
      const { requests } = await operator.wanted(queue);
      return requests.length >= count;
    });
    const { requests } = await operator.wanted(queue);
    const workers = requests.map(({ origin }) =>
      workerOf(++lastId, { origin: { kind: 'htcjob', ...origin } }),
    );
    await parts.ledger.intend(workers);
    await tell();
    await change(
      workers.map(({ workerId }) => workerId),
      'submitted',
    );
  }

  async function change(workerIds: readonly number[], to: WorkerStatus): Promise<void> {
    await parts.ledger.change(
      workerIds.map((workerId) => ({
        workerId,
        to,
        source: 'test',
        ...(to === 'submitted' && {
          handle: JSON.stringify({ batchID: `1.${workerId}` }),
          batchId: `1.${workerId}`,
        }),
        ...(isFinal(to) && { exitCode: 0, endTime: parts.clock.now() }),
      })),
    );
    await tell();
  }

  async function tell(): Promise<void> {
    for (;;) {
      const news = await parts.store.news.next('htcjob', 1000);
      const last = news.at(-1);
      if (last === undefined) return;
      await operator.told(news);
      await parts.store.news.taken('htcjob', last.sequence);
    }
  }

  const statusOf = (name: string) => server.objects.get(name)?.status;
  const untilStatus = (name: string, reason: string) =>
    until(`${name} is ${reason}`, () => statusOf(name)?.reason === reason);

  for (const namespaces of [[], ['default']])
    it(`lets no deleted HTCJob go before the jobs that a lost database had, with namespaces ${JSON.stringify(namespaces)}`, async () => {
      server.add(htcJob());
      await serve(1);
      await change([1], 'running');
      await untilStatus('zero', 'Running');
      const origin = (await parts.store.workers.byId(1))?.origin;
      await end();
      await parts[Symbol.asyncDispose]();
      parts = await AgentParts.open();
      parts.store.news.listen(new Set(['htcjob']));
      const had = server.objects.get('zero')!;
      const deletionTimestamp = new Date(parts.clock.now()).toISOString();
      server.add({ ...had, metadata: { ...had.metadata, deletionTimestamp } });
      unlisted = { code: 'not-listed', message: 'the schedd is being listed' };
      start(namespaces);
      await untilStatus('zero', 'JobsUnknown');
      expect(server.objects.get('zero')?.metadata.finalizers).to.have.length(1);
      await parts.ledger.adopt([workerOf(1, { ...(origin && { origin }) })], 'submitted');
      unlisted = undefined;
      await tell();
      await until(
        'its job is ended',
        async () => (await parts.store.workers.byId(1))?.killReason === 'HTCJob default/zero was deleted',
      );
      expect(server.objects.get('zero')?.metadata.finalizers).to.have.length(1);
      await change([1], 'cancelled');
      await parts.ledger.markSwept([1]);
      await until('it goes', () => (server.objects.get('zero')?.metadata.finalizers ?? []).length === 0);
    });

  describe('of deleted HTCJobs', () => {
    const isFreed = (name: string) => server.objects.get(name)?.metadata.finalizers?.length === 0;

    /** A finished one, which was deleted. */
    function addDeleted(name: string): void {
      const job = htcJob({ output: {} }, name);
      const metadata = {
        ...job.metadata,
        finalizers: ['finalizer.htc.cern.ch'],
        deletionTimestamp: '2026-01-01T00:00:00Z',
      };
      const { uid } = job.metadata;
      const counts = {
        active: 0,
        held: 0,
        succeeded: 1,
        failed: 0,
        completedIndexes: '0',
        outputIndexes: '0',
      };
      const completionTime = '2026-01-01T00:00:00Z';
      server.add({
        ...job,
        metadata,
        status: { uniqId: uid, factory: 'factory', ...counts, completionTime },
      });
    }

    it('removes the outputs of few at a time, and keeps no other HTCJob waiting for that, also after a restart', async () => {
      let removals = 0;
      let isAway = true;
      const over = Promise.withResolvers<undefined>();
      const onFiles: OutputOptions['onFiles'] = (_, work) => work();
      const place = Object.assign(new OutputPlace('/nowhere', onFiles), {
        remove: async () => {
          removals++;
          if (isAway) await over.promise;
        },
      });
      const outputs = { place, onFiles, bounds: { bytes: 1000, files: 10 } };
      await end();
      start([], outputs);
      const names = Array.from({ length: 30 }, (_, nth) => `deleted-${nth}`);
      for (const name of names) addDeleted(name);
      await until('outputs are being removed', () => removals > 0);
      await operator.wanted(queue);
      server.add(htcJob({}, 'other'));
      await until('the other one has its finalizer', () => server.count('PATCH other') > 0);
      const whyOf = (name: string) =>
        statusOf(name)?.conditions?.find(({ type }) => type === 'Deleting')?.message ?? '';
      await until('all say what they wait for', () =>
        names.every((name) => whyOf(name).includes('they are being removed')),
      );
      expect([removals, names.some(isFreed)]).to.deep.equal([2, false]);
      stop.abort();
      over.resolve(undefined);
      await running;
      isAway = false;
      start([], outputs);
      await until('all go', () => names.every(isFreed));
    });

    it('says so where its server finds conflicts without end, and asks ever less often', async () => {
      const patch = server.patch.bind(server);
      let isOther = true;
      server.patch = async (path, ...rest) => {
        if (isOther && path.endsWith('/htcjobs/contested'))
          throw new KubernetesError({ code: 'kubernetes-conflict', message: 'conflict', maybeDone: false });
        return patch(path, ...rest);
      };
      const told = () => parts.log.lines.filter(({ message }) => message === 'HTCJob not brought on');
      addDeleted('contested');
      await until('it is read', () => server.count('GET contested') > 0);
      await parts.clock.advance(120_000);
      expect(server.count('GET contested')).to.be.within(20, 40);
      expect(told().length).to.be.within(15, 30);
      expect(told()[0]?.facts).to.include({ htcjob: 'default/contested', code: 'kubernetes-conflict' });
      const condition = statusOf('contested')?.conditions?.find(({ type }) => type === 'Deleting');
      expect(condition).to.include({ reason: 'FinalizerLeft' });
      isOther = false;
      await until('it goes', () => isFreed('contested'));
    });

    it('says nothing of a few conflicts with another writer', async () => {
      const patch = server.patch.bind(server);
      let left = 3;
      server.patch = async (path, ...rest) => {
        if (path.endsWith('/htcjobs/contested') && left-- > 0)
          throw new KubernetesError({ code: 'kubernetes-conflict', message: 'conflict', maybeDone: false });
        return patch(path, ...rest);
      };
      addDeleted('contested');
      await until('it goes', () => isFreed('contested'));
      expect(parts.log.lines.filter(({ level }) => level === 'warn')).to.deep.equal([]);
    });
  });

  it('leaves out an object that does not say which HTCJob it is, and runs the others', async () => {
    const odd = { ...htcJob({}, 'odd'), metadata: null } as unknown as HtcJob;
    await end();
    server.objects.set('odd', odd);
    server.add(htcJob());
    start();
    await serve(1);
    await until('its job is submitted', () => server.objects.get('zero')?.status?.active === 1);
  });

  it('brings a job from its creation to its end with five changes of the resource', async () => {
    server.add(htcJob());
    await serve(1);
    await untilStatus('zero', 'Submitted');
    await change([1], 'idle');
    await change([1], 'running');
    await untilStatus('zero', 'Running');
    await change([1], 'finished');
    await untilStatus('zero', 'Succeeded');
    await parts.clock.advance(60_000);
    expect(server.asked.filter((one) => one.startsWith('PATCH'))).to.deep.equal([
      'PATCH zero',
      'PATCH zero/status',
      'PATCH zero/status',
      'PATCH zero/status',
      'PATCH zero/status',
    ]);
    expect(statusOf('zero')).to.include({ active: 0, succeeded: 1, failed: 0 });
  });

  for (const [what, version] of [
    ['with the versions of then', 3],
    ['with higher versions than ever (`--bump-revision`)', 1_000_000],
  ] as const)
    it(`writes the status again where the etcd of the server was restored to an earlier state: ${what}`, async () => {
      server.add(htcJob());
      const snapshot = new Map(server.objects);
      await serve(1);
      await change([1], 'running');
      await untilStatus('zero', 'Running');
      server.restore(snapshot, version);
      await untilStatus('zero', 'Running');
      await change([1], 'finished');
      await untilStatus('zero', 'Succeeded');
      expect(statusOf('zero')).to.include({ succeeded: 1, active: 0 });
      expect(lastId).to.equal(1);
      // Its watch ended once.
      expect(
        parts.log.lines.filter(({ message }) => message === 'HTCJobs cannot be followed'),
      ).to.have.length(1);
    });

  describe('whose server does not have one any more', () => {
    const killTime = async () => (await parts.store.workers.byId(1))?.killTime ?? null;
    const settle = async () => {
      for (let turn = 0; turn < 1000; turn++) await parts.clock.advance(50);
    };

    beforeEach(async () => {
      server.add(htcJob());
      await serve(1);
      await change([1], 'running');
      await untilStatus('zero', 'Running');
    });

    for (const [what, version] of [
      ['with the versions of then', 3],
      ['with higher versions than ever, or another server at the same address', 1_000_000],
    ] as const)
      it(`hole 6: ends no job of it after a restore of etcd to a time before it, nor after the next start: ${what}`, async () => {
        const had = server.objects.get('zero')!;
        server.restore(new Map(), version);
        await until('it is missed', () =>
          parts.log.lines.some(({ message }) =>
            message.startsWith('HTCJobs are missing that nobody deleted'),
          ),
        );
        await change([1], 'idle');
        await settle();
        expect(await killTime()).to.equal(null);
        await end();
        start();
        await change([1], 'running');
        await settle();
        expect(await killTime()).to.equal(null);
        // It comes back with the state that it had.
        server.add(had);
        await change([1], 'idle');
        await until('its status is of now', () => statusOf('zero')?.reason === 'Submitted');
        server.remove('zero');
        await until('its job is ended', async () => (await killTime()) !== null);
      });

    describe('after a restore of etcd to a time before it while no daemon ran', () => {
      beforeEach(async () => {
        await end();
        const { lease } = server;
        const renewTime = new Date(parts.clock.now() - 3_600_000).toISOString();
        server.lease = { ...lease, spec: { ...(lease as { spec: object }).spec, renewTime } } as never;
        server.restore(new Map(), 3);
      });
      const isMissed = () =>
        until('the job is missed', () =>
          parts.log.lines.some(({ message }) => message.startsWith('jobs run on whose HTCJobs')),
        );

      it('hole 6: ends no job of it', async () => {
        for (let starts = 0; starts < 2; starts++) {
          start();
          await isMissed();
          await settle();
          expect(await killTime()).to.equal(null);
          await end();
          parts.log.lines.length = 0;
        }
        start();
      });

      it('hole 6: ends no job of it where the answer to the first renewal of the Lease is lost', async () => {
        const patch = server.patch.bind(server);
        let losses = 1;
        server.patch = async (path, object, patchOptions) => {
          const answer = await patch(path, object, patchOptions);
          if (path.includes('/leases/') && losses-- > 0) throw new Error('no answer');
          return answer;
        };
        start();
        await isMissed();
        await settle();
        expect([await killTime(), losses < 0]).to.deep.equal([null, true]);
      });

      it('hole 6: ends no job of it where the first daemon ends before it knows all', async () => {
        const list = server.list.bind(server);
        server.list = () => Promise.reject(new Error('the server is starting'));
        start();
        await until('the Lease is held', () =>
          parts.log.lines.some(({ message }) => message.startsWith('this daemon is the operator')),
        );
        await settle();
        await end();
        server.list = list;
        start();
        await isMissed();
        await settle();
        expect(await killTime()).to.equal(null);
      });
    });

    it('ends no job of it that a clock which ran ahead has dated, nor after a restart', async () => {
      const now = parts.clock.now.bind(parts.clock);
      parts.clock.now = () => now() + 7_200_000;
      server.add(htcJob({}, 'one'));
      await serve(1);
      await change([2], 'running');
      await untilStatus('one', 'Running');
      parts.clock.now = now;
      server.restore(new Map(), 3);
      await until('they are missed', () =>
        parts.log.lines.some(({ message }) => message.startsWith('HTCJobs are missing that nobody deleted')),
      );
      const killTimes = async () =>
        (await Promise.all([1, 2].map((id) => parts.store.workers.byId(id)))).map(
          (worker) => worker?.killTime ?? null,
        );
      await settle();
      await change([2], 'idle');
      await settle();
      expect(await killTimes()).to.deep.equal([null, null]);
      await end();
      start();
      await settle();
      await change([2], 'running');
      await settle();
      expect(await killTimes()).to.deep.equal([null, null]);
    });

    it('hole 6: ends no job of ours though another writer names another factory in its status', async () => {
      const had = server.objects.get('zero')!;
      server.add({ ...had, status: { ...had.status, factory: 'other' } });
      await settle();
      server.restore(new Map(), 1_000_000);
      await settle();
      await change([1], 'idle');
      await settle();
      expect(await killTime()).to.equal(null);
    });

    it('hole 6: takes no word of those that it never claimed, or that another factory has', async () => {
      server.add(htcJob({ suspend: true }, 'free'));
      const foreign = htcJob({}, 'foreign');
      server.add({ ...foreign, status: { uniqId: foreign.metadata.uid, factory: 'other' } });
      await settle();
      const [free, other] = ['free', 'foreign'].map((name) => server.objects.get(name)!);
      const left = [...server.objects].filter(([name]) => name === 'zero');
      expect([free, other]).to.not.include(undefined);
      server.restore(new Map(left), 1_000_000);
      await settle();
      expect(parts.log.lines.map(({ message }) => message)).not.to.include(
        'HTCJobs are missing that nobody deleted: their jobs run on, and their outputs stay',
      );
    });

    it('hole 6: ends its jobs where the watch says that it was deleted', async () => {
      server.remove('zero');
      await until('its job is ended', async () => (await killTime()) !== null);
    });
  });

  describe('beside which another object is odd', () => {
    const settle = async () => {
      for (let turn = 0; turn < 1000; turn++) await parts.clock.advance(50);
    };
    const killTime = async () => (await parts.store.workers.byId(1))?.killTime ?? null;

    beforeEach(async () => {
      server.add(htcJob());
      await serve(1);
      await change([1], 'running');
      await untilStatus('zero', 'Running');
    });

    it('is brought on though that one has nulls for its finalizers and the lists of its status', async () => {
      await end();
      const odd = htcJob({}, 'odd');
      server.objects.set('odd', {
        metadata: { ...odd.metadata, finalizers: null },
        spec: odd.spec,
        status: { conditions: [null], returnCodes: null, jobIds: null },
      } as never);
      start();
      await settle();
      await change([1], 'finished');
      await untilStatus('zero', 'Succeeded');
      expect((await operator.wanted(queue)).reasons).to.deep.equal([]);
      await until('the odd one is begun', () => statusOf('odd')?.uniqId === odd.metadata.uid);
    });

    it('runs on where its own deletionTimestamp is null', async () => {
      const had = server.objects.get('zero')!;
      server.add({ ...had, metadata: { ...had.metadata, deletionTimestamp: null } });
      await settle();
      expect(await killTime()).to.equal(null);
      expect(server.objects.get('zero')?.metadata.finalizers).to.include('finalizer.htc.cern.ch');
    });

    it('runs on where the watch alone says that it was deleted', async () => {
      const had = server.objects.get('zero')!;
      server.remove('zero');
      server.objects.set('zero', had);
      await until('it is asked for', () => server.count('GET zero') > 0);
      await settle();
      expect(await killTime()).to.equal(null);
      await change([1], 'finished');
      await untilStatus('zero', 'Succeeded');
    });
  });

  describe('while another operator holds the Lease that this factory held', () => {
    /** Another factory takes the Lease, and renews it each second of the test's clock. */
    async function takeLease(): Promise<void> {
      const { metadata } = server.lease!;
      server.lease = {
        metadata: { ...metadata, resourceVersion: '2' },
        spec: { holderIdentity: 'other', leaseDurationSeconds: 3600 },
      } as typeof server.lease;
      await until('it is seen', async () =>
        (await operator.wanted(queue)).reasons.some(({ code }) => code === 'htcjob-lease'),
      );
    }

    it('goes on with what it has claimed, also after a restart, and claims nothing', async () => {
      for (const name of ['ends', 'goes', 'again']) server.add(htcJob({ backoffLimit: 1 }, name));
      await serve(3);
      await change([1, 2, 3], 'running');
      for (const name of ['ends', 'goes', 'again']) await untilStatus(name, 'Running');
      await takeLease();
      server.add(htcJob({}, 'new'));
      const workers = await parts.store.workers.byIds([1, 2, 3]);
      const [ends, goes, again] = ['ends', 'goes', 'again'].map((name) => {
        const { uid } = server.objects.get(name)!.metadata;
        return workers.find(({ origin }) => origin.uid === uid)?.workerId;
      });
      await change([ends ?? 0], 'finished');
      await untilStatus('ends', 'Succeeded');
      await change([again ?? 0], 'failed');
      await until('its job is asked for again', async () => {
        const { requests } = await operator.wanted(queue);
        return requests.map(({ origin }) => origin.uid).join() === server.objects.get('again')?.metadata.uid;
      });
      await end();
      start();
      await takeLease();
      const had = server.objects.get('goes')!;
      server.add({ ...had, metadata: { ...had.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
      await until(
        'its job is ended',
        async () =>
          (await parts.store.workers.byId(goes ?? 0))?.killReason === 'HTCJob default/goes was deleted',
      );
      await change([goes ?? 0], 'cancelled');
      await parts.ledger.markSwept([goes ?? 0]);
      await until('it goes', () => server.objects.get('goes')?.metadata.finalizers?.length === 0);
      expect(server.objects.get('new')?.status, 'the holder claims it').to.equal(undefined);
      expect(server.objects.get('new')?.metadata.finalizers ?? []).to.deep.equal([]);
    });

    it('ends no job, and goes on with none, of a HTCJob whose status names no factory or another one', async () => {
      await until('the Lease is held', () => server.lease !== undefined);
      await takeLease();
      for (const factory of [undefined, 'other']) {
        const job = htcJob({}, `of-${factory ?? 'none'}`);
        const { uid } = job.metadata;
        const metadata = { ...job.metadata, finalizers: ['finalizer.htc.cern.ch'] };
        const deletionTimestamp = '2026-01-01T00:00:00Z';
        server.add({
          ...job,
          metadata: { ...metadata, deletionTimestamp },
          status: { uniqId: uid, ...(factory !== undefined && { factory }) },
        });
      }
      await parts.clock.advance(30_000);
      for (const name of ['of-none', 'of-other'])
        expect(server.objects.get(name)?.metadata.finalizers, name).to.have.length(1);
    });
  });

  it('writes the changes of a thousand jobs of one resource as few statuses', async () => {
    server.add(htcJob({ queue: 1000 }));
    await serve(1000);
    await untilStatus('zero', 'Submitted');
    const before = server.count('PATCH');
    const ids = Array.from({ length: 1000 }, (_, index) => index + 1);
    for (let first = 0; first < 1000; first += 10) {
      await change(ids.slice(first, first + 10), 'finished');
      await parts.clock.advance(5);
    }
    await untilStatus('zero', 'Succeeded');
    expect(server.count('PATCH') - before).to.be.at.most(5);
    expect(statusOf('zero')).to.include({ active: 0, succeeded: 1000 });
  });

  describe('hole 8: with long scripts', () => {
    const long = (name: string) =>
      htcJob({ script: { image: 'centos', command: 'sh', source: 'x'.repeat(1_000_000) } }, name);
    const never = new AbortController().signal;
    const asked = async (count: number) => {
      await until(
        `${count} are asked for`,
        async () => (await operator.wanted(queue)).requests.length === count,
      );
      return (await operator.wanted(queue)).requests;
    };

    it('brings the payloads of workers that are about to be made, in order and so many that they take 64 MiB', async () => {
      for (let at = 0; at < 70; at++) server.add(long(`j${at}`));
      const requests = await asked(70);
      expect(requests.filter(({ payload }) => payload !== undefined)).to.deep.equal([]);
      const brought = await operator.payloads(requests, never);
      expect(brought.size).to.equal(68);
      const [first] = requests;
      expect(brought.get(first!)?.files?.map(({ name }) => name)).to.include('script.sh');
      expect((await operator.payloads(requests.slice(68), never)).size).to.equal(2);
    });

    it('lets others have their turn while it brings thousands', async () => {
      server.add(htcJob({ queue: 3000 }, 'many'));
      const requests = await asked(3000);
      // Each look at the clock costs a millisecond of it.
      const monotonic = parts.clock.monotonic.bind(parts.clock);
      let looks = 0;
      parts.clock.monotonic = () => monotonic() + looks++;
      let [turns, isOver] = [0, false];
      const counting = (async () => {
        for (; !isOver; turns++) await nextTurn();
      })();
      const brought = await operator.payloads(requests, never);
      isOver = true;
      await counting;
      expect(brought.size).to.equal(3000);
      expect(turns).to.be.greaterThan(100);
    });

    it('brings none of one that is gone, or was changed, and asks for its jobs no more until it has looked', async () => {
      for (const name of ['gone', 'changed', 'there']) server.add(long(name));
      const requests = await asked(3);
      server.objects.delete('gone');
      const changed = server.objects.get('changed')!;
      const metadata = { ...changed.metadata, generation: 7, resourceVersion: '900' };
      server.objects.set('changed', { ...changed, metadata });
      const brought = await operator.payloads(requests, never);
      expect([...brought.keys()].map(({ origin: { uid } }) => uid)).to.deep.equal(['uid-of-there']);
      expect((await operator.wanted(queue)).requests.map(({ origin: { uid } }) => uid)).to.deep.equal([
        'uid-of-there',
      ]);
      await until('it is looked at again', async () => (await operator.wanted(queue)).requests.length === 2);
    });

    it('brings none that was not asked for, nor after the end of the operator', async () => {
      server.add(long('j'));
      const requests = await asked(1);
      const [request] = requests;
      expect((await operator.payloads([{ ...request! }], never)).size).to.equal(0);
      await end();
      expect((await operator.payloads(requests, never)).size).to.equal(0);
      start();
    });
  });

  it('hole 8: asks for 20,000 jobs at a time, and for all others as their turn comes', async () => {
    const count = 5;
    for (let at = 0; at < count; at++) server.add(htcJob({ queue: 10_000 }, `many-${at}`));
    const requests = async () => (await operator.wanted(queue)).requests;
    await until('all have been looked at', async () => (await requests()).length === 20_000 + count - 2);
    const served = new Map<string, number>();
    await until('all have workers', async () => {
      const some = (await requests()).slice(0, 10_000).map(({ origin }) => origin);
      expect((await requests()).length).to.be.at.most(20_000 + count);
      const news = some.map(({ uid, index }) => newsOf(uid, index, 'pending'));
      for (const { origin } of news) served.set(origin.uid, (served.get(origin.uid) ?? 0) + 1);
      await operator.told(news);
      await until('they ask for these no more', async () => {
        const asked = new Set((await requests()).map(({ origin }) => `${origin.uid} ${origin.index}`));
        return some.every(({ uid, index }) => !asked.has(`${uid} ${index}`));
      });
      return served.size === count && [...served.values()].every((one) => one === 10_000);
    });
  });

  it('gives a queue no request of a namespace that it takes no more', async () => {
    server.add(htcJob());
    await until('it is asked for', async () => (await operator.wanted(queue)).requests.length === 1);
    const other = { ...queue, options: { namespaces: ['another-party'] } };
    expect((await operator.wanted(other)).requests).to.deep.equal([]);
  });

  it('starts with 5,000 resources by one list: none of them costs a request, then or later', async () => {
    const names = Array.from({ length: 5000 }, (_, nth) => `job-${nth}`);
    const living = names.slice(0, 100);
    for (const name of living) server.add(htcJob({}, name));
    await serve(living.length);
    for (const name of living) await untilStatus(name, 'Submitted');
    await end();
    for (const name of names.slice(living.length)) server.add(finished(name));
    server.asked.length = 0;

    start();
    await operator.wanted(queue);
    await until('they are listed', async () => (await operator.wanted(queue)).reasons.length === 0);
    await parts.clock.advance(10_000);
    expect(server.asked).to.deep.equal(['LIST', 'WATCH']);
    const { leaseRequests } = server;
    await parts.clock.advance(600_000);
    expect(server.asked).to.deep.equal(['LIST', 'WATCH']);
    // Its Lease is read and renewed every 4 s.
    expect(server.leaseRequests - leaseRequests).to.be.at.most(302);

    await change([1, 2, 3], 'finished');
    await untilStatus('job-2', 'Succeeded');
    await until('all are written', () => server.count('PATCH') === 3);
    expect(parts.log.lines.filter(({ level }) => level === 'warn' || level === 'error')).to.deep.equal([]);
  });

  function finished(name: string): HtcJob {
    const at = '2025-12-31T23:00:00Z';
    const conditions = [
      { type: 'Complete', status: 'True', reason: 'Succeeded', message: '', lastTransitionTime: at },
    ] as const;
    const job = htcJob({}, name);
    const ended = { active: 0, succeeded: 1, failed: 0, held: 0, completedIndexes: '0', reason: 'Succeeded' };
    return {
      ...job,
      metadata: { ...job.metadata, finalizers: ['finalizer.htc.cern.ch'] },
      status: {
        ...ended,
        conditions,
        uniqId: job.metadata.uid,
        factory: 'factory',
        startTime: at,
        completionTime: at,
      },
    };
  }

  describe('events of jobs', () => {
    const uid = 'uid-of-zero';

    async function send(retcode: string, token = tokenOf(key, { uid, index: 0 })): Promise<SourceHttpAnswer> {
      const headers = {
        'content-type': 'application/json',
        'ce-specversion': '1.0',
        'ce-type': 'htcjob.cloudevent',
        'ce-source': 'cern.ch',
        'ce-id': 'a',
      };
      const body = Buffer.from(JSON.stringify({ uid, index: 0, retcode, token }));
      return operator.answer({ method: 'POST', path: 'cloudevents', headers, body });
    }

    beforeEach(async () => {
      server.add(htcJob());
      await serve(1);
      await change([1], 'running');
      await untilStatus('zero', 'Running');
    });

    it('make the monitor look for the end of this job, and change its state in no way', async () => {
      expect(await send('0')).to.deep.include({ status: 200, body: '{"result":"taken"}' });
      expect(expected).to.deep.equal([1]);
      await until('it is shown', () => statusOf('zero')?.returnCodes?.[0]?.reported === 0);
      expect(statusOf('zero')).to.include({ active: 1, succeeded: 0, reason: 'Running' });
    });

    it('have no effect when they are forged', async () => {
      expect((await send('0', 'forged')).status).to.equal(401);
      await parts.clock.advance(60_000);
      expect(expected).to.deep.equal([]);
      expect(statusOf('zero')?.returnCodes).to.deep.equal([]);
    });

    it('have no further effect when they come a thousand times', async () => {
      await send('0');
      await until('it is shown', () => statusOf('zero')?.returnCodes?.[0]?.reported === 0);
      const before = server.asked.length;
      for (let nth = 0; nth < 1000; nth++)
        expect((await send('0')).body).to.equal('{"result":"without effect"}');
      await parts.clock.advance(60_000);
      expect(expected).to.deep.equal([1]);
      expect(server.asked).to.have.length(before);
    });

    it('ask for no look once the job has ended', async () => {
      await change([1], 'finished');
      await send('0');
      expect(expected).to.deep.equal([]);
    });
  });
});
