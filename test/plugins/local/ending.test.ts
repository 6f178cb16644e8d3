import { expect } from 'chai';
import { Endings } from '../../../src/plugins/local/ending.ts';
import { WorkDirectory } from '../../../src/plugins/local/work-directory.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const kill = process.kill.bind(process);
/** Larger than any that Linux gives out. */
const [foreign, stubborn, plain] = [10_000_001, 10_000_002, 10_000_003];

describe('the end of local workers', () => {
  const { signal } = new AbortController();
  /** Pids by worker. */
  const living = new Map<number, number[]>();
  let clock: ManualClock;
  let endings: Endings;

  beforeEach(() => {
    living.clear();
    process.kill = (pid) => {
      if (pid === foreign) throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
      for (const [workerId, pids] of living) if (pids.includes(pid) && pid === plain) living.delete(workerId);
      return true;
    };
    clock = new ManualClock();
    const lane = new FileLane({ clock, name: 'local', atOnce: 2, timeoutMs: 1000 });
    const host = {
      directory: new WorkDirectory(temporaryDirectory(), lane),
      tellDamage: () => undefined,
      processOf: () => Promise.resolve(undefined),
      processesOf: (claims: ReadonlyMap<number, unknown>) =>
        Promise.resolve(new Map([...living].filter(([workerId]) => claims.has(workerId)))),
    };
    endings = new Endings(host, clock, recordingLog());
  });

  afterEach(() => {
    process.kill = kill;
  });

  /** One call, as the sweeper makes it each few seconds. */
  const end = (...workerIds: number[]) => {
    const workers = workerIds.map((workerId) => ({ workerId, attempt: 1 }));
    return endings.end(workers, { grace: 5000, patience: 0, reason: 'killed' }, signal);
  };

  it('hole 7: is kept from none by a process beside it that takes no signals', async () => {
    living.set(1, [foreign]).set(2, [plain]);
    expect([...(await end(1, 2)).keys()]).to.deep.equal([1, 2]);
    expect([...(await end(1, 2))]).to.deep.equal([[1, {}]]);
  });

  it('says what lives on ten seconds after the grace, and says the same at each call', async () => {
    const many = Array.from({ length: 12 }, (_, at) => stubborn + 100 + at);
    living.set(1, [stubborn, foreign]).set(2, many);
    const reasons = async () => [...(await end(1, 2)).values()].map(({ why }) => why?.message);
    expect(await reasons()).to.deep.equal([undefined, undefined]);
    await clock.advance(6000);
    expect(await reasons()).to.deep.equal([undefined, undefined]);
    await clock.advance(10_000);
    const late = await reasons();
    expect(late).to.deep.equal([
      `processes ${foreign} of worker 1 are of another user, and take no signal from thresher`,
      `processes ${many.slice(0, 10).join(', ')} and 2 more of worker 2 live on after its grace, though they were killed`,
    ]);
    await clock.advance(60_000);
    expect(await reasons()).to.deep.equal(late);
    living.clear();
    expect((await end(1, 2)).size).to.equal(0);
  });
});
