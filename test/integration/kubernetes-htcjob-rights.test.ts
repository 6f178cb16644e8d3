/** An operator with the rights that thresher prints, in some namespaces alone. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { rights } from '../../src/clients/htcjob/manifests.ts';
import { htcJobSite } from '../support/htcjob-site.ts';
import { applyCrd, applyRights, HtcJobs, isOver } from '../support/htcjobs.ts';
import { rbac } from '../support/kubernetes-rights.ts';
import { type ControlPlane, controlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('an operator of HTCJobs with the printed rights', () => {
  // Roles of the cluster are those of all tests.
  const own = `thresher-${randomBytes(4).toString('hex')}`;
  const printed = (
    JSON.parse(JSON.stringify(rights()).replaceAll('thresher-htcjob', own)) as KubeObject[]
  ).filter(({ kind, metadata }) => kind !== 'ClusterRoleBinding' && !metadata.name.startsWith('htcjobs-'));
  let plane: ControlPlane;
  let first: Namespace;
  let second: Namespace;
  let site: Site;

  before(async () => {
    plane = await controlPlane();
    await applyCrd(plane);
    await plane.client.create('/api/v1/namespaces', { metadata: { name: own } });
    await applyRights(plane, printed);
    [first, second] = await Promise.all([plane.namespace('htcjob'), plane.namespace('htcjob')]);
    await bind(first, own);
    const more = { leaseNamespace: own, leaseName: own };
    site = htcJobSite(plane, [first, second], more, { token: await plane.token(own, own) });
    site.start();
  });

  after(async () => {
    await site.clean();
    for (const space of [first, second]) {
      await new HtcJobs(space).letGo();
      await space[Symbol.asyncDispose]();
    }
    for (const name of [own, `${own}-secrets`])
      await plane.client.delete(`/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, {});
    await plane.client.delete(`/api/v1/namespaces/${own}`, {});
  });

  async function bind(space: Namespace, role: string): Promise<void> {
    await space.client.create(rbac(space, 'rolebindings'), {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: own, namespace: own }],
    });
  }

  it('works where they are bound, and says which right is missing in another namespace until it is there', async () => {
    const [here, there] = [new HtcJobs(first), new HtcJobs(second)];
    await Promise.all([here.create('here', 'exit 0', { queue: 2 }), there.create('there', 'exit 0')]);
    expect(await here.until('here', 'has ended', isOver)).to.include({ succeeded: 2 });
    const reasons = await until('the queue says so', async () => {
      const { reasons } = await site.queue('Q');
      return reasons.length > 0 && reasons;
    });
    expect(reasons.map(({ code }) => code)).to.deep.equal(['htcjob-unsynced']);
    expect(reasons[0]?.message).to.match(
      new RegExp(
        `namespace ${second.name} .*lacks the right to list htcjobs.htc.cern.ch in namespace "${second.name}"`,
      ),
    );
    expect((await there.find('there'))?.status).to.equal(undefined);
    await bind(second, own);
    expect(await there.until('there', 'has ended', isOver)).to.include({ succeeded: 1 });
    await here.delete('here');
    await here.untilGone('here');
  });

  it('gives jobs Secrets of a namespace once their role is bound there, and shows Events', async () => {
    const jobs = new HtcJobs(first);
    const data = { word: Buffer.from('hush').toString('base64') };
    await first.client.create(first.core('secrets'), { metadata: { name: 'login' }, data });
    await bind(first, `${own}-secrets`);
    await jobs.create('secret', 'test "$(cat "$HTCJOB_SECRETS/login/word")" = hush', {
      secrets: [{ name: 'login' }],
    });
    expect(await jobs.until('secret', 'has ended', isOver)).to.include({ succeeded: 1 });
    await until('its Events are shown', async () => {
      const { stdout } = await site.run('htcjob', 'events', `${first.name}/secret`);
      return /Succeeded +all 1 jobs/.test(stdout);
    });
  });
});
