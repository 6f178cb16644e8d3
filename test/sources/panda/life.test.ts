import { expect } from 'chai';
import type { TakenCommand } from '../../../src/clients/panda/api.ts';
import type { PandaOutcome } from '../../../src/clients/panda/outcome.ts';
import type { Census, Desk } from '../../../src/plugins/contracts/index.ts';
import { ActiveJobs, workersForJobs } from '../../../src/sources/panda/jobs.ts';
import { Life } from '../../../src/sources/panda/life.ts';
import { LinkMemory } from '../../../src/sources/panda/memory.ts';
import { ServerHealth } from '../../../src/sources/panda/server-health.ts';
import { Statistician } from '../../../src/sources/panda/statistician.ts';
import { whyNoJobs, whyNoOrder, whyStarting } from '../../../src/sources/panda/why-none.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

const { signal } = new AbortController();
const fail = (code: 'panda-database' | 'panda-unreachable' | 'panda-busy' | 'panda-no-answer') =>
  ({ kind: 'failed', code, message: 'm', maybeDone: true }) as const;
const ok = { kind: 'ok', data: null } as const;

/** A clock of which the time may be set, and nothing else changes. */
class SetClock extends ManualClock {
  wallBack = 0;

  override now(): number {
    return super.now() - this.wallBack;
  }
}

describe('the link', () => {
  let clock: SetClock;
  let health: ServerHealth;
  let log: ReturnType<typeof recordingLog>;
  let memory: LinkMemory;
  let queues: string[];
  let runMode: string;
  let floor: number;
  /** How far the clock was set back before the workers are counted. */
  let back: number;
  let census: Census['living'];

  beforeEach(() => {
    clock = new SetClock();
    log = recordingLog();
    health = new ServerHealth({ clock, log });
    memory = new LinkMemory(memoryFor());
    queues = ['A'];
    runMode = 'slave';
    floor = -1;
    back = 0;
    census = [];
  });

  const desk = {
    ownQueues: () => queues.map((name) => ({ name, mapType: 'NoJob', runMode })),
    wake: () => undefined,
    census: async () => ({ at: clock.now() - back, upTo: 0, living: census }),
    keepIdsAbove: async (id: number) => {
      floor = id;
    },
  } as unknown as Desk;

  describe('as an instance of the server', () => {
    let beats: (readonly TakenCommand[] | undefined)[];
    let answers: PandaOutcome<null>[];
    let ids: PandaOutcome<number>;
    let life: Life;
    let maxrampercore: number | null;

    beforeEach(() => {
      beats = [];
      answers = [];
      ids = { kind: 'ok', data: 41 };
      maxrampercore = 2000;
      const type = { resource_name: 'SCORE', mincore: 1, maxcore: 1, minrampercore: 0 };
      life = new Life({
        log,
        api: {
          heartbeat: async ({ commands }) => {
            beats.push(commands);
            return answers.shift() ?? ok;
          },
          currentWorkerId: async () => ids,
          resourceTypes: async () => ({ kind: 'ok', data: [{ ...type, maxrampercore }] }),
        },
        memory,
        clock,
        health,
        version: '1',
        heartbeatInterval: 600_000,
      });
    });

    it('takes a memory of a resource type that none can mean for none, and says so once', async () => {
      for (const [memoryOfType, taken] of [
        [2000, 2000],
        [0, 0],
        [null, null],
        [0.5, null],
        [2_147_483_648, null],
        [1e300, null],
        [-1, null],
      ] as const) {
        maxrampercore = memoryOfType;
        for (let turn = 0; turn < 2; turn++) {
          await life.turn(desk, signal);
          await clock.advance(600_000);
        }
        expect(memory.types.map((type) => type.maxrampercore)).to.deep.equal([taken]);
      }
      expect(log.lines.map(({ facts }) => facts['types'])).to.deep.equal([
        ...['SCORE 0.5', 'SCORE 2147483648', 'SCORE 1e+300', 'SCORE -1'],
      ]);
    });

    it('sends its first heartbeat twice, because the server stores that of a new instance without its data', async () => {
      answers = [fail('panda-database')];
      await life.turn(desk, signal);
      expect([beats.length, health.failures]).to.deep.equal([2, []]);
    });

    it('announces its commands at the start and when its queues change, and beats each 10 minutes', async () => {
      await life.turn(desk, signal);
      await life.turn(desk, signal);
      expect(beats).to.have.length(1);
      queues = ['A', 'B/MCORE'];
      await life.turn(desk, signal);
      expect(beats.at(-1)?.map(({ command, computingSite }) => `${command} ${computingSite}`)).to.deep.equal([
        'SET_N_WORKERS_JOBTYPE A',
        'REPORT_WORKER_STATS A',
        'SET_N_WORKERS_JOBTYPE B',
        'REPORT_WORKER_STATS B',
      ]);
      await clock.advance(600_000);
      await life.turn(desk, signal);
      expect(beats).to.have.length(3);
    });

    it('makes no worker before its ids are above those that the server knows', async () => {
      ids = fail('panda-database');
      await life.turn(desk, signal);
      expect([life.isReady, floor]).to.deep.equal([false, -1]);
      ids = { kind: 'ok', data: 41 };
      await life.turn(desk, signal);
      expect([life.isReady, floor]).to.deep.equal([true, 41]);
    });

    it('hole 7: counts by its own ids where that of the server is refused, names it, and asks again', async () => {
      ids = { ...fail('panda-database'), code: 'panda-worker-id', maybeDone: false };
      await life.turn(desk, signal);
      expect([life.isReady, floor]).to.deep.equal([true, -1]);
      expect(health.failures.map(({ code }) => code)).to.deep.equal(['panda-worker-id']);
      ids = { kind: 'ok', data: 41 };
      await life.turn(desk, signal);
      expect(floor).to.equal(-1);
      await clock.advance(600_000);
      await life.turn(desk, signal);
      expect([floor, health.failures]).to.deep.equal([41, []]);
    });

    it('hole 7: waits for its ids where a page of another server came in their place', async () => {
      ids = { ...fail('panda-database'), code: 'panda-no-api', maybeDone: false };
      await life.turn(desk, signal);
      expect(life.isReady).to.equal(false);
      ids = { kind: 'ok', data: 41 };
      await life.turn(desk, signal);
      expect([life.isReady, floor]).to.deep.equal([true, 41]);
    });

    it('asks for nothing else while the server takes no heartbeat', async () => {
      answers = [fail('panda-unreachable')];
      await life.turn(desk, signal);
      expect([life.isReady, memory.types]).to.deep.equal([false, []]);
      expect(health.whyNoOrders).to.include({ call: 'heartbeat', code: 'panda-unreachable' });
    });

    it('keeps the resource types for a start without the server', async () => {
      await life.turn(desk, signal);
      expect(memory.types.map(({ resource_name: name }) => name)).to.deep.equal(['SCORE']);
    });
  });

  describe('as a reporter of statistics', () => {
    let reported: string[];
    let answers: Map<string, PandaOutcome<null>>;
    let statistician: Statistician;
    let isMaking: boolean;
    let making: ReadonlySet<string>;
    /** How long the server takes for each call, ms. */
    let lasts: number;

    beforeEach(() => {
      reported = [];
      answers = new Map();
      isMaking = false;
      making = new Set();
      lasts = 0;
      statistician = made();
    });

    const made = () =>
      new Statistician({
        api: {
          reportStatistics: async (site, { managed }) => {
            const { running = 0, submitted = 0 } = managed?.['SCORE'] ?? {};
            reported.push(`${site} ${submitted}+${running}`);
            if (lasts > 0) await clock.advance(lasts);
            return answers.get(site) ?? ok;
          },
        },
        memory,
        clock,
        log,
        health,
        serverAhead: () => ({ ahead: 0, within: 1000 }),
        interval: 300_000,
      });

    const turn = async () => {
      reported.length = 0;
      await statistician.turn(desk, (site) => isMaking || making.has(site), signal);
      return [...reported];
    };
    const living = (site: string, workers: number): Census['living'][number] => ({
      queue: site,
      computingSite: site,
      resourceType: 'SCORE',
      jobType: 'managed',
      status: 'submitted',
      workers,
    });
    const added = (site: string) => {
      statistician.heard({ what: 'added', worker: { computingSite: site } } as Parameters<
        Statistician['heard']
      >[0]);
    };

    it('tells zeros of a new queue at once, and all again each 300 s', async () => {
      expect(await turn()).to.deep.equal(['A 0+0']);
      queues = ['A', 'B'];
      expect(await turn()).to.deep.equal(['B 0+0']);
      await clock.advance(300_000);
      expect(await turn()).to.deep.equal(['A 0+0', 'B 0+0']);
    });

    it('tells of new workers at once, and while they are still made each 30 s', async () => {
      await turn();
      census = [living('A', 5)];
      added('A');
      expect(await turn()).to.deep.equal(['A 5+0']);
      isMaking = true;
      added('A');
      expect(await turn()).to.deep.equal([]);
      await clock.advance(30_000);
      expect(await turn()).to.deep.equal(['A 5+0']);
      expect(await turn()).to.deep.equal([]);
    });

    it('tells nothing, and says so once, while its memory cannot be written: no order is taken either', async () => {
      let isFull = true;
      memory = new LinkMemory(
        memoryFor(() => (isFull ? Promise.reject(new Error('ENOSPC')) : Promise.resolve())),
      );
      statistician = made();
      expect([await turn(), await turn()]).to.deep.equal([[], []]);
      expect(log.lines.filter(({ level }) => level === 'error')).to.have.length(1);
      isFull = false;
      expect(await turn()).to.deep.equal(['A 0+0']);
      expect(memory.reportsOf('A')).to.have.length(1);
    });

    it('counts no worker as a new one after the clock was set back', async () => {
      await clock.advance(7_200_000);
      await turn();
      const before = memory.reportsOf('A').at(-1)?.countedAt ?? 0;
      back = 7_200_000;
      await clock.advance(300_000);
      await turn();
      const last = memory.reportsOf('A').at(-1);
      expect([last?.countedAt, memory.reportsOf('A').length]).to.deep.equal([before, 2]);
    });

    it('tells what the server asks for', async () => {
      await turn();
      statistician.ask('A');
      expect(await turn()).to.deep.equal(['A 0+0']);
      expect(await turn()).to.deep.equal([]);
    });

    it('tells of a site whose queue is gone until its last worker has ended', async () => {
      queues = [];
      census = [living('OLD', 1)];
      expect(await turn()).to.deep.equal(['OLD 1+0']);
      census = [];
      await clock.advance(300_000);
      expect(await turn()).to.deep.equal(['OLD 0+0']);
      await clock.advance(300_000);
      expect(await turn()).to.deep.equal([]);
    });

    it('goes on with other sites where the server refuses one, and stops where it does not answer', async () => {
      queues = ['A', 'B'];
      answers.set('A', fail('panda-busy'));
      expect(await turn()).to.deep.equal(['A 0+0', 'B 0+0']);
      expect([memory.reportsOf('A').length, memory.reportsOf('B').length]).to.deep.equal([0, 1]);
      answers.set('A', fail('panda-unreachable'));
      await clock.advance(300_000);
      expect(await turn()).to.deep.equal(['A 0+0']);
    });

    it('begins with sites that it did not try for longest, so that one that hangs holds up no other', async () => {
      queues = ['A', 'B', 'C'];
      answers.set('A', fail('panda-unreachable'));
      expect(await turn()).to.deep.equal(['A 0+0']);
      await clock.advance(1000);
      expect(await turn()).to.deep.equal(['B 0+0', 'C 0+0', 'A 0+0']);
    });

    it('B4: tells of sites whose workers are being made first, and the rest after the next poll', async () => {
      queues = Array.from({ length: 60 }, (_, at) => `S${at}`);
      lasts = 1000;
      making = new Set(['S40', 'S41']);
      const first = await turn();
      expect([first.slice(0, 2), first.length, statistician.hasMore]).to.deep.equal([
        ['S40 0+0', 'S41 0+0'],
        5,
        true,
      ]);
      const seen = new Set(first);
      for (let turns = 0; statistician.hasMore; turns++) {
        expect(turns).to.be.below(12);
        for (const one of await turn()) seen.add(one);
      }
      expect(seen.size).to.equal(60);
    });

    it('B4: tells of each site in its turn though workers of all others are being made all the time', async () => {
      queues = Array.from({ length: 40 }, (_, at) => `S${at}`);
      lasts = 1000;
      making = new Set(queues.slice(1));
      const seen = new Set<string>();
      for (let turns = 0; turns < 60 && !seen.has('S0 0+0'); turns++) {
        for (const queue of making) added(queue);
        for (const one of await turn()) seen.add(one);
      }
      expect(seen).to.include('S0 0+0');
    });

    it('asks without a pause for no sites that the server refuses', async () => {
      queues = Array.from({ length: 60 }, (_, at) => `S${at}`);
      for (const queue of queues) answers.set(queue, fail('panda-busy'));
      expect([(await turn()).length, statistician.hasMore]).to.deep.equal([50, true]);
      expect([(await turn()).length, statistician.hasMore]).to.deep.equal([50, false]);
    });

    describe('B1: while a call without an answer may still be carried out', () => {
      /** When workers were counted that the server certainly knows of, relative to the begin, s. */
      const known = () => {
        const at = memory.reportsOf('A').at(-1)?.countedAt;
        return at === undefined ? undefined : (at - begin) / 1000;
      };
      let begin: number;

      beforeEach(async () => {
        begin = clock.now();
        await turn();
        await clock.advance(60_000);
        answers.set('A', fail('panda-no-answer'));
        statistician.ask('A');
        await turn();
        answers.clear();
        await clock.advance(30_000);
      });

      it('knows of no newer count than its own, and tells of the site again once that call has surely ended', async () => {
        expect(await turn()).to.deep.equal(['A 0+0']);
        expect(known()).to.equal(60);
        await clock.advance(200_000);
        statistician.ask('A');
        await turn();
        expect(known()).to.equal(60);
        expect(await turn()).to.deep.equal([]);
        await clock.advance(70_000);
        expect(await turn()).to.deep.equal(['A 0+0']);
        expect([known(), memory.callsOf('A')]).to.deep.equal([360, []]);
        expect(await turn()).to.deep.equal([]);
      });

      it('does so too after the daemon died', async () => {
        statistician = made();
        expect(await turn()).to.deep.equal(['A 0+0']);
        expect(known()).to.equal(60);
      });

      it('keeps few of many such calls, and of those taken together the oldest count', async () => {
        answers.set('A', fail('panda-no-answer'));
        for (let calls = 0; calls < 50; calls++) {
          await clock.advance(5000);
          await turn();
        }
        expect(memory.callsOf('A').length).to.be.within(2, 12);
        answers.clear();
        await turn();
        expect(known()).to.equal(60);
        await clock.advance(250_000);
        await turn();
        expect(known()).to.be.within(90, 160);
        await clock.advance(51_000);
        await turn();
        expect(memory.callsOf('A')).to.deep.equal([]);
        expect(known()).to.be.greaterThan(600);
      });

      it('ends that after 10 minutes at most, though the clock is set back by a day', async () => {
        clock.wallBack = 86_400_000;
        statistician.ask('A');
        await turn();
        expect(memory.callsOf('A')).to.have.length(1);
        await clock.advance(600_000);
        await turn();
        expect(memory.callsOf('A')).to.deep.equal([]);
      });
    });

    for (const [title, code, maybeDone] of [
      ['that the server refused', 'panda-busy', false],
      ['that never reached it', 'panda-unreachable', false],
    ] as const)
      it(`B1: takes a call ${title} for none`, async () => {
        answers.set('A', { kind: 'failed', code, message: 'm', maybeDone });
        await turn();
        expect(memory.callsOf('A')).to.deep.equal([]);
      });
  });

  describe('as a counter of activated jobs', () => {
    let answer: PandaOutcome<Readonly<Record<string, Readonly<Record<string, number>>>>>;
    let alive: PandaOutcome<[]>;
    let statistics: PandaOutcome<Readonly<Record<string, unknown>>>;
    let jobs: ActiveJobs;

    beforeEach(() => {
      answer = { kind: 'ok', data: { A: { activated: 7, running: 3 }, B: { running: 1 } } };
      alive = { kind: 'ok', data: [] };
      statistics = { kind: 'ok', data: {} };
      const api = {
        activeJobs: async () => answer,
        resourceTypes: async () => alive,
        workerStatistics: async () => statistics,
      };
      jobs = new ActiveJobs({ api, clock, health, harvesterId: 'h1', interval: 60_000 });
    });

    it('knows no number before the first answer, and 0 for a site that is not in it', async () => {
      expect(jobs.of('A')).to.equal(undefined);
      await jobs.turn(signal);
      expect(['A', 'B', 'C'].map((site) => jobs.of(site)?.activated)).to.deep.equal([7, 0, 0]);
    });

    for (const [title, empty] of [
      ['no site', { kind: 'ok', data: {} }],
      ['a failure of the database', fail('panda-database')],
    ] as const) {
      it(`takes ${title} for no jobs where the database does answer: so the server says that it has none`, async () => {
        await jobs.turn(signal);
        answer = empty;
        await clock.advance(60_000);
        expect(await jobs.turn(signal)).to.equal(true);
        expect([jobs.of('A')?.activated, health.failures]).to.deep.equal([0, []]);
      });
    }

    it('does not take an empty answer for no jobs while the database is down: the last numbers count for an hour', async () => {
      await jobs.turn(signal);
      alive = fail('panda-database');
      answer = { kind: 'ok', data: {} };
      await clock.advance(60_000);
      expect(await jobs.turn(signal)).to.equal(false);
      expect(jobs.of('A')?.activated).to.equal(7);
      await clock.advance(3_600_000);
      expect(jobs.of('A')).to.equal(undefined);
    });

    describe('D3: of several instances, for activateWorkerFactor auto', () => {
      const reported = { managed: { SCORE: { running: 1 } } };

      it('counts those that report workers of the site, and itself', async () => {
        statistics = { kind: 'ok', data: { A: { h1: reported, h2: reported, h3: reported }, B: { h2: {} } } };
        jobs.askForInstances();
        expect(jobs.instancesOf('A')).to.equal(undefined);
        await jobs.turn(signal);
        expect(['A', 'B', 'C'].map((site) => jobs.instancesOf(site))).to.deep.equal([3, 2, 1]);
      });

      it('knows of an instance that came while it asked as soon as it knows of the jobs', async () => {
        const api = {
          activeJobs: async () => {
            statistics = { kind: 'ok', data: { A: { h2: reported } } };
            return answer;
          },
          resourceTypes: async () => alive,
          workerStatistics: async () => statistics,
        };
        jobs = new ActiveJobs({ api, clock, health, harvesterId: 'h1', interval: 60_000 });
        jobs.askForInstances();
        await jobs.turn(signal);
        expect([jobs.of('A')?.activated, jobs.instancesOf('A')]).to.deep.equal([7, 2]);
      });

      it('counts those of an answer once, however often a queue asks, and anew with the next answer', async () => {
        let counts = 0;
        const listed = (names: readonly string[]) =>
          new Proxy(Object.fromEntries(names.map((name) => [name, reported])), {
            ownKeys: (target) => {
              counts++;
              return Reflect.ownKeys(target);
            },
          });
        jobs.askForInstances();
        for (const [names, instances] of [
          [['h2', 'h3'], 3],
          [['h1', 'h2'], 2],
        ] as const) {
          statistics = { kind: 'ok', data: { A: listed(names) } };
          await clock.advance(60_000);
          await jobs.turn(signal);
          counts = 0;
          for (let times = 0; times < 5; times++) expect(jobs.instancesOf('A')).to.equal(instances);
          expect(counts).to.equal(1);
        }
      });

      it('asks at once when a queue first needs it, and never before', async () => {
        await jobs.turn(signal);
        expect(jobs.instancesOf('A')).to.equal(undefined);
        jobs.askForInstances();
        expect(await jobs.turn(signal)).to.equal(true);
        expect(jobs.instancesOf('A')).to.equal(1);
        jobs.askForInstances();
        expect(await jobs.turn(signal)).to.equal(false);
      });

      it('takes what it knew for an hour where the server fails, or has an empty answer while its database is down', async () => {
        statistics = { kind: 'ok', data: { A: { h2: reported } } };
        jobs.askForInstances();
        await jobs.turn(signal);
        alive = fail('panda-database');
        for (const wrong of [fail('panda-database'), { kind: 'ok' as const, data: {} }]) {
          statistics = wrong;
          await clock.advance(60_000);
          await jobs.turn(signal);
          expect(jobs.instancesOf('A')).to.equal(2);
          expect(health.failures.map(({ call }) => call)).to.deep.equal(['worker-statistics']);
        }
        await clock.advance(3_600_000);
        expect(jobs.instancesOf('A')).to.equal(undefined);
      });

      for (const odd of [5, 'h2', null, ['h2']])
        it(`knows none where the server says ${JSON.stringify(odd)} of the site`, async () => {
          statistics = { kind: 'ok', data: { A: odd } };
          jobs.askForInstances();
          await jobs.turn(signal);
          expect(jobs.instancesOf('A')).to.equal(undefined);
          expect(jobs.instancesOf('B')).to.equal(1);
        });
    });

    const rows: readonly (readonly [
      activated: number,
      factor: number,
      none: boolean,
      queued: number,
      n: number,
    ])[] = [
      [7, 1, false, 0, 7],
      [7 / 3, 1, false, 1, 1],
      [49 / 49, 1, true, 0, 1],
      [7, 0.5, false, 0, 3],
      [7, 2, false, 20, 0],
      [0, 1, false, 0, 1],
      [0, 1, false, 1, 0],
      [0, 1, true, 0, 0],
      [1, 0.5, true, 0, 0],
      [Number.MAX_SAFE_INTEGER, 2, false, 3, 20_000],
      [1e308, 2, false, 3, 20_000],
    ];
    for (const [activated, factor, noneWithoutJobs, queued, n] of rows) {
      const none = noneWithoutJobs ? ', none without jobs' : '';
      it(`wants ${n} workers for ${activated} jobs x ${factor} with ${queued} queued${none}`, () => {
        expect(workersForJobs({ activated, factor, noneWithoutJobs, queued })).to.equal(n);
      });
    }
  });

  describe('without workers for a queue says why', () => {
    const facts = {
      now: 600_000,
      startedAt: 0,
      harvesterId: 'h1',
      isReady: true,
      failure: undefined,
    };
    const failure = { call: 'commands', since: 0, code: 'panda-role', message: 'role required' } as const;
    const order = { createdAt: 0, takenAt: 0, said: { SCORE: 2 }, wanted: { SCORE: 2 }, rest: 0 };
    const jobs = { activated: 3, at: 0 };
    const codes = (reasons: readonly { readonly code: string }[]) => reasons.map(({ code }) => code);

    it('that it is starting, and which failure keeps it there', () => {
      const [reason] = whyStarting({ ...facts, failure });
      expect(reason).to.include({ code: 'panda-starting' });
      expect(reason?.message).to.include('role required');
    });

    it('that no order came, since when, when statistics were taken, and what CRIC must say', () => {
      const [reason] = whyNoOrder('A', undefined, 540_000, facts);
      expect(reason?.code).to.equal('panda-no-order');
      for (const part of ['10 min', '1970-01-01T00:09:00Z', 'h1']) expect(reason?.message).to.include(part);
      expect(codes(whyNoOrder('A', undefined, undefined, { ...facts, failure }))).to.deep.equal([
        'panda-role',
        'panda-no-order',
      ]);
    });

    it('that no further order came for 15 min, unless the daemon did not run for so long', () => {
      const late = { ...facts, now: 1_000_000 };
      const [reason] = whyNoOrder('A', order, 540_000, late);
      expect(reason?.code).to.equal('panda-no-order');
      for (const part of ['since 1970-01-01T00:00:00Z', '1970-01-01T00:09:00Z', 'h1'])
        expect(reason?.message).to.include(part);
      expect(codes(whyNoOrder('A', order, 0, { ...late, startedAt: 900_000 }))).to.deep.equal([
        'panda-order-fulfilled',
      ]);
    });

    it('what became of the order', () => {
      expect(codes(whyNoOrder('A', order, 0, facts))).to.deep.equal(['panda-order-fulfilled']);
      expect(codes(whyNoOrder('A', { ...order, said: { SCORE: 0 } }, 0, facts))).to.deep.equal([
        'panda-order-zero',
      ]);
      expect(whyNoOrder('A', { ...order, rest: 1 }, 0, facts)).to.deep.equal([]);
      const [less] = whyNoOrder('A', { ...order, said: { SCORE: 5 }, wanted: { SCORE: 1 } }, 0, facts);
      expect(less?.message).to.include(
        '(5 new workers, of which 4 had been made before the server knew of them, or are more than thresher takes)',
      );
    });

    it('what is known of its jobs', () => {
      const known = { count: jobs, instances: 1, wanted: 0 };
      const reasonsOf = (said: Partial<typeof known>) => whyNoJobs('A', { ...known, ...said }, facts);
      expect(codes(whyNoJobs('A', { ...known, count: undefined }, facts))).to.deep.equal([
        'panda-jobs-unknown',
      ]);
      expect(codes(reasonsOf({}))).to.deep.equal(['panda-jobs-served']);
      expect(reasonsOf({ wanted: 2 })).to.deep.equal([]);
    });

    it('D3: that it does not know, or which share is served, where several instances may serve the site', () => {
      const known = { count: jobs, instances: undefined, wanted: 0 };
      const [unknown] = whyNoJobs('A', known, facts);
      expect(unknown?.code).to.equal('panda-jobs-unknown');
      expect(unknown?.message).to.match(/which instances report workers of A: activateWorkerFactor auto/);
      const [served] = whyNoJobs('A', { ...known, instances: 3 }, facts);
      expect(served?.message).to.match(/A had 3 activated jobs at \S+, which 3 instances share, and/);
    });
  });
});
