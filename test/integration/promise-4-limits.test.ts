import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { countStarts, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('promise 4: limits count intents in flight and are never exceeded', () => {
  it('holds under random kills and restarts', async () => {
    const limits = { A: 3, B: 2 };
    const site = new Site({
      // Short pilots: ends and starts all the time, so that every kill hits the daemon at work.
      pilot: `${countStarts} sleep 0.3`,
      settings: { submitter: { sleepTime: 0.05 } },
      queues: {
        A: { maxWorkers: limits.A, nQueueLimitWorker: limits.A },
        B: { maxWorkers: limits.B, nQueueLimitWorker: limits.B },
      },
    });
    const most = new Map<string, number>();
    const watching = new AbortController();
    const watch = (async () => {
      const queueOf = new Map<number, string>();
      while (!watching.signal.aborted) {
        const counts = new Map<string, number>();
        for (const id of site.liveShims().keys()) {
          const queue = queueOf.get(id) ?? site.queueOfDirectory(id);
          if (queue === undefined) continue;
          queueOf.set(id, queue);
          counts.set(queue, (counts.get(queue) ?? 0) + 1);
        }
        for (const [queue, count] of counts) most.set(queue, Math.max(most.get(queue) ?? 0, count));
        // Far less than a pilot lives. A look reads all processes of the machine, and must leave it time for the daemon.
        await sleep(30);
      }
    })();
    try {
      // The moments are random, and the same for the same seed.
      const moments = fc.sample(fc.integer({ min: 300, max: 1100 }), { numRuns: 8, seed: 20261121 });
      for (const moment of moments) {
        const daemon = site.start();
        await sleep(moment);
        daemon.process.kill('SIGKILL');
        await daemon.ended;
      }
      const last = site.start();
      const wrote = () => `it wrote:\n${last.output()}`;
      const before = await until(
        () => `the last daemon can be asked; ${wrote()}`,
        async () => (await site.workers()).length,
      );
      await until(
        () => `it goes on after all of this; ${wrote()}`,
        async () => (await site.workers()).length > before + 5,
      );
    } finally {
      watching.abort();
      await watch;
      await site.clean();
    }
    expect(most.get('A')).to.be.within(1, limits.A);
    expect(most.get('B')).to.be.within(1, limits.B);
    expect([...site.starts().values()].filter((count) => count !== 1)).to.deep.equal([]);
  });
});
