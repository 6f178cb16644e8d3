import { expect } from 'chai';
import { type DeskParts, SourceDesk } from '../../../src/agents/sources/desk.ts';
import type { LogReader } from '../../../src/plugins/contracts/index.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import type { OriginKey } from '../../../src/worker/news.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { workerOf, ownQueue } from '../../support/samples.ts';

const reader: LogReader = {
  async *read({ workerId }, { stream }) {
    yield Buffer.from(`${stream} of ${workerId}`);
  },
};
const logRequest = { stream: 'stderr', follow: false } as const;
const never = new AbortController().signal;

describe('the desk of a source', () => {
  let parts: AgentParts;
  let desk: SourceDesk;
  let woken: string[];

  beforeEach(async () => {
    parts = await AgentParts.open();
    woken = [];
    desk = deskOf('toy');
    const workers = [
      workerOf(1, { origin: { kind: 'toy', uid: 'job', index: 0 } }),
      workerOf(2, { origin: { kind: 'toy', uid: 'job', index: 1 } }),
      workerOf(3, { origin: { kind: 'other', uid: 'job', index: 0 } }),
    ];
    await parts.ledger.intend(workers);
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  function deskOf(kind: string, changes: Partial<DeskParts> = {}): SourceDesk {
    return new SourceDesk(kind, {
      ...parts.context,
      queues: () => ['Q'],
      queuesOf: (source) => [ownQueue(source)],
      reasonsOf: (queue) => (queue === 'NONE' ? undefined : [{ code: 'paused', message: queue }]),
      unlistedOf: (queue) =>
        queue === 'Q' ? undefined : { code: 'not-listed', message: 'api_key=0123456789abcdef01 was refused' },
      wakeSubmitter: (queue) => woken.push(queue),
      logsOf: async () => reader,
      outputsOf: async () => undefined,
      ...changes,
    });
  }
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => 'nothing',
      (error: unknown) => (error instanceof ThresherError ? error.code : 'untyped'),
    );

  it('wakes the submitter of a queue', () => {
    desk.wake('Q');
    expect(woken).to.deep.equal(['Q']);
  });

  it('passes on that workers end now', () => {
    const told: number[] = [];
    parts.events.on('endsExpected', ({ workerIds }) => told.push(...workerIds));
    desk.expectEnd([]);
    desk.expectEnd([1, 2]);
    expect(told).to.deep.equal([1, 2]);
  });

  it('lets the traces of ended workers of a uid be removed, and counts those that live or left something', async () => {
    const woken: number[] = [];
    parts.events.on('killRequested', ({ workers }) => woken.push(...workers.map(({ workerId }) => workerId)));
    await parts.ledger.change([{ workerId: 1, to: 'failed', source: 'test' }]);
    expect(await desk.discard('job')).to.equal(2);
    expect([...parts.ledger.discarded]).to.deep.equal([1]);
    expect(woken).to.deep.equal([1]);
    await parts.ledger.markSwept([1]);
    expect(await desk.discard('job')).to.equal(1);
    expect(await desk.discard('other')).to.equal(0);
    expect(await codeOf(desk.discard(''))).to.equal('request-refused');
  });

  it('hole 6: tells what is discarded from what nobody wants an output of either', async () => {
    await parts.ledger.change([{ workerId: 1, to: 'failed', source: 'test' }]);
    await desk.discard('job');
    expect([...parts.ledger.unwanted]).to.deep.equal([]);
    await desk.discard('job', true);
    expect([...parts.ledger.discarded, ...parts.ledger.unwanted]).to.deep.equal([1, 1]);
  });

  it('says why a discarded worker is not gone, and of no other', async () => {
    await parts.ledger.change([{ workerId: 1, to: 'failed', source: 'test' }]);
    expect(desk.whyLeft(1)).to.equal(undefined);
    await desk.discard('job');
    expect(desk.whyLeft(1)).to.have.property('code', 'sweep-awaited');
    expect(desk.whyLeft(2)).to.equal(undefined);
    const message = 'api_key=0123456789abcdef01 was refused';
    parts.ledger.whyLeft.set(1, { code: 'plugin-failed', message });
    expect(desk.whyLeft(1)?.message).to.equal('api_key=(hidden) was refused');
  });

  it('ends a worker that lives, and withdraws an origin that has none: it never gets one', async () => {
    const asked: number[] = [];
    parts.events.on('killRequested', ({ workers }) => asked.push(...workers.map(({ workerId }) => workerId)));
    await desk.end(
      [
        { uid: 'job', index: 0 },
        { uid: 'job', index: 9 },
      ],
      'not needed',
    );
    expect(asked).to.deep.equal([1]);
    expect(parts.ledger.live.get(1)?.killed).to.equal(true);
    const late = workerOf(9, { origin: { kind: 'toy', uid: 'job', index: 9 } });
    expect([...(await parts.ledger.intend([late]))]).to.deep.equal([]);
  });

  it('withdraws what has no worker, and ends none, also of one whose worker comes to light later', async () => {
    parts.store.news.listen(new Set(['toy']));
    const kinds: string[] = [];
    parts.events.on('newsWritten', (written) => kinds.push(...written.kinds));
    const asked: number[] = [];
    parts.events.on('killRequested', ({ workers }) => asked.push(...workers.map(({ workerId }) => workerId)));
    const origins = [0, 8, 9].map((index) => ({ uid: 'job', index }));
    await desk.withdraw(origins);
    expect(kinds).to.deep.equal(['toy']);
    const late = [8, 9].map((id) => workerOf(id, { origin: { kind: 'toy', uid: 'job', index: id } }));
    expect([...(await parts.ledger.intend(late))]).to.deep.equal([]);
    await parts.ledger.adopt(late.slice(1), 'submitted');
    expect([1, 9].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([false, false]);
    expect(asked).to.deep.equal([]);
    // What is to end by a later word ends.
    await desk.end(origins, 'a command');
    expect(asked).to.have.members([1, 9]);
    await parts.ledger.adopt(late.slice(0, 1), 'submitted');
    expect(parts.ledger.live.get(8)?.killed).to.equal(true);
    expect(await codeOf(desk.withdraw([{ uid: '', index: 0 }]))).to.equal('request-refused');
  });

  it('says of which queue not all workers are known, without secrets', () => {
    expect(desk.unlisted('Q')).to.equal(undefined);
    expect(desk.unlisted('R')).to.deep.equal({ code: 'not-listed', message: 'api_key=(hidden) was refused' });
  });

  it('ends nothing of another source', async () => {
    await deskOf('other').end([{ uid: 'job', index: 1 }], 'x');
    expect(parts.ledger.live.get(2)?.killed).to.equal(false);
  });

  it('tells of withdrawn origins by news', async () => {
    parts.store.news.listen(new Set(['toy']));
    const kinds: string[] = [];
    parts.events.on('newsWritten', (written) => kinds.push(...written.kinds));
    await desk.end([{ uid: 'job', index: 9 }], 'x');
    expect(kinds).to.deep.equal(['toy']);
  });

  it('finds its own workers by origin, and by uid alone', async () => {
    const found = async (index?: number) =>
      (await desk.find([index === undefined ? { uid: 'job' } : { uid: 'job', index }])).map(
        ({ worker }) => worker.workerId,
      );
    expect(await found(1)).to.deep.equal([2]);
    expect(await found()).to.deep.equal([1, 2]);
  });

  it('shows its living workers, and those alone', async () => {
    await parts.ledger.change([{ workerId: 2, to: 'missed', source: 'test' }]);
    const living = await desk.living();
    expect(living.map(({ worker }) => worker.workerId)).to.deep.equal([1]);
    expect(living[0]).to.deep.include({ what: 'known', queue: 'Q', origin: { uid: 'job', index: 0 } });
  });

  it('tells which workers of the factory live, those of other sources among them', async () => {
    await parts.ledger.change([{ workerId: 2, to: 'missed', source: 'test' }]);
    expect([...(await desk.alive([1, 2, 3, 99]))].toSorted()).to.deep.equal([1, 3]);
    expect([...(await desk.alive([]))]).to.deep.equal([]);
  });

  it('counts its workers, and those that a site got after a count', async () => {
    await parts.ledger.change([{ workerId: 2, to: 'missed', source: 'test' }]);
    const census = await desk.census();
    const { resourceType } = workerOf(1).requirements;
    expect(census).to.deep.include({ at: parts.clock.now(), upTo: 3 });
    expect(census.living).to.deep.equal([
      { queue: 'Q', computingSite: 'Q', resourceType, jobType: 'managed', status: 'pending', workers: 1 },
    ]);
    expect(await desk.madeSince('Q', census)).to.deep.equal(new Map());
    const later = (id: number, queue: string) =>
      workerOf(id, { queue, origin: { kind: 'toy', uid: 'later', index: id } });
    await parts.ledger.intend([later(4, 'Q'), later(5, 'Q'), later(6, 'OTHER')]);
    await parts.ledger.change([{ workerId: 5, to: 'missed', source: 'test' }]);
    expect(await desk.madeSince('Q', census)).to.deep.equal(new Map([[resourceType, 2]]));
    expect(await desk.madeSince('Q', { at: 0, upTo: 0 }), 'all').to.deep.equal(new Map([[resourceType, 4]]));
  });

  it('counts thousands in pieces', async () => {
    const ids = Array.from({ length: 4500 }, (_, index) => index + 4);
    const workers = ids.map((id) => workerOf(id, { origin: { kind: 'toy', uid: 'many', index: id } }));
    await parts.ledger.intend(workers);
    const made = async (at: number, upTo: number) => [...(await desk.madeSince('Q', { at, upTo })).values()];
    const now = parts.clock.now();
    expect([await made(0, 0), await made(now, 3), await made(now, 4000)]).to.deep.equal([
      [4502],
      [4500],
      [503],
    ]);
  });

  it('counts an adopted worker as one that came after the count, though its id is old', async () => {
    const census = await desk.census();
    await parts.clock.advance(1);
    // Below those that the census saw.
    const adopted = workerOf(3, { workerId: 0, name: 'old', origin: { kind: 'toy', uid: 'old', index: 0 } });
    await parts.ledger.adopt([adopted], 'submitted');
    expect([...(await desk.madeSince('Q', census)).values()]).to.deep.equal([1]);
  });

  it('takes an id above all of its own for none, in a count and since one', async () => {
    const stray = workerOf(99_000_000_001, { origin: { kind: 'toy', uid: 'stray', index: 0 } });
    await parts.ledger.adopt([stray], 'submitted');
    const census = await desk.census();
    expect(census.upTo).to.equal(3);
    await parts.clock.advance(1);
    await parts.ledger.intend([workerOf(4, { origin: { kind: 'toy', uid: 'later', index: 0 } })]);
    const made = async (upTo: number) => [...(await desk.madeSince('Q', { at: census.at, upTo })).values()];
    // A count that an older release kept.
    expect([await made(3), await made(99_000_000_001)]).to.deep.equal([[1], [1]]);
  });

  it('counts what is queued, whichever source asked for it', async () => {
    expect(await desk.queued('Q')).to.equal(3);
    expect(await desk.queued('NONE')).to.equal(0);
  });

  it('names the queues whose own source it is', () => {
    expect(desk.ownQueues()).to.deep.equal([ownQueue('toy')]);
  });

  it('reads the log of its own worker, and of no other', async () => {
    const pieces = await desk.logs(1, logRequest, never);
    for await (const piece of pieces) expect(String(piece)).to.equal('stderr of 1');
    for (const id of [3, 99, 0, NaN])
      expect(await codeOf(desk.logs(id, logRequest, never)), String(id)).to.equal('no-such-worker');
  });

  it('says why the queue gets no more, why a request waits, and that a queue does not exist', () => {
    const origin: OriginKey = { uid: 'job', index: 7 };
    const reason = { code: 'max-workers', message: 'm' };
    const requests = [{ origin }];
    parts.waiting.set('Q', { why: [{ kind: 'toy', requests, reason }], counts: new Map([['toy', 1]]) });
    const codes = (queue: string, of?: OriginKey) => desk.reasons(queue, of).map(({ code }) => code);
    expect(codes('Q')).to.deep.equal(['paused']);
    expect(codes('Q', origin)).to.deep.equal(['max-workers']);
    expect(codes('Q', { uid: 'job', index: 8 })).to.deep.equal([]);
    expect(codes('NONE', origin)).to.deep.equal(['no-such-queue']);
    expect(codes('REFUSED', origin), 'a queue with errors').to.deep.equal(['paused']);
    expect(deskOf('other').reasons('Q', origin)).to.deep.equal([]);
  });

  it('hole 3: says why a request waits without the secrets that a plugin says', () => {
    const reason = { code: 'max-workers', message: 'at https://user:pa55word-of-it@host/' };
    const origin: OriginKey = { uid: 'job', index: 7 };
    parts.waiting.set('Q', { why: [{ kind: 'toy', requests: [{ origin }], reason }], counts: new Map() });
    const [shown] = desk.reasons('Q', origin);
    expect(shown?.message).to.include('https://').and.not.include('pa55word');
  });

  it('refuses an origin that is none, with a code', async () => {
    const wrong = { uid: 'u'.repeat(600), index: 0 };
    expect(await codeOf(desk.end([wrong], 'x'))).to.equal('request-refused');
    expect(await codeOf(desk.find([{ uid: '' }]))).to.equal('request-refused');
  });

  for (const [what, uid] of Object.entries({ empty: '', long: 'u'.repeat(600) }))
    it(`hole 8: works with a stored worker whose uid is ${what}, and with all others beside it`, async () => {
      const odd = { uid, index: 0 };
      const sound = { uid: 'sound', index: 0 };
      await parts.ledger.adopt([workerOf(70, { origin: { kind: 'toy', ...odd } })], 'submitted');
      await parts.ledger.intend([workerOf(71, { origin: { kind: 'toy', ...sound } })]);
      const living = (await desk.living()).filter(({ worker: { workerId } }) => Number(workerId) >= 70);
      expect((await desk.find(living.map(({ origin }) => origin))).length).to.equal(2);
      await desk.end(
        living.map(({ origin }) => origin),
        'x',
      );
      expect([70, 71].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([true, true]);
      expect(await desk.discard(uid)).to.equal(1);
      // It has ended meanwhile.
      await parts.ledger.change([{ workerId: 70, to: 'failed', source: 'test' }]);
      await desk.end([odd, { uid: 'later', index: 0 }], 'x');
    });

  it('gives a failure of the database its code', async () => {
    await parts.store.close();
    parts.store.close = async () => undefined;
    expect(await codeOf(desk.find([{ uid: 'job' }]))).to.not.equal('untyped');
    expect(await codeOf(desk.census())).to.not.equal('untyped');
    expect(await codeOf(desk.queued('Q'))).to.not.equal('untyped');
    expect(await codeOf(desk.logs(1, logRequest, never))).to.not.equal('untyped');
    expect(await codeOf(desk.end([{ uid: 'job', index: 0 }], 'x'))).to.not.equal('untyped');
  });
});
