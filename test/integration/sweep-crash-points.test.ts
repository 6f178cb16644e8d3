import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Site } from '../support/site.ts';
import { ofGate } from '../support/tiers.ts';
import { until } from '../support/until.ts';

const steps = ['sweep:before-remove', 'sweep:after-remove', 'sweep:after-access-point', 'sweep:after-mark'];

describe('sweep: a worker is gone as a whole, whenever the daemon dies', () => {
  let site: Site | undefined;

  afterEach(async () => {
    await site?.clean();
  });

  for (const step of ofGate(
    steps,
    (one) => one === 'sweep:after-remove' || one === 'sweep:after-access-point',
  )) {
    it(`survives SIGKILL at ${step}`, async () => {
      site = new Site({
        pilot: 'sleep 1000 & exit 0',
        settings: { sweeper: { keepFinished: 0, keepMissed: 0 } },
        queues: {
          Q: {
            maxWorkers: 2,
            nQueueLimitWorker: 2,
            messenger: {
              name: 'SharedFileMessenger',
              module: 'pandaharvester.harvestermessenger.shared_file_messenger',
              accessPoint: 'access/${workerID}',
            },
          },
        },
      });
      const daemon = site.startCrashingAt(step);
      expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
      const first = (await site.workers()).map(({ workerID }) => workerID);
      site.writeQueues({ Q: { queueStatus: 'offline' } });
      site.start();
      await until('everything is swept', async () => {
        const rows = await Promise.all(
          first.map(async (id) => site?.run('worker', String(id), '--output', 'json')),
        );
        return rows.every((row) => {
          const [worker] = JSON.parse(row?.stdout ?? '[]') as { status: string; sweptTime: string | null }[];
          // An intent that the kill caught before its start is missed; it is swept like the others.
          return /^(finished|missed)$/.test(worker?.status ?? '') && worker?.sweptTime !== null;
        });
      });
      const left = (directory: string) =>
        existsSync(directory) ? readdirSync(directory).filter((entry) => /^\d+$/.test(entry)) : [];
      expect(left(join(site.stateDir, 'local'))).to.deep.equal([]);
      expect(left(site.path('access'))).to.deep.equal([]);
      // What the pilots had left running in the background is gone with them.
      await until('no process is left', () => site?.liveProcesses() === 0);
    });
  }

  it('survives SIGKILL in the middle of a kill', async () => {
    site = new Site({
      pilot: 'trap "" TERM; sleep 1000',
      queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 } },
    });
    const daemon = site.startCrashingAt('kill:after-kill');
    const ids = await until('two workers run', async () => {
      const running = (await site?.workers({ status: 'running' }).catch(() => [])) ?? [];
      return running.length === 2 && running.map(({ workerID }) => String(workerID));
    });
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', ...ids);
    expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
    site.start();
    await until('both are cancelled', async () => {
      const workers = (await site?.workers()) ?? [];
      return workers.length === 2 && workers.every(({ status }) => status === 'cancelled');
    });
    expect(site.liveProcesses()).to.equal(0);
  });
});
