/** The image of an HTCondor pool (templates/kubernetes/htcondor-pool/image) in Pods of the real node. */
import { expect } from 'chai';
import { mintToken, newSigningKey } from '../../src/clients/htcondor/idtoken.ts';
import { type ControlPlane, type Namespace, type Pod, realNode } from '../support/kubernetes.ts';
import { execIn } from '../support/pod-exec.ts';
import { poolImage } from '../support/pool-image.ts';
import { noDns, quickSettings } from '../support/pool-manifests.ts';
import { until } from '../support/until.ts';

interface PoolPod extends Pod {
  readonly status: Pod['status'] & { readonly podIP?: string };
}

const domain = 'htcondor-pool';
const patience = 60_000;

const tokenOf = (key: Uint8Array): string =>
  mintToken({
    key,
    issuer: domain,
    identity: `worker@${domain}`,
    authorizations: ['ADVERTISE_MASTER', 'ADVERTISE_STARTD', 'READ'],
    now: Date.now(),
  });

describe('the image of an HTCondor pool', function () {
  this.timeout(600_000);
  let plane: ControlPlane;
  let space: Namespace;
  let image: string;
  let centralManager: string;

  const podOf = (name: string): Promise<PoolPod> => space.client.get<PoolPod>(space.core('pods', name));
  const ended = (name: string): Promise<PoolPod> =>
    until(
      `${name} is over`,
      async () => {
        const pod = await podOf(name);
        return ['Succeeded', 'Failed'].includes(pod.status.phase) ? pod : undefined;
      },
      patience,
    );
  const logOf = async (name: string): Promise<string> =>
    (await space.client.raw('GET', space.core('pods', `${name}/log`))).text;

  async function start(
    name: string,
    role: string,
    secret: string,
    mountPath: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const empty = [
      '/run/condor',
      '/var/log/condor',
      '/tmp',
      '/var/lib/condor/execute',
      '/var/lib/condor/spool',
    ];
    const volumes = empty.map((path, index) => ({ name: `empty-${index}`, path }));
    await space.client.create(space.core('pods'), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        restartPolicy: 'Never',
        ...noDns,
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 60,
        securityContext: { runAsNonRoot: true, runAsUser: 900, runAsGroup: 900, fsGroup: 900 },
        containers: [
          {
            name: 'htcondor',
            image,
            imagePullPolicy: 'IfNotPresent',
            args: [role],
            env: Object.entries({ GRACE_PERIOD: '60', ...environment }).map(([key, value]) => ({
              name: key,
              value,
            })),
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            ...(role === 'worker' && { lifecycle: { preStop: { exec: { command: ['pre-stop'] } } } }),
            volumeMounts: [
              ...volumes.map((volume) => ({ name: volume.name, mountPath: volume.path })),
              { name: 'secret', mountPath, readOnly: true },
              { name: 'quick', mountPath: '/etc/condor/more.d', readOnly: true },
            ],
          },
        ],
        volumes: [
          ...volumes.map((volume) => ({ name: volume.name, emptyDir: {} })),
          { name: 'secret', secret: { secretName: secret, defaultMode: 0o440 } },
          { name: 'quick', configMap: { name: 'quick' } },
        ],
      },
    });
  }

  const startWorker = (name: string, secret: string, environment: Readonly<Record<string, string>> = {}) =>
    start(name, 'worker', secret, '/etc/condor/tokens-orig.d', {
      CONDOR_HOST: centralManager,
      NUM_CPUS: '2',
      MEMORY: '512',
      UPDATE_INTERVAL: '5',
      ...environment,
    });

  async function run(pod: string, ...command: readonly string[]): Promise<string> {
    const { code, output, errors } = await execIn(space.client.access, space.core('pods', pod), command);
    if (code !== 0) throw new Error(`${command.join(' ')} in ${pod} ended with ${code}: ${output}${errors}`);
    return output;
  }
  const succeeds = (pod: string, ...command: readonly string[]): Promise<boolean> =>
    run(pod, ...command).then(
      () => true,
      () => false,
    );

  const running = (name: string) =>
    until(
      `${name} runs`,
      async () => {
        const { status } = await podOf(name);
        return status.containerStatuses?.[0]?.state.running === undefined ? undefined : status.podIP;
      },
      patience,
    );

  /** @returns the cluster. */
  async function submit(...lines: readonly string[]): Promise<string> {
    const description = ['executable = /bin/sh', 'request_memory = 64', 'request_disk = 1024', ...lines].join(
      '\n',
    );
    const script = `cd /tmp && printf '%s\\n' "$1" >job.sub && as-user alice condor_submit -terse job.sub`;
    return (await run('schedd', 'sh', '-c', script, 'submit', `${description}\nqueue`)).split('.')[0] ?? '';
  }
  const stateOf = async (cluster: string): Promise<string> =>
    (
      (await run('schedd', 'condor_q', '-allusers', cluster, '-af', 'JobStatus', 'NumJobStarts')) +
      (await run(
        'schedd',
        'condor_history',
        cluster,
        '-limit',
        '1',
        '-af',
        'JobStatus',
        'NumJobStarts',
        'ExitCode',
      ))
    ).trim();

  before(async () => {
    plane = await realNode();
    image = await poolImage();
    space = await plane.namespace('pool-image');
    const key = newSigningKey();
    const secrets = {
      key: { POOL: key },
      worker: { token: tokenOf(key) },
      wrong: { token: tokenOf(newSigningKey()) },
    };
    for (const [name, files] of Object.entries(secrets)) {
      const data = Object.fromEntries(
        Object.entries(files).map(([file, content]) => [file, Buffer.from(content).toString('base64')]),
      );
      await space.client.create(space.core('secrets'), { kind: 'Secret', metadata: { name }, data });
    }
    const data = { 'quick.conf': quickSettings };
    await space.client.create(space.core('configmaps'), {
      kind: 'ConfigMap',
      metadata: { name: 'quick' },
      data,
    });
    await start('central-manager', 'central-manager', 'key', '/etc/condor/passwords-orig.d');
    centralManager = await running('central-manager');
    await start('schedd', 'schedd', 'key', '/etc/condor/passwords-orig.d', { CONDOR_HOST: centralManager });
    // They begin together, since each waits for something else.
    await Promise.all([
      startWorker('idle', 'worker', {
        STARTD_NOCLAIM_SHUTDOWN: '12',
        THRESHER_FACTORY: 'f-1',
        HARVESTER_WORKER_ID: '17',
        pandaQueueName: 'POOL "A"',
        POOL_SHAPE: 'small',
      }),
      startWorker('stranger', 'wrong', { JOIN_TIMEOUT: '10' }),
      startWorker('lost', 'worker', { JOIN_TIMEOUT: '1', CONDOR_HOST: '127.0.0.1:1' }),
      startWorker('mistaken', 'worker', { NUM_CPUS: 'two' }),
    ]);
    await running('schedd');
    await until('the schedd is ready', () => succeeds('schedd', 'ready'), patience);
  });

  after(async () => {
    await space[Symbol.asyncDispose]();
  });

  it('has a central manager that is ready when its collector answers, and all roles live', async () => {
    await until('the central manager is ready', () => succeeds('central-manager', 'ready'), patience);
    expect(await succeeds('central-manager', 'live')).to.equal(true);
    expect(await succeeds('schedd', 'live')).to.equal(true);
    expect(await succeeds('schedd', 'ready-worker'), 'no job runs in a schedd').to.equal(false);
  });

  it('makes a worker of the size that it is told, which runs a job and ends well when it has none', async () => {
    await running('idle');
    await until('the worker has joined', () => succeeds('idle', 'ready'), patience);
    expect(await succeeds('idle', 'ready-worker'), 'no job runs on it').to.equal(false);
    const named = 'Cpus Memory ThresherFactory ThresherWorker ThresherQueue ThresherShape'.split(' ');
    const slot = await run('central-manager', 'condor_status', '-af:,', ...named);
    expect(slot.trim()).to.equal('2, 512, f-1, 17, POOL "A", small');
    const cluster = await submit('arguments = "-c \'sleep 3; exit 3\'"');
    await until('a job makes it ready', () => succeeds('idle', 'ready-worker'), patience);
    await until('the job has ended', async () => (await stateOf(cluster)) === '4 1 3', patience);
    const { status } = await ended('idle');
    expect(status.phase, await logOf('idle')).to.equal('Succeeded');
  });

  it('lets a running job finish when Kubernetes ends the worker', async () => {
    await startWorker('ending', 'worker');
    await running('ending');
    const cluster = await submit('arguments = "-c \'sleep 8; exit 5\'"');
    await until('the job runs', () => succeeds('ending', 'ready-worker'), patience);
    await space.client.delete(space.core('pods', 'ending'), {});
    await until('the job has ended', async () => (await stateOf(cluster)) === '4 1 5', patience);
    await until(
      'the Pod is gone',
      async () => (await space.client.find(space.core('pods', 'ending'))) === undefined,
      patience,
    );
  });

  it('tells the schedd of a job that the grace period cuts off, so that the job waits again at once', async () => {
    await startWorker('cutting', 'worker', { GRACE_PERIOD: '15' });
    await running('cutting');
    const cluster = await submit('arguments = "-c \'sleep 600\'"');
    await until('the job runs', () => succeeds('cutting', 'ready-worker'), patience);
    await space.client.delete(space.core('pods', 'cutting'), {});
    // Kubernetes kills the Pod after 60 s, and the lease of the job lasts for as long.
    await until('the job waits', async () => (await stateOf(cluster)) === '1 1', 40_000);
    await run('schedd', 'condor_rm', cluster);
  });

  it('holds a job that takes more memory than it asked for, and the worker runs on', async () => {
    await startWorker('roomy', 'worker', { DISK: '300' });
    await running('roomy');
    await until('the worker has joined', () => succeeds('roomy', 'ready'), patience);
    const slot = ['-constraint', 'Machine == "roomy" && PartitionableSlot', '-af', 'TotalDisk'];
    const disk = Number(await run('central-manager', 'condor_status', ...slot));
    // What others take and free on the node meanwhile counts, too; the node itself has many GiB.
    expect(disk, 'KiB of disk, about the limit of the Pod').to.be.within(100 * 1024, 600 * 1024);
    // HTCondor would take $(...) for a macro.
    const hog = 'x=`head -c 110000000 /dev/zero | base64 -w 0`; sleep 600';
    const cluster = await submit(`arguments = "-c '${hog}'"`);
    const words = ['condor_q', '-allusers', cluster, '-af', 'JobStatus', 'HoldReason'];
    const held = await until(
      'the job is held',
      async () => /^5 .*/.exec(await run('schedd', ...words))?.[0],
      // The shell takes its memory slowly where others use the processor.
      2 * patience,
    );
    expect(held).to.include('memory usage exceeded request_memory');
    await run('schedd', 'condor_rm', cluster);
    expect((await podOf('roomy')).status.phase).to.equal('Running');
  });

  it('gives the signing key to no job: neither as its input nor beside the schedd', async () => {
    const refusals = await Promise.all(
      ['scheduler', 'local'].map((universe) =>
        submit(`universe = ${universe}`).then(
          () => 'taken',
          (error: unknown) => String(error),
        ),
      ),
    );
    for (const refusal of refusals) expect(refusal).to.include('no local, grid or scheduler universe');
    const thief = await submit(
      'transfer_input_files = /run/condor/passwords.d/POOL',
      'arguments = "-c \'cat POOL\'"',
      'output = stolen',
    );
    const words = ['condor_q', '-allusers', thief, '-af', 'JobStatus', 'HoldReason'];
    const held = await until(
      'the job is held',
      async () => /^5 .*/.exec(await run('schedd', ...words))?.[0],
      patience,
    );
    expect(held).to.include('/run/condor/passwords.d/POOL');
    await run('schedd', 'condor_rm', thief);
  });

  it('ends a worker of another pool as a failure, with the cause and a remedy', async () => {
    const { status } = await ended('stranger');
    const terminated = status.containerStatuses?.[0]?.state.terminated;
    expect(terminated?.exitCode, await logOf('stranger')).to.equal(69);
    expect(terminated?.message).to.match(
      /did not join the pool at \S+:9618 within 10 s: its token or password is none of this pool: .*IDTOKENS/,
    );
    const slots = await run('central-manager', 'condor_status', '-startd', '-af', 'Machine');
    expect(slots).not.to.include('stranger');
  });

  it('ends a worker without a route as a failure that names the address', async () => {
    const { status } = await ended('lost');
    const terminated = status.containerStatuses?.[0]?.state.terminated;
    expect(terminated?.exitCode, await logOf('lost')).to.equal(69);
    expect(terminated?.message)
      .to.include('within 1 s: compare CONDOR_HOST with')
      .and.to.include('127.0.0.1:1');
  });

  it('refuses wrong settings at once', async () => {
    const { status } = await ended('mistaken');
    const { exitCode, message } = status.containerStatuses?.[0]?.state.terminated ?? {};
    expect({ exitCode, message }).to.deep.equal({
      exitCode: 64,
      message: 'htcondor-pool: NUM_CPUS is "two": write a whole number\n',
    });
  });
});
