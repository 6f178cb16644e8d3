import { expect } from 'chai';
import { factoryEvents } from '../../../src/agents/events.ts';
import { Ledger } from '../../../src/agents/ledger/ledger.ts';
import { ObservationWriter } from '../../../src/agents/observation/observation-writer.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/util/clock.ts';
import type { Observation } from '../../../src/worker/observation.ts';
import { mostMaskedInATurn } from '../../support/masked-characters.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';
import { until } from '../../support/until.ts';

const seen = (workerId: number, changes: Partial<Observation> = {}): Observation => ({
  workerId,
  status: 'submitted',
  nativeStatus: 'NoPod',
  observedAt: 1,
  ...changes,
});

describe('the writer of observations, while a worker is being submitted', () => {
  let store: Store;
  let ledger: Ledger;
  let writer: ObservationWriter;
  let log: ReturnType<typeof recordingLog>;

  beforeEach(async () => {
    store = await openStore(':memory:', 'factory');
    log = recordingLog();
    const events = factoryEvents(log);
    ledger = new Ledger(store, systemClock, log, events);
    writer = new ObservationWriter(ledger, systemClock, log, events);
    await ledger.intend([workerOf(1), workerOf(2)]);
    ledger.inFlight.hold([{ workerId: 1 }]);
  });

  afterEach(async () => {
    ledger.inFlight.letGo([{ workerId: 1 }]);
    await writer.flushed();
    await store.close();
  });

  const statusOf = async (workerId: number) => {
    const { status, nativeStatus } = (await store.workers.byId(workerId)) ?? {};
    return { status, nativeStatus };
  };
  const becomes = (workerId: number, wanted: string) =>
    until(`worker ${workerId} is ${wanted}`, async () => (await statusOf(workerId)).nativeStatus === wanted);

  it('leaves an observation that says no more than the outcome to that outcome, and writes it afterwards', async () => {
    expect(writer.add(seen(1))).to.equal(true);
    writer.add(seen(2));
    await becomes(2, 'NoPod');
    expect(await statusOf(1)).to.deep.equal({ status: 'pending', nativeStatus: null });
    await ledger.change([{ workerId: 1, to: 'submitted', source: 'submitter' }]);
    ledger.inFlight.letGo([{ workerId: 1 }]);
    await becomes(1, 'NoPod');
    const history = await store.workers.history(1);
    expect(history.map(({ source }) => source)).to.deep.equal(['submitter', 'submitter']);
  });

  it('writes an observation that says more at once', async () => {
    writer.add(seen(1));
    writer.add(seen(1, { status: 'running', nativeStatus: 'Running' }));
    await becomes(1, 'Running');
    expect((await statusOf(1)).status).to.equal('running');
  });

  it('writes a computing element that a later observation names, though nothing else changed', async () => {
    const computingElement = async () => (await store.workers.byId(2))?.computingElement;
    writer.add(seen(2));
    await becomes(2, 'NoPod');
    await writer.flushed();
    expect(await computingElement()).to.equal(null);
    writer.add(seen(2, { computingElement: 'ce.site.test:9619' }));
    await writer.flushed();
    expect(await computingElement()).to.equal('ce.site.test:9619');
  });

  it('hole 8: writes of an observation what there can be, and of a batch all that the database takes', async () => {
    writer.add(
      seen(2, { exitCode: 1.5, startTime: 1e300, endTime: 5.5, status: 'running', nativeStatus: 'R' }),
    );
    await writer.flushed();
    const { status, exitCode, startTime, endTime } = (await store.workers.byId(2)) ?? {};
    expect({ status, exitCode, startTime, endTime }).to.deep.equal({
      status: 'running',
      exitCode: null,
      startTime: null,
      endTime: 6,
    });
    await ledger.intend(Array.from({ length: 100 }, (_, index) => workerOf(100 + index)));
    const change = ledger.change.bind(ledger);
    ledger.change = (changes) =>
      changes.some(({ workerId }) => workerId < 150)
        ? Promise.reject(new Error('invalid input syntax for type bigint: "1.5"'))
        : change(changes);
    for (let id = 100; id < 200; id++) writer.add(seen(id));
    await until('the others are written', async () => (await statusOf(199)).status === 'submitted');
    await writer.flushed();
    const written = await Promise.all(Array.from({ length: 100 }, (_, index) => statusOf(100 + index)));
    expect(written.filter((one) => one.status === 'submitted')).to.have.length(50);
    expect(log.lines.filter(({ message }) => /others can$/.test(message))).to.have.length(1);
  });

  it('hole 8: gives others their turn while it looks for secrets in what hundreds of users wrote', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => 100 + index);
    await ledger.intend(ids.map((id) => workerOf(id)));
    const text = ':token'.repeat(160);
    const all = ids.map((id) =>
      seen(id, { status: 'failed', error: { code: 'x', message: text }, detail: { HoldReason: text } }),
    );
    const most = await mostMaskedInATurn(async (clock) => {
      const own = new ObservationWriter(ledger, clock, log, factoryEvents(log));
      for (const one of all) own.add(one);
      await own.flushed();
    });
    expect(most).to.be.within(1000, 10_000);
    expect(await statusOf(199)).to.include({ status: 'failed' });
  });

  it('calls a worker cancelled whose end is asked for while its batch is made ready', async () => {
    await ledger.intend([workerOf(3), workerOf(4)]);
    let [looks, asking] = [0, Promise.resolve() as Promise<unknown>];
    // Each look at the clock is 1 s later: others have their turn before each observation.
    const monotonic = () => {
      if (++looks === 4)
        setImmediate(() => {
          asking = ledger.requestKill({ ids: [3, 4] }, 'test');
        });
      return looks * 1000;
    };
    const own = new ObservationWriter(ledger, { ...systemClock, monotonic }, log, factoryEvents(log));
    const change = ledger.change.bind(ledger);
    const asked: string[] = [];
    ledger.change = (changes) => {
      asked.push(...changes.map(({ to }) => to));
      return change(changes);
    };
    for (const id of [3, 4]) own.add(seen(id, { status: 'failed', nativeStatus: 'Failed', endTime: 1 }));
    await own.flushed();
    await asking;
    expect(looks).to.be.above(4);
    expect(asked).to.not.include('failed');
  });

  it('keeps what a database that came back too late did not take, and writes it later', async () => {
    await ledger.intend(Array.from({ length: 10 }, (_, index) => workerOf(100 + index)));
    const clock = new ManualClock();
    const late = new ObservationWriter(ledger, clock, log, factoryEvents(log));
    const change = ledger.change.bind(ledger);
    let failures = 6;
    ledger.change = (changes) =>
      failures-- > 0 ? Promise.reject(new Error('database is locked')) : change(changes);
    for (let id = 100; id < 110; id++) late.add(seen(id));
    await late.flushed();
    const written = async () => {
      const all = await Promise.all(Array.from({ length: 10 }, (_, index) => statusOf(100 + index)));
      return all.filter(({ status }) => status === 'submitted').length;
    };
    expect(await written()).to.equal(5);
    await clock.advance(61_000);
    late.add(seen(109));
    await late.flushed();
    expect(await written()).to.equal(10);
  });

  it('tells of no end as written that the sweeper is to say', async () => {
    const events = factoryEvents(log);
    const told: number[] = [];
    events.on('observationsWritten', ({ observations }) => {
      told.push(...observations.map(({ workerId }) => workerId));
    });
    await ledger.intend([workerOf(3), workerOf(4)]);
    await ledger.attemptAgain([3]);
    await ledger.requestKill({ ids: [3, 4] }, 'test');
    const own = new ObservationWriter(ledger, systemClock, log, events);
    for (const id of [3, 4]) own.add(seen(id, { status: 'failed', nativeStatus: 'Failed', endTime: 1 }));
    await own.flushed();
    expect(told).to.deep.equal([4]);
  });

  it('writes observations of other workers meanwhile', async () => {
    const clock = new ManualClock();
    const log = recordingLog();
    const own = new ObservationWriter(ledger, clock, log, factoryEvents(log));
    own.add(seen(1));
    own.add(seen(2, { status: 'running', nativeStatus: 'Running' }));
    await clock.advance(100);
    // The clock stands still from here on: nothing that is written later is waited for.
    await becomes(2, 'Running');
    expect(await statusOf(1)).to.deep.equal({ status: 'pending', nativeStatus: null });
    ledger.inFlight.letGo([{ workerId: 1 }]);
    const flushed = own.flushed();
    await clock.advance(1000);
    await flushed;
  });
});
