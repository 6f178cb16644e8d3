/** thresher in Pods of the real node, by templates/kubernetes/thresher and the layers of the Containerfile. */
import { dirname } from 'node:path';
import { expect } from 'chai';
import { History, workersWithJobs } from '../support/kubernetes-history.ts';
import { type ControlPlane, type KubeObject, realNode } from '../support/kubernetes.ts';
import { type ManifestTools, manifestTools, thresherTemplates } from '../support/manifest-tools.ts';
import { newDatabase, type PostgresqlServer } from '../support/postgresql.ts';
import { thresherImage } from '../support/thresher-image.ts';
import {
  type Deployment,
  postgresqlForPods,
  type ThresherPod,
  ThresherPods,
} from '../support/thresher-pods.ts';
import { until } from '../support/until.ts';

/** What takes a minute elsewhere takes seconds in tests. */
const quick = { submitter: { sleepTime: 1 }, sweeper: { sleepTime: 1 } };
const password = 'open sesame';

describe('thresher on Kubernetes', function () {
  this.timeout(900_000);
  let plane: ControlPlane;
  let tools: ManifestTools;
  let image: string;

  before(async () => {
    plane = await realNode();
    tools = await manifestTools(dirname(plane.status.directory));
    image = await thresherImage();
  });

  /** Each worker has the Job that it had, and never had another one. */
  async function expectOnce(pods: ThresherPods, history: History, ids: readonly number[]): Promise<void> {
    expect(await pods.workers()).to.deep.equal(ids);
    expect(await workersWithJobs(pods.pilots)).to.deep.equal(ids);
    expect(await history.twice()).to.deep.equal([]);
  }

  describe('on PostgreSQL', () => {
    let server: PostgresqlServer;
    let pods: ThresherPods;
    let history: History;
    let ids: readonly number[];

    before(async () => {
      const reachable = await postgresqlForPods(plane, password);
      server = reachable.server;
      const database = { url: reachable.url(await newDatabase(server)), sslmode: 'disable' };
      pods = await ThresherPods.make(plane);
      history = await History.begin(pods.pilots);
      const secrets = { 'database-password': password };
      await pods.apply(await tools.kustomize(thresherTemplates.base), image, { ...quick, database }, secrets);
    });

    after(async () => {
      await pods[Symbol.asyncDispose]();
      await server.stop();
    });

    it('runs as one leader with workers and one standby, neither as root', async () => {
      const { leader, standbys } = await pods.roles(2);
      const [standby] = standbys;
      const { leader: named } = await pods.readiness(standby as ThresherPod);
      // The kernel would keep a SIGTERM from PID 1 until it listens.
      expect(named).to.match(new RegExp(`^${leader.metadata.name} pid (?!1$)\\d+$`));
      ids = await pods.workers();
      await expectOnce(pods, history, ids);
      const { output } = await pods.exec(leader, 'sh', '-c', 'id -u; touch /usr/written 2>&1 || :');
      expect(output).to.match(/^1000\ntouch: .*Read-only file system\n$/);
    });

    it('lacks no right that its queue needs, and no file', async () => {
      const [pod] = await pods.ready(2);
      const check = [
        'thresher',
        '--config',
        '/etc/thresher/thresher.yaml',
        'check-config',
        '--server',
        '--strict',
      ];
      const { code, output, errors } = await pods.exec(pod as ThresherPod, ...check);
      expect(code, `${output}${errors}`).to.equal(0);
      expect(output).to.match(/KUBERNETES +ready/);
    });

    it('may lose one Pod to a drain, and not both', async () => {
      await pods.ready(2);
      const path = `/apis/policy/v1/namespaces/${pods.home.name}/poddisruptionbudgets/thresher`;
      type Budget = KubeObject & { status: { disruptionsAllowed: number } };
      await until(
        'one may go',
        async () => (await plane.client.get<Budget>(path)).status.disruptionsAllowed === 1,
      );
    });

    it('is led by the standby when the leader is deleted, and each worker runs on, once', async () => {
      const { leader, standbys } = await pods.roles(2);
      await pods.deletePod(leader);
      const next = await pods.roles(2);
      expect(next.leader.metadata.name).to.equal(standbys[0]?.metadata.name);
      expect(next.standbys.map(({ metadata }) => metadata.name)).not.to.include(leader.metadata.name);
      await expectOnce(pods, history, ids);
    });

    it('is updated Pod by Pod, and each worker runs on, once', async () => {
      const former = (await pods.ready(2)).map(({ metadata }) => metadata.name);
      const annotations = { 'test/revision': '2' };
      await plane.client.patch(pods.deployment, { spec: { template: { metadata: { annotations } } } });
      const isOver = async () => {
        const { metadata, status } = await plane.client.get<Deployment>(pods.deployment);
        const { observedGeneration, replicas, updatedReplicas, availableReplicas } = status ?? {};
        const counts = [replicas, updatedReplicas, availableReplicas];
        return observedGeneration === metadata.generation && counts.every((count) => count === 2);
      };
      // Two Pods start, one after the other.
      await until('the update is over', isOver, 180_000);
      const { leader, standbys } = await pods.roles(2);
      for (const { metadata } of [leader, ...standbys]) expect(former).not.to.include(metadata.name);
      await expectOnce(pods, history, ids);
    });
  });

  describe('on SQLite', () => {
    let pods: ThresherPods;
    let history: History;
    let ids: readonly number[];

    before(async () => {
      pods = await ThresherPods.make(plane);
      history = await History.begin(pods.pilots);
      await pods.apply(await tools.kustomize(thresherTemplates.sqlite), image, quick);
      await pods.roles(1);
      ids = await pods.workers();
    });

    after(() => pods[Symbol.asyncDispose]());

    it('refuses to start a second time on one volume, and says who works there', async () => {
      const { leader } = await pods.roles(1);
      await pods.scale(2);
      // Each of its Pods has the name of the Deployment, so that the instance keeps its id.
      const said =
        /the daemon with pid \d+ on thresher, started \S+ works on \/var\/lib\/thresher \[already-running\]/;
      await until(
        'the second Pod is refused',
        async () => {
          const second = (await pods.pods()).find(({ metadata }) => metadata.name !== leader.metadata.name);
          const { state, lastState } = second?.status.containerStatuses?.[0] ?? {};
          const ended = state?.terminated ?? lastState?.terminated;
          return ended?.exitCode === 1 && said.test(ended.message ?? '');
        },
        180_000,
      );
      expect((await pods.roles(1)).leader.metadata.name).to.equal(leader.metadata.name);
      await expectOnce(pods, history, ids);
      await pods.scale(1);
      // Until then it could take the lock from a leader that is killed.
      await until('the second Pod is gone', async () => (await pods.allPods()).length === 1);
    });

    it('starts again in a Pod whose daemon was killed', async () => {
      const { leader } = await pods.roles(1);
      await pods.killContainer(leader);
      await until('its container is another one', async () => {
        const [pod] = await pods.pods();
        return pod?.status.containerStatuses?.[0]?.restartCount === 1;
      });
      expect((await pods.roles(1)).leader.metadata.name).to.equal(leader.metadata.name);
      await expectOnce(pods, history, ids);
    });

    it('starts in a new Pod although the former one may still run, once that has ended', async () => {
      const { leader } = await pods.roles(1);
      // As for a node that no longer answers: Kubernetes does not wait for the end of the container.
      await pods.deletePod(leader, { gracePeriodSeconds: 0 });
      expect((await pods.roles(1)).leader.metadata.name).not.to.equal(leader.metadata.name);
      await expectOnce(pods, history, ids);
    });
  });
});
