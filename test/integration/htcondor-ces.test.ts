import { expect } from 'chai';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
/** Nobody listens there: jobs wait for it to come back. */
const [one, two] = ['127.0.0.1:9', '127.0.0.1:10'];
const ceList = [
  { ce_endpoint: one, ce_hostname: 'one.pool.test' },
  { ce_endpoint: two, ce_hostname: 'two.pool.test' },
];

it('a CE with more queued than the queue may have gets nothing more, also before the monitor has seen it', async () => {
  const pool = await condorPool();
  const backend = new HTCondorBackend(pool, 'local');
  try {
    // Chance always says the first one, so that only a weight of 0 makes it another.
    const context = backend.context({ queueLimit: () => 2, random: () => 0 });
    const submitter = backend.submitter('exec sleep 1000', context, { ceList });
    const chosen: unknown[] = [];
    for (let nth = 1; nth <= 4; nth++) {
      const worker = backend.worker();
      const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
      expect(outcome?.kind).to.equal('accepted');
      const job = `${backend.space.mine} && harvesterWorkerID == "${worker.workerId}"`;
      const [ad] = await clientOf(pool, 'local').queue(job, ['thresherCe'], signal);
      chosen.push(ad?.['thresherCe']);
    }
    expect(chosen).to.deep.equal([one, one, one, two]);
  } finally {
    await backend.clean();
  }
});

describe('a queue with several CEs', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let daemon: RunningDaemon;

  before(async () => {
    pool = await condorPool();
  });
  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  function begin(template: Record<string, unknown>, limits: Readonly<Record<string, unknown>>): void {
    space = condorSpace(pool);
    site = condorSite(
      {
        queues: {
          Q: condorQueue(pool, { template: 'ce.yaml', submitter: { ceList }, queue: limits }),
        },
        settings: { master: { factoryId: space.factory } },
      },
      { 'ce.yaml': { ...shellTemplate(space, 'exec sleep 1000'), ...template } },
    );
    daemon = site.start([], condorEnvironment(pool, site.directory));
  }

  /** Living jobs at each of the two, and their submissions. */
  async function atCes() {
    const jobs = await clientOf(pool, 'local').queue(
      `${space.mine} && JobStatus =!= 3`,
      ['thresherCe', 'ClusterId', 'JobUniverse', 'GridResource', 'JobStatus'],
      signal,
    );
    const of = (ce: string) => jobs.filter(({ thresherCe }) => thresherCe === ce);
    return { jobs, counts: [of(one).length, of(two).length], of };
  }
  const untilThere = (total: number) =>
    until(`${total} jobs are there`, async () => {
      const found = await atCes();
      return found.jobs.length === total && found;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.output().slice(-3000)}`);
    });

  it('gives each its part of a batch in one submission, and the next to the one that has less', async () => {
    const grid = { universe: 'grid', grid_resource: 'condor ${ceHostname} ${ceEndpoint}' };
    begin({ ...grid, should_transfer_files: undefined }, { maxWorkers: 6, nQueueLimitWorker: 6 });
    const { counts, of } = await untilThere(6);
    expect(counts).to.deep.equal([3, 3]);
    for (const [ce, name] of [
      [one, 'one'],
      [two, 'two'],
    ] as const) {
      const jobs = of(ce);
      expect(new Set(jobs.map(({ ClusterId }) => ClusterId)).size).to.equal(1);
      expect(jobs[0]).to.include({ JobUniverse: 9, GridResource: `condor ${name}.pool.test ${ce}` });
    }
    await until('all are known', async () => (await site.workers({ status: 'submitted' })).length === 6);
    const said = (await site.workers({ status: 'submitted' })).map((worker) => worker.computingElement);
    expect(said.toSorted()).to.deep.equal([two, two, two, one, one, one]);
    const there = `${space.mine} && thresherCe == "${one}"`;
    await clientOf(pool, 'local').act('remove', there, 'the CE lost them', signal);
    await until('they are replaced', async () => {
      return (await site.workers({ status: 'cancelled' })).length === 3 && (await atCes()).jobs.length === 6;
    });
    // By its weight the other one has a tenth of a worker to get, and never all.
    const [atOne = 0] = (await atCes()).counts;
    expect(atOne).to.be.at.least(2);
  });

  it('fills the one where pilots run, and not the one where they wait, up to its limits', async () => {
    const requirements = '"${ceHostname}" == "one.pool.test"';
    begin({ requirements }, { maxWorkers: 20, nQueueLimitWorker: 8 });
    await until('half of the first run', async () => (await site.workers({ status: 'running' })).length >= 4);
    const { counts } = await untilThere(20);
    // What waits at the second one stays what it was: all that is new went where there is room.
    expect(counts).to.deep.equal([16, 4]);
    await until('those run', async () => (await site.workers({ status: 'running' })).length === 16);
  });
});
