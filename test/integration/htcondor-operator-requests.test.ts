import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { expect } from 'chai';
import type { RequestView } from '../../src/daemon/requests/request-view.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { operatorOutput, operatorSecret, operatorStatus, submitScript } from '../support/operator-script.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('a request of an operator on HTCondor', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;

  before(async () => {
    pool = await condorPool();
  });
  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  for (const kind of ['local', 'remote'] as const) {
    it(`runs its script as it was given, shows its log and returns its exit status, a ${kind} schedd`, async () => {
      space = condorSpace(pool);
      // A queue whose own configuration asks for nothing.
      const queue = { demand: 'none', queueStatus: 'online' };
      site = condorSite(
        {
          queues: { Q: condorQueue(pool, { kind, template: 'pilot.yaml', queue }) },
          settings: { master: { factoryId: space.factory } },
        },
        { 'pilot.yaml': shellTemplate(space, 'exit 1') },
      );
      // The jobs are those of the pool's user, who reads the payloads below the state directory.
      for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
      chmodSync(site.stateDir, 0o711);
      chownSync(site.path('logs'), pool.uid, pool.gid);
      const environment = condorEnvironment(pool, site.directory);
      const daemon = site.start([], environment);
      await until('the queue runs', async () => (await site.queue('Q')).reasons[0]?.code === 'demand-none');

      const submit = ['--config', site.config, ...submitScript(site, '--follow')];
      const following = site.startWith(submit, environment);
      const said = () => `${following.output()}\n${daemon.output().slice(-3000)}`;
      expect(await following.ended, said()).to.equal(operatorStatus);
      const output = following.output();
      expect(output.split(operatorOutput), said()).to.have.length(2);
      expect(output).to.match(/^worker \d+: failed, exit status 7 /m);
      const id = /request (\w+):/.exec(output)?.[1] ?? '';
      const { stdout } = await site.run('requests', id, '--output', 'json');
      expect((JSON.parse(stdout) as RequestView[])[0]).to.deep.include({ count: 1, workers: { failed: 1 } });
      expect(daemon.output()).not.to.include(operatorSecret);
    });
  }
});
