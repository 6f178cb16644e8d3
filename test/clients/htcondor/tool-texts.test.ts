import { expect } from 'chai';
import { userOfPing } from '../../../src/clients/htcondor/tool-texts.ts';

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
