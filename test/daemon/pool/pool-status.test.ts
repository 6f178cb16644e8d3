import { expect } from 'chai';
import {
  absentText,
  absentWorkers,
  lackingIn,
  poolAds,
  summaryOf,
} from '../../../src/daemon/pool/pool-status.ts';
import type { CondorTools } from '../../../src/clients/htcondor/tools.ts';
import type { KnownWorker } from '../../../src/worker/news.ts';

const now = 10_000_000;
const worker = (
  workerId: number,
  seconds: number | null,
  status: KnownWorker['status'] = 'running',
): { queue: string; worker: KnownWorker } => ({
  queue: 'Q',
  worker: { workerId, status, startTime: seconds === null ? null : now - seconds * 1000 } as KnownWorker,
});
const absent = (...living: ReturnType<typeof worker>[]) =>
  absentWorkers(living, [{ workerId: 1 }], now).map(absentText);

describe('summary of a pool', () => {
  it('of a pool at zero says that jobs wait for a worker, and not that none can run', () => {
    const lacking = lackingIn({
      ...summaryOf([]),
      counts: { collector: 1, negotiator: 1, schedd: 1, startd: 0 },
    });
    expect(lacking).to.deep.equal(['there is no startd: jobs wait until a worker joins']);
  });

  it('names running workers that are not in the pool with the time since their start, the longest first', () => {
    expect(absent(worker(1, 500), worker(2, 5), worker(3, 10_000), worker(4, 600))).to.deep.equal([
      '3 of Q (runs for 2h)',
      '4 of Q (runs for 10m)',
      '2 of Q (runs for 5s)',
    ]);
  });

  it('names no worker that waits for its start, and no age where no start was seen or the clock was set back', () => {
    expect(absent(worker(2, 50, 'submitted'), worker(3, null), worker(4, -50))).to.deep.equal([
      '3 of Q',
      '4 of Q (runs for 0s)',
    ]);
  });

  it('shows no secret that an ad of the collector repeats', async () => {
    const ad = { MyType: 'Machine', Name: 'slot1@password=hunter7-0123456789', State: 'Unclaimed' };
    const succeed = async () => ({ stdout: JSON.stringify([ad]), stderr: '' });
    const tools = { succeed } as unknown as CondorTools;
    const ads = await poolAds(tools, new AbortController().signal);
    expect(ads.map(({ type, state }) => [type, state])).to.deep.equal([['Machine', 'Unclaimed']]);
    expect(JSON.stringify(ads)).to.contain('(hidden)').and.not.contain('hunter7');
  });
});
