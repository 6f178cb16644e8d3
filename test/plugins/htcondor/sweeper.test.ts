import { expect } from 'chai';
import { givenUpReason } from '../../../src/plugins/htcondor/state/job-state.ts';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type CondorCode, HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { LeftOutputs } from '../../../src/plugins/htcondor/output/left-outputs.ts';
import { KnownJobs } from '../../../src/plugins/htcondor/following/known-jobs.ts';
import { jobOf, identityText, marks as marksOfJobs } from '../../../src/plugins/htcondor/marks.ts';
import { Bundles } from '../../../src/plugins/htcondor/payload/bundles.ts';
import { Submits } from '../../../src/plugins/htcondor/submitting/submits.ts';
import type { Owners } from '../../../src/plugins/htcondor/owners.ts';
import { Removals } from '../../../src/plugins/htcondor/state/removals.ts';
import { HTCondorSweeper } from '../../../src/plugins/htcondor/sweeper.ts';
import { type Clock, systemClock } from '../../../src/util/clock.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { anyOwner, sameQueue } from '../../support/condor-jobs.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the sweeper of HTCondor', () => {
  const { signal } = new AbortController();
  let directory: string;
  let submits: Submits;
  let outputs: LeftOutputs;
  let child: ChildProcess;
  let ended: Promise<unknown>;

  beforeEach(async () => {
    directory = join(temporaryDirectory(), 'submits');
    submits = new Submits(directory, systemClock);
    const files = new FileLane({ clock: systemClock, name: 'test', atOnce: 2, timeoutMs: 10_000 });
    outputs = new LeftOutputs(join(directory, 'outputs/schedd'), files);
    // A process like that of a condor_submit that hangs.
    child = spawn('cat', { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    ended = once(child, 'exit');
    (await submits.begin([1, 2])).onStart(child.pid ?? 0);
  });

  afterEach(async () => {
    end();
    await ended;
  });

  function end(): void {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  }

  type QueueAs = (read: (ad: object) => unknown) => Promise<readonly unknown[]>;

  function sweeperOf(
    queueAs: QueueAs,
    owners: Pick<Owners, 'part' | 'unanswered'> = anyOwner,
    jobQueue = sameQueue,
    jobs = new KnownJobs(),
    clock: Clock = systemClock,
  ) {
    const schedd = {
      submits,
      fenced: new Map(),
      bundles: new Bundles(join(directory, 'payloads')),
      outputs,
      refused: new Map(),
      removals: new Removals('LOCAL'),
      jobs,
      mine: 'true',
      submissionHost: 'LOCAL',
      owners: { ...anyOwner, ...owners },
      jobQueue,
      client: {
        queueAs,
        act: async (...[, constraint, why]: string[]) => {
          reasons.push(why ?? '');
          removing(constraint ?? '');
        },
      },
    } as unknown as HTCondorSchedd;
    const daemon = { ...pluginContext(), clock, queue: () => undefined, ended: signal };
    const options = () => ({ heldTimeout: 60 });
    return new HTCondorSweeper({ schedd, daemon, options } as never);
  }

  const identityOf = (workerId: number) => ({ [marksOfJobs.identity]: identityText(workerOf(workerId)) });

  function remove(workerIds: number | readonly number[], queueAs: QueueAs = async () => [], stop = signal) {
    return sweeperOf(queueAs).remove(
      [workerIds].flat().map((id) => workerOf(id)),
      stop,
    );
  }

  /** Reasons that removals were given. */
  let reasons: string[];
  /** Gets the constraints of removals. */
  let removing: (constraint: string) => void;
  beforeEach(() => {
    removing = () => undefined;
    reasons = [];
  });

  it('keeps a worker whose condor_submit still runs, and says so', async () => {
    const outcome = (await remove(1)).get(1);
    expect(outcome).to.have.property('kind', 'pending');
    expect(outcome).to.have.nested.property('reason.code', 'late-creation');
    expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
    expect(() => process.kill(child.pid ?? 0, 0), 'that of others is not its to end').not.to.throw();
  });

  it('hole 5: says of a job that stays removed since when, why, and what its worker counts as', async () => {
    end();
    await ended;
    const seconds = Math.floor(Date.now() / 1000);
    // Nobody waits for the end of a call that is given up.
    const over = AbortSignal.abort();
    const mark = { ClusterId: 7, ProcId: 0, harvesterWorkerID: '1' };
    const outcomeOf = async (more: object) =>
      (await remove(1, async (read) => [read({ ...mark, ...more })], over)).get(1);
    const stays = await outcomeOf({ JobStatus: 3, EnteredCurrentStatus: seconds - 601 });
    expect(stays).to.have.nested.property('reason.code', 'htcondor-removing');
    expect(JSON.stringify(stays)).to.match(/job 7.0 of .* was removed since \d{4}-.*and still in the queue/);
    const young = await outcomeOf({ JobStatus: 3, EnteredCurrentStatus: seconds - 60 });
    expect(young).to.deep.equal({ kind: 'pending' });
    const held = { JobStatus: 5, LastJobStatus: 3, HoldReason: 'no GAHP' };
    const reason = await outcomeOf({ ...held, EnteredCurrentStatus: seconds - 601 });
    expect(JSON.stringify(reason)).to.match(/then held since .*no GAHP.*condor_release/);
    await outcomeOf({ ...held, EnteredCurrentStatus: seconds - 601, RemoveReason: `x (${givenUpReason})` });
    expect(reasons, 'why it was given up is still its reason').to.deep.equal([
      'ended by thresher',
      givenUpReason,
    ]);
  });

  for (const verb of ['kill', 'remove'] as const)
    it(`${verb}: a job that ignores its signal delays the word on no other, and is not waited for again`, async () => {
      end();
      await ended;
      const clock = new ManualClock();
      /** By job: when it was removed. Job 3 ignores that, and the others go half a second later. */
      const removedAt = new Map<number, number>();
      removing = (constraint) => {
        for (const [, id] of constraint.matchAll(/ClusterId == (\d+)/g))
          removedAt.set(Number(id), clock.monotonic());
      };
      let looks = 0;
      const queueAs: QueueAs = async (read) => {
        looks++;
        const isThere = (id: number) => id === 3 || clock.monotonic() - (removedAt.get(id) ?? Infinity) < 500;
        return [3, 4, 5, 6]
          .filter((id) => !removedAt.has(id) || isThere(id))
          .map((id) => {
            const state = { JobStatus: removedAt.has(id) ? 3 : 2, EnteredCurrentStatus: clock.now() / 1000 };
            return read({ ClusterId: id, ProcId: 0, harvesterWorkerID: `${id}`, ...state });
          });
      };
      const sweeper = sweeperOf(queueAs, anyOwner, sameQueue, new KnownJobs(), clock);
      const ask = async (...ids: readonly number[]) => {
        const begun = clock.monotonic();
        looks = 0;
        let over = false;
        const workers = ids.map((id) => workerOf(id));
        const asked = sweeper[verb](workers, signal).finally(() => (over = true));
        while (!over) {
          await setImmediate();
          if (clock.sleeping.length > 0) await clock.advance(100);
        }
        const kinds = [...(await asked)].map(([id, { kind }]) => `${id} ${kind}`);
        return { kinds, looks, isSoon: clock.monotonic() - begun < 3000 };
      };
      expect(await ask(3, 4, 5)).to.deep.include({ kinds: ['3 pending', '4 gone', '5 gone'], isSoon: true });
      // A removal asks for outputs, too.
      const once = verb === 'kill' ? 1 : 2;
      expect(await ask(3)).to.deep.equal({ kinds: ['3 pending'], looks: once, isSoon: true });
      expect(await ask(3, 6)).to.deep.include({ kinds: ['3 pending', '6 gone'], isSoon: true });
      expect(reasons).to.have.length(2);
    });

  it('hole 1: ends no job of another user, and calls no worker gone that such a job may be', async () => {
    const theirs = { JobStatus: 2, Owner: 'games' };
    const queueAs: QueueAs = async (read) =>
      [3, 4].map((id) => read({ ClusterId: id, ProcId: 0, harvesterWorkerID: `${id}`, ...theirs }));
    const sweeper = sweeperOf(queueAs, {
      part: async (jobs) => ({ ours: [], others: jobs }),
      unanswered: undefined,
    });
    const handle = { batchID: '1.0', submissionHost: 'LOCAL' };
    const workers = [workerOf(3), workerOf(4, { handle })];
    for (const outcomes of [await sweeper.kill(workers, signal), await sweeper.remove(workers, signal)]) {
      expect(outcomes.get(3)).to.have.property('kind', 'pending');
      expect(outcomes.get(3)).to.have.nested.property('reason.code', 'htcondor-owner');
      expect(JSON.stringify(outcomes.get(3)))
        .to.contain('job 3.0 on LOCAL')
        .and.contain('user games');
      expect(outcomes.get(4), 'its own job is another one').to.deep.equal({ kind: 'gone' });
    }
    expect(reasons).to.deep.equal([]);
    const listed = await sweeper.list(signal);
    const damage = 'it is of user games, as whom thresher does not submit';
    expect(listed.map(({ identity, ...found }) => [identity, found.damage, found.isDoubtful])).to.deep.equal([
      [undefined, damage, true],
      [undefined, damage, true],
    ]);
  });

  it('hole 5: lists a job without a readable mark by its number alone, which the schedd gives it by whichever name it is called', async () => {
    const ads = [{ [marksOfJobs.identity]: 'damaged' }, identityOf(4)];
    const queueAs: QueueAs = async (read) =>
      ads.map((ad, id) =>
        read({ ClusterId: id, ProcId: 0, harvesterWorkerID: `${id + 3}`, JobStatus: 2, ...ad }),
      );
    const listed = await sweeperOf(queueAs).list(signal);
    expect(listed.map(({ handle }) => handle)).to.deep.equal([
      { batchID: '0.0' },
      { batchID: '1.0', submissionHost: 'LOCAL' },
    ]);
  });

  it('lists nothing while it cannot be said whose jobs with its marks are: they may be workers of a lost database', async () => {
    const jobs = [{ ClusterId: 3, ProcId: 0, harvesterWorkerID: '3', JobStatus: 2, Owner: 'pilot' }];
    const unanswered = new HTCondorError({
      code: 'condor-unreachable',
      message: 'no ping',
      maybeDone: false,
    });
    const all = sweeperOf(async (read) => jobs.map(read), {
      part: async (others) => ({ ours: [], others }),
      unanswered,
    });
    const failure = await all.list(signal).catch((error: unknown) => error);
    expect(failure).to.have.property('code', 'condor-unreachable');
    expect(String(failure)).to.contain('whose 1 jobs on LOCAL are, such as 3.0').and.to.contain('no ping');
    // A worker that lives by its row is looked up, and is no orphan meanwhile.
    expect(await all.list(signal, (workerId) => workerId === 3)).to.deep.equal([]);
    // A removed job takes the place of the worker that it is, and of no other.
    const removed = { ...(jobs[0] as (typeof jobs)[0]), JobStatus: 3 };
    jobs.splice(0, 1, { ...removed, ...identityOf(3) });
    expect(await all.list(signal).catch((error: unknown) => error)).to.have.property(
      'code',
      'condor-unreachable',
    );
    jobs.splice(0, 1, removed);
    expect(await all.list(signal)).to.deep.equal([]);
    const none = sweeperOf(async () => [], { ...anyOwner, unanswered });
    expect(await none.list(signal)).to.deep.equal([]);
  });

  it('lists a removed job as long as something of it may run: its row may be lost, and a second one would be started', async () => {
    const ad = (id: number, more: object = {}) => ({
      ClusterId: id,
      ProcId: 0,
      JobStatus: 3,
      LastJobStatus: 2,
      JobStartDate: 1,
      StageInFinish: 1,
      Owner: 'pilot',
      harvesterWorkerID: `${id}`,
      ...identityOf(id),
      ...more,
    });
    const half = { JobStartDate: 0, StageInFinish: 0, LastHoldReasonCode: 16 };
    const ads = [ad(3), ad(4, { LastJobStatus: 1, JobStartDate: 0 }), ad(5, half), ad(6), ad(7), ad(8)];
    ads.splice(4, 1, { ...ad(7), harvesterWorkerID: '70' });
    // The log tells of an end when nothing of the job lives; the schedd is about to take it out of its queue.
    const known = new KnownJobs();
    const job = jobOf(ad(6, { JobStatus: 2 }), true);
    if (job === undefined) throw new Error('it is no job');
    known.see(new Map([['6.0', job]]), [], new Set(['6.0']));
    known.apply([{ cluster: 6, proc: 0, time: 0, kind: 'aborted' }], new Map());
    const others: Pick<Owners, 'part' | 'unanswered'> = {
      part: async (all) => ({
        ours: all.filter(({ id }) => id.cluster !== 8),
        others: all.filter(({ id }) => id.cluster === 8),
      }),
      unanswered: undefined,
    };
    const listed = await sweeperOf(async (read) => ads.map(read), others, sameQueue, known).list(signal);
    const found = listed.map(({ place, identity, observation }) => [
      place,
      identity?.workerId,
      observation?.status,
      observation?.nativeStatus,
    ]);
    expect(found).to.deep.equal([
      ['LOCAL 3.0', 3, 'running', 'removing'],
      ['LOCAL 4.0', 4, 'submitted', 'removing'],
    ]);
  });

  it('hole 1: ends the job that a worker was confirmed with, whosever it is', async () => {
    const jobs = [{ ClusterId: 3, ProcId: 0, harvesterWorkerID: '3', JobStatus: 2, Owner: 'earlier' }];
    const sweeper = sweeperOf(async (read) => jobs.splice(0, 1).map(read), {
      part: async (others) => ({ ours: [], others }),
      unanswered: undefined,
    });
    const handle = { batchID: '3.0', submissionHost: 'LOCAL' };
    expect((await sweeper.kill([workerOf(3, { handle })], signal)).get(3)).to.deep.equal({ kind: 'gone' });
    expect(reasons).to.deep.equal(['ended by thresher']);
  });

  it('hole 3: takes no worker for gone where the schedd has another queue than before', async () => {
    end();
    await ended;
    const error = { code: 'htcondor-other-queue', message: 'its spool is not mounted' } as const;
    const require = () => Promise.reject(new ThresherError(error.code, error.message));
    const sweeper = sweeperOf(async () => [], anyOwner, { ...sameQueue, require });
    const failed = { kind: 'failed', error };
    expect((await sweeper.kill([workerOf(1)], signal)).get(1)).to.deep.equal(failed);
    expect((await sweeper.remove([workerOf(1)], signal)).get(1)).to.deep.equal(failed);
    const found = { place: 'S 1.0', handle: { batchID: '1.0' } };
    expect(await sweeper.removeOrphan(found, signal)).to.deep.equal(failed);
  });

  it('hole 3: asks of which queue the answer is also where it has jobs of others alone', async () => {
    end();
    await ended;
    const jobs = [{ ClusterId: 3, ProcId: 0, JobStatus: 2, harvesterWorkerID: '9' }];
    const require = () => Promise.reject(new Error('another queue'));
    const stop = AbortSignal.timeout(1);
    const sweeper = sweeperOf(async (read) => jobs.map(read), anyOwner, { ...sameQueue, require });
    expect((await sweeper.kill([workerOf(1)], stop)).get(1)).to.have.nested.property(
      'error.message',
      'another queue',
    );
  });

  it('removes a worker once its condor_submit has ended', async () => {
    end();
    await ended;
    expect((await remove(1)).get(1)).to.deep.equal({ kind: 'gone' });
  });

  it('leaves to an operator what another machine may still submit', async () => {
    const [file = ''] = readdirSync(directory);
    const written = JSON.parse(readFileSync(join(directory, file), 'utf8')) as Record<string, unknown>;
    writeFileSync(join(directory, file), JSON.stringify({ ...written, host: 'elsewhere' }));
    expect((await remove(1)).get(1)).to.have.nested.property('error.code', 'htcondor-submit-elsewhere');
  });

  describe('and what a source needs of the output of a template', () => {
    /** A schedd with the jobs of these workers in its spool. */
    function spool(count: number, clock: Clock = systemClock, life: AbortSignal = signal) {
      /**
       * Whether the schedd is away when a transfer comes to its end; what it answers to the next questions, undefined: the truth; how long
       * each command takes, ms; whether questions after single jobs have no answer.
       */
      const state = { isAway: false, looks: [] as (CondorCode | undefined)[], time: 0, isDeaf: false };
      /** How long the output of a worker takes, ms. */
      const takes = new Map<number, number>();
      let jobs = Array.from({ length: count }, (_, index) => index + 3);
      /** Workers whose files cannot be written, and what the command says of that; undefined: the schedd does not answer. */
      let bad: ReadonlyMap<number, CondorCode> | undefined = new Map();
      /** Workers with two jobs, and the number of the second. */
      const twice = new Set<number>();
      const second = (id: number) => id + 1000;
      const commands: number[][] = [];
      const came = new Set<number>();
      const log = recordingLog();
      const of = (constraint: string) => {
        const [, list] = /member\(\w+, \{([^}]*)\}\)/.exec(constraint) ?? [];
        const named = /ClusterId == (\d+)/.test(constraint)
          ? [...constraint.matchAll(/ClusterId == (\d+)/g)].map(([, id]) => Number(id))
          : (list ?? '').split(',').map((id) => Number(id.slice(1, -1)));
        return [...jobs, ...jobs.filter((id) => twice.has(id)).map(second)].filter((id) =>
          named.includes(id),
        );
      };
      const client = {
        queueAs: async (read: (ad: object) => unknown, constraint: string) => {
          if (bad === undefined)
            throw new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
          const isOfJobs = /ClusterId == /.test(constraint);
          const code = isOfJobs && state.isDeaf ? 'condor-timeout' : state.looks.shift();
          if (code !== undefined) throw new HTCondorError({ code, message: 'no answer', maybeDone: false });
          const found = of(constraint);
          const others = isOfJobs ? [] : found.filter((id) => twice.has(id));
          return [...found, ...others.map(second)].map((id) =>
            read({
              ClusterId: id,
              ProcId: 0,
              JobStatus: 4,
              StageInFinish: 1,
              ExitCode: 0,
              CompletionDate: 1,
              JobStartDate: 1,
              harvesterWorkerID: `${id % 1000}`,
              thresherQueue: 'Q',
              thresherConfig: 1,
            }),
          );
        },
        transferData: async (constraint: string, ended: AbortSignal) => {
          const ids = of(constraint);
          commands.push(ids);
          const time = ids.reduce((sum, id) => sum + (takes.get(id) ?? 0), state.time);
          if (time > 0) await clock.sleep(time, ended);
          if (ended.aborted)
            throw new HTCondorError({ code: 'condor-given-up', message: 'given up', maybeDone: true });
          if (state.isAway)
            throw new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: true });
          const failed = ids.find((id) => bad?.has(id) === true);
          const code = failed === undefined ? undefined : bad?.get(failed);
          if (code !== undefined) throw new HTCondorError({ code, message: 'no directory', maybeDone: true });
          for (const id of ids) came.add(id);
        },
        act: async (_action: string, constraint: string) => {
          const gone = of(constraint);
          jobs = jobs.filter((id) => !gone.includes(id));
        },
      };
      /** Looks at files that are under way. */
      let looks = 0;
      const look = <T>(ended: Promise<T>): Promise<T> => {
        looks++;
        return ended.finally(() => looks--);
      };
      const bundles = new Bundles(join(directory, 'payloads'));
      const schedd = {
        submits: { unfinished: (ids: ReadonlySet<number>) => look(submits.unfinished(ids)) },
        outputs: {
          bring: (ids: readonly number[], fetch: () => Promise<void>, ended: AbortSignal) =>
            clock === systemClock ? outputs.bring(ids, fetch, ended) : fetch(),
          isAwaited: (id: number, at: Clock, mayCome: boolean) => look(outputs.isAwaited(id, at, mayCome)),
          remove: (id: number) => look(outputs.remove(id)),
        },
        refused: new Map(),
        removals: new Removals('LOCAL'),
        mine: 'true',
        owners: anyOwner,
        jobQueue: sameQueue,
        submissionHost: 'LOCAL',
        client,
        bundles: { dropAll: (ids: ReadonlySet<number>) => look(bundles.dropAll(ids)) },
      } as unknown as HTCondorSchedd;
      const daemon = { ...pluginContext({ clock }), log, queue: () => undefined, ended: life };
      const sweeper = new HTCondorSweeper({ schedd, daemon, options: () => ({ heldTimeout: 60 }) } as never);
      const remove = async () => {
        commands.length = 0;
        const outcomes = await sweeper.remove(
          jobs.map((id) => workerOf(id)),
          signal,
        );
        return new Map([...outcomes].map(([id, { kind }]) => [id, kind]));
      };
      return {
        commands,
        came,
        twice,
        lines: log.lines,
        state,
        takes,
        sweeper,
        remove,
        isAtFiles: () => looks > 0,
        fail: (which: Iterable<number> | undefined, code: CondorCode = 'condor-failed') => {
          bad = which && new Map([...which].map((id) => [id, code]));
        },
        left: () => jobs,
      };
    }
    const awaiting = (...ids: readonly number[]) =>
      outputs.make(ids.map((workerId) => ({ workerId, leaves: 'template' as const })));
    const marks = () => readdirSync(join(directory, 'outputs/schedd'));

    describe('hole 6: where an output takes longer than a call', () => {
      let clock: ManualClock;

      beforeEach(() => {
        clock = new ManualClock();
      });

      /** What a call comes to. A look at files takes real time, in which the clock stands still. */
      async function outcomeOf<T>(call: Promise<T>, jobs: ReturnType<typeof spool>, step = 1000): Promise<T> {
        let isOver = false;
        const ended = call.finally(() => (isOver = true));
        await until('the call is over', async () => {
          for (let steps = 0; steps < 50 && !isOver; steps++)
            await (jobs.isAtFiles() ? setImmediate() : clock.advance(step));
          return isOver;
        });
        return ended;
      }

      /** Passes, with a pause before each, until no more than these are left. @returns how many it took */
      async function passes(
        jobs: ReturnType<typeof spool>,
        left: readonly number[],
        most: number,
        { kind = /pending/, minutes = 1 } = {},
      ) {
        for (let pass = 1; pass <= most; pass++) {
          for (let step = 0; step < 20; step++) await clock.advance(minutes * 3000);
          const began = clock.monotonic();
          const outcomes = await outcomeOf(jobs.remove(), jobs, 4000);
          expect(clock.monotonic() - began, 'time of a call').to.be.below(45_000);
          for (const id of jobs.left()) expect(outcomes.get(id)).to.match(kind);
          if (jobs.left().length <= left.length) {
            expect(jobs.left()).to.deep.equal(left);
            return pass;
          }
        }
        throw new Error(`left are ${jobs.left().join()}`);
      }

      it('it keeps no other worker from its removal, and is fetched beside them', async () => {
        const jobs = spool(60, clock);
        await awaiting(...jobs.left());
        jobs.takes.set(30, 300_000);
        expect(await passes(jobs, [30], 8)).to.be.below(8);
        expect(await passes(jobs, [], 10)).to.be.below(10);
      });

      it('one that never comes keeps its own worker alone, and is given up and tried again', async () => {
        const jobs = spool(20, clock);
        await awaiting(...jobs.left());
        jobs.takes.set(10, 1e9);
        await passes(jobs, [10], 8);
        for (let pass = 0; pass < 14; pass++) await passes(jobs, [10], 1);
        jobs.takes.clear();
        for (let minute = 0; minute < 12; minute++) await clock.advance(60_000);
        expect(await passes(jobs, [], 3)).to.be.below(4);
      });

      it('a moment without the schedd costs no log: what failed for that is fetched again before its job goes', async () => {
        const jobs = spool(20, clock);
        const all = jobs.left();
        for (const id of all) jobs.takes.set(id, 1000);
        jobs.state.isAway = true;
        const first = await outcomeOf(jobs.remove(), jobs);
        expect(new Set(first.values())).to.deep.equal(new Set(['pending']));
        for (let step = 0; step < 20; step++) await clock.advance(3000);
        jobs.state.isAway = false;
        const fetched: number[] = [];
        jobs.commands.push = (...ids) => fetched.push(...ids.flat());
        expect(jobs.left()).to.deep.equal(all);
        await passes(jobs, [], 4);
        expect(new Set(fetched)).to.deep.equal(new Set(all));
      });

      it('a question without an answer costs no log: nobody has tried to fetch it yet', async () => {
        const jobs = spool(3, clock);
        jobs.state.looks.push('condor-timeout');
        expect(new Set((await jobs.remove()).values())).to.deep.equal(new Set(['failed']));
        expect(jobs.left()).to.have.length(3);
        await passes(jobs, [], 2);
      });

      it('the end of the daemon costs no log: jobs stay until the next one has fetched it', async () => {
        const life = new AbortController();
        const jobs = spool(120, clock, life.signal);
        const all = jobs.left();
        for (const id of all) jobs.takes.set(id, 200);
        const removal = jobs.remove();
        await until('the first portion is on its way', () => jobs.commands.length > 0);
        await clock.advance(1000);
        life.abort();
        const outcomes = await outcomeOf(removal, jobs);
        expect(new Set(outcomes.values())).to.deep.equal(new Set(['pending']));
        expect(jobs.left()).to.deep.equal(all);
      });

      it('a schedd that is away for hours costs no log, and no job is removed for that', async () => {
        const jobs = spool(3, clock);
        const all = jobs.left();
        jobs.state.isAway = true;
        await passes(jobs, all, 1);
        jobs.fail(undefined);
        for (let pass = 0; pass < 50; pass++) await passes(jobs, all, 1, { kind: /failed/, minutes: 10 });
        jobs.fail([]);
        await passes(jobs, all, 1);
        jobs.state.isAway = false;
        await passes(jobs, [], 2);
        expect([...jobs.came]).to.have.members(all);
      });

      it('a transfer that fails because the schedd is away is no failure of any output', async () => {
        const jobs = spool(120, clock);
        const all = jobs.left();
        jobs.state.isAway = true;
        for (let pass = 0; pass < 50; pass++) {
          jobs.state.looks.push(undefined, 'condor-unreachable');
          await passes(jobs, all, 1, { kind: /failed/, minutes: 10 });
          expect(jobs.commands.length, 'commands of a pass').to.equal(1);
        }
        expect(jobs.lines.filter(({ level }) => level === 'warn')).to.deep.equal([]);
        jobs.state.isAway = false;
        await passes(jobs, [], 4);
        expect([...jobs.came]).to.have.members(all);
      });

      it('a log directory that is away for minutes costs no log', async () => {
        const jobs = spool(60, clock);
        const all = jobs.left();
        jobs.fail(all);
        for (let pass = 0; pass < 20; pass++) await passes(jobs, all, 1);
        jobs.fail([3, 4]);
        await passes(jobs, [3, 4], 10);
        jobs.fail([]);
        await passes(jobs, [], 4);
        expect([...jobs.came]).to.have.members(all);
      });

      for (const code of ['condor-failed', 'condor-auth', 'condor-unreachable', 'condor-no-job'] as const)
        it(`one with which each transfer ends as ${code} keeps its own job alone, for about an hour`, async () => {
          const jobs = spool(120, clock);
          const all = jobs.left();
          jobs.fail([30], code);
          expect(await passes(jobs, [30], 3)).to.be.below(3);
          expect(await passes(jobs, [], 80)).to.be.within(25, 70);
          expect([...jobs.came]).to.have.members(all.filter((id) => id !== 30));
          const told = jobs.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
          expect(told).to.deep.equal([
            'output of spooled jobs could not be fetched, and is tried again',
            'output of spooled jobs could not be fetched, and is given up unless a source awaits it',
          ]);
        });

      it('one that its source needs is awaited for ten days since a sweep could not fetch it first, however long ago its job was submitted', async () => {
        const jobs = spool(1, clock);
        await outputs.make([{ workerId: 3, leaves: true }]);
        const daysAgo = (days: number) => clock.now() - days * 24 * 3_600_000;
        utimesSync(outputs.pathOf(3), daysAgo(300) / 1000, daysAgo(300) / 1000);
        jobs.fail([3]);
        for (let pass = 0; pass < 30; pass++) await passes(jobs, [3], 1, { minutes: 10 });
        writeFileSync(`${outputs.pathOf(3)}.kept`, String(daysAgo(9.9)));
        await passes(jobs, [3], 1);
        // Nothing says when a mark from a clock that was ahead was written.
        writeFileSync(`${outputs.pathOf(3)}.kept`, String(daysAgo(-50)));
        await passes(jobs, [3], 1);
        expect(Number(readFileSync(`${outputs.pathOf(3)}.kept`, 'utf8'))).to.be.at.most(clock.now());
        writeFileSync(`${outputs.pathOf(3)}.kept`, String(daysAgo(10.1)));
        await passes(jobs, [], 1);
        expect(marks()).to.deep.equal([]);
      });

      it('one whose first look was by a clock that was a month behind is awaited for ten days since then, also after a restart', async () => {
        await awaiting(3);
        await outputs.make([{ workerId: 4, leaves: true }]);
        writeFileSync(outputs.pathOf(4), 'an output');
        const month = 30 * 24 * 3_600_000;
        const old = (clock.now() - month) / 1000;
        utimesSync(outputs.pathOf(4), old, old);
        const behind = { now: () => clock.now() - month, monotonic: () => clock.monotonic() };
        const awaited = async (by: Pick<Clock, 'now' | 'monotonic'>, of = outputs) => [
          await of.isAwaited(3, by, true),
          await of.isAwaited(4, by, true),
        ];
        expect(await awaited(behind)).to.deep.equal([true, true]);
        await clock.advance(1000);
        expect(await awaited(clock), 'it is right now').to.deep.equal([true, true]);
        const lane = new FileLane({ clock: systemClock, name: 'test', atOnce: 1, timeoutMs: 10_000 });
        const restarted = new LeftOutputs(outputs.directory, lane);
        await clock.advance(10 * 24 * 3_600_000 - 2000);
        expect(await awaited(clock, restarted)).to.deep.equal([true, true]);
        await clock.advance(1000);
        expect(await awaited(clock, restarted)).to.deep.equal([false, false]);
      });

      it('one that is awaited is tried for days, and told of twice', async () => {
        const jobs = spool(1, clock);
        await awaiting(3);
        jobs.fail([3]);
        for (let pass = 0; pass < 50; pass++) await passes(jobs, [3], 1, { minutes: 10 });
        expect(jobs.lines.filter(({ level }) => level === 'warn')).to.have.length(2);
        jobs.fail([]);
        await passes(jobs, [], 2);
        expect([...jobs.came]).to.deep.equal([3]);
      });

      it('one that is awaited is awaited for ten days since it was given up, or until its source needs it no more', async () => {
        const jobs = spool(2, clock);
        await awaiting(3, 4);
        const mark = outputs.pathOf(3) + '.awaited';
        // A job that ran for years.
        utimesSync(mark, 0, 0);
        jobs.fail([3, 4]);
        for (let pass = 0; pass < 8; pass++) await passes(jobs, [3, 4], 1, { minutes: 10 });
        const since = (days: number) => {
          writeFileSync(mark, String(clock.now() - days * 24 * 3_600_000));
        };
        since(9.9);
        await passes(jobs, [3, 4], 1);
        since(10.1);
        await outputs.drop([4]);
        await passes(jobs, [], 1);
        expect(marks()).to.deep.equal([]);
      });

      it('many that cannot be fetched cost no log of the others, and are given up', async () => {
        const jobs = spool(300, clock);
        const all = jobs.left();
        const bad = all.filter((id) => id % 3 === 0);
        jobs.fail(bad);
        await passes(jobs, bad, 60);
        expect([...jobs.came]).to.have.members(all.filter((id) => !bad.includes(id)));
        await passes(jobs, [], 400);
      });

      it('many that cannot be fetched cost no log of the others, also where each pass brings more before the last ones are through', async () => {
        const jobs = spool(930, clock);
        jobs.state.time = 6000;
        const all = jobs.left();
        const bad = all.slice(15, -15);
        jobs.fail(bad);
        await passes(jobs, bad, 120);
        expect([...jobs.came]).to.have.members(all.filter((id) => !bad.includes(id)));
      });

      it('what was given up long before the next call is tried once more', async () => {
        const jobs = spool(1, clock);
        jobs.fail([3]);
        jobs.state.time = 20_000;
        for (let pass = 0; pass < 9; pass++) await passes(jobs, [3], 1, { minutes: 10 });
        expect(jobs.lines.map(({ message }) => message).join()).not.to.contain('given up');
        // This call comes back before its transfer does.
        await passes(jobs, [3], 1);
        for (let step = 0; step < 20; step++) await clock.advance(10_000);
        expect(jobs.lines.map(({ message }) => message).join()).to.contain('given up');
        jobs.fail([]);
        await passes(jobs, [], 2);
        expect([...jobs.came]).to.deep.equal([3]);
      });

      it('a schedd that answers no more while it sends costs no log', async () => {
        const jobs = spool(3, clock);
        const all = jobs.left();
        for (const id of all) jobs.takes.set(id, 1e9);
        jobs.state.isDeaf = true;
        for (let pass = 0; pass < 60; pass++)
          await passes(jobs, all, 1, { kind: /pending|failed/, minutes: 8 });
        expect(jobs.lines.filter(({ level }) => level === 'warn')).to.deep.equal([]);
        expect(jobs.left()).to.deep.equal(all);
      });

      it('three that never come are given up, after hours', async () => {
        const jobs = spool(3, clock);
        for (const id of jobs.left()) jobs.takes.set(id, 1e9);
        expect(await passes(jobs, [], 60, { minutes: 8 })).to.be.above(15);
      });

      it('two calls at once for the same jobs take none for fetched that has not come', async () => {
        const jobs = spool(2, clock);
        for (const id of jobs.left()) jobs.takes.set(id, 3000);
        jobs.fail([3]);
        const workers = jobs.left().map((id) => workerOf(id));
        const calls = [1, 2].map(() => jobs.sweeper.remove(workers, signal));
        for (const outcomes of await outcomeOf(Promise.all(calls), jobs))
          expect(outcomes.get(3)).to.have.property('kind', 'pending');
        expect(jobs.left()).to.deep.equal([3]);
      });

      it('two jobs of one worker are both fetched', async () => {
        const jobs = spool(2, clock);
        jobs.twice.add(3);
        await passes(jobs, [], 2);
        expect(jobs.commands.flat().toSorted()).to.deep.equal([1003, 3, 4]);
      });

      it('many of ordinary size come each once, and go as they come', async () => {
        const jobs = spool(200, clock);
        const all = jobs.left();
        for (const id of all) jobs.takes.set(id, 300);
        const transferred: number[] = [];
        jobs.commands.push = (...ids) => transferred.push(...ids.flat());
        expect(await passes(jobs, [], 5)).to.be.below(6);
        expect(transferred.toSorted((one, other) => one - other)).to.deep.equal(all);
      });
    });

    it('hole 6: fetches and awaits no output of workers that their source has discarded', async () => {
      const jobs = spool(3);
      await awaiting(...jobs.left());
      jobs.fail(jobs.left());
      const workers = jobs.left().map((id) => workerOf(id));
      const kindsOf = async (isDiscarded: boolean) =>
        [...(await jobs.sweeper.remove(workers, signal, isDiscarded)).values()].map(({ kind }) => kind);
      expect(await kindsOf(false)).to.deep.equal(['pending', 'pending', 'pending']);
      expect(await kindsOf(true)).to.deep.equal(['gone', 'gone', 'gone']);
      expect(jobs.left()).to.deep.equal([]);
    });

    it('keeps the job whose files cannot be fetched, says why, and fetches those of all others', async () => {
      const jobs = spool(40);
      await awaiting(...jobs.left());
      jobs.fail([20]);
      const outcome = (
        await jobs.sweeper.remove(
          jobs.left().map((id) => workerOf(id)),
          signal,
        )
      ).get(20);
      expect(outcome).to.deep.equal({
        kind: 'pending',
        reason: {
          code: 'output-awaited',
          message: 'the output of worker 20 cannot be fetched yet: no directory',
        },
      });
      expect(jobs.left()).to.deep.equal([20]);
      expect(jobs.commands.length, 'commands').to.be.lessThan(15);
      jobs.fail([]);
      expect(await jobs.remove()).to.deep.equal(new Map([[20, 'gone']]));
      expect(marks()).to.deep.equal([]);
    });

    it('fetches those that can be fetched in the end, however many cannot', async () => {
      const jobs = spool(60);
      await awaiting(...jobs.left());
      const bad = jobs.left().slice(0, 50);
      jobs.fail(bad);
      for (let pass = 0; pass < 12; pass++) {
        await jobs.remove();
        expect(jobs.commands.length, 'commands of a pass').to.be.lessThan(40);
      }
      expect(jobs.left()).to.deep.equal(bad);
    });

    it('keeps all, awaited or not, while the schedd does not answer, and says that it does not', async () => {
      const jobs = spool(2);
      await awaiting(3);
      jobs.fail(undefined);
      expect(await jobs.remove()).to.deep.equal(
        new Map([
          [3, 'failed'],
          [4, 'failed'],
        ]),
      );
      expect(jobs.left()).to.deep.equal([3, 4]);
    });
  });

  describe('and the output that a worker left', () => {
    const left = () => readdirSync(join(directory, 'outputs/schedd')).sort();
    /** The second question is for what has to be removed. */
    const failsFirst = () => {
      let asked = 0;
      return async () => {
        if (asked++ === 0) throw new Error('the schedd does not answer');
        return [];
      };
    };

    it('keeps a worker until its source took the output, and removes all its files then', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      expect(left()).to.deep.equal(['3', '3.err', '3.log', '3.out']);
      writeFileSync(outputs.pathOf(3), 'an output');
      const outcome = (await remove(3)).get(3);
      expect(outcome).to.have.property('kind', 'pending');
      expect(outcome).to.have.nested.property('reason.code', 'output-awaited');
      await outputs.drop([3]);
      expect(left()).to.deep.equal(['3.err', '3.log', '3.out', '3.taken']);
      // Another fetch from the spool brings it once more.
      writeFileSync(outputs.pathOf(3), 'an output');
      expect(await outputs.bytesOf(3)).to.equal(undefined);
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });

    it('hole 6: a directory in the place of an output is none, and goes with its worker like all others', async () => {
      const ids = [3, 4, 5];
      await outputs.make(ids.map((workerId) => ({ workerId, leaves: true })));
      for (const place of [outputs.pathOf(4), `${outputs.pathOf(4)}.out`]) {
        rmSync(place);
        mkdirSync(place);
        symlinkSync(directory, join(place, 'link'));
      }
      symlinkSync('/etc/passwd', outputs.pathOf(6));
      expect([await outputs.bytesOf(4), await outputs.bytesOf(6)]).to.deep.equal([undefined, undefined]);
      rmSync(outputs.pathOf(6));
      expect([...(await remove(ids))]).to.deep.equal(ids.map((id) => [id, { kind: 'gone' }]));
      expect(left()).to.deep.equal([]);
      expect(existsSync(join(directory, 'outputs')), 'no link is followed').to.equal(true);
    });

    it('hole 6: files that cannot be removed keep their worker alone, unless the disk hangs', async () => {
      const ids = [3, 4, 5];
      const kinds = async () => [...(await remove(ids)).values()].map(({ kind }) => kind);
      const removing = outputs.remove.bind(outputs);
      for (const [error, expected] of [
        [new Error('it is busy'), ['gone', 'failed', 'gone']],
        [new ThresherError('file-timeout', 'it hangs'), ['gone', 'failed', 'failed']],
      ] as const) {
        outputs.remove = (id) => (id === 4 ? Promise.reject(error) : removing(id));
        expect(await kinds()).to.deep.equal(expected);
      }
    });

    it('keeps no worker that left none, or leaves none', async () => {
      await outputs.make([
        { workerId: 3, leaves: true },
        { workerId: 4, leaves: false },
      ]);
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect((await remove(4)).get(4)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });

    it('keeps a worker whose output may lie in the spool of a schedd that is away', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      expect((await remove(3, failsFirst())).get(3)).to.have.nested.property(
        'error.message',
        'the schedd does not answer',
      );
      await outputs.drop([3]);
      // It may have left a log there all the same.
      expect((await remove(3, failsFirst())).get(3)).to.have.property('kind', 'failed');
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
    });

    it('keeps it for ten days since it had to first, and no longer, also where it came while no daemon ran', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      writeFileSync(outputs.pathOf(3), 'an output');
      const daysAgo = (days: number) => Date.now() - days * 24 * 3_600_000;
      utimesSync(outputs.pathOf(3), daysAgo(20) / 1000, daysAgo(20) / 1000);
      expect((await remove(3)).get(3)).to.have.property('kind', 'pending');
      writeFileSync(`${outputs.pathOf(3)}.kept`, String(daysAgo(9.9)));
      expect((await remove(3)).get(3)).to.have.property('kind', 'pending');
      writeFileSync(`${outputs.pathOf(3)}.kept`, String(daysAgo(10.1)));
      utimesSync(outputs.pathOf(3), daysAgo(1) / 1000, daysAgo(1) / 1000);
      expect((await remove(3)).get(3), 'it was fetched at last').to.have.property('kind', 'pending');
      utimesSync(outputs.pathOf(3), daysAgo(10.1) / 1000, daysAgo(10.1) / 1000);
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });
  });
});
