import { expect } from 'chai';
import { type FactoryEvents, factoryEvents } from '../../src/agents/events.ts';
import { wakeLoops } from '../../src/daemon/wake-loops.ts';
import type { Events } from '../../src/util/events.ts';
import { isFinal, isQueued, workerStatuses } from '../../src/worker/status.ts';
import { recordingLog } from '../support/samples.ts';

describe('the events that wake loops', () => {
  let events: Events<FactoryEvents>;
  let woken: string[];

  beforeEach(() => {
    woken = [];
    events = factoryEvents(recordingLog());
    wakeLoops(events, {
      wake: (kind, queue) => woken.push(`${kind} ${queue}`),
      wakeAll: (kind) => woken.push(`${kind} all`),
      wakeNamed: (name) => woken.push(name),
    });
  });

  const changed = (queue: string, from: FactoryEvents['workersChanged']['workers'][number]['from']) => ({
    workerId: 1,
    queue,
    from,
    code: undefined,
  });

  for (const from of workerStatuses.filter((status) => !isFinal(status)))
    for (const to of workerStatuses) {
      const room = isFinal(to) || (isQueued(from) && !isQueued(to));
      it(`${room ? 'wake' : 'do not wake'} the submitter when a worker goes from ${from} to ${to}`, () => {
        events.emit('workersChanged', { workers: [{ ...changed('Q', from), to }] });
        expect(woken).to.deep.equal(room ? ['submit Q'] : []);
      });
    }

  it('do not wake the submitter when a worker is recorded', () => {
    events.emit('workersChanged', { workers: [{ ...changed('Q', undefined), to: 'pending' }] });
    expect(woken).to.deep.equal([]);
  });

  it('wake each queue once for all changes of one transaction', () => {
    const ended = (queue: string) => ({ ...changed(queue, 'running'), to: 'failed' as const });
    events.emit('workersChanged', { workers: [ended('Q'), ended('R'), ended('Q')] });
    expect(woken).to.deep.equal(['submit Q', 'submit R']);
  });

  it('wake the sweepers of workers that are to end', () => {
    const of = (queue: string) => ({ workerId: 1, queue });
    events.emit('killRequested', { workers: [of('Q'), of('Q'), of('R')] });
    expect(woken).to.deep.equal(['sweep Q', 'sweep R']);
  });

  it('wake every submitter when a connection opens or a credential gets better', () => {
    events.emit('connectionOpened', { connection: 'c' });
    events.emit('credentialsImproved', { manager: 'm' });
    expect(woken).to.deep.equal(['submit all', 'submit all']);
  });

  it('wake the listing of a connection where a stranger was seen', () => {
    events.emit('strangerSeen', { connection: 'local:/pilots', workerId: 5 });
    expect(woken).to.deep.equal(['list local:/pilots']);
  });
});
