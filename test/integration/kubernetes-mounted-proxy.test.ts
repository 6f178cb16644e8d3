import { kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { realNode } from '../support/kubernetes.ts';
import {
  hour,
  makeUser,
  mountingTemplate,
  proxySecretPath,
  putProxy,
  secretManager,
} from '../support/secret-site.ts';
import { until } from '../support/until.ts';

describe('a pilot on a real node', function () {
  this.timeout(300_000);

  it('that mounts the Secret reads the proxy that was replaced while it runs', async () => {
    const plane = await realNode();
    await using space = await plane.namespace('mounted');
    const owner = makeUser();
    const script = [
      ...['first=$(cat "$proxySecretPath"); echo "$first"; echo begun'],
      ...['while [ "$(cat "$proxySecretPath")" = "$first" ]; do sleep 0.2; done; cat "$proxySecretPath"'],
    ].join('; ');
    const entry = {
      module: secretManager,
      name: 'K8sSecretCredManager',
      k8s_config_file: 'kubeconfig',
      k8s_namespace: '${common.k8s_namespace}',
      proxy_files: ['atlas.pilot.proxy'],
    };
    const submitter = { proxySecretPath, cpuAdjustRatio: 1, memoryAdjustRatio: 1 };
    const queue = { common: { k8s_namespace: space.name }, credmanagers: [entry], maxWorkers: 1 };
    const queues = { Q: kubernetesQueue(space, { submitter, queue }) };
    const template = mountingTemplate({ command: ['sh', '-c', script] });
    const site = kubernetesSite(plane, { queues }, { 'job.yaml': template });
    try {
      const first = putProxy(site, owner, 12 * hour).trim();
      site.start();
      const worker = await until(
        'the pilot runs',
        async () => (await site.workers({ status: 'running' }))[0],
        120_000,
      );
      const log = async () => (await site.run('logs', String(worker.workerID))).stdout;
      await until('it has read the first', async () => (await log()).includes('begun'), 60_000);
      const second = putProxy(site, owner, 24 * hour).trim();
      await until(
        'it has read the second',
        async () => {
          const text = await log();
          return text.startsWith(first) && text.trimEnd().endsWith(second);
        },
        150_000,
      );
    } finally {
      await site.clean();
    }
  });
});
