import { expect } from 'chai';
import type { HtcJobStatus } from '../../../src/clients/htcjob/resource.ts';
import type { JobFacts } from '../../../src/sources/htcjob/facts.ts';
import { judge } from '../../../src/sources/htcjob/judge.ts';
import { takenOverFacts, whyOpen } from '../../../src/sources/htcjob/taken-over.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { askedOf, newsOf, StepperSite } from '../../support/htcjob-stepper.ts';

const facts = (status: JobFacts['status'], exitCode: number | null = null): JobFacts => ({
  workerId: 1,
  status,
  native: 'completed',
  exitCode,
  message: null,
  batchId: '7.0',
  submitTime: 1,
  endTime: 2,
  isSwept: false,
});

function judged(
  attempts: readonly (readonly [index: number, JobFacts])[],
  results: { readonly completed?: readonly number[]; readonly failed?: readonly number[] } = {},
) {
  const completed = new Set(results.completed);
  const failed = new Set(results.failed);
  const known = { count: 2, attempts: new Map(attempts), completed, failed };
  const more = {
    round: 0,
    isSuspended: false,
    isExpired: false,
    backoffLimit: 0,
    retried: 0,
    asked: new Set<number>(),
  };
  return judge({ ...known, ...more, attempts: takenOverFacts(known) });
}
const outcomes = (...args: Parameters<typeof judged>) => judged(...args).jobs.map(({ outcome }) => outcome);

describe('a HTCJob whose jobs htc-operator submitted', () => {
  it('has no job submitted again, also before any of them is adopted', () => {
    expect(outcomes([])).to.deep.equal(['live', 'live']);
    expect(outcomes([], { completed: [0], failed: [1] })).to.deep.equal(['succeeded', 'failed']);
    expect(whyOpen(judged([]).jobs)?.code).to.equal('htcjob-not-adopted');
  });

  it('has not ended with the exit status 0 of a job: the result of the script is missing', () => {
    const ended = [
      [0, facts('finished', 0)],
      [1, facts('finished', 0)],
    ] as const;
    expect(outcomes(ended)).to.deep.equal(['live', 'live']);
    expect(whyOpen(judged(ended).jobs)).to.deep.include({ code: 'htcjob-unreported' });
    expect(outcomes(ended, { completed: [0], failed: [1] })).to.deep.equal(['succeeded', 'failed']);
    expect(judged(ended, { completed: [0], failed: [1] }).isOver).to.equal(true);
    expect(whyOpen(judged(ended, { completed: [0], failed: [1] }).jobs)).to.equal(undefined);
  });

  it('fails with a job that HTCondor ended, and does not run it again', () => {
    const ended = [
      [0, facts('cancelled')],
      [1, facts('failed', 137)],
    ] as const;
    expect(outcomes(ended)).to.deep.equal(['failed', 'failed']);
    expect(outcomes([[0, facts('running')]])).to.deep.equal(['live', 'live']);
  });
});

describe('a HTCJob that htc-operator counts', () => {
  const counts: HtcJobStatus = { active: 1, succeeded: 0, failed: 0 };
  let site: StepperSite;

  beforeEach(() => {
    site = new StepperSite();
  });

  it('has no job submitted, and waits for its import, which it says once', async () => {
    const tracked = site.track(htcJob(), counts);
    await site.step(tracked);
    expect(askedOf(tracked)).to.deep.equal([]);
    expect(site.asked).to.deep.equal(['status HtcjobNotImported']);
    expect(site.notes.map(({ message }) => message)[0]).to.contain(
      '"thresher htcjob import" takes them over',
    );
    const waiting = site.track(htcJob(), { ...counts, reason: 'HtcjobNotImported' });
    await site.step(waiting);
    expect(site.asked).to.have.length(1);
  });

  for (const [what, metadata] of [
    ['', {}],
    [' after its deletion', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
  ] as const)
    it(`says once that it waits for its import${what}, though its status gives another reason, and takes no count away`, async () => {
      const tracked = site.track(htcJob(), { ...counts, uniqId: 'of another', reason: 'Running' }, metadata);
      await site.step(tracked);
      await site.step(tracked);
      expect([site.asked, site.notes.map(({ reason }) => reason)]).to.deep.equal([[], ['HtcjobNotImported']]);
      const told = site.log.lines.filter(({ level }) => level === 'warn');
      expect(told.map(({ facts }) => facts['htcjob'])).to.deep.equal([tracked.name]);
    });

  it('may be deleted once its jobs have all ended, and not before', async () => {
    const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    await site.step(site.track(htcJob(), counts, deleted));
    expect(site.asked).to.not.include('finalizer');
    await site.step(site.track(htcJob(), { active: 0, succeeded: 1, failed: 0 }, deleted));
    expect(site.asked).to.include('finalizer');
  });

  it('is one of thresher if another writer counts before thresher does', async () => {
    const tracked = site.track(htcJob(), undefined, { finalizers: [] });
    tracked.update(site.object(htcJob(), counts));
    await site.step(tracked);
    expect(askedOf(tracked)).to.deep.equal([0]);
  });

  it('goes on after its import, whatever thresher would say of its spec', async () => {
    const status: HtcJobStatus = { ...counts, uniqId: 'uid-of-zero', factory: 'factory', takenOver: true };
    const tracked = site.track(htcJob({ htcopts: 'queue 5', queue: 2, backoffLimit: 3 }), status);
    await site.step(tracked);
    expect(site.statuses.at(-1)).to.include({ reason: 'HtcjobNotAdopted', active: 2, takenOver: true });
    site.found = [];
    for (const number of [0, 1]) tracked.hear(newsOf(tracked.uid, number, 'finished', 0));
    await site.step(tracked);
    expect(site.statuses.at(-1)).to.include({ reason: 'HtcjobUnreported', active: 2 });
    tracked.status = { ...site.statuses.at(-1), completedIndexes: '0', failedIndexes: '1' };
    await site.step(tracked);
    expect(site.statuses.at(-1)).to.include({ reason: 'JobsFailed', succeeded: 1, failed: 1 });
    expect(askedOf(tracked)).to.deep.equal([]);
    expect(site.ended).to.deep.equal([]);
  });
});
