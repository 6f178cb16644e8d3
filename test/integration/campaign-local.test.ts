import { LocalArena } from '../campaign/local.ts';
import { keepsItsPromises } from '../campaign/promises.ts';

describe('through random faults on local processes', function () {
  this.timeout(900_000);

  it('thresher starts no worker twice, exceeds no limit, forgets none and fills its queues again', async () => {
    await using arena = new LocalArena();
    await keepsItsPromises(arena);
  });
});
