import { expect } from 'chai';
import fc from 'fast-check';
import { SubmitWindow } from '../../src/limits/submit-window.ts';

/** What the window leaves of a demand. */
const atMost = (window: SubmitWindow) => window.limit?.atMost ?? Infinity;

describe('the window of submissions', () => {
  it('has nothing to say while all is accepted', () => {
    const window = new SubmitWindow();
    expect(window.limit).to.equal(undefined);
    window.record(100, 100, '');
    window.record(0, 0, '');
    expect(window.limit).to.equal(undefined);
  });

  it('lets through as many as were accepted, and says what the backend said', () => {
    const window = new SubmitWindow();
    window.record(100, 30, 'quota exceeded');
    const message =
      '30 of the last 100 submissions were accepted (quota exceeded): no more than 30 at once for now';
    expect(window.limit).to.deep.equal({ atMost: 30, reason: { code: 'submission-backoff', message } });
  });

  it('lets through one where none was accepted: something must find out that the backend is well again', () => {
    const window = new SubmitWindow();
    window.record(100, 0, 'no route to host');
    window.record(0, 0, '');
    expect(atMost(window)).to.equal(1);
  });

  it('doubles with each time that all went well, until as many went through as had failed', () => {
    const window = new SubmitWindow();
    window.record(100, 0, 'x');
    const sizes: number[] = [];
    while (window.limit !== undefined) {
      sizes.push(atMost(window));
      window.record(atMost(window), atMost(window), '');
    }
    expect(sizes).to.deep.equal([1, 2, 4, 8, 16, 32, 64]);
  });

  it('does not forget how many failed when fewer fail after them', () => {
    const window = new SubmitWindow();
    window.record(100, 0, 'x');
    window.record(1, 0, 'y');
    window.record(1, 1, '');
    expect(atMost(window)).to.equal(2);
    expect(window.limit?.reason.message).to.match(/^0 of the last 1 submissions were accepted \(y\): /);
  });

  it('sends no more than twice of what a backend takes, whatever happened before', () => {
    const capacities = fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(capacities, fc.integer({ min: 1, max: 100 }), (takes, demand) => {
        const window = new SubmitWindow();
        let worst = 0;
        let went = Infinity;
        for (const capacity of takes) {
          const sent = Math.min(demand, atMost(window));
          expect(sent).to.be.at.least(1);
          // No more than twice of what went before, until so many went that nothing is left to be careful of.
          expect(sent).to.be.at.most(went <= worst ? Math.max(1, 2 * went) : demand);
          const accepted = Math.min(sent, capacity);
          if (accepted < sent) worst = Math.max(worst, sent);
          else if (window.limit !== undefined && 2 * sent > worst) worst = 0;
          went = worst === 0 ? Infinity : accepted;
          window.record(sent, accepted, 'x');
        }
      }),
      { numRuns: 1000 },
    );
  });
});
