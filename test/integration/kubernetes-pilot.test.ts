import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { container, type Namespace, type Pod, realNode } from '../support/kubernetes.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const shell = (script: string, more: Readonly<Record<string, unknown>> = {}) => ({
  ...container('pilot'),
  command: ['sh', '-c', script],
  ...more,
});

/** @param release a directory of the machine: the pilot goes on until a file `over` is in it */
const templatesWith = (release: string) => ({
  'proxy.yaml': jobTemplate(
    {},
    {
      volumes: [
        { name: 'proxy', secret: { secretName: 'proxy-secret', defaultMode: 0o400 } },
        { name: 'release', hostPath: { path: release, type: 'Directory' } },
      ],
      containers: [
        shell(
          'cat "$proxySecretPath"; echo; env; echo begun; until [ -e /release/over ]; do sleep 1; done; echo over',
          {
            volumeMounts: [
              { name: 'proxy', mountPath: '/proxy' },
              { name: 'release', mountPath: '/release' },
            ],
          },
        ),
      ],
    },
  ),
  'content.yaml': jobTemplate({}, { containers: [shell('echo "$proxyContent"')] }),
  'fails.yaml': jobTemplate(
    {},
    { containers: [shell('echo first; echo the proxy is too old; sleep 1; echo bye >&2; exit 80')] },
  ),
  'waits.yaml': jobTemplate({}, { containers: [shell('true', { image: 'registry.invalid/none:1' })] }),
});

const content = '-----BEGIN CERTIFICATE-----\nnot $(workerID) or ${HOME}\n-----END CERTIFICATE-----\n';
const small = { cpuAdjustRatio: 1, memoryAdjustRatio: 1 };

/** A real daemon, a real node, and what its operator sees of the pilots. */
describe('a pilot on Kubernetes', function () {
  this.timeout(300_000);
  let space: Namespace;
  let site: Site;
  let following: RunningDaemon;
  let release: string;

  /** The first worker of a queue, once it is so. */
  const workerOf = (queue: string, is: (status: string) => boolean) =>
    until(`there is such a worker of ${queue}`, async () => {
      const worker = (await site.workers({ queue })).at(-1);
      return worker !== undefined && is(worker.status) && worker;
    });

  before(async () => {
    const plane = await realNode();
    release = temporaryDirectory();
    space = await plane.namespace('pilot');
    await space.client.create(space.core('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'proxy-secret' },
      stringData: { 'atlas.proxy': 'the proxy that was mounted' },
    });
    const queue = { maxWorkers: 1, nQueueLimitWorker: 1, queueStatus: 'online' };
    const proxy = {
      ...small,
      proxySecretPath: '/proxy/atlas.proxy',
      logBaseURL: 'https://logs.example/pilots',
      tokenDir: '/tokens',
      pandaTokenFilename: 'token',
      pandaTokenKeyFilename: 'key',
    };
    site = kubernetesSite(
      plane,
      {
        queues: {
          PROXY: kubernetesQueue(space, {
            template: 'proxy.yaml',
            submitter: { ...proxy, maxDiskCount: 100 },
            queue,
          }),
          CONTENT: kubernetesQueue(space, {
            template: 'content.yaml',
            submitter: { ...small, x509UserProxy: 'proxy.pem' },
            // Its content is no certificate, and that is not what is tried here.
            queue: { ...queue, credentials: [] },
          }),
          FAILS: kubernetesQueue(space, {
            template: 'fails.yaml',
            submitter: small,
            queue,
            monitor: { failedLogLines: 2, payloadType: 'atlas_pilot_wrapper' },
          }),
          WAITS: kubernetesQueue(space, { template: 'waits.yaml', submitter: small, queue }),
        },
      },
      templatesWith(release),
    );
    writeFileSync(site.path('proxy.pem'), content, { mode: 0o600 });
    site.start();
    const { workerID } = await workerOf('PROXY', (status) => status === 'running');
    following = site.startWith(['--config', site.config, 'logs', String(workerID), '--follow']);
  });

  after(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  it("has its proxy from the mounted Secret and Harvester's whole environment, which `thresher logs --follow` shows as it comes", async () => {
    const { workerID, batchID } = await workerOf('PROXY', (status) => status === 'running');
    await until('it is shown while it runs', () => following.output().includes('begun\n'));
    expect(following.output()).not.to.include('over\n');
    writeFileSync(join(release, 'over'), '');
    expect(await following.ended).to.equal(0);
    const lines = following.output().trimEnd().split('\n');
    expect(lines[0]).to.equal('the proxy that was mounted');
    expect(lines.at(-1)).to.equal('over');
    const id = String(workerID);
    const expected: Record<string, string> = {
      computingSite: 'PROXY',
      pandaQueueName: 'PROXY',
      resourceType: 'SCORE',
      pilotType: 'PR',
      pilotUrlOpt: '',
      pythonOption: '--pythonversion 3',
      pilotVersion: 'current',
      proxySecretPath: '/proxy/atlas.proxy',
      PANDA_AUTH_ORIGIN: 'atlas.pilot',
      PANDA_AUTH_DIR: '/tokens',
      PANDA_AUTH_TOKEN: 'token',
      PANDA_AUTH_TOKEN_KEY: 'key',
      workerID: id,
      HARVESTER_WORKER_ID: id,
      HARVESTER_ID: 'test-harvester',
      PANDA_JSID: 'harvester-test-harvester',
      K8S_JOB_ID: batchID ?? '',
      submit_mode: 'PULL',
      logs_frontend_w: 'https://logs.example/pilots',
      logs_frontend_r: 'https://logs.example/pilots',
      EXEC_DIR: '/scratch/executables',
      TMPDIR: '/pilotdir',
      HOME: '/pilotdir',
      PANDA_HOSTNAME: 'real-node-0',
      prodSourceLabel: 'unified',
      jobType: 'unified',
      storageRequestMiB: '100',
      storageLimitMiB: '100',
    };
    const environment: Record<string, string> = Object.fromEntries(
      lines.map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]),
    );
    expect(environment).to.include(expected);
    expect(lines.filter((line) => line.startsWith('workerID='))).to.have.length(1);
  });

  it('has its log as long as its Pod, whole or its last lines', async () => {
    const { workerID } = await workerOf('PROXY', (status) => status === 'finished');
    const { stdout, status } = await site.run('logs', String(workerID), '--tail', '2');
    expect({ stdout, status }).to.deep.equal({ stdout: 'begun\nover\n', status: 0 });
    expect((await site.run('logs', String(workerID))).stdout).to.match(/^the proxy that was mounted\n/);
  });

  it("gets the content of a proxy file as it is, and nobody sees it in the Pod's specification", async () => {
    const { workerID, batchID } = await workerOf('CONTENT', (status) => status === 'finished');
    expect((await site.run('logs', String(workerID))).stdout).to.equal(`${content}\n`);
    const [pod] = await space.podsOf({ metadata: { name: batchID ?? '' } });
    expect(JSON.stringify(pod)).to.include('secretKeyRef').and.not.include('CERTIFICATE');
  });

  it('that failed leaves the end of its log with the worker, also when its Pod is gone', async () => {
    const worker = await workerOf('FAILS', (status) => status === 'failed');
    expect(worker).to.include({ errorCode: 'exit-status', nativeExitCode: 80, nodeID: 'real-node-0' });
    expect(worker.diagMessage).to.include('pilot proxy invalid');
    const [pod] = await space.podsOf({ metadata: { name: worker.batchID ?? '' } });
    await space.client.delete(space.core('pods', pod?.metadata.name), {});
    const id = String(worker.workerID);
    const gone = await until('its Pod is gone', async () => {
      const result = await site.run('logs', id);
      return result.status !== 0 && result;
    });
    expect(gone.stderr).to.include(
      `worker ${id} has no Pod in ${space.name}: none was made yet, or its log went with it`,
    );
    const shown = await site.run('worker', id);
    expect(shown.stdout).to.include('the proxy is too old\\nbye\\n');
    expect(shown.stdout).not.to.include('first');
  });

  it('has one log for both its outputs, and `--stderr` says so', async () => {
    const { workerID } = await workerOf('PROXY', () => true);
    const { status, stderr } = await site.run('logs', String(workerID), '--stderr');
    expect(status).to.equal(1);
    expect(stderr).to.match(/both outputs of worker \d+ in one log: leave out --stderr/);
  });

  it('that has not begun has no log yet, and `thresher logs` says why', async () => {
    const { workerID, batchID } = await workerOf('WAITS', (status) => status === 'idle');
    await space.untilPod({ metadata: { name: batchID ?? '' } }, 'the image is missed', (pod: Pod) =>
      /Image/.test(pod.status.containerStatuses?.[0]?.state.waiting?.reason ?? ''),
    );
    const { status, stderr } = await site.run('logs', String(workerID));
    expect(status).to.equal(1);
    expect(stderr).to.match(/the pilot of worker \d+ has not begun: (ErrImagePull|ImagePullBackOff)/);
  });

  it('that is nobody has none', async () => {
    const { status, stderr } = await site.run('logs', '99999999');
    expect(status).to.equal(1);
    expect(stderr).to.include('there is no worker 99999999');
  });
});
