import { expect } from 'chai';
import fc from 'fast-check';
import { observationChange } from '../../../../src/agents/ledger/outcomes.ts';
import type { KubernetesObject } from '../../../../src/clients/kubernetes/objects.ts';
import { keepJob, keepPod } from '../../../../src/plugins/kubernetes/following/records.ts';
import { failureCauses } from '../../../../src/plugins/kubernetes/state/failure-causes.ts';
import { factsOf } from '../../../../src/plugins/kubernetes/state/pod-facts.ts';
import { badPendingRules, pendingRules } from '../../../../src/plugins/kubernetes/state/pending-rules.ts';
import { type StateOptions, stateOf, stateRows } from '../../../../src/plugins/kubernetes/state/pod-state.ts';
import type { Job, Pod } from '../../../../src/plugins/kubernetes/state/types.ts';
import { marked } from '../../../support/kubernetes-stub.ts';
import { at, condition, ended, job, ms, pod, running, waiting } from '../objects.ts';

const options: StateOptions = { podQueueTimeLimit: 172_800 };

function look(
  theJob: Job | undefined,
  pods: readonly Pod[],
  seconds = 100,
  changes: Partial<StateOptions> = {},
) {
  const state = stateOf(1, theJob, pods, ms(seconds), { ...options, ...changes });
  if (state === undefined) throw new Error('neither Job nor Pod');
  // What the monitor keeps of them says the same.
  const [keptJob, ...keptPods] = kept(theJob, pods);
  expect(stateOf(1, keptJob, keptPods, ms(seconds), { ...options, ...changes })).to.deep.equal(state);
  return state;
}

function kept(theJob: Job | undefined, pods: readonly Pod[]): [Job | undefined, ...Pod[]] {
  const { labels } = marked(1);
  const withMarks = (object: Job | Pod) =>
    ({ ...object, metadata: { ...object.metadata, labels } }) as KubernetesObject;
  const job = theJob && keepJob(withMarks(theJob), 'factory');
  return [
    job && (JSON.parse(job.text) as Job),
    ...pods.map((one) => JSON.parse(keepPod(withMarks(one), 'factory')?.text ?? '') as Pod),
  ];
}

const seen = new Set<string>();

/** What a row of the tests expects: "status native", and the error's code of a failed one. */
function brief(theJob: Job | undefined, pods: readonly Pod[]): string {
  const { status, nativeStatus, error } = look(theJob, pods).observation;
  seen.add(`${status} ${error?.code ?? ''}`.trim());
  return [status, nativeStatus, ...(error ? [error.code] : [])].join(' ');
}

const failedJob = (reason: string | undefined) =>
  job([condition('FailureTarget', reason), condition('Failed', reason)]);
/** The same container, ended long after. */
const later = (one: ReturnType<typeof ended>): ReturnType<typeof ended> => ({
  ...one,
  state: { terminated: { ...one.state!.terminated!, finishedAt: at(5000) } },
});
const disrupted = (reason: string) => [condition('DisruptionTarget', reason)];
const killed = (reason: string, parts: Parameters<typeof pod>[1] = {}) =>
  pod('Failed', { containers: [ended(143)], conditions: disrupted(reason), ...parts });

it('hole 3: a message of a Pod is written without a piece of a secret that begins before its cut', () => {
  for (const length of [100, 500]) {
    const secret = 'hunter7'.repeat(length);
    for (const words of [`https://u:${secret}@host/x`, `{"password": "${secret}"}`, `--token '${secret}'`]) {
      const message = `${'.'.repeat(380)} ${words}`;
      const { state, ...container } = ended(1);
      const theirs = { ...container, state: { terminated: { ...state?.terminated, message } } };
      const one = pod('Failed', { containers: [theirs] });
      const { observation } = look(job(), [{ ...one, status: { ...one.status, message } }]);
      const { detail } = observationChange(observation, false);
      expect(detail, words.slice(0, 12)).to.include('....').and.not.include('hunter7');
    }
  }
});

describe('the state of a Job and its Pods', () => {
  const cases: readonly (readonly [
    what: string,
    job: Job | undefined,
    pods: readonly Pod[],
    expected: string,
  ])[] = [
    ['a Job that has no Pod yet', job(), [], 'submitted NoPod'],
    ['a Job whose status is empty', { metadata: { name: 'factory-1' } }, [], 'submitted NoPod'],
    ['a Job suspended by Kueue', job([condition('Suspended', 'JobSuspended')]), [], 'idle Suspended'],
    [
      'a Job created suspended, before its controller saw it',
      job([], { spec: { suspend: true } }),
      [],
      'idle Suspended',
    ],
    [
      'a Job resumed, its Pod not made yet',
      job([condition('Suspended', 'JobResumed', { status: 'False' })]),
      [],
      'idle NoPod',
    ],
    [
      'a Job suspended again, whose Pod failed by that',
      job([condition('Suspended')]),
      [pod('Failed', { containers: [ended(143)] })],
      'idle Suspended',
    ],
    ['a Job whose Pod was deleted under it', job([], { status: { active: 1 } }), [], 'idle NoPod'],
    ...(
      [
        ['runs', { active: 1, ready: 1 }, 'running RunningElsewhere'],
        ['has its Pod, not ready yet', { active: 1, ready: 0 }, 'idle ActiveElsewhere'],
        ['lost its cluster', { startTime: at(0) }, 'idle NoPod'],
      ] as const
    ).map(
      ([what, status, expected]) =>
        [
          `a Job of MultiKueue that ${what}`,
          job([], { spec: { managedBy: 'kueue.x-k8s.io/multikueue' }, status }),
          [],
          expected,
        ] as const,
    ),
    [
      "a Job that names Kubernetes' own controller, whose Pod was deleted under it",
      job([], { spec: { managedBy: 'kubernetes.io/job-controller' }, status: { active: 1, ready: 1 } }),
      [],
      'idle NoPod',
    ],
    ['a Pod that nobody has looked at', job(), [pod('Pending')], 'idle Pending'],
    ['a Pod without any status', job(), [{ metadata: { name: 'p' } }], 'idle Pending'],
    [
      'a Pod that fits on no node',
      job(),
      [pod('Pending', { conditions: [condition('PodScheduled', 'Unschedulable', { status: 'False' })] })],
      'idle Unschedulable',
    ],
    [
      'a Pod with a scheduling gate',
      job(),
      [pod('Pending', { conditions: [condition('PodScheduled', 'SchedulingGated', { status: 'False' })] })],
      'idle SchedulingGated',
    ],
    [
      'a container being made',
      job(),
      [pod('Pending', { containers: [waiting('ContainerCreating')] })],
      'idle ContainerCreating',
    ],
    [
      'an image that cannot be pulled',
      job(),
      [pod('Pending', { containers: [waiting('ImagePullBackOff')] })],
      'idle ImagePullBackOff',
    ],
    [
      'an image of an init container that cannot be pulled',
      job(),
      [
        pod('Pending', {
          init: [waiting('ErrImagePull', 'setup')],
          containers: [waiting('PodInitializing')],
        }),
      ],
      'idle ErrImagePull',
    ],
    [
      'an init container at work',
      job(),
      [
        pod('Pending', {
          init: [ended(0, 'Completed', 'one'), running('two')],
          containers: [waiting('PodInitializing')],
        }),
      ],
      'idle Init:1/2',
    ],
    [
      'a sidecar that runs while the pilot is made',
      job(),
      [
        pod('Pending', {
          init: [{ ...running('proxy'), sidecar: true }],
          containers: [waiting('ContainerCreating')],
        }),
      ],
      'idle ContainerCreating',
    ],
    ['a pilot at work', job(), [pod('Running', { containers: [running()] })], 'running Running'],
    [
      'a pilot at work in a Pod whose other container waits',
      job(),
      [pod('Running', { containers: [running(), waiting('ImagePullBackOff', 'log')] })],
      'running Running',
    ],
    [
      'a container beside the pilot that runs, the pilot not',
      job(),
      [pod('Running', { containers: [waiting('ErrImagePull'), running('log')] })],
      'idle ErrImagePull',
    ],
    [
      'a pilot that ended before its companion',
      job(),
      [pod('Running', { containers: [ended(0), running('log')] })],
      'running PilotEnded',
    ],
    [
      'a pilot that is to be started again',
      job(),
      [
        pod('Running', {
          containers: [{ ...waiting('CrashLoopBackOff'), lastState: { terminated: { exitCode: 1 } } }],
        }),
      ],
      'idle CrashLoopBackOff',
    ],
    [
      'a Pod that succeeded before its Job says so',
      job(),
      [pod('Succeeded', { containers: [ended(0)] })],
      'finished Completed',
    ],
    [
      'a Pod that succeeded, of a Job that is gone',
      undefined,
      [pod('Succeeded', { containers: [ended(0)] })],
      'finished Completed',
    ],
    [
      'a Pod that succeeded, of a Job that wants two',
      job([], { spec: { completions: 2 } }),
      [pod('Succeeded', { containers: [ended(0)] })],
      'running Completed',
    ],
    [
      'a child killed for memory in a pilot that ended with 0',
      job(),
      [pod('Succeeded', { containers: [ended(0, 'OOMKilled')] })],
      'finished Completed',
    ],
    [
      'a Job that is complete, its Pod gone',
      job([condition('SuccessCriteriaMet'), condition('Complete')]),
      [],
      'finished Complete',
    ],
    [
      'a Job that is complete, though its Pod is said to run',
      job([condition('Complete')]),
      [pod('Running', { containers: [running()] })],
      'finished Complete',
    ],
    [
      'a Job that is complete after it was suspended',
      job([condition('Suspended', '', { status: 'False' }), condition('Complete')]),
      [],
      'finished Complete',
    ],
    [
      'a Job about to be complete',
      job([condition('SuccessCriteriaMet')]),
      [pod('Running', { containers: [running()] })],
      'running SuccessCriteriaMet',
    ],
    [
      'a Job about to fail, its Pod still there',
      job([condition('FailureTarget', 'DeadlineExceeded')]),
      [pod('Running', { containers: [running()], deleted: 120 })],
      'running FailureTarget',
    ],
    [
      'a Job about to fail, whose Pod never started',
      job([condition('FailureTarget', 'DeadlineExceeded')]),
      [pod('Pending', { deleted: 120 })],
      'idle FailureTarget',
    ],
    [
      'a Job about to fail, whose Pod has failed',
      job([condition('FailureTarget', 'BackoffLimitExceeded')]),
      [pod('Failed', { containers: [ended(3)] })],
      'failed Error exit-status',
    ],
    [
      'a Job that failed by its deadline',
      failedJob('DeadlineExceeded'),
      [pod('Failed', { containers: [ended(143)] })],
      'failed DeadlineExceeded walltime',
    ],
    [
      'a Pod that failed by its own deadline',
      job(),
      [pod('Failed', { reason: 'DeadlineExceeded', containers: [ended(137)] })],
      'failed DeadlineExceeded walltime',
    ],
    [
      'a Job that failed, its Pod gone',
      failedJob('BackoffLimitExceeded'),
      [],
      'failed BackoffLimitExceeded k8s-pod-gone',
    ],
    [
      'a Job that failed without reason or message',
      job([{ type: 'Failed', status: 'True', reason: null, message: null }]),
      [],
      'failed Failed k8s-failed',
    ],
    [
      'a Job that failed by its failure policy',
      failedJob('PodFailurePolicy'),
      [],
      'failed PodFailurePolicy k8s-failure-policy',
    ],
    [
      'a Job that failed by its failure policy, for an exit status',
      failedJob('PodFailurePolicy'),
      [pod('Failed', { containers: [ended(42)] })],
      'failed PodFailurePolicy exit-status',
    ],
    ['a Job that failed in a new way', failedJob('SomethingNew'), [], 'failed SomethingNew k8s-failed'],
    ['a pilot that failed', job(), [pod('Failed', { containers: [ended(3)] })], 'failed Error exit-status'],
    [
      'a pilot that failed, of a Job that is gone',
      undefined,
      [pod('Failed', { containers: [ended(3)] })],
      'failed Error exit-status',
    ],
    [
      'a pilot that failed, of a Job being deleted',
      job([], { metadata: { deletionTimestamp: at(90) }, spec: { backoffLimit: 3 } }),
      [pod('Failed', { containers: [ended(3)] })],
      'failed Error exit-status',
    ],
    [
      'a pilot that failed, of a Job that tries again',
      job([], { spec: { backoffLimit: 1 } }),
      [pod('Failed', { containers: [ended(3)] })],
      'idle PodFailed',
    ],
    [
      'a pilot that failed, of a Job that tries no index again (c25)',
      job([], { spec: { backoffLimit: 2_147_483_647, backoffLimitPerIndex: 0 } }),
      [pod('Failed', { containers: [ended(3)] })],
      'failed Error exit-status',
    ],
    [
      'a pilot that failed, of a Job that tries its index again (c25)',
      job([], { spec: { backoffLimit: 2_147_483_647, backoffLimitPerIndex: 1 } }),
      [pod('Failed', { containers: [ended(3)] })],
      'idle PodFailed',
    ],
    [
      'a pilot that failed, of a Job with a failure policy',
      job([], { spec: { backoffLimit: 0, podFailurePolicy: { rules: [] } } }),
      [pod('Failed', { containers: [ended(3)] })],
      'idle PodFailed',
    ],
    [
      'a pilot killed for memory',
      job(),
      [pod('Failed', { containers: [ended(137, 'OOMKilled')] })],
      'failed OOMKilled k8s-oom',
    ],
    [
      'a pilot that gave up after a child was killed for memory',
      job(),
      [pod('Failed', { containers: [ended(1, 'OOMKilled')] })],
      'failed OOMKilled k8s-oom',
    ],
    [
      'a command that does not exist',
      job(),
      [pod('Failed', { containers: [ended(128, 'StartError')] })],
      'failed StartError k8s-container-start',
    ],
    [
      'an init container that failed',
      job(),
      [pod('Failed', { init: [ended(1, 'Error', 'setup')], containers: [waiting('PodInitializing')] })],
      'failed Failed k8s-init-failed',
    ],
    [
      'a companion that failed beside a good pilot',
      job(),
      [pod('Failed', { containers: [ended(0), ended(1, 'Error', 'log')] })],
      'finished PilotEnded',
    ],
    [
      'a companion that failed before its pilot had begun',
      job(),
      [pod('Failed', { containers: [waiting('ContainerCreating'), ended(1, 'Error', 'log')] })],
      'failed Failed k8s-container-beside-failed',
    ],
    [
      'c09: a deadline that passed once the pilot had ended with 0',
      failedJob('BackoffLimitExceeded'),
      [
        pod('Failed', {
          reason: 'DeadlineExceeded',
          containers: [ended(0), later(ended(137, 'Error', 'log'))],
        }),
      ],
      'finished PilotEnded',
    ],
    [
      'c09: an eviction once the pilot had ended with 0',
      job(),
      [
        pod('Failed', {
          reason: 'Evicted',
          conditions: [
            condition('DisruptionTarget', 'TerminationByKubelet', { lastTransitionTime: at(500) }),
          ],
          containers: [ended(0), later(ended(137, 'Error', 'log'))],
        }),
      ],
      'finished PilotEnded',
    ],
    [
      'a pilot that the deadline told to end, and that did so with 0, beside another container',
      job([
        condition('FailureTarget', 'DeadlineExceeded', { lastTransitionTime: at(60) }),
        condition('Failed', 'DeadlineExceeded'),
      ]),
      [pod('Failed', { reason: 'DeadlineExceeded', containers: [ended(0), ended(137, 'Error', 'log')] })],
      'failed DeadlineExceeded walltime',
    ],
    [
      'a pilot alone that an eviction told to end, and that did so with 0',
      job(),
      [pod('Failed', { reason: 'Evicted', containers: [ended(0)] })],
      'failed Evicted k8s-evicted',
    ],
    [
      'c04: a virtual node whose site did not take the Pod',
      job(),
      [pod('Failed', { reason: 'ProviderFailed', containers: [ended(1, 'ProviderFailed')] })],
      'failed ProviderFailed k8s-rejected-by-node',
    ],
    [
      'c05: a virtual node whose site no longer knows the Pod',
      job(),
      [pod('Failed', { reason: 'NotFound', containers: [ended(-137, 'NotFound')] })],
      'failed NotFound k8s-node-lost',
    ],
    [
      'a companion that failed beside a pilot that ended with 0 after a child was killed for memory',
      job(),
      [pod('Failed', { containers: [ended(0, 'OOMKilled'), ended(1, 'Error', 'log')] })],
      'finished PilotEnded',
    ],
    [
      'a container nobody knows the end of',
      job(),
      [pod('Failed', { containers: [ended(137, 'ContainerStatusUnknown')] })],
      'failed ContainerStatusUnknown exit-status-lost',
    ],
    [
      'an eviction by the node',
      job(),
      [
        killed('TerminationByKubelet', {
          reason: 'Evicted',
          message: 'The node was low on resource: ephemeral-storage.',
        }),
      ],
      'failed Evicted k8s-evicted',
    ],
    ['an eviction through the API', job(), [killed('EvictionByEvictionAPI')], 'failed Error k8s-evicted'],
    ['a disruption of a new kind', job(), [killed('SomethingNew')], 'failed Error k8s-evicted'],
    ['a preemption by the scheduler', job(), [killed('PreemptionByScheduler')], 'failed Error k8s-preempted'],
    [
      'a preemption by the node',
      job(),
      [killed('TerminationByKubelet', { reason: 'Preempting' })],
      'failed Preempting k8s-preempted',
    ],
    [
      'a node that went down in order',
      job(),
      [killed('TerminationByKubelet', { reason: 'Terminated' })],
      'failed Terminated k8s-node-lost',
    ],
    ['a node that was tainted', job(), [killed('DeletionByTaintManager')], 'failed Error k8s-node-lost'],
    ['a node that is gone', job(), [killed('DeletionByPodGC')], 'failed Error k8s-node-lost'],
    [
      'a node that refused the Pod',
      job(),
      [
        pod('Failed', {
          reason: 'OutOfcpu',
          message: "Pod was rejected: Node didn't have enough resource: cpu",
        }),
      ],
      'failed OutOfcpu k8s-rejected-by-node',
    ],
    ['a Pod that failed and says nothing', job(), [pod('Failed')], 'failed Failed k8s-failed'],
    [
      'a Pod that is being ended',
      job(),
      [pod('Running', { containers: [running()], deleted: 130 })],
      'running Terminating',
    ],
    [
      'a Pod that is being ended before it began',
      job(),
      [pod('Pending', { deleted: 130 })],
      'idle Terminating',
    ],
    [
      'a Pod on a node that does not answer',
      job(),
      [pod('Unknown', { containers: [running()] })],
      'running NodeLost',
    ],
    ['a Pod that never began on a node that does not answer', job(), [pod('Unknown')], 'idle NodeLost'],
    [
      'a Pod of an older server whose node is lost',
      job(),
      [pod('Running', { reason: 'NodeLost', containers: [running()] })],
      'running NodeLost',
    ],
    [
      'the newest of several Pods',
      job(),
      [
        pod('Running', { name: 'b', created: 50, containers: [running()] }),
        pod('Failed', { name: 'a', containers: [ended(1)] }),
      ],
      'running Running',
    ],
    [
      'of two Pods of one second the one that stays',
      job(),
      [pod('Running', { name: 'a', containers: [running()], deleted: 99 }), pod('Pending', { name: 'b' })],
      'idle Pending',
    ],
  ];
  for (const [what, theJob, pods, expected] of cases) {
    it(`of ${what} is "${expected}"`, () => {
      expect(brief(theJob, pods)).to.equal(expected);
    });
  }

  it('is none where there is neither: absence is not an end', () => {
    expect(stateOf(1, undefined, [], ms(0), options)).to.equal(undefined);
  });

  it('was produced here for every row of both tables', () => {
    const codes = new Set([...seen].map((one) => one.split(' ')[1]));
    expect(failureCauses.map(({ code }) => code).filter((code) => !codes.has(code))).to.deep.equal([]);
    const hit = cases.map(([, theJob, pods]) => stateRows.find(({ when }) => when(factsOf(theJob, pods))));
    expect(stateRows.filter((row) => !hit.includes(row)).map(({ seen }) => seen)).to.deep.equal([]);
  });

  it('has node, times and exit status from the cluster', () => {
    const { observation } = look(job(), [pod('Failed', { containers: [ended(143)] })], 5000);
    const { node, startTime, endTime, exitCode, observedAt } = observation;
    const expected = { node: 'wn1', startTime: ms(10), endTime: ms(70), exitCode: 143, observedAt: ms(5000) };
    expect({ node, startTime, endTime, exitCode, observedAt }).to.deep.equal(expected);
    expect(observation.error?.message).to.equal('ended with exit status 143, usually signal 15');
  });

  it('has no end that is still to come: the grace of a deletion need not be used up', () => {
    const gone = pod('Failed', { deleted: 130 });
    const ends = [120, 140].map((seconds) => look(job(), [gone], seconds).observation.endTime);
    expect(ends).to.deep.equal([ms(120), ms(130)]);
  });

  it('has no end before its start, as containerd notes it of a container that ends at once', () => {
    const terminated = { exitCode: 0, startedAt: at(71), finishedAt: at(70), reason: 'Completed' };
    const done = pod('Succeeded', { containers: [{ name: 'pilot', state: { terminated } }] });
    const { startTime, endTime } = look(job(), [done]).observation;
    expect({ startTime, endTime }).to.deep.equal({ startTime: ms(71), endTime: ms(71) });
  });

  it('has no start where the kubelet writes 1970, as for a command that does not exist', () => {
    const never = {
      startedAt: '1970-01-01T00:00:00Z',
      finishedAt: at(70),
      exitCode: 128,
      reason: 'StartError',
    };
    const failed = pod('Failed', { containers: [{ name: 'pilot', state: { terminated: never } }] });
    const { startTime, endTime } = look(job(), [failed]).observation;
    expect({ startTime, endTime }).to.deep.equal({ startTime: undefined, endTime: ms(70) });
  });

  it("has the exit status of the container that the Pod's annotation names, whatever stands first", () => {
    const containers = [ended(0, 'Completed', 'log'), ended(9, 'Error', 'work')];
    const exitOf = (parts: object) =>
      look(job(), [pod('Failed', { containers, ...parts })]).observation.exitCode;
    expect(exitOf({ annotations: { 'thresher/pilot-container': 'work' } })).to.equal(9);
    expect(exitOf({ annotations: { 'thresher/pilot-container': 'gone' } })).to.equal(0);
    expect(exitOf({})).to.equal(0);
    const sorted = pod('Failed', {
      containers: [ended(0, 'Completed', 'a'), ended(9, 'Error', 'b')],
      order: ['b', 'a'],
    });
    expect(look(job(), [sorted]).observation.exitCode).to.equal(9);
  });

  for (const [status, text] of [
    [1, 'wrapper fault'],
    [2, 'wrapper killed stuck pilot'],
    [64, 'wrapper got cvmfs repos issue'],
    [80, 'pilot proxy invalid or with insufficient timeleft'],
  ] as const) {
    it(`says "${text}" of exit status ${status}, where the pilot is Harvester's wrapper`, () => {
      const failed = [pod('Failed', { containers: [ended(status)] })];
      const message = (payloadType?: string) =>
        look(job(), failed, 100, payloadType === undefined ? {} : { payloadType }).observation.error?.message;
      expect(message('atlas_pilot_wrapper')).to.equal(`${text}: ended with exit status ${status}`);
      expect(message()).to.equal(`ended with exit status ${status}`);
      expect(message('constructor')).to.equal(`ended with exit status ${status}`);
    });
  }

  it('keeps what every container did, restarts included', () => {
    const { detail } = look(job([condition('FailureTarget', 'PodFailurePolicy')]), [
      pod('Failed', {
        init: [
          ended(0, 'Completed', 'setup'),
          { ...ended(2, 'Error', 'proxy'), sidecar: true, restartCount: 4 },
        ],
        containers: [ended(0), ended(1, 'Error', 'log')],
        message: 'x'.repeat(5000),
      }),
    ]).observation;
    expect(detail).to.deep.include({ restarts: 4, pod: 'factory-1-abcde', job: 'factory-1' });
    expect(
      (detail?.containers as { name: string; role: string }[]).map(({ name, role }) => `${name} ${role}`),
    ).to.deep.equal(['setup init', 'proxy sidecar', 'pilot pilot', 'log beside']);
    expect(JSON.stringify(detail).length).to.be.below(2000);
  });

  it('is submitted only before the first Pod and the first suspension: no worker may go back to that', () => {
    const submitted = cases.filter(([, , , expected]) => expected.startsWith('submitted'));
    expect(submitted.flatMap(([, , pods]) => pods)).to.deep.equal([]);
    expect(submitted.map(([, theJob]) => theJob?.status?.conditions ?? [])).to.deep.equal([[], []]);
  });

  it('stands whatever a server leaves out or writes as null', () => {
    const nothing = fc.constantFrom(null, undefined);
    const text = fc.oneof(nothing, fc.constantFrom('', 'Error', 'nonsense', at(5)));
    const state = fc.oneof(
      nothing,
      fc.record({
        waiting: fc.oneof(nothing, fc.record({ reason: text })),
        terminated: fc.oneof(
          nothing,
          fc.record({ exitCode: fc.oneof(nothing, fc.integer()), finishedAt: text }),
        ),
      }),
    );
    const status = fc.record({ name: fc.string(), state, lastState: state });
    const conditions = fc.oneof(
      nothing,
      fc.array(
        fc.record({
          type: fc.constantFrom('Failed', 'Suspended', 'FailureTarget', 'PodScheduled'),
          status: fc.constantFrom('True', 'False', 'Unknown'),
          reason: text,
          message: text,
        }),
      ),
    );
    const anyPod = fc.record({
      metadata: fc.record({ creationTimestamp: text, deletionTimestamp: text }),
      status: fc.oneof(
        nothing,
        fc.record({
          phase: text,
          reason: text,
          conditions,
          containerStatuses: fc.oneof(nothing, fc.array(status)),
          initContainerStatuses: fc.oneof(nothing, fc.array(status)),
        }),
      ),
    });
    const anyJob = fc.oneof(
      nothing,
      fc.record({
        status: fc.oneof(nothing, fc.record({ conditions, active: fc.oneof(nothing, fc.nat()) })),
      }),
    );
    fc.assert(
      fc.property(anyJob, fc.array(anyPod, { maxLength: 3 }), (theJob, pods) => {
        const state = stateOf(1, (theJob ?? undefined) as Job | undefined, pods as Pod[], ms(9), options);
        if (theJob == null && pods.length === 0) return state === undefined;
        return JSON.stringify(state?.observation).length > 0;
      }),
    );
  });
});

describe('waiting', () => {
  const stuck = (reason: string) => pod('Pending', { containers: [waiting(reason, 'pilot', 'because')] });
  const examples: Readonly<Record<string, string>> = {
    InvalidImageName: 'k8s-image',
    ErrImageNeverPull: 'k8s-image',
    ErrImagePull: 'k8s-image',
    ImagePullBackOff: 'k8s-image',
    CreateContainerConfigError: 'k8s-config',
    CreateContainerError: 'k8s-container-start',
    RunContainerError: 'k8s-container-start',
    CrashLoopBackOff: 'k8s-crash-loop',
    ContainerCreating: 'k8s-not-starting',
  };
  for (const [reason, code] of Object.entries(examples)) {
    it(`for ${reason} is given up as ${code} when its grace is over, and not a moment earlier`, () => {
      const grace = pendingRules.find((rule) => rule.reason.test(reason))!.graceSeconds;
      // The node took the Pod in second 2.
      if (grace > 0) {
        const before = look(job(), [stuck(reason)], 2 + grace - 1);
        expect(before.verdict).to.equal(undefined);
        expect(before.lookAgainAt).to.equal(ms(2 + grace));
      }
      const { observation, verdict } = look(job(), [stuck(reason)], 2 + grace);
      expect(observation.status).to.equal('idle');
      expect(verdict?.jobUid).to.equal('job-uid');
      expect(verdict?.observation).to.deep.include({
        status: 'failed',
        nativeStatus: reason,
        error: { code, message: `${reason} of container pilot for ${grace} s: because` },
      });
    });
  }

  it('for an image counts from when the init containers were through', () => {
    const initialized = condition('Initialized', '', { lastTransitionTime: at(5000) });
    const late = pod('Pending', {
      conditions: [initialized],
      init: [ended(0, 'Completed', 'setup')],
      containers: [waiting('ErrImagePull')],
    });
    expect(look(job(), [late], 5599).verdict).to.equal(undefined);
    expect(look(job(), [late], 5600).verdict).to.not.equal(undefined);
  });

  it('for the init containers is no reason of the pilot', () => {
    const slow = pod('Pending', { init: [running('setup')], containers: [waiting('PodInitializing')] });
    expect(look(job(), [slow], 90_000).verdict).to.equal(undefined);
    expect(look(job(), [slow], 200_000).verdict?.observation.error?.code).to.equal('k8s-queue-time');
  });

  it('for a node ends with podQueueTimeLimit, counted from the Pod', () => {
    const unschedulable = condition('PodScheduled', 'Unschedulable', {
      status: 'False',
      message: '0/9 nodes',
    });
    const pods = [pod('Pending', { created: 1000, conditions: [unschedulable] })];
    expect(look(job(), pods, 1499, { podQueueTimeLimit: 500 }).lookAgainAt).to.equal(ms(1500));
    const { verdict } = look(job(), pods, 1500, { podQueueTimeLimit: 500 });
    expect(verdict?.observation.error).to.deep.equal({
      code: 'k8s-queue-time',
      message: 'podQueueTimeLimit of 500 s is over: Unschedulable for 1400 s: 0/9 nodes',
    });
  });

  it('for a Pod ends with podQueueTimeLimit, counted from the Job', () => {
    expect(look(job(), [], 499, { podQueueTimeLimit: 500 }).verdict).to.equal(undefined);
    expect(look(job(), [], 500, { podQueueTimeLimit: 500 }).verdict?.observation.status).to.equal('failed');
  });

  it('behind a suspended Job or a scheduling gate has no limit', () => {
    const gated = condition('PodScheduled', 'SchedulingGated', { status: 'False' });
    const pods = [pod('Pending', { conditions: [gated] })];
    for (const state of [look(job(), pods, 1e7), look(job([condition('Suspended')]), [], 1e7)]) {
      expect(state.verdict).to.equal(undefined);
      expect(state.lookAgainAt).to.equal(undefined);
    }
  });

  it('c11: in the batch queue behind a virtual node waits until podQueueTimeLimit, and not for a volume', () => {
    const creating = { containers: [waiting('ContainerCreating')] };
    const tolerations = [{ key: 'virtual-node.interlink/no-schedule', operator: 'Exists' }];
    const queued = [
      pod('Pending', { ...creating, reason: 'Waiting for init containers' }),
      { ...pod('Pending', creating), spec: { ...pod('Pending', creating).spec, tolerations } },
    ];
    for (const one of queued) {
      const { observation, verdict } = look(job(), [one], 5 * 3600);
      expect([observation.nativeStatus, verdict]).to.deep.equal(['QueuedAtSite', undefined]);
      const late = look(job(), [one], 172_900).verdict;
      expect(late?.observation.error?.code).to.equal('k8s-queue-time');
    }
    expect(look(job(), [pod('Pending', creating)], 5 * 3600).verdict?.observation.error?.code).to.equal(
      'k8s-not-starting',
    );
  });

  it('c04, c05: of a virtual node there is no exit status of a pilot, and no start of one that was refused', () => {
    const refused = pod('Failed', { reason: 'ProviderFailed', containers: [ended(1, 'ProviderFailed')] });
    const lost = pod('Failed', { reason: 'NotFound', containers: [ended(-137, 'NotFound')] });
    for (const one of [refused, lost]) {
      const { observation } = look(job(), [one], 100, { payloadType: 'atlas_pilot_wrapper' });
      expect(observation).to.not.have.property('exitCode');
      expect(observation.error?.message).to.not.match(/wrapper|signal|exit status/);
    }
  });

  it('c09: for a container beside an ended pilot has an end: after 10 minutes that of the pilot counts', () => {
    const beside = (exit: number) => [pod('Running', { containers: [ended(exit), running('log')] })];
    const endedAt = look(job(), beside(0)).lookAgainAt! - 600_000;
    const secondsOf = (time: number) => (time - ms(0)) / 1000;
    expect(look(job(), beside(0), secondsOf(endedAt) + 599).verdict).to.equal(undefined);
    const { verdict, observation } = look(job(), beside(0), secondsOf(endedAt) + 600);
    expect(observation.status).to.equal('running');
    expect(verdict?.observation).to.include({ status: 'finished', exitCode: 0, endTime: endedAt });
    const failed = look(job(), beside(64), secondsOf(endedAt) + 600).verdict?.observation;
    expect(failed).to.include({ status: 'failed', exitCode: 64 });
    expect(failed?.error?.code).to.equal('exit-status');
    // The clock of its node is two hours behind.
    const behind = [pod('Running', { created: 7200, containers: [ended(0), running('log')] })];
    const { lookAgainAt = 0 } = look(job(), behind, 7201);
    expect(lookAgainAt).to.be.within(ms(7800), ms(7800) + endedAt - ms(0));
    expect(look(job(), behind, secondsOf(lookAgainAt)).verdict?.observation).to.include({ endTime: endedAt });
    // Another Pod of a Job with `parallelism`, and a kubelet that starts the pilot again.
    const [one] = beside(0);
    const other = pod('Running', { name: 'factory-1-other', created: 0, containers: [running()] });
    expect(look(job(), [other, one!], secondsOf(endedAt) + 600).verdict).to.equal(undefined);
    const [again] = beside(64);
    const repeated = { ...again, spec: { ...again!.spec, restartPolicy: 'OnFailure' } };
    expect(look(job(), [repeated], secondsOf(endedAt) + 600).verdict).to.equal(undefined);
    // The others of its completions are still to come.
    const many = { ...job(), spec: { ...job().spec, completions: 2 } };
    expect(look(many, beside(0), secondsOf(endedAt) + 600).verdict).to.equal(undefined);
  });

  it('in another cluster has no limit: c06, three days in the one that MultiKueue chose', () => {
    const spec = { backoffLimit: 0, suspend: false, managedBy: 'kueue.x-k8s.io/multikueue' };
    const resumed = condition('Suspended', 'JobResumed', { status: 'False' });
    for (const ready of [0, 1]) {
      const status = { startTime: at(0), active: 1, ready, conditions: [resumed] };
      const state = look(job([], { spec, status }), [], 3 * 86_400, { podQueueTimeLimit: 500 });
      expect([state.verdict, state.lookAgainAt]).to.deep.equal([undefined, undefined]);
    }
  });

  it('counts from the resumption of a suspended Job', () => {
    const resumed = job([condition('Suspended', '', { status: 'False' })], {
      status: { startTime: at(9000) },
    });
    const withConditions = { ...resumed, status: { ...resumed.status, conditions: [] } };
    expect(look(withConditions, [], 9400, { podQueueTimeLimit: 500 }).verdict).to.equal(undefined);
    expect(look(withConditions, [], 9500, { podQueueTimeLimit: 500 }).verdict).to.not.equal(undefined);
  });

  it('of a pilot that is at work has no rule, whatever another container waits for', () => {
    const pods = [pod('Running', { containers: [running(), waiting('CrashLoopBackOff', 'log')] })];
    expect(look(job(), pods, 1e6)).to.have.all.keys('observation');
  });

  it('of a pilot that is to be started again is its own, not that of a container beside it', () => {
    const again = { ...waiting('CrashLoopBackOff'), lastState: { terminated: { exitCode: 1 } } };
    const pods = [pod('Running', { containers: [again, waiting('InvalidImageName', 'log')] })];
    expect(look(job(), pods, 301).verdict).to.equal(undefined);
    expect(look(job(), pods, 302).verdict?.observation.error?.code).to.equal('k8s-crash-loop');
  });

  it('for a Pod to end is given up an hour after its grace', () => {
    const pods = [pod('Running', { containers: [running()], deleted: 130 })];
    expect(look(job(), pods, 3729).verdict).to.equal(undefined);
    expect(look(job(), pods, 3730).verdict?.observation.error?.code).to.equal('k8s-node-lost');
  });

  it('of a container that is to be started again counts from the end of its last run', () => {
    const terminated = { exitCode: 1, startedAt: at(10), finishedAt: at(500) };
    const again = { ...waiting('CrashLoopBackOff', 'side'), restartCount: 3, lastState: { terminated } };
    const pods = [
      pod('Pending', { init: [{ ...again, sidecar: true }], containers: [waiting('PodInitializing')] }),
    ];
    expect(look(job(), pods, 799).verdict).to.equal(undefined);
    expect(look(job(), pods, 799).lookAgainAt).to.equal(ms(800));
    expect(look(job(), pods, 800).verdict?.observation.error?.code).to.equal('k8s-crash-loop');
    const pilot = { ...waiting('CrashLoopBackOff'), lastState: { terminated } };
    expect(look(job(), [pod('Running', { containers: [pilot] })], 799).verdict).to.equal(undefined);
    expect(look(job(), [pod('Running', { containers: [pilot] })], 800).verdict).not.to.equal(undefined);
  });

  it('of the second init container counts from the end of the first', () => {
    const first = { ...ended(0, 'Completed', 'stage-in') };
    const state = { terminated: { ...first.state?.terminated, finishedAt: at(4000) } };
    const second = waiting('ImagePullBackOff', 'unpack');
    const init = [{ ...first, state }, second];
    const pods = [pod('Pending', { init, containers: [waiting('PodInitializing')] })];
    expect(look(job(), pods, 4599).verdict).to.equal(undefined);
    expect(look(job(), pods, 4599).lookAgainAt).to.equal(ms(4600));
    const { error } = look(job(), pods, 4600).verdict?.observation ?? {};
    expect(error).to.include({ code: 'k8s-image' });
    expect(error?.message).to.match(/of container unpack for 600 s/);
  });

  describe('without a Pod', () => {
    const limits = { podQueueTimeLimit: 60 };
    const hadOne = job([], { status: { active: 1 } });

    it('counts from when that was first seen where one was there before, however old the Job is', () => {
      const since = { ...limits, withoutPodSince: ms(5000) };
      expect(look(hadOne, [], 5059, since).verdict).to.equal(undefined);
      expect(look(hadOne, [], 5059, since).lookAgainAt).to.equal(ms(5060));
      const { error } = look(hadOne, [], 5060, since).verdict?.observation ?? {};
      expect(error).to.include({ code: 'k8s-queue-time' });
      expect(error?.message).to.match(/NoPod for 60 s/);
    });

    it("counts from the Job's own start where there never was one", () => {
      const since = { ...limits, withoutPodSince: ms(5000) };
      expect(look(job(), [], 59, since).verdict).to.equal(undefined);
      expect(look(job(), [], 60, since).verdict?.observation.error?.code).to.equal('k8s-queue-time');
    });

    it('is never given up under FailureTarget: its end is certain, and is told by the Job', () => {
      const target = job([condition('FailureTarget', 'BackoffLimitExceeded')], { status: { failed: 1 } });
      const since = { ...limits, withoutPodSince: ms(100) };
      expect(look(target, [], 1_000_000, since).verdict).to.equal(undefined);
      const rules = { pendingRules: [{ reason: 'NoPod', graceSeconds: 0, then: 'fail' as const }] };
      expect(look(target, [], 1_000_000, { ...since, ...rules }).verdict).to.equal(undefined);
    });
  });

  it('has own rules only where they are regular expressions', () => {
    const rule = (reason: string) => ({ reason, then: 'fail' as const, graceSeconds: 0 });
    const problems = badPendingRules([rule('Image.*'), rule('Image(')]);
    expect(problems.map(({ pointer }) => pointer)).to.deep.equal(['/pendingRules/1/reason']);
    expect(problems[0]?.message).to.match(/^reason is "Image\(", which is no regular expression: /);
  });

  it("follows the queue's own rules first", () => {
    const own = (reason: string, then: 'wait' | 'fail', graceSeconds: number) => ({
      pendingRules: [{ reason, then, graceSeconds }],
    });
    const image = [stuck('ImagePullBackOff')];
    expect(look(job(), image, 1e6, own('ImagePull.*', 'wait', 0)).verdict).to.equal(undefined);
    expect(look(job(), image, 20, own('ImagePull.*', 'fail', 10)).verdict?.observation.error?.code).to.equal(
      'k8s-image',
    );
    expect(look(job(), image, 20, own('Pull', 'fail', 10)).verdict).to.equal(undefined);
    const novel = look(job(), [stuck('NovelReason')], 20, own('Novel.*', 'fail', 10)).verdict;
    expect(novel?.observation.error?.code).to.equal('k8s-queue-time');
  });
});
