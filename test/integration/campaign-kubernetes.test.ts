import { KubernetesArena } from '../campaign/kubernetes.ts';
import { keepsItsPromises } from '../campaign/promises.ts';

describe('through random faults on Kubernetes', function () {
  this.timeout(900_000);

  it('thresher starts no worker twice, exceeds no limit, forgets none and fills its queues again', async () => {
    await using arena = await KubernetesArena.open();
    await keepsItsPromises(arena);
  });
});
