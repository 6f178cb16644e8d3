import { expect } from 'chai';
import { fingerprintOf, LiveTable, type LiveWorker } from '../../../src/agents/ledger/live-table.ts';
import type { LiveRow } from '../../../src/store/workers.ts';
import type { Observation } from '../../../src/worker/observation.ts';

const observation = (changes: Partial<Observation> = {}): Observation => ({
  workerId: 1,
  status: 'running',
  nativeStatus: 'R',
  node: 'n1',
  computingElement: 'ce.site.test:9619',
  startTime: 1000,
  observedAt: 5,
  ...changes,
});
const row = (changes: Partial<LiveRow> = {}): LiveRow => ({
  workerId: 1,
  queue: 'Q',
  placement: 'local:/pilots',
  configId: 1,
  status: 'running',
  attempt: 1,
  killed: false,
  confirmed: true,
  nativeStatus: 'R',
  node: 'n1',
  computingElement: 'ce.site.test:9619',
  startTime: 1000,
  payloadId: null,
  ...changes,
});

describe('the fingerprint of an observation', () => {
  it('does not change with the time it was made, nor with the worker', () => {
    expect(fingerprintOf(observation({ observedAt: 99, workerId: 2 }))).to.equal(
      fingerprintOf(observation()),
    );
  });

  for (const [what, changes] of Object.entries({
    status: { status: 'idle' },
    nativeStatus: { nativeStatus: 'S' },
    node: { node: 'n2' },
    computingElement: { computingElement: 'other.site.test:9619' },
    startTime: { startTime: 1001 },
  } as const)) {
    it(`changes with ${what}`, () => {
      expect(fingerprintOf(observation(changes))).not.to.equal(fingerprintOf(observation()));
    });
  }

  it('tells apart what only runs together', () => {
    const one = fingerprintOf(observation({ nativeStatus: 'ab', node: 'c' }));
    expect(fingerprintOf(observation({ nativeStatus: 'a', node: 'bc' }))).not.to.equal(one);
  });

  it('is that of the row after a restart, so that an unchanged worker is not written again', () => {
    const table = new LiveTable();
    table.load([
      row(),
      row({
        workerId: 2,
        status: 'pending',
        nativeStatus: null,
        node: null,
        computingElement: null,
        startTime: null,
      }),
    ]);
    expect(table.get(1)?.fingerprint).to.equal(fingerprintOf(observation()));
    const bare: Observation = { workerId: 2, status: 'pending', nativeStatus: '', observedAt: 5 };
    expect(table.get(2)?.fingerprint).to.equal(fingerprintOf(bare));
  });
});

describe('the table of the living', () => {
  const worker = (workerId: number, changes: Partial<LiveWorker> = {}): LiveWorker => ({
    workerId,
    queue: 'Q',
    placement: 'local:/pilots',
    configId: 1,
    status: 'pending',
    killed: false,
    fingerprint: 0,
    seenIn: 0,
    ...changes,
  });
  const ids = (workers: Iterable<LiveWorker>) => [...workers].map(({ workerId }) => workerId);

  it('forgets a worker that ended', () => {
    const table = new LiveTable();
    table.add(worker(1), false);
    table.update(1, 'running', false);
    expect(table.get(1)?.status).to.equal('running');
    table.update(1, 'failed', false);
    expect(table.get(1)).to.equal(undefined);
    expect(table.size).to.equal(0);
    expect(table.unconfirmed('Q', 1)).to.deep.equal([]);
  });

  it('asks for a worker until the backend’s name of it is known, also when it was seen running', () => {
    const table = new LiveTable();
    table.add(worker(1), false);
    table.add(worker(2), true);
    table.update(1, 'running', false);
    expect(ids(table.unconfirmed('Q', 1))).to.deep.equal([1]);
    table.update(1, 'running', true);
    expect(ids(table.unconfirmed('Q', 1))).to.deep.equal([]);
  });

  it('keeps configurations and placements apart', () => {
    const table = new LiveTable();
    table.add(worker(1), false);
    table.add(worker(2, { configId: 2 }), false);
    table.add(worker(3, { queue: 'R', placement: 'local:/other' }), false);
    expect(ids(table.unconfirmed('Q', 2))).to.deep.equal([2]);
    expect(ids(table.on('local:/pilots'))).to.deep.equal([1, 2]);
    expect(ids(table.on('local:/other'))).to.deep.equal([3]);
  });

  it('makes no worker of a change of one that is not alive', () => {
    const table = new LiveTable();
    table.update(7, 'running', true);
    expect(table.size).to.equal(0);
  });
});
