import { expect } from 'chai';
import type { QueueFileResult } from '../../../src/config/queues/queues.ts';
import { logProblems } from '../../../src/daemon/reports/problem-log.ts';
import { QueueReports, whyNot } from '../../../src/daemon/reports/queue-reports.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { configOf, recordingLog } from '../../support/samples.ts';

const full = { code: 'queue-limit', message: 'full' };
const note = (message: string) => ({ code: 'reload-refused', message });
const problem = (queue: string | undefined, line: number, message: string) => ({
  severity: 'error' as const,
  code: 'wrong-type' as const,
  file: 'queues.json',
  pointer: '',
  line,
  message,
  ...(queue !== undefined && { queue }),
});

describe('what is wrong in a queue file', () => {
  it('hole 8: is in the log once for each of the first hundred of a kind, and then as their number', () => {
    const log = recordingLog();
    const problems = Array.from({ length: 5000 }, (_, at) => problem(`Q${at}`, at, `mistake ${at}`));
    logProblems(log, { problems, verdicts: [], incomplete: [] } as unknown as QueueFileResult);
    expect(log.lines).to.have.length(101);
    expect(log.lines.at(-1)?.facts).to.deep.equal({ file: 'queues.json', code: 'wrong-type', count: 4900 });
  });
});

describe('what an incomplete queue lacks', () => {
  it('tells plugins that Harvester dropped from those that thresher does not have yet', () => {
    const lacks = (code: 'plugin-not-there' | 'plugin-dropped', subject: string) => ({
      ...problem('Q', 1, 'm'),
      code,
      subject,
    });
    const problems = [lacks('plugin-dropped', 'GoogleSubmitter'), lacks('plugin-not-there', 'SlurmMonitor')];
    expect(whyNot({ name: 'Q', state: 'incomplete', problems })).to.equal(
      'thresher does not have yet: SlurmMonitor; dropped by Harvester, with none in their place: GoogleSubmitter',
    );
  });
});

describe('reports of queues', () => {
  let store: Store;
  let clock: ManualClock;
  let reports: QueueReports;
  const a = configOf('A', { maxWorkers: 3 });
  const b = configOf('B', { maxWorkers: 4, queueStatus: 'test' });

  beforeEach(async () => {
    store = await openStore(':memory:', 'factory');
    clock = new ManualClock(0);
    reports = new QueueReports(store.queues, clock);
  });

  afterEach(async () => {
    await store.close();
  });

  const fileOf = (changes: Partial<QueueFileResult> = {}): QueueFileResult => ({
    queues: [],
    refused: [],
    incomplete: [],
    templates: [],
    unlisted: [],
    ofCric: [],
    readable: true,
    problems: [],
    verdicts: (changes.refused ?? []).map((name) => {
      const problems = (changes.problems ?? []).filter(({ queue }) => queue === name);
      return { name, state: 'refused', problems };
    }),
    ...changes,
  });
  const said = async (): Promise<Record<string, string[]>> => {
    const rows = await store.queues.all();
    return Object.fromEntries(
      rows.map(({ queue, reasons }) => [queue, reasons.map(({ message }) => message)]),
    );
  };
  const at = async (queue: string) =>
    (await store.queues.all()).find((row) => row.queue === queue)?.reportTime;

  it('say what a queue is and why it stands still', async () => {
    await clock.advance(5);
    await reports.report(b, [full]);
    expect(await store.queues.all()).to.deep.equal([
      {
        queue: 'B',
        queueStatus: 'test',
        reasons: [full],
        reportTime: 5,
        limits: { maxWorkers: 4, nQueueLimitWorker: 4, maxNewWorkersPerCycle: 0 },
      },
    ]);
  });

  it('hole 3: have no secret that a plugin said, and are not written again for it', async () => {
    const said = { code: 'plugin-failed', message: 'api_key=0123456789abcdef01 was refused' };
    const shown = [{ code: 'plugin-failed', message: 'api_key=(hidden) was refused' }];
    await reports.report(a, [said]);
    await clock.advance(10);
    await reports.report(a, [said]);
    const [row] = await store.queues.all();
    expect([row?.reasons, row?.reportTime, reports.reasonsOf('A')]).to.deep.equal([shown, 0, shown]);
  });

  it('are written only when something changed', async () => {
    await reports.report(a, [full]);
    await clock.advance(10);
    await reports.report(a, [full]);
    expect(await at('A')).to.equal(0);
    await reports.report(a, []);
    expect(await at('A')).to.equal(10);
  });

  it('are written again when the write failed', async () => {
    let broken = true;
    const write: Store['queues']['report'] = (report) =>
      broken ? Promise.reject(new Error('the disk is full')) : store.queues.report(report);
    const failing = new QueueReports({ report: write } as unknown as Store['queues'], clock);
    const failed = await failing.report(a, [full]).catch((error: unknown) => String(error));
    expect([failed, await said()]).to.deep.equal(['Error: the disk is full', {}]);
    broken = false;
    await failing.report(a, [full]);
    expect(await said()).to.deep.equal({ A: ['full'] });
  });

  it('have the notes on a queue and on all before what is in the course of things, until these are taken back', async () => {
    reports.note(note('of A'), 'A');
    reports.note(note('of all'));
    await reports.report(a, [full]);
    await reports.report(b, []);
    expect(await said()).to.deep.equal({ A: ['of A', 'of all', 'full'], B: ['of all'] });
    reports.note(undefined);
    await reports.report(a, [full]);
    await reports.report(b, []);
    expect(await said()).to.deep.equal({ A: ['full'], B: [] });
  });

  it('have one note at a time on a queue, the last', async () => {
    reports.note(note('first'), 'A');
    reports.note(note('second'), 'A');
    await reports.report(a, []);
    expect(await said()).to.deep.equal({ A: ['second'] });
  });

  it('begin with those that start, the refused with file and line, and leave those that run alone', async () => {
    await reports.report(a, [full]);
    const problems = [problem('C', 4, 'is "10"'), problem('C', 5, 'x'), problem(undefined, 9, 'y')];
    await reports.begin([b], ['A'], fileOf({ refused: ['C', 'D'], problems }));
    expect(await said()).to.deep.equal({
      A: ['full'],
      B: ['the queue is being started'],
      C: ['queues.json:4: is "10" (and 1 more)'],
      D: ['its configuration has errors'],
    });
  });

  it('forget a queue that is gone from the file, but not one that an operator paused', async () => {
    await reports.report(a, []);
    await reports.report(b, []);
    await store.queues.setControl('B', { mode: 'paused', reason: 'downtime', since: 1 });
    await reports.begin([], [], fileOf());
    expect(await said()).to.deep.equal({ B: ['the queue is not in the queue file any more'] });
    // Once it is back it speaks for itself, also with the very words of before.
    await reports.report(a, []);
    expect(Object.keys(await said())).to.deep.equal(['A', 'B']);
  });

  it('say of every queue that nobody runs why the file cannot be read, and end no pause', async () => {
    await reports.report(a, []);
    await store.queues.setControl('A', { mode: 'paused', reason: 'downtime', since: 1 });
    const unreadable = { readable: false, problems: [problem(undefined, 1, 'not valid JSON')] };
    await reports.begin([], [], fileOf(unreadable));
    expect(await said()).to.deep.equal({ A: ['queues.json:1: not valid JSON'] });
    expect(await store.queues.control('A')).to.include({ mode: 'paused' });
  });
});
