import { expect } from 'chai';
import { withPayloadIds, withPayloads } from '../../../src/agents/submission/payloads.ts';
import { SubmitterAgent } from '../../../src/agents/submission/submitter-agent.ts';
import type { Messenger } from '../../../src/plugins/contracts/index.ts';
import type { Payload } from '../../../src/worker/payload.ts';
import type { WorkerToStart } from '../../../src/worker/worker.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { namedWorker, secretPayload } from '../../support/named-workers.ts';
import { workerOf } from '../../support/samples.ts';
import { ScriptedQueue } from '../../support/scripted-queue.ts';

const payload = secretPayload('secret');

describe('the payloads of a submission', () => {
  it('get one name where workers share one object, and another where they do not', () => {
    const equal = structuredClone(payload);
    const named = withPayloadIds([
      workerOf(1),
      namedWorker(2, 'a', { payload }),
      namedWorker(3, 'b', { payload: equal }),
      namedWorker(4, 'c', { payload }),
      namedWorker(5, 'd', { payload, payloadId: 'known' }),
    ]);
    expect(named.map(({ payloadId }) => payloadId)).to.deep.equal([undefined, '2', '3', '2', 'known']);
    const counted = [workerOf(1), workerOf(2)];
    expect(withPayloadIds(counted)).to.equal(counted);
  });

  it('are asked for where workers lack them, each once, and lost ones are named', async () => {
    const asked: (readonly string[])[] = [];
    const store = {
      byIds: async (ids: readonly string[]) => {
        asked.push(ids);
        return new Map<string, Payload>([['2', payload]]);
      },
    };
    const none = [workerOf(1), namedWorker(9, 'z', { payload, payloadId: '9' })];
    expect(await withPayloads(store, none)).to.deep.equal({ workers: none, lost: [] });
    expect(asked).to.deep.equal([]);
    const found = await withPayloads(store, [
      workerOf(1),
      namedWorker(2, 'a', { payloadId: '2' }),
      namedWorker(3, 'b', { payloadId: '3' }),
      namedWorker(4, 'c', { payloadId: '2' }),
    ]);
    expect(found.workers.map((worker) => [worker.workerId, worker.payload])).to.deep.equal([
      [1, undefined],
      [2, payload],
      [4, payload],
    ]);
    expect(found.lost).to.deep.equal([3]);
    expect(asked).to.deep.equal([['2', '3']]);
  });

  describe('that is tried again', () => {
    let parts: AgentParts;
    let queue: ScriptedQueue;
    let sent: WorkerToStart[];

    beforeEach(async () => {
      parts = await AgentParts.open();
      parts.connection.listed();
      parts.connection.completed();
      await parts.store.ids.raise(100);
      queue = new ScriptedQueue(parts);
      queue.demand = async () => ({ groups: [], reasons: [] });
      sent = [];
      queue.submit = (worker) => {
        sent.push(worker);
        return { kind: 'accepted', handle: { batchID: `b${worker.workerId}` } };
      };
    });
    afterEach(() => parts[Symbol.asyncDispose]());

    const pass = () =>
      new SubmitterAgent(queue.runtime, parts.context, {
        maxNewWorkers: 100,
        cycle: 9000,
        blackHole: { lifetime: 0, workers: 20, pause: 1 },
        report: async () => undefined,
      }).pass();
    const there = { placement: 'local:/work' };

    it('reach the backend whole, as at the first attempt', async () => {
      await parts.ledger.intend([namedWorker(1, 'a', { payload, payloadId: '1', ...there }), workerOf(2)]);
      await pass();
      expect(sent.map(({ workerId, attempt, payload: own }) => [workerId, attempt, own])).to.deep.equal([
        [1, 2, payload],
        [2, 2, undefined],
      ]);
      expect((await parts.store.payloads.byIds(['1'])).size).to.equal(0);
    });

    it('and are lost end their workers as missed, and no others', async () => {
      await parts.ledger.adopt([namedWorker(1, 'a', { payloadId: '1', ...there }), workerOf(2)], 'pending');
      await pass();
      expect(sent.map(({ workerId }) => workerId)).to.deep.equal([2]);
      const [lost, other] = await parts.store.workers.byIds([1, 2]);
      expect(lost).to.deep.include({ status: 'missed', errorCode: 'payload-lost' });
      expect(lost?.endTime).to.be.a('number');
      expect(other?.status).to.equal('submitted');
    });

    it('hole 8: of another worker reach no worker whose row was made of a mark, nor is its access point made', async () => {
      // Another worker waits for its turn elsewhere, with a payload of its own.
      await parts.ledger.intend([namedWorker(9, 'z', { payload, payloadId: '9', placement: 'elsewhere' })]);
      const made: string[] = [];
      const setUp = async (paths: readonly string[]) => {
        made.push(...paths);
        return new Map<string, never>();
      };
      const messenger: Messenger = {
        accessPointOf: ({ workerID }) => `/nowhere/work/${workerID}`,
        setUp,
        remove: async () => undefined,
      };
      Object.assign(queue.runtime, { messenger });
      const rows = [
        namedWorker(1, 'a', { payloadId: '9', ...there }),
        workerOf(2, { accessPoint: '/nowhere/user2' }),
        workerOf(3, { accessPoint: '/nowhere/work/3' }),
      ];
      await parts.ledger.adopt(rows, 'pending');
      await pass();
      expect(sent.map(({ workerId, accessPoint }) => [workerId, accessPoint])).to.deep.equal([
        [2, undefined],
        [3, '/nowhere/work/3'],
      ]);
      expect(made).to.deep.equal(['/nowhere/work/3']);
      expect((await parts.store.workers.byId(1))?.errorCode).to.equal('payload-lost');
    });

    it('and are lost leave a worker alone that the backend has', async () => {
      await parts.ledger.adopt([namedWorker(1, 'a', { payloadId: '1', ...there })], 'pending');
      queue.find = () => ({ kind: 'found', handle: { batchID: 'b1' } });
      await pass();
      expect(sent).to.deep.equal([]);
      expect((await parts.store.workers.byId(1))?.status).to.equal('submitted');
    });
  });
});
