import { expect } from 'chai';
import { submittedJobs, userOfPing } from '../../../src/clients/htcondor/tool-texts.ts';

describe('the user that condor_ping names', () => {
  // As 23.9 writes it.
  const answer = (user: string) =>
    `QMGMT_WRITE_CMD command using (AES, AES, and IDTOKENS) succeeded as ${user} to schedd at <10.0.0.1:9618>.\n`;

  it('is the one as whom we submit; none where the schedd authenticates nobody', () => {
    expect(userOfPing(answer('pilot@pool.test'))).to.equal('pilot@pool.test');
    expect(userOfPing(answer('unauthenticated@unmapped'))).to.equal(undefined);
  });

  it('is none of a method that maps all to one name, and of no other words', () => {
    for (const user of ['ssl@unmapped', 'scitokens@unmapped'])
      expect(() => userOfPing(answer(user)))
        .to.throw(`maps thresher to no user of its own (${user})`)
        .with.property('code', 'condor-answer');
    for (const words of ['', 'ERROR: failed', 'WRITE succeeded'])
      expect(() => userOfPing(words))
        .to.throw('condor_ping names no user')
        .with.property('code', 'condor-answer');
  });
});

describe('the jobs that condor_submit names', () => {
  it('are those of each cluster', () => {
    expect(submittedJobs('5.0 - 5.1\n6.3 - 6.3\n')).to.deep.equal([
      { cluster: 5, proc: 0 },
      { cluster: 5, proc: 1 },
      { cluster: 6, proc: 3 },
    ]);
  });

  it('are none of numbers that are not exact, which have no end, and of more than one submission may have', () => {
    const large = Number.MAX_SAFE_INTEGER;
    expect(submittedJobs(`5.${large} - 5.${large}`)).to.deep.equal([{ cluster: 5, proc: large }]);
    for (const text of [
      `${large + 1}.0 - ${large + 1}.0`,
      `5.${'9'.repeat(400)} - 5.${'9'.repeat(400)}`,
      '5.0 - 5.100000',
      '5.0 - 5.60000\n6.0 - 6.60000',
      `5.${large + 1} - 5.${large + 1}`,
    ])
      expect(submittedJobs(text), text).to.equal(undefined);
  });
});
