import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import fc from 'fast-check';
import { readEvents } from '../../../../src/clients/htcondor/event-log.ts';
import type { JobEvent } from '../../../../src/clients/htcondor/event-types.ts';
import { KnownJobs } from '../../../../src/plugins/htcondor/following/known-jobs.ts';
import type { Job } from '../../../../src/plugins/htcondor/marks.ts';
import { applyEvent } from '../../../../src/plugins/htcondor/state/events.ts';
import type { JobAd } from '../../../../src/plugins/htcondor/state/types.ts';

const kinds = [
  'execute',
  'held',
  'released',
  'evicted',
  'suspended',
  'unsuspended',
  'terminated',
  'aborted',
] as const;
type Kind = 'submit' | (typeof kinds)[number];

function event(kind: Kind, proc = 0, time = 0): JobEvent {
  const head = { cluster: 1, proc, time: time * 1000 };
  if (kind === 'terminated') return { ...head, kind, end: { exitCode: 0 } };
  if (kind === 'evicted') return { ...head, kind, requeued: false };
  return { ...head, kind };
}

function job(proc: number, ad: JobAd): Job {
  const id = { cluster: 1, proc };
  const rest = { owner: undefined, ce: undefined, queuedAt: 0, identity: undefined, queued: true };
  return { id, workerId: 100 + proc, queue: 'Q', configId: 1, ad, ...rest };
}

const idOf = (proc: number) => `1.${proc}`;
const none: ReadonlyMap<string, Job> = new Map();
const isOver = (ad: JobAd | undefined) => ad?.JobStatus === 3 || ad?.JobStatus === 4;

describe('jobs that are followed by queries and by a log', () => {
  it('hole 8: keep the end of one that many others followed, until it is asked for', () => {
    const known = new KnownJobs();
    known.apply([event('submit', 0), event('terminated', 0)], none);
    for (let proc = 1; proc <= 90_000; proc++) known.apply([event('submit', proc)], none);
    expect(known.adOf(idOf(0))?.JobStatus).to.equal(4);
    for (let proc = 90_001; proc <= 250_000; proc++) known.apply([event('submit', proc)], none);
    expect(known.adOf(idOf(0)), 'not for ever').to.equal(undefined);
    expect(known.adOf(idOf(200_000))?.JobStatus).to.equal(1);
  });

  it('hole 8: have of each text of the log as much as tells what is shown', () => {
    const known = new KnownJobs();
    known.see(new Map([['1.0', job(0, { JobStatus: 1 })]]), [], new Set(['1.0']));
    const long = 'é'.repeat(5000);
    for (const proc of [0, 1]) {
      const head = { cluster: 1, proc, time: 0 };
      known.apply([{ ...head, kind: 'execute', slot: `slot1@${long}` }], none);
      known.apply([{ ...head, kind: 'held', reason: long }], none);
      const ad = known.living?.get(idOf(proc))?.ad ?? known.adOf(idOf(proc));
      expect(ad?.HoldReason).to.equal(long.slice(0, 1501));
      expect(ad?.RemoteHost).to.have.length(1501);
      known.apply([{ ...head, kind: 'aborted', reason: long }], none);
      const ended = known.endOf(idOf(proc))?.ad ?? known.adOf(idOf(proc));
      expect(ended?.RemoveReason).to.equal(long.slice(0, 1501));
      expect(ended?.LastHoldReason).to.equal(long.slice(0, 1501));
    }
  });

  it('hole 8: do not keep the records of the log that their texts came from', () => {
    const known = new KnownJobs();
    const count = 100;
    const record = (proc: number) =>
      `012 (1.${proc}.000) 2026-11-21 19:40:42 Job was held.\n\ta reason that is long enough\n\tCode 1 Subcode 0\n\t${String(proc).padEnd(900_000, 'x')}\n...\n`;
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let proc = 0; proc < count; proc++)
      known.apply(readEvents(Buffer.from(record(proc)), 0).events, none);
    collect();
    expect(process.memoryUsage().heapUsed - before).to.be.lessThan((count * 900_000) / 10);
    expect(known.adOf(idOf(count - 1))?.HoldReason).to.equal('a reason that is long enough');
  });

  it('hole 8: of others keep the reasons of the last ones, and of all what became of them', () => {
    const known = new KnownJobs();
    const reason = 'x'.repeat(5000);
    const count = 100_000;
    for (let proc = 0; proc < count; proc++)
      known.apply([{ cluster: 1, proc, time: 0, kind: 'held', reason, code: 13 }], none);
    let text = 0;
    for (let proc = 0; proc < count; proc++) {
      const { JobStatus, HoldReasonCode, HoldReason = '' } = known.adOf(idOf(proc)) ?? {};
      if (JobStatus !== 5 || HoldReasonCode !== 13) throw new Error(`${proc} is not held`);
      text += HoldReason.length;
    }
    expect(text).to.be.within(1_000_000, 16 * 1024 * 1024);
    expect(known.adOf(idOf(count - 1))?.HoldReason).to.have.length(1501);
    expect(known.adOf(idOf(0))).to.not.have.property('HoldReason');
    const fresh = new Map([[idOf(count - 1), job(count - 1, { JobStatus: 1 })]]);
    known.see(none, [], new Set());
    expect(known.apply([], fresh)[0]?.ad.HoldReason).to.have.length(1501);
  });

  it('are other ones if their numbers are given again after their ends, and the same if the log is read again', () => {
    for (const together of [false, true]) {
      const known = new KnownJobs();
      known.see(new Map([['1.0', job(0, { JobStatus: 2 })]]), [], new Set(['1.0']));
      const tell = (events: JobEvent[]) =>
        together ? known.apply(events, none) : events.flatMap((one) => known.apply([one], none));
      expect(tell([event('submit', 0, 10), event('terminated', 0, 20)]).at(-1)?.ad.JobStatus).to.equal(4);
      expect(tell([event('submit', 0, 10), event('execute', 0, 15)])).to.deep.equal([]);
      expect(known.endOf('1.0')?.workerId).to.equal(100);
      const before = known.apply([event('submit', 0, 40)], none);
      expect(known.endOf('1.0')).to.equal(undefined);
      // The queue cannot agree with that end any more: the number is that of another job.
      expect(before.map(({ workerId, ad }) => [workerId, ad.JobStatus])).to.deep.equal([[100, 4]]);
      const fresh = new Map([['1.0', { ...job(0, { JobStatus: 1 }), workerId: 7 }]]);
      const [seen, ...rest] = known.apply([event('execute', 0, 50)], fresh);
      expect([seen?.workerId, seen?.ad.JobStatus, seen?.queued, rest]).to.deep.equal([7, 2, true, []]);
      // An end and a new job in one reading.
      const both = known.apply([event('terminated', 0, 60), event('submit', 0, 70)], none);
      expect(both.map(({ workerId, ad }) => [workerId, ad.JobStatus])).to.deep.equal([[7, 4]]);
      expect([known.endOf('1.0'), known.living?.get('1.0')]).to.deep.equal([undefined, undefined]);
      expect(known.adOf('1.0')?.JobStatus).to.equal(1);
    }
  });

  it('are the same if the log, which counts in milliseconds, has the submission in the second of the end', () => {
    const known = new KnownJobs();
    known.see(new Map([['1.0', job(0, { JobStatus: 2 })]]), [], new Set(['1.0']));
    known.apply([event('terminated', 0, 20.2)], none);
    known.apply([event('submit', 0, 20.7)], none);
    expect(known.endOf('1.0')?.workerId).to.equal(100);
    known.apply([event('submit', 0, 21)], none);
    expect(known.endOf('1.0')).to.equal(undefined);
  });

  it('are in the end as they are, however queries and readings fall between what happens', () => {
    const procs = 3;
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ proc: fc.nat(procs - 1), kind: fc.constantFrom(...kinds) }) },
      { weight: 2, arbitrary: fc.constant('read' as const) },
      { weight: 2, arbitrary: fc.constant('query' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const known = new KnownJobs();
        const truth = new Map<number, JobAd>();
        const log: JobEvent[] = [];
        const shown = new Map<number, JobAd>();
        let [read, time] = [0, 0];
        /** Of these the queue has shown that they are over: nothing comes after that. */
        const gone = new Set<number>();
        const happen = (kind: Kind, proc: number) => {
          if (gone.has(proc) || (isOver(truth.get(proc)) && kind !== 'execute')) return;
          const one = event(kind, proc, ++time);
          log.push(one);
          truth.set(proc, applyEvent(truth.get(proc) ?? {}, one));
        };
        const show = ({ id: { proc }, ad }: Job) => {
          expect(isOver(ad), 'nothing has ended that lives').to.equal(isOver(ad) && isOver(truth.get(proc)));
          shown.set(proc, ad);
        };
        const readOn = () => {
          // An end is no verdict before the queue agrees.
          for (const one of known.apply(log.slice(read), none))
            if (known.endOf(idOf(one.id.proc)) !== one) show(one);
          read = log.length;
        };
        const query = () => {
          const living = [...truth].filter(([, ad]) => !isOver(ad)).map(([proc, ad]) => job(proc, ad));
          const queued = new Map(living.map((one) => [idOf(one.id.proc), one]));
          const left = [...(known.living ?? [])].filter(([id]) => !queued.has(id));
          living.forEach(show);
          for (const [, { id }] of left) show(job(id.proc, truth.get(id.proc) ?? {}));
          for (const [id, one] of known.ended) if (!queued.has(id)) show(one);
          for (const [proc, ad] of truth) if (isOver(ad)) gone.add(proc);
          known.see(
            queued,
            left.map(([id]) => id),
            new Set(queued.keys()),
          );
        };
        for (let proc = 0; proc < procs; proc++) happen('submit', proc);
        query();
        for (const one of steps) {
          if (one === 'read') readOn();
          else if (one === 'query') query();
          else happen(one.kind, one.proc);
        }
        readOn();
        query();
        for (const [proc, ad] of truth)
          expect(shown.get(proc)?.JobStatus, String(proc)).to.equal(ad.JobStatus);
      }),
      { numRuns: 1000 },
    );
  });

  it('count also where they begin and end before anybody knows whose they are', () => {
    const known = new KnownJobs();
    known.see(none, [], new Set());
    expect(
      known.apply([event('submit'), event('execute', 0, 5), event('terminated', 0, 6)], none),
    ).to.deep.equal([]);
    expect(known.adOf('1.0')).to.include({ JobStatus: 4, ExitCode: 0 });
    const fresh = new Map([['1.0', job(0, { JobStatus: 1 })]]);
    const [ended, ...more] = known.apply([], fresh);
    expect(more).to.deep.equal([]);
    expect(ended).to.deep.include({ workerId: 100 });
    expect(ended?.ad).to.include({ JobStatus: 4, ExitCode: 0 });
    expect(known.endOf('1.0')).to.equal(ended);
    expect(known.apply([], fresh)).to.deep.equal([]);
  });

  it('are forgotten once the queue does not have them any more', () => {
    const known = new KnownJobs();
    const queued = new Map([['1.0', job(0, { JobStatus: 2 })]]);
    known.see(queued, [], new Set(['1.0']));
    known.apply([event('terminated')], none);
    // The schedd is slower than the log.
    known.see(none, [], new Set(['1.0']));
    expect(known.endOf('1.0')?.ad.JobStatus).to.equal(4);
    known.see(none, [], new Set());
    expect(known.endOf('1.0')).to.equal(undefined);
  });

  it('are not those that had their number before', () => {
    const known = new KnownJobs();
    known.see(none, [], new Set());
    known.apply([event('submit'), event('execute'), event('terminated')], none);
    known.apply([event('submit', 0, 10), event('execute', 0, 11)], none);
    const [started] = known.apply([], new Map([['1.0', job(0, { JobStatus: 1 })]]));
    expect(started?.ad).to.include({ JobStatus: 2 }).and.not.have.property('ExitCode');
  });

  describe('trust the log', () => {
    const running = new Map([['1.0', job(0, { JobStatus: 2 })]]);
    const held = new Map([['1.0', job(0, { JobStatus: 5 })]]);
    const queued = new Set(['1.0']);
    let known: KnownJobs;
    beforeEach(() => {
      known = new KnownJobs();
      known.see(new Map([['1.0', job(0, { JobStatus: 1 })]]), [], queued);
    });

    it('only after it told something', () => {
      expect(known.logIsTrusted).to.equal(false);
      known.apply([event('execute')], none);
      expect(known.logIsTrusted).to.equal(true);
    });

    it('though a query was quicker', () => {
      known.apply([event('execute')], none);
      known.see(held, [], queued);
      known.apply([event('held')], none);
      known.see(held, [], queued);
      expect(known.logIsTrusted).to.equal(true);
    });

    it('no more for a while, if a query says what the log keeps silent about', () => {
      known.apply([event('execute')], none);
      known.see(held, [], queued);
      known.see(held, [], queued);
      expect(known.logIsTrusted).to.equal(false);
      for (let times = 0; times < 10; times++) known.see(held, [], queued);
      expect(known.logIsTrusted).to.equal(true);
    });

    it('no more for a while, if a job left without a word', () => {
      known.apply([event('execute')], none);
      known.see(running, [], queued);
      known.see(none, ['1.0'], new Set());
      known.see(none, [], new Set());
      expect(known.logIsTrusted).to.equal(false);
    });
  });
});
