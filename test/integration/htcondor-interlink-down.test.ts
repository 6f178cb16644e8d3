import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { expect } from 'chai';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from '../support/htcondor-site.ts';
import { type InterlinkClient, podOf } from '../support/interlink-client.ts';
import { dataRoot, untilListening } from '../support/interlink-site.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('interLink where the schedd is down', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let client: InterlinkClient;

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    // Nothing listens there.
    const nowhere = { condorSchedd: 'gone@127.0.0.1', condorPool: '127.0.0.1:1', useSpool: true };
    const parts = { template: 'job.yaml', submitter: nowhere, monitor: nowhere };
    const queue = condorQueue(pool, {
      ...parts,
      queue: { demand: 'interlink', maxWorkers: 10, nQueueLimitWorker: 10 },
    });
    const sweeper = { ...(queue['sweeper'] as object), ...nowhere };
    const interlink = {
      socket: 'sidecar.sock',
      dataRoot,
      lookInterval: 0.2,
      allowHost: true,
      createTimeout: 8,
    };
    site = condorSite(
      {
        queues: { Q: { ...queue, sweeper } },
        settings: { master: { factoryId: space.factory }, sources: { interlink } },
      },
      { 'job.yaml': template },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    client = await untilListening(site, site.start([], condorEnvironment(pool, site.directory)));
  });
  after(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  it('A3: /create says so with 5xx and a sentence, leaves no file, and the ping is 503', async () => {
    const pod = podOf('down', randomUUID(), 'true');
    Object.assign(pod.spec.containers[0] ?? {}, { image: 'host' });
    const { status, text } = await client.create(pod);
    expect(status, text).to.be.within(500, 599);
    expect(text).to.match(/^[^\n]{20,}$/);
    expect(text, 'it names the one who does not answer').to.match(/gone@127\.0\.0\.1|127\.0\.0\.1:1/);
    await until(
      () => `no file of it is left: ${files().join()}`,
      () => files().length === 0,
    );
    const ping = await until('the ping is refused', async () => {
      const answer = await client.ask('GET', '/status', []);
      return answer.status === 503 && answer;
    });
    expect(ping.text).to.match(/^[^\n]{10,}$/);
    const info = JSON.parse((await client.ask('GET', '/system-info', '')).text) as Record<string, unknown>;
    expect(info).to.include({ status: 'warning', backend_connected: false });
    expect((await client.remove(pod)).status).to.equal(200);
  });

  function files(): string[] {
    return ['pods', 'output'].flatMap((directory) => readdirSync(site.path(dataRoot, directory)));
  }
});
