import { expect } from 'chai';
import type { PandaCommand } from '../../../src/clients/panda/api.ts';
import type { PandaOutcome } from '../../../src/clients/panda/outcome.ts';
import { SourceDesk } from '../../../src/agents/sources/desk.ts';
import { CommandRunner } from '../../../src/sources/panda/command-runner.ts';
import { LinkMemory } from '../../../src/sources/panda/memory.ts';
import { OrderBook } from '../../../src/sources/panda/order-book.ts';
import { ServerHealth } from '../../../src/sources/panda/server-health.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { workerOf, ownQueue } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

const { signal } = new AbortController();
const down = { kind: 'failed', code: 'panda-unreachable', message: 'm', maybeDone: false } as const;

describe('commands of the PanDA server at work', () => {
  let parts: AgentParts;
  let memory: LinkMemory;
  let runner: CommandRunner;
  let desk: SourceDesk;
  let given: PandaCommand[];
  let acknowledged: number[][];
  let reportsFail: boolean;
  let isDiskFull: boolean;
  let acknowledging: PandaOutcome<null>;
  let askedStatistics: string[];
  let reportedAgain: (number | null)[];
  /** How far the server's clock is ahead, ms. */
  let ahead: number | undefined;
  /** What was written when the acknowledgement went out. */
  let writtenThen: string;
  let written: string;
  let writes: number;

  beforeEach(async () => {
    parts = await AgentParts.open();
    [given, acknowledged, askedStatistics, reportedAgain] = [[], [], [], []];
    acknowledging = { kind: 'ok', data: null };
    [written, writes] = ['', 0];
    [reportsFail, isDiskFull] = [false, false];
    ahead = undefined;
    memory = new LinkMemory(
      memoryFor(async (text) => {
        if (isDiskFull) throw new Error('ENOSPC');
        written = text;
        writes++;
      }),
    );
    desk = new SourceDesk('panda', {
      ...parts.context,
      queues: () => ['S'],
      queuesOf: () => [ownQueue('S', { runMode: 'slave' })],
      reasonsOf: () => [],
      unlistedOf: () => undefined,
      wakeSubmitter: () => undefined,
      logsOf: () => Promise.reject(new Error('none')),
      outputsOf: async () => undefined,
    });
    runner = runnerWith(memory);
    await parts.ledger.intend(
      [1, 2, 3, 4].map((id) =>
        workerOf(id, { queue: id === 4 ? 'GONE' : 'S', origin: { kind: 'panda', uid: 'o', index: id } }),
      ),
    );
    await parts.ledger.change([{ workerId: 1, to: 'running', source: 'test' }]);
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  describe('hole 8: one that fails', () => {
    const kill = (id: number, site: string) => ({
      command_id: id,
      command: 'KILL_WORKERS',
      params: { status: 'ALL', computingSite: [site], computingElement: 'ALL', submissionHost: 'ALL' },
    });
    let ended: number;
    /** Each end fails until this many did. */
    let failures: number;
    beforeEach(() => {
      ended = 0;
      const end = desk.end.bind(desk);
      desk.end = async (origins, reason) => {
        ended++;
        if (ended <= failures && origins.some(({ index }) => index === 4)) throw new Error('poison');
        await end(origins, reason);
      };
    });

    it('stops neither the link nor the commands behind it, and is given up after a bounded number of tries', async () => {
      failures = Infinity;
      given = [kill(1, 'GONE'), kill(2, 'S')];
      await runner.poll(desk, signal);
      expect([1, 2, 3].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([true, true, true]);
      expect(memory.commands.map(({ command_id: id }) => id)).to.deep.equal([1]);
      // A start of the daemon, and polls.
      const again = new LinkMemory(memoryFor(async () => undefined));
      again.take(written);
      const second = runnerWith(again);
      await second.resume(desk, signal);
      for (let poll = 0; poll < 10; poll++) await second.poll(desk, signal);
      expect([again.commands, ended]).to.deep.equal([[], 6]);
      expect(second.shown[0]?.outcome).to.equal('given up after 5 tries: poison');
    });

    it('is tried again at the next poll, and ends no worker that was made since', async () => {
      failures = 1;
      given = [kill(1, 'GONE')];
      await runner.poll(desk, signal);
      await parts.clock.advance(1000);
      await parts.ledger.intend([
        workerOf(5, { queue: 'GONE', origin: { kind: 'panda', uid: 'o', index: 5 } }),
      ]);
      await runner.poll(desk, signal);
      expect([4, 5].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([true, false]);
      expect(memory.commands).to.deep.equal([]);
    });
  });

  function runnerWith(kept: LinkMemory): CommandRunner {
    const { clock, log } = parts;
    return new CommandRunner({
      api: {
        acquireCommands: async () => ({ kind: 'ok', data: given.splice(0) }),
        acknowledge: async (ids) => {
          writtenThen = written;
          acknowledged.push([...ids]);
          return acknowledging;
        },
      },
      memory: kept,
      orders: new OrderBook({ memory: kept, clock, log, serverAhead: () => undefined }),
      statistician: { ask: (site) => askedStatistics.push(site) },
      reportAgain: async (workers) => {
        if (reportsFail) throw new Error('the server takes no reports');
        reportedAgain.push(...workers.map(({ worker }) => worker.workerId));
      },
      clock,
      log,
      health: new ServerHealth({ clock, log }),
      host: 'here',
      serverAhead: () => (ahead === undefined ? undefined : { ahead, within: 1000 }),
      atOnce: 3,
    });
  }

  const give = (...commands: readonly (readonly [command: string, params: unknown])[]) => {
    given.push(...commands.map(([command, params], at) => ({ command_id: at + 1, command, params })));
  };
  const all = { status: 'ALL', computingSite: 'ALL', computingElement: 'ALL', submissionHost: 'ALL' };
  const killed = () => [1, 2, 3, 4].filter((id) => parts.ledger.live.get(id)?.killed === true);

  it('are stored before they are acknowledged, and forgotten once they are carried out', async () => {
    give(['REPORT_WORKER_STATS:S', null]);
    expect(await runner.poll(desk, signal)).to.equal(false);
    expect(JSON.parse(writtenThen)).to.have.nested.property('commands[0].command', 'REPORT_WORKER_STATS:S');
    expect(memory.commands).to.deep.equal([]);
    expect([acknowledged, askedStatistics]).to.deep.equal([[[1]], ['S']]);
  });

  it('REPORT_WORKER_STATS is for the sites of its queues and of its living workers', async () => {
    give(['REPORT_WORKER_STATS:GONE', null], ['REPORT_WORKER_STATS:ELSEWHERE', null]);
    await runner.poll(desk, signal);
    expect(askedStatistics).to.deep.equal(['GONE']);
    expect(runner.shown[0]?.outcome).to.equal('no queue here serves ELSEWHERE, and none of its workers live');
  });

  it('for sites that nobody here serves bring the next question no sooner, and are written down together and logged once', async () => {
    let id = 0;
    const strangers = (from: number, count: number) =>
      Array.from({ length: count }, (_, at) => ({
        command_id: ++id,
        command: `${at % 2 === 0 ? 'REPORT_WORKER_STATS' : 'SET_N_WORKERS_JOBTYPE'}:X${from + at}`,
        params: { managed: { SCORE: 1 } },
        creation_date: '2025-12-26T08:00:00',
      }));
    for (let poll = 0; poll < 3; poll++) {
      writes = 0;
      given.push(...strangers(0, 20));
      expect(await runner.poll(desk, signal)).to.equal(false);
      expect(writes, 'taken, and done with').to.equal(2);
    }
    expect(parts.log.lines).to.have.length(20);
    expect(parts.log.lines[1]?.facts['outcome']).to.equal('no queue with runMode slave here serves X1');
    for (let poll = 1; poll < 20; poll++) {
      given.push(...strangers(20 * poll, 20));
      await runner.poll(desk, signal);
    }
    expect(parts.log.lines).to.have.length(101);
    expect(memory.commands).to.deep.equal([]);
  });

  it('for workers that nobody has bring the next question no sooner, and one that meets a worker counts', async () => {
    const nobody = { ...all, computingSite: ['ELSEWHERE'] };
    for (const three of [
      [1, 2, 3].map(() => ['KILL_WORKERS', nobody] as const),
      [1, 2, 3].map(() => ['KILL_WORKERS', { ...all, computingSite: [] }] as const),
      [97, 98, 99].map((id) => ['SYNC_WORKERS_KILL', [id]] as const),
      [97, 98, 99].map((id) => ['SYNC_WORKERS_ACTIVATE', [id]] as const),
    ]) {
      give(...three);
      expect(await runner.poll(desk, signal), three[0]?.[0]).to.equal(false);
      expect(memory.commands).to.deep.equal([]);
    }
    give(['SYNC_WORKERS_KILL', [2]], ['SYNC_WORKERS_ACTIVATE', [1]], ['KILL_WORKERS', nobody]);
    expect(await runner.poll(desk, signal)).to.equal(true);
    expect([killed(), reportedAgain]).to.deep.equal([[2], [1]]);
  });

  it('hole 8: of one answer are read once each, and others have their turn between two of them', async () => {
    let passed = 0;
    const monotonic = parts.clock.monotonic.bind(parts.clock);
    parts.clock.monotonic = () => monotonic() + passed;
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    /** The turn of each look at the parameters, by the number of the command; what writes them down looks at none. */
    const looks = new Map<number, number[]>();
    given = [1, 2, 3, 4, 5, 6].map((id) => {
      const params = {
        get managed() {
          passed += 30;
          looks.set(id, [...(looks.get(id) ?? []), turns]);
          return { SCORE: id };
        },
      };
      Object.defineProperty(params, 'toJSON', { value: () => ({ managed: { SCORE: id } }) });
      return { command_id: id, command: `SET_N_WORKERS_JOBTYPE:${id % 2 === 0 ? 'S' : 'ELSEWHERE'}`, params };
    });
    try {
      await runner.poll(desk, signal);
    } finally {
      isOver = true;
    }
    expect([memory.orderOf('S')?.commandId, memory.commands]).to.deep.equal([6, []]);
    const times = [1, 2, 3, 4, 5, 6].map((id) => looks.get(id) ?? []);
    expect(times.map((one) => one.length)).to.deep.equal([1, 1, 1, 1, 1, 1]);
    expect(new Set(times.flat()).size, 'turns in which one was read').to.equal(6);
  });

  it('that a server takes no acknowledgement of are remembered to the number of 500', async () => {
    acknowledging = { ...down, maybeDone: true };
    for (let at = 0; at < 300; at++) {
      given.push({ command_id: 2 * at, command: 'DANCE' }, { command_id: 2 * at + 1, command: 'DANCE' });
      await runner.poll(desk, signal);
    }
    const last = acknowledged.at(-1) ?? [];
    expect([last.length, last[0], last.at(-1)]).to.deep.equal([500, 100, 599]);
  });

  it('come again at once after a full answer', async () => {
    give(...[1, 2, 3].map(() => ['REPORT_WORKER_STATS:S', null] as const));
    expect(await runner.poll(desk, signal)).to.equal(true);
  });

  it('hole 8: that cannot be read, or came before, bring the next question no sooner', async () => {
    const created = { creation_date: '2026-11-26T08:00:00' };
    const three = [1, 2, 3].map((id) => ({
      command_id: id,
      command: 'REPORT_WORKER_STATS:S',
      ...created,
    }));
    given.push(...three);
    expect(await runner.poll(desk, signal)).to.equal(true);
    given.push(...three);
    expect(await runner.poll(desk, signal)).to.equal(false);
    given.push(...[1001, 1002, 0].map((id) => ({ command_id: id, command: 'DANCE' })));
    expect(await runner.poll(desk, signal)).to.equal(false);
  });

  const kills: readonly (readonly [title: string, filter: object, ids: readonly number[]])[] = [
    ['all workers, those of removed queues and intents among them', all, [1, 2, 3, 4]],
    ['one status; the server takes an intent for submitted', { ...all, status: ['submitted'] }, [2, 3, 4]],
    ['a site', { ...all, computingSite: ['GONE'] }, [4]],
    ['no computing element that it has', { ...all, computingElement: ['ce'] }, []],
    ['the host of the submission', { ...all, submissionHost: ['here'], status: ['running'] }, [1]],
    ['another host', { ...all, submissionHost: ['there'] }, []],
  ];
  for (const [title, filter, ids] of kills) {
    it(`KILL_WORKERS ends what it means: ${title}`, async () => {
      give(['KILL_WORKERS', filter]);
      await runner.poll(desk, signal);
      expect(killed()).to.deep.equal(ids);
      expect(runner.shown[0]?.outcome).to.equal(`${ids.length} workers are asked to end`);
    });
  }

  // The server itself makes such lists: `"computingElement": []`.
  it('hole 4: KILL_WORKERS with an empty list or an absent key ends no worker, and says so', async () => {
    give(['KILL_WORKERS', { ...all, computingElement: [] }], ['KILL_WORKERS', { status: ['running'] }]);
    await runner.poll(desk, signal);
    expect(killed()).to.deep.equal([]);
    expect(runner.shown.map(({ outcome }) => outcome)).to.deep.equal([
      'no worker is meant: computingSite, computingElement, submissionHost is an empty list or absent ("ALL" means all)',
      'no worker is meant: computingElement is an empty list or absent ("ALL" means all)',
    ]);
  });

  it('hole 4: that are answered twice are carried out once, also after a restart', async () => {
    const kill = (params: unknown, created: string) => ({
      command_id: 9,
      command: 'SYNC_WORKERS_KILL',
      params,
      creation_date: created,
    });
    const [a, b] = ['2026-11-26T08:00:00', '2026-11-26T08:00:01'];
    given.push(kill([1], a), kill([1], a));
    await runner.poll(desk, signal);
    given.push(kill([1], a));
    await runner.poll(desk, signal);
    expect([runner.shown.length, killed()]).to.deep.equal([1, [1]]);
    expect(acknowledged).to.deep.equal([[9, 9], [9]]);
    const kept = new LinkMemory(memoryFor());
    kept.take(written);
    const again = runnerWith(kept);
    given.push(kill([2], a), kill([3], b));
    await again.poll(desk, signal);
    expect([again.shown.length, killed()]).to.deep.equal([1, [1, 3]]);
  });

  it('hole 4: that come again with or without their time are carried out once', async () => {
    const kill = { command_id: 9, command: 'SYNC_WORKERS_KILL', params: [1] };
    const dated = { ...kill, creation_date: '2026-11-26T08:00:00' };
    for (const one of [kill, dated, kill, dated]) {
      given.push(one);
      await runner.poll(desk, signal);
    }
    expect([runner.shown.length, killed()]).to.deep.equal([1, [1]]);
  });

  it('hole 4: KILL_WORKERS comes once however many other commands came since', async () => {
    const kill = { command_id: 1, command: 'KILL_WORKERS', params: { ...all, status: ['running'] } };
    given.push(kill);
    await runner.poll(desk, signal);
    for (let id = 2; id < 400; id += 3) {
      give(...Array.from({ length: 3 }, () => ['REPORT_WORKER_STATS:KILL', null] as const));
      given.forEach((one, at) => Object.assign(one, { command_id: id + at }));
      await runner.poll(desk, signal);
    }
    await parts.ledger.change([{ workerId: 2, to: 'running', source: 'test' }]);
    given.push(kill);
    await runner.poll(desk, signal);
    expect(killed()).to.deep.equal([1]);
    expect([memory.done, memory.kills].map((keys) => keys.length)).to.deep.equal([200, 1]);
  });

  it('hole 4: KILL_WORKERS that was carried out and not written down ends nothing that was made since', async () => {
    give(['KILL_WORKERS', { ...all, status: ['running'] }]);
    await runner.poll(desk, signal);
    const kept = new LinkMemory(memoryFor());
    kept.take(writtenThen);
    await parts.clock.advance(60_000);
    await parts.ledger.intend([workerOf(9, { queue: 'S' })]);
    for (const workerId of [2, 9]) await parts.ledger.change([{ workerId, to: 'running', source: 'test' }]);
    await runnerWith(kept).resume(desk, signal);
    expect([killed(), parts.ledger.live.get(9)?.killed]).to.deep.equal([[1, 2], false]);
  });

  for (const [title, first, second] of [
    [
      'a text with its keys in another order',
      all,
      JSON.stringify(Object.fromEntries(Object.entries(all).toReversed())),
    ],
    [
      'lists in another order',
      { ...all, status: ['running', 'idle'] },
      { ...all, status: ['idle', 'running'] },
    ],
  ] as const)
    it(`hole 4: KILL_WORKERS comes once, though it comes again as ${title}`, async () => {
      for (const params of [first, second]) {
        given.push({ command_id: 9, command: 'KILL_WORKERS', params });
        await runner.poll(desk, signal);
      }
      expect(runner.shown).to.have.length(1);
    });

  for (const [title, first, second, times] of [
    ['once, though the fraction of its second is cut the second time', '00.900000', '00', 1],
    ['once, though its time is rounded to the next second the second time', '10.900000', '11', 1],
    ['once, though its time is rounded the first time', '11', '10.900000', 1],
    ['twice where a server that began anew gives its number later', '10', '11.001000', 2],
  ] as const)
    it(`hole 4: KILL_WORKERS comes ${title}`, async () => {
      for (const seconds of [first, second]) {
        const created = `2026-01-01T00:00:${seconds}`;
        given.push({ command_id: 9, command: 'KILL_WORKERS', params: all, creation_date: created });
        await runner.poll(desk, signal);
      }
      expect(runner.shown).to.have.length(times);
    });

  it('hole 4: KILL_WORKERS comes once however many came since that nobody can carry out', async () => {
    const kill = { command_id: 1, command: 'KILL_WORKERS', params: { ...all, status: ['running'] } };
    given.push(kill);
    await runner.poll(desk, signal);
    for (let id = 2; id < 1200; id += 3) {
      given.push(...[0, 1, 2].map((at) => ({ command_id: id + at, command: 'NO_SUCH_KILL', params: null })));
      await runner.poll(desk, signal);
    }
    given.push(kill);
    await runner.poll(desk, signal);
    expect(memory.kills).to.have.length(1);
  });

  for (const [title, clocks] of [
    ['', undefined],
    [', though the clock of the server is a minute behind', -60_000],
    [', though the clock of the server is a minute ahead', 60_000],
  ] as const)
    it(`hole 4: KILL_WORKERS that waited at the server ends no worker that was made since${title}`, async () => {
      ahead = clocks;
      const created = new Date(parts.clock.now() + (clocks ?? 0)).toISOString();
      await parts.clock.advance(600_000);
      await parts.ledger.intend([
        workerOf(9, { queue: 'S', origin: { kind: 'panda', uid: 'new', index: 9 } }),
      ]);
      given.push({
        command_id: 1,
        command: 'KILL_WORKERS',
        params: { ...all, status: 'ALL' },
        creation_date: created,
      });
      await runner.poll(desk, signal);
      expect([killed(), parts.ledger.live.get(9)?.killed]).to.deep.equal([[1, 2, 3, 4], false]);
    });

  for (const hours of [1, 24])
    it(`KILL_WORKERS that waited ends no worker that was made since, though answers have a date that is ${hours} h behind`, async () => {
      ahead = -hours * 3_600_000;
      const kill = killOf(1, 0);
      await parts.clock.advance(1_800_000);
      await parts.ledger.intend([
        workerOf(9, { queue: 'S', origin: { kind: 'panda', uid: 'new', index: 9 } }),
      ]);
      await parts.clock.advance(6 * 3_600_000);
      await parts.ledger.intend([
        workerOf(10, { queue: 'S', origin: { kind: 'panda', uid: 'new', index: 10 } }),
      ]);
      given.push(kill);
      await runner.poll(desk, signal);
      expect(killed()).to.deep.equal([1, 2, 3, 4]);
      expect([9, 10].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([false, false]);
      expect(runner.shown[0]?.outcome).to.equal(
        `4 workers are asked to end, and 2 others that fit are spared: they are younger than the command; ${hours === 1 ? 1 : 2} may be older, since the server's clock shows an earlier time`,
      );
    });

  it('KILL_WORKERS of a server whose clock is an hour behind spares the workers of that hour, and says so', async () => {
    ahead = -3_600_000;
    given.push(killOf(1, 3_600_000));
    await runner.poll(desk, signal);
    expect(killed()).to.deep.equal([]);
    expect(runner.shown[0]?.outcome).to.match(/^0 workers .* 4 others .*; 4 may be older/);
  });

  const killOf = (id: number, ago: number) => ({
    command_id: id,
    command: 'KILL_WORKERS',
    params: all,
    creation_date: new Date(parts.clock.now() - ago).toISOString(),
  });

  it('hole 4: KILL_WORKERS that waited ends adopted workers that their backend started before, and says how many are spared', async () => {
    ahead = 0;
    const start = parts.clock.now();
    await parts.clock.advance(3_600_000);
    const adopted = [11, 12].map((id) =>
      workerOf(id, { queue: 'S', origin: { kind: 'panda', uid: 'old', index: id } }),
    );
    await parts.ledger.adopt(adopted, 'submitted');
    await parts.ledger.change([{ workerId: 11, to: 'running', source: 'test', startTime: start }]);
    await parts.ledger.intend([
      workerOf(14, { queue: 'S', origin: { kind: 'panda', uid: 'new', index: 14 } }),
    ]);
    given.push(killOf(1, 600_000));
    await runner.poll(desk, signal);
    expect([killed(), [11, 12, 14].map((id) => parts.ledger.live.get(id)?.killed)]).to.deep.equal([
      [1, 2, 3, 4],
      [true, false, false],
    ]);
    const outcome =
      '5 workers are asked to end, and 2 others that fit are spared: they are younger than the command; of 1 it is known only that they were adopted later';
    expect(runner.shown[0]?.outcome).to.equal(outcome);
    expect(parts.log.lines.map(({ facts }) => facts['outcome'])).to.include(outcome);
  });

  for (const minutes of [4, 10, 60])
    it(`hole 4: KILL_WORKERS ends the workers that were made before the clock was set back by ${minutes} minutes`, async () => {
      ahead = 0;
      const now = parts.clock.now.bind(parts.clock);
      parts.clock.now = () => now() - minutes * 60_000;
      given.push(killOf(1, 0));
      await runner.poll(desk, signal);
      expect(killed()).to.deep.equal([1, 2, 3, 4]);
    });

  it('hole 4: without a time are carried out once where they say the same', async () => {
    for (const created of [undefined, 'Fri, 27 Nov 2026 08:00:00 GMT'] as const) {
      const kill = {
        command_id: created === undefined ? 8 : 9,
        command: 'SYNC_WORKERS_KILL',
        ...(created && { creation_date: created }),
      };
      given.push({ ...kill, params: [1] }, { ...kill, params: [1] }, { ...kill, params: [2] });
      await runner.poll(desk, signal);
      given.push({ ...kill, params: [1] });
      await runner.poll(desk, signal);
      expect(runner.shown).to.have.length(created === undefined ? 2 : 4);
    }
  });

  it('hole 8: of many orders of one site in an answer the last one counts, and they bring the next question no sooner', async () => {
    const order = (id: number, count: number, created = `2025-12-26T08:00:0${id}`) => ({
      command_id: id,
      command: 'SET_N_WORKERS_JOBTYPE:S',
      params: { managed: { SCORE: count } },
      creation_date: created,
    });
    given.push(order(1, 9000), order(2, 8000), order(3, 2));
    expect(await runner.poll(desk, signal)).to.equal(false);
    expect(memory.orderOf('S')?.commandId).to.equal(3);
    const later = 'a later order of the site came with it';
    expect(runner.shown.filter(({ outcome }) => outcome === later).map(({ id }) => id)).to.deep.equal([2, 1]);
    const undated = (id: number, count: number) => order(id, count, 'yesterday');
    given.push(undated(5, 9), order(6, 8), undated(7, 3));
    await runner.poll(desk, signal);
    expect(runner.shown.slice(0, 3).map(({ outcome }) => outcome === later)).to.deep.equal([
      false,
      true,
      true,
    ]);
    // What stands behind is not always the later one.
    given.push(order(9, 5), order(4, 3));
    await runner.poll(desk, signal);
    expect([memory.orderOf('S')?.commandId, runner.shown[0]?.outcome]).to.deep.equal([
      9,
      'a newer order of the site counts',
    ]);
  });

  it('hole 8: that cannot be read are said, and the others are carried out', async () => {
    const wrong = 'its parameters have more than 8 levels';
    given.push(
      { command_id: 0, command: '', wrong: 'it has no number' },
      { command_id: 5, command: 'DANCE', wrong },
      { command_id: 6, command: 'SYNC_WORKERS_KILL', params: [2] },
    );
    await runner.poll(desk, signal);
    expect([killed(), memory.commands]).to.deep.equal([[2], []]);
    expect(acknowledged).to.deep.equal([[5, 6]]);
    expect(runner.shown.map(({ outcome }) => outcome)).to.include.members([
      'the command "" cannot be read: it has no number',
      `the command "DANCE" cannot be read: ${wrong}`,
    ]);
  });

  it('hole 8: that change nothing are written down together', async () => {
    give(
      ...Array.from({ length: 100 }, () => ['DANCE', null] as const),
      ['SYNC_WORKERS_KILL', [2]],
      ['DANCE', null],
    );
    await runner.poll(desk, signal);
    expect([killed(), memory.commands, writes]).to.deep.equal([[2], [], 3]);
  });

  it('of the same name in one answer are all carried out', async () => {
    give(['SYNC_WORKERS_KILL', [1]], ['SYNC_WORKERS_KILL', [3, 99]]);
    await runner.poll(desk, signal);
    expect(killed()).to.deep.equal([1, 3]);
  });

  it('SYNC_WORKERS_ACTIVATE reports the workers again', async () => {
    give(['SYNC_WORKERS_ACTIVATE', [1, 4, 99]]);
    await runner.poll(desk, signal);
    expect(reportedAgain).to.deep.equal([1, 4]);
  });

  it('SYNC_WORKERS_ACTIVATE is done with where the reports fail, and the next command follows', async () => {
    reportsFail = true;
    give(['SYNC_WORKERS_ACTIVATE', [1]], ['SYNC_WORKERS_KILL', [2]]);
    await runner.poll(desk, signal);
    expect(runner.shown.map(({ outcome }) => outcome)).to.deep.equal([
      '1 workers are asked to end',
      'the reports failed: the server takes no reports',
    ]);
    expect(memory.commands).to.deep.equal([]);
  });

  it('are not taken while they cannot be stored', async () => {
    isDiskFull = true;
    await memory.change((kept) => kept).catch(() => undefined);
    give(['SYNC_WORKERS_KILL', [2]]);
    await runner.poll(desk, signal);
    expect([given.length, killed()]).to.deep.equal([1, []]);
    isDiskFull = false;
    await runner.poll(desk, signal);
    expect([given.length, killed()]).to.deep.equal([0, [2]]);
  });

  const unused: readonly (readonly [title: string, command: string, params: unknown, says: RegExp])[] = [
    ['for a site that no queue serves', 'SET_N_WORKERS_JOBTYPE:T', { managed: { SCORE: 1 } }, /no queue .*T/],
    ['that thresher does not know', 'DANCE', {}, /DANCE is none of the commands/],
    ['with parameters of another form', 'KILL_WORKERS', { status: 1 }, /instead of lists/],
  ];
  for (const [title, command, params, says] of unused) {
    it(`${title} are said and done with`, async () => {
      give([command, params]);
      await runner.poll(desk, signal);
      expect(runner.shown[0]?.outcome).to.match(says);
      expect(parts.log.lines.filter(({ level }) => level === 'warn')).to.have.length(1);
      expect([memory.commands, memory.orders.size, killed()]).to.deep.equal([[], 0, []]);
    });
  }

  it('that a daemon left are carried out by the next, and acknowledged then', async () => {
    const left = [{ command_id: 7, command: 'SYNC_WORKERS_KILL', params: [2] }];
    await memory.change((kept) => ({ ...kept, commands: left }));
    const next = runnerWith(memory);
    await next.resume(desk, signal);
    expect([killed(), memory.commands]).to.deep.equal([[2], []]);
    await next.poll(desk, signal);
    expect(acknowledged).to.deep.equal([[7]]);
  });

  it('are carried out though the server takes no acknowledgement', async () => {
    acknowledging = down;
    give(['SYNC_WORKERS_KILL', [2]]);
    await runner.poll(desk, signal);
    expect(killed()).to.deep.equal([2]);
  });
});
