import { expect } from 'chai';
import type { JobFacts } from '../../../src/sources/htcjob/facts.ts';
import { judge } from '../../../src/sources/htcjob/judge.ts';
import { takenOverFacts, whyOpen } from '../../../src/sources/htcjob/taken-over.ts';

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
  const more = { round: 0, isSuspended: false, isExpired: false, backoffLimit: 0, retried: 0 };
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
