import { expect } from 'chai';
import { KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../../src/clients/kubernetes/objects.ts';
import { LeaseHistory, LeaseHolder } from '../../../src/sources/htcjob/lease.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

interface Lease extends KubernetesObject {
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number };
}

const away = () =>
  new KubernetesError({ code: 'kubernetes-unreachable', message: 'refused', maybeDone: true });

describe('the Lease of the operator of HTCJobs', () => {
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let lease: Lease;
  /** How often it was said that it is held from now on, or no more. */
  let changes: boolean[];
  let isAway: boolean;
  /** An answer takes so long, ms. */
  let delay: number;
  let holder: LeaseHolder;
  let stop: AbortController;
  let running: Promise<void>;
  let isKept: boolean;
  const history = {
    note: async () => {
      if (!isKept) throw new Error('the disk is full');
    },
    isLast: async (uid: string) => uid === 'held before',
  };

  beforeEach(() => {
    isKept = true;
    clock = new ManualClock();
    log = recordingLog();
    lease = { metadata: { resourceVersion: '1' }, spec: { holderIdentity: 'factory' } };
    changes = [];
    isAway = false;
    delay = 0;
    const answer = async () => {
      if (isAway) throw away();
      if (delay > 0) await clock.sleep(delay);
      return lease;
    };
    const client = {
      get: answer,
      create: answer,
      patch: async (_: string, patch: unknown) => {
        await answer();
        lease = { ...lease, ...(patch as Lease) };
        return lease;
      },
    } as unknown as ConstructorParameters<typeof LeaseHolder>[1]['client'];
    const changed = () => {
      changes.push(holder.isHeld);
    };
    holder = new LeaseHolder(
      { namespace: 'n', name: 'l', holder: 'factory' },
      { client, clock, log, changed, history },
    );
    stop = new AbortController();
    running = holder.run(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    delay = 0;
    await clock.advance(60_000);
    await running;
  });

  const said = () => log.lines.map(({ level, message }) => `${level}: ${message}`);
  const held = 'info: this daemon is the operator of HTCJobs';
  const waits = 'warn: HTCJobs wait for the Lease';

  it('is not held before it is on record that it is', async () => {
    isKept = false;
    await clock.advance(10_000);
    expect([holder.isHeld, changes]).to.deep.equal([false, []]);
    expect(log.lines.at(-1)?.facts).to.deep.equal({ why: 'the Lease n/l cannot be had: the disk is full' });
    isKept = true;
    await clock.advance(10_000);
    expect([holder.isHeld, changes]).to.deep.equal([true, [true]]);
  });

  it('tells in the log that it ran out with the server away, and that it is held again', async () => {
    await clock.advance(10_000);
    expect([changes, said()]).to.deep.equal([[true], [held]]);
    isAway = true;
    await clock.advance(60_000);
    expect([changes, said()]).to.deep.equal([
      [true, false],
      [held, waits],
    ]);
    expect(log.lines.at(-1)?.facts).to.deep.equal({
      why: 'the Lease n/l cannot be had: refused',
    });
    isAway = false;
    await clock.advance(5000);
    expect([changes, said()]).to.deep.equal([
      [true, false, true],
      [held, waits, held],
    ]);
  });

  it('says that it is held anew where it ran out while the server took its time', async () => {
    await clock.advance(1000);
    delay = 9000;
    await clock.advance(25_000);
    delay = 0;
    await clock.advance(20_000);
    // The second answer came after the end of the first hold, and steps in between were left out.
    expect(changes.length).to.be.above(1);
    expect(changes.at(-1)).to.equal(true);
    expect(holder.isHeld).to.equal(true);
  });

  it('names the operator that holds it, once', async () => {
    stop.abort();
    await running;
    lease = {
      metadata: { resourceVersion: '2' },
      spec: { holderIdentity: 'other', leaseDurationSeconds: 20 },
    };
    stop = new AbortController();
    const client = { get: async () => lease, patch: async () => lease } as unknown as ConstructorParameters<
      typeof LeaseHolder
    >[1]['client'];
    const parts = { client, clock, log, changed: () => undefined, history };
    const second = new LeaseHolder({ namespace: 'n', name: 'l', holder: 'factory' }, parts);
    log.lines.length = 0;
    running = second.run(stop.signal);
    await clock.advance(15_000);
    expect(second.isHeld).to.equal(false);
    expect(log.lines.map(({ facts }) => facts)).to.deep.equal([
      { why: 'another operator, factory other, holds the Lease n/l' },
    ]);
    // Unchanged for its whole duration, it counts as left.
    await clock.advance(10_000);
    expect(second.isHeld).to.equal(true);
  });

  it('knows that another operator holds the one that this factory held, as long as the server says so', async () => {
    await clock.advance(1000);
    const spec = { holderIdentity: 'other', leaseDurationSeconds: 3600 };
    lease = { metadata: { resourceVersion: '2', uid: 'held before' }, spec };
    await clock.advance(5000);
    expect([holder.isHeld, holder.isWithOther, changes]).to.deep.equal([false, true, [true, false]]);
    isAway = true;
    await clock.advance(20_000);
    expect([holder.isWithOther, changes.length]).to.deep.equal([false, 3]);
    isAway = false;
    lease = { metadata: { resourceVersion: '3', uid: 'of another cluster' }, spec };
    await clock.advance(5000);
    expect([holder.isHeld, holder.isWithOther]).to.deep.equal([false, false]);
  });

  it('is left to others at the end: they wait for seconds, and this factory for none', async () => {
    await clock.advance(1000);
    expect(lease.spec).to.include({ holderIdentity: 'factory', leaseDurationSeconds: 20 });
    stop.abort();
    await running;
    await holder.release();
    expect(holder.isHeld).to.equal(false);
    expect(lease.spec).to.include({ holderIdentity: 'factory', leaseDurationSeconds: 1 });
    await holder.release();
    stop = new AbortController();
    const client = {
      get: async () => lease,
      patch: async (_: string, patch: Lease) => (lease = { ...lease, ...patch }),
    } as unknown as ConstructorParameters<typeof LeaseHolder>[1]['client'];
    const parts = { client, clock, log, changed: () => undefined, history };
    const [same, other] = ['factory', 'other'].map(
      (name) => new LeaseHolder({ namespace: 'n', name: 'l', holder: name }, parts),
    );
    const left = lease;
    running = other?.run(stop.signal) ?? running;
    await clock.advance(4500);
    expect(other?.isHeld).to.equal(true);
    stop.abort();
    await running;
    lease = left;
    stop = new AbortController();
    running = same?.run(stop.signal) ?? running;
    await clock.settle();
    expect(same?.isHeld).to.equal(true);
  });

  it('is not given back where another operator has it by now', async () => {
    await clock.advance(1000);
    stop.abort();
    await running;
    const spec = { holderIdentity: 'other', leaseDurationSeconds: 20 };
    lease = { metadata: { resourceVersion: '2' }, spec };
    await holder.release();
    expect(lease.spec).to.deep.equal(spec);
  });
});

describe('the record of Leases', () => {
  const clock = new ManualClock();
  let text: string | undefined;
  let log: ReturnType<typeof recordingLog>;
  let latestMade: number;
  const opened = () => {
    const memory = memoryFor(
      async (written) => {
        text = written;
      },
      () => text,
    );
    return new LeaseHistory({ memory, clock, log }, async () => latestMade);
  };
  const first = { uid: 'a', knew: true, isRemade: false, renewedAt: NaN };

  beforeEach(() => {
    text = undefined;
    log = recordingLog();
    latestMade = -Infinity;
  });

  it('covers all from before where the Lease alone remembers, and nothing where that is of another', async () => {
    const upgraded = opened();
    await upgraded.note(first);
    expect(upgraded.covers(1)).to.equal(true);
    text = undefined;
    const fresh = opened();
    await fresh.note({ ...first, knew: false });
    expect([fresh.covers(clock.now() - 1), fresh.covers(clock.now())]).to.deep.equal([false, true]);
  });

  it('covers nothing of a time in which the Lease was not renewed by its own word, now and after later starts', async () => {
    await opened().note({ ...first, knew: false });
    const from = clock.now();
    await clock.advance(3_600_000);
    const until = clock.now();
    const renewedAt = from + 600_000;
    const covered = (history: LeaseHistory) =>
      [from, renewedAt, renewedAt + 119_999, renewedAt + 120_001, until - 1, until].map((at) =>
        history.covers(at),
      );
    const usual = opened();
    for (const at of [NaN, until - 5000]) {
      await usual.note({ ...first, renewedAt: at });
      expect(covered(usual)).to.deep.equal(Array(6).fill(true));
    }
    const restored = opened();
    await restored.note({ ...first, renewedAt });
    const expected = [true, true, true, false, false, true];
    expect(covered(restored)).to.deep.equal(expected);
    await clock.advance(1000);
    const again = opened();
    await again.note({ ...first, renewedAt: until });
    expect(covered(again)).to.deep.equal(expected);
    expect(again.covers(clock.now())).to.equal(true);
    // Once more, to a time before the first one.
    await clock.advance(3_600_000);
    const earlier = opened();
    await earlier.note({ ...first, renewedAt: from + 60_000 });
    expect(covered(earlier)).to.deep.equal([true, false, false, false, false, false]);
  });

  it('covers nothing that a clock which ran ahead dated later than now when a time began', async () => {
    const dated = clock.now() + 7_200_000;
    latestMade = dated;
    const begins: Readonly<Record<string, (history: LeaseHistory) => Promise<void>>> = {
      anew: async (history) => {
        await history.note({ ...first, knew: false });
        await history.beginAnew();
      },
      'with another Lease': async (history) => {
        await history.note({ ...first, uid: 'b' });
        await history.note(first);
      },
      'with a restart': async (history) => {
        await history.note({ ...first, knew: false });
        await opened().note(first);
      },
    };
    for (const [how, begin] of Object.entries(begins)) {
      text = undefined;
      await begin(opened());
      for (let starts = 0; starts < 2; starts++) {
        const again = opened();
        await again.note(first);
        expect(
          [dated, dated + 1].map((at) => again.covers(at)),
          how,
        ).to.deep.equal([false, true]);
      }
    }
  });

  it('covers nothing from before where a clock that ran ahead renewed the Lease last', async () => {
    await opened().note({ ...first, knew: false });
    const from = clock.now();
    await clock.advance(1_800_000);
    const restored = opened();
    await restored.note({ ...first, renewedAt: from + 7_200_000 });
    expect([from, clock.now() - 1, clock.now()].map((at) => restored.covers(at))).to.deep.equal([
      false,
      false,
      true,
    ]);
  });

  it('takes changes one after the other: none undoes one that came while it was written', async () => {
    const history = opened();
    await history.note(first);
    await clock.advance(1000);
    await Promise.all([history.beginAnew(), history.note({ ...first, uid: 'b', isRemade: true })]);
    expect(history.covers(clock.now() - 1)).to.equal(false);
  });

  it('goes on with a Lease that was deleted while it was held, and begins anew with any other', async () => {
    const history = opened();
    await history.note(first);
    await clock.advance(1000);
    await history.note({ ...first, uid: 'b', knew: false, isRemade: true });
    expect(history.covers(1)).to.equal(true);
    await history.note({ ...first, uid: 'c' });
    expect(history.covers(1)).to.equal(false);
    const again = opened();
    await again.note({ ...first, uid: 'b' });
    expect(again.covers(1)).to.equal(true);
  });

  it('knows the one that was held last, and begins anew also while another operator holds it', async () => {
    await opened().note({ ...first, knew: false });
    const restarted = opened();
    expect([await restarted.isLast('a'), await restarted.isLast('b')]).to.deep.equal([true, false]);
    const before = clock.now();
    await clock.advance(60_000);
    await restarted.beginAnew();
    expect(await restarted.isLast('a')).to.equal(true);
    await restarted.note({ ...first, renewedAt: clock.now() });
    expect([restarted.covers(before), restarted.covers(clock.now())]).to.deep.equal([false, true]);
  });

  it('begins anew where it cannot be read, covers nothing from before, and says so', async () => {
    for (const damaged of ['', '{}', '[{"uid":1}]']) {
      text = damaged;
      const history = opened();
      await history.note(first);
      expect(history.covers(clock.now() - 1)).to.equal(false);
      expect(log.lines.at(-1)?.facts).to.deep.equal({ file: 'leases.json' });
    }
  });
});
