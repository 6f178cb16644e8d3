import { expect } from 'chai';
import {
  container,
  type ContainerStatus,
  type ControlPlane,
  controlPlane,
  type JobOptions,
  type Pod,
} from '../support/kubernetes.ts';
import { until as untilTrue } from '../support/until.ts';

interface Played extends JobOptions {
  readonly title: string;
  readonly until: (pod: Pod) => boolean;
  /** What the Pod's status must contain: phase, reason, and the first containers. */
  readonly phase: string;
  readonly podReason?: string;
  readonly first?: { exitCode?: number; reason?: string; message?: string; waiting?: string };
  readonly init?: { exitCode?: number; reason?: string; waiting?: string };
}

const over = ({ status }: Pod) => ['Succeeded', 'Failed'].includes(status.phase);
const waitingFor = (reason: string) => (pod: Pod) =>
  pod.status.containerStatuses?.[0]?.state.waiting?.reason === reason;
const withInit = { initContainers: [container('setup')] };

function summary(status: ContainerStatus | undefined) {
  const { terminated, waiting } = status?.state ?? {};
  if (terminated !== undefined) {
    const { exitCode, reason, message } = terminated;
    return { exitCode, reason, ...(message !== undefined && message !== '' && { message }) };
  }
  return waiting === undefined ? {} : { waiting: waiting.reason };
}

const waits = (reason: string): Played => ({
  title: `waits with ${reason}`,
  play: { waiting: reason, 'waiting-message': 'it says why' },
  until: waitingFor(reason),
  phase: 'Pending',
  first: { waiting: reason },
});

const refused = (reason: string): Played => ({
  title: `is refused: ${reason}`,
  play: { 'pod-reason': reason },
  until: over,
  phase: 'Failed',
  podReason: reason,
});

const table: readonly Played[] = [
  {
    title: 'runs until it is deleted, without any annotation',
    until: ({ status }) => status.phase === 'Running',
    phase: 'Running',
    first: {},
  },
  {
    title: 'ends well',
    play: { run: '100ms' },
    until: over,
    phase: 'Succeeded',
    first: { exitCode: 0, reason: 'Completed' },
  },
  {
    title: 'fails with an exit code',
    play: { run: '0s', exit: '3', message: 'pilot gave up' },
    until: over,
    phase: 'Failed',
    first: { exitCode: 3, reason: 'Error', message: 'pilot gave up' },
  },
  {
    title: 'is killed for its memory',
    play: { run: '0s', reason: 'OOMKilled' },
    until: over,
    phase: 'Failed',
    first: { exitCode: 137, reason: 'OOMKilled' },
  },
  {
    title: 'ends well though a child of it was killed for its memory',
    play: { run: '0s', reason: 'OOMKilled', exit: '0' },
    until: over,
    phase: 'Succeeded',
    first: { exitCode: 0, reason: 'OOMKilled' },
  },
  {
    title: 'fails when its side-car does',
    play: { run: '0s', 'exit.side': '4' },
    podSpec: { containers: [container('pilot'), container('side')] },
    until: over,
    phase: 'Failed',
    first: { exitCode: 0, reason: 'Completed' },
  },
  {
    title: 'is shown as created before it starts',
    play: { start: '1h' },
    until: waitingFor('ContainerCreating'),
    phase: 'Pending',
    first: { waiting: 'ContainerCreating' },
  },
  ...[
    'ContainerCreating',
    'ErrImagePull',
    'ImagePullBackOff',
    'InvalidImageName',
    'CreateContainerConfigError',
    'CreateContainerError',
    'CrashLoopBackOff',
  ].map(waits),
  {
    title: 'recovers from waiting',
    play: { waiting: 'CreateContainerConfigError', 'waiting-for': '200ms', run: '0s' },
    until: over,
    phase: 'Succeeded',
    first: { exitCode: 0, reason: 'Completed' },
  },
  {
    title: 'runs after its init container',
    play: { init: '100ms', run: '0s' },
    podSpec: withInit,
    until: over,
    phase: 'Succeeded',
    init: { exitCode: 0, reason: 'Completed' },
    first: { exitCode: 0, reason: 'Completed' },
  },
  {
    title: 'fails with its init container, and starts nothing',
    play: { 'init-exit': '5' },
    podSpec: withInit,
    until: over,
    phase: 'Failed',
    init: { exitCode: 5, reason: 'Error' },
    first: { waiting: 'PodInitializing' },
  },
  {
    title: 'waits for the image of its init container',
    play: { 'init-waiting': 'ImagePullBackOff' },
    podSpec: withInit,
    until: ({ status }) => status.initContainerStatuses?.[0]?.state.waiting?.reason === 'ImagePullBackOff',
    phase: 'Pending',
    init: { waiting: 'ImagePullBackOff' },
    first: { waiting: 'PodInitializing' },
  },
  {
    title: 'is evicted while it runs',
    play: { run: '100ms', 'pod-reason': 'Evicted', 'pod-message': 'The node was low on resource: memory.' },
    until: over,
    phase: 'Failed',
    podReason: 'Evicted',
    first: { exitCode: 137, reason: 'Error' },
  },
  {
    title: 'runs past its own deadline',
    play: { run: '100ms', 'pod-reason': 'DeadlineExceeded' },
    until: over,
    phase: 'Failed',
    podReason: 'DeadlineExceeded',
    first: { exitCode: 137, reason: 'Error' },
  },
  ...['Evicted', 'UnexpectedAdmissionError', 'OutOfcpu', 'NodeAffinity'].map(refused),
  {
    title: 'becomes Unknown with its node',
    play: { run: '100ms', 'pod-phase': 'Unknown' },
    until: ({ status }) => status.phase === 'Unknown',
    phase: 'Unknown',
    podReason: 'NodeLost',
    first: {},
  },
];

/** Real scheduler, controllers and API server; kwok plays the kubelet. */
describe('a Pod of the test environment', function () {
  this.timeout(900_000);
  let plane: ControlPlane;

  before(async () => {
    plane = await controlPlane();
  });

  for (const { title, until, phase, podReason, first, init, ...options } of table) {
    it(title, async () => {
      await using space = await plane.namespace();
      const job = await space.createJob(options);
      const { status } = await space.untilPod(job, title, until);
      expect(status.phase).to.equal(phase);
      expect(status.reason).to.equal(podReason);
      if (first) expect(summary(status.containerStatuses?.[0])).to.deep.equal(first);
      if (init) expect(summary(status.initContainerStatuses?.[0])).to.deep.equal(init);
    });
  }

  it('is a disruption when the kubelet ends it, and no other failure is', async () => {
    await using space = await plane.namespace();
    for (const [reason, disrupted] of [
      ['Evicted', true],
      ['OutOfcpu', false],
    ] as const) {
      const { status } = await space.untilPod(
        await space.createJob({ play: { 'pod-reason': reason } }),
        'it is over',
        over,
      );
      const found = status.conditions?.find(({ type }) => type === 'DisruptionTarget');
      expect(found?.reason).to.equal(disrupted ? 'TerminationByKubelet' : undefined);
    }
  });

  it('ends its Job as the Job controller says', async () => {
    await using space = await plane.namespace();
    const good = await space.createJob({ play: { run: '0s' } });
    const bad = await space.createJob({ play: { run: '0s', exit: '1' } });
    const late = await space.createJob({ spec: { activeDeadlineSeconds: 1 } });
    const ended = async (job: typeof good, type: string) => {
      const { status } = await space.untilJob(job, `its Job is ${type}`, ({ status: { conditions = [] } }) =>
        conditions.some((one) => one.type === type && one.status === 'True'),
      );
      return status.conditions?.find((one) => one.type === type)?.reason;
    };
    expect(await ended(good, 'Complete')).to.equal('CompletionsReached');
    expect(await ended(bad, 'Failed')).to.equal('BackoffLimitExceeded');
    expect(await ended(late, 'Failed')).to.equal('DeadlineExceeded');
  });

  it('is not scheduled where no node fits, which the scheduler says', async () => {
    await using space = await plane.namespace();
    const job = await space.createJob({ podSpec: { nodeSelector: { no: 'node' } } });
    const { status } = await space.untilPod(job, 'it is unschedulable', (pod) =>
      (pod.status.conditions ?? []).some(({ reason }) => reason === 'Unschedulable'),
    );
    expect(status.phase).to.equal('Pending');
    expect(status.containerStatuses).to.equal(undefined);
  });

  it('is deleted by the node controller when its node is lost, and stays terminating', async () => {
    await using space = await plane.namespace();
    await using node = await plane.fakeNode({ cpu: '2', memory: '4Gi', pods: '5' });
    const soon = { key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds: 1 };
    const { tolerations } = node.podSpec as { tolerations: object[] };
    const job = await space.createJob({
      podSpec: { ...node.podSpec, tolerations: [...tolerations, { ...soon, effect: 'NoExecute' }] },
    });
    const running = await space.untilPod(job, 'it runs', ({ status }) => status.phase === 'Running');
    expect(running.spec.nodeName).to.equal(node.name);
    await plane.loseNode(node.name);
    const { status } = await space.untilPod(
      job,
      'it is terminating',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    expect(status.phase).to.equal('Running');
    expect(status.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason).to.equal(
      'DeletionByTaintManager',
    );
    expect(status.conditions?.find(({ type }) => type === 'Ready')?.status).to.equal('False');
  });

  it('goes with its Job, after as long as it was told to take', async () => {
    await using space = await plane.namespace();
    const job = await space.createJob({ play: { terminating: '1s' } });
    await space.untilPod(job, 'it runs', ({ status }) => status.phase === 'Running');
    await space.client.delete(space.jobs(job.metadata.name));
    await space.untilPod(
      job,
      'it is terminating',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    await untilTrue('it is gone', async () => (await space.podsOf(job)).length === 0);
  });
});
