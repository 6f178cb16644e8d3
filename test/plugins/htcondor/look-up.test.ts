import { join } from 'node:path';
import { expect } from 'chai';
import { longestAd } from '../../../src/clients/htcondor/ad-text.ts';
import { whereJobs, whereShort } from '../../../src/clients/htcondor/classad.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import {
  followed,
  halfReason,
  inQueue,
  lookUp,
  portions,
  queuedOf,
  whereWorkers,
} from '../../../src/plugins/htcondor/look-up.ts';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import type { Ad } from '../../../src/clients/htcondor/json-objects.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { marks } from '../../../src/plugins/htcondor/marks.ts';
import { KnownJobs } from '../../../src/plugins/htcondor/following/known-jobs.ts';
import { Owners } from '../../../src/plugins/htcondor/owners.ts';
import { find } from '../../../src/plugins/htcondor/submitting/fence.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { anyOwner, sameQueue } from '../../support/condor-jobs.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** A schedd at which no job was looked at yet. */
const nothingSeen = () => ({ fresh: new Map(), jobs: new KnownJobs() });

/** bytes, with its end. Source: MAX_ARG_STRLEN of Linux. */
const longestArgument = 128 * 1024;

describe('questions about many jobs', () => {
  it('are portions of which each is one argument, whatever is asked for', () => {
    const all = Array.from({ length: 1234 }, (_, at) => at);
    const some = portions(all);
    expect(some.flat()).to.deep.equal(all);
    for (const portion of some) {
      const jobs = whereJobs(portion.map((at) => ({ cluster: 2_000_000_000 + 2 * at, proc: 1_000_000 })));
      const workers = whereWorkers(portion.map((at) => 999_999_999_990_000 + at));
      expect(Math.max(jobs.length, workers.length)).to.be.lessThan(longestArgument - 10_000);
    }
    expect(portions([])).to.deep.equal([]);
  });
});

describe('jobs of which one has values of megabytes', () => {
  const { signal } = new AbortController();
  let asked: { readonly constraint: string; readonly attributes: readonly string[] }[];

  /** A schedd that fails where a job with long values is asked for: of another user by its marks, or ours by the reason of its hold. */
  function scheddOf(code: 'condor-failed' | 'condor-answer' | 'condor-unreachable'): HTCondorSchedd {
    const queueAs = async (
      read: (ad: Ad) => unknown,
      constraint: string,
      attributes: readonly string[],
    ): Promise<unknown[]> => {
      asked.push({ constraint, attributes });
      const isShort = (name: string) => constraint.includes(`size(unparse(${name})) > `);
      if (!isShort(marks.queue)) throw new HTCondorError({ code, message: 'too long', maybeDone: false });
      const ads = [1, ...(isShort('HoldReason') ? [] : [2])].map((ClusterId) => ({
        ClusterId,
        ProcId: 0,
        JobStatus: 5,
        [marks.worker]: `${ClusterId}`,
        ...(attributes.includes('HoldReason') && { HoldReason: 'why' }),
      }));
      return ads.flatMap((ad) => read(ad) ?? []);
    };
    return { mine: 'mine', client: { queueAs }, owners: anyOwner } as unknown as HTCondorSchedd;
  }

  beforeEach(() => {
    asked = [];
  });

  it('hole 8: are all told of but those whose marks are long, each once', async () => {
    for (const code of ['condor-failed', 'condor-answer'] as const) {
      const jobs = await inQueue(scheddOf(code), 'true', signal);
      expect(jobs.map(({ workerId, ad }) => [workerId, ad.HoldReason])).to.deep.equal([
        [1, 'why'],
        [2, undefined],
      ]);
    }
    expect(asked).to.have.length(6);
    for (const { constraint } of asked) expect(constraint).to.match(/^\(?mine && /);
  });

  it('hole 8: and which are told of without those are short enough together, as JSON writes them', () => {
    const [, most] = />\s*(\d+)/.exec(whereShort(['A'])) ?? [];
    const attributes = [...followed, marks.identity];
    const names = attributes.join('"": ,').length;
    expect(attributes.length * 2 * Number(most) + names).to.be.below(longestAd);
  });

  it('hole 8: take up little where they are of others: of those nothing is kept but that there is one', async () => {
    const HoldReason = 'x'.repeat(120_000);
    const text = { HoldReason, [marks.queue]: 'Q', [marks.worker]: '1', JobStatus: 5, ProcId: 0 };
    const ads = ['pilot', 'mallory', 'mallory'].map((Owner, at) => ({ ...text, ClusterId: at + 1, Owner }));
    const queueAs = async (read: (ad: Ad) => unknown) => ads.map(read);
    const isOther = ({ owner }: { readonly owner: string | undefined }) => owner === 'mallory';
    const part = async <J>(jobs: readonly J[]) => ({ ours: [], others: jobs });
    const owners = { ...anyOwner, isOther, part };
    const schedd = { mine: 'true', client: { queueAs }, owners, submissionHost: 'S' } as never;
    const [ours, other] = await inQueue(schedd, 'true', signal);
    expect([ours?.queue, ours?.ad.HoldReason]).to.deep.equal(['Q', HoldReason.slice(0, 1501)]);
    expect(JSON.parse(JSON.stringify(other))).to.deep.equal({
      id: { cluster: 2, proc: 0 },
      workerId: 1,
      owner: 'mallory',
      ad: { JobStatus: 5 },
      queued: true,
      isStranger: true,
    });
    // The number of a job is the word of condor_submit: the one that was confirmed with it is ours.
    const confirmed = workerOf(1, { handle: { batchID: '3.0', submissionHost: 'S' } });
    const found = await queuedOf(schedd, [confirmed], 'true', signal);
    expect(found.ours.map(({ queue, id }) => [id.cluster, queue])).to.deep.equal([[3, 'Q']]);
  });

  it('hole 8: are asked for again, where they were too many, with the knowledge who thresher is', async () => {
    const steps: string[] = [];
    const queueAs = async () => {
      steps.push('queue');
      if (steps.length === 1)
        throw new HTCondorError({ code: 'condor-answer', message: 'too many', maybeDone: false });
      return [];
    };
    const now: Owners['now'] = async () => {
      steps.push('owners');
      return { where: 'true', unanswered: undefined };
    };
    const schedd = { mine: 'true', client: { queueAs }, owners: { ...anyOwner, now } } as never;
    expect(await inQueue(schedd, 'true', signal)).to.deep.equal([]);
    expect(steps).to.deep.equal(['queue', 'owners', 'queue', 'owners', 'queue']);
  });

  it('are unknown where the schedd does not answer', async () => {
    const error = await rejection(inQueue(scheddOf('condor-unreachable'), 'true', signal));
    expect(error).to.have.property('code', 'condor-unreachable');
    expect(asked).to.have.length(1);
  });
});

describe('jobs whose mark is an expression', () => {
  const { signal } = new AbortController();
  const expression = '/Expr(strcat("1","2"))/';
  /** A mark as its ad shows it, and its value when HTCondor is asked for that. */
  interface Marked {
    readonly cluster: number;
    readonly mark: string;
    /** Undefined: another one at each look; a question is then always answered with the job. */
    readonly value?: string;
  }
  let asked: string[];

  /** A schedd that answers a question about workers as HTCondor does: by values, and with the ads as they are. */
  function scheddOf({ queued = [], ended = [] }: { queued?: readonly Marked[]; ended?: readonly Marked[] }) {
    const among = (jobs: readonly Marked[], constraint: string) =>
      jobs.filter(({ value, cluster }) => {
        const ofWorker = value === undefined || constraint.includes(`"${value}"`);
        return (
          ofWorker && (!constraint.includes('ClusterId') || constraint.includes(`ClusterId == ${cluster} `))
        );
      });
    const adOf = ({ cluster, mark }: Marked) => ({
      ClusterId: cluster,
      ProcId: 0,
      JobStatus: 4,
      [marks.worker]: mark,
    });
    const ask = (what: string) => {
      asked.push(what);
      if (asked.length > 100) throw new Error('asked again and again');
    };
    const client = {
      queueAs: async (read: (ad: object) => unknown, constraint: string) => {
        ask('queue');
        return among(queued, constraint).map(adOf).map(read);
      },
      historyAs: async (read: (ad: object) => unknown, constraint: string, _: unknown, limit: number) => {
        ask('history');
        return among(ended, constraint).slice(0, limit).map(adOf).map(read);
      },
      evaluated: async (where: string, constraint: string, _: unknown, limit: number) => {
        ask(`values of the ${where}`);
        const jobs = among(where === 'queue' ? queued : ended, constraint).slice(0, limit);
        return jobs.map(({ cluster, value = '0.5' }) => [`${cluster}`, '0', `"${value}"`]);
      },
    };
    return {
      client,
      ...nothingSeen(),
      mine: 'true',
      owners: anyOwner,
      jobQueue: sameQueue,
      submissionHost: 'S',
      fenced: new Map(),
      refused: new Map(),
      submits: { end: async () => new Map() },
      bundles: { dropAll: async () => undefined },
    } as never;
  }
  const found = (schedd: never, ...workerIds: number[]) =>
    find(
      schedd,
      workerIds.map((workerId) => workerOf(workerId)),
      systemClock,
      signal,
    );

  beforeEach(() => {
    asked = [];
  });

  it('hole 8: are found in the history with few questions, and hide no other job', async () => {
    const ended = [
      { cluster: 5, mark: expression, value: '12' },
      { cluster: 4, mark: expression, value: '12' },
      { cluster: 3, mark: '13', value: '13' },
    ];
    const outcomes = await found(scheddOf({ ended }), 12, 13, 14);
    expect(outcomes.get(12))
      .to.include({ kind: 'found' })
      .and.to.have.nested.property('handle.batchID', '5.0');
    expect(outcomes.get(13))
      .to.include({ kind: 'found' })
      .and.to.have.nested.property('handle.batchID', '3.0');
    expect(outcomes.get(14)).to.deep.equal({ kind: 'absent' });
    // The last two are about the third alone: its own jobs, and those of others.
    const few = ['queue', 'history', 'values of the history', 'history', 'history'];
    expect(asked).to.deep.equal(few);
  });

  it('hole 3: are not absent where the schedd has another queue than before', async () => {
    const error = { code: 'htcondor-other-queue', message: 'its spool is not mounted' } as const;
    const require = () => Promise.reject(new ThresherError(error.code, error.message));
    const schedd = { ...(scheddOf({}) as object), jobQueue: { ...sameQueue, require } } as never;
    expect((await found(schedd, 12)).get(12)).to.deep.equal({ kind: 'unknown', error });
  });

  it('hole 5: are not found where the schedd has another queue than before', async () => {
    const error = { code: 'htcondor-other-queue', message: 'its spool is not mounted' } as const;
    const require = () => Promise.reject(new ThresherError(error.code, error.message));
    const job = { cluster: 5, mark: '12' };
    const schedd = (jobs: Parameters<typeof scheddOf>[0]) =>
      ({ ...(scheddOf(jobs) as object), jobQueue: { ...sameQueue, require } }) as never;
    expect((await found(schedd({ ended: [job] }), 12)).get(12)).to.deep.equal({ kind: 'unknown', error });
    expect((await found(schedd({ queued: [job] }), 12)).get(12)).to.deep.equal({ kind: 'unknown', error });
  });

  it('hole 8: are found in the queue: a second job for their workers must not be made', async () => {
    const outcomes = await found(scheddOf({ queued: [{ cluster: 5, mark: expression, value: '12' }] }), 12);
    expect(outcomes.get(12)).to.include({ kind: 'found' });
    expect(asked).to.deep.equal(['queue', 'values of the queue']);
  });

  it('hole 8: leave a worker unknown if they have another value at each look and fill the answer, and no other', async () => {
    const ended = [{ cluster: 5, mark: '/Expr(string(random()))/' }];
    const queued = [{ cluster: 3, mark: '13', value: '13' }];
    const { jobs, unsaid } = await lookUp(scheddOf({ ended, queued }), [workerOf(12), workerOf(13)], signal, {
      history: true,
    });
    expect([...jobs.keys()]).to.deep.equal([13]);
    expect([...unsaid.keys()]).to.deep.equal([12]);
    expect(unsaid.get(12)?.message).to.contain('5.0').and.to.contain(marks.worker);
    const look = ['history', 'values of the history'];
    expect(asked).to.deep.equal(['queue', ...look, ...look]);
    const outcomes = await found(scheddOf({ ended, queued }), 12, 13);
    expect(outcomes.get(12)).to.deep.include({ kind: 'unknown', error: unsaid.get(12) });
    expect(outcomes.get(13)).to.include({ kind: 'found' });
  });

  it('hole 8: end the questions also where no ad of an answer can be read', async () => {
    const schedd = scheddOf({});
    Object.assign((schedd as { client: object }).client, {
      historyAs: async (read: (ad: object) => unknown) => {
        asked.push('history');
        return asked.length > 100 ? [] : [{ [marks.worker]: expression }, {}].map(read);
      },
    });
    const { unsaid } = await lookUp(schedd, [workerOf(12), workerOf(13)], signal, { history: true });
    expect([...unsaid.keys()]).to.deep.equal([12, 13]);
    expect(asked).to.deep.equal(['queue', 'history', 'history']);
  });
});

describe('jobs of other users that have the marks of workers', () => {
  const { signal } = new AbortController();
  const job = (cluster: number, workerId: number, ad: object = {}) => ({
    ClusterId: cluster,
    ProcId: 0,
    JobStatus: 4,
    Owner: 'games',
    [marks.worker]: `${workerId}`,
    ...ad,
  });
  const random = '/Expr(string(random()))/';
  let limits: number[];
  /** What `condor_ping` says; an error: that it fails. */
  let user: string | Error;

  /** A schedd that answers with these, up to the limit, and leaves out by owner what it is told to. */
  function scheddOf({ queued = [], ended = [] }: { queued?: object[]; ended?: ReturnType<typeof job>[] }) {
    const client = {
      queueAs: async (read: (ad: object) => unknown) => queued.map(read),
      historyAs: async (read: (ad: object) => unknown, constraint: string, _: unknown, limit: number) => {
        limits.push(limit);
        const names = (list: string | undefined, mark: string) =>
          list !== undefined && (mark === random || list.includes(`"${mark}"`));
        const [, asked] = /^true && member\(harvesterWorkerID, (\{.*?\})\) && /.exec(constraint) ?? [];
        const [, open, notRemoved] =
          /\(member\(harvesterWorkerID, (\{.*?\})\)( && JobStatus =!= 3)?/.exec(constraint) ?? [];
        const [, owners] = /member\(splitUserName\(Owner\)\[0\], (\{.*?\})\)/.exec(constraint) ?? [];
        const isAsked = (one: ReturnType<typeof job>) =>
          names(asked, one[marks.worker]) &&
          (owners?.includes(`"${one.Owner}"`) === true ||
            constraint.includes(`(ClusterId == ${one.ClusterId} `) ||
            (names(open, one[marks.worker]) && (one.JobStatus !== 3 || notRemoved === undefined)));
        const isHalf = ({ JobStatus, ClusterId, ...ad }: ReturnType<typeof job>) =>
          JobStatus === 3 &&
          (ad as { RemoveReason?: string }).RemoveReason === halfReason &&
          !constraint.includes(`(ClusterId == ${ClusterId} `);
        const withoutHalves = constraint.includes('regexp(');
        const found = ended.filter((one) => isAsked(one) && !(withoutHalves && isHalf(one)));
        return found.slice(0, limit).map(read);
      },
      evaluated: async () => [],
    };
    const parts = { clock: systemClock, log: recordingLog(), submissionHost: 'S', fresh: new Map() };
    const whoAmI = async () => {
      if (user instanceof Error) throw user;
      return user;
    };
    const file = join(temporaryDirectory(), 'owners.json');
    const owners = new Owners({ ...parts, client: { whoAmI }, file });
    return { client, ...nothingSeen(), mine: 'true', submissionHost: 'S', owners } as never;
  }
  const look = async (schedd: never, ...workers: ReturnType<typeof workerOf>[]) => {
    const { jobs, unsaid } = await lookUp(schedd, workers, signal, { history: true });
    return workers.map(({ workerId }) => jobs.get(workerId)?.length ?? unsaid.get(workerId)?.code);
  };
  const confirmed = (id: number, batchID: string) =>
    workerOf(id, { handle: { batchID, submissionHost: 'S' } });

  beforeEach(() => {
    [limits, user] = [[], 'pilot@pool.test'];
  });

  it('hole 1: leave one that was never confirmed unknown, and no other', async () => {
    const queued = [job(3, 1), job(4, 2)];
    const ended = [job(5, 4), job(6, 5, { JobStatus: 3 }), job(7, 6, { Owner: 'pilot' })];
    const workers = [workerOf(1), confirmed(2, '9.0'), confirmed(3, '9.1')];
    const open = [workerOf(4), workerOf(5), workerOf(6)];
    expect(await look(scheddOf({ queued, ended }), ...workers, ...open)).to.deep.equal([
      ...['htcondor-owner', undefined, undefined],
      ...['htcondor-owner', undefined, 1],
    ]);
  });

  it('hole 1: leave it absent once they were removed, also where no other worker is asked for', async () => {
    const ended = [job(5, 1, { JobStatus: 3 }), job(6, 1, { JobStatus: 3 })];
    expect(await look(scheddOf({ ended }), workerOf(1))).to.deep.equal([undefined]);
  });

  it('hole 1: are theirs also where one job of the worker is ours, and ours by the number of its handle', async () => {
    const queued = [job(3, 1), job(4, 1, { Owner: 'pilot' }), job(5, 2)];
    expect(await look(scheddOf({ queued }), workerOf(1), confirmed(2, '5.0'))).to.deep.equal([1, 1]);
  });

  it('hole 1: fill no answer of the history', async () => {
    const ended = [...[1, 2, 3, 4].map((at) => job(10 + at, 1)), job(20, 2, { Owner: 'pilot' })];
    expect(await look(scheddOf({ ended }), confirmed(1, '9.0'), confirmed(2, '20.0'))).to.deep.equal([
      ...[undefined, 1],
    ]);
    expect(limits).to.deep.equal([2]);
    expect(await look(scheddOf({ ended }), workerOf(1), workerOf(2))).to.deep.equal(['htcondor-owner', 1]);
  });

  it('hide no job of ours behind them, whether or not its worker was confirmed', async () => {
    const theirs = [1, 2, 3, 4].map((at) => job(10 + at, 1));
    const ended = [...theirs, job(20, 1, { Owner: 'pilot' }), job(21, 2, { Owner: 'pilot' })];
    expect(await look(scheddOf({ ended }), workerOf(1), confirmed(2, '21.0'))).to.deep.equal([1, 1]);
    const queued = [job(3, 1, { JobStatus: 1 })];
    expect(await look(scheddOf({ queued, ended }), workerOf(1)), 'nor one in the queue').to.deep.equal([1]);
    const marked = theirs.map((one) => ({ ...one, [marks.worker]: random }));
    const workers = [workerOf(1), confirmed(2, '21.0'), confirmed(3, '9.0'), workerOf(4)];
    expect(await look(scheddOf({ ended: [...marked, ...ended.slice(4)] }), ...workers)).to.deep.equal([
      ...[1, 1, undefined, 'condor-answer'],
    ]);
  });

  it('hide no job behind two others of its worker: the one that it was confirmed with is found', async () => {
    const own = { Owner: 'pilot' };
    const ended = [job(22, 1, own), job(21, 1, own), job(20, 1, own), job(19, 2, own)];
    const workers = [confirmed(1, '20.0'), confirmed(2, '19.0')];
    const { jobs } = await lookUp(scheddOf({ ended }), workers, signal, { history: true });
    for (const [workerId, cluster] of [
      [1, 20],
      [2, 19],
    ] as const)
      expect(jobs.get(workerId)?.map(({ id }) => id.cluster)).to.include(cluster);
  });

  it('leave a worker unknown that has but a half of its own', async () => {
    const half = { Owner: 'pilot', JobStatus: 5, HoldReasonCode: 16 };
    const removed = { Owner: 'pilot', JobStatus: 3, RemoveReason: halfReason };
    const queued = [
      job(3, 1, half),
      job(4, 1, { JobStatus: 1 }),
      job(5, 2, removed),
      job(6, 2, { JobStatus: 1 }),
    ];
    const workers = [workerOf(1), workerOf(2)];
    const { jobs, unsaid } = await lookUp(scheddOf({ queued }), workers, signal, { history: true });
    expect([...jobs.keys()], 'it is to be removed').to.deep.equal([1, 2]);
    expect([...unsaid.values()].map(({ code }) => code)).to.deep.equal(['htcondor-owner', 'htcondor-owner']);
  });

  it('are looked for beside a half that is still in the queue: a later attempt may have ended', async () => {
    const half = { Owner: 'pilot', JobStatus: 3, RemoveReason: halfReason };
    const queued = [job(3, 1, half), job(4, 2, half), job(5, 3, half)];
    const halves = [1, 2, 3].flatMap((id) => [job(6 + id, id, half), job(16 + id, id, half)]);
    const ended = [...halves, job(30, 1, { Owner: 'pilot' })];
    const schedd = scheddOf({ queued, ended });
    const workers = [workerOf(1), workerOf(2), confirmed(3, '5.0')];
    const { jobs, unsaid } = await lookUp(schedd, workers, signal, { history: true });
    const numbers = workers.map(({ workerId }) => jobs.get(workerId)?.map(({ id }) => id.cluster));
    expect(numbers).to.deep.equal([[3, 30], [4], [5]]);
    expect([...unsaid]).to.deep.equal([]);
    // A half that waits for its files may never get them.
    const waiting = [job(3, 1, { Owner: 'pilot', JobStatus: 5, HoldReasonCode: 16 })];
    expect(await look(scheddOf({ queued: waiting, ended }), workerOf(1))).to.deep.equal([2]);
    // The job of its number is its own, whatever became of it.
    expect(await look(scheddOf({ ended: halves }), confirmed(3, '9.0'))).to.deep.equal([1]);
  });

  it('are in one of the two parts of a question, where the schedd says meanwhile who thresher is', async () => {
    const ended = [job(5, 1, { JobStatus: 3, Owner: 'pilot' })];
    const away = new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
    const owners = {
      now: async () => ({ where: 'member(splitUserName(Owner)[0], {})', unanswered: away }),
      // From here on it is known.
      unanswered: undefined,
      part: async (jobs: readonly unknown[]) => ({ ours: jobs, others: [] }),
    };
    const schedd = { ...(scheddOf({ ended }) as object), owners } as never;
    expect(await look(schedd, workerOf(1))).to.deep.equal([1]);
  });

  it('may be ours, removed or not, while the schedd does not say who thresher is', async () => {
    user = new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
    const ended = [job(5, 1, { JobStatus: 3 }), job(6, 2), job(7, 3)];
    const workers = [workerOf(1), workerOf(2), confirmed(3, '7.0'), confirmed(4, '8.0')];
    const schedd = scheddOf({ ended });
    expect(await look(schedd, ...workers)).to.deep.equal(['htcondor-owner', 'htcondor-owner', 1, undefined]);
    const { unsaid } = await lookUp(schedd, workers, signal, { history: true });
    expect(unsaid.get(1)?.message).to.contain('condor_ping does not say').and.to.contain('away');
  });
});

describe('the job that a worker was confirmed with', () => {
  const { signal } = new AbortController();
  const confirmed = workerOf(1, { handle: { batchID: '7.0', submissionHost: 'S' } });

  /** A schedd that finds its only job by its number. @param values what HTCondor says when it is asked for its mark */
  function scheddOf(ad: Ad, values: readonly (readonly string[])[] = []): HTCondorSchedd {
    const isAsked = (constraint: string) => constraint.includes('ClusterId == 7 ');
    const client = {
      queueAs: async (read: (ad: Ad) => unknown, constraint: string) =>
        isAsked(constraint) ? [read({ ProcId: 0, ClusterId: 7, JobStatus: 2, Owner: 'pilot', ...ad })] : [],
      historyAs: async () => [],
      evaluated: async () => values,
    };
    return { client, ...nothingSeen(), mine: 'true', owners: anyOwner, submissionHost: 'S' } as never;
  }
  const idsOf = async (schedd: HTCondorSchedd) => {
    const { jobs } = await lookUp(schedd, [confirmed], signal, { history: true });
    return [...jobs].map(([workerId, [job]]) => `${workerId}: ${job?.id.cluster ?? 'none'}`);
  };

  const rows: readonly (readonly [
    title: string,
    ad: Ad,
    values: readonly (readonly string[])[],
    found: string[],
  ])[] = [
    ['is its job', { [marks.worker]: '1' }, [], ['1: 7']],
    ['is its job though its mark became a number', { [marks.worker]: 1 }, [['7', '0', '1']], ['1: 7']],
    ['is its job though its mark is gone', {}, [['7', '0', 'undefined']], ['1: 7']],
    ['is another one where it has the mark of another worker', { [marks.worker]: '2' }, [], []],
    [
      'is another one where its mark is an expression of that',
      { [marks.worker]: '/Expr(strcat("2"))/' },
      [['7', '0', '"2"']],
      [],
    ],
  ];
  for (const [title, ad, values, found] of rows)
    it(`hole 5: ${title}`, async () => {
      expect(await idsOf(scheddOf(ad, values))).to.deep.equal(found);
    });

  it('hole 5: is not ended where its number is that of another worker now', async () => {
    const other = scheddOf({ [marks.worker]: '/Expr(strcat("2"))/' }, [['7', '0', '"2"']]);
    expect(await queuedOf(other, [confirmed], 'true', signal)).to.deep.equal({ ours: [], others: [] });
  });

  for (const ad of [{ ProcId: '0' }, { ProcId: undefined }, { ClusterId: null }] as Ad[])
    it(`hole 5: makes the answer a wrong one where a job of it has ${JSON.stringify(ad)}: it would count as gone`, async () => {
      const error = await rejection(idsOf(scheddOf({ [marks.worker]: '1', ...ad })));
      expect(error).to.have.property('code', 'condor-answer');
    });
});
