import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startNode, stopNode } from '../env/kubernetes/node.ts';
import type { Worker } from '../../src/worker/worker.ts';
import { brief, KubernetesBackend, watch, type Watched } from '../support/kubernetes-backend.ts';
import { jobTemplate } from '../support/kubernetes-site.ts';
import { container, ControlPlane, type Namespace, realNode } from '../support/kubernetes.ts';
import { requirements } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

interface Case {
  readonly what: string;
  readonly script?: string;
  /** Of the pilot's container. */
  readonly pilot?: Readonly<Record<string, unknown>>;
  readonly podSpec?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly queue?: keyof typeof queues;
  readonly worker?: Partial<Worker>;
  readonly then?: (space: Namespace, worker: Worker) => Promise<void>;
  /** What must be shown of it at some time, as `brief` says it. */
  readonly expected: string | RegExp;
}

const fail = (reason: string, graceSeconds: number) => ({ reason, graceSeconds, then: 'fail' });
const queues = {
  usual: {},
  // A grace of seconds: long enough for a volume that can be mounted.
  strict: { pendingRules: [fail('ErrImagePull|ImagePullBackOff|CreateContainerConfigError', 0)] },
  volumes: { pendingRules: [fail('ContainerCreating', 3)] },
  logs: { failedLogLines: 2 },
};

const shell = (script: string, more: Readonly<Record<string, unknown>> = {}) => ({
  ...container('pilot'),
  command: ['sh', '-c', script],
  ...more,
});
const limit = (resource: string, quantity: string) => ({ resources: { limits: { [resource]: quantity } } });

const running = (space: Namespace, name: string) =>
  space.untilPod({ metadata: { name } }, 'it runs', ({ status }) => status.phase === 'Running');

async function evict(space: Namespace, { name }: Worker): Promise<void> {
  const { metadata } = await running(space, name);
  await space.client.create(space.core('pods', `${metadata.name}/eviction`), {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: metadata.name, namespace: space.name },
  });
}

/** Time is over once it runs: of a slow machine the start alone would take a deadline that it has from the beginning. */
async function jobIsOver(space: Namespace, { name }: Worker): Promise<void> {
  await running(space, name);
  await space.client.patch(space.jobs(name), { spec: { activeDeadlineSeconds: 1 } });
}

/** The time of a Pod may be made shorter. */
async function podIsOver(space: Namespace, { name, requirements }: Worker): Promise<void> {
  const { metadata, spec } = await running(space, name);
  expect(spec).to.have.property('activeDeadlineSeconds', requirements.maxWalltime);
  await space.client.patch(space.core('pods', metadata.name), { spec: { activeDeadlineSeconds: 1 } });
}

const cases: readonly Case[] = [
  { what: 'a pilot that ends well', script: 'exit 0', expected: 'finished Complete 0; node, start, end' },
  {
    what: 'a pilot that fails',
    script: 'exit 3',
    expected: 'failed BackoffLimitExceeded exit-status 3; node, start, end',
  },
  {
    what: 'a pilot that nobody knows the command of',
    script: 'no-such-command',
    expected: 'failed BackoffLimitExceeded exit-status 127; node, start, end',
  },
  {
    what: 'a container whose command is not there',
    pilot: { command: ['/no/such'] },
    expected: /^failed StartError k8s-container-start 128; node, end$/,
  },
  {
    what: 'a pilot killed for its memory',
    script: 'exec tail /dev/zero',
    pilot: limit('memory', '32Mi'),
    expected: /^failed \w+ k8s-oom 137; node, start, end$/,
  },
  {
    what: 'a pilot that ends well though a child of it was killed for its memory',
    script: 'tail /dev/zero; exit 0',
    pilot: limit('memory', '32Mi'),
    expected: 'finished Complete 0; node, start, end',
  },
  {
    what: 'an image that is nowhere',
    queue: 'strict',
    pilot: { image: 'registry.invalid/none:1' },
    expected: /^failed (ErrImagePull|ImagePullBackOff) k8s-image; node, end$/,
  },
  {
    what: 'a Secret that is not there, in a variable',
    queue: 'strict',
    pilot: { env: [{ name: 'PROXY', valueFrom: { secretKeyRef: { name: 'none', key: 'proxy' } } }] },
    expected: 'failed CreateContainerConfigError k8s-config; node, end',
  },
  {
    what: 'a Secret that is not there, to be mounted',
    queue: 'volumes',
    podSpec: { volumes: [{ name: 'proxy', secret: { secretName: 'none' } }] },
    pilot: { volumeMounts: [{ name: 'proxy', mountPath: '/proxy' }] },
    expected: 'failed ContainerCreating k8s-not-starting; node, end',
  },
  {
    what: 'an eviction through the API',
    script: 'exec sleep 1000',
    then: evict,
    podSpec: { terminationGracePeriodSeconds: 1 },
    expected: 'failed Error k8s-evicted 137; node, start, end',
  },
  {
    what: 'a pilot that writes more than it may',
    pilot: limit('ephemeral-storage', '5Mi'),
    script: 'dd if=/dev/zero of=/tmp/much bs=1M count=30; exec sleep 1000',
    podSpec: { terminationGracePeriodSeconds: 1 },
    // The kubelet may lose its container meanwhile, and with it its start.
    expected: /^failed (Evicted|BackoffLimitExceeded) k8s-evicted( 137)?; node,( start,)? end$/,
  },
  {
    what: 'a pilot longer at work than its maxWalltime',
    script: 'exec sleep 1000',
    worker: { requirements: { ...requirements, maxWalltime: 1000 } },
    then: podIsOver,
    podSpec: { terminationGracePeriodSeconds: 1 },
    expected: /^failed DeadlineExceeded walltime( 137)?; node, start, end$/,
  },
  {
    what: 'a pilot longer at work than its Job may be',
    script: 'exec sleep 1000',
    then: jobIsOver,
    podSpec: { terminationGracePeriodSeconds: 1 },
    expected: /^failed Error walltime 137; node, start, end$/,
  },
  {
    what: 'a pilot that ended beside a container that goes on',
    expected: 'running PilotEnded; node, start',
    podSpec: {
      containers: [shell('exit 0'), { ...shell('exec sleep 1000'), name: 'log' }],
      terminationGracePeriodSeconds: 1,
    },
  },
  {
    what: 'a pilot that Kubernetes starts again and again',
    script: 'exit 1',
    expected: 'idle CrashLoopBackOff; node',
    podSpec: { restartPolicy: 'OnFailure' },
    spec: { backoffLimit: 6 },
  },
  {
    what: 'a pilot that fails and says why',
    queue: 'logs',
    // The two outputs are two pipes: nothing says which of them is read first.
    script: 'echo one; echo two; sleep 1; echo three >&2; exit 1',
    expected: 'failed Error exit-status 1; node, start, end',
  },
];

describe('what is made of a Job on a real node', function () {
  this.timeout(300_000);
  let space: Namespace;
  let watched: Watched;
  const workers = new Map<Case, Worker>();
  const shown = (one: Case) => watched.history.get(workers.get(one)?.workerId ?? 0) ?? [];

  before(async () => {
    const plane = await realNode();
    space = await plane.namespace('workers');
    const backend = new KubernetesBackend(plane, space);
    const monitors = Object.entries(queues).map(([queue, section]) =>
      backend.plugin('monitor', section, queue),
    );
    if (monitors[0] === undefined) throw new Error('there are queues');
    watched = watch(monitors[0]);
    const start = async (one: Case) => {
      const { script = 'exit 0', pilot, podSpec, spec, queue = 'usual', then } = one;
      const worker = backend.worker({ queue, ...one.worker });
      workers.set(one, worker);
      const template = jobTemplate({}, { containers: [shell(script, pilot)], ...podSpec }, spec);
      // As much of the node's processor as there may be Pods at once.
      await backend.submit(worker, template, { cpuAdjustRatio: 1, memoryAdjustRatio: 1 });
      await then?.(space, worker);
    };
    await Promise.all(cases.map(start));
  });

  after(async () => {
    await watched[Symbol.asyncDispose]();
    await space[Symbol.asyncDispose]();
  });

  for (const one of cases) {
    const { what, expected } = one;
    it(`of ${what} is ${String(expected)}`, async () => {
      const fits = (line: string) => (typeof expected === 'string' ? line === expected : expected.test(line));
      await until('it was shown', () => shown(one).some((observation) => fits(brief(observation)))).catch(
        (error: unknown) => {
          throw new Error(`${String(error)}: ${JSON.stringify(shown(one))}`);
        },
      );
      expect(new Set(shown(one).map(({ node = 'real-node-0' }) => node))).to.deep.equal(
        new Set(['real-node-0']),
      );
    });
  }

  it('keeps that a child was killed for its memory, and is no failure', () => {
    const one = cases.find(({ what }) => what.includes('child'));
    const last = one && shown(one).at(-1);
    expect(last?.detail).to.have.nested.include({
      'containers[0].reason': 'OOMKilled',
      'containers[0].exitCode': 0,
    });
  });

  it('keeps the end of the log, from both outputs, where the queue wants it', () => {
    const one = cases.find(({ queue }) => queue === 'logs');
    const failed = one && shown(one).filter(({ status }) => status === 'failed');
    expect(failed?.map(({ detail }) => detail?.log)).to.deep.equal(['two\nthree\n']);
  });
});

/** A node of its own: the shared one is needed by others. */
describe('a node that is killed under its pilots', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();

  after(() => stopNode(directory));

  it('is a worker that failed with k8s-node-lost, once nobody ends its Pod', async () => {
    const shared = await realNode();
    const { directory: home = '' } = shared.status.node ?? {};
    const assets = process.env.KUBEBUILDER_ASSETS;
    process.env.KUBEBUILDER_ASSETS = join(home, 'programs');
    const node = await startNode(directory).finally(() => {
      if (assets === undefined) delete process.env.KUBEBUILDER_ASSETS;
      else process.env.KUBEBUILDER_ASSETS = assets;
    });
    const { server, kubeconfig, certificates, port } = node;
    const ports = { ...shared.status.ports, apiServer: port };
    const plane = new ControlPlane({ ...shared.status, server, kubeconfig, certificates, ports });
    const space = await plane.namespace('killed');
    const backend = new KubernetesBackend(plane, space);
    await using watched = watch(backend.plugin('monitor', { pendingRules: [fail('Terminating', 1)] }));
    const podSpec = { containers: [shell('exec sleep 1000')], terminationGracePeriodSeconds: 1 };
    const { workerId } = await backend.submit(backend.worker(), jobTemplate({}, podSpec));
    const told = () => (watched.history.get(workerId) ?? []).map(brief);
    await until('it runs', () => told().includes('running Running; node, start'));
    // Its init: all processes of the node go with it, as in a power cut.
    process.kill(
      Number(readFileSync(join(node.directory, 'run/super.pid'), 'utf8').split(' ')[0]),
      'SIGKILL',
    );
    await plane.loseNode(node.name);
    // What its operator does then: with its only node lost, the node controller evicts nothing by itself.
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }];
    await plane.client.patch(`/api/v1/nodes/${node.name}`, { spec: { taints } });
    await until('it is given up', () =>
      told().includes('failed Terminating k8s-node-lost; node, start, end'),
    );
    expect(
      told()
        .filter((line) => line.startsWith('running'))
        .at(-1),
    ).to.equal('running Terminating; node, start');
    plane.client.close();
  });
});
