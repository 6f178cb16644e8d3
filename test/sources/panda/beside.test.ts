import { expect } from 'chai';
import type { Dialog, ServiceMetricValues } from '../../../src/clients/panda/api.ts';
import type { PandaOutcome } from '../../../src/clients/panda/outcome.ts';
import type { LoggedTrouble } from '../../../src/plugins/contracts/index.ts';
import { runBeside } from '../../../src/sources/panda/beside.ts';
import { type DialogLevel, Dialogs } from '../../../src/sources/panda/dialogs.ts';
import { lookAtProcess, ServiceMetrics } from '../../../src/sources/panda/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { pandaFailure } from '../../support/panda-table.ts';

const signal = new AbortController().signal;
const ok: PandaOutcome<null> = { kind: 'ok', data: null };

describe('warnings for the operators of the PanDA server', () => {
  let waiting: LoggedTrouble[];
  let sent: (readonly Dialog[])[];
  let outcomes: PandaOutcome<null>[];
  const clock = new ManualClock();

  const make = (level: DialogLevel = 'WARNING', most = 50) =>
    new Dialogs({
      api: {
        addDialogs: async (dialogs) => {
          sent.push(dialogs);
          return outcomes.shift() ?? ok;
        },
      },
      clock,
      take: (count) => waiting.splice(0, count),
      level,
      most,
      note: () => undefined,
    });
  const trouble = (message: string, more: Partial<LoggedTrouble> = {}): LoggedTrouble => ({
    level: 'warn',
    message,
    about: 'Q',
    facts: 'code=x',
    count: 1,
    at: 5,
    ...more,
  });

  beforeEach(() => {
    waiting = [];
    sent = [];
    outcomes = [];
  });

  it('say what, of which part, how often, and with the facts of the last', async () => {
    waiting = [trouble('refused', { count: 7 }), trouble('lost', { level: 'error', about: '', facts: '' })];
    await make().turn(signal);
    const [first, second] = sent[0] ?? [];
    expect([first, second]).to.deep.equal([
      {
        diagID: first?.diagID,
        moduleName: 'thresher',
        identifier: 'Q',
        creationTime: 5,
        messageLevel: 'WARNING',
        diagMessage: 'refused (7 times): code=x',
      },
      {
        diagID: second?.diagID,
        moduleName: 'thresher',
        identifier: 'factory',
        creationTime: 5,
        messageLevel: 'ERROR',
        diagMessage: 'lost',
      },
    ]);
  });

  it('have ids that no other has, after a start neither, and that fit eleven digits', async () => {
    const seen = new Set<number>();
    for (let start = 0; start < 3; start++) {
      const dialogs = make();
      for (let turn = 0; turn < 3; turn++) {
        waiting = Array.from({ length: 50 }, (_, at) => trouble(`message ${at}`));
        await dialogs.turn(signal);
        await clock.advance(60_000);
      }
    }
    for (const { diagID } of sent.flat()) seen.add(diagID);
    expect(seen.size).to.equal(450);
    expect(Math.max(...seen)).to.be.below(99_999_999_999);
  });

  it('are at most so many in one turn, and none costs no call', async () => {
    const dialogs = make('WARNING', 3);
    await dialogs.turn(signal);
    expect(sent).to.deep.equal([]);
    waiting = ['a', 'b', 'c', 'd'].map((message) => trouble(message));
    await dialogs.turn(signal);
    expect(sent.map(({ length }) => length)).to.deep.equal([3]);
    await dialogs.turn(signal);
    expect(sent.map(({ length }) => length)).to.deep.equal([3, 1]);
  });

  it('of a call that failed are sent once more, under the same ids, and then left', async () => {
    const dialogs = make('WARNING', 2);
    waiting = ['a', 'b', 'c'].map((message) => trouble(message));
    outcomes = [pandaFailure('panda-database'), pandaFailure('panda-database')];
    for (let turn = 0; turn < 4; turn++) await dialogs.turn(signal);
    expect(sent.map((dialogs) => dialogs.map(({ diagMessage }) => diagMessage[0]))).to.deep.equal([
      ['a', 'b'],
      ['a', 'b'],
      ['c'],
    ]);
    expect(sent[0]).to.deep.equal(sent[1]);
  });

  it('leave warnings out where only errors are asked for', async () => {
    waiting = [trouble('a'), trouble('b', { level: 'error' })];
    await make('ERROR').turn(signal);
    expect(sent[0]?.map(({ messageLevel }) => messageLevel)).to.deep.equal(['ERROR']);
  });
});

describe('metrics for the PanDA server', () => {
  const hour = 3_600_000;
  let sent: { readonly values: ServiceMetricValues; readonly at: number }[];
  let cpu: number;
  const clock = new ManualClock();
  const make = (credentials: readonly { name: string; expiresAt: number | undefined }[] = []) =>
    new ServiceMetrics({
      api: {
        updateServiceMetrics: async (_host, values, at) => {
          sent.push({ values, at });
          return ok;
        },
      },
      clock,
      host: 'h',
      look: async () => ({ rss: 2 ** 27, totalMemory: 2 ** 33, cpu, processors: 2, diskUse: 0.256 }),
      credentials: () => credentials,
      note: () => undefined,
    });

  beforeEach(() => {
    sent = [];
    cpu = 0;
  });

  it('have the names and units of Harvester', async () => {
    const metrics = make([
      { name: '/proxy', expiresAt: clock.now() + 96.4 * hour },
      { name: 'endless', expiresAt: undefined },
    ]);
    await metrics.turn(signal);
    await clock.advance(10_000);
    cpu = 5000;
    await metrics.turn(signal);
    const common = { rss_mib: 128, memory_pc: 1.56, volume_state_pc: 25.6, cert_lifetime: { '/proxy': 96 } };
    expect(sent.map(({ values }) => values)).to.deep.equal([common, { ...common, cpu_pc: 25 }]);
  });

  it('fit their column whatever number of credentials there is, the first to end first', async () => {
    const many = Array.from({ length: 500 }, (_, at) => ({
      name: `/etc/grid-security/${'x'.repeat(50)}/${at}`,
      expiresAt: clock.now() + (500 - at) * hour,
    }));
    await make(many).turn(signal);
    expect(JSON.stringify(sent[0]?.values).length).to.be.within(3000, 4000);
    const kept = Object.values(sent[0]?.values['cert_lifetime'] ?? {});
    expect(kept[0]).to.equal(1);
    expect(kept).to.have.length.above(20);
  });

  it('of this process are plausible', async () => {
    const { rss, totalMemory, cpu: used, processors, diskUse } = await lookAtProcess('/');
    expect(rss).to.be.within(1e6, totalMemory);
    expect(used).to.be.above(0);
    expect(processors).to.be.at.least(1);
    expect(diskUse).to.be.within(0, 1);
    expect((await lookAtProcess('/does/not/exist')).diskUse).to.equal(undefined);
  });
});

describe('tasks beside the link', () => {
  it('go at their own paces, survive failures, and delay none of the others by hanging', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const turns: string[] = [];
    const warnings: unknown[] = [];
    const nothing = () => undefined;
    const log = {
      debug: nothing,
      info: nothing,
      error: nothing,
      warn: (_: string, facts: unknown) => {
        warnings.push(facts);
      },
    };
    const over = runBeside(
      [
        {
          name: 'fails',
          interval: 1000,
          turn: async () => {
            turns.push('fails');
            throw new Error('no');
          },
        },
        {
          name: 'hangs',
          interval: 1,
          turn: (end) =>
            new Promise((resolve) => {
              turns.push('hangs');
              end.addEventListener('abort', () => {
                resolve();
              });
            }),
        },
      ],
      { clock, log },
      stop.signal,
    );
    await clock.advance(2500);
    expect(turns).to.deep.equal(['fails', 'hangs', 'fails', 'fails']);
    expect(warnings[0]).to.deep.equal({ task: 'fails', error: 'no' });
    stop.abort();
    await over;
  });
});
