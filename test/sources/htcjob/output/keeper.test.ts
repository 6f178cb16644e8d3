import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { HtcJobStatus } from '../../../../src/clients/htcjob/resource.ts';
import { ThresherError } from '../../../../src/worker/errors.ts';
import type { LeftOutput } from '../../../../src/plugins/contracts/index.ts';
import type { JobFacts } from '../../../../src/sources/htcjob/facts.ts';
import type { Judged } from '../../../../src/sources/htcjob/judge.ts';
import type { OnFiles } from '../../../../src/sources/htcjob/output/directory.ts';
import { OutputKeeper } from '../../../../src/sources/htcjob/output/keeper.ts';
import { OutputPlace } from '../../../../src/sources/htcjob/output/place.ts';
import { kept } from '../../../../src/sources/htcjob/followed.ts';
import { Tracked } from '../../../../src/sources/htcjob/tracked.ts';
import { archiveOf, inPieces } from '../../../support/archives.ts';
import { indexOf } from '../../../../src/clients/htcjob/numbers.ts';
import { nextTurn } from '../../../../src/util/clock.ts';
import { htcJob } from '../../../support/htc-jobs.ts';
import { newsOf } from '../../../support/htcjob-stepper.ts';
import { HangingLane } from '../../../support/hanging-lane.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { recordingLog } from '../../../support/samples.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { until } from '../../../support/until.ts';

const archive = archiveOf('echo result > file');

describe('the keeper of outputs', () => {
  let root: string;
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let end: AbortController;
  let over: Promise<void> | undefined;
  /** By worker: what its backend says next. */
  let left: Map<number, (Buffer | Error | undefined)[]>;
  let asked: number[];
  let dropped: number[];
  /** What bringing an output waits for. */
  let hangs: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** How many of the next drops fail. */
  let untold: number;
  let tracked: Tracked;
  /** How calls about files are made. */
  let onFiles: OnFiles;

  beforeEach(() => {
    onFiles = (_, work) => work();
    root = temporaryDirectory();
    clock = new ManualClock();
    log = recordingLog();
    left = new Map();
    asked = [];
    dropped = [];
    untold = 0;
    hangs = undefined;
    tracked = new Tracked(kept(htcJob({ queue: 2, output: {} })));
  });

  afterEach(async () => {
    end.abort();
    await over;
  });

  function begin(): OutputKeeper {
    end = new AbortController();
    const desk = {
      output: async (workerId: number, signal: AbortSignal): Promise<LeftOutput | undefined> => {
        asked.push(workerId);
        await hangs?.(signal);
        const answers = left.get(workerId) ?? [];
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer instanceof Error) throw answer;
        if (answer === undefined) return undefined;
        return {
          bytes: answer.length,
          read: () => inPieces(answer),
          [Symbol.asyncDispose]: async () => undefined,
        };
      },
      dropOutputs: async (workerIds: readonly number[]) => {
        if (untold-- > 0) throw new Error('no room for the mark');
        dropped.push(...workerIds);
      },
    };
    const found = { ...desk, find: async () => [] };
    const place = new OutputPlace(root, onFiles);
    const bounds = { bytes: 10_000, files: 10 };
    const keeper = new OutputKeeper({
      clock,
      log,
      desk: found,
      place,
      onFiles,
      bounds,
      changed: () => undefined,
    });
    over = keeper.run(end.signal);
    return keeper;
  }

  async function removed(keeper: OutputKeeper): Promise<void> {
    await until('it is removed', async () => {
      if (keeper.remove(tracked) === undefined) return true;
      await clock.advance(1000);
      return false;
    });
  }

  async function restart(): Promise<OutputKeeper> {
    end.abort();
    await over;
    return begin();
  }

  /** Both jobs have ended, by these workers. */
  function want(keeper: OutputKeeper, workers: readonly (number | undefined)[] = [1, 2]): void {
    keeper.want(tracked, {
      jobs: workers.map((workerId, number) => ({
        number,
        index: number,
        outcome: 'succeeded',
        facts: workerId === undefined ? undefined : ({ workerId } as JobFacts),
      })),
    });
  }
  const statusOf = (keeper: OutputKeeper): HtcJobStatus => keeper.inStatus(tracked, tracked.status ?? {});
  const condition = (keeper: OutputKeeper) => statusOf(keeper).conditions?.[0];
  const fetchesOf = (workerId: number) => asked.filter((one) => one === workerId).length;
  const failures = () => log.lines.filter(({ message }) => message.includes('could not be kept')).length;
  const path = (...parts: readonly string[]) => join(root, 'default/zero-uid-of-zero', ...parts);

  it('hole 6: is asked to stop by a deletion, which waits for a while and then says what for', async () => {
    const keeper = begin();
    left.set(1, [archive]);
    hangs = async (signal) => {
      await once(signal, 'abort');
      throw new Error('it was ended');
    };
    want(keeper, [1]);
    await until('it is being brought', () => asked.length === 1);
    await removed(keeper);
    expect(dropped).to.deep.equal([]);

    const stuck = Promise.withResolvers<undefined>();
    hangs = () => stuck.promise;
    want(keeper, [1]);
    await until('it is being brought again', () => asked.length === 2);
    expect(keeper.remove(tracked)?.why).to.equal(undefined);
    await clock.pass(10_000);
    await until('it says why', () => keeper.remove(tracked)?.why?.code === 'output-awaited');
    stuck.resolve(undefined);
    await removed(keeper);
    const warnings = log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(warnings).to.deep.equal(['outputs of a deleted HTCJob could not be removed']);
  });

  it('keeps each output once, and lets the backend forget it then', async () => {
    const keeper = begin();
    left.set(1, [archive]).set(2, [archive]);
    want(keeper);
    want(keeper);
    await until('both are kept', () => statusOf(keeper).outputIndexes === '0-1');
    expect(readFileSync(path('1', 'file'), 'utf8')).to.equal('result\n');
    want(keeper);
    await clock.advance(60_000);
    expect([asked, dropped]).to.deep.equal([
      [1, 2],
      [1, 2],
    ]);
    expect(statusOf(keeper).outputDirectory).to.equal('default/zero-uid-of-zero');
    expect(condition(keeper)).to.include({ status: 'True', reason: 'OutputKept' });
    tracked.status = statusOf(keeper);
    expect(keeper.isOpen(tracked)).to.equal(false);
  });

  it('hole 6: lets the backend forget what an attempt left that another one with a worker followed', async () => {
    const keeper = begin();
    const retryOf = (number: number) => indexOf({ round: 0, attempt: 1, number });
    const uid = 'uid-of-zero';
    tracked.hear(newsOf(uid, 0, 'failed', 1));
    tracked.hear(newsOf(uid, 1, 'failed', 1));
    tracked.hear(newsOf(uid, retryOf(0), 'running'));
    const [, second, running] = [...tracked.attempts.values()];
    const job = (number: number, outcome: Judged['outcome'], facts: JobFacts | undefined) => ({
      number,
      index: retryOf(number),
      outcome,
      facts,
    });
    // Job 0 runs again, and job 1 is about to.
    const jobs = [job(0, 'live', running), job(1, 'wanted', undefined)];
    keeper.want(tracked, { jobs });
    keeper.want(tracked, { jobs });
    await until('it is dropped', () => dropped.length > 0);
    await clock.advance(60_000);
    expect([asked, dropped]).to.deep.equal([[], [1]]);
    // Its time is over before job 1 has run again.
    const worker = second?.workerId ?? 0;
    left.set(worker, [archive]);
    keeper.want(tracked, { jobs: [job(0, 'live', running), job(1, 'failed', undefined)] });
    await until('it is kept', () => statusOf(keeper).outputIndexes === '1');
    expect([asked, dropped]).to.deep.equal([[worker], [1, worker]]);
  });

  it('says that an output is kept only when the backend was told to forget it', async () => {
    const keeper = begin();
    left.set(1, [archive]).set(2, [archive]);
    untold = 1;
    want(keeper);
    await until('the other one is kept', () => statusOf(keeper).outputIndexes === '1');
    expect(condition(keeper)?.reason).to.equal('OutputNotKept');
    await clock.advance(2000);
    await until('both are kept', () => condition(keeper)?.reason === 'OutputKept');
    // What has its name is there: it is not fetched again.
    expect([asked, dropped]).to.deep.equal([
      [1, 2],
      [2, 1],
    ]);
  });

  it('goes on with the outputs that are due where that of an earlier attempt cannot be dropped', async () => {
    const keeper = begin();
    const uid = 'uid-of-zero';
    const again = indexOf({ round: 0, attempt: 1, number: 0 });
    tracked.hear(newsOf(uid, 0, 'failed', 1));
    tracked.hear(newsOf(uid, again, 'finished', 0));
    const [first, last] = [...tracked.attempts.values()];
    const [earlier, later] = [first?.workerId ?? 0, last?.workerId ?? 0];
    left.set(later, [archive]);
    untold = 1;
    keeper.want(tracked, { jobs: [{ number: 0, index: again, outcome: 'succeeded', facts: last }] });
    await until('it is kept', () => statusOf(keeper).outputIndexes === '0');
    expect(dropped).to.deep.equal([later]);
    expect(condition(keeper)?.message).to.contain('no room for the mark');
    await clock.advance(2000);
    await until('both are dropped', () => dropped.length === 2);
    expect([asked, dropped]).to.deep.equal([[later], [later, earlier]]);
    expect(condition(keeper)?.message ?? '').not.to.contain('no room');
  });

  it('replaces what an earlier attempt left where a job is run again, since its limit was raised', async () => {
    const keeper = begin();
    left.set(1, [archive]).set(3, [archiveOf('echo second > file')]);
    const job = (outcome: Judged['outcome'], workerId: number) => ({
      jobs: [{ number: 0, index: 0, outcome, facts: { workerId } as JobFacts }],
    });
    keeper.want(tracked, job('failed', 1));
    await until('it is kept', () => statusOf(keeper).outputIndexes === '0');
    keeper.want(tracked, job('live', 3));
    expect(statusOf(keeper).outputIndexes ?? '').to.equal('');
    keeper.want(tracked, job('succeeded', 3));
    await until('the second is kept', () => statusOf(keeper).outputIndexes === '0');
    expect(readFileSync(path('0', 'file'), 'utf8')).to.equal('second\n');
    expect(dropped).to.deep.equal([1, 3]);
  });

  it('asks for none where the resource wants none, or no job has ended', async () => {
    const keeper = begin();
    keeper.want(tracked, {
      jobs: [{ number: 0, index: 0, outcome: 'live', facts: { workerId: 1 } as JobFacts }],
    });
    tracked = new Tracked(kept(htcJob()));
    want(keeper);
    await clock.advance(1000);
    expect(asked).to.deep.equal([]);
    expect(keeper.inStatus(tracked, {})).to.deep.equal({});
    expect(keeper.isOpen(tracked)).to.equal(false);
  });

  it('knows after a crash an output that has its name, and fetches one again that has not', async () => {
    mkdirSync(path('0'), { recursive: true });
    mkdirSync(path('.partial-1'));
    const keeper = begin();
    left.set(2, [archive]);
    want(keeper);
    await until('both are kept', () => statusOf(keeper).outputIndexes === '0-1');
    // The job of the first left it, and holds nothing any more.
    expect([asked, dropped]).to.deep.equal([
      [1, 2],
      [1, 2],
    ]);
    expect(readdirSync(path()).sort()).to.deep.equal(['0', '1']);
  });

  for (const [what, trouble] of [
    ['a full disk', Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })],
    ['a schedd that is away', new Error('the schedd does not answer')],
    ['an archive that is not whole yet', archive.subarray(0, 700)],
  ] as const)
    it(`tries again after ${what}, with growing pauses, and says why meanwhile`, async () => {
      let keeper = begin();
      left.set(1, [trouble, trouble, archive]).set(2, [archive]);
      want(keeper);
      await until('it says why', () => condition(keeper)?.reason === 'OutputNotKept');
      expect(condition(keeper)).to.include({ status: 'False' });
      expect(condition(keeper)?.message).to.contain('keep the output of job 0: ');
      await until('the other one is kept', () => statusOf(keeper).outputIndexes === '1');
      expect(readdirSync(path())).to.deep.equal(['1']);
      expect(dropped).to.deep.equal([2]);
      await clock.advance(2000);
      await until('it was asked for again', () => fetchesOf(1) === 2);
      tracked.status = statusOf(keeper);
      keeper = await restart();
      want(keeper);
      await until('both are kept', () => statusOf(keeper).outputIndexes === '0-1');
      expect(condition(keeper)).to.include({ status: 'True', reason: 'OutputKept' });
    });

  it('hole 8: an archive that stays cut holds no other output up, and is given up after ten fetches', async () => {
    const keeper = begin();
    left.set(1, [archive.subarray(0, 1100)]).set(2, [archive]);
    want(keeper);
    await until('the other one is kept', () => statusOf(keeper).outputIndexes === '1');
    expect(condition(keeper)?.message).to.contain('keep the output of job 0: its archive ends too early');
    for (let fetches = 1; fetches < 10; fetches++) {
      await until('it has failed again', () => failures() === fetches);
      expect([fetchesOf(1), statusOf(keeper).outputMissing]).to.deep.equal([fetches, undefined]);
      await clock.advance(2000 * 2 ** (fetches - 1));
    }
    await until('it is given up', () => statusOf(keeper).outputMissing === '0');
    expect(condition(keeper)).to.include({ status: 'False', reason: 'OutputMissing' });
    expect(condition(keeper)?.message).to.contain(
      'job 0: its archive ends too early, after the same 1100 bytes in each of 10 fetches',
    );
    expect(dropped).to.deep.equal([2, 1]);
    await clock.advance(24 * 3_600_000);
    expect([fetchesOf(1), fetchesOf(2)]).to.deep.equal([10, 1]);
  });

  it('hole 8: an archive that grows is being written, and is fetched until it is whole', async () => {
    const keeper = begin();
    const growing = Array.from({ length: 20 }, (_, number) => archive.subarray(0, 600 + number));
    left.set(1, [...growing, archive]).set(2, [archive]);
    want(keeper);
    await until('the other one is kept', () => statusOf(keeper).outputIndexes === '1');
    for (let fetches = 1; fetches <= 20; fetches++) {
      await until('it was cut again', () => failures() === fetches);
      await clock.advance(2000);
    }
    await until('both are kept', () => statusOf(keeper).outputIndexes === '0-1');
    expect(condition(keeper)).to.include({ status: 'True', reason: 'OutputKept' });
    expect(fetchesOf(1)).to.equal(21);
  });

  it('hole 8: an output whose fetch was cut off is never given up, and fetched once an hour at last', async () => {
    const keeper = begin();
    left.set(1, [new ThresherError('output-awaited', 'it was cut off')]).set(2, [archive]);
    want(keeper);
    await until('the other one is kept', () => statusOf(keeper).outputIndexes === '1');
    for (let pause = 2000, fetches = 1; fetches < 24; pause = Math.min(2 * pause, 3_600_000), fetches++) {
      await until('it has failed again', () => failures() === fetches);
      await clock.advance(pause - 1);
      expect(fetchesOf(1)).to.equal(fetches);
      await clock.advance(1);
    }
    await until('it has failed again', () => failures() === 24);
    expect([statusOf(keeper).outputMissing, dropped]).to.deep.equal([undefined, [2]]);
    expect(condition(keeper)).to.include({ status: 'False', reason: 'OutputNotKept' });
  });

  it('hole 8: a backend that is away is asked for a few outputs of a resource, and for all once it is back', async () => {
    tracked = new Tracked(kept(htcJob({ queue: 10, output: {} })));
    const keeper = begin();
    const workers = Array.from({ length: 10 }, (_, number) => number + 1);
    for (const worker of workers) left.set(worker, [new Error('the schedd does not answer')]);
    want(keeper, workers);
    await until('three have failed', () => failures() === 3);
    await clock.settle();
    expect(asked).to.deep.equal([1, 2, 3]);
    expect(condition(keeper)?.message).to.contain(
      'job 0: the schedd does not answer; and that of 2 other jobs',
    );
    for (const worker of workers) left.set(worker, [archive]);
    await clock.advance(2000);
    await until('all are kept', () => statusOf(keeper).outputIndexes === '0-9');
    expect(asked).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3]);
  });

  for (const [what, answer, why] of [
    ['left none', undefined, 'it was ended before it could leave one'],
    ['says why', Buffer.from('thresher: there is no tar on the machine\n'), 'there is no tar on the machine'],
    ['left something else', Buffer.from('#!/bin/sh'), 'it is no archive of tar'],
    ['left a damaged one', Buffer.alloc(2048, 'x'), 'it is no archive of tar, or is damaged'],
    ['left too much', archiveOf('head -c 11000 /dev/zero > a'), 'more than the 10000 bytes'],
    [
      'left too many files',
      archiveOf('for i in 1 2 3 4 5 6 7 8 9 10 11; do : > $i; done'),
      'more than the 10 files',
    ],
  ] as const)
    it(`gives up, with the reason, where a job ${what}`, async () => {
      let keeper = begin();
      left.set(1, [archive]).set(2, [answer]);
      want(keeper);
      await until('both are said', () => statusOf(keeper).outputMissing === '1');
      expect(statusOf(keeper).outputIndexes).to.equal('0');
      expect(condition(keeper)).to.include({ status: 'False', reason: 'OutputMissing' });
      expect(condition(keeper)?.message).to.contain(`1 of 2 jobs have no output; job 1: `).and.contain(why);
      expect(dropped).to.deep.equal([1, 2]);
      expect(readdirSync(path())).to.deep.equal(['0']);
      tracked.status = statusOf(keeper);
      keeper = await restart();
      want(keeper);
      // The reason is the resource's own after a restart.
      expect(statusOf(keeper)).to.deep.equal(tracked.status);
    });

  it('says that a job without a worker has none', async () => {
    const keeper = begin();
    want(keeper, [undefined, undefined]);
    await until('both are said', () => statusOf(keeper).outputMissing === '0-1');
    expect(condition(keeper)?.message).to.contain('its job never ran');
  });

  it('removes all of a resource that goes, and brings nothing of it any more', async () => {
    const keeper = begin();
    const away = new Error('away');
    left.set(1, [archive]).set(2, [away]);
    want(keeper);
    await until('one is kept', () => statusOf(keeper).outputIndexes === '0');
    await removed(keeper);
    expect(readdirSync(root)).to.deep.equal([]);
    left.set(2, [archive]);
    await clock.advance(120_000);
    expect(readdirSync(root)).to.deep.equal([]);
  });

  /** Resources with an output of some files each. */
  function withOutputs(count: number): readonly Tracked[] {
    return Array.from({ length: count }, (_, nth) => {
      const one = new Tracked(kept(htcJob({ output: {} }, `job-${nth}`)));
      const directory = join(root, `default/job-${nth}-uid-of-job-${nth}/0`);
      mkdirSync(directory, { recursive: true });
      for (const name of ['a', 'b', 'c']) writeFileSync(join(directory, name), name);
      return one;
    });
  }

  it('removes the outputs of two resources at a time, keeps nobody waiting for that, and goes on after a restart', async () => {
    const lane = new HangingLane();
    onFiles = (what, work) => lane.run(what, work);
    const all = withOutputs(5);
    const keeper = begin();
    for (const one of all) expect(keeper.remove(one)).to.include({ why: undefined });
    await until('two are begun', () => lane.waiting === 2);
    for (const one of all) expect(keeper.remove(one)).to.include({ why: undefined });
    await clock.advance(60_000);
    expect(lane.waiting, 'no more of them are, nor twice').to.equal(2);
    // Some files are gone when the daemon ends.
    await until('some files are removed', async () => {
      if (lane.waiting > 0) await lane.next();
      return lane.asked.filter((what) => what === 'removing a file').length > 4;
    });
    end.abort();
    await until('it is at rest', async () => {
      lane.giveUp('the daemon ends');
      return Promise.race([over?.then(() => true), nextTurn().then(() => false)]);
    });
    expect(readdirSync(root)).to.deep.equal(['default']);
    onFiles = (_, work) => work();
    const next = begin();
    await until('all are removed', () => all.every((one) => next.remove(one) === undefined));
    expect(readdirSync(root)).to.deep.equal([]);
  });

  it('tries again to remove outputs, with growing pauses, and says why it could not', async () => {
    let calls = 0;
    let isAway = true;
    onFiles = (_, work) => {
      calls++;
      return isAway ? Promise.reject(new Error('the disk is away')) : work();
    };
    const [one] = withOutputs(1);
    if (one === undefined) throw new Error('there is none');
    const keeper = begin();
    expect(keeper.remove(one)?.why).to.equal(undefined);
    await until('it says why', () => keeper.remove(one)?.why?.message === 'the disk is away');
    for (const [nth, pause] of [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].entries()) {
      await clock.advance(pause - 1);
      expect(calls, `before ${pause} ms`).to.equal(nth + 1);
      await clock.advance(1);
      await until('it is tried again', () => calls === nth + 2);
      await until('it has failed', () => log.lines.length === nth + 2);
      expect(keeper.remove(one)?.why?.message).to.equal('the disk is away');
    }
    isAway = false;
    await clock.advance(60_000);
    await until('they are removed', () => keeper.remove(one) === undefined);
    expect(readdirSync(root)).to.deep.equal([]);
    // Also when its finalizer cannot be taken away at once.
    expect(keeper.remove(one)).to.equal(undefined);
  });

  it('removes nothing of a resource that is there again while its removal waits', async () => {
    const lane = new HangingLane();
    onFiles = (what, work) => lane.run(what, work);
    const [first, second, third] = withOutputs(3);
    if (first === undefined || second === undefined || third === undefined) throw new Error('too few');
    const keeper = begin();
    for (const one of [first, second, third]) keeper.remove(one);
    await until('two are begun', () => lane.waiting === 2);
    keeper.inStatus(third, {});
    await until('the others are removed', async () => {
      if (lane.waiting > 0) await lane.next();
      return [first, second].every((one) => keeper.remove(one) === undefined);
    });
    await clock.advance(1000);
    expect([lane.waiting, readdirSync(join(root, 'default'))]).to.deep.equal([0, ['job-2-uid-of-job-2']]);
  });
});
