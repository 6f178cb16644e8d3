import { expect } from 'chai';
import { type ControlPlane, controlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import { History, livingPods, workersWithJobs } from '../support/kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import type { Site } from '../support/site.ts';
import { expectToys, toyQueue, toySettings, toySteps, wantedToys } from '../support/toy-site.ts';
import { taskOf } from '../support/toy-source.ts';

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

describe('on Kubernetes a source of a third party that names three workers', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let site: Site;
  let history: History;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    space = await plane.namespace('toys');
    history = await History.begin(space);
  });

  afterEach(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  /** The files that ConfigMaps of workers hold, as text. */
  async function files(): Promise<string[]> {
    const maps = await space.client.list<ConfigMap>(space.core('configmaps'), 'thresher/factory');
    return maps.flatMap(({ data = {}, binaryData = {} }) => [
      ...Object.values(data),
      ...Object.values(binaryData).map((bytes) => Buffer.from(bytes, 'base64').toString()),
    ]);
  }

  for (const [description, step] of toySteps) {
    for (const database of ['kept', 'removed']) {
      it(`gets each once, and hears of it, through SIGKILL ${description}, the database ${database}`, async () => {
        site = kubernetesSite(
          plane,
          { queues: { Q: kubernetesQueue(space, { queue: toyQueue }) }, settings: toySettings },
          { 'job.yaml': jobTemplate() },
        );
        const crashed = site.startCrashingAt(step);
        expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
        if (database === 'removed') site.removeDatabase();

        const ids = await expectToys(site, site.start(), database);
        // Each living row has its Job, and each Job its row.
        expect(await workersWithJobs(space)).to.deep.equal(ids);
        expect(await livingPods(space)).to.equal(wantedToys);
        expect(await history.twice()).to.deep.equal([]);
        const tasks = Array.from({ length: wantedToys }, (_, index) => taskOf(index));
        expect(await files()).to.include.members(tasks);
      });
    }
  }
});
