import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Desk, Reason, Request, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import type { Looker, PoolLook } from '../../../src/sources/htcondor-idle/look/result.ts';
import type { Need, Space } from '../../../src/sources/htcondor-idle/model.ts';
import type { IdleQueueOptions } from '../../../src/sources/htcondor-idle/options.ts';
import { IdleSource } from '../../../src/sources/htcondor-idle/source.ts';
import { Tokens } from '../../../src/sources/htcondor-idle/tokens.ts';
import { OperatorFiles } from '../../../src/util/operator-files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ownQueue, recordingLog, requirements } from '../../support/samples.ts';
import { until } from '../../support/until.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const interval = 60;
const joinTimeout = 300;

const machine = (cpus: number) =>
  `MyType = "Machine"\nPartitionableSlot = true\nCpus = ${cpus}\nMemory = ${cpus * 1000}\nDisk = 1000000\n`;
const waiting = (count: number, cpus = 1): Need => {
  const request = new Map([['cpus', cpus]]);
  const owners = new Map([['ana', count]]);
  return {
    key: `s#${cpus}`,
    schedd: 's',
    count,
    owners,
    request,
    exact: request,
    concurrency: new Map(),
  };
};

/** A slot of the only shape of A takes each job. */
const isOfShape = (_need: Need, { kind, shape }: Space) => kind === 'shape:A/A' && shape === 'A/A';

describe('the source htcondor-idle', () => {
  let directory: string;
  let clock: ManualClock;
  let source: IdleSource;
  let log: ReturnType<typeof recordingLog>;
  let look: PoolLook;
  let looks: number;
  let living: WorkerNews[];
  let ended: string[];
  let held: Map<string, Reason>;
  let stop: AbortController;
  let running: Promise<void>;
  let isStuck: boolean;

  /** In place of the usual options of a queue. */
  let ofQueue: Map<string, Partial<IdleQueueOptions>>;
  /** Living workers that another source asked for. */
  let others: Set<number>;
  let explain: Looker['explain'];
  /** What happens after the living workers were read and before the source has them. */
  let beforeLiving: () => Promise<void>;

  const options = (name: string) => ({
    nonePending: false,
    ...(ofQueue.get(name) ?? { slotAd: `${name}.ad` }),
  });
  const queues = ['A', 'B'];

  beforeEach(() => {
    directory = temporaryDirectory();
    clock = new ManualClock();
    log = recordingLog();
    look = {
      at: clock.now(),
      needs: [],
      fresh: 0,
      spaces: [],
      startds: [],
      collectorStartedAt: clock.now() - 86_400_000,
      matching: {
        shape: (need, shape) => (need.request.get('cpus') ?? 0) <= (shape.resources.get('cpus') ?? 0),
        space: () => false,
        pool: () => false,
      },
      concurrency: new Map(),
      unknown: [],
    };
    [looks, living, ended, held, isStuck] = [0, [], [], new Map<string, Reason>(), false];
    ofQueue = new Map();
    others = new Set();
    explain = async () => undefined;
    beforeLiving = async () => undefined;
    writeFileSync(join(directory, 'A.ad'), machine(1));
    writeFileSync(join(directory, 'B.ad'), machine(8));
  });

  afterEach(async () => {
    stop.abort();
    await running;
  });

  function start(signingKey?: string): void {
    const files = new OperatorFiles({ clock });
    const looker: Looker = {
      look: async (_, signal) => {
        looks += 1;
        if (isStuck) await clock.sleep(86_400_000, signal);
        return look;
      },
      explain: (...asked) => explain(...asked),
    };
    const keyFile = signingKey ?? '';
    const tokens = new Tokens({ keyFile, keyName: 'POOL', identity: 'worker@pool', files, clock });
    const drainer = { shrink: async () => ({ drained: [], refused: [], failed: [] }) };
    source = new IdleSource({
      options: { interval, joinTimeout },
      looker,
      drainer,
      clock,
      log,
      files,
      ...(signingKey !== undefined && { tokens }),
    });
    const desk = {
      ownQueues: () => queues.map((name) => ownQueue(name, { options: options(name), configDir: directory })),
      queues: () => queues,
      living: async () => {
        const read = [...living];
        await beforeLiving();
        return read;
      },
      alive: async (workerIds: readonly number[]) => new Set(workerIds.filter((id) => others.has(id))),
      reasons: (queue: string) => {
        const reason = held.get(queue);
        return reason === undefined ? [] : [reason];
      },
      wake: () => undefined,
      end: async (origins: readonly { readonly uid: string }[]) => {
        ended.push(...origins.map(({ uid }) => uid));
      },
    } satisfies Partial<Desk>;
    stop = new AbortController();
    running = source.run(desk as unknown as Desk, stop.signal);
  }

  /** Until the look after the next interval is over. */
  async function nextLook(): Promise<void> {
    const before = looks;
    if (before > 0) {
      await until('it sleeps', () => clock.sleeping.length > 0);
      await clock.advance(interval * 1000);
    }
    await until('it has looked', () => looks > before && clock.sleeping.length > 0);
  }

  const wanted = (name: string, most?: number) =>
    source.wanted({
      name,
      own: true,
      options: { ...options(name), ...(most !== undefined && { most }) },
      requirements,
      mapType: 'NoJob',
      runMode: 'self',
    });
  const codes = async (name: string) => (await wanted(name)).reasons.map(({ code }) => code);

  function comes(request: Request | undefined, queue: string, workerId: number, startTime?: number): void {
    if (request === undefined) throw new Error('there is no such request');
    const status = startTime === undefined ? 'submitted' : 'running';
    const worker = { workerId, status, startTime: startTime ?? null, submitTime: 1, creationTime: 1 };
    const { origin } = request;
    const news = { sequence: 1, at: clock.now(), what: 'added', origin, queue, worker };
    living.push(news as unknown as WorkerNews);
  }

  it('asks for nothing before the first whole look', async () => {
    look = { ...look, needs: [waiting(3)] };
    isStuck = true;
    start();
    await until('it looks', () => looks === 1);
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.deep.equal(['htcondor-idle-starting']);
  });

  it('asks by name, again and again for the same, and for none that lives', async () => {
    look = { ...look, needs: [waiting(2)] };
    start();
    await nextLook();
    const { requests } = await wanted('A');
    expect(requests).to.have.length(2);
    await nextLook();
    expect((await wanted('A')).requests.map(({ origin }) => origin)).to.deep.equal(
      requests.map(({ origin }) => origin),
    );
    for (const [at, request] of requests.entries()) comes(request, 'A', at + 1);
    // Both are on their way: they will take the jobs.
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
  });

  it('asks for none by a decision that took a higher most than the queue has by now', async () => {
    look = { ...look, needs: [waiting(3)] };
    start();
    await nextLook();
    expect((await wanted('A', 2)).requests).to.deep.equal([]);
    expect((await wanted('A')).requests).to.have.length(3);
  });

  it('asks for none by a decision that took a higher most for all shapes of the queue', async () => {
    const shapes = [{ name: 'small', slotAd: 'A.ad' }];
    ofQueue.set('A', { shapes, most: 3 });
    ofQueue.set('B', { slotAd: 'B.ad', most: 0 });
    look = { ...look, needs: [waiting(3)] };
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.have.length(3);
    ofQueue.set('A', { shapes, most: 2 });
    expect((await wanted('A')).requests).to.deep.equal([]);
    await nextLook();
    expect((await wanted('A')).requests).to.have.length(2);
  });

  it('asks for none while the backend of a queue was not listed: it may show workers that no row has', async () => {
    look = { ...look, needs: [waiting(2)] };
    held.set('A', { code: 'not-listed', message: 'the queue is being started' });
    start();
    await nextLook();
    expect((await wanted('A')).requests, 'before the listing').to.deep.equal([]);
    // A listing takes a moment: no other queue takes over at once.
    expect((await wanted('B')).requests, 'of another queue').to.deep.equal([]);
    held.clear();
    comes({ origin: { uid: 'A adopted', index: 0 } }, 'A', 7);
    expect((await wanted('A')).requests, 'by the decision before the listing').to.deep.equal([]);
    await nextLook();
    expect((await wanted('A')).requests, 'beside the adopted one').to.have.length(1);
  });

  it('asks another queue where the backend of the cheaper one is still not listed at the next look', async () => {
    look = { ...look, needs: [waiting(2)] };
    held.set('A', { code: 'not-listed', message: 'no answer' });
    start();
    await nextLook();
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect((await wanted('B')).requests).to.have.length(1);
  });

  it('asks for no worker in place of one whose news came while it read which workers live', async () => {
    ofQueue.set('A', { slotAd: 'A.ad', most: 2 });
    ofQueue.set('B', { slotAd: 'B.ad', most: 0 });
    look = { ...look, needs: [waiting(5)] };
    start();
    await nextLook();
    const before = (await wanted('A')).requests;
    expect(before).to.have.length(2);
    beforeLiving = async () => {
      await source.told(before.slice(0, 1).map(({ origin }) => ({ origin }) as WorkerNews));
    };
    await nextLook();
    const after = (await wanted('A')).requests.map(({ origin }) => origin);
    expect(after).to.deep.equal(before.slice(1).map(({ origin }) => origin));
  });

  it('counts a worker as capacity until its time to join is over, and then names it', async () => {
    look = { ...look, needs: [waiting(1)] };
    start();
    await nextLook();
    const [request] = (await wanted('A')).requests;
    comes(request, 'A', 7, clock.now());
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    for (let passed = 0; passed < joinTimeout; passed += interval) await nextLook();
    const { requests, reasons } = await wanted('A');
    expect(requests).to.have.length(1);
    expect(reasons[0]?.code).to.equal('htcondor-idle-not-joined');
    expect(reasons[0]?.message).to.contain('`thresher logs 7`');
  });

  it('asks for one worker at a time while those of the shape hang and never join', async () => {
    ofQueue.set('B', { slotAd: 'B.ad', most: 0 });
    look = { ...look, needs: [waiting(10)] };
    start();
    await nextLook();
    const { requests } = await wanted('A');
    expect(requests).to.have.length(10);
    for (const [at, request] of requests.entries()) comes(request, 'A', at + 1, clock.now());
    for (let passed = 0; passed <= joinTimeout; passed += interval) await nextLook();
    const further = (await wanted('A')).requests;
    expect(further).to.have.length(1);
    expect(await codes('A')).to.include('htcondor-idle-late');
    comes(further[0], 'A', 11, clock.now());
    await nextLook();
    expect((await wanted('A')).requests, 'while that one may still join').to.deep.equal([]);
  });

  it('names a worker that neither joins nor ends once, and never ends one: it may be busy without the marks', async () => {
    look = { ...look, needs: [waiting(2)] };
    start();
    await nextLook();
    const { requests } = await wanted('A');
    for (const [at, request] of requests.entries()) comes(request, 'A', at + 1, clock.now());
    const startd = {
      slot: '',
      queue: 'A',
      shape: 'A',
      startedAt: 0,
      claims: 1,
      leaving: false,
    };
    look = { ...look, startds: [{ ...startd, workerId: 1 }] };
    for (let passed = 0; passed <= 5 * joinTimeout; passed += interval) await nextLook();
    expect(ended).to.deep.equal([]);
    const told = log.lines.filter(({ message }) => message.includes('neither join the pool nor end'));
    expect(told.map(({ facts }) => facts)).to.deep.equal([{ workers: [2], count: 1 }]);
  });

  it('asks another queue for the jobs of one that its limits hold back, and keeps one wish there', async () => {
    look = { ...look, needs: [waiting(2)] };
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.have.length(2);
    held.set('A', { code: 'paused', message: 'paused' });
    await nextLook();
    expect((await wanted('A')).requests).to.have.length(1);
    expect((await wanted('B')).requests).to.have.length(1);
    held.clear();
    await nextLook();
    expect((await wanted('A')).requests).to.have.length(2);
    expect((await wanted('B')).requests).to.deep.equal([]);
  });

  it('asks for nothing by a decision of more than two intervals ago', async () => {
    look = { ...look, needs: [waiting(2)] };
    start();
    await nextLook();
    isStuck = true;
    await clock.advance(2 * interval * 1000 + 1000);
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.include('htcondor-idle-stale');
  });

  for (const [title, isHanging] of [
    ['while it computes the cause of impossible jobs', true],
    ['where the analysis of impossible jobs fails', false],
  ] as const)
    it(`goes on ${title}`, async () => {
      // The clock must not know of it: a look counts as over once a sleep begins.
      const hangs = (signal: AbortSignal) =>
        new Promise<undefined>((resolve) => {
          signal.addEventListener('abort', () => {
            resolve(undefined);
          });
        });
      explain = (_need, _templates, signal) => {
        if (!isHanging) return Promise.reject(new Error('condor_q crashed'));
        return hangs(signal);
      };
      look = { ...look, needs: [waiting(1, 99), waiting(2)] };
      start();
      for (let count = 1; count <= 4; count++) {
        await nextLook();
        expect((await wanted('A')).requests).to.have.length(2);
      }
      expect(await codes('A')).not.to.include('htcondor-idle-stale');
    });

  it('adds nothing while the collector is young', async () => {
    look = { ...look, needs: [waiting(2)], collectorStartedAt: clock.now() - 10_000 };
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.include('htcondor-idle-collector-young');
  });

  it('adds nothing while the collector is silent', async () => {
    look = { ...look, needs: [waiting(2)], spaces: undefined, startds: undefined };
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.include('htcondor-idle-unknown');
  });

  it('gives each worker a token of its own, and starts none without', async () => {
    look = { ...look, needs: [waiting(2)] };
    const key = join(directory, 'key');
    start(key);
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.include('htcondor-idle-no-token');
    writeFileSync(key, 'a key', { mode: 0o600 });
    await nextLook();
    const files = (await wanted('A')).requests.map(({ payload }) => payload?.files?.[0]);
    expect(new Set(files.map((file) => file?.content)).size).to.equal(2);
    for (const file of files) expect(file).to.deep.include({ name: 'token', mode: 0o600, secret: true });
  });

  it('takes the slot of a worker that has ended for none, though the collector still shows it', async () => {
    const slot = { name: 'slot1@w7', kind: 'shape:A', oneJob: false, shape: 'A', workerId: 7 };
    const spaces = [{ ...slot, free: new Map([['cpus', 1]]) }];
    look = {
      ...look,
      needs: [waiting(1)],
      spaces,
      matching: { ...look.matching, space: () => true },
    };
    start();
    await nextLook();
    const { requests } = await wanted('A');
    expect(requests).to.have.length(1);
    comes(requests[0], 'A', 7, clock.now());
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
  });

  it('takes the free slot of a worker that an operator started by hand for one', async () => {
    const slot = { name: 'slot1@w9', kind: 'shape:A', oneJob: false, shape: 'A', workerId: 9 };
    const spaces = [{ ...slot, free: new Map([['cpus', 1]]) }];
    look = { ...look, needs: [waiting(1)], spaces, matching: { ...look.matching, space: () => true } };
    others.add(9);
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    others.clear();
    await nextLook();
    expect((await wanted('A')).requests, 'after its end').to.have.length(1);
  });

  it('counts the free slot of a shape that has the name of its queue', async () => {
    ofQueue.set('A', { shapes: [{ name: 'A', slotAd: 'A.ad' }] });
    const slot = { name: 'slot1@w7', kind: 'shape:A', oneJob: false, shape: 'A', workerId: 7 };
    const spaces = [{ ...slot, free: new Map([['cpus', 1]]) }];
    const startd = { workerId: 7, slot: '', queue: 'A', shape: 'A', startedAt: 0 };
    look = { ...look, needs: [waiting(1)], matching: { ...look.matching, space: isOfShape } };
    start();
    await nextLook();
    comes((await wanted('A')).requests[0], 'A', 7, clock.now());
    look = { ...look, spaces, startds: [{ ...startd, claims: 0, leaving: false }] };
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
  });

  it('leaves out a shape whose slot ad cannot be read, and says so', async () => {
    writeFileSync(join(directory, 'A.ad'), 'nothing');
    look = { ...look, needs: [waiting(2)] };
    start();
    await nextLook();
    expect((await wanted('A')).requests).to.deep.equal([]);
    expect(await codes('A')).to.include('htcondor-idle-slot-ad');
    expect((await wanted('B')).requests).to.have.length(1);
  });

  it('shows in its gauges what it decided, with no more owners than fifty', async () => {
    const owners = new Map(Array.from({ length: 60 }, (_, at) => [`u${at}`, 1] as const));
    look = { ...look, needs: [{ ...waiting(60, 99), owners }, waiting(3)] };
    start();
    await nextLook();
    const gauges = new Map(source.gauges().map(({ name, values }) => [name, values]));
    expect(gauges.get('thresher_pool_idle_jobs')).to.deep.equal([{ labels: {}, value: 63 }]);
    const unservable = gauges.get('thresher_pool_unservable_jobs') ?? [];
    expect(unservable).to.have.length(51);
    expect(unservable.at(-1)).to.deep.equal({ labels: { owner: 'other' }, value: 10 });
  });
});
