import { expect } from 'chai';
import type { JobFacts } from '../../../src/sources/htcjob/facts.ts';
import { judge, type ToJudge } from '../../../src/sources/htcjob/judge.ts';
import {
  attemptOf,
  fromRanges,
  indexOf,
  longestRanges,
  toRanges,
} from '../../../src/clients/htcjob/numbers.ts';
import { mostJobs, writtenStatus } from '../../../src/clients/htcjob/resource.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { kept } from '../../../src/sources/htcjob/followed.ts';
import { sizeOf } from '../../../src/util/json.ts';
import { cutMessage, statusOf, whileDeleting } from '../../../src/sources/htcjob/status.ts';
import { Tracked } from '../../../src/sources/htcjob/tracked.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { charactersLookedAt } from '../../support/masked-characters.ts';
import { megabytes } from '../../../src/sources/htcjob/needs.ts';

const factsOf = (status: JobFacts['status']): JobFacts => ({
  workerId: 1,
  status,
  native: null,
  exitCode: null,
  message: null,
  batchId: null,
  submitTime: null,
  endTime: null,
  isSwept: false,
});

/** How often `work` puts something into a set. @throws Error where that is more than `most` times: it would take minutes */
function putInSets<T>(most: number, work: () => T): { readonly put: number; readonly result: T } {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its set
  const { add } = Set.prototype;
  let put = 0;
  Set.prototype.add = function (this: Set<unknown>, value: unknown) {
    put++;
    if (put > most) throw new Error(`more than ${most} values were put into sets`);
    return add.call(this, value);
  };
  try {
    const result = work();
    return { put, result };
  } finally {
    Set.prototype.add = add;
  }
}

/** Two jobs, with attempts as [round, attempt, number, status]. */
function judged(
  attempts: readonly (readonly [round: number, attempt: number, number: number, JobFacts['status']])[],
  more: Partial<ToJudge> = {},
) {
  const { jobs, ...rest } = judge({
    count: 2,
    round: 0,
    isSuspended: false,
    isExpired: false,
    backoffLimit: 0,
    completed: new Set(),
    failed: new Set(),
    retried: 0,
    asked: new Set(),
    attempts: new Map(
      attempts.map(([round, attempt, number, status]) => [
        indexOf({ round, attempt, number }),
        factsOf(status),
      ]),
    ),
    ...more,
  });
  return {
    ...rest,
    toEnd: rest.toEnd.map(attemptOf),
    jobs: jobs.map(({ outcome, index }) => {
      const { round, attempt } = attemptOf(index);
      return `${outcome} ${round}.${attempt}`;
    }),
  };
}

describe('the judgement of the jobs of a HTCJob', () => {
  it('wants each job that has no worker', () => {
    expect(judged([])).to.deep.equal({
      jobs: ['wanted 0.0', 'wanted 0.0'],
      toEnd: [],
      retried: 0,
      isOver: false,
    });
  });

  it('is over when each job has ended', () => {
    expect(judged([[0, 0, 0, 'finished']]).isOver).to.equal(false);
    const over = judged([
      [0, 0, 0, 'finished'],
      [0, 0, 1, 'missed'],
    ]);
    expect(over).to.deep.include({ jobs: ['succeeded 0.0', 'failed 0.0'], isOver: true });
  });

  it('believes the resource where the database has lost the jobs', () => {
    const known = { completed: new Set([0]), failed: new Set([1]) };
    expect(judged([], known)).to.deep.include({ jobs: ['succeeded 0.0', 'failed 0.0'], isOver: true });
  });

  it('runs failed jobs again up to the limit of the whole resource, and cancelled ones never', () => {
    const bothFailed = [
      [0, 0, 0, 'failed'],
      [0, 0, 1, 'failed'],
    ] as const;
    expect(judged(bothFailed, { backoffLimit: 1 })).to.deep.include({
      jobs: ['wanted 0.1', 'failed 0.0'],
      retried: 0,
      isOver: false,
    });
    expect(judged([...bothFailed, [0, 1, 0, 'running']], { backoffLimit: 1 })).to.deep.include({
      jobs: ['live 0.1', 'failed 0.0'],
      retried: 1,
    });
    expect(judged([...bothFailed, [0, 1, 0, 'failed']], { backoffLimit: 1 })).to.deep.include({
      jobs: ['failed 0.1', 'failed 0.0'],
      isOver: true,
    });
    expect(judged([[0, 0, 0, 'cancelled']], { backoffLimit: 5, count: 1 }).isOver).to.equal(true);
    // Looking again does not use up the retries, and one that was asked for keeps its place.
    const asked = new Set([indexOf({ round: 0, attempt: 1, number: 1 })]);
    expect(judged(bothFailed, { backoffLimit: 1, asked }).jobs).to.deep.equal(['failed 0.0', 'wanted 0.1']);
    // The database forgot the retries, and the resource did not.
    expect(judged(bothFailed, { backoffLimit: 1, retried: 1 }).isOver).to.equal(true);
  });

  it('ends the jobs of a resource that is suspended, and runs them anew in the next round', () => {
    const running = [
      [0, 0, 0, 'running'],
      [0, 0, 1, 'finished'],
    ] as const;
    expect(judged(running, { isSuspended: true, round: 1 })).to.deep.equal({
      jobs: ['live 0.0', 'succeeded 0.0'],
      toEnd: [{ round: 0, attempt: 0, number: 0 }],
      retried: 0,
      isOver: false,
    });
    const ended = [
      [0, 0, 0, 'cancelled'],
      [0, 0, 1, 'finished'],
    ] as const;
    expect(judged(ended, { isSuspended: true, round: 1 }).jobs).to.deep.equal(['waits 1.0', 'succeeded 0.0']);
    expect(judged(ended, { round: 1 }).jobs).to.deep.equal(['wanted 1.0', 'succeeded 0.0']);
    // It was resumed before the first job had ended: two of it never live at once.
    expect(judged(running, { round: 1 })).to.deep.include({ jobs: ['live 0.0', 'succeeded 0.0'] });
  });

  it('ends what lives, and wants nothing more, once the deadline is over', () => {
    expect(judged([[0, 0, 0, 'running']], { isExpired: true })).to.deep.equal({
      jobs: ['live 0.0', 'failed 0.0'],
      toEnd: [{ round: 0, attempt: 0, number: 0 }],
      retried: 0,
      isOver: false,
    });
  });
});

describe('the finalizers of a HTCJob', () => {
  const ours = 'finalizer.htc.cern.ch';
  const others = (count: number, length = 10) =>
    Array.from({ length: count }, (_, at) => `x.io/${String(at).padStart(length, 'f')}`);
  const keptOf = (finalizers: readonly string[]) => {
    const { metadata, spec } = htcJob();
    return kept({ metadata: { ...metadata, finalizers }, spec }).metadata;
  };

  it('hole 8: are kept where they are few, and of many ours alone', () => {
    const few = [...others(19), ours];
    expect(keptOf(few)).to.deep.include({ finalizers: few }).and.not.property('hasMoreFinalizers');
    for (const many of [others(20), others(60_000), others(3, 5000)]) {
      expect(keptOf([...many, ours])).to.deep.include({ finalizers: [ours], hasMoreFinalizers: true });
      const tracked = new Tracked(
        kept({ ...htcJob(), metadata: { ...htcJob().metadata, finalizers: [...many, ours] } }),
      );
      expect(tracked.hasFinalizer).to.equal(true);
      expect(tracked.meta).to.deep.include({ finalizers: [ours], hasMoreFinalizers: true });
    }
    expect(keptOf(others(21))).to.deep.include({ finalizers: [], hasMoreFinalizers: true });
  });

  it('are none where they are null or no list, and nulls among them are left out', () => {
    for (const odd of [null, 7, 'x', {}, [null]])
      expect(keptOf(odd as never).finalizers ?? []).to.deep.equal([]);
    expect(keptOf([null, ours] as never)).to.deep.include({ finalizers: [ours] });
  });
});

describe('the size of a HTCJob', () => {
  it('is looked for no further than where it is known to be long, whatever a user wrote there', () => {
    let read = 0;
    const list = new Proxy(
      Array.from({ length: 100_000 }, () => ''),
      {
        get: (target, name) => {
          read++;
          return Reflect.get(target, name) as unknown;
        },
      },
    );
    expect(sizeOf({ command: list }, 4096)).to.be.within(4097, 5000);
    expect(read).to.be.lessThan(2000);
    expect(sizeOf({ command: ['a', 'bc'], more: { x: 1 } })).to.equal(6 * 8 + 7 + 3 + 4 + 1);
  });

  it('of a command with more texts than any program takes is a flaw, and says what to do', () => {
    const { metadata, spec } = htcJob();
    const flawOf = (count: number) =>
      kept({
        metadata,
        spec: { ...spec, script: { ...spec.script, command: Array.from({ length: count }, () => '') } },
      }).flaw;
    expect(flawOf(100_000)).to.equal(undefined);
    expect(flawOf(100_001)).to.equal(
      'spec.script.command has 100001 texts, and may have 100000; write long lists into the script',
    );
  });
});

describe('the status of a HTCJob that has ended', () => {
  it('is written also where another writer left no words in its condition', () => {
    for (const odd of [{}, { reason: 5, message: {} }]) {
      const status = {
        completionTime: '2026-01-01T00:00:00Z',
        failedIndexes: '0',
        conditions: [{ type: 'Failed', status: 'True', ...odd }],
      };
      const tracked = new Tracked(kept({ ...htcJob({}, 'a'), status: status as never }));
      const { uid, generation, isClaimed, round, isSuspended, waiting, reports } = tracked;
      const written = statusOf({
        uid,
        generation,
        factory: 'f',
        isClaimed,
        round,
        isSuspended,
        judgement: tracked.judge(false),
        waiting,
        lastWords: undefined,
        holdReason: undefined,
        noMachine: undefined,
        stopped: undefined,
        reports,
        before: tracked.status,
        now: 0,
      });
      expect(written.conditions?.[0]).to.include({ type: 'Failed', reason: '', message: '' });
    }
  });
});

describe('a message in the status of a HTCJob', () => {
  it('keeps no piece of a login of ours where it is cut', () => {
    const login = 'Wq8T0kenOfOurLoginZk5';
    rememberSecret(login);
    for (let at = 3970; at <= 4000; at++) {
      const why = { code: 'a-code', message: 'words '.repeat(700) };
      const before = whileDeleting({}, { left: 1, whys: [why] }, 0).conditions?.[0]?.message ?? '';
      const head = before.indexOf('words');
      const message = `${'.'.repeat(at - head)} ${login} ${'.'.repeat(300)}`;
      const { conditions } = writtenStatus(whileDeleting({}, { left: 1, whys: [{ ...why, message }] }, 0));
      expect(conditions?.[0]?.message, `at ${at}`).to.have.length.at.most(4000).and.not.include('Wq8T');
    }
  });
});

describe('a long message for the status of a HTCJob', () => {
  it('hole 8: is looked at as far as it is shown', async () => {
    rememberSecret('opaque-of-a-status-01234');
    const message = 'words '.repeat(100_000);
    expect(await charactersLookedAt(() => cutMessage(message))).to.be.within(1, 10_000);
    expect(cutMessage(cutMessage(message)))
      .to.equal(cutMessage(message))
      .and.have.length.within(3900, 4000);
  });
});

describe('the numbers of jobs', () => {
  it('are ranges in a status, and what is no range is left out', () => {
    expect(toRanges([7, 0, 1, 2, 4])).to.equal('0-2,4,7');
    expect(toRanges([])).to.equal(undefined);
    expect([...fromRanges('0-2,4,x,9-,12-11,7', 8)]).to.deep.equal([0, 1, 2, 4, 7]);
    expect([...fromRanges('0-999999', 3)]).to.deep.equal([0, 1, 2]);
  });

  it('are none in what another writer left in the place of the ranges', () => {
    for (const odd of [5, {}, [1], true, null]) expect([...fromRanges(odd, 8)]).to.deep.equal([]);
  });

  it('hole 8: cost no more than there are of them, however often a status names each', () => {
    const completedIndexes = Array.from({ length: 30_000 }, () => '0-9999').join(',');
    const ended = { completedIndexes, succeeded: 1, failed: 0, active: 0, held: 0, completionTime: 'now' };
    const { metadata, spec } = htcJob({ queue: mostJobs });
    const { put, result } = putInSets(3 * mostJobs, () => {
      const tracked = new Tracked(kept({ metadata, spec, status: ended }));
      expect([...fromRanges(completedIndexes, mostJobs)].slice(-2)).to.deep.equal([9998, 9999]);
      return [tracked.isFalsified, tracked.judge(false).jobs.every(({ outcome }) => outcome === 'succeeded')];
    });
    expect(result).to.deep.equal([true, true]);
    expect(put).to.equal(3 * mostJobs);
    expect([...fromRanges('3-6,5-8,0-1,4,8-9', 10)]).to.deep.equal([0, 1, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('hole 8: are read as far as a proper text goes, and no part of it is cut in two', () => {
    const all = Array.from({ length: mostJobs }, (_, number) => number);
    const one = all.join(',');
    expect(one.length).to.be.at.most(longestRanges);
    expect(fromRanges(one, mostJobs).size).to.equal(mostJobs);
    // The text with the most characters: pairs, each with a gap behind it.
    const pairs = toRanges(all.filter((number) => number % 3 < 2)) ?? '';
    expect(pairs.length).to.be.at.most(longestRanges);
    expect(toRanges([...fromRanges(pairs, mostJobs)])).to.equal(pairs);
    const filled = 'x'.repeat(longestRanges - 4);
    expect([...fromRanges(`7,${filled},1-5678,9`, mostJobs)]).to.deep.equal([7]);
    expect([...fromRanges(`${filled},123,9`, mostJobs)]).to.deep.equal([123]);
    expect([...fromRanges(`${filled},1234,9`, mostJobs)]).to.deep.equal([]);
    expect([...fromRanges('1'.repeat(longestRanges + 1), mostJobs)]).to.deep.equal([]);
  });

  it('are in the index of an origin, with the attempt', () => {
    for (const attempt of [
      { round: 0, attempt: 0, number: 9999 },
      { round: 3, attempt: 999, number: 17 },
    ])
      expect(attemptOf(indexOf(attempt))).to.deep.equal(attempt);
    expect(indexOf({ round: 0, attempt: 0, number: 5 })).to.equal(5);
  });
});

describe('sizes in the requests of a HTCJob', () => {
  for (const [quantity, expected] of [
    ['512Mi', 512],
    ['2G', 1908],
    ['1.5Gi', 1536],
    [1, 1],
    ['1Ki', 1],
    ['2Gx', undefined],
  ] as const)
    it(`${quantity} is ${String(expected)} MB`, () => {
      expect(megabytes(quantity)).to.equal(expected);
    });
});
