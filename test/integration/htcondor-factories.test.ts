import { expect } from 'chai';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
const wanted = 2;

describe('two factories with the same queues on one schedd', () => {
  let pool: Pool;
  const spaces: CondorSpace[] = [];
  const sites: Site[] = [];

  before(async () => {
    pool = await condorPool();
    for (let one = 1; one <= 2; one++) {
      const space = condorSpace(pool);
      const limits = { maxWorkers: wanted, nQueueLimitWorker: wanted };
      const site = condorSite(
        {
          queues: { Q: condorQueue(pool, { template: 'pilot.sub.yaml', queue: limits }) },
          // Harvester's name says nothing of whose a job is.
          settings: { master: { factoryId: space.factory, harvester_id: 'one-name' } },
        },
        { 'pilot.sub.yaml': shellTemplate(space, 'exec sleep 1000') },
      );
      spaces.push(space);
      sites.push(site);
      start(site);
    }
  });

  after(async () => {
    for (const site of sites) await site.clean();
    await clearSpaces(pool, spaces);
  });

  const start = (site: Site) => site.start([], condorEnvironment(pool, site.directory));
  const [mine, theirs] = [0, 1];
  const siteOf = (which: number) => sites[which] ?? expect.fail();

  /** Ids of the workers that run, once as many do as should. */
  const allRun = (which: number) =>
    until('all run', async () => {
      const running = await siteOf(which).workers({ status: 'running' });
      return running.length === wanted && running.map(({ workerID }) => workerID).sort();
    });
  const inQueue = async (which: number) => {
    const constraint = `${spaces[which]?.mine ?? 'false'} && JobStatus =!= 3`;
    const jobs = await clientOf(pool, 'local').queue(constraint, ['harvesterWorkerID'], signal);
    return jobs.map((job) => Number(job['harvesterWorkerID'])).sort();
  };
  const everybody = async (which: number) =>
    (await siteOf(which).workers()).map(({ workerID }) => workerID).sort();

  it('each have their own workers and no others', async () => {
    for (const which of [mine, theirs]) {
      expect(await allRun(which)).to.deep.equal(await inQueue(which));
      expect(await everybody(which)).to.deep.equal(await inQueue(which));
      const { stdout } = await siteOf(which).run('orphans', '--output', 'json');
      expect(JSON.parse(stdout)).to.deep.equal([]);
    }
  });

  it('each end their own and no others, by hand and with a lost database', async () => {
    const before = await allRun(theirs);
    const killed = await allRun(mine);
    await siteOf(mine).run('kill', '--queue', 'Q');
    await until('others run in their places', async () => {
      const now = await allRun(mine);
      return now.every((id) => !killed.includes(id));
    });
    expect(await allRun(theirs)).to.deep.equal(before);
    expect(await inQueue(theirs)).to.deep.equal(before);
    expect(await everybody(theirs)).to.deep.equal(before);
  });

  it('each take back their own and no others, without a database', async () => {
    const before = await allRun(theirs);
    const own = await allRun(mine);
    const site = siteOf(mine);
    await site.clean();
    site.removeDatabase();
    start(site);
    expect(await allRun(mine)).to.deep.equal(own);
    expect(await everybody(mine)).to.deep.equal(own);
    expect(await inQueue(mine)).to.deep.equal(own);
    expect(await inQueue(theirs)).to.deep.equal(before);
  });
});
