import { expect } from 'chai';
import { SharedFactory } from '../../../src/agents/reconciling/shared-factory.ts';
import { workerOf } from '../../support/samples.ts';

const idFloor = 1000;
const hour = 3_600_000;

function listed(workerId: number, hasRow = false) {
  const { name, queue, computingSite, origin, requirements, attempt } = workerOf(workerId);
  const identity = { workerId, name, queue, computingSite, origin, requirements, attempt };
  return { found: { place: `/pilots/${workerId}`, handle: { batchID: '1' }, identity }, hasRow };
}

/** A job that another program submitted, with the mark that an import gave it. */
function marked(workerId: number): ReturnType<typeof listed> {
  const { found, hasRow } = listed(workerId);
  return { found: { ...found, identity: { ...found.identity, attempt: 0 } }, hasRow };
}

describe('another daemon with our factory id', () => {
  let shared: SharedFactory;
  const take = (...all: readonly ReturnType<typeof listed>[]) => shared.take(all, idFloor, 0);

  beforeEach(() => {
    shared = new SharedFactory('local:/pilots', 'factory');
  });

  it('is seen by workers without a row that came after the first listing', () => {
    take(listed(1001, true));
    expect(take(listed(1001, true), listed(1002), listed(1003))).to.deep.equal([1002, 1003]);
    expect(shared.note(0)).to.deep.equal({
      code: 'factory-shared',
      message:
        'another daemon with the factory id factory makes workers on local:/pilots, 2 so far (1002, 1003): limits hold for each of the two alone',
    });
  });

  for (const [what, second] of [
    ['what has a row', [listed(1002, true)]],
    ['what was given out before this daemon started, as a restored backend brings it back', [listed(999)]],
    ['what the listing before had', [listed(1001)]],
    ['what no daemon made: an operator gave it our mark', [marked(1002)]],
  ] as const)
    it(`is not seen in ${what}`, () => {
      take(listed(1001));
      expect(take(...second)).to.deep.equal([]);
      expect(shared.note(0)).to.equal(undefined);
    });

  it('is not seen in the first listing: a lost database leaves the same', () => {
    expect(take(listed(1001), listed(1002))).to.deep.equal([]);
  });

  it('is told of for an hour after its last worker', () => {
    take();
    take(listed(1001));
    expect(shared.note(hour)?.message).to.contain('1 so far (1001)');
    expect(shared.note(hour + 1)).to.equal(undefined);
  });

  it('is told of with all its workers, and the last of them named', () => {
    take();
    take(listed(1001), listed(1002), listed(1003), listed(1004));
    take(listed(1005));
    expect(shared.note(0)?.message).to.contain('5 so far (1005)');
  });
});
