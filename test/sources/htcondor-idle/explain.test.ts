import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { explainDemand } from '../../../src/sources/htcondor-idle/explain.ts';
import { PoolLooker } from '../../../src/sources/htcondor-idle/look/index.ts';
import type { Looker, PoolLook } from '../../../src/sources/htcondor-idle/look/result.ts';
import type { Need } from '../../../src/sources/htcondor-idle/model.ts';
import { OperatorFiles } from '../../../src/util/operator-files.ts';
import { needOf } from '../../support/idle-demand.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scriptedPool, silent } from '../../support/scripted-pool.ts';
import { until } from '../../support/until.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const { signal } = new AbortController();

/** A look at a pool that takes none of these. */
const lookAt = (needs: readonly Need[]): PoolLook => ({
  at: 0,
  needs,
  fresh: 0,
  spaces: [],
  startds: [],
  collectorStartedAt: 0,
  matching: { shape: () => false, space: () => false, pool: () => false },
  concurrency: new Map(),
  unknown: [],
});

describe('the jobs that nothing takes, for an operator', () => {
  let directory: string;
  let clock: ManualClock;
  beforeEach(() => {
    directory = temporaryDirectory();
    const ad = 'MyType = "Machine"\nPartitionableSlot = true\nCpus = 1\nMemory = 1000\nDisk = 1000000\n';
    writeFileSync(join(directory, 'q.ad'), ad);
    clock = new ManualClock();
  });

  const explained = (looker: Looker) => {
    const files = new OperatorFiles({ clock });
    const queue = { name: 'Q', configDir: directory, options: { slotAd: 'q.ad', nonePending: false } };
    return explainDemand({}, [queue], { clock, files, configDir: directory, looker }, signal);
  };

  it('are all listed, and the fifty kinds with most jobs are explained', async () => {
    const needs = Array.from({ length: 1000 }, (_, index) => needOf(`${index}`, index + 1));
    const asked: string[] = [];
    const { unservable } = await explained({
      look: async () => lookAt(needs),
      explain: async ({ key }) => {
        asked.push(key);
        return { sentence: 'why', conditions: [], of: 'unknown' };
      },
    });
    expect(unservable.map(({ jobs }) => jobs)).to.deep.equal(needs.map(({ count }) => count).toReversed());
    expect(asked).to.have.length(50);
    expect(asked[0]).to.equal('schedd#999');
    expect(unservable.slice(0, 50).every(({ sentence }) => sentence === 'why')).to.equal(true);
    expect(unservable[50]?.sentence).to.contain('the 50 kinds with most jobs');
    expect(clock.sleeping).to.deep.equal([]);
  });

  it('are shown without the secrets that HTCondor repeats, whoever it names and whatever it says', async () => {
    const secret = 'hunter7-0123456789';
    const need = needOf('1', 2);
    const asked = { ...need, owners: new Map([[`password=${secret}`, 2]]) };
    const reason = { code: 'condor-failed' as const, message: `refused: api_key="${secret}"` };
    const answer = await explained({
      look: async () => ({ ...lookAt([asked]), unknown: [{ part: 'schedd', name: 's', reason }] }),
      explain: async () => {
        const conditions = [`Token == "token=${secret}"`];
        return { sentence: `it wants Token == "token=${secret}"`, conditions, of: 'unknown' };
      },
    });
    expect(answer.unservable.map(({ jobs }) => jobs)).to.deep.equal([2]);
    expect(answer.unknown).to.have.length(1);
    expect(JSON.stringify(answer)).to.contain('(hidden)').and.not.contain('hunter7');
  });

  it('are listed without a cause where HTCondor computes for too long', async () => {
    const answer = explained({
      look: async () => lookAt([needOf('1', 2), needOf('2', 1)]),
      explain: async (_need, _templates, limited) => {
        await clock.sleep(86_400_000, limited);
        limited.throwIfAborted();
        return undefined;
      },
    });
    await until('it computes', () => clock.sleeping.length === 2);
    await clock.advance(120_000);
    const { unservable } = await answer;
    expect(unservable.map(({ jobs, sentence }) => [jobs, sentence.includes('120 s')])).to.deep.equal([
      [2, true],
      [1, true],
    ]);
  });

  it('have no cause where the analysis of HTCondor crashes', async () => {
    const pool = scriptedPool(undefined, silent);
    const looker = new PoolLooker({ pool, clock, factoryId: 'f1' });
    const shape = { key: 'Q', queue: 'Q', resources: new Map(), oneJob: false, cost: 1, most: Infinity };
    const templates = [{ shape, ad: 'Cpus = 1\n' }];
    const { needs } = await looker.look(templates, signal);
    const [need] = needs;
    if (need === undefined) throw new Error('the pool has no jobs');
    const crash = async () => {
      throw new Error('condor_q was ended by SIGSEGV');
    };
    pool.matchmaker.withJobs = crash;
    expect(await looker.explain(need, templates, signal)).to.equal(undefined);
  });
});
