import { expect } from 'chai';
import fc from 'fast-check';
import { factoryEvents, type WorkerChanged } from '../../../src/agents/events.ts';
import { Ledger } from '../../../src/agents/ledger/ledger.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { isFinal, mayBecome, type WorkerStatus, workerStatuses } from '../../../src/worker/status.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';

describe('the ledger', () => {
  let store: Store;
  let ledger: Ledger;
  let log: ReturnType<typeof recordingLog>;
  let changed: WorkerChanged[];
  let killed: number[][];
  let nextId = 1;

  before(async () => {
    store = await openStore(':memory:', 'factory');
  });

  after(async () => {
    await store.close();
  });

  beforeEach(() => {
    log = recordingLog();
    changed = [];
    killed = [];
    const hub = factoryEvents(log);
    hub.on('workersChanged', ({ workers }) => changed.push(...workers));
    hub.on('killRequested', ({ workers }) => killed.push(workers.map(({ workerId }) => workerId)));
    ledger = new Ledger(store, new ManualClock(), log, hub);
  });

  async function intend(count = 1): Promise<number[]> {
    const ids = Array.from({ length: count }, () => nextId++);
    await ledger.intend(ids.map((id) => workerOf(id)));
    return ids;
  }

  const change = (workerId: number, to: WorkerStatus) => ({ workerId, to, source: 'monitor' });

  async function expectOneTruth(workerId: number): Promise<void> {
    const history = await store.workers.history(workerId);
    const row = await store.workers.byId(workerId);
    expect(history[0]).to.include({ from_status: null, to_status: 'pending' });
    for (const [index, { from_status, to_status }] of history.slice(1).entries()) {
      expect(from_status).to.equal(history[index]?.to_status);
      expect(mayBecome(from_status!, to_status), `${from_status!} -> ${to_status}`).to.equal(true);
    }
    expect(row?.status).to.equal(history.at(-1)?.to_status);
    expect(ledger.live.get(workerId)?.status).to.equal(isFinal(row!.status) ? undefined : row!.status);
  }

  it('lets no order of events leave a final status or the table: database, history and memory agree', async () => {
    const event = fc.record({ worker: fc.nat({ max: 2 }), to: fc.constantFrom(...workerStatuses) });
    const batches = fc.array(fc.uniqueArray(event, { selector: ({ worker }) => worker, maxLength: 3 }), {
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(batches, async (order) => {
        const ids = await intend(3);
        for (const batch of order)
          await ledger.change(batch.map(({ worker, to }) => change(ids[worker]!, to)));
        for (const id of ids) await expectOneTruth(id);
      }),
      { numRuns: 60 },
    );
  });

  it('keeps to the table when two parts of the daemon write at the same moment', async () => {
    const [id] = await intend();
    await Promise.all([
      ledger.change([{ ...change(id!, 'submitted'), handle: '{"batchID":"1"}', batchId: '1' }]),
      ledger.change([change(id!, 'running')]),
    ]);
    await expectOneTruth(id!);
    expect(ledger.live.get(id!)?.status).to.equal('running');
    expect(log.lines).to.deep.equal([]);
  });

  it('refuses and logs what the table does not allow', async () => {
    const [id] = await intend();
    await ledger.change([change(id!, 'running')]);
    await ledger.change([change(id!, 'submitted')]);
    expect(log.lines).to.deep.equal([
      {
        level: 'warn',
        message: 'transition refused',
        facts: { workerId: id, from: 'running', to: 'submitted', source: 'monitor' },
      },
    ]);
    await expectOneTruth(id!);
  });

  it('lets go of a worker that ended', async () => {
    const [id] = await intend();
    await ledger.change([change(id!, 'missed')]);
    await ledger.change([change(id!, 'running')]);
    expect((await store.workers.byId(id!))?.status).to.equal('missed');
    expect(log.lines.map(({ level, message }) => [level, message])).to.deep.equal([
      ['debug', 'change of a worker that is not alive'],
    ]);
  });

  it('tells each change of status once, with its worker, when the database has it', async () => {
    const [id] = await intend();
    await ledger.change([change(id!, 'submitted')]);
    await ledger.change([change(id!, 'running')]);
    await ledger.change([change(id!, 'running')]);
    await ledger.change([change(id!, 'submitted')]);
    await ledger.change([{ ...change(id!, 'failed'), error: { code: 'exit-status', message: '1' } }]);
    const worker = { workerId: id, queue: 'Q' };
    expect(changed).to.deep.equal([
      { ...worker, from: undefined, to: 'pending', code: undefined },
      { ...worker, from: 'pending', to: 'submitted', code: undefined },
      { ...worker, from: 'submitted', to: 'running', code: undefined },
      { ...worker, from: 'running', to: 'failed', code: 'exit-status' },
    ]);
  });

  it('tells nothing of a change that the database refused', async () => {
    const [id] = await intend();
    await store.workers.apply([{ ...change(id!, 'missed'), from: 'pending', at: 1 }]);
    changed = [];
    expect(await ledger.change([change(id!, 'submitted')])).to.deep.equal(new Set());
    expect(changed).to.deep.equal([]);
  });

  it('counts a further attempt of pending workers only, and of none whose end was asked for', async () => {
    const [pending, submitted, toEnd] = await intend(3);
    await ledger.change([change(submitted!, 'submitted')]);
    await ledger.requestKill({ ids: [toEnd!] }, 'operator');
    expect(await ledger.attemptAgain([pending!, submitted!, toEnd!])).to.deep.equal(new Set([pending]));
    const records = await store.workers.byIds([pending!, submitted!, toEnd!]);
    expect(records.map(({ attempt }) => attempt)).to.have.members([2, 1, 1]);
  });

  it('moves the workers of a place to another configuration, in the database and in memory', async () => {
    const [id] = await intend();
    const place = { queue: 'Q', configId: 1, placement: ledger.live.get(id!)!.placement };
    const live = [...ledger.live.all()].map(({ workerId }) => workerId);
    expect(await ledger.moveConfig(place, 9)).to.be.at.least(1);
    expect(live.map((one) => ledger.live.get(one)?.configId)).to.deep.equal(live.map(() => 9));
    expect((await store.workers.byId(id!))?.configId).to.equal(9);
  });

  it('asks once for the end of a worker, and tells who has to bring it about', async () => {
    const ids = await intend(2);
    expect(await ledger.requestKill({ ids }, 'operator')).to.equal(2);
    expect(await ledger.requestKill({ ids }, 'operator')).to.equal(0);
    expect(ids.map((id) => ledger.live.get(id)?.killed)).to.deep.equal([true, true]);
    expect(killed).to.deep.equal([ids]);
  });

  it('has after a restart what it had before', async () => {
    const [one, two] = await intend(2);
    await ledger.change([{ ...change(one!, 'submitted'), handle: '{"batchID":"1"}', batchId: '1' }]);
    await ledger.requestKill({ ids: [two!] }, 'operator');
    const again = new Ledger(store, new ManualClock(), log, factoryEvents(log));
    await again.load();
    expect(again.live.get(one!)).to.include({ status: 'submitted', killed: false });
    expect(again.live.get(two!)).to.include({ status: 'pending', killed: true });
    const unconfirmed = again.live.unconfirmed('Q', 1).map(({ workerId }) => workerId);
    expect(unconfirmed).to.include(two).and.not.to.include(one);
  });
});
