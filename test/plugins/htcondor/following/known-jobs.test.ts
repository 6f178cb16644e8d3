import { expect } from 'chai';
import fc from 'fast-check';
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
  const rest = { queue: 'Q', configId: 1, ce: undefined, queuedAt: 0, identity: undefined, queued: true };
  return { id, workerId: 100 + proc, ad, ...rest };
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
        const happen = (kind: Kind, proc: number) => {
          const one = event(kind, proc, ++time);
          log.push(one);
          truth.set(proc, applyEvent(truth.get(proc) ?? {}, one));
        };
        const show = ({ id: { proc }, ad }: Job) => {
          expect(isOver(ad), 'nothing has ended that lives').to.equal(isOver(ad) && isOver(truth.get(proc)));
          shown.set(proc, ad);
        };
        const readOn = () => {
          known.apply(log.slice(read), none).forEach(show);
          read = log.length;
        };
        const query = () => {
          const living = [...truth].filter(([, ad]) => !isOver(ad)).map(([proc, ad]) => job(proc, ad));
          const queued = new Map(living.map((one) => [idOf(one.id.proc), one]));
          const left = [...(known.living ?? [])].filter(([id]) => !queued.has(id));
          living.forEach(show);
          for (const [, { id }] of left) show(job(id.proc, truth.get(id.proc) ?? {}));
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
