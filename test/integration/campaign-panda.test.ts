import { PandaArena } from '../campaign/panda.ts';
import { keepsItsPromises } from '../campaign/promises.ts';

describe('through random faults of the link to the PanDA server', function () {
  this.timeout(900_000);

  it('thresher starts what the server ordered and nothing twice, and tells it how each worker ended', async () => {
    await using arena = await PandaArena.open();
    await keepsItsPromises(arena);
  });
});
