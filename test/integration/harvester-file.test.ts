import { copyFileSync, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import { Site, untilSaid } from '../support/site.ts';
import { removeDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const fixture = resolve(import.meta.dirname, '../fixtures/harvester/panda_queueconfig_with_tmpl.json');
/** As the file says it. */
const accessRoot = '/tmp/tmaeno';

describe("Harvester's own example with templates", () => {
  it('runs its pull queues as it is, and says why the others do not', async () => {
    const wasThere = existsSync(accessRoot);
    const site = new Site({
      queues: {},
      settings: { submitter: { defaultDemand: 'fill' }, sweeper: { keepFinished: 0.0008 } },
    });
    copyFileSync(fixture, site.queueFile);
    try {
      const daemon = site.start();
      const finished = await until('both pull queues finish pilots', async () => {
        const workers = await site.workers({ status: 'finished' }).catch((): WorkerView[] => []);
        return new Set(workers.map(({ queueName }) => queueName)).size === 2 && workers;
      });
      expect(new Set(finished.map(({ queueName }) => queueName))).to.deep.equal(
        new Set(['PULL_MODEL_1', 'PULL_MODEL_2']),
      );
      expect(finished.every(({ nativeExitCode }) => nativeExitCode === 0)).to.equal(true);
      const states = Object.fromEntries(
        (await site.queues()).map(({ name, state, reasons }) => [name, [state, reasons[0]?.code]]),
      );
      expect(states.PUSH_MODEL_1).to.deep.equal(['running', 'demand-push']);
      expect(states.PUSH_MODEL_2).to.deep.equal(['running', 'demand-push']);
      expect(states.PUSH_MODEL_WITH_TRUE_PILOT_AND_STAGER).to.deep.equal(['incomplete', 'queue-incomplete']);
      const { reasons } = await site.queue('PUSH_MODEL_WITH_TRUE_PILOT_AND_STAGER');
      expect(reasons[0]?.message).to.equal('thresher does not have yet: RucioStagerHPC');
      expect(states).not.to.have.property('TEMPLATE_QUEUE');
      await untilSaid(daemon, 'is used as a template by PULL_MODEL_1');

      const one = finished[0]?.workerID ?? 0;
      const { stdout } = await site.run('worker', String(one), '--output', 'json');
      const [worker] = JSON.parse(stdout) as { accessPoint: string }[];
      expect(worker?.accessPoint).to.equal(`${accessRoot}/workdir/panda/${one}`);
      // The messenger made it, and it goes with its worker.
      await until('its access point is swept', () => !existsSync(worker?.accessPoint ?? ''));
    } finally {
      await site.clean();
      if (!wasThere) removeDirectory(accessRoot);
    }
  });
});
