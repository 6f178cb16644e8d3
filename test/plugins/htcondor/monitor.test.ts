import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ObservationSink } from '../../../src/plugins/contracts/monitor.ts';
import { identityText, jobOf, marks } from '../../../src/plugins/htcondor/marks.ts';
import { HTCondorConnection } from '../../../src/plugins/htcondor/connection.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import { HTCondorMonitor } from '../../../src/plugins/htcondor/monitor.ts';
import { CeTally } from '../../../src/plugins/htcondor/place/ce-tally.ts';
import { HTCondorMonitorConfig } from '../../../src/plugins/htcondor/schema.ts';
import { givenUpReason } from '../../../src/plugins/htcondor/state/job-state.ts';
import { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { defaultsOf } from '../../../src/util/schema-defaults.ts';
import { PandaSource } from '../../../src/sources/panda/index.ts';
import type { Worker } from '../../../src/worker/worker.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { mostMaskedInATurn } from '../../support/masked-characters.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const [removed, held] = [3, 5];

const { signal } = new AbortController();

describe('the monitor of HTCondor', () => {
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let queue: object[];
  /** What the history tells. */
  let ended: object[];
  let acted: string[];
  let reasons: string[];
  let isRefused: boolean;
  /** Of each command that changes jobs. */
  let succeeded: number;
  /** Monitor options of every queue. */
  let section: object;
  /** What the queue does then. */
  let onAct: () => void;
  let look: () => Promise<void>;
  /** Observes until the call that is returned. */
  let observe: () => () => Promise<void>;
  /** Constraints with which the queue was asked, and whether it answers. */
  let asked: string[];
  let isAway: boolean;
  let isHistoryAway: boolean;
  let monitor: HTCondorMonitor;
  /** The monitor of a connection to which no queue leads. */
  let withoutQueues: () => HTCondorMonitor;
  let schedd: HTCondorSchedd;
  let directory: string;
  let troubles: string[];
  let seen: string[];
  /** Of the queue that the schedd has, s; 0: it does not say so. */
  let birth: number;

  beforeEach(() => {
    clock = new ManualClock();
    onAct = () => undefined;
    birth = 1_700_000_000;
    log = recordingLog();
    [queue, ended, acted, reasons, troubles, seen, isRefused] = [[], [], [], [], [], [], false];
    [asked, isAway, isHistoryAway] = [[], false, false];
    [succeeded, section] = [Infinity, {}];
    const away = () => new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
    directory = temporaryDirectory();
    const context = { ...pluginContext({ clock, log, stateDir: directory }) };
    const host = {
      ...context,
      share: <T>(_: string, make: () => T) => make(),
      memoryOf: inFiles(context.stateDir),
    };
    schedd = new HTCondorSchedd({ name: 'S', pool: undefined } as never, host);
    const client = {
      queueAs: async (read: (ad: object) => unknown, constraint: string) => {
        asked.push(constraint);
        if (isAway) throw away();
        return queue.map(read);
      },
      history: async () => {
        asked.push('history');
        if (isHistoryAway) throw away();
        return ended;
      },
      historyAs: async (read: (ad: object) => unknown) => {
        if (isHistoryAway) throw away();
        return ended.map(read);
      },
      whoAmI: async () => 'pilot@pool.test',
      jobQueue: async () => {
        if (birth > 0) return { birth, started: 1, name: 'S' };
        throw new HTCondorError({ code: 'condor-timeout', message: 'no answer', maybeDone: false });
      },
      act: async (what: string, constraint: string, reason: string) => {
        if (isRefused) throw new Error('the schedd refuses');
        acted.push(`${what} ${constraint}`);
        reasons.push(reason);
        onAct();
        return { succeeded };
      },
    };
    Object.assign(schedd.client, client);
    const options = defaultsOf(HTCondorMonitorConfig);
    const daemon = {
      ...host,
      connection: 'C',
      queues: [],
      queue: () => undefined,
      pause: (howLong: () => number, over: AbortSignal) => clock.sleep(howLong(), over),
    } as never;
    withoutQueues = () => {
      const connection = new HTCondorConnection('htcondor:LOCAL', daemon);
      Object.assign(connection.schedd.client, client);
      return connection.monitor;
    };
    monitor = new HTCondorMonitor({
      schedd,
      daemon,
      options: () => ({ ...options(), ...section }),
      tally: new CeTally(),
    });
    const sinkOf = (looked: () => void): ObservationSink => ({
      begin: () => undefined,
      observe: ({ workerId, status, error }) => seen.push(`${workerId} ${status} ${error?.code ?? ''}`),
      gone: (workerId) => seen.push(`${workerId} gone`),
      complete: looked,
      trouble: ({ message }) => {
        troubles.push(message);
        looked();
      },
    });
    look = async () => {
      const over = new AbortController();
      const looked = () => {
        over.abort();
      };
      await monitor.observe(sinkOf(looked), over.signal);
    };
    observe = () => {
      const over = new AbortController();
      const observing = monitor.observe(
        sinkOf(() => undefined),
        over.signal,
      );
      return async () => {
        over.abort();
        await observing;
      };
    };
  });

  const seconds = () => Math.floor(clock.now() / 1000);
  const job = (proc: number, ad: object) => ({
    ClusterId: 7,
    ProcId: proc,
    [marks.worker]: String(proc + 1),
    Owner: 'pilot',
    EnteredCurrentStatus: seconds(),
    ...ad,
  });
  const said = () => log.lines.filter(({ message }) => message === 'removed jobs are still in the queue');

  it('hole 8: gives others their turn while it looks at jobs with the long reasons of users', async () => {
    const HoldReason = ':token'.repeat(140);
    queue = Array.from({ length: 100 }, (_, proc) =>
      job(proc, { JobStatus: held, HoldReason, EnteredCurrentStatus: seconds() - 9e6 }),
    );
    isRefused = true;
    for (const work of [
      look,
      async () => {
        const workers = Array.from({ length: 100 }, (_, at) => workerOf(at + 1));
        expect(await monitor.check(workers, signal)).to.have.property('size', 100);
      },
    ]) {
      const most = await mostMaskedInATurn(async (given) => {
        Object.assign(clock, { monotonic: () => given.monotonic() });
        await work();
      });
      expect(most).to.be.within(800, 10_000);
    }
  });

  it('says once of removed jobs that they stay in the queue, whoever removed them', async () => {
    queue = [job(0, { JobStatus: removed }), job(1, { JobStatus: removed }), job(2, { JobStatus: 2 })];
    expect(jobOf(queue[0] as never, true)?.workerId).to.equal(1);
    await look();
    await clock.advance(599_000);
    await look();
    expect(said()).to.deep.equal([]);
    await clock.advance(2000);
    await look();
    await look();
    expect(said().map(({ facts }) => facts)).to.have.length(1);
    expect(said()[0]?.facts).to.include({ code: 'htcondor-removing', workers: 2 });
    expect(said()[0]?.facts).to.have.deep.property('workerIds', [1, 2]);
    // One that left, and comes again, is another one.
    queue = [];
    await look();
    expect([acted, troubles]).to.deep.equal([[], []]);
  });

  it('hole 3: says nothing of jobs where the schedd has another queue, whose spool is not mounted', async () => {
    queue = [job(0, { JobStatus: 2 })];
    const worker = workerOf(1, { handle: { batchID: '7.0', submissionHost: 'S,None' } });
    const checked = async () => (await monitor.check([worker], signal)).get(1);
    await look();
    birth++;
    queue = [];
    await look();
    const unknown = await checked();
    expect(unknown?.kind === 'unknown' && unknown.error.code).to.equal('htcondor-other-queue');
    expect([seen, troubles.length]).to.deep.equal([['1 running '], 1]);
    expect(troubles[0]).to.contain('Mount the spool');
    birth = 0;
    await look();
    expect([seen, troubles.length]).to.deep.equal([['1 running '], 2]);
    expect(troubles[1]).to.equal('no answer');
    birth = 1_700_000_000;
    await look();
    expect(await checked()).to.deep.equal({ kind: 'absent' });
    expect([seen, troubles.length]).to.deep.equal([['1 running ', '1 gone'], 2]);
  });

  it('hole 5: takes no end of another job of a worker for its own while the schedd has another queue', async () => {
    const worker = workerOf(1, { handle: { batchID: '7.0', submissionHost: 'S,None' } });
    const checked = async () => {
      const result = (await monitor.check([worker], signal)).get(1);
      return result?.kind === 'unknown'
        ? result.error.code
        : result?.kind === 'observed' && result.observation.status;
    };
    queue = [job(0, { JobStatus: 2 })];
    const over = { JobStatus: 4, ExitBySignal: false, ExitCode: 3, CompletionDate: seconds() };
    ended = [job(1, { [marks.worker]: '1', ...over })];
    await look();
    expect(await checked()).to.equal('running');
    birth++;
    queue = [];
    expect(await checked()).to.equal('htcondor-other-queue');
    // Its own job's end is no better known: the history may be older than the queue that is away.
    ended = [job(0, over)];
    expect(await checked()).to.equal('htcondor-other-queue');
    birth--;
    expect(await checked()).to.equal('failed');
  });

  it('hole 3: reads of no end in a log while the schedd has another queue, whose jobs have the same numbers', async () => {
    const path = join(directory, 'events');
    writeFileSync(path, '');
    schedd.logs.follow([{ path, own: false }]);
    queue = [job(0, { JobStatus: 2 })];
    await look();
    birth++;
    await look();
    expect(troubles).to.have.length(1);
    writeFileSync(
      path,
      '005 (7.0.0) 2026-11-21 20:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n',
    );
    await look();
    birth--;
    await look();
    expect([...new Set(seen)]).to.deep.equal(['1 running ']);
  });

  describe('hole 5: while its jobs are with the schedd of another machine, whose numbers this machine gives, too', () => {
    const terminated =
      '005 (7.0.0) 2026-11-21 20:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n';
    const goElsewhere = () => {
      Object.defineProperty(schedd.jobQueue, 'logsAreOfOther', { value: true });
      return true;
    };
    let path: string;

    beforeEach(() => {
      path = join(directory, 'events');
      writeFileSync(path, '');
      schedd.logs.follow([{ path, own: true }]);
    });

    it('reads of no end in the log of this one', async () => {
      queue = [job(0, { JobStatus: 2 })];
      await look();
      goElsewhere();
      writeFileSync(path, terminated);
      for (let n = 0; n < 2; n++) await look();
      expect([...new Set(seen)]).to.deep.equal(['1 running ']);
      expect([schedd.jobs.endOf('7.0'), monitor.hearsAtOnce()]).to.deep.equal([undefined, false]);
    });

    it('forgets the ends that it read before', async () => {
      writeFileSync(path, terminated);
      isAway = true;
      schedd.jobQueue.callOtherwise = async () => goElsewhere();
      await look();
      isAway = false;
      const worker = workerOf(1, { handle: { batchID: '7.0', submissionHost: 'S,None' } });
      expect((await monitor.check([worker], signal)).get(1)).to.deep.equal({ kind: 'absent' });
    });
  });

  it('hole 3: gives no job up that only another queue does not have', async () => {
    const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
    queue = [job(0, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 })];
    onAct = () => {
      birth++;
      queue = [];
    };
    await look();
    expect([seen, troubles.length]).to.deep.equal([[], 1]);
  });

  it('hole 1: shows no job of another user that has our marks, and says so once', async () => {
    const theirs = { JobStatus: 2, Owner: 'games' };
    queue = [job(0, { JobStatus: 2 }), job(1, theirs), job(0, { ...theirs, ClusterId: 8 })];
    ended = [job(2, { ...theirs, JobStatus: 4 })];
    await look();
    await look();
    expect([seen, troubles]).to.deep.equal([['1 running ', '1 running '], []]);
    const said = log.lines.filter(({ level }) => level === 'warn').map(({ facts }) => facts);
    expect(said).to.deep.equal([{ submissionHost: 'S,None', job: '7.1', owner: 'games' }]);
  });

  it('hole 1: keeps the payload of a job of another owner: it may be ours, of an earlier credential', async () => {
    const dropped: number[] = [];
    Object.assign(schedd.bundles, {
      unsubmitted: async () => [2, 3].map((workerId) => ({ workerId, attempt: 1 })),
      drop: async (attempts: readonly { workerId: number }[]) => {
        dropped.push(...attempts.map(({ workerId }) => workerId));
      },
    });
    queue = [job(1, { JobStatus: 1, Owner: 'games' })];
    await look();
    expect(dropped).to.deep.equal([3]);
  });

  it('hole 1: sees the job that a worker was confirmed with, whosever it is', async () => {
    queue = [job(0, { JobStatus: 2, Owner: 'earlier' })];
    await look();
    expect(seen).to.deep.equal([]);
    const handle = { batchID: '7.0', submissionHost: 'S' };
    const results = await monitor.check([workerOf(1, { handle }), workerOf(2)], signal);
    expect([...results.values()].map(({ kind }) => kind)).to.deep.equal(['observed', 'absent']);
    const open = await monitor.check([workerOf(1)], signal);
    expect(open.get(1)).to.have.nested.property('error.code', 'htcondor-owner');
  });

  describe('takes an end in a log of job events for one only where the queue agrees', () => {
    const at = (hour: string) => `2026-11-21 ${hour}`;
    const endings = {
      terminated: (hour: string, status = 0) =>
        `${at(hour)} Job terminated.\n\t(1) Normal termination (return value ${status})\n...\n`,
      aborted: (hour: string) => `${at(hour)} Job was aborted.\n\tvia condor_rm\n...\n`,
    };
    const terminated = (proc: number, hour = '20:00:00', status = 0) =>
      `005 (7.${proc}.000) ${endings.terminated(hour, status)}`;
    const aborted = (proc: number, hour = '20:00:00') => `009 (7.${proc}.000) ${endings.aborted(hour)}`;
    const started = (proc: number, hour: string) =>
      `001 (7.${proc}.000) ${at(hour)} Job executing on host: <192.0.2.4:9618>\n...\n`;
    const worker = workerOf(1, { handle: { batchID: '7.0', submissionHost: 'S,None' } });
    const checked = async () => {
      const result = (await monitor.check([worker], signal)).get(1);
      return result?.kind === 'observed' ? result.observation.status : result?.kind;
    };
    const contradictions = () =>
      log.lines.flatMap(({ facts }) => (facts['code'] === 'htcondor-end-contradicted' ? [facts] : []));
    let path: string;
    let stop: () => Promise<void>;

    beforeEach(async () => {
      path = join(directory, 'events');
      writeFileSync(path, '');
      schedd.logs.follow([{ path, own: true }]);
      queue = [job(0, { JobStatus: 2 }), job(1, { JobStatus: 2 })];
      await look();
      expect(seen).to.deep.equal(['1 running ', '2 running ']);
      [seen, asked] = [[], []];
      stop = async () => undefined;
    });
    afterEach(() => stop());

    /** Time goes by between readings of the log. */
    const passUntil = async (what: string, condition: () => boolean) => {
      for (let times = 0; !condition(); times++) {
        expect(times, `in vain until ${what}`).to.be.below(200);
        await clock.pass(200);
      }
    };
    const begin = async () => {
      stop = observe();
      await until('it has looked', () => seen.length >= 2);
      [seen, asked] = [[], []];
    };

    for (const [what, record] of [
      ['ended', terminated(0)],
      ['was removed', aborted(0)],
    ] as const)
      it(`lets a job live that ${what} by the log, and runs by the queue, and warns of it once`, async () => {
        queue = [job(0, { JobStatus: 2 })];
        await look();
        seen = [];
        writeFileSync(path, record);
        await look();
        expect([seen, await checked(), contradictions()]).to.deep.equal([['1 running '], 'running', []]);
        for (let times = 0; times < 5; times++) {
          seen = [];
          await clock.advance(600_000);
          const since = seconds() - 300;
          queue = [job(0, { JobStatus: 2, JobStartDate: since, EnteredCurrentStatus: since })];
          await look();
          expect([seen, await checked()]).to.deep.equal([['1 running '], 'running']);
        }
        expect(contradictions()).to.have.length(1);
        expect(contradictions()[0]).to.deep.include({ workers: 1, workerIds: [1] });
        expect(contradictions()[0]?.['reason']).to.contain('job 7.0 of S,None').and.contain('JobStatus 2');
        // It ends as the history says: what the log said was not its end.
        seen = [];
        queue = [];
        ended = [job(0, { JobStatus: 4, ExitBySignal: false, ExitCode: 3, CompletionDate: seconds() })];
        await look();
        expect([seen, troubles]).to.deep.equal([['1 failed exit-status'], []]);
      });

    it('takes the last end of a job that was run again', async () => {
      writeFileSync(path, terminated(0));
      await look();
      writeFileSync(path, terminated(0) + started(0, '21:00:00'));
      await look();
      writeFileSync(path, terminated(0) + started(0, '21:00:00') + terminated(0, '22:00:00', 3));
      queue = [job(1, { JobStatus: 2 })];
      [seen, asked] = [[], []];
      await look();
      expect(seen).to.deep.equal(['1 failed exit-status', '2 running ']);
      expect(asked, 'the history is not asked for what the log told').to.have.length(1);
      expect(contradictions()).to.deep.equal([]);
    });

    /** The history tells how it ended where something speaks against what the log told. */
    const otherwise = () => [job(0, { JobStatus: removed, LastJobStatus: 2, RemoveReason: 'via condor_rm' })];
    const record = (number: string, hour: string, text: string) =>
      `${number} (7.0.000) ${at(hour)} ${text}\n...\n`;
    const left = async () => {
      [seen, queue, asked] = [[], [job(1, { JobStatus: 2 })], []];
      await look();
      return seen.toSorted();
    };

    for (const [what, number, text] of [
      ['was evicted', '004', 'Job was evicted.\n\t(0) CPU times'],
      ['lost its shadow', '007', 'Shadow exception!\n\tgone'],
      ['was suspended', '010', 'Job was suspended.'],
      ['was held', '012', 'Job was held.\n\tby hand\n\tCode 1 Subcode 0'],
      ['could not be reached again', '024', 'Job reconnection failed\n\tgone'],
      ['ended again', '005', 'Job terminated.\n\t(1) Normal termination (return value 3)'],
    ] as const)
      it(`asks the history how one ended that ${what} behind its end, by the log`, async () => {
        writeFileSync(path, terminated(0) + record(number, '20:01:00', text) + aborted(0, '20:02:00'));
        ended = otherwise();
        expect(await left()).to.deep.equal(['1 cancelled htcondor-removed', '2 running ']);
        expect(asked).to.include('history');
      });

    for (const [what, ads] of [
      ['waits', [{ JobStatus: 1, LastJobStatus: 2 }]],
      ['runs on for longer than usual', [{ JobStatus: 2 }, { JobStatus: 2 }]],
      ['is being removed', [{ JobStatus: removed, LastJobStatus: 2 }]],
    ] as const)
      it(`asks the history how one ended that ${what} by the queue, though the log told its end`, async () => {
        writeFileSync(path, terminated(0));
        for (const ad of ads) {
          queue = [job(0, ad), job(1, { JobStatus: 2 })];
          await look();
          await clock.advance(20_000);
        }
        ended = otherwise();
        expect(await left()).to.deep.equal(['1 cancelled htcondor-removed', '2 running ']);
      });

    it('takes the end of the log where something speaks against it, and no history knows the job', async () => {
      writeFileSync(path, aborted(0) + record('007', '20:00:01', 'Shadow exception!\n\tgone'));
      expect(await left()).to.deep.equal(['1 cancelled htcondor-removed', '2 running ']);
    });

    it('goes on with all others while the history cannot say how a doubtful one ended', async () => {
      writeFileSync(path, terminated(0) + record('007', '20:00:01', 'Shadow exception!\n\tgone'));
      isHistoryAway = true;
      expect([await left(), troubles, await checked()]).to.deep.equal([['2 running '], [], 'unknown']);
      expect(await left()).to.deep.equal(['2 running ']);
      [isHistoryAway, ended] = [false, otherwise()];
      expect(await left()).to.deep.equal(['1 cancelled htcondor-removed', '2 running ']);
    });

    it('asks the history also of one whose submission was told after what the log has of it', async () => {
      const record = (number: string, hour: string, text: string) =>
        `${number} (7.2.000) ${at(hour)} ${text}\n...\n`;
      const text =
        record('000', '20:00:00', 'Job submitted from host: <192.0.2.4:9618>') + terminated(2, '20:01:00');
      writeFileSync(path, text + record('007', '20:01:01', 'Shadow exception!\n\tgone'));
      await look();
      const fresh = jobOf(job(2, { JobStatus: 1 }), true);
      if (fresh === undefined) throw new Error('no job');
      schedd.fresh.set('7.2', fresh);
      ended = [job(2, { JobStatus: removed, LastJobStatus: 2, RemoveReason: 'via condor_rm' })];
      seen = [];
      await look();
      expect(seen).to.include('3 cancelled htcondor-removed');
    });

    it('gives no worker the end of another one, whose job has the number of its own', async () => {
      const again = record('000', '20:00:01', 'Job submitted from host: <192.0.2.4:9618>');
      writeFileSync(path, terminated(0) + again + terminated(0, '20:01:00', 7));
      expect(await left()).to.deep.equal(['1 gone', '2 running ']);
      expect(await checked()).to.equal('absent');
    });

    it('looks at once where the queue has no more a job against whose end something speaks', async () => {
      await begin();
      queue = [job(0, { JobStatus: 1, LastJobStatus: 2 }), job(1, { JobStatus: 2 })];
      writeFileSync(path, terminated(0));
      await passUntil('it was asked about', () => asked.some((one) => one.includes('ClusterId == 7')));
      [queue, ended] = [[job(1, { JobStatus: 2 })], otherwise()];
      await passUntil('the history has told', () => seen.some((one) => one.startsWith('1 cancelled')));
      expect(seen).not.to.include('1 finished ');
    });

    it('ends no job by the log whose number was given again: it is looked up', async () => {
      for (const end of [terminated(0), aborted(0)]) {
        const text = end + record('000', '20:00:01', 'Job submitted from host: <192.0.2.4:9618>');
        writeFileSync(path, text);
        seen = [];
        await look();
        expect(seen).to.deep.equal(['1 gone', '1 running ', '2 running ']);
        expect(await checked()).to.equal('running');
      }
    });

    it('takes no end for that of its job that a schedd with another queue may have written', async () => {
      birth++;
      queue = [];
      writeFileSync(path, terminated(0, '20:00:00', 7));
      await look();
      expect([seen, troubles.length]).to.deep.equal([[], 1]);
      birth--;
      queue = [job(0, { JobStatus: 2 }), job(1, { JobStatus: 2 })];
      await look();
      ended = [job(0, { JobStatus: 4, ExitBySignal: false, ExitCode: 0, CompletionDate: seconds() })];
      expect(await left()).to.deep.equal(['1 finished ', '2 running ']);
    });

    it('asks by one condor_q for all that ended, long before the next look, and asks no history', async () => {
      await begin();
      writeFileSync(path, terminated(0) + aborted(1));
      queue = [];
      const since = clock.monotonic();
      await passUntil('both have ended', () => seen.length >= 2);
      expect(seen).to.deep.equal(['1 finished ', '2 cancelled htcondor-removed']);
      expect(clock.monotonic() - since).to.be.at.most(1000);
      expect(asked).to.have.length(1);
      expect(asked[0]).to.match(/ClusterId == 7 && ProcId >= 0 && ProcId <= 1/);
      await clock.pass(200);
      await clock.pass(200);
      expect(asked, 'and not again').to.have.length(1);
    });

    it('asks again where the schedd is slower than the log, less and less often', async () => {
      await begin();
      writeFileSync(path, terminated(0));
      const since = clock.monotonic();
      await passUntil('some time has passed', () => clock.monotonic() - since > 9000);
      const questions = asked.filter((constraint) => constraint.includes('ClusterId == 7'));
      expect(questions.length).to.be.within(2, 6);
      expect([seen.filter((one) => one.includes('finished')), contradictions()]).to.deep.equal([[], []]);
      queue = [job(1, { JobStatus: 2 })];
      await passUntil('it has ended', () => seen.includes('1 finished '));
      expect(asked).not.to.include('history');
    });

    it('has one end whose ad in the queue could not be read, as soon as it has left', async () => {
      await begin();
      queue = [job(0, { JobStatus: 'odd' }), job(1, { JobStatus: 2 })];
      writeFileSync(path, terminated(0));
      await passUntil('it was asked about', () => asked.some((one) => one.includes('ClusterId == 7')));
      expect(seen).to.deep.equal([]);
      queue = [job(1, { JobStatus: 2 })];
      await passUntil('it has ended', () => seen.includes('1 finished '));
    });

    it('keeps the worker as it is while the schedd is away, and has it end when that is back', async () => {
      await begin();
      const positions = join(directory, 'htcondor/positions');
      // One that is being written has another name.
      const names = () => readdirSync(positions).filter((name) => name.endsWith('.json'));
      const kept = () => names().map((name) => readFileSync(join(positions, name), 'utf8'));
      const before = await until('how far the log was read is kept', () => kept().length > 0 && kept());
      isAway = true;
      writeFileSync(path, terminated(0));
      await passUntil('three looks have failed', () => troubles.length > 2);
      expect([seen, await checked()]).to.deep.equal([[], 'unknown']);
      await stop();
      expect(kept(), 'the end has to be read again after a restart').to.deep.equal(before);
      stop = observe();
      isAway = false;
      queue = [];
      await until('it has ended', () => seen.includes('1 finished '));
    });

    it('says nothing of an end while the schedd has another queue', async () => {
      await begin();
      birth++;
      queue = [];
      writeFileSync(path, terminated(0));
      await passUntil('a look has failed', () => troubles.length > 0);
      expect([seen, await checked()]).to.deep.equal([[], 'unknown']);
    });

    it('has one that is completed in the queue end at once, and one that is removed there when it has left', async () => {
      writeFileSync(path, terminated(0) + aborted(1));
      queue = [
        job(0, { JobStatus: 4, ExitBySignal: false, ExitCode: 0, CompletionDate: seconds() }),
        job(1, { JobStatus: removed, LastJobStatus: 2 }),
      ];
      await look();
      expect(seen).to.deep.equal(['1 finished ', '2 running ']);
      await clock.advance(400_000);
      await look();
      expect(contradictions()).to.deep.equal([]);
      [seen, queue] = [[], []];
      await look();
      expect(seen).to.deep.equal(['2 cancelled htcondor-removed']);
    });
  });

  describe('where a worker has two jobs', () => {
    const [running, completed] = [{ JobStatus: 2 }, { JobStatus: 4, ExitCode: 0, CompletionDate: 10 }];
    const numbered = (cluster: number, ad: object) => ({ ...job(0, ad), ClusterId: cluster });
    const checked = async () => {
      const result = (await monitor.check([workerOf(1, { handle: { batchID: '7.0' } })], signal)).get(1);
      return result?.kind === 'observed' ? result.observation.status : result?.kind;
    };

    it('says nothing of it in a look, but has it looked up by the number that it was confirmed with', async () => {
      queue = [numbered(7, running), numbered(9, completed)];
      await look();
      expect([seen, await checked()]).to.deep.equal([['1 gone'], 'running']);
      queue = [numbered(7, completed), numbered(9, running)];
      await look();
      expect([seen, await checked()]).to.deep.equal([['1 gone', '1 gone'], 'finished']);
      // Nothing is left of it.
      [queue, ended, seen] = [[], [], []];
      await look();
      await look();
      expect([seen, await checked()]).to.deep.equal([['1 gone'], 'absent']);
    });

    it('finds its own in the history beside the other one in the queue', async () => {
      [queue, ended] = [[numbered(9, running)], [numbered(7, completed)]];
      expect(await checked()).to.equal('finished');
      await look();
      expect(seen).to.deep.equal(['1 gone']);
      // The history knows nothing of it: the other one is all that there is.
      ended = [];
      expect(await checked()).to.equal('running');
    });

    it('gives up the held one, and not the worker', async () => {
      const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
      queue = [
        numbered(7, running),
        numbered(9, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 }),
      ];
      onAct = () => {
        queue = [numbered(7, running)];
      };
      await look();
      expect(acted).to.have.length(1);
      expect(seen).to.deep.equal(['1 gone']);
      await look();
      expect([seen.at(-1), await checked()]).to.deep.equal(['1 gone', 'running']);
    });

    it('takes no end for that of the worker that the log tells of the other one', async () => {
      const path = join(directory, 'events');
      writeFileSync(path, '');
      schedd.logs.follow([{ path, own: false }]);
      queue = [numbered(7, running), numbered(9, running)];
      await look();
      seen = [];
      writeFileSync(
        path,
        '005 (9.0.0) 2026-11-21 20:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n',
      );
      await look();
      expect([...new Set(seen)]).to.deep.equal(['1 gone']);
    });

    it('takes one for one that leaves the queue while it is looked at', async () => {
      [queue, ended] = [[numbered(7, completed)], [numbered(7, completed)]];
      await look();
      expect(seen).to.deep.equal(['1 finished ']);
    });
  });

  it('hole 8: calls no worker absent whose end may stand in a log that it has not read', async () => {
    const path = join(directory, 'events');
    writeFileSync(
      path,
      '005 (7.0.0) 2026-11-21 20:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n',
    );
    schedd.logs.follow([{ path, own: true }]);
    const worker = workerOf(1, { handle: { batchID: '7.0' } });
    const check = async () => (await monitor.check([worker], new AbortController().signal)).get(1);
    const [begun, released] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const read = schedd.logs.read.bind(schedd.logs);
    schedd.logs.read = async (...of) => {
      begun.resolve(undefined);
      await released.promise;
      return read(...of);
    };
    const looking = look();
    await begun.promise;
    expect(await check()).to.include({ kind: 'unknown' });
    released.resolve(undefined);
    await looking;
    expect(await check()).to.nested.include({ kind: 'observed', 'observation.status': 'finished' });
  });

  it('has an end of which the log told count where the history cannot be asked', async () => {
    const path = join(directory, 'events');
    writeFileSync(
      path,
      '005 (7.0.0) 2026-11-21 20:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n',
    );
    schedd.logs.follow([{ path, own: true }]);
    await look();
    const refuses = async () =>
      Promise.reject(new HTCondorError({ code: 'condor-timeout', message: 'no answer', maybeDone: false }));
    Object.assign(schedd.client, { history: refuses, historyAs: refuses });
    const workers = [
      workerOf(1, { handle: { batchID: '7.0' } }),
      workerOf(2, { handle: { batchID: '8.0' } }),
    ];
    const results = await monitor.check(workers, signal);
    expect(results.get(1)).to.nested.include({ kind: 'observed', 'observation.status': 'finished' });
    expect(results.get(2)).to.nested.include({ kind: 'unknown', 'error.code': 'condor-timeout' });
  });

  it('removes what was held as it was judged, and not what was released and held again meanwhile', async () => {
    const [long, shortly] = [seconds() - 9e6, seconds() - 9];
    const mark = { [marks.queue]: 'Q', JobStatus: held };
    const missing = { ...mark, HoldReasonCode: 13, EnteredCurrentStatus: long };
    const over = { ...mark, HoldReasonCode: 47 };
    queue = [
      ...[job(0, missing), job(1, missing), job(2, { ...missing, EnteredCurrentStatus: long + 1 })],
      ...[
        job(3, { ...over, EnteredCurrentStatus: shortly }),
        job(4, { ...over, EnteredCurrentStatus: undefined }),
      ],
    ];
    await look();
    const judged = (which: number) =>
      [
        ...(acted[which] ?? '').matchAll(/ProcId >= (\d) && ProcId <= (\d)\D+EnteredCurrentStatus == (\d+)/g),
      ].map(([, first, last, entered]) => [first, last, Number(entered)]);
    expect([acted.length, judged(0), judged(1)]).to.deep.equal([
      2,
      [
        ['0', '1', long],
        ['2', '2', long + 1],
      ],
      [['3', '3', shortly]],
    ]);
    expect(acted[1]).to.contain('ProcId >= 4 && ProcId <= 4');
  });

  it('removes a job with what it was given up for: it was held for too long, or has ended', async () => {
    const mark = { [marks.queue]: 'Q', JobStatus: held };
    queue = [
      job(0, { ...mark, HoldReasonCode: 13, EnteredCurrentStatus: seconds() - 9e6 }),
      job(1, { ...mark, HoldReasonCode: 47 }),
    ];
    await look();
    expect(reasons).to.deep.equal([
      'held for too long: given up by thresher',
      'held with a reason by which it has ended: given up by thresher',
    ]);
  });

  it('keeps why it gave a job up, where no history tells what became of it', async () => {
    const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
    queue = [job(0, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 })];
    onAct = () => {
      queue = [job(0, { ...mark, JobStatus: removed, LastJobStatus: held })];
    };
    await look();
    expect(acted).to.have.length(1);
    seen = [];
    queue = [];
    await look();
    expect(seen).to.deep.equal(['1 cancelled htcondor-input']);
  });

  it('keeps why it gave a job up through a refusal of its CE, whatever the history says of that', async () => {
    const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
    queue = [job(0, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 })];
    onAct = () => {
      queue = [job(0, { ...mark, JobStatus: removed, LastJobStatus: held, RemoveReason: givenUpReason })];
    };
    await look();
    const ofCe = { ...mark, HoldReasonCode: 26, HoldReason: 'the CE refuses', RemoveReason: givenUpReason };
    queue = [job(0, { ...ofCe, JobStatus: held, LastJobStatus: removed })];
    await look();
    await clock.advance(601_000);
    onAct = () => {
      queue = [];
      const last = { LastHoldReasonCode: 26, LastHoldReason: 'the CE refuses', RemoveReason: reasons.at(-1) };
      ended = [job(0, { ...mark, ...last, JobStatus: removed, LastJobStatus: held })];
    };
    await look();
    seen = [];
    await look();
    expect(reasons).to.deep.equal([givenUpReason, givenUpReason]);
    expect(seen).to.deep.equal(['1 cancelled htcondor-input']);
  });

  it('removes again what HTCondor held while it was removed, and goes on where it cannot', async () => {
    queue = [
      job(0, { JobStatus: held, LastJobStatus: removed }),
      job(1, { JobStatus: held, LastJobStatus: 1 }),
    ];
    await look();
    expect(acted).to.deep.equal([]);
    await clock.advance(600_000);
    await look();
    expect(acted).to.have.length(1);
    expect(acted[0]).to.match(
      /^remove .*JobStatus == 5 && LastJobStatus == 3 && \(\(ClusterId == 7 && ProcId >= 0 && ProcId <= 0\)\)$/,
    );
    isRefused = true;
    await clock.advance(600_000);
    await look();
    expect(troubles).to.deep.equal([]);
    expect(log.lines.at(-1)?.message).to.contain('could not be removed further');
  });

  describe('and of jobs that were held while they were removed', () => {
    const many = () => {
      // Every second one, so that no range has them all: they take more than one command.
      queue = Array.from({ length: 2000 }, (_, nth) =>
        job(2 * nth, { JobStatus: held, LastJobStatus: removed }),
      );
    };
    const failing = (maybeDone: boolean) => {
      onAct = () => {
        throw new HTCondorError({ code: 'condor-failed', message: 'no answer', maybeDone });
      };
    };

    it('removes again at the next look those whose condor_rm did not start', async () => {
      queue = [job(0, { JobStatus: held, LastJobStatus: removed })];
      await look();
      await clock.advance(600_000);
      failing(false);
      await look();
      await clock.advance(60_000);
      onAct = () => undefined;
      await look();
      await look();
      expect(acted).to.have.length(2);
    });

    it('waits ten minutes with those whose condor_rm may have been done, and not with those of commands after it', async () => {
      many();
      await look();
      await clock.advance(600_000);
      failing(true);
      await look();
      expect(acted).to.have.length(1);
      const [first] = acted;
      onAct = () => undefined;
      await look();
      expect(acted.length).to.be.above(1);
      expect(acted.slice(1)).not.to.include(first);
      const begun = acted.length;
      await look();
      expect(acted).to.have.length(begun);
      await clock.advance(600_000);
      await look();
      expect(acted.slice(begun)).to.include(first);
    });

    for (const skew of [-3600, 3600])
      it(`gives one that is held only now, long after its removal, ten minutes from then, by a clock of its schedd that is ${skew} s off`, async () => {
        const one = (JobStatus: number, LastJobStatus: number) => {
          queue = [job(0, { JobStatus, LastJobStatus, EnteredCurrentStatus: seconds() + skew })];
        };
        one(held, removed);
        await look();
        await clock.advance(4_000_000);
        onAct = () => {
          one(removed, held);
        };
        await look();
        const begun = acted.length;
        expect(begun).to.be.above(0);
        await clock.advance(700_000);
        await look();
        one(held, removed);
        await look();
        await clock.advance(590_000);
        await look();
        expect(acted).to.have.length(begun);
        await clock.advance(10_000);
        await look();
        expect(acted).to.have.length(begun + 1);
      });
  });

  for (const [where, skew] of [
    ['behind', -3600],
    ['right', 0],
    ['ahead', 3600],
  ] as const)
    it(`removes a job that is held again after each removal every ten minutes, also where the clock of its schedd is ${where}`, async () => {
      const holds = () => {
        queue = [job(0, { JobStatus: held, LastJobStatus: removed, EnteredCurrentStatus: seconds() + skew })];
      };
      holds();
      onAct = holds;
      const removals: number[] = [];
      for (let minute = 0; minute <= 40; minute++) {
        const before = acted.length;
        await look();
        if (acted.length > before) removals.push(minute);
        await clock.advance(60_000);
      }
      // Whether it was held long before the first look, the clock of the schedd alone can say.
      expect(removals).to.deep.equal(skew < 0 ? [0, 10, 20, 30, 40] : [10, 20, 30, 40]);
    });

  describe('of a job for which there is no machine', () => {
    const machines = { cpus: 8, gpus: 0, memory: 16_000 };
    let sizes: object | undefined;
    let askedOfPool: number;
    let natives: string[];
    let tooLarge: string[][];
    beforeEach(() => {
      [sizes, askedOfPool, natives, tooLarge] = [machines, 0, [], []];
      Object.assign(schedd.client, {
        largestMachines: async () => {
          askedOfPool++;
          return sizes;
        },
        evaluated: async (_: string, constraint: string) => {
          expect(constraint).to.match(/RequestCpus > 8 \|\| RequestGPUs > 0 \|\| RequestMemory > 16000\)$/);
          return tooLarge;
        },
      });
    });
    const waits = (proc: number, since: number, ad: object = {}) =>
      job(proc, { JobStatus: 1, EnteredCurrentStatus: seconds() - since, ...ad });
    const textIn = (detail: object = {}) => ('Waiting' in detail ? String(detail.Waiting) : '');
    const watched = async () => {
      const over = new AbortController();
      natives = [];
      await monitor.observe(
        {
          begin: () => undefined,
          observe: ({ workerId, nativeStatus, detail }) =>
            natives.push(`${workerId} ${nativeStatus} ${textIn(detail)}`.trim()),
          gone: () => undefined,
          complete: () => {
            over.abort();
          },
          trouble: ({ message }) => troubles.push(message),
        },
        over.signal,
      );
      await clock.settle();
    };

    it('says what it asks for, and what the largest machine has, and gives it up no sooner', async () => {
      queue = [waits(0, 300), waits(1, 300), waits(2, 300)];
      tooLarge = [
        ['7', '0', '64', '1', '2000'],
        ['7', '1', '1', 'undefined', '64000'],
      ];
      await watched();
      expect(natives, 'nothing is known yet').to.deep.equal(['1 idle', '2 idle', '3 idle']);
      await watched();
      const none = 'and no machine that the collector knows';
      expect(natives).to.deep.equal([
        `1 too-large it asks for 64 cores, ${none} has more than 8; it asks for 1 GPU, ${none} has any`,
        `2 too-large it asks for 64000 MiB of memory, ${none} has more than 16000`,
        '3 idle',
      ]);
      expect([acted, troubles]).to.deep.equal([[], []]);
    });

    it('asks once in ten minutes, where one has been idle for five, and takes it back when a machine has come', async () => {
      queue = [waits(0, 299), waits(1, 9000, { JobStatus: 2 }), waits(2, 9000, { [marks.ce]: 'ce.test' })];
      await watched();
      expect(askedOfPool, 'none waits for so long').to.equal(0);
      queue = [waits(0, 300)];
      tooLarge = [['7', '0', '64', '0', '2000']];
      await watched();
      await clock.advance(599_000);
      await watched();
      expect([askedOfPool, natives[0]?.slice(0, 11)]).to.deep.equal([1, '1 too-large']);
      tooLarge = [];
      await clock.advance(1000);
      await watched();
      await watched();
      expect([askedOfPool, natives]).to.deep.equal([2, ['1 idle']]);
    });

    it('says nothing where the collector knows no machine, and keeps what it knows where none answers', async () => {
      queue = [waits(0, 300)];
      tooLarge = [['7', '0', '64', '0', '2000']];
      await watched();
      Object.assign(schedd.client, { largestMachines: () => Promise.reject(new Error('away')) });
      await clock.advance(600_000);
      await watched();
      await watched();
      expect(natives[0]).to.include('too-large');
      Object.assign(schedd.client, { largestMachines: async () => undefined });
      await clock.advance(600_000);
      await watched();
      await watched();
      expect([natives, troubles]).to.deep.equal([['1 idle'], []]);
    });

    it('says nothing of one that ran before: it waits for a machine like its last one', async () => {
      queue = [waits(0, 300, { JobStartDate: seconds() - 900, NumJobStarts: 1 })];
      tooLarge = [['7', '0', '64', '0', '2000']];
      await watched();
      await watched();
      expect(natives).to.deep.equal(['1 idle']);
    });
  });

  describe('of jobs that wait in the queue', () => {
    const limit = 172_800;
    const due = () =>
      [...acted].map((one) => /JobStatus == 1 && time\(\) - EnteredCurrentStatus >= \d+/.exec(one)?.[0]);
    const identity = (workerId: number, origin?: Worker['origin']) => ({
      [marks.identity]: identityText(workerOf(workerId, origin && { origin })),
    });
    const named = (kind: string) => ({ kind, uid: 'a request', index: 0 });
    const waits = (proc: number, since: number, ad: object = {}) =>
      job(proc, {
        ...identity(proc + 1),
        [marks.queue]: 'Q',
        JobStatus: 1,
        EnteredCurrentStatus: seconds() - since,
        ...ad,
      });
    /** All jobs of which condor_rm is told, by their procs. */
    const removing = () => {
      queue = queue.filter(
        (one) => !acted.at(-1)?.includes(`ProcId >= ${(one as { ProcId: number }).ProcId} `),
      );
    };
    const identities = () => asked.filter((constraint) => constraint.includes('ClusterId == 7')).length;

    it('gives up one that was idle for two days, and none that was so for a second less', async () => {
      queue = [waits(0, limit), waits(1, limit - 1)];
      onAct = removing;
      await look();
      expect(seen).to.deep.equal(['2 submitted ', '1 failed htcondor-queue-time']);
      expect(due()).to.deep.equal([`JobStatus == 1 && time() - EnteredCurrentStatus >= ${limit}`]);
      expect(acted[0]).to.contain('ProcId >= 0 && ProcId <= 0');
      expect(reasons).to.deep.equal([`queueTimeLimit of ${limit} s is over: given up by thresher`]);
    });

    it('counts one that ran and was evicted from its return to the queue', async () => {
      const evicted = { QDate: seconds() - 9e6, JobStartDate: seconds() - 8e6, NumJobStarts: 1 };
      queue = [waits(0, limit - 1, evicted), waits(1, limit, evicted)];
      onAct = removing;
      await look();
      expect(seen).to.deep.equal(['1 idle ', '2 failed htcondor-queue-time']);
    });

    it('gives up none that runs, is suspended, or is held for spooling, however long, and none of which the queue does not say since when', async () => {
      const spooling = { JobStatus: held, HoldReasonCode: 16 };
      queue = [
        waits(0, 9e6, { JobStatus: 2 }),
        waits(1, 9e6, { JobStatus: 7 }),
        waits(2, 9e6, spooling),
        waits(3, 0, { EnteredCurrentStatus: undefined }),
      ];
      await look();
      expect([acted, seen]).to.deep.equal([[], ['1 running ', '2 submitted ', '4 submitted ']]);
    });

    it('gives up pilots that the PanDA server ordered, and no worker of a request, whose job it asks for that once alone', async () => {
      const kinds = ['htcjob', 'interlink', 'request', 'htcondor-idle'];
      queue = [PandaSource.name, ...kinds].map((kind, proc) =>
        waits(proc, 9e6, identity(proc + 1, named(kind))),
      );
      onAct = removing;
      await look();
      expect(acted).to.have.length(1);
      const waiting = [2, 3, 4, 5].map((id) => `${id} submitted `);
      expect(seen).to.have.members(['1 failed htcondor-queue-time', ...waiting]);
      const before = identities();
      seen = [];
      await look();
      expect([acted.length, identities() - before]).to.deep.equal([1, 0]);
      expect(seen).to.have.members(waiting);
    });

    it('gives up no worker whose mark says nothing of its request', async () => {
      queue = [waits(0, 9e6, { [marks.identity]: undefined }), waits(1, 9e6, identity(1))];
      await look();
      expect([acted, seen]).to.deep.equal([[], ['1 submitted ', '2 submitted ']]);
    });

    it('judges a job by its own worker, where its number was that of a worker who may wait', async () => {
      queue = [waits(0, 9e6, identity(1, named('htcjob')))];
      await look();
      queue = [waits(0, 9e6, { ...identity(9), [marks.worker]: '9' })];
      onAct = removing;
      seen = [];
      await look();
      expect(seen).to.deep.equal(['9 failed htcondor-queue-time']);
    });

    it('takes the limit of the queue for all of its workers, and asks for no identity then', async () => {
      section = { queueTimeLimit: 60 };
      queue = [waits(0, 60, identity(1, named('htcjob'))), waits(1, 59)];
      onAct = removing;
      await look();
      expect(seen).to.deep.equal(['2 submitted ', '1 failed htcondor-queue-time']);
      expect(due()).to.deep.equal(['JobStatus == 1 && time() - EnteredCurrentStatus >= 60']);
      expect(identities(), 'after the removal').to.equal(1);
    });

    it('gives up none where the limit is 0', async () => {
      section = { queueTimeLimit: 0 };
      queue = [waits(0, 9e8)];
      await look();
      expect([acted, seen]).to.deep.equal([[], ['1 submitted ']]);
    });

    it('gives up none of a queue that does not lead here any more', async () => {
      queue = [waits(0, 9e8)];
      monitor = withoutQueues();
      await look();
      expect([acted, seen, troubles]).to.deep.equal([[], ['1 submitted '], []]);
    });

    for (const [what, change] of [
      ['has started', { JobStatus: 2 }],
      ['waits for less by the clock of the schedd', {}],
    ] as const)
      it(`keeps one that ${what} at the moment of its removal`, async () => {
        queue = [waits(0, 9e6)];
        succeeded = 0;
        onAct = () => {
          queue = [waits(0, 9e6, change)];
        };
        await look();
        const status = 'JobStatus' in change ? 'running' : 'submitted';
        expect(seen).to.deep.equal([`1 ${status} `]);
      });

    it('asks the history how one ended that started and ended at the moment of its removal', async () => {
      queue = [waits(0, 9e6)];
      succeeded = 0;
      onAct = () => {
        queue = [];
        ended = [job(0, { JobStatus: 4, ExitBySignal: false, ExitCode: 0, CompletionDate: seconds() })];
      };
      await look();
      await look();
      expect(seen).to.deep.equal(['1 submitted ', '1 finished ']);
    });

    it('concludes nothing while the schedd does not answer, and gives the worker up after that', async () => {
      queue = [waits(0, limit - 60)];
      await look();
      isAway = true;
      await clock.advance(600_000);
      await look();
      expect([acted, seen, troubles]).to.deep.equal([[], ['1 submitted '], ['away']]);
      isAway = false;
      isRefused = true;
      await look();
      expect([seen, troubles]).to.deep.equal([['1 submitted '], ['away', 'the schedd refuses']]);
      isRefused = false;
      onAct = removing;
      await look();
      expect(seen).to.deep.equal(['1 submitted ', '1 failed htcondor-queue-time']);
    });

    it('gives up no worker by the history, which has its job as idle', async () => {
      ended = [waits(0, 9e6)];
      await look();
      expect((await monitor.check([workerOf(1)], signal)).get(1)?.kind).to.equal('observed');
      expect(acted).to.deep.equal([]);
      expect(seen.join()).not.to.contain('failed');
    });

    it('keeps why it gave one up that HTCondor cannot remove yet, also through a hold and a restart', async () => {
      queue = [waits(0, 9e6)];
      onAct = () => {
        queue = [waits(0, 0, { JobStatus: removed, LastJobStatus: 1, RemoveReason: reasons.at(-1) })];
      };
      await look();
      expect(seen).to.deep.equal(['1 submitted ']);
      const RemoveReason = `via condor_rm (by user pilot) ${reasons.at(-1) ?? ''}`;
      queue = [waits(0, 0, { JobStatus: held, LastJobStatus: removed, RemoveReason })];
      await look();
      await clock.advance(600_000);
      await look();
      expect(reasons).to.have.length(2);
      expect(reasons[1]).to.equal(reasons[0]);
      ended = [job(0, { JobStatus: removed, LastJobStatus: held, RemoveReason })];
      queue = [];
      seen = [];
      await look();
      expect(seen).to.deep.equal(['1 failed htcondor-queue-time']);
    });
  });

  it('takes a verdict for that of the worker it was given to, and not for that of another one whose job has the number now', async () => {
    const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
    queue = [job(0, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 })];
    onAct = () => {
      queue = [job(0, { ...mark, JobStatus: removed, LastJobStatus: held })];
    };
    await look();
    const ofAnother = { ...mark, [marks.worker]: '9' };
    queue = [job(0, { ...ofAnother, JobStatus: 2 })];
    await look();
    seen = [];
    // Its end is in no history.
    queue = [];
    await look();
    expect(seen).to.deep.equal(['9 gone']);
  });

  it('judges an end of a job by no verdict of another worker whose job had the number', async () => {
    const mark = { [marks.queue]: 'Q', HoldReasonCode: 13, HoldReason: 'no such file' };
    queue = [job(0, { ...mark, JobStatus: held, EnteredCurrentStatus: seconds() - 9e6 })];
    onAct = () => {
      queue = [job(0, { ...mark, JobStatus: removed, LastJobStatus: held })];
    };
    await look();
    const ofAnother = { [marks.queue]: 'Q', [marks.worker]: '9' };
    queue = [job(0, { ...ofAnother, JobStatus: 2 })];
    await look();
    seen = [];
    queue = [];
    ended = [job(0, { ...ofAnother, JobStatus: removed, RemoveReason: 'via condor_rm' })];
    await look();
    expect(seen).to.deep.equal(['9 cancelled htcondor-removed']);
  });
});
