import { expect } from 'chai';
import {
  type Fate,
  type OldJob,
  type Plan,
  planImport,
  type PlanOptions,
} from '../../../src/clients/htcjob/import/plan.ts';
import type { ForeignJob } from '../../../src/clients/htcondor/foreign-job.ts';
import { finalizer, type HtcJob, isOfHtcOperator, jobCount } from '../../../src/clients/htcjob/resource.ts';
import { htcJob } from '../../support/htc-jobs.ts';

const options: PlanOptions = { factory: 'ours', namespace: undefined, unreported: undefined };

const row = (change: Partial<OldJob> = {}): OldJob => ({
  name: 'zero',
  jobId: '7.0',
  status: 1,
  directory: '/data/tmp_jobs/scratch-1',
  submission: '5577006791947779410',
  ...change,
});

const seen = (change: Partial<ForeignJob> = {}): ForeignJob => ({
  id: { cluster: 7, proc: 0 },
  connection: 'htcondor:LOCAL',
  owner: 'pilot',
  user: 'pilot',
  isQueued: true,
  status: 2,
  endedWell: false,
  environment: 'JOB_NAME=zero TEMP_DIR=/data/tmp_jobs/scratch-1',
  directory: '/data/tmp_jobs/scratch-1',
  queuedAt: 1_600_000_100,
  factory: undefined,
  ...change,
});

function resource(change: Partial<HtcJob> = {}, queue = 1): HtcJob {
  const { metadata, spec } = htcJob({ queue });
  return {
    metadata: { ...metadata, creationTimestamp: '2020-09-13T12:26:40Z', finalizers: [finalizer] },
    spec,
    status: { active: queue, succeeded: 0, failed: 0 },
    ...change,
  };
}

const one = (
  rows: readonly OldJob[],
  jobs: readonly ForeignJob[],
  resources: readonly HtcJob[] = [resource()],
  change: Partial<PlanOptions> = {},
): Plan => {
  const [plan, ...more] = planImport(rows, resources, jobs, { ...options, ...change });
  expect(more).to.deep.equal([]);
  if (plan === undefined) throw new Error('no plan');
  return plan;
};

describe('the plan of an import from htc-operator', () => {
  const history = { isQueued: false, status: 4, endedWell: true };

  it('hole 1: leaves jobs of another user alone: thresher would not follow them', () => {
    expect(one([row()], [seen({ owner: 'games' })]).why).to.equal(
      'job 7.0 is of user games, and thresher, as pilot, follows no jobs of others; start it with a credential of games',
    );
    expect(one([row({ status: 4 })], [seen({ ...history, owner: 'games' })]).why).to.equal(undefined);
    expect(one([row()], [seen({ owner: 'games', user: undefined })]).why).to.equal(undefined);
  });

  const fates: readonly (readonly [
    what: string,
    job: Partial<ForeignJob> | undefined,
    status: number,
    is: Fate,
  ])[] = [
    ['running', {}, 1, 'living'],
    ['held', { status: 5 }, 1, 'living'],
    ['running again after an event', {}, 7, 'living'],
    ['ended in the queue, with a result', { status: 4, endedWell: true }, 4, 'succeeded'],
    ['ended in the queue, with a failure of the script', { status: 4, endedWell: true }, 17, 'failed'],
    ['ended by a signal, whatever the table says', { status: 4 }, 4, 'failed'],
    ['ended in the queue, without an event', { status: 4, endedWell: true }, 1, 'unreported'],
    ['in the history', history, 24, 'succeeded'],
    ['in the history, without an event', history, 1, 'lost'],
    ['removed', { isQueued: false, status: 3 }, 1, 'failed'],
    ['unknown to the schedd, with a result', undefined, 27, 'failed'],
    ['unknown to the schedd', undefined, 1, 'lost'],
  ];
  for (const [what, job, status, is] of fates)
    it(`takes a job that is ${what} for ${is}`, () => {
      const plan = one([row({ status })], job === undefined ? [] : [seen(job)]);
      expect(plan.jobs.map(({ fate }) => fate)).to.deep.equal([is]);
      expect(plan.why === undefined, plan.why).to.equal(is !== 'lost');
      expect(plan.jobs[0]?.toMark !== undefined, 'what is in the queue gets its mark').to.equal(
        job !== undefined && job.isQueued !== false,
      );
    });

  it('writes the claim and the results of a HTCJob', () => {
    const rows = [row({ jobId: '7.2', status: 7 }), row({ status: 4 }), row({ jobId: '7.1' })];
    const jobs = [seen({ id: { cluster: 7, proc: 1 } })];
    const { status, why } = one(rows, jobs, [resource({}, 3)]);
    expect(why).to.equal(undefined);
    expect(status).to.deep.equal({
      active: 1,
      succeeded: 1,
      failed: 1,
      held: 0,
      completedIndexes: '0',
      failedIndexes: '2',
      jobid: ['7.0', '7.1', '7.2'],
      jobIds: ['7.0', '7.1', '7.2'],
      clusterId: '7',
      uniqId: 'uid-of-zero',
      factory: 'ours',
      takenOver: true,
      reason: 'Submitted',
      startTime: '2020-09-13T12:28:20Z',
    });
  });

  it('adds to one that it took over before what has ended since, and writes nothing otherwise', () => {
    const before = one(
      [row(), row({ jobId: '7.1' })],
      [seen(), seen({ id: { cluster: 7, proc: 1 } })],
      [resource({}, 2)],
    );
    const status = { ...before.status, conditions: [], held: 1 };
    const now = resource({ status }, 2);
    const marked = [seen({ factory: 'ours' }), seen({ id: { cluster: 7, proc: 1 }, factory: 'ours' })];
    const same = one([row(), row({ jobId: '7.1' })], marked, [now]);
    expect(same.status).to.equal(undefined);
    expect(same.jobs.filter(({ toMark }) => toMark !== undefined)).to.deep.equal([]);
    const more = one([row({ status: 7 }), row({ jobId: '7.1' })], [marked[1] ?? seen()], [now]);
    expect(more.status).to.deep.equal({ ...status, failedIndexes: '0' });
    const over = resource({ status: { ...status, completionTime: '2020-09-13T13:00:00Z' } }, 2);
    expect(one([row({ status: 7 }), row({ jobId: '7.1' })], marked, [over]).status).to.equal(undefined);
  });

  it('counts jobs without a result as it is told', () => {
    expect(one([row()], [], [resource()], { unreported: 'failed' }).status).to.include({
      failedIndexes: '0',
    });
    expect(one([row()], [], [resource()], { unreported: 'succeeded' }).status).to.include({
      completedIndexes: '0',
    });
  });

  const taken = (factory: string) => [resource({ status: { active: 1, factory } })];
  const inB = { ...resource(), metadata: { ...resource().metadata, namespace: 'b', uid: 'another' } };
  const left: readonly (readonly [what: string, plan: () => Plan, why: RegExp])[] = [
    [
      'without a resource',
      () => one([row()], [seen()], []),
      /^the cluster has no HTCJob of this name; its jobs go on/,
    ],
    [
      'in two namespaces',
      () => one([row()], [seen()], [resource(), inB]),
      /several namespaces .*default, b.*--namespace/,
    ],
    [
      'in another namespace',
      () => one([row()], [seen()], [inB], { namespace: 'a' }),
      /^namespace a has no HTCJob/,
    ],
    ['of another factory', () => one([row()], [seen()], taken('other')), /^factory other runs it$/],
    ['of thresher', () => one([row()], [seen()], taken('ours')), /^thresher submitted its jobs itself$/],
    [
      'that htc-operator never counted, though its jobs have ended',
      () => one([row({ status: 4 })], [], [resource({ status: {} })]),
      /^htc-operator has counted no job of it: the table has the jobs of an earlier one of its name$/,
    ],
    [
      'that htc-operator never counted, though it is older than the job',
      () => one([row()], [seen()], [resource({ status: { reason: 'HtcjobNotImported' } })]),
      /^htc-operator has counted no job of it/,
    ],
    [
      'with counts of another writer, without the finalizer of htc-operator',
      () => one([row()], [seen()], [{ ...resource(), metadata: htcJob().metadata }]),
      /^htc-operator has counted no job of it/,
    ],
    [
      'of two submissions',
      () => one([row(), row({ submission: '1' })], []),
      /2 submissions of it \(uniqid 5577006791947779410, 1\)/,
    ],
    [
      'of two clusters',
      () => one([row(), row({ jobId: '8.1' })], [], [resource({}, 2)]),
      /jobs are of 2 clusters/,
    ],
    [
      'with an id that is none',
      () => one([row({ jobId: '7' })], []),
      /"7" as an id of a job; it must be CLUSTER.PROC/,
    ],
    [
      'with a strange status',
      () => one([row({ status: 9 })], []),
      /status 9 for job 7.0; it must be 1, 4 or 7/,
    ],
    ['with no status', () => one([row({ status: NaN })], []), /status NaN for job 7.0/],
    [
      'with fewer rows than jobs',
      () => one([row()], [seen()], [resource({}, 5)]),
      /has 1 jobs of it, and its spec asks for 5/,
    ],
    [
      'with a row twice',
      () => one([row(), row()], [seen()], [resource({}, 2)]),
      /the table has job 7.0 twice/,
    ],
    [
      'whose ids are those of strangers',
      () => one([row()], [seen({ environment: 'JOB_NAME=zero-b', directory: '/x' })]),
      /job 7.0 of the schedd is another one/,
    ],
    [
      'that two schedds have',
      () => one([row()], [seen(), seen({ connection: 'htcondor:b' })]),
      /several schedds have a job 7.0/,
    ],
    [
      'with the mark of another factory',
      () => one([row()], [seen({ factory: 'other' })]),
      /job 7.0 has the mark of factory other/,
    ],
    [
      'of a resource that was created anew',
      () => one([row()], [seen({ queuedAt: 1_500_000_000 })]),
      /older than the resource/,
    ],
  ];
  for (const [what, plan, why] of left)
    it(`leaves a HTCJob alone ${what}, and says why`, () => {
      expect(plan().why).to.match(why);
      expect(plan().status).to.equal(undefined);
    });

  it('knows a HTCJob of htc-operator by its counts, which no thresher wrote', () => {
    expect(isOfHtcOperator({})).to.equal(false);
    expect(isOfHtcOperator({ reason: 'HtcjobNotImported' })).to.equal(false);
    expect(isOfHtcOperator({ active: 0, succeeded: 1, failed: 0 })).to.equal(true);
    expect(isOfHtcOperator({ jobid: ['7.0'] })).to.equal(true);
    expect(isOfHtcOperator({ active: 0, factory: 'ours' })).to.equal(false);
    // htc-operator wrote a 0 where the resource did not say it.
    expect(jobCount({ queue: 0, script: htcJob().spec.script })).to.equal(1);
  });
});
