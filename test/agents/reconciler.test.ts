import { expect } from 'chai';
import { judge } from '../../src/agents/reconciler.ts';
import type { Found, WorkerStatus } from '../../src/plugins/contracts/index.ts';
import type { Fate } from '../../src/store/workers.ts';
import { finalStatuses, isFinal, workerStatuses } from '../../src/worker/status.ts';
import { workerOf } from '../support/samples.ts';

const { workerId, name, queue, computingSite, origin, requirements, attempt } = workerOf(1);
const identity = { workerId, name, queue, computingSite, origin, requirements, attempt };
const handle = { batchID: '17' };

function found(status?: WorkerStatus): Found {
  const observation = { workerId: 1, status: status!, nativeStatus: 'x', observedAt: 5 };
  return { place: '/pilots/1', handle, identity, ...(status !== undefined && { observation }) };
}

const row = (status: WorkerStatus, sweptTime: number | null = null): Fate => ({
  status,
  swept: sweptTime !== null,
});
const configId = (queue: string) => (queue === 'Q' ? 3 : undefined);
const verdict = (one: Found, record?: Fate) => judge(one, record, 'local:/pilots', configId);

describe('what carries our mark', () => {
  it('and does not say who it is, is an orphan', () => {
    expect(verdict({ place: '/pilots/x', handle }, row('running'))).to.deep.equal({
      kind: 'orphan',
      why: 'its mark does not say which worker it is',
    });
  });

  for (const status of workerStatuses.filter((one) => !isFinal(one))) {
    it(`and is ${status} by its row, is known, whatever is seen of it`, () => {
      for (const seen of [undefined, ...workerStatuses]) {
        expect(verdict(found(seen), row(status))).to.deep.equal({ kind: 'known' });
      }
    });
  }

  for (const status of finalStatuses) {
    it(`and was ${status}, is known while it waits for its sweep, and an orphan if it lives`, () => {
      expect(verdict(found('finished'), row(status))).to.deep.equal({ kind: 'known' });
      expect(verdict(found(), row(status))).to.deep.equal({ kind: 'known' });
      expect(verdict(found('running'), row(status))).to.deep.equal({
        kind: 'orphan',
        why: `its worker is ${status}, but it lives`,
      });
    });

    it(`and was ${status} and swept, is an orphan, whatever is seen of it`, () => {
      for (const seen of [undefined, 'finished', 'running'] as const) {
        expect(verdict(found(seen), row(status, 9))).to.deep.equal({
          kind: 'orphan',
          why: `its worker was ${status} and swept`,
        });
      }
    });
  }

  it('and has no row, is adopted where it is, with the current configuration of its queue', () => {
    expect(verdict(found('running'))).to.deep.equal({
      kind: 'adopt',
      worker: { ...identity, placement: 'local:/pilots', configId: 3, handle },
    });
  });

  it('and has no row and no queue either, is an orphan', () => {
    const stranger = { ...found('running'), identity: { ...identity, queue: 'GONE' } };
    expect(verdict(stranger)).to.deep.equal({ kind: 'orphan', why: 'its queue GONE is not configured' });
  });
});
