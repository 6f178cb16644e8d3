import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ContainerState } from '../../src/clients/interlink/wire.ts';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from '../support/htcondor-site.ts';
import { type InterlinkClient, podOf } from '../support/interlink-client.ts';
import { type TestPod, untilEnded, untilRuns, untilState } from '../support/interlink-condor.ts';
import { dataRoot, untilListening } from '../support/interlink-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('a Pod of interLink whose files cannot be fetched from a remote schedd', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let environment: Record<string, string>;
  let daemon: RunningDaemon;
  let client: InterlinkClient;

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const queue = { demand: 'interlink', maxWorkers: 10, nQueueLimitWorker: 10 };
    const interlink = { socket: 'sidecar.sock', dataRoot, lookInterval: 0.2, allowHost: true };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind: 'remote', template: 'job.yaml', queue }) },
        settings: {
          master: { factoryId: space.factory },
          sweeper: { sleepTime: 1 },
          sources: { interlink },
        },
      },
      { 'job.yaml': template },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    environment = condorEnvironment(pool, site.directory);
    await start();
  });

  after(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  async function start(): Promise<void> {
    daemon = site.start([], environment);
    client = await untilListening(site, daemon);
  }

  function hostPod(name: string, code: number): TestPod {
    const go = join(space.directory, 'go');
    const pod = podOf(name, randomUUID(), `until [ -e ${go} ]; do sleep 0.1; done; echo said; exit ${code}`);
    const [container] = pod.spec.containers;
    Object.assign(container ?? {}, { image: 'host', resources: { requests: { memory: '32Mi' } } });
    return pod;
  }

  /** A directory that stands where HTCondor writes the report. */
  const inTheWay = ({ metadata: { uid } }: TestPod) => site.path(dataRoot, 'output', uid, 'pod-status.json');
  const isAwaited = ({ waiting, terminated }: ContainerState) => {
    expect(terminated, 'an end that is wrong').to.equal(undefined);
    return waiting?.reason === 'OutputAwaited';
  };
  const untilAwaited = (pod: TestPod) => untilState(client, pod, 'waits for its files', isAwaited);
  const jobs = async () =>
    (
      await clientOf(pool, 'remote').queue(space.mine, ['ClusterId', 'ProcId'], new AbortController().signal)
    ).map(({ ClusterId, ProcId }) => `${String(ClusterId)}.${String(ProcId)}`);

  it('keeps its job until they have come, and then ends as it did; others end meanwhile, and a deleted one waits for nothing', async () => {
    const [good, bad, deleted] = [hostPod('good', 3), hostPod('bad', 4), hostPod('deleted', 5)];
    const made = await Promise.all([good, bad, deleted].map((pod) => client.created(pod)));
    const [, badJob, deletedJob] = made.map(({ PodJID }) => PodJID);
    await Promise.all([good, bad, deleted].map((pod) => untilRuns(client, pod)));
    for (const pod of [bad, deleted]) mkdirSync(inTheWay(pod));
    writeFileSync(join(space.directory, 'go'), '');

    const first = await untilEnded(client, good);
    expect(first, JSON.stringify(first)).to.include({ exitCode: 3 });
    expect((await client.logs(good.metadata.uid)).text).to.equal('said\n');
    const [{ waiting }] = await Promise.all([untilAwaited(bad), untilAwaited(deleted)]);
    expect(waiting?.message).to.match(
      /^the job has ended, and its files have not come yet: .+condor_transfer_data/,
    );
    const left = await jobs();
    expect(left).to.include.members([badJob, deletedJob]);

    const workers = JSON.parse((await site.run('workers', '--output', 'json')).stdout) as {
      workerID: number;
      batchID: string;
    }[];
    const id = workers.find(({ batchID }) => batchID === badJob)?.workerID ?? 0;
    await until('thresher worker says why', async () =>
      (await site.run('worker', String(id))).stdout.includes('cannot be fetched yet: condor_transfer_data'),
    );

    expect((await client.remove(deleted)).status).to.equal(200);
    await until('the job of the deleted one is gone', async () => !(await jobs()).includes(deletedJob ?? ''));
    await until(
      'nothing is left of it',
      () => !existsSync(site.path(dataRoot, 'output', deleted.metadata.uid)),
    );

    daemon.process.kill('SIGKILL');
    await daemon.ended;
    await start();
    await untilAwaited(bad);
    expect(await jobs()).to.deep.equal([badJob]);
    rmdirSync(inTheWay(bad));
    expect(await untilEnded(client, bad)).to.include({ exitCode: 4 });
    expect((await client.logs(bad.metadata.uid)).text).to.equal('said\n');
    await until('its job is gone', async () => (await jobs()).length === 0);
    expect((await site.run('worker', String(id))).stdout).not.to.include('keptReason');
    for (const pod of [good, bad]) expect((await client.remove(pod)).status).to.equal(200);
  });
});
