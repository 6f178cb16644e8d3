import { HtcJobArena } from '../campaign/htcjob.ts';
import { keepsItsPromises } from '../campaign/promises.ts';

describe('through random faults on HTCondor and an API server', function () {
  this.timeout(900_000);

  it('thresher runs each job of HTCJobs once, says how each ended, and keeps none that was deleted', async () => {
    await using arena = await HtcJobArena.open();
    await keepsItsPromises(arena);
  });
});
