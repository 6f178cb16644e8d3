import { expect } from 'chai';
import { whereJobs } from '../../../src/clients/htcondor/classad.ts';
import { portions, whereWorkers } from '../../../src/plugins/htcondor/look-up.ts';

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
