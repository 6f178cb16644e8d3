/** The operator after a start, and after the loss of its Lease: no resource and no worker may be forgotten. */
import { expect } from 'chai';
import type { Desk, SourceQueue, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../../src/clients/kubernetes/objects.ts';
import { HtcJobOptions, type HtcJobQueueOptions } from '../../../src/clients/htcjob/options.ts';
import type { HtcJob, HtcJobSpec } from '../../../src/clients/htcjob/resource.ts';
import { ImageJobs } from '../../../src/sources/htcjob/job/image-jobs.ts';
import { HtcJobOperator } from '../../../src/sources/htcjob/operator.ts';
import { defaultsOf } from '../../../src/util/schema-defaults.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { HtcJobServer } from '../../support/htcjob-server.ts';
import { newsOf } from '../../support/htcjob-stepper.ts';
import { memoryOf } from '../../support/source-memory.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog, requirements, ownQueue } from '../../support/samples.ts';

const queue: SourceQueue<HtcJobQueueOptions> = {
  name: 'Q',
  requirements,
  own: true,
  options: { namespaces: [] },
  mapType: 'NoJob',
  runMode: 'self',
};

describe('the operator of HTCJobs after a start', () => {
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let server: HtcJobServer;
  let operator: HtcJobOperator;
  let living: WorkerNews[];
  let ended: string[];
  let remembered: Map<string, string>;
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    log = recordingLog();
    server = new HtcJobServer();
    living = [];
    ended = [];
    remembered = new Map();
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  function start(): void {
    const maker = new ImageJobs({ binds: [], runtime: 'none', events: undefined });
    const host = { factoryId: 'factory', clock, random: () => 0.5, log, memory: memoryOf(remembered) };
    operator = new HtcJobOperator(defaultsOf(HtcJobOptions)(), server, maker, host);
    const desk = {
      wake: () => undefined,
      end: async (origins, why) => {
        for (const { uid, index } of origins) ended.push(`${uid} ${index}: ${why}`);
      },
      discard: async () => 0,
      find: async (filters) => living.filter(({ origin }) => filters.some(({ uid }) => uid === origin.uid)),
      living: async () => living,
      reasons: () => [],
      unlisted: () => undefined,
      queues: () => ['Q'],
      ownQueues: () => [ownQueue('Q', queue)],
    } satisfies Partial<Desk>;
    stop = new AbortController();
    running = operator.run(desk as unknown as Desk, stop.signal);
  }

  async function until(what: string, holds: () => boolean): Promise<void> {
    for (let turn = 0; turn < 1000 && !holds(); turn++) await clock.advance(20);
    expect(holds(), what).to.equal(true);
  }

  function finished(name: string, spec: Partial<HtcJobSpec> = {}, isDeleting = false): HtcJob {
    const job = htcJob(spec, name);
    const metadata = {
      ...job.metadata,
      finalizers: ['finalizer.htc.cern.ch'],
      ...(isDeleting && { deletionTimestamp: '2025-12-31T23:00:00Z' }),
    };
    const at = '2025-12-31T22:00:00Z';
    const ended = { active: 0, succeeded: 1, failed: 0, held: 0, completedIndexes: '0' };
    const whose = { uniqId: metadata.uid, factory: 'factory' };
    return { ...job, metadata, status: { ...ended, ...whose, startTime: at, completionTime: at } };
  }

  it('lets go of finished ones that were deleted or outlived their time while it was down', async () => {
    server.add(finished('deleted', {}, true));
    server.add(finished('old', { ttlSecondsAfterFinished: 60 }));
    server.add(finished('kept'));
    // The list is there before the Lease.
    server.leaseDelay = Promise.withResolvers<undefined>();
    start();
    await until('they are listed', () => server.count('WATCH') === 1);
    await clock.advance(5000);
    expect(server.asked).to.deep.equal(['LIST', 'WATCH']);
    server.leaseDelay.resolve(undefined);
    await until('both go', () => server.count('PATCH deleted') === 1 && server.count('DELETE old') === 1);
    expect(server.asked.filter((one) => one.includes('kept'))).to.deep.equal([]);
  });

  it('ends workers whose HTCJob went, or ended, while it was down, and news of them came too early', async () => {
    living = [
      newsOf('uid-of-gone', 3, 'running'),
      newsOf('uid-of-over', 1, 'running'),
      newsOf('uid-of-live', 0, 'running'),
    ];
    server.add(finished('over'));
    const live = htcJob({}, 'live');
    const status = { uniqId: live.metadata.uid, factory: 'factory' };
    server.add({ ...live, status });
    server.lease = {
      metadata: { resourceVersion: '1' },
      spec: { holderIdentity: 'factory' },
    } as KubernetesObject;
    server.leaseDelay = Promise.withResolvers<undefined>();
    start();
    await until('they are listed', () => server.count('WATCH') === 1);
    await operator.told(living);
    expect(ended).to.deep.equal([]);
    server.leaseDelay.resolve(undefined);
    await until('one ends', () => ended.length === 1);
    // Nothing says the name of the other: the next list is to be without it, too.
    await clock.advance(60_000);
    await until('both end', () => ended.length >= 2);
    await clock.advance(60_000);
    expect(ended.toSorted()).to.deep.equal([
      'uid-of-gone 3: its HTCJob is gone',
      'uid-of-over 1: HTCJob default/over has ended',
    ]);
  });

  it('ends no worker in a cluster where it has not worked before: its settings may name a wrong one', async () => {
    living = [newsOf('uid-of-gone', 3, 'running')];
    start();
    const message = 'jobs run on whose HTCJobs are not in this cluster';
    await until('it is said', () => log.lines.some((line) => line.message === message));
    await operator.told(living);
    await clock.advance(60_000);
    expect(ended).to.deep.equal([]);
    // Nor by the Lease that it made there.
    stop.abort();
    await running;
    start();
    await until('it is said again', () => log.lines.filter((line) => line.message === message).length === 2);
    await operator.told(living);
    await clock.advance(60_000);
    expect(ended).to.deep.equal([]);
    const [{ worker }] = living as [WorkerNews];
    living = [
      {
        ...newsOf('made-here', 0, 'running'),
        worker: { ...worker, creationTime: clock.now(), submitTime: null },
      },
    ];
    await operator.told(living);
    await clock.advance(60_000);
    await until('it ends', () => ended.length > 0);
    expect(ended).to.deep.equal(['made-here 0: its HTCJob is gone']);
  });

  it('ends no worker of a cluster that it comes back to, and those of that cluster alone', async () => {
    const madeAt = (uid: string, creationTime: number) => {
      const news = newsOf(uid, 0, 'running');
      return { ...news, worker: { ...news.worker, creationTime, submitTime: creationTime } };
    };
    const run = async (lease: string) => {
      server.lease = {
        metadata: { uid: lease, resourceVersion: '1' },
        spec: { holderIdentity: 'factory' },
      } as KubernetesObject;
      start();
      await until('it is the operator', () => remembered.get('leases.json')?.includes(lease) === true);
      await clock.advance(60_000);
      const made = madeAt(`of-${lease}-${clock.now()}`, clock.now());
      await clock.advance(60_000);
      stop.abort();
      await running;
      return made;
    };
    const first = await run('a');
    const second = await run('b');
    const third = await run('a');
    living = [first, second, third];
    await run('a');
    const gone = [first, third].map(({ origin: { uid } }) => `${uid} 0: its HTCJob is gone`);
    expect(ended).to.have.members(gone);
  });

  it('tells no one that no queue takes them before the queues were asked', async () => {
    server.add(htcJob());
    start();
    await until('its status is written', () => server.count('PATCH zero/status') > 0);
    await clock.advance(20_000);
    expect(server.objects.get('zero')?.status).to.include({ reason: 'Pending' });
    expect(server.count('EVENT')).to.equal(0);
    await operator.wanted(queue);
    let count = 0;
    for (let turn = 0; turn < 100 && count === 0; turn++) {
      await clock.advance(20);
      count = (await operator.wanted(queue)).requests.length;
    }
    expect(count).to.equal(1);
  });

  it('looks at a waiting one at once when its queue begins to take its namespace', async () => {
    server.add(htcJob());
    start();
    await operator.wanted({ ...queue, options: { namespaces: ['elsewhere'] } });
    const reason = () => server.objects.get('zero')?.status?.reason;
    await until('it waits', () => reason() === 'HtcjobNamespace');
    await operator.wanted(queue);
    await clock.advance(1000);
    expect(reason()).to.equal('Pending');
  });

  it('goes on after an object that is no HTCJob', async () => {
    server.add({ ...htcJob({}, 'strange'), spec: { name: 'strange' } } as unknown as HtcJob);
    server.add(htcJob());
    start();
    await operator.wanted(queue);
    await until('the other is asked for', () => server.objects.get('zero')?.status?.uniqId !== undefined);
    const warnings = log.lines.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ facts }) => facts)).to.deep.equal([
      { htcjob: 'default/strange', why: 'spec.script.source is no text; write the script there' },
    ]);
  });

  describe('whose list is without HTCJobs whose jobs live', () => {
    const finalizers = ['finalizer.htc.cern.ch'];
    const gets = () => server.asked.filter((one) => one.startsWith('GET')).toSorted();
    const says = (message: string) => log.lines.some((line) => line.message.startsWith(message));

    /** One job of each lives, and its daemon has stopped. */
    async function run(names: readonly string[]): Promise<void> {
      for (const name of names) {
        const job = htcJob({}, name);
        const metadata = { ...job.metadata, namespace: `ns-${name}`, finalizers };
        server.add({ ...job, metadata, status: { uniqId: metadata.uid, factory: 'factory', active: 1 } });
      }
      start();
      await until('they are listed', () => server.count('WATCH') === 1);
      await clock.advance(60_000);
      await until('their names are written down', () => remembered.has('names.json'));
      living = names.map((name) => {
        const news = newsOf(`uid-of-${name}`, 0, 'running');
        const at = { creationTime: clock.now(), submitTime: clock.now() };
        return { ...news, worker: { ...news.worker, ...at } };
      });
      await clock.advance(5000);
      stop.abort();
      await running;
      await clock.advance(10_000);
      server.asked.length = 0;
      expect(ended).to.deep.equal([]);
    }

    /** The next list is without these. */
    function lose(isLost: (name: string) => boolean): void {
      const list = server.list.bind(server);
      let isNext = true;
      server.list = (path, options, record) => {
        const isWrong = isNext;
        isNext = false;
        return list(path, options, (object) =>
          isWrong && isLost(object.metadata?.name ?? '') ? undefined : record(object),
        );
      };
    }

    for (const [what, isLost] of [
      ['of all', () => true],
      ['of one', (name: string) => name === 'b'],
    ] as const)
      it(`ends no job ${what} where the server has them, and goes on with them`, async () => {
        await run(['a', 'b', 'c']);
        lose(isLost);
        start();
        await until('they are asked for', () => says('a list was without HTCJobs that are there'));
        await clock.advance(600_000);
        expect(ended).to.deep.equal([]);
        expect(gets()).to.deep.equal(['a', 'b', 'c'].filter(isLost).map((name) => `GET ${name}`));
        const b = server.objects.get('b')!;
        server.add({ ...b, metadata: { ...b.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
        await until('its deletion is seen', () => ended.length > 0);
        expect(ended).to.deep.equal(['uid-of-b 0: HTCJob ns-b/b was deleted']);
      });

    it('ends the jobs of those that the server does not have, and of those whose name another has by now', async () => {
      await run(['a', 'b', 'c']);
      server.remove('a');
      server.remove('b');
      server.add(htcJob({}, 'b', 'another'));
      start();
      await until('they end', () => ended.length >= 2);
      await clock.advance(60_000);
      const gone = ['a', 'b'].map((name) => `uid-of-${name} 0: its HTCJob is gone`);
      expect(ended.toSorted()).to.deep.equal(gone);
      expect(server.count('GET a')).to.equal(1);
    });

    it('ends no job while it may not read them, or no answer comes, and asks one by one then', async () => {
      await run(Array.from({ length: 100 }, (_, nth) => `j${nth}`));
      server.objects.clear();
      const get = server.get.bind(server);
      let asked = 0;
      const forbidden = { code: 'kubernetes-forbidden', message: 'no right', maybeDone: false } as const;
      server.get = (path) => {
        if (!path.includes('/htcjobs/')) return get(path);
        asked++;
        return Promise.reject(new KubernetesError(forbidden));
      };
      start();
      await until('it is said', () => says('whether HTCJobs are gone is not known'));
      await clock.advance(20_000);
      expect(ended).to.deep.equal([]);
      expect(asked).to.be.at.most(16);
      let [now, most] = [0, 0];
      server.get = async (path) => {
        if (!path.includes('/htcjobs/')) return get(path);
        most = Math.max(most, ++now);
        await clock.sleep(10);
        now--;
        return get(path);
      };
      await clock.advance(20_000);
      await until('all end', () => ended.length === 100);
      expect(most).to.equal(16);
      expect(server.count('GET')).to.equal(100);
    });

    describe('and whose names are not known', () => {
      it('ends no job where the next list has them, and goes on with them', async () => {
        await run(['a', 'b']);
        remembered.delete('names.json');
        lose(() => true);
        start();
        await until('it is said', () => says('jobs run on whose HTCJobs are in no list'));
        await clock.advance(120_000);
        expect(ended).to.deep.equal([]);
        expect(says('a list was without HTCJobs that are there')).to.equal(true);
        expect(server.count('LIST')).to.equal(2);
      });

      it('ends their jobs where the next list, a minute later, is without them, too, be the record of the names damaged or not there', async () => {
        await run(['a', 'b']);
        remembered.set('names.json', '{"uid":');
        server.remove('a');
        start();
        await until('it is said', () => says('jobs run on whose HTCJobs are in no list'));
        await clock.advance(50_000);
        expect(ended).to.deep.equal([]);
        await clock.advance(10_000);
        await until('its job ends', () => ended.length > 0);
        expect(ended).to.deep.equal(['uid-of-a 0: its HTCJob is gone']);
        expect([server.count('LIST'), server.count('GET')]).to.deep.equal([2, 0]);
        expect(says('the record of the names of HTCJobs cannot be read')).to.equal(true);
      });

      it('ends their jobs once, however often their workers, which take long to end, are told of meanwhile, and those of others', async () => {
        await run(['a', 'b']);
        remembered.delete('names.json');
        server.remove('a');
        start();
        await until('it is said', () => says('jobs run on whose HTCJobs are in no list'));
        await clock.advance(60_000);
        await until('its job ends', () => ended.length > 0);
        const warned = () => log.lines.filter(({ level }) => level === 'warn').length;
        const before = warned();
        const [news] = living;
        for (let turn = 0; turn < 10; turn++) {
          await operator.told([news!]);
          await clock.advance(70_000);
        }
        expect(ended).to.deep.equal(['uid-of-a 0: its HTCJob is gone']);
        expect([server.count('LIST'), warned()]).to.deep.equal([2, before]);
        await operator.told([{ ...news!, origin: { ...news!.origin, index: 1 } }]);
        await clock.advance(60_000);
        await until('another one of it ends', () => ended.length > 1);
        expect(ended.at(-1)).to.equal('uid-of-a 1: its HTCJob is gone');
        await operator.told([{ ...news!, worker: { ...news!.worker, status: 'cancelled' } }, news!]);
        await clock.advance(60_000);
        await until('one that lives again ends again', () => ended.length > 2);
      });

      it('ends no job while no list comes', async () => {
        await run(['a', 'b']);
        remembered.delete('names.json');
        server.remove('a');
        start();
        await until('it is said', () => says('jobs run on whose HTCJobs are in no list'));
        const list = server.list.bind(server);
        server.list = () => Promise.reject(new Error('no answer'));
        await clock.advance(120_000);
        expect(ended).to.deep.equal([]);
        server.list = list;
        await clock.advance(30_000);
        await until('its job ends', () => ended.length > 0);
      });
    });
  });

  it('asks once about each of hundreds that are deleted at once', async () => {
    const names = Array.from({ length: 300 }, (_, nth) => `j${nth}`);
    const objectOf = (name: string, more = {}): HtcJob => {
      const job = htcJob({}, name);
      const metadata = { ...job.metadata, finalizers: ['finalizer.htc.cern.ch'], ...more };
      return { ...job, metadata, status: { uniqId: metadata.uid, factory: 'factory', active: 1 } };
    };
    for (const name of names) server.add(objectOf(name));
    start();
    await until('they are listed', () => server.count('WATCH') === 1);
    await clock.advance(5000);
    server.asked.length = 0;
    for (const name of names) server.add(objectOf(name, { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    await until('all go', () => server.count('PATCH') === names.length);
    const asked = names.flatMap((name) => [`GET ${name}`, `PATCH ${name}`]);
    expect(server.asked.toSorted()).to.deep.equal(asked.toSorted());
  });
});
