import { expect } from 'chai';
import { concludePass, type Pass } from '../../../src/agents/submission/pass.ts';

const wanted: Pass['wanted'] = {
  entries: [],
  reasons: [],
  standing: [],
  refused: [],
  beyond: new Map(),
  again: false,
};
const saying = (...codes: string[]): Pass['first'] => ({
  groups: [],
  cuts: [],
  reasons: codes.map((code) => ({ code, message: code })),
});
const [rate, full] = ['submission-rate', 'max-workers'];

describe('the next pass of a queue', () => {
  it('is due when the rate lets one more through, if the rate cut deepest', () => {
    expect(concludePass({ wanted, first: saying(rate, full) }, [], 250).nextIn).to.equal(250);
    expect(concludePass({ wanted, first: saying(rate) }, [], undefined).nextIn).to.equal(0);
  });

  it('is due in its turn if another limit cut deeper', () => {
    expect(concludePass({ wanted, first: saying(full, rate) }, [], 250).nextIn).to.equal(undefined);
    const pass = { wanted, first: saying(full), final: saying(full), closing: saying(full) };
    expect(concludePass(pass, [], undefined).nextIn).to.equal(undefined);
  });

  it('is due at once if the rate cut before the submission, and the time for the next worker came during it', () => {
    const pass = { wanted, first: saying(rate), final: saying(rate), closing: saying(full) };
    expect(concludePass(pass, [], undefined).nextIn).to.equal(0);
    expect(concludePass(pass, [], undefined).reasons[0]?.code).to.equal(full);
  });
});
