import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { expect } from 'chai';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { podOf } from '../support/interlink-client.ts';
import { dataRoot, untilListening } from '../support/interlink-site.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('on a real schedd a Pod of interLink', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;

  before(async () => {
    pool = await condorPool();
  });

  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  it('A1, A4, A11, A12, A22: is a job with its needs, and its state and logs come back with the job', async () => {
    space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const queue = { demand: 'interlink', maxWorkers: 10, nQueueLimitWorker: 10 };
    const options = {
      socket: 'sidecar.sock',
      dataRoot,
      lookInterval: 0.2,
      allowHost: true,
      capacity: 'htcondor',
    };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind: 'remote', template: 'job.yaml', queue }) },
        settings: {
          master: { factoryId: space.factory },
          sources: { interlink: { ...options, condorPool: pool.pool } },
        },
      },
      { 'job.yaml': template },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    const client = await untilListening(site, site.start([], condorEnvironment(pool, site.directory)));

    const pod = podOf('real', randomUUID(), 'echo hello; echo world; exit 5');
    const [container] = pod.spec.containers;
    Object.assign(container ?? {}, { image: 'host', resources: { requests: { memory: '64Mi' } } });
    const { uid } = pod.metadata;
    const { PodJID } = await client.created(pod);
    expect(PodJID).to.match(/^\d+\.\d+$/);
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended, JSON.stringify(ended)).to.include({ exitCode: 5 });
    await until(
      () =>
        `its log is there: ${readdirSync(site.path(dataRoot, 'output', uid)).join()} ${JSON.stringify(ended)}`,
      async () => (await client.logs(uid)).text === 'hello\nworld\n',
      6000,
    );
    expect((await client.logs(uid, { Tail: 1, Timestamps: true })).text).to.match(/^\d{4}-\S+Z world\n$/);
    const ping = JSON.parse((await client.ask('GET', '/status', [])).text) as {
      resources?: { cpu?: string };
    };
    expect(Number(ping.resources?.cpu)).to.be.greaterThan(0);
    expect((await client.remove(pod)).status).to.equal(200);
    await until('nothing is left of it', () => !existsSync(site.path(dataRoot, 'output', uid)));
  });
});
