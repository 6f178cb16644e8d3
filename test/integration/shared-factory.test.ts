import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import { Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const settings = { master: { factoryId: 'twice' }, sweeper: { listInterval: 1 } };

describe('two daemons with one factory id and two state directories', () => {
  const sites: Site[] = [];

  function makeSite(workDir: string): Site {
    const queue = { maxWorkers: 2, nQueueLimitWorker: 2, common: { workDir } };
    const site = new Site({ queues: { Q: queue }, settings });
    sites.push(site);
    return site;
  }

  const running = (site: Site) =>
    until('two workers run', async () => {
      const found = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return found.length >= 2 && found;
    });

  afterEach(async () => {
    await Promise.all(sites.splice(0).map((site) => site.clean()));
  });

  it('are told of by the earlier one: in its log, its queues and its orphans', async () => {
    const first = makeSite('work');
    const daemon = first.start();
    await running(first);
    const second = makeSite(first.path('work'));
    // The limits of the later one count what it adopts: it makes workers where it may have more.
    second.writeQueues({
      Q: { maxWorkers: 4, nQueueLimitWorker: 4, common: { workDir: first.path('work') } },
    });
    second.start();
    const reason = await until('the earlier one says so', async () =>
      (await first.queue('Q')).reasons.find(({ code }) => code === 'factory-shared'),
    );
    expect(reason.message).to.match(
      /^another daemon with the factory id twice makes workers on local:\/.*\/work, [12] so far/,
    );
    await untilSaid(daemon, /another daemon with our factory id makes workers.*factory-shared/);
    expect((await first.run('queues')).stdout).to.contain('another daemon with the factory id twice');
    const orphans = await first.run('orphans');
    expect(orphans.stderr).to.match(/^thresher: warning: another daemon with .* \[factory-shared\]\n$/);
    expect((await second.queue('Q')).reasons.map(({ code }) => code)).not.to.include('factory-shared');
  });

  it('are not seen where one daemon is restarted, also with its database lost', async () => {
    const site = makeSite('work');
    const daemon = site.start();
    await running(site);
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    site.removeDatabase();
    const next = site.start();
    await until('it adopted both', () => next.output().includes('adopted workers without a row'));
    await running(site);
    const { workerID } = (await site.workers())[0] ?? {};
    await site.run('kill', String(workerID));
    await until('a new one runs', async () =>
      (await site.workers({ status: 'running' })).some((one) => one.workerID > (workerID ?? 0)),
    );
    expect(next.output()).not.to.contain('factory-shared');
  });
});
