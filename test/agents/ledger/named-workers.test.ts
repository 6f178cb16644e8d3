import { expect } from 'chai';
import type { FactoryEvents } from '../../../src/agents/events.ts';
import { type Change, Ledger } from '../../../src/agents/ledger/ledger.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { namedWorker, secretPayload } from '../../support/named-workers.ts';
import { workerOf } from '../../support/samples.ts';

const key = (uid: string) => ({ uid, index: 0 });
const payload = secretPayload('secret');

describe('the ledger, of workers that a source named', () => {
  let parts: AgentParts;
  let changed: number[][];
  let killed: number[][];
  let told: string[][];

  beforeEach(async () => {
    parts = await AgentParts.open();
    changed = [];
    killed = [];
    told = [];
    const ids = ({ workers }: FactoryEvents['killRequested']) => workers.map(({ workerId }) => workerId);
    parts.events.on('workersChanged', (event) => changed.push(ids(event)));
    parts.events.on('killRequested', (event) => killed.push(ids(event)));
    parts.events.on('newsWritten', ({ kinds }) => told.push([...kinds]));
  });
  afterEach(() => parts[Symbol.asyncDispose]());

  const change = (workerId: number, to: Change['to']) =>
    parts.ledger.change([{ workerId, to, source: 'test' }]);
  const lives = (...ids: readonly number[]) => ids.map((id) => parts.ledger.live.get(id) !== undefined);

  it('has those alone in memory that were recorded, and tells of no others', async () => {
    const recorded = await parts.ledger.intend([
      namedWorker(1, 'a'),
      namedWorker(2, 'a'),
      workerOf(3),
      namedWorker(4, 'b'),
    ]);
    expect([...recorded]).to.deep.equal([1, 3, 4]);
    expect(lives(1, 2, 3, 4)).to.deep.equal([true, false, true, true]);
    expect(changed).to.deep.equal([[1, 3, 4]]);
    expect([...(await parts.ledger.intend([namedWorker(5, 'a')]))]).to.deep.equal([]);
    expect(changed).to.have.length(1);
  });

  it('records one of two intents of an origin that come at the same moment', async () => {
    const both = await Promise.all([5, 6].map((id) => parts.ledger.intend([namedWorker(id, 'a')])));
    expect(both.map(({ size }) => size).toSorted()).to.deep.equal([0, 1]);
    expect(parts.ledger.live.size).to.equal(1);
  });

  it('records none whose origin ends between being wanted and being recorded', async () => {
    await parts.ledger.endOrigins('toy', [key('a')], 'no more');
    expect([...(await parts.ledger.intend([namedWorker(1, 'a'), namedWorker(2, 'b')]))]).to.deep.equal([2]);
  });

  it('knows of the end of a worker that is asked for in the moment in which it is recorded', async () => {
    for (let id = 1; id <= 20; id++) {
      const uid = `w${id}`;
      const [recorded, ended] = await Promise.all([
        parts.ledger.intend([namedWorker(id, uid)]),
        parts.ledger.endOrigins('toy', [key(uid)], 'no more'),
      ]);
      // Either the worker came first and is ended, or it never comes.
      expect(ended).to.equal(recorded.size);
      expect(parts.ledger.live.get(id)?.killed).to.equal(recorded.size === 1 ? true : undefined);
    }
  });

  it('ends living workers by their origins, once, and tells the sweepers', async () => {
    await parts.ledger.intend([namedWorker(1, 'a'), namedWorker(2, 'b')]);
    expect(await parts.ledger.endOrigins('toy', [key('a'), key('c')], 'no more')).to.equal(1);
    expect(await parts.ledger.endOrigins('toy', [key('a')], 'no more')).to.equal(0);
    expect(killed).to.deep.equal([[1]]);
    expect(parts.ledger.live.get(1)?.killed).to.equal(true);
    expect(parts.ledger.live.get(2)?.killed).to.equal(false);
  });

  it('adopts a worker whose origin was withdrawn, and has it ended', async () => {
    await parts.ledger.endOrigins('toy', [key('a')], 'no more');
    const recorded = await parts.ledger.adopt([namedWorker(1, 'a'), namedWorker(2, 'b')], 'submitted');
    expect([...recorded]).to.deep.equal([1, 2]);
    expect(killed).to.deep.equal([[1]]);
    expect([1, 2].map((id) => parts.ledger.live.get(id)?.killed)).to.deep.equal([true, false]);
  });

  it('does not adopt a second worker of an origin', async () => {
    await parts.ledger.intend([namedWorker(1, 'a')]);
    expect([...(await parts.ledger.adopt([namedWorker(2, 'a')], 'submitted'))]).to.deep.equal([]);
    expect(lives(1, 2)).to.deep.equal([true, false]);
  });

  it('tells that news were written, after they can be read, and only then', async () => {
    parts.store.news.listen(new Set(['toy']));
    const readable: Promise<number>[] = [];
    parts.events.on('newsWritten', () => {
      readable.push(parts.store.news.next('toy', 100).then(({ length }) => length));
    });
    await parts.ledger.intend([namedWorker(1, 'a')]);
    await change(1, 'running');
    await change(1, 'running');
    await parts.ledger.endOrigins('toy', [key('b')], 'no more');
    await change(1, 'finished');
    await parts.ledger.markSwept([1]);
    await parts.ledger.adopt([namedWorker(2, 'c')], 'submitted');
    expect(told).to.deep.equal(Array.from({ length: 7 }, () => ['toy']));
    expect(await Promise.all(readable)).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    // Others, and changes that are refused.
    await parts.ledger.intend([workerOf(3), namedWorker(4, 'a')]);
    await change(3, 'running');
    await change(1, 'running');
    await parts.ledger.endOrigins('toy', [key('b')], 'no more');
    expect(told).to.have.length(7);
  });

  it('writes no news where no source listens', async () => {
    await parts.ledger.intend([namedWorker(1, 'a')]);
    await change(1, 'finished');
    await parts.ledger.markSwept([1]);
    expect(told).to.deep.equal([]);
    expect(await parts.store.news.backlog()).to.deep.equal([]);
  });

  describe('with a payload', () => {
    const kept = async (...ids: readonly string[]) => [...(await parts.store.payloads.byIds(ids)).keys()];

    beforeEach(async () => {
      await parts.ledger.intend([
        namedWorker(1, 'a', { payload, payloadId: '1' }),
        namedWorker(2, 'b', { payload, payloadId: '1' }),
        namedWorker(3, 'c', { payload, payloadId: '3' }),
      ]);
    });

    it('wipes it with the change that takes the last worker out of pending', async () => {
      // A refused attempt leaves the worker pending: the next one needs the payload.
      await change(1, 'pending');
      await change(1, 'submitted');
      expect(await kept('1', '3')).to.deep.equal(['1', '3']);
      await change(2, 'missed');
      expect(await kept('1', '3')).to.deep.equal(['3']);
    });

    it('wipes it also where a monitor is faster than the answer to the submission', async () => {
      await change(3, 'running');
      expect(await kept('3')).to.deep.equal([]);
    });

    it('knows it again after a restart', async () => {
      const restarted = new Ledger(parts.store, parts.clock, parts.log, parts.events);
      await restarted.load();
      expect(restarted.live.payloadOf(3)).to.equal('3');
      await restarted.change([{ workerId: 3, to: 'submitted', source: 'test' }]);
      expect(await kept('1', '3')).to.deep.equal(['1']);
    });
  });
});
