import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { expect } from 'chai';
import { freePort } from '../env/kubernetes/ports.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { applyCrd, HtcJobs, leaseOf } from '../support/htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';

describe('B6: the event of a HTCJob on a remote schedd, which tells nothing by itself', function () {
  this.timeout(240_000);
  let plane: ControlPlane;
  let pool: Pool;
  let space: Namespace;
  let condor: CondorSpace;
  let jobs: HtcJobs;
  let site: Site;

  before(async () => {
    [plane, pool] = await Promise.all([controlPlane(), condorPool()]);
    await applyCrd(plane);
    space = await plane.namespace('htcjob');
    condor = condorSpace(pool);
    jobs = new HtcJobs(space);
  });
  after(async () => {
    await site.clean();
    await jobs.letGo();
    await space[Symbol.asyncDispose]();
    await clearSpaces(pool, [condor]);
  });

  it('makes the monitor look now, and not only after its hour', async () => {
    const port = await freePort();
    const htcjob = {
      k8s_config_file: 'kubeconfig',
      namespaces: [space.name],
      ...leaseOf(space),
      runtime: 'none',
      eventsUrl: `http://127.0.0.1:${port}/sources/htcjob/cloudevents`,
    };
    const queue = { demand: 'htcjob', maxWorkers: 10, nQueueLimitWorker: 10 };
    // Nobody asks for the state of jobs within the time of this test.
    const monitor = { pollInterval: 3600 };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind: 'remote', template: 'job.sub.yaml', queue, monitor }) },
        settings: {
          master: { factoryId: condor.factory },
          monitor: { maxStatusAge: 7200 },
          http: { enabled: true, port },
          sources: { htcjob },
        },
      },
      {
        'job.sub.yaml': shellTemplate(condor, 'exit 99', {
          environment: { PATH: '/usr/bin:/bin', HOME: '/', HTCJOB_EVENT_PAUSE: '0' },
        }),
      },
    );
    plane.writeKubeconfig(site.path('kubeconfig'));
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chmodSync(site.stateDir, 0o711);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    site.start([], condorEnvironment(pool, site.directory));
    await jobs.create('three', 'exit 3');
    const status = await jobs.until(
      'three',
      'has ended',
      ({ completionTime }) => completionTime !== undefined,
    );
    expect(status).to.include({ active: 0, succeeded: 0, failed: 1 });
    expect(status.returnCodes).to.deep.equal([{ index: 0, exitCode: 3, reported: 3 }]);
  });
});
