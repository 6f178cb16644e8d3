/** What is known of a HTCJob may be old, or wrong: it is read again before anything of it is ended or deleted. */
import { expect } from 'chai';
import type { HtcJobSpec, HtcJobStatus } from '../../../src/clients/htcjob/resource.ts';
import type { Tracked } from '../../../src/sources/htcjob/tracked.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { askedOf, newsOf, StepperSite } from '../../support/htcjob-stepper.ts';

const uid = 'uid-of-zero';
const startTime = '2026-01-01T00:00:00Z';
const claimed: HtcJobStatus = {
  uniqId: uid,
  factory: 'factory',
  active: 1,
  succeeded: 0,
  failed: 0,
  startTime,
};
const finished: HtcJobStatus = {
  ...claimed,
  active: 0,
  held: 0,
  succeeded: 1,
  completedIndexes: '0',
  completionTime: startTime,
};
const suspended = {
  type: 'Suspended',
  status: 'True',
  reason: 'JobSuspended',
  message: '',
  lastTransitionTime: startTime,
} as const;
const deleted = { deletionTimestamp: startTime };

interface Act {
  readonly what: string;
  readonly status: HtcJobStatus;
  /** As it is known. */
  readonly known: Partial<HtcJobSpec>;
  readonly metadata?: { readonly deletionTimestamp: string };
  /** As the server has it. */
  readonly real: Partial<HtcJobSpec>;
  /** What is asked of the server, and why the job is ended, where what is known is true. */
  readonly asked: readonly string[];
  readonly ended: readonly string[];
}

const acts: readonly Act[] = [
  {
    what: 'whose ttlSecondsAfterFinished was raised',
    status: finished,
    known: { ttlSecondsAfterFinished: 60 },
    real: { ttlSecondsAfterFinished: 1_000_000 },
    asked: ['delete'],
    ended: [],
  },
  {
    what: 'whose ttlSecondsAfterFinished was taken out',
    status: finished,
    known: { ttlSecondsAfterFinished: 60 },
    real: {},
    asked: ['delete'],
    ended: [],
  },
  {
    what: 'whose activeDeadlineSeconds were raised',
    status: claimed,
    known: { activeDeadlineSeconds: 60 },
    real: { activeDeadlineSeconds: 1_000_000 },
    asked: ['status Running'],
    ended: ['the activeDeadlineSeconds of HTCJob default/zero are over'],
  },
  {
    what: 'that was resumed',
    status: { ...claimed, round: 1, conditions: [suspended] },
    known: { suspend: true },
    real: {},
    asked: ['status Suspended'],
    ended: ['HTCJob default/zero is suspended'],
  },
  {
    what: 'that was not deleted',
    status: claimed,
    known: {},
    metadata: deleted,
    real: {},
    asked: ['finalizer'],
    ended: ['HTCJob default/zero was deleted'],
  },
  {
    what: 'that was not deleted, and has finished',
    status: finished,
    known: {},
    metadata: deleted,
    real: {},
    asked: ['finalizer'],
    ended: [],
  },
];

describe('a step of a HTCJob of which old or wrong things are known', () => {
  let site: StepperSite;

  beforeEach(() => {
    site = new StepperSite();
  });

  /** A minute and more after what is known of it came. */
  async function track({ known, status, metadata }: Act): Promise<Tracked> {
    site.found = [newsOf(uid, 0, status === finished ? 'finished' : 'running', 0)];
    const tracked = site.track(htcJob(known), status, metadata);
    tracked.untilDeadline(site.clock.now(), site.clock.monotonic());
    tracked.untilEndOfLife(site.clock.now(), site.clock.monotonic());
    await site.clock.advance(61_000);
    return tracked;
  }

  const fails = (tracked: Tracked) =>
    site.step(tracked).then(
      () => expect.fail('it did not wait'),
      () => undefined,
    );
  const reasons = () => site.ended.map(([, why]) => why);

  for (const act of acts) {
    const { what, status, known, metadata, real, asked, ended } = act;
    it(`ends and deletes nothing of one ${what} meanwhile`, async () => {
      const tracked = await track(act);
      site.object(htcJob(real), status);
      expect(await site.step(tracked)).to.equal(0);
      await site.step(tracked);
      expect(reasons()).to.deep.equal([]);
      expect(site.asked.filter((one) => one !== 'status Running')).to.deep.equal([]);
      expect(site.reads).to.deep.equal(['zero']);
    });

    it(`ends and deletes nothing of one ${what} perhaps, while the server gives no answer, and does so then after one read`, async () => {
      const tracked = await track(act);
      site.readFails = true;
      await fails(tracked);
      await fails(tracked);
      expect([reasons(), site.asked]).to.deep.equal([[], []]);
      site.readFails = false;
      site.reads.length = 0;
      await site.step(tracked);
      expect([reasons(), site.asked, site.reads]).to.deep.equal([ended, asked, ['zero']]);
    });

    it(`does not end or delete one ${what} where another one has its name`, async () => {
      const tracked = await track(act);
      site.object(htcJob({ ...known }, 'zero', 'uid-of-another'), status, metadata);
      await site.step(tracked);
      expect(site.asked).to.deep.equal([]);
      expect(tracked.isGone).to.equal(true);
    });
  }

  for (const [what, spec, later] of [
    ['of one that is suspended', {}, { suspend: true }],
    ['after activeDeadlineSeconds', { activeDeadlineSeconds: 60 }, undefined],
  ] as const)
    it(`begins no job that was asked for ${what} while the server gives no answer to the read before its jobs end`, async () => {
      const tracked = site.track(htcJob({ queue: 2, ...spec }));
      await site.step(tracked);
      tracked.hear(newsOf(uid, 0, 'running'));
      await site.step(tracked);
      expect(askedOf(tracked)).to.deep.equal([1]);
      await site.clock.advance(61_000);
      tracked.status = { ...tracked.status, startTime };
      if (later !== undefined) tracked.update(site.object(htcJob({ queue: 2, ...later }), tracked.status));
      site.readFails = true;
      await site.step(tracked).catch(() => undefined);
      if (later !== undefined) await fails(tracked);
      expect([reasons(), askedOf(tracked)]).to.deep.equal([[], []]);
    });

  it('begins no job of one that is suspended while the server does not take its status', async () => {
    const tracked = site.track(htcJob({ queue: 2 }));
    await site.step(tracked);
    tracked.hear(newsOf(uid, 0, 'running'));
    await site.step(tracked);
    tracked.update(site.object(htcJob({ queue: 2, suspend: true }), tracked.status));
    site.meanwhile = () => {
      throw new Error('no answer');
    };
    await fails(tracked);
    expect(askedOf(tracked)).to.deep.equal([]);
  });

  it('deletes the version alone that was read', async () => {
    const [act] = acts;
    const tracked = await track(act!);
    await site.step(tracked);
    const { resourceVersion } = tracked.meta;
    expect(site.deletions).to.deep.equal([{ uid, resourceVersion }]);
  });

  it('reads one that was deleted once, however long it waits for its jobs', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    site.left = 1;
    const tracked = site.track(htcJob(), claimed, deleted);
    for (let turn = 0; turn < 20; turn++) {
      await site.step(tracked);
      await site.clock.advance(500);
    }
    expect(site.reads).to.deep.equal(['zero']);
    site.left = 0;
    await site.step(tracked);
    expect([site.reads, site.asked.at(-1)]).to.deep.equal([['zero'], 'finalizer']);
  });

  it('ends no job of one that the watch says was deleted, and a list is without, while the server has it', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    const tracked = site.track(htcJob(), claimed, deleted);
    Object.assign(tracked, { isGone: true, isMissing: true });
    site.object(htcJob(), claimed);
    expect(await site.step(tracked)).to.equal(0);
    await site.step(tracked);
    expect([reasons(), tracked.isForgotten, tracked.isDeleting]).to.deep.equal([[], false, false]);
  });
});
