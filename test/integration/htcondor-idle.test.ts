import { expect } from 'chai';
import { PoolBed } from '../campaign/pool/bed.ts';
import { until } from '../support/until.ts';

const everything = { Q: { small: 5, big: 5 } };

describe('a pool whose machines are workers of the source htcondor-idle', () => {
  let bed: PoolBed;

  before(async () => {
    bed = await PoolBed.start({ interval: 0.5, joinTimeout: 8, worker: { noClaim: 4 } });
    bed.writeCaps(everything);
  });
  after(() => bed[Symbol.asyncDispose]());

  const sizes = async () => (await bed.site.workers()).map(({ nCore }) => nCore).toSorted();
  const idle = async () =>
    (await bed.client('local').queue('true', ['ClusterId'], new AbortController().signal)).length;

  it('grows from nothing to exactly the machines that the waiting jobs need, and back to nothing', async () => {
    const daemon = bed.startDaemon();
    // A machine of four cores takes three of them, one of one core the last.
    await bed.submit('local', { cpus: 2, memory: 128, seconds: 2 });
    await bed.submit('local', { cpus: 1, memory: 128, seconds: 2 }, 3);
    try {
      await until('all jobs have run', async () => (await idle()) === 0, 60_000);
      expect(await sizes()).to.deep.equal([1, 4]);
      await until('the machines have left', () => bed.site.liveShims().size === 0, 30_000);
      await until('each is known to have ended well', async () =>
        (await bed.site.workers()).every(({ status }) => status === 'finished'),
      );
    } catch (error) {
      console.log(daemon.output().slice(-5000), JSON.stringify(await bed.site.queues(), null, 1));
      throw error;
    }
  });
});
