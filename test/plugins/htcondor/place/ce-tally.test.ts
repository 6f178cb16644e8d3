import { expect } from 'chai';
import { CeTally, type CeWorker } from '../../../../src/plugins/htcondor/place/ce-tally.ts';

const hour = 3600 * 1000;
const now = 100 * hour;
const worker = (workerId: number, changes: Partial<CeWorker> = {}): CeWorker => ({
  workerId,
  queue: 'Q',
  ce: 'a',
  status: 'submitted',
  queuedAt: now - hour,
  ...changes,
});

describe('the tally of who is at which CE', () => {
  const queuedAt = (tally: CeTally, ce = 'a') => tally.of('Q', now).counts.get(ce)?.queued ?? 0;

  it('counts what all schedds show, by queue and CE', () => {
    const tally = new CeTally();
    tally.see('one', [worker(1), worker(2, { ce: 'b', status: 'running' }), worker(3, { queue: 'R' })]);
    tally.see('two', [worker(4, { status: 'idle', queuedAt: now - 7 * hour })]);
    tally.ended(worker(5, { status: 'finished' }));
    tally.ended(worker(6, { status: 'finished', queuedAt: now - 7 * hour }));
    const { counts, running } = tally.of('Q', now);
    expect(Object.fromEntries(counts)).to.deep.equal({
      a: { queued: 2, running: 0, recent: { queued: 1, running: 0, finished: 1 } },
      b: { queued: 0, running: 1, recent: { queued: 0, running: 1, finished: 0 } },
    });
    expect(running).to.equal(1);
  });

  it('counts a worker as soon as it is submitted, and once', () => {
    const tally = new CeTally();
    tally.see('one', []);
    tally.submitted('one', worker(1));
    expect(queuedAt(tally)).to.equal(1);
    tally.see('one', [worker(1)]);
    expect(queuedAt(tally)).to.equal(1);
    // Its monitor may see it before its submitter hears of it.
    tally.submitted('one', worker(1));
    expect(queuedAt(tally)).to.equal(1);
    tally.see('one', []);
    expect(queuedAt(tally)).to.equal(0);
  });

  it('counts a worker once that two connections show, as where they lead to one schedd', () => {
    const tally = new CeTally();
    for (const connection of ['old', 'new'])
      tally.see(connection, [worker(1), worker(2, { status: 'running' }), worker(3)]);
    tally.ended(worker(3, { status: 'finished' }));
    const { counts, running } = tally.of('Q', now);
    expect(counts.get('a')).to.deep.equal({
      queued: 1,
      running: 1,
      recent: { queued: 1, running: 1, finished: 1 },
    });
    expect(running).to.equal(1);
  });

  it('keeps a worker that an older question could not see, and forgets one that is not there', () => {
    const tally = new CeTally();
    tally.submitted('one', worker(1));
    tally.see('two', []);
    tally.see('two', []);
    tally.see('one', []);
    expect(queuedAt(tally)).to.equal(1);
    tally.see('one', []);
    expect(queuedAt(tally)).to.equal(0);
  });

  it('counts a worker that ended before it was seen as ended', () => {
    const tally = new CeTally();
    tally.submitted('one', worker(1));
    tally.ended(worker(1, { status: 'finished' }));
    tally.see('one', []);
    expect(tally.of('Q', now).counts.get('a')).to.deep.include({ queued: 0, running: 0 });
    tally.submitted('one', worker(1));
    expect(queuedAt(tally)).to.equal(0);
  });
});
