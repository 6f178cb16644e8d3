import { expect } from 'chai';
import { failureCauses } from '../../src/plugins/kubernetes/state/failure-causes.ts';
import { pendingRules } from '../../src/plugins/kubernetes/state/pending-rules.ts';
import { stateRows } from '../../src/plugins/kubernetes/state/pod-state.ts';
import type { Worker } from '../../src/worker/worker.ts';
import { brief, KubernetesBackend, watch, type Watched } from '../support/kubernetes-backend.ts';
import { jobTemplate, untilGone } from '../support/kubernetes-site.ts';
import {
  container,
  type ControlPlane,
  controlPlane,
  type FakeNode,
  type Job,
  type Namespace,
  type Pod,
} from '../support/kubernetes.ts';
import { until } from '../support/until.ts';

/** A worker at work, for whoever does something to it. */
interface Live {
  readonly space: Namespace;
  readonly job: ReturnType<KubernetesBackend['job']>;
  /** A node of its own; only where the case asks for one. */
  readonly node: FakeNode | undefined;
}

interface Case {
  readonly what: string;
  /** Beginning of the row of the table that it is of. */
  readonly row: string;
  readonly play?: Readonly<Record<string, string>>;
  readonly podSpec?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly queue?: keyof typeof queues;
  readonly ownNode?: true;
  readonly then?: (live: Live) => Promise<void>;
  /** What must be shown of it at some time, as `brief` says it. */
  readonly expected: string;
}

/** The monitor's section of each queue: one monitor follows them all. */
const queues = {
  usual: {},
  // Gives up at once what the usual rules give up after minutes.
  strict: {
    pendingRules: [{ reason: '(?!SchedulingGated|Pending|NoPod).*', graceSeconds: 0, then: 'fail' }],
  },
  impatient: { podQueueTimeLimit: 5 },
};

const succeeded = 'Pod `Succeeded`; the Job, if it is still there';
const failed = 'Pod `Failed`, and no other follows';
const waits = 'Pod `Pending`, or its pilot not begun';
const pilotEnded = "pilot's container ended with exit status 0";
const jobFailed = 'Job condition `Failed`';

const podOf = ({ space, job }: Live, phase: string) =>
  space.untilPod(job, `it is ${phase}`, ({ status }) => status.phase === phase);
const deletePod = (space: Namespace, { metadata }: Pod) =>
  space.client.delete(space.core('pods', metadata.name), {});
const untilFailed = ({ space, job }: Live) =>
  space.untilJob(job, 'it has failed', ({ status }) =>
    (status.conditions ?? []).some(({ type, status }) => type === 'Failed' && status === 'True'),
  );

const onceIn = ({ space, job }: Live, phase: string) =>
  space.untilPod(
    job,
    `its node shows it ${phase}`,
    ({ status }) => status.phase === phase && status.containerStatuses !== undefined,
  );

async function deleteOnceIn(live: Live, phase: string): Promise<void> {
  await deletePod(live.space, await onceIn(live, phase));
}

/** A deadline that was there from the beginning may be over before the Pod is so far. */
async function overOnceIn(live: Live, phase: string): Promise<void> {
  const { space, job } = live;
  await onceIn(live, phase);
  await space.client.patch(space.jobs(job.metadata.name), { spec: { activeDeadlineSeconds: 1 } });
}

async function deleteOnceFailed(live: Live): Promise<void> {
  await untilFailed(live);
  await deleteOnceIn(live, 'Failed');
}

/** The Pod stays, no Job owns it any more, and then it ends. */
async function orphan(live: Live): Promise<void> {
  const { space, job } = live;
  // Of a Pod that the collector does not know yet it would not take the owner away, and then the Pod itself.
  const { metadata } = await podOf(live, 'Running');
  const path = space.jobs(job.metadata.name);
  await space.client.delete(path, { propagationPolicy: 'Orphan' });
  await untilGone(() => space.client.find(path));
  await space.client.patch(space.core('pods', metadata.name), {
    metadata: { annotations: { 'play/run': '1ms' } },
  });
}

/** As the controller of a Job with `managedBy` does. */
async function showElsewhere({ space, job }: Live, counts: Readonly<Record<string, number>>): Promise<void> {
  await space.client.patch(space.jobs(`${job.metadata.name}/status`), {
    status: { startTime: new Date().toISOString().replace(/\.\d+/, ''), ...counts },
  });
}

async function evict(live: Live): Promise<void> {
  const { metadata } = await podOf(live, 'Running');
  const { space } = live;
  await space.client.create(space.core('pods', `${metadata.name}/eviction`), {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: metadata.name, namespace: space.name },
  });
}

/** Another Pod needs all of the node, and is worth more. */
async function preempt(live: Live): Promise<void> {
  const { space, node } = live;
  await podOf(live, 'Running');
  const name = `high-${space.name}`;
  await space.client.create('/apis/scheduling.k8s.io/v1/priorityclasses', {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value: 1000,
  });
  const containers = [{ ...container('other'), resources: { requests: { cpu: '1' } } }];
  await space.createJob({ podSpec: { ...node?.podSpec, priorityClassName: name, containers } });
}

/** As an administrator does who wants a node empty at once. */
async function taint(live: Live): Promise<void> {
  const { space, node } = live;
  await podOf(live, 'Running');
  const taints = [{ key: 'test/drain', effect: 'NoExecute' }];
  await space.client.patch(`/api/v1/nodes/${node?.name ?? ''}`, { spec: { taints } });
}

/** Said as old node controllers said it: nothing sets this phase any more. */
async function unknownBeforeItBegan(live: Live): Promise<void> {
  const { space, job } = live;
  const { metadata } = await space.untilPod(
    job,
    'it waits',
    ({ status }) => status.containerStatuses !== undefined,
  );
  const path = space.core('pods', metadata.name);
  await space.client.patch(path, { metadata: { annotations: { 'play/lost': 'true' } } });
  await space.client.request(
    'PATCH',
    `${path}/status`,
    { status: { phase: 'Unknown', reason: 'NodeLost' } },
    { 'content-type': 'application/merge-patch+json' },
  );
}

/** A second index, one second younger, runs when the first alone has made the Job a success. */
async function succeedByOne(live: Live): Promise<void> {
  const { space, job } = live;
  const first = await podOf(live, 'Running');
  const { creationTimestamp = '' } = first.metadata as { creationTimestamp?: string };
  await until('the next Pod is younger', () => Date.now() - Date.parse(creationTimestamp) > 1100);
  await space.client.patch(space.jobs(job.metadata.name), { spec: { parallelism: 2 } });
  await until(
    'both run',
    async () => (await space.podsOf(job)).filter(({ status }) => status.phase === 'Running').length === 2,
  );
  const path = space.core('pods', first.metadata.name);
  await space.client.patch(path, { metadata: { annotations: { 'play/run': '0s' } } });
}

const ends = (exit: string) => ({ run: '100ms', exit });
const size = { cpu: '1', memory: '8Gi', pods: '5' };

const cases: readonly Case[] = [
  {
    what: 'a pilot that ends well',
    row: 'Job condition `Complete`',
    play: { run: '1s' },
    expected: 'finished Complete 0; node, start, end',
  },
  { what: 'a pilot at work', row: "pilot's container running", expected: 'running Running; node, start' },
  {
    what: 'a Pod that succeeded, of a Job that is gone',
    row: succeeded,
    then: orphan,
    expected: 'finished Completed 0; node, start, end',
  },
  {
    what: 'the first of two Pods that a Job wants',
    row: 'Pod `Succeeded`, and the Job wants more',
    play: { run: '100ms' },
    spec: { completions: 2 },
    expected: 'running Completed; node, start',
  },
  {
    what: 'a suspended Job',
    row: 'Job condition `Suspended`',
    spec: { suspend: true },
    expected: 'idle Suspended',
  },
  {
    what: 'a Job whose Pod runs in another cluster',
    row: 'Job without a Pod, of another controller (',
    spec: { managedBy: 'example.org/other' },
    then: (live) => showElsewhere(live, { active: 1, ready: 1 }),
    expected: 'running RunningElsewhere',
  },
  {
    what: 'a Job whose Pod waits in another cluster',
    row: 'Job without a Pod, of another controller, whose `status.active`',
    queue: 'impatient',
    spec: { managedBy: 'example.org/other' },
    then: (live) => showElsewhere(live, { active: 1, ready: 0 }),
    expected: 'idle ActiveElsewhere',
  },
  {
    what: 'a pilot that fails, by its Job',
    row: jobFailed,
    play: ends('3'),
    expected: 'failed BackoffLimitExceeded exit-status 3; node, start, end',
  },
  {
    what: 'a pilot that fails, of a Job that is gone',
    row: failed,
    play: { exit: '3' },
    then: orphan,
    expected: 'failed Error exit-status 3; node, start, end',
  },
  {
    what: 'a pilot that fails, of a Job that tries again',
    row: 'Pod `Failed`, and the Job may start another',
    play: ends('3'),
    spec: { backoffLimit: 1 },
    expected: 'idle PodFailed; node, start',
  },
  {
    what: 'a Job that one of its indexes makes a success',
    row: 'Job condition `SuccessCriteriaMet`',
    play: { terminating: '2s' },
    then: succeedByOne,
    spec: {
      completionMode: 'Indexed',
      completions: 2,
      successPolicy: { rules: [{ succeededIndexes: '0' }] },
    },
    expected: 'running SuccessCriteriaMet; node, start',
  },
  {
    what: 'a Job whose time is over, its pilot at work',
    row: 'Job condition `FailureTarget`: its Pod is being ended',
    play: { terminating: '2s' },
    then: (live) => overOnceIn(live, 'Running'),
    expected: 'running FailureTarget; node, start',
  },
  {
    what: 'a Job whose time was over before its pilot began',
    row: 'Job condition `FailureTarget`, the pilot has not begun',
    play: { start: '1h', terminating: '2s' },
    then: (live) => overOnceIn(live, 'Pending'),
    expected: 'idle FailureTarget; node',
  },
  {
    what: 'a Pod deleted by hand while it runs',
    row: 'Pod with a `deletionTimestamp` (evicted, preempted',
    play: { terminating: '1s' },
    then: (live) => deleteOnceIn(live, 'Running'),
    expected: 'running Terminating; node, start',
  },
  {
    what: 'a Pod deleted by hand before it began',
    row: 'Pod with a `deletionTimestamp`, the pilot has not begun',
    play: { start: '1h', terminating: '1s' },
    then: (live) => deleteOnceIn(live, 'Pending'),
    expected: 'idle Terminating; node',
  },
  {
    what: 'a Pod that its node says nothing of',
    row: 'Pod `Unknown` or `NodeLost`, the pilot has begun',
    play: { run: '100ms', 'pod-phase': 'Unknown' },
    expected: 'running NodeLost; node, start',
  },
  {
    what: 'a Pod that its node says nothing of, not begun',
    row: 'Pod `Unknown` or `NodeLost`, the pilot has not begun',
    play: { start: '1h' },
    then: unknownBeforeItBegan,
    expected: 'idle NodeLost; node',
  },
  {
    what: 'an init container at work',
    row: 'init containers at work',
    play: { init: '1h' },
    podSpec: { initContainers: [container('setup')] },
    expected: 'idle Init:0/1; node',
  },
  {
    what: 'a Job whose Pod is gone, and which tries again later',
    row: 'Job without a Pod that had one',
    spec: { backoffLimit: 1 },
    then: (live) => deleteOnceIn(live, 'Running'),
    expected: 'idle NoPod',
  },
  {
    what: 'a Job whose Pod the server refuses',
    row: 'Job without a Pod yet',
    podSpec: { serviceAccountName: 'nobody' },
    expected: 'submitted NoPod',
  },
  {
    what: 'a Pod that fits on no node',
    row: waits,
    podSpec: { nodeSelector: { no: 'node' } },
    expected: 'idle Unschedulable',
  },
  {
    what: 'a Pod that somebody holds back',
    row: waits,
    podSpec: { schedulingGates: [{ name: 'test/gate' }] },
    queue: 'impatient',
    expected: 'idle SchedulingGated',
  },
  {
    what: 'an image of an init container that cannot be had',
    row: waits,
    play: { 'init-waiting': 'ErrImagePull' },
    podSpec: { initContainers: [container('setup')] },
    expected: 'idle ErrImagePull; node',
  },

  // Why it failed.
  {
    what: "the Job's deadline",
    row: failed,
    then: (live) => overOnceIn(live, 'Running'),
    expected: 'failed Error walltime 143; node, start, end',
  },
  {
    what: "the Pod's own deadline",
    row: failed,
    play: { run: '100ms', 'pod-reason': 'DeadlineExceeded' },
    expected: 'failed DeadlineExceeded walltime 137; node, start, end',
  },
  {
    what: 'a Pod that makes room for a better one',
    row: failed,
    ownNode: true,
    then: preempt,
    expected: 'failed Error k8s-preempted 143; node, start, end',
  },
  {
    what: 'a Pod that makes room for a critical one of the node',
    row: failed,
    play: { run: '100ms', 'pod-reason': 'Preempting' },
    expected: 'failed Preempting k8s-preempted 137; node, start, end',
  },
  {
    what: 'a node that is tainted',
    row: failed,
    ownNode: true,
    then: taint,
    expected: 'failed Error k8s-node-lost 143; node, start, end',
  },
  {
    what: 'a node that goes down in order',
    row: failed,
    play: { run: '100ms', 'pod-reason': 'Terminated' },
    expected: 'failed Terminated k8s-node-lost 137; node, start, end',
  },
  {
    what: 'a node that is short of something',
    row: failed,
    play: { run: '100ms', 'pod-reason': 'Evicted' },
    expected: 'failed Evicted k8s-evicted 137; node, start, end',
  },
  {
    what: 'an eviction through the API',
    row: failed,
    then: evict,
    expected: 'failed Error k8s-evicted 143; node, start, end',
  },
  ...['OutOfcpu', 'UnexpectedAdmissionError', 'NodeAffinity'].map((reason) => ({
    what: `a node that refuses the Pod: ${reason}`,
    row: failed,
    play: { 'pod-reason': reason },
    expected: `failed ${reason} k8s-rejected-by-node; node`,
  })),
  {
    what: 'a pilot killed for its memory',
    row: failed,
    play: { run: '100ms', reason: 'OOMKilled' },
    expected: 'failed OOMKilled k8s-oom 137; node, start, end',
  },
  {
    what: 'a pilot that fails after a child was killed for its memory',
    row: failed,
    play: { run: '100ms', reason: 'OOMKilled', exit: '1' },
    expected: 'failed OOMKilled k8s-oom 1; node, start, end',
  },
  {
    what: 'a pilot that ends well after that',
    row: succeeded,
    play: { run: '100ms', reason: 'OOMKilled', exit: '0' },
    expected: 'finished Complete 0; node, start, end',
  },
  {
    what: 'an init container that fails',
    row: failed,
    play: { 'init-exit': '5' },
    podSpec: { initContainers: [container('setup')] },
    expected: 'failed Failed k8s-init-failed; node, end',
  },
  {
    what: 'a pilot that cannot start',
    row: failed,
    play: { run: '100ms', reason: 'StartError', exit: '128' },
    expected: 'failed StartError k8s-container-start 128; node, start, end',
  },
  {
    what: 'an end that nobody knows',
    row: failed,
    play: { run: '100ms', reason: 'ContainerStatusUnknown', exit: '137' },
    expected: 'failed ContainerStatusUnknown exit-status-lost 137; node, start, end',
  },
  {
    what: 'a container beside the pilot that fails once that has ended',
    row: pilotEnded,
    play: { run: '100ms', 'exit.side': '4' },
    podSpec: { containers: [container('pilot'), container('side')] },
    expected: 'finished PilotEnded 0; node, start, end',
  },
  {
    what: 'a container beside the pilot that fails in a Job that wants more completions',
    row: failed,
    play: { run: '100ms', 'exit.side': '4' },
    spec: { completions: 2 },
    podSpec: { containers: [container('pilot'), container('side')] },
    expected: 'failed Completed k8s-container-beside-failed 0; node, start, end',
  },
  {
    what: "the Job's failure policy",
    row: jobFailed,
    play: ends('42'),
    then: deleteOnceFailed,
    spec: {
      podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } }] },
    },
    expected: 'failed PodFailurePolicy k8s-failure-policy; end',
  },
  {
    what: 'a failed Pod that is gone',
    row: jobFailed,
    play: ends('3'),
    then: deleteOnceFailed,
    expected: 'failed BackoffLimitExceeded k8s-pod-gone; end',
  },
  {
    what: 'a Job that fails in a way of its own',
    row: jobFailed,
    play: ends('3'),
    then: deleteOnceFailed,
    spec: { completionMode: 'Indexed', completions: 1, backoffLimit: 9, backoffLimitPerIndex: 0 },
    expected: 'failed FailedIndexes k8s-failed; end',
  },

  // What is given up: by a rule, or because its time in the queue is over.
  ...pendingRules.flatMap(({ reason, code, then }) =>
    reasonsOf(reason)
      .filter((name) => then === 'fail' && name !== 'Terminating')
      .map((name): Case => ({
        what: `a container that waits: ${name}`,
        row: waits,
        queue: 'strict',
        play: { waiting: name },
        expected: `failed ${name} ${code}; node, end`,
      })),
  ),
  {
    what: 'an image of that name that can never be',
    row: waits,
    play: { waiting: 'InvalidImageName' },
    expected: 'failed InvalidImageName k8s-image; node, end',
  },
  {
    what: 'a Pod that does not end when it should',
    row: 'Pod with a `deletionTimestamp` (evicted',
    queue: 'strict',
    podSpec: { terminationGracePeriodSeconds: 1 },
    play: { terminating: '12s' },
    then: (live) => deleteOnceIn(live, 'Running'),
    expected: 'failed Terminating k8s-node-lost; node, start, end',
  },
  {
    what: 'a Pod that found no node in time',
    row: waits,
    queue: 'impatient',
    podSpec: { nodeSelector: { no: 'node' } },
    expected: 'failed Unschedulable k8s-queue-time; end',
  },
  {
    what: 'a Job that got no Pod in time',
    row: 'Job without a Pod yet',
    queue: 'impatient',
    podSpec: { serviceAccountName: 'nobody' },
    expected: 'failed NoPod k8s-queue-time; end',
  },
];

/** Rows that no kwok stage and no controller makes, and where they are made instead. */
const elsewhere: Readonly<Record<string, string>> = {
  "pilot's container ended, others of the Pod still run: after 10 minutes its end is the worker's end, and the Job is deleted":
    'stages end all containers of a Pod at once: kubernetes-node-workers.test.ts',
  "pilot's container waits to be started again (`restartPolicy: OnFailure`)":
    'stages start no container again: kubernetes-node-workers.test.ts',
};

/** The names in a pattern like /^(A|B)$/. */
function reasonsOf({ source }: RegExp): string[] {
  return source.replace(/^\^\(?|\)?\$$/g, '').split('|');
}

describe('what is made of a real Job and its Pods', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let watched: Watched;
  const nodes: FakeNode[] = [];
  const workers = new Map<Case, Worker>();
  const actions = new Map<Case, Promise<unknown>>();
  const told = (one: Case) => (watched.history.get(workers.get(one)?.workerId ?? 0) ?? []).map(brief);

  before(async () => {
    plane = await controlPlane();
    space = await plane.namespace('states');
    const backend = new KubernetesBackend(plane, space);
    const monitors = Object.entries(queues).map(([queue, section]) =>
      backend.plugin('monitor', section, queue),
    );
    if (monitors[0] === undefined) throw new Error('there are queues');
    watched = watch(monitors[0]);
    const start = async (one: Case) => {
      const { play, podSpec, spec, queue = 'usual', ownNode, then } = one;
      const node = ownNode && (await plane.fakeNode(size));
      if (node) nodes.push(node);
      const worker = backend.worker({ queue });
      workers.set(one, worker);
      await backend.submit(worker, jobTemplate(play, { ...node?.podSpec, ...podSpec }, spec));
      if (then === undefined) return;
      const done = then({ space, job: backend.job(worker), node });
      // Whoever fails does it in the test of its own.
      done.catch(() => undefined);
      actions.set(one, done);
    };
    await Promise.all(cases.map(start));
  });

  after(async () => {
    await watched[Symbol.asyncDispose]();
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    await space.client.delete(`/apis/scheduling.k8s.io/v1/priorityclasses/high-${space.name}`, {});
    // Lost ones are ended by nobody, and would keep the namespace.
    for (const { metadata } of await space.client.list<Pod>(space.core('pods')))
      await space.client.delete(space.core('pods', metadata.name), { gracePeriodSeconds: 0 });
    await space[Symbol.asyncDispose]();
  });

  for (const one of cases) {
    it(`of ${one.what} is "${one.expected}"`, async () => {
      await actions.get(one);
      await until('it was shown', () => told(one).includes(one.expected)).catch(() => {
        throw new Error(`not shown: ${one.expected}; but ${JSON.stringify(told(one))}`);
      });
    });
  }

  it('behind a scheduling gate is never given up', async () => {
    const late = cases.find(({ what }) => what === 'a Pod that found no node in time');
    const held = cases.find(({ what }) => what === 'a Pod that somebody holds back');
    if (late === undefined || held === undefined) throw new Error('both are cases');
    await until('as long was too long for another', () => told(late).includes(late.expected));
    expect(told(held).at(-1)).to.equal('idle SchedulingGated');
    const { name = '' } = workers.get(held) ?? {};
    expect((await space.client.find<Job>(space.jobs(name)))?.metadata.name).to.equal(name);
  });

  it('that is given up has no Job any more', async () => {
    const given = cases.filter(({ queue, expected }) => queue === 'strict' && expected.startsWith('failed'));
    await until('all of them are gone', async () => {
      const left = new Set((await space.client.list<Job>(space.jobs())).map(({ metadata }) => metadata.name));
      return given.every((one) => !left.has(workers.get(one)?.name ?? ''));
    });
    expect(given).to.have.length.greaterThan(15);
  });

  it('was made here of every row of the table, or it is said why not', () => {
    const isOf = (seen: string) => cases.some(({ row }) => seen.startsWith(row));
    const left = stateRows.map(({ seen }) => seen).filter((seen) => !isOf(seen));
    expect(left).to.deep.equal(Object.keys(elsewhere));
    expect(cases.filter(({ row }) => !stateRows.some(({ seen }) => seen.startsWith(row)))).to.deep.equal([]);
  });

  it('had every cause of a failure', () => {
    const codes = new Set([...watched.history.values()].flat().map(({ error }) => error?.code));
    const all = [...failureCauses, ...pendingRules].map(({ code }) => code);
    expect(all.filter((code) => !codes.has(code))).to.deep.equal([]);
  });
});
