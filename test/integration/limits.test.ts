import { expect } from 'chai';
import type { WorkerRecord } from '../../src/store/rows.ts';
import { isFinal, isQueued } from '../../src/worker/status.ts';
import { Factory } from '../support/factory.ts';
import type { ScriptedWorker } from '../support/plugins/scripted-backend.ts';
import { scriptedSections } from '../support/plugins/scripted-backend.ts';
import { until } from '../support/until.ts';

let factory: Factory;

type Queues = Record<string, Record<string, unknown>>;

async function start(queues: Queues, settings: Record<string, Record<string, unknown>> = {}): Promise<void> {
  factory = new Factory(queues, {
    ...settings,
    submitter: { sleepTime: 0.2, ...settings.submitter },
    monitor: { maxStatusAge: 10 },
  });
  await factory.start();
}

async function clean(): Promise<void> {
  await factory.stop();
  await factory.site.clean();
}

const alive = async (queue?: string): Promise<WorkerRecord[]> =>
  (await factory.workers(queue)).filter(({ status }) => !isFinal(status));
const reasons = async (queue: string) => (await factory.queue(queue)).reasons;

/** Waits until so many of the queue live and it says this; the first reason is what an operator looks at. */
async function standsAt(queue: string, count: number, code: string, message: string): Promise<void> {
  let seen: unknown;
  await until(`${queue} stands at ${count} with ${code}`, async () => {
    const living = await alive(queue);
    const [first] = await reasons(queue);
    seen = [living.length, first];
    return living.length === count && first?.code === code && first.message === message;
  }).catch((error: unknown) => {
    throw new Error(`${queue} has ${JSON.stringify(seen)}`, { cause: error });
  });
}

/** Waits until the monitor has looked so often: passes of the submitter are in between. */
async function looked(queue: string, times: number): Promise<void> {
  const { observe: before = 0 } = factory.backend(queue).calls;
  await until(
    'the monitor looked again',
    () => (factory.backend(queue).calls.observe ?? 0) >= before + times,
  );
}

/** Waits until the backend has all workers whose rows are alive: an intent counts as alive before that. */
async function untilSettled(queue?: string): Promise<readonly number[]> {
  return until('no intent is open', async () => {
    const living = await alive(queue);
    return living.every(({ status }) => status !== 'pending') && living.map(({ workerId }) => workerId);
  });
}

/** Lets all that wait on the backend of a queue become this. */
function bring(queue: string, from: ScriptedWorker['status'], to: ScriptedWorker['status']): void {
  const backend = factory.backend(queue);
  const { workers } = backend;
  for (const [id, worker] of workers) if (worker.status === from) workers.set(id, { ...worker, status: to });
  backend.workers = workers;
}

/** Once all that were submitted run, as the database knows it. */
async function runAll(queue: string): Promise<void> {
  const before = await untilSettled(queue);
  bring(queue, 'submitted', 'running');
  await until('they run', async () => {
    const running = (await alive(queue)).filter(({ status }) => status === 'running');
    return before.every((id) => running.some(({ workerId }) => workerId === id));
  });
}

/** A queue of workers of this size. */
const sized = (size: Record<string, number>, limits: Record<string, number>) => ({
  ...limits,
  submitter: { ...scriptedSections('').submitter, ...size },
});

/** Each form of a limit: how many live, and what the queue says. A queue that may grow runs all it has, then stands again. */
const forms: Record<
  string,
  {
    readonly queue: Record<string, unknown>;
    readonly stands: readonly (readonly [count: number, code: string, message: string])[];
  }
> = {
  NONE: {
    queue: {},
    stands: [[0, 'max-workers', '0 of maxWorkers 0 are alive: it is 0, or not set; set it above 0']],
  },
  MAX_WORKERS: {
    queue: { maxWorkers: 3, nQueueLimitWorker: 2 },
    stands: [
      [2, 'queue-limit', '2 of nQueueLimitWorker 2 are queued'],
      [3, 'max-workers', '3 of maxWorkers 3 are alive'],
    ],
  },
  MAX_ALONE: {
    queue: { maxWorkers: 9, nQueueLimitWorkerMax: 2 },
    stands: [[2, 'queue-limit', '2 of nQueueLimitWorker 2 are queued']],
  },
  RATIO_MIN: {
    queue: { maxWorkers: 20, nQueueLimitWorkerRatio: 75, nQueueLimitWorkerMin: 2 },
    stands: [
      [2, 'queue-limit', '2 of nQueueLimitWorkerMin 2 are queued'],
      [4, 'queue-limit', '2 of nQueueLimitWorkerMin 2 are queued'],
      [7, 'queue-limit', '3 of nQueueLimitWorkerRatio 3 (75 % of 4 running) are queued'],
    ],
  },
  RATIO_OF_NONE: {
    queue: { maxWorkers: 20, nQueueLimitWorkerRatio: 75 },
    stands: [
      [
        0,
        'ratio-of-none',
        'nQueueLimitWorkerRatio gives 0 (75 % of 0 running): nothing starts from none unless nQueueLimitWorkerMin is above 0',
      ],
    ],
  },
  CORES: {
    queue: sized({ nCore: 8 }, { maxWorkers: 20, nQueueLimitWorkerCores: 20 }),
    stands: [
      [2, 'queue-limit-cores', '16 of nQueueLimitWorkerCores 20 cores are queued'],
      [4, 'queue-limit-cores', '16 of nQueueLimitWorkerCores 20 cores are queued'],
    ],
  },
  CORES_RATIO: {
    queue: sized({ nCore: 8 }, { maxWorkers: 20, nQueueLimitWorkerCoresRatio: 100, nQueueLimitWorkerMin: 2 }),
    stands: [
      [
        1,
        'queue-limit-cores',
        '8 of nQueueLimitWorkerMin 8 cores (raised to the size of one worker) are queued',
      ],
      [2, 'queue-limit-cores', '8 of nQueueLimitWorkerCoresRatio 8 cores (100 % of 8 running) are queued'],
      [4, 'queue-limit-cores', '16 of nQueueLimitWorkerCoresRatio 16 cores (100 % of 16 running) are queued'],
    ],
  },
  CORES_TOO_FEW: {
    queue: sized({ nCore: 8 }, { maxWorkers: 20, nQueueLimitWorkerCores: 4 }),
    stands: [
      [
        0,
        'queue-limit-cores',
        '0 of nQueueLimitWorkerCores 4 cores are queued; one worker takes 8, so none can ever be queued: set it to 8 or more',
      ],
    ],
  },
  MEMORY: {
    queue: sized({ minRamCount: 4000 }, { maxWorkers: 20, nQueueLimitWorkerMemory: 10_000 }),
    stands: [[2, 'queue-limit-memory', '8000 of nQueueLimitWorkerMemory 10000 MB are queued']],
  },
  MEMORY_RATIO_OF_NONE: {
    queue: sized({ minRamCount: 4000 }, { maxWorkers: 20, nQueueLimitWorkerMemoryRatio: 50 }),
    stands: [
      [
        0,
        'ratio-of-none',
        'nQueueLimitWorkerMemoryRatio gives 0 (50 % of 0 running): nothing starts from none unless nQueueLimitWorkerMemoryMin is above 0',
      ],
    ],
  },
};

describe('a queue of every limit form stands still for its reason', () => {
  afterEach(clean);

  it('at its number of workers, grows as its limit does, and stays there over a restart', async () => {
    await start(Object.fromEntries(Object.entries(forms).map(([name, { queue }]) => [name, queue])));
    for (const [name, { stands }] of Object.entries(forms)) {
      for (const [step, [count, code, message]] of stands.entries()) {
        if (step > 0) await runAll(name);
        await standsAt(name, count, code, message);
      }
    }
    const before = (await alive()).map(({ workerId }) => workerId);
    await factory.stop();
    await factory.start();
    for (const [name, { stands }] of Object.entries(forms)) {
      await standsAt(name, ...stands.at(-1)!);
      await looked(name, 2);
    }
    expect((await alive()).map(({ workerId }) => workerId)).to.deep.equal(before);
  });
});

/**
 * How long a busy daemon may take from the look at its rate to the time that stands in the row, ms. It is less than what a
 * rate of these tests takes for one worker, so that one too many is still seen.
 */
const hesitation = 100;

describe('limits on how fast', () => {
  afterEach(clean);

  it('maxNewWorkersPerCycle is per cycle, whatever wakes the queue in between', async () => {
    await start({ Q: { maxWorkers: 9, maxNewWorkersPerCycle: 2 } }, { submitter: { sleepTime: 600 } });
    const message = '2 of maxNewWorkersPerCycle 2 were submitted in this cycle';
    await standsAt('Q', 2, 'max-new-per-cycle', message);
    // Each end and each start wakes the submitter.
    await runAll('Q');
    bring('Q', 'running', 'finished');
    await until('all ended', async () => (await alive('Q')).length === 0);
    await looked('Q', 5);
    await standsAt('Q', 0, 'max-new-per-cycle', message);
    expect(await factory.workers('Q')).to.have.length(2);
  });

  it('submissionRate lets workers through one by one, without waiting for the next cycle', async () => {
    const rated = { maxWorkers: 6, submissionRate: 4, submissionBurst: 2 };
    await start({ Q: rated }, { submitter: { sleepTime: 600 } });
    const [first] = await until('the rate is the reason', async () => {
      const said = await reasons('Q');
      return said[0]?.code === 'submission-rate' && said;
    });
    expect(first?.message).to.equal('submissionRate of 4 per second (2 at once) is used up for the moment');
    await standsAt('Q', 6, 'max-workers', '6 of maxWorkers 6 are alive');
    const made = (await factory.workers('Q')).map(({ creationTime }) => creationTime).reverse();
    for (const [from, at] of made.entries()) {
      for (const [index, until] of made.entries()) {
        if (index >= from) expect(index - from + 1).to.be.at.most(2 + (4 * (until - at + hesitation)) / 1000);
      }
    }
  });

  it('submitter.submissionRate is one for all queues', async () => {
    const queue = { maxWorkers: 4 };
    await start(
      { A: queue, B: queue },
      { submitter: { sleepTime: 600, submissionRate: 5, submissionBurst: 1 } },
    );
    await until('both are full', async () => (await alive()).length === 8);
    const made = (await factory.workers()).map(({ creationTime }) => creationTime).sort((a, b) => a - b);
    expect(made.at(-1)! - made[0]!).to.be.at.least((1000 * 7) / 5 - hesitation);
  });

  it('a rate does not make passes follow each other without a pause where another reason holds the queue back', async () => {
    const rated = { maxWorkers: 6, submissionRate: 100, submissionBurst: 2 };
    factory = new Factory({ Q: rated }, { submitter: { sleepTime: 600 } });
    factory.backend('Q').faults = { preflight: 'refuse' };
    await factory.start();
    await until('it is refused', async () => (await reasons('Q'))[0]?.code === 'preflight');
    await looked('Q', 10);
    expect(factory.backend('Q').calls.preflight).to.be.at.most(4);
  });
});

describe('limits on what went wrong', () => {
  afterEach(clean);

  it('SimpleThrottler holds a queue back when too many were missed, over a restart too', async () => {
    const throttler = {
      name: 'SimpleThrottler',
      module: 'pandaharvester.harvesterthrottler.simple_throttler',
      rulesForMissed: [{ level: 'pq', timeWindow: 10, maxMissed: 1 }],
    };
    factory = new Factory({ Q: { maxWorkers: 3, throttler } }, { submitter: { sleepTime: 0.1 } });
    factory.backend('Q').faults = { submit: 'refuse' };
    await factory.start();
    const message = '3 workers of pq Q were missed in 10 min (rulesForMissed: maxMissed 1)';
    await standsAt('Q', 0, 'throttled', message);
    factory.backend('Q').faults = {};
    await factory.stop();
    await factory.start();
    await standsAt('Q', 0, 'throttled', message);
    await looked('Q', 5);
    expect(await factory.workers('Q')).to.have.length(3);
  });

  it('a backend that refuses most gets few at once, and all again when it takes them', async () => {
    factory = new Factory({ Q: { maxWorkers: 40 } }, { submitter: { sleepTime: 0.1 } });
    factory.backend('Q').faults = { submit: 'refuse-most' };
    await factory.start();
    const said = await until('it is careful', async () =>
      (await reasons('Q')).find(({ code }) => code === 'submission-backoff'),
    );
    expect(said.message).to.match(
      /^1 of the last (40|2) submissions were accepted \(told to reject\): no more than [12] at once for now$/,
    );
    const calls = () =>
      factory.log
        .filter(({ message }) => message === 'submitted workers')
        .map(({ facts }) => Number(facts.wanted));
    await until('it was tried some more', () => calls().length > 6);
    expect(
      calls()
        .slice(1)
        .every((wanted) => wanted <= 2),
    ).to.equal(true);
    factory.backend('Q').faults = {};
    await until('it is full', async () => (await alive('Q')).length === 40);
    const [first] = await until('it has nothing more to be careful of', async () => {
      const now = await reasons('Q');
      return now[0]?.code === 'max-workers' && now;
    });
    expect(first?.message).to.equal('40 of maxWorkers 40 are alive');
  });

  it('a black hole is fed one worker per pause, over a restart too, and all again when it is mended', async () => {
    const guard = { blackHoleLifetime: 0.5, blackHoleWorkers: 6, blackHolePause: 2 };
    await start({ Q: { maxWorkers: 3 } }, { submitter: { sleepTime: 0.1, ...guard } });
    const paused = async () => (await reasons('Q'))[0]?.code === 'black-hole-pause';
    await until('it pauses', async () => {
      bring('Q', 'submitted', 'failed');
      return paused();
    });
    expect((await reasons('Q'))[0]?.message).to.match(
      /^6 of the last 6 workers ended within 0\.5 s: one is tried every 2 s, (the next at \S+Z|1 under way)$/,
    );
    await factory.stop();
    await factory.start();
    const atRestart = (await factory.workers('Q')).length;
    await until('two more were tried', async () => {
      bring('Q', 'submitted', 'failed');
      return (await factory.workers('Q')).length >= atRestart + 2;
    });
    const made = (await factory.workers('Q')).map(({ creationTime }) => creationTime);
    expect(made[0]! - made[1]!).to.be.at.least(2000);
    expect(made[1]! - made[2]!).to.be.at.least(2000);
    await until('it is full again', async () => {
      bring('Q', 'submitted', 'running');
      return (await alive('Q')).filter(({ status }) => status === 'running').length === 3;
    });
    await standsAt('Q', 3, 'max-workers', '3 of maxWorkers 3 are alive');
  });
});

describe('a family of queues', () => {
  afterEach(clean);

  it('never has more workers than TinyThrottler says, though all submit at the same moment', async () => {
    const throttler = {
      name: 'TinyThrottler',
      module: 'pandaharvester.harvesterthrottler.tiny_throttler',
      rulesForSiteFamilySubmittedRunning: [{ level: 'workers', maxWorkers: 5 }],
    };
    const queue = { maxWorkers: 4, siteFamily: 'SWISS', throttler };
    await start({ A: queue, B: queue, C: queue }, { submitter: { sleepTime: 0.05 } });
    const living = async () => {
      const all = await alive();
      expect(all.length).to.be.at.most(5);
      return all;
    };
    await until('the family is full', async () => (await living()).length === 5);
    await untilSettled();
    await until('somebody says so', async () => {
      const said = (await Promise.all(['A', 'B', 'C'].map(reasons))).flat();
      return said.some(
        ({ code, message }) =>
          code === 'throttled' &&
          message ===
            '5 workers of siteFamily SWISS are alive (rulesForSiteFamilySubmittedRunning: maxWorkers 5)',
      );
    });
    // Ends wake the queues, all of them at once.
    for (let round = 0; round < 5; round++) {
      const before = (await factory.workers()).length;
      for (const name of ['A', 'B', 'C']) bring(name, 'submitted', 'finished');
      await until('others took their places', async () => {
        const now = await living();
        return now.length === 5 && (await factory.workers()).length >= before + 5;
      });
      await untilSettled();
    }
    await factory.stop();
    await factory.start();
    await looked('A', 5);
    expect((await living()).filter(({ status }) => isQueued(status))).to.have.length(5);
  });
});
