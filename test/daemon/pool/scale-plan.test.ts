import { expect } from 'chai';
import { workerPod } from '../../../src/daemon/pool/scale/facts.ts';
import {
  drainReason,
  lowestCost,
  planScale,
  type WorkerPod,
  type WorkerStartd,
} from '../../../src/daemon/pool/scale/plan.ts';

const running = (name: string, change: Partial<WorkerPod> = {}): WorkerPod => ({
  name,
  isScheduled: true,
  phase: 'Running',
  isReady: false,
  runs: true,
  cost: 0,
  ...change,
});
const idle: WorkerStartd = {
  slot: 'slot1@x',
  busyCores: 0,
  draining: false,
  drained: false,
  drainReason: undefined,
  retirement: 1e6,
};
const drained: WorkerStartd = { ...idle, draining: true, drained: true, drainReason };

function plan(
  wanted: number,
  workers: readonly (readonly [WorkerPod, WorkerStartd | undefined])[],
  replicas = workers.length,
) {
  const startds = workers.flatMap(([{ name }, startd]) =>
    startd === undefined ? [] : [[name, { ...startd, slot: `slot1@${name}` }] as const],
  );
  return planScale({ replicas, wanted, pods: workers.map(([pod]) => pod), startds: new Map(startds) });
}

describe('plan of thresher pool scale', () => {
  it('drains idle workers before busy ones, and lowers nothing before they have drained', () => {
    const found = plan(1, [
      [running('a'), { ...idle, busyCores: 2 }],
      [running('b'), idle],
      [running('c'), { ...idle, busyCores: 1 }],
    ]);
    expect(found.drainIdle).to.deep.equal(['slot1@b']);
    expect(found.drainBusy).to.deep.equal(['slot1@c']);
    expect(found.lowerTo).to.equal(3);
    expect(found.waits.join()).to.match(/b is idle.*c is busy, and is asked to drain/);
  });

  it('marks drained workers, and lowers by those that are marked or empty alone', () => {
    const found = plan(0, [
      [running('a', { cost: lowestCost }), drained],
      [running('b', { isReady: true }), { ...idle, busyCores: 4, draining: true, drainReason }],
      [running('c', { phase: 'Pending', runs: false, isScheduled: false }), undefined],
    ]);
    expect(found.mark).to.deep.equal(['c']);
    expect(found.gone).to.have.members(['a', 'c']);
    expect(found.lowerTo).to.equal(1);
    expect(found.waits).to.deep.equal(['b drains: its jobs run on until they end']);
  });

  it('never drains a busy worker whose drain would end its jobs', () => {
    const found = plan(0, [[running('a'), { ...idle, busyCores: 1, retirement: 600 }]]);
    expect([found.drainBusy, found.lowerTo]).to.deep.equal([[], 1]);
    expect(found.waits.join()).to.match(
      /a is busy, and a drain would end its jobs: its MaxJobRetirementTime is below 86400 s/,
    );
  });

  it('takes a worker that the collector does not know for busy', () => {
    const found = plan(0, [[running('a'), undefined]]);
    expect(found.lowerTo).to.equal(1);
    expect(found.waits).to.deep.equal(['1 more runs without being known to the collector']);
  });

  it('takes a worker whose container does not run for empty', () => {
    expect(plan(0, [[running('a', { runs: false }), undefined]]).lowerTo).to.equal(0);
  });

  it('waits while Kubernetes would delete an unready worker first', () => {
    const found = plan(1, [
      [running('a', { isReady: true, cost: lowestCost }), drained],
      [running('b'), { ...idle, busyCores: 3 }],
    ]);
    expect([found.lowerTo, found.gone]).to.deep.equal([2, []]);
    expect(found.waits.join()).to.match(/b would be deleted first by Kubernetes/);
  });

  it('takes its own drains back once the workers are wanted again, and no drain of others', () => {
    const found = plan(2, [
      [running('a', { cost: lowestCost }), drained],
      [running('b'), { ...drained, drainReason: 'node maintenance' }],
    ]);
    expect(found.release).to.deep.equal(['slot1@a']);
    expect(found.unmark).to.deep.equal(['a']);
  });

  it('keeps a worker drained until Kubernetes has deleted it', () => {
    const found = plan(
      1,
      [
        [running('a', { cost: lowestCost }), drained],
        [running('b'), idle],
      ],
      1,
    );
    expect([found.release, found.unmark, found.drainIdle, found.lowerTo]).to.deep.equal([[], [], [], 1]);
  });

  it('lowers at once by replicas that have no Pod yet', () => {
    const found = plan(
      2,
      [
        [running('a'), idle],
        [running('b'), idle],
      ],
      4,
    );
    expect([found.lowerTo, found.drainIdle]).to.deep.equal([2, []]);
  });
});

/** A cluster and a pool that move at random, and delete as Kubernetes does. */
class Model {
  readonly #random: () => number;
  replicas = 0;
  workers = new Map<string, { pod: WorkerPod; startd: WorkerStartd | undefined }>();
  #made = 0;
  readonly killed: string[] = [];

  constructor(seed: number) {
    let state = seed;
    this.#random = () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return state / 2_147_483_648;
    };
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  number(below: number): number {
    return Math.floor(this.#random() * below);
  }

  /** A ReplicaSet: makes what is missing, deletes in its own order. */
  control(): void {
    while (this.workers.size < this.replicas) {
      const name = `w${this.#made++}`;
      this.workers.set(name, {
        pod: running(name, { phase: 'Pending', isScheduled: false, runs: false }),
        startd: undefined,
      });
    }
    while (this.workers.size > this.replicas) {
      const order = [...this.workers.values()].toSorted(
        ({ pod: one }, { pod: other }) =>
          Number(one.isScheduled) - Number(other.isScheduled) ||
          Number(one.phase === 'Running') - Number(other.phase === 'Running') ||
          Number(one.isReady) - Number(other.isReady) ||
          one.cost - other.cost ||
          (one.name < other.name ? -1 : 1),
      );
      const [first] = order;
      if (first === undefined) return;
      if ((first.startd?.busyCores ?? 0) > 0) this.killed.push(first.pod.name);
      this.workers.delete(first.pod.name);
    }
  }

  /** Time passes: Pods start, jobs come to those that take them, and end. */
  pass(claimedIsReady: boolean): void {
    for (const [name, worker] of this.workers) {
      const { pod, startd } = worker;
      if (!pod.runs) {
        if (this.chance(0.5)) worker.pod = { ...pod, phase: 'Running', isScheduled: true, runs: true };
      } else if (startd === undefined) {
        if (this.chance(0.5)) worker.startd = { ...idle, slot: `slot1@${name}` };
      } else {
        const comes = !startd.draining && this.chance(0.4);
        const ends = startd.busyCores > 0 && this.chance(0.3);
        const busyCores = startd.busyCores + Number(comes) - Number(ends);
        worker.startd = { ...startd, busyCores, drained: startd.draining && busyCores === 0 };
      }
      const isReady = claimedIsReady ? (worker.startd?.busyCores ?? 0) > 0 : worker.startd !== undefined;
      worker.pod = { ...worker.pod, isReady: isReady && !this.chance(0.1) };
    }
  }

  /** One step of the command, which may be cut off anywhere. */
  step(wanted: number, cut: () => boolean): void {
    const facts = {
      replicas: this.replicas,
      wanted,
      pods: [...this.workers.values()].map(({ pod }) => pod),
      startds: new Map(
        [...this.workers].flatMap(([name, { startd }]) => (startd ? [[name, startd] as const] : [])),
      ),
    };
    const plan = planScale(facts);
    const at = (slot: string) => this.workers.get(slot.slice(6));
    const drain = (slot: string, draining: boolean) => {
      const worker = at(slot);
      if (worker?.startd === undefined) return;
      const isDrained = draining && worker.startd.busyCores === 0;
      worker.startd = {
        ...worker.startd,
        draining,
        drained: isDrained,
        drainReason: draining ? drainReason : undefined,
      };
    };
    const steps = [
      ...plan.drainIdle.map((slot) => () => {
        if (at(slot)?.startd?.busyCores === 0) drain(slot, true);
      }),
      ...plan.drainBusy.map((slot) => () => {
        drain(slot, true);
      }),
      ...plan.release.map((slot) => () => {
        drain(slot, false);
      }),
      ...[
        ...plan.mark.map((name) => [name, lowestCost] as const),
        ...plan.unmark.map((name) => [name, 0] as const),
      ].map(([name, cost]) => () => {
        const worker = this.workers.get(name);
        if (worker) worker.pod = { ...worker.pod, cost };
      }),
    ];
    for (const one of steps) {
      if (cut()) return;
      one();
    }
    if (this.replicas < wanted) this.replicas = wanted;
    else if (plan.mark.length === 0) this.replicas = plan.lowerTo;
  }
}

describe('thresher pool scale, at random', () => {
  for (const claimedIsReady of [true, false])
    it(`ends no busy worker, and reaches each number, where ${claimedIsReady ? 'a claim' : 'joining'} makes a Pod ready`, () => {
      for (let seed = 1; seed <= 150; seed++) {
        const model = new Model(seed);
        for (let round = 0; round < 6; round++) {
          const wanted = model.number(7);
          for (let step = 0; step < 3 + model.number(30); step++) {
            model.step(wanted, () => model.chance(0.1));
            model.control();
            model.pass(claimedIsReady);
          }
        }
        const last = model.number(5);
        for (let step = 0; step < 400 && model.workers.size !== last; step++) {
          model.step(last, () => false);
          model.control();
          model.pass(claimedIsReady);
        }
        expect(model.killed, `seed ${seed}`).to.deep.equal([]);
        expect(model.workers.size, `seed ${seed}`).to.equal(last);
      }
    });
});

describe('a Pod of the pool', () => {
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

  it('is a replica until it has ended, or somebody deleted it: a null or empty time of deletion is none', () => {
    for (const deletionTimestamp of [null, ''])
      expect(workerPod({ metadata: { name: 'w', deletionTimestamp }, status } as never)).to.include({
        name: 'w',
        isReady: true,
      });
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    expect(workerPod({ metadata: { name: 'w', deletionTimestamp }, status } as never)).to.equal(undefined);
  });

  it('has nothing in nulls among its conditions and containers', () => {
    const odd = {
      phase: 'Running',
      conditions: [null],
      containerStatuses: [null, { state: { running: null } }],
    };
    expect(workerPod({ metadata: { name: 'w' }, status: odd } as never)).to.include({
      isReady: false,
      runs: false,
    });
    const unsaid = { phase: 'Running', conditions: null, containerStatuses: null };
    expect(workerPod({ metadata: { name: 'w' }, spec: null, status: unsaid } as never)).to.include({
      isReady: false,
      runs: true,
    });
  });
});
