import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
import { Factory } from '../support/factory.ts';
import { scriptedSections } from '../support/plugins/scripted-backend.ts';
import { until } from '../support/until.ts';

const three = { maxWorkers: 3, nQueueLimitWorker: 3 };
const fast = {
  master: { shutdownTimeout: 0.1, pluginTimeout: 20 },
  submitter: { sleepTime: 0.1 },
  sweeper: { sleepTime: 0.1, keepFinished: 0, keepCancelled: 0, keepMissed: 0 },
};
const offline = { ...scriptedSections('backend-Q'), demand: 'fill', queueStatus: 'offline' };
const databases = ['kept', 'removed'] as const;

/*
 * What is in the files of a daemon at a step is taken as it is then, and the next daemon starts on it: the steps are the same on each backend. What
 * only a real end shows (half of a submission, files that were not yet on the disk) is in the crash points of each backend.
 */
describe('a daemon that dies at a step', () => {
  let factory: Factory;

  afterEach(async () => {
    await factory.stop();
    await factory.site.clean();
  });

  const workersThere = () => [...factory.backend('Q').workers];
  const idsOf = async () => (await factory.workers()).map(({ workerId }) => workerId).sort();

  const submitting: readonly Step[] = [
    'submit:before-intent',
    'submit:after-intent',
    'submit:before-outcome',
    'submit:after-outcome',
  ];
  for (const step of submitting)
    for (const database of databases)
      it(`starts each worker once: ${step}, the database ${database}`, async () => {
        factory = new Factory({ Q: three }, fast);
        await factory.crashAt(step, database);
        await factory.start();
        await until('all are submitted', async () => {
          const workers = await factory.workers();
          return workers.length === 3 && workers.every(({ status }) => status === 'submitted');
        });
        const started = workersThere().filter(([, { starts }]) => starts > 0);
        expect(started.map(([id]) => id).sort()).to.deep.equal(await idsOf());
        expect(started.map(([, { starts }]) => starts)).to.deep.equal([1, 1, 1]);
      });

  const sweeping: readonly Step[] = ['sweep:before-remove', 'sweep:after-remove', 'sweep:after-mark'];
  for (const step of sweeping)
    // Marked as swept, there is nothing left of it that a database could be lost for.
    for (const database of step === 'sweep:after-mark' ? (['kept'] as const) : databases)
      it(`sweeps each worker as a whole: ${step}, the database ${database}`, async () => {
        factory = new Factory({ Q: three }, fast);
        const endAll = () => {
          for (const [id, { status }] of workersThere())
            if (status === 'submitted') factory.backend('Q').change(id, { status: 'finished' });
        };
        let isDead = false;
        const crashed = factory.crashAt(step, database, () => {
          isDead = true;
        });
        await until('it dies', () => {
          endAll();
          return isDead;
        });
        await crashed;
        endAll();
        factory.site.writeQueues({ Q: offline });
        await factory.start();
        await until('nothing is left', () => workersThere().every(([, { starts }]) => starts === 0));
        await until('all rows are swept', async () =>
          (await factory.workers()).every(({ sweptTime }) => sweptTime !== null),
        );
      });

  for (const database of databases)
    it(`goes on with a kill, the database ${database}`, async () => {
      factory = new Factory({ Q: three }, fast);
      const killing = (async () => {
        await until('all are submitted', async () => {
          const workers = await factory.workers().catch(() => []);
          return workers.length === 3 && workers.every(({ status }) => status === 'submitted');
        });
        await factory.site.run('pause', 'Q', '--reason', 'test');
        await factory.site.run('kill', ...(await idsOf()).map(String));
      })();
      await Promise.all([factory.crashAt('kill:after-kill', database), killing]);
      factory.site.writeQueues({ Q: offline });
      await factory.start();
      await until('none lives', () => workersThere().every(([, { status }]) => status === 'cancelled'));
      await until('no row is open', async () =>
        (await factory.workers()).every(({ endTime, status }) => endTime !== null || status === 'cancelled'),
      );
    });
});
