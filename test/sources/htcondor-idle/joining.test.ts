import { expect } from 'chai';
import {
  type Joining,
  JoinMemory,
  type JoinTimes,
  type LivingWorker,
} from '../../../src/sources/htcondor-idle/joining.ts';

const start = Date.UTC(2026, 0, 1);
const joinTimeout = 300_000;

const worker = (workerId: number, startedAt?: number, shape = 'Q'): LivingWorker => ({
  workerId,
  queue: 'Q',
  shape,
  origin: { uid: `${shape} ${workerId}`, index: 0 },
  startedAt,
});

/** Ids by standing. */
const ids = (joining: Joining) =>
  Object.fromEntries(
    Object.entries(joining).flatMap(([name, list]: [string, readonly LivingWorker[]]) =>
      list.length === 0 ? [] : [[name, list.map(({ workerId }) => workerId)]],
    ),
  );

describe('a worker on its way to its pool', () => {
  let memory: JoinMemory;
  beforeEach(() => (memory = new JoinMemory()));

  function look(
    seconds: number,
    living: readonly LivingWorker[],
    present: readonly number[] = [],
    changes: Partial<JoinTimes> = {},
  ) {
    const times = {
      joinTimeout,
      now: start + seconds * 1000,
      monotonic: seconds * 1000,
      collectorStartedAt: start - 3_600_000,
      ...changes,
    };
    return ids(memory.judge(living, new Set(present), times));
  }

  it('is capacity as long as it does not run, however long that takes', () => {
    expect(look(0, [worker(1)])).to.deep.equal({ onItsWay: [1] });
    expect(look(86_400, [worker(1)])).to.deep.equal({ onItsWay: [1] });
  });

  it('is capacity for its time to join, and none afterwards', () => {
    const running = [worker(1, start + 10_000)];
    expect(look(300, running)).to.deep.equal({ onItsWay: [1] });
    expect(look(311, running)).to.deep.equal({ late: [1] });
  });

  it('that joined and whose ad vanished has not failed to join', () => {
    const running = [worker(1, start)];
    expect(look(100, running, [1])).to.deep.equal({ joined: [1] });
    expect(look(10_000, running)).to.deep.equal({ vanished: [1] });
  });

  it('is not late while the collector itself is younger than the time to join', () => {
    const running = [worker(1, start)];
    const young = { collectorStartedAt: start + 1_900_000 };
    expect(look(2000, running, [], young)).to.deep.equal({ onItsWay: [1] });
    expect(look(2500, running, [], young)).to.deep.equal({ late: [1] });
  });

  describe('is a stray', () => {
    const [seen, stray] = [worker(1, start + 1000), worker(2, start + 1000)];

    it('once each look has missed it for three times its time to join', () => {
      look(0, [worker(1), worker(2)]);
      look(10, [seen, stray], [1]);
      expect(look(900, [seen, stray], [1])).to.deep.equal({ joined: [1], late: [2] });
      expect(look(911, [seen, stray], [1])).to.deep.equal({ joined: [1], late: [2], strays: [2] });
    });

    it('but never if it started before the first look, since it may have joined before', () => {
      const older = worker(2, start - 1);
      look(0, [seen, older], [1]);
      expect(look(9000, [seen, older], [1])).to.deep.equal({ joined: [1], late: [2] });
    });

    it('but never where no worker of its shape has ever shown its mark: its template may lack it', () => {
      look(0, [worker(2)]);
      look(10, [stray]);
      expect(look(9000, [stray])).to.deep.equal({ late: [2] });
    });

    it('but not by the time for which a restarted collector missed it', () => {
      look(0, [worker(1), worker(2)]);
      look(10, [seen, stray], [1]);
      const restarted = { collectorStartedAt: start + 800_000 };
      expect(look(900, [seen, stray], [1], restarted)).to.deep.equal({ joined: [1], onItsWay: [2] });
      expect(look(1500, [seen, stray], [1], restarted)).to.deep.equal({ joined: [1], late: [2] });
      expect(look(2401, [seen, stray], [1], restarted)).to.have.property('strays');
    });
  });

  for (const [way, jump] of [
    ['forward', 86_400_000],
    ['back', -3_600_000],
  ] as const)
    it(`keeps its time to join when the wall clock jumps ${way}`, () => {
      const running = [worker(1, start + 10_000)];
      look(0, [worker(1)]);
      expect(look(20, running)).to.deep.equal({ onItsWay: [1] });
      const at = (seconds: number) => ({ now: start + seconds * 1000 + jump });
      expect(look(100, running, [], at(100))).to.deep.equal({ onItsWay: [1] });
      expect(look(319, running, [], at(319))).to.deep.equal({ onItsWay: [1] });
      const old = { collectorStartedAt: start - 7 * 86_400_000 };
      expect(look(321, running, [], { ...at(321), ...old })).to.deep.equal({ late: [1] });
    });

  it('names the oldest late one first', () => {
    const late = [worker(7, start + 5000), worker(9, start)];
    expect(look(9000, late)).to.deep.equal({ late: [9, 7] });
  });
});
