import { expect } from 'chai';
import { Factory } from '../support/factory.ts';
import { until } from '../support/until.ts';

/** Calls are given up only where a test lets them hang: a busy machine may be slow with one. */
const waiting = { shutdownTimeout: 1, pluginTimeout: 20 };
const hasty = { shutdownTimeout: 1, pluginTimeout: 0.4 };
const fast = {
  master: waiting,
  submitter: { sleepTime: 0.1 },
  sweeper: { sleepTime: 0.1 },
  monitor: { maxStatusAge: 1 },
};
const three = { maxWorkers: 3, nQueueLimitWorker: 3 };

let factory: Factory;

/** A running factory whose queue Q has its workers. */
async function filled(
  queues: Record<string, Record<string, unknown>> = { Q: three },
  settings: Record<string, Record<string, unknown>> = fast,
): Promise<Factory> {
  factory = new Factory(queues, settings);
  await factory.start();
  await until('all workers are submitted', async () => {
    const workers = await factory.workers('Q');
    return workers.length === 3 && workers.every(({ status }) => status === 'submitted');
  });
  return factory;
}

async function clean(): Promise<void> {
  await factory.stop();
  await factory.site.clean();
}

const reasonCodes = async (queue = 'Q') => (await factory.queue(queue)).reasons.map(({ code }) => code);

/** Waits until the verb was called again: whatever a pass does, it did it by then. */
async function calledAgain(verb: string, times = 2, queue = 'Q'): Promise<void> {
  const before = factory.backend(queue).calls[verb] ?? 0;
  await until(
    `${verb} was called ${times} times more`,
    () => (factory.backend(queue).calls[verb] ?? 0) >= before + times,
  );
}

describe('promise 1: one intent, at most one live worker, when answers are lost', () => {
  afterEach(clean);

  for (const fault of ['lose-answer', 'partial', 'hang'] as const) {
    it(`settles a submission by asking, not by repeating: ${fault}`, async () => {
      factory = new Factory({ Q: three }, { ...fast, master: fault === 'hang' ? hasty : waiting });
      factory.backend('Q').faults = { submit: fault };
      await factory.start();
      await until('the submission was tried', () => (factory.backend('Q').calls.submit ?? 0) > 0);
      factory.backend('Q').faults = {};
      await until('all are submitted', async () => {
        const workers = await factory.workers();
        return workers.length > 0 && workers.every(({ status }) => status === 'submitted');
      });
      const workers = await factory.workers();
      expect(workers).to.have.length(3);
      // Also what a monitor saw first is asked for the backend's own name of it.
      await until('all have a batchID', async () =>
        (await factory.workers()).every(({ handle }) => handle !== undefined),
      );
      expect([...factory.backend('Q').workers.values()].map(({ starts }) => starts)).to.deep.equal([1, 1, 1]);
      // Where the call hung, the backend has not begun: they are sent again, and once more if the machine is too busy.
      const attempts = workers.map(({ attempt }) => attempt);
      if (fault === 'hang') expect(Math.min(...attempts)).to.be.at.least(2);
      else expect(attempts).to.deep.equal([1, 1, 1]);
    });
  }

  it('tries a refused worker again as often as maxSubmissionAttempts, then calls it missed with the reason', async () => {
    factory = new Factory({ Q: { ...three, maxSubmissionAttempts: 1 } }, fast);
    factory.backend('Q').faults = { submit: 'reject' };
    await factory.start();
    const [missed] = await until('one is missed', async () => {
      const found = (await factory.workers()).filter(({ status }) => status === 'missed');
      return found.length > 0 && found;
    });
    expect(missed).to.include({ errorCode: 'submit-failed', diagMessage: 'told to reject', attempt: 1 });
    await until('the queue says so', async () => (await reasonCodes()).join() === 'submit-failed');
  });

  it('does not try again what was refused for good', async () => {
    factory = new Factory({ Q: { maxWorkers: 1, nQueueLimitWorker: 1, maxSubmissionAttempts: 5 } }, fast);
    factory.backend('Q').faults = { submit: 'refuse' };
    await factory.start();
    const [missed] = await until('one is missed', async () => {
      const found = (await factory.workers()).filter(({ status }) => status === 'missed');
      return found.length > 0 && found;
    });
    expect(missed?.attempt).to.equal(1);
  });
});

describe('a backend that is too slow for thousands of open intents at once', () => {
  afterEach(clean);

  it('settles them bit by bit', async () => {
    factory = new Factory({ Q: { maxWorkers: 700, nQueueLimitWorker: 700 } }, { ...fast, master: hasty });
    factory.backend('Q').faults = { submit: 'lose-answer', find: 'hang-many' };
    await factory.start();
    await until('the answer was lost', () => (factory.backend('Q').calls.submit ?? 0) > 0);
    factory.backend('Q').faults = { find: 'hang-many' };
    await until('all are submitted', async () => {
      const workers = await factory.workers();
      return (
        workers.length === 700 && workers.every(({ status, handle }) => status === 'submitted' && handle)
      );
    });
    expect([...factory.backend('Q').workers.values()].every(({ starts }) => starts === 1)).to.equal(true);
  });
});

describe('promise 1: what an operator says while a call is under way', () => {
  afterEach(clean);

  it('no worker is submitted after a drain was acknowledged, however long the preflight took', async () => {
    factory = new Factory({ Q: three }, { ...fast, master: { pluginTimeout: 30 } });
    factory.backend('Q').faults = { preflight: 'hold' };
    await factory.start();
    await until('the preflight is under way', () => factory.backend('Q').calls.preflight);
    expect((await factory.site.run('drain', 'Q')).status).to.equal(0);
    factory.backend('Q').faults = {};
    await until('the queue has seen it', async () => (await reasonCodes())[0] === 'draining');
    expect(factory.backend('Q').calls.submit).to.equal(undefined);
    expect((await factory.workers()).filter(({ status }) => status !== 'cancelled')).to.deep.equal([]);
  });

  it('a worker that is killed while its intent is settled gets no further attempt', async () => {
    factory = new Factory(
      { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } },
      { ...fast, master: { pluginTimeout: 30 } },
    );
    factory.backend('Q').faults = { submit: 'reject', find: 'hold' };
    await factory.start();
    await until('it is searched', () => factory.backend('Q').calls.find);
    await factory.site.run('pause', 'Q', '--reason', 'test');
    const [worker] = await factory.workers();
    await factory.site.run('kill', String(worker?.workerId));
    factory.backend('Q').faults = {};
    await until('it is cancelled', async () => (await factory.workers())[0]?.status === 'cancelled');
    expect([...factory.backend('Q').workers.values()].filter(({ starts }) => starts > 0)).to.deep.equal([]);
    expect(factory.backend('Q').calls.submit).to.equal(1);
  });

  it('a sweep of a dead backend holds up no other command', async () => {
    await filled({ Q: three, OTHER: { maxWorkers: 0 } }, { ...fast, master: hasty });
    await factory.stop();
    factory.backend('Q').faults = { remove: 'hang', list: 'hang' };
    await factory.start();
    const sweeping = factory.site.run('orphans', '--remove');
    // A command that no daemon answers gives up after half a minute, with another answer.
    expect((await factory.site.run('pause', 'OTHER', '--reason', 'test')).stdout).to.equal(
      'OTHER is paused\n',
    );
    expect((await sweeping).stderr).to.match(/list of scripted:backend-Q did not come back within 0.4 s/);
  });
});

describe('promise 2: no live worker is forgotten', () => {
  afterEach(clean);

  it('adopts what has our mark and no row, and starts its ids above it', async () => {
    await filled();
    const before = (await factory.workers()).map(({ workerId }) => workerId);
    await factory.stop();
    factory.site.removeDatabase();
    await factory.start();
    await until('all are adopted', async () => (await factory.workers()).length === 3);
    expect((await factory.workers()).map(({ workerId }) => workerId)).to.deep.equal(before);
    for (const id of before) factory.backend('Q').change(id, { status: 'finished' });
    const fresh = await until('others are submitted', async () => {
      const found = (await factory.workers()).filter(({ workerId }) => !before.includes(workerId));
      return found.length === 3 && found;
    });
    expect(Math.min(...fresh.map(({ workerId }) => workerId))).to.be.greaterThan(Math.max(...before));
  });

  it('follows and sweeps the workers of a queue that was removed from the file', async () => {
    await filled({ Q: three, OTHER: { maxWorkers: 0 } });
    await factory.stop();
    factory.site.writeQueues({ OTHER: { maxWorkers: 0 } });
    await factory.start();
    await until('it is shown as removed', async () => (await factory.queue('Q')).state === 'removed');
    for (const id of factory.backend('Q').workers.keys())
      factory.backend('Q').change(id, { status: 'finished' });
    await until('their end was seen', async () =>
      (await factory.workers('Q')).every(({ status }) => status === 'finished'),
    );
    expect(await factory.workers('Q')).to.have.length(3);
  });

  it("lists as orphans what it cannot adopt, and touches neither these nor another factory's", async () => {
    await filled();
    const [one] = [...factory.backend('Q').workers.values()];
    if (one === undefined) throw new Error('no worker');
    await factory.stop();
    const { workers } = factory.backend('Q');
    workers.set(7, { ...one, worker: { ...one.worker, workerId: 7, queue: 'GONE' } });
    workers.set(8, { ...one, worker: { ...one.worker, workerId: 8, name: 'somebody-else-8' } });
    factory.backend('Q').workers = workers;
    await factory.start();
    await until('the orphan is listed', async () => {
      const { stdout } = await factory.site.run('orphans', '--output', 'json');
      const orphans = JSON.parse(stdout) as { workerID: number; queueName: string }[];
      return orphans.length === 1 && orphans[0]?.workerID === 7 && orphans[0].queueName === 'GONE';
    });
    expect(factory.backend('Q').workers.has(7)).to.equal(true);
    const removed = await factory.site.run('orphans', '--remove');
    expect(removed.stdout).to.equal('1 orphans were removed\n');
    expect(factory.backend('Q').workers.has(7)).to.equal(false);
    expect(factory.backend('Q').workers.has(8)).to.equal(true);
  });
});

describe('promise 3: unknown is never zero', () => {
  afterEach(clean);

  for (const fault of ['throw', 'trouble', 'partial', 'hang'] as const) {
    it(`changes no worker and stops submission while the status query fails: ${fault}`, async () => {
      await filled({ Q: three, OTHER: three });
      const before = await factory.workers('Q');
      factory.backend('Q').faults = { observe: fault };
      await until('the queue says so', async () => (await reasonCodes())[0] === 'status-unknown');
      // What ends now is not seen, and nothing is submitted in its place.
      for (const { workerId } of before) factory.backend('Q').change(workerId, { status: 'finished' });
      const submitted = factory.backend('Q').calls.submit;
      if (fault !== 'hang') await calledAgain('observe', fault === 'throw' ? 1 : 3);
      // The other queue sees ends and replaces them meanwhile: so much time has passed.
      for (const { worker } of factory.backend('OTHER').workers.values())
        factory.backend('OTHER').change(worker.workerId, { status: 'finished' });
      await until('the other queue has replaced its workers', async () => {
        const workers = await factory.workers('OTHER');
        return workers.length === 6 && workers.filter(({ status }) => status === 'finished').length === 3;
      });
      expect((await factory.workers('Q')).map(({ status }) => status)).to.deep.equal([
        'submitted',
        'submitted',
        'submitted',
      ]);
      expect(factory.backend('Q').calls.submit).to.equal(submitted);
    });
  }

  it('submits nothing before everything with our mark was listed once', async () => {
    factory = new Factory({ Q: three }, fast);
    factory.backend('Q').faults = { list: 'throw' };
    await factory.start();
    await calledAgain('observe', 3);
    await until('the queue says why', async () => (await reasonCodes())[0] === 'not-listed');
    expect(await factory.workers()).to.deep.equal([]);
    factory.backend('Q').faults = {};
    await until('it submits after a listing', async () => (await factory.workers()).length === 3);
  });
});

describe('promise 5: nothing is called missing on stale data', () => {
  afterEach(clean);

  it('looks a missing worker up by name before it counts', async () => {
    await filled();
    const [first] = await factory.workers();
    const id = first?.workerId ?? 0;
    factory.backend('Q').faults = { check: 'throw' };
    const kept = factory.backend('Q').workers.get(id);
    factory.backend('Q').forget(id);
    await calledAgain('check', 2);
    expect((await factory.workers()).map(({ status }) => status)).to.deep.equal([
      'submitted',
      'submitted',
      'submitted',
    ]);
    // It was only missing from the listing.
    const { workers } = factory.backend('Q');
    if (kept !== undefined) workers.set(id, kept);
    factory.backend('Q').workers = workers;
    factory.backend('Q').faults = {};
    await calledAgain('observe', 8);
    expect((await factory.workers()).map(({ status }) => status)).to.deep.equal([
      'submitted',
      'submitted',
      'submitted',
    ]);
  });

  it('calls it missed when a fresh look does not find it either', async () => {
    await filled();
    const [first] = await factory.workers();
    factory.backend('Q').forget(first?.workerId ?? 0);
    const lost = await until('it is missed', async () =>
      (await factory.workers()).find(({ status }) => status === 'missed'),
    );
    expect(lost).to.include({ workerId: first?.workerId, errorCode: 'lost' });
  });
});

describe('promise 7: one slow or dead endpoint delays only its own queues', () => {
  afterEach(clean);

  for (const verb of ['preflight', 'submit', 'find', 'observe', 'list', 'check', 'kill', 'remove'] as const) {
    it(`the other queue keeps its pace while ${verb} hangs for ever`, async () => {
      // Whoever waited for the end of such a call would wait longer than this test.
      const patient = { ...fast, master: { ...fast.master, pluginTimeout: 1000 } };
      factory = new Factory({ HANGS: three, FINE: { maxWorkers: 1, nQueueLimitWorker: 1 } }, patient);
      const faults = { [verb]: 'hang' } as const;
      factory.backend('HANGS').faults = verb === 'find' ? { ...faults, submit: 'lose-answer' } : faults;
      await factory.start();
      const fine = factory.backend('FINE');
      // Twenty workers one after the other: each end is seen and replaced.
      for (let turn = 0; turn < 20; turn++) {
        const id = await until(
          `worker ${turn} runs`,
          () => [...fine.workers.values()].find(({ status }) => status === 'submitted')?.worker.workerId,
        );
        fine.change(id, { status: 'finished' });
      }
      await until(
        'all ends are in the database',
        async () =>
          (await factory.workers('FINE')).filter(({ status }) => status === 'finished').length >= 20,
      );
      if (verb !== 'check' && verb !== 'kill' && verb !== 'remove') {
        expect(factory.backend('HANGS').calls[verb]).to.be.greaterThan(0);
      }
    });
  }
});

describe('a queue with two endpoints', () => {
  afterEach(clean);

  it('goes on with one while nothing is known of the other, whose workers still count', async () => {
    const four = { maxWorkers: 4, nQueueLimitWorker: 4 };
    const common = { directory: 'backend-Q', other: 'backend-R' };
    factory = new Factory({ Q: { ...four, common }, R: { queueStatus: 'offline' } }, fast);
    await factory.start();
    const [one, other] = [factory.backend('Q'), factory.backend('R')];
    const living = (backend: typeof one) =>
      [...backend.workers.values()].filter(({ status }) => status === 'submitted').length;
    const counts = () => `${living(one)} and ${living(other)}`;
    await until('they share the workers', () => counts() === '2 and 2');
    await until('all are known', async () => {
      const workers = await factory.workers('Q');
      return workers.length === 4 && workers.every(({ status }) => status === 'submitted');
    });
    other.faults = { observe: 'trouble' };
    await calledAgain('observe', 2, 'R');
    const submitted = other.calls.submit;
    for (let turn = 0; turn < 5; turn++) {
      for (const { worker } of one.workers.values()) one.change(worker.workerId, { status: 'finished' });
      await until(`those that end are replaced there, turn ${turn}`, async () => {
        const ended = (await factory.workers('Q')).filter(({ status }) => status === 'finished');
        return counts() === '2 and 2' && ended.length === 2 * (turn + 1);
      });
    }
    expect(other.calls.submit).to.equal(submitted);
    expect(await reasonCodes()).to.not.include('status-unknown');
    one.faults = { observe: 'trouble' };
    await until('nothing is known of any', async () => (await reasonCodes())[0] === 'status-unknown');
  });
});

describe('promise 8: a stop ends in bounded time', () => {
  afterEach(clean);

  it('gives up a call that hangs for ever', async () => {
    factory = new Factory({ Q: three }, { ...fast, master: { pluginTimeout: 1000, shutdownTimeout: 0.5 } });
    factory.backend('Q').faults = { submit: 'hang' };
    await factory.start();
    await until('the call hangs', () => factory.backend('Q').calls.submit);
    await factory.stop();
    expect(factory.log.map(({ message }) => message)).to.include('calls under way are given up');
    // The intents stay, and the next daemon settles them.
    factory.backend('Q').faults = {};
    await factory.start();
    await until('they are settled', async () => {
      const workers = await factory.workers();
      return workers.length === 3 && workers.every(({ status }) => status === 'submitted');
    });
  });
});

describe('promise 9: what is not submitted has its reason', () => {
  afterEach(clean);

  const cases: [code: string, queue: Record<string, unknown>][] = [
    ['demand-none', { ...three, demand: 'none' }],
    ['demand-push', { ...three, mapType: 'OneToOne' }],
    ['demand-slave', { ...three, runMode: 'slave' }],
    ['queue-status', { ...three, queueStatus: 'offline' }],
    ['queue-status', { ...three, queueStatus: 'offline', mapType: 'OneToOne', demand: 'none' }],
    ['demand-push', { ...three, mapType: 'OneToOne', demand: 'none' }],
    ['demand-slave', { ...three, runMode: 'slave', demand: 'none' }],
    ['max-workers', {}],
    ['max-workers', { maxWorkers: 0, nQueueLimitWorker: 5 }],
    ['queue-limit', { maxWorkers: 5, nQueueLimitWorker: 0 }],
  ];
  for (const [code, queue] of cases) {
    it(`${code}: ${JSON.stringify(queue)}`, async () => {
      factory = new Factory({ Q: queue }, fast);
      await factory.start();
      await until('the reason is shown', async () => (await reasonCodes())[0] === code);
      expect(await factory.workers()).to.deep.equal([]);
    });
  }

  it('preflight: what the plugin found', async () => {
    factory = new Factory({ Q: three }, fast);
    factory.backend('Q').faults = { preflight: 'refuse' };
    await factory.start();
    await until(
      'the reason is shown',
      async () => (await factory.queue('Q')).reasons[0]?.message === 'told to refuse',
    );
  });

  it('max-new-per-cycle: the rest follows in the next pass', async () => {
    factory = new Factory({ Q: { maxWorkers: 5, nQueueLimitWorker: 5, maxNewWorkersPerCycle: 2 } }, fast);
    await factory.start();
    await until('all five are there', async () => (await factory.workers()).length === 5);
    expect(factory.backend('Q').calls.submit).to.equal(3);
    await until('the last reason is the limit', async () => (await reasonCodes())[0] === 'max-workers');
  });
});
