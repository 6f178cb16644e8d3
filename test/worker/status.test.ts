import { expect } from 'chai';
import fc from 'fast-check';
import {
  finalStatuses,
  isFinal,
  isQueued,
  isWorkerStatus,
  mayBecome,
  parseStatuses,
  transitions,
  type WorkerStatus,
  workerStatuses,
} from '../../src/worker/status.ts';

/** Where a worker gets when the table is asked about each event in turn. */
function walk(events: readonly WorkerStatus[]): WorkerStatus[] {
  const path: WorkerStatus[] = ['pending'];
  for (const to of events) {
    const from = path.at(-1)!;
    if (mayBecome(from, to)) path.push(to);
  }
  return path;
}

describe('the transition table', () => {
  const events = fc.array(fc.constantFrom(...workerStatuses), { maxLength: 40 });

  it('lets no order of events leave a final status', () => {
    fc.assert(
      fc.property(events, (order) => {
        const path = walk(order);
        expect(path.slice(0, -1).filter(isFinal)).to.deep.equal([]);
      }),
    );
  });

  it('lets no order of events return to pending', () => {
    fc.assert(
      fc.property(events, (order) => {
        expect(walk(order).lastIndexOf('pending')).to.equal(0);
      }),
    );
  });

  it('reaches every status from pending', () => {
    const reached = new Set<WorkerStatus>(['pending']);
    for (const status of reached) for (const next of transitions[status]) reached.add(next);
    expect([...reached].sort()).to.deep.equal([...workerStatuses].sort());
  });

  it('can end every living worker in every way', () => {
    const living = workerStatuses.filter((status) => !isFinal(status));
    expect(living).to.deep.equal(['pending', 'submitted', 'idle', 'ready', 'running']);
    for (const from of living) {
      for (const to of finalStatuses) expect(mayBecome(from, to), `${from} -> ${to}`).to.equal(true);
    }
  });

  for (const [from, to] of [
    ['running', 'submitted'],
    ['idle', 'submitted'],
    ['ready', 'submitted'],
    ['running', 'ready'],
  ] as const) {
    it(`refuses ${from} -> ${to}`, () => {
      expect(mayBecome(from, to)).to.equal(false);
    });
  }

  it('lets an evicted worker wait again', () => {
    expect(mayBecome('running', 'idle')).to.equal(true);
    expect(mayBecome('idle', 'running')).to.equal(true);
  });

  it('counts as queued what was asked for and is not at work', () => {
    expect(workerStatuses.filter(isQueued)).to.deep.equal(['pending', 'submitted', 'idle']);
  });

  it('knows its own words and no others', () => {
    expect(workerStatuses.every(isWorkerStatus)).to.equal(true);
    for (const text of ['', 'Running', 'lost', 'toString']) expect(isWorkerStatus(text)).to.equal(false);
  });
});

describe('a list of statuses', () => {
  it('is read from text, unless one of its words is no status', () => {
    expect(parseStatuses('submitted, running')).to.deep.equal(['submitted', 'running']);
    expect(parseStatuses('submitted,runing')).to.equal(undefined);
    expect(parseStatuses('')).to.equal(undefined);
  });
});
