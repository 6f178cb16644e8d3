import { expect } from 'chai';
import { keepJob, keepPod, type Kept } from '../../../../src/plugins/kubernetes/following/records.ts';
import { marksOf } from '../../../../src/plugins/kubernetes/marks.ts';
import type { Job, Pod } from '../../../../src/plugins/kubernetes/state/types.ts';
import { watch } from '../../../support/kubernetes-backend.ts';
import { KubernetesStub, marked } from '../../../support/kubernetes-stub.ts';
import { workerOf } from '../../../support/samples.ts';
import { until } from '../../../support/until.ts';

const { signal } = new AbortController();
const copyLabels = { ...marked(1).labels, 'batch.kubernetes.io/job-name': 'copy' };

const virtual = { key: 'virtual-kubelet.io/provider' };
const byHand = { ...marked(1).labels, 'batch.kubernetes.io/controller-uid': '' };
const ownedBy = (kind: string, name: string) => [{ kind, name, uid: 'other', controller: true }];
/** Pods that somebody gave the labels of the first worker. */
const notOfJobs = {
  'no owner': { labels: byHand },
  'the Job as an owner that does not control it': {
    labels: byHand,
    ownerReferences: [{ kind: 'Job', name: 'factory-1', uid: 'uid-of-factory-1' }],
  },
  'a ReplicaSet as its controller': { ownerReferences: ownedBy('ReplicaSet', 'factory-1') },
  'another Job as its controller': { ownerReferences: ownedBy('Job', 'factory-2') },
};

describe('what is kept of a Job or Pod', () => {
  const keep = (what: typeof keepJob, changes: object = {}): Kept | undefined =>
    what({ metadata: { ...marked(1), ...changes } }, 'factory');

  it("is kept by its worker's id and its uid", () => {
    expect(keep(keepJob)).to.include({ workerId: 1, uid: 'uid-of-factory-1' });
    expect(keep(keepPod, { name: 'factory-1-x7k2p' })).to.include({ workerId: 1 });
  });

  it('has what says whether another Pod follows a failed one', () => {
    const spec = { backoffLimit: 6, backoffLimitPerIndex: 0, completions: 1 };
    const { text } = keepJob({ metadata: marked(1), spec } as never, 'factory') ?? {};
    expect((JSON.parse(text ?? '') as Job).spec).to.deep.equal(spec);
  });

  it('is nothing of a copy of a Job under another name, or of its Pods, with all marks of the first', () => {
    expect(keep(keepJob, { name: 'copy' })).to.equal(undefined);
    expect(keep(keepPod, { name: 'copy-x7k2p', labels: copyLabels })).to.equal(undefined);
  });

  it('is nothing of what a Pod without any Job carries of our marks', () => {
    const { 'batch.kubernetes.io/job-name': job, ...labels } = marked(1).labels;
    expect(job).to.equal('factory-1');
    expect(keep(keepPod, { name: 'by-hand', labels })).to.equal(undefined);
  });

  it("takes the old label for a Pod's Job, of servers before 1.27", () => {
    const { 'batch.kubernetes.io/job-name': name, ...labels } = marked(1).labels;
    expect(keep(keepPod, { labels: { ...labels, 'job-name': name } })).to.include({ workerId: 1 });
  });

  it('is the uid of the Job that made a Pod, too: of its controller, or of its label where nothing controls it', () => {
    const ownerReferences = [null, { kind: 'Job', name: 'factory-1', uid: 'owner', controller: true }];
    expect(keep(keepPod, { ownerReferences })).to.include({ maker: 'owner' });
    const { 'batch.kubernetes.io/controller-uid': uid, ...labels } = marked(1).labels;
    expect(keep(keepPod, { labels: { ...labels, 'controller-uid': 'former' } })).to.include({
      maker: 'former',
    });
    expect(keep(keepPod)).to.include({ maker: uid });
  });

  for (const [what, changes] of Object.entries(notOfJobs))
    it(`is nothing of a Pod with all marks of a worker, and with ${what}`, () => {
      expect(keep(keepPod, changes)).to.equal(undefined);
    });

  it('is nothing of nulls that stand among the parts of a Job or Pod, and they keep nobody from the rest', () => {
    const condition = { type: 'DisruptionTarget', status: 'True' };
    const whole = {
      metadata: {
        ...marked(1),
        deletionTimestamp: '2026-01-01T00:00:00Z',
        finalizers: [null, 'keep'],
        ownerReferences: [null],
        annotations: { 'thresher/queue': null, 'thresher/config': null, 'thresher/fenced-attempt': null },
      },
      spec: { containers: [null, { name: 'pilot' }], initContainers: [null], tolerations: [null, virtual] },
      status: {
        conditions: [null, condition],
        containerStatuses: [null, { name: 'pilot' }],
        initContainerStatuses: [null],
      },
    };
    const parsed = (keepOne: typeof keepJob) =>
      JSON.parse(keepOne(whole as never, 'factory')?.text ?? '{}') as Required<Pod & Job>;
    const [job, pod] = [parsed(keepJob), parsed(keepPod)];
    expect(job).to.deep.include({ metadata: pod.metadata });
    expect(job.status.conditions).to.deep.equal([condition]);
    expect(pod.metadata).to.deep.include({ finalizers: ['keep'], annotations: {} });
    expect(pod.spec).to.deep.equal({
      containers: [{ name: 'pilot' }],
      initContainers: [],
      tolerations: [virtual],
    });
    expect(pod.status).to.deep.equal({
      conditions: [condition],
      containerStatuses: [{ name: 'pilot' }],
      initContainerStatuses: [],
    });
  });

  it('hole 8: is the beginning of a long text, and nothing of a state that nobody reads', () => {
    const message = 'x'.repeat(200_000);
    const said = { reason: message, message };
    const ended = { exitCode: 0, startedAt: '2026-01-01T00:00:00Z' };
    const terminated = { ...ended, ...said, more: message };
    const status = {
      ...said,
      conditions: [{ type: 'DisruptionTarget', status: 'True', ...said }],
      containerStatuses: [
        { name: 'pilot', state: { terminated }, lastState: { waiting: { ...said, more: message } } },
      ],
      uncounted: message,
    };
    for (const keepOne of [keepJob, keepPod])
      expect(keepOne({ metadata: marked(1), status } as never, 'factory')?.text.length).to.be.lessThan(
        40_000,
      );
    const { text = '' } = keepPod({ metadata: marked(1), status } as never, 'factory') ?? {};
    const { status: kept } = JSON.parse(text) as Pod;
    const beginning = message.slice(0, 4096);
    const first = { reason: beginning, message: beginning };
    expect(kept?.containerStatuses).to.deep.equal([
      { name: 'pilot', state: { terminated: { ...ended, ...first } }, lastState: { waiting: first } },
    ]);
  });

  it('is nothing of lists that are none', () => {
    const odd = { conditions: {}, containerStatuses: 'x', initContainerStatuses: 7 };
    const spec = { containers: {}, initContainers: 'x', tolerations: 7 };
    for (const keepOne of [keepJob, keepPod])
      expect(() => keepOne({ metadata: marked(1), spec, status: odd } as never, 'factory')).not.to.throw();
  });

  it('is nothing of another factory, of a fence, or of an id that is none', () => {
    const labels = marked(1).labels;
    expect(keep(keepJob, { labels: { ...labels, 'thresher/factory': 'other' } })).to.equal(undefined);
    expect(keep(keepJob, { annotations: { 'thresher/fenced-attempt': '1' } })).to.equal(undefined);
    expect(keep(keepJob, { labels: { ...labels, 'thresher/worker-id': '1e0' } })).to.equal(undefined);
  });
});

describe('a copy of a worker that somebody made under another name', () => {
  let stub: KubernetesStub;
  const worker = workerOf(1, { handle: { batchID: 'factory-1', uid: 'uid-of-factory-1' } });

  beforeEach(async () => {
    stub = await KubernetesStub.start();
    stub.jobs.set('factory-1', { metadata: marked(1), status: { active: 1 } });
    const state = { running: { startedAt: new Date().toISOString() } };
    stub.pods.set('pod', {
      metadata: marked(1, { name: 'pod' }),
      spec: { containers: [{ name: 'pilot' }] },
      status: { phase: 'Running', containerStatuses: [{ name: 'pilot', state }] },
    });
    const conditions = [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }];
    stub.jobs.set('copy', { metadata: marked(1, { name: 'copy' }), status: { conditions } });
    const newer = new Date().toISOString();
    stub.pods.set('copy-pod', {
      metadata: { ...marked(1, { name: 'copy-pod' }), creationTimestamp: newer, labels: copyLabels },
      spec: { containers: [{ name: 'pilot' }] },
      status: {
        phase: 'Failed',
        containerStatuses: [{ name: 'pilot', state: { terminated: { exitCode: 1 } } }],
      },
    });
  });

  afterEach(() => stub.stop());

  it('says nothing of that worker: neither to the watch nor in a look-up', async () => {
    const monitor = stub.plugin('monitor');
    await using watched = watch(monitor);
    await until('it is shown', () => watched.history.has(1));
    expect(watched.history.get(1)?.map(({ status }) => status)).to.deep.equal(['running']);
    const result = (await monitor.check([worker], signal)).get(1);
    expect(result?.kind === 'observed' && result.observation.status).to.equal('running');
  });

  it('does not keep a worker that is gone from being absent', async () => {
    stub.jobs.delete('factory-1');
    stub.pods.delete('pod');
    expect((await stub.plugin('monitor').check([worker], signal)).get(1)).to.deep.equal({ kind: 'absent' });
  });

  it('is not killed with that worker, and does not keep it from being gone', async () => {
    const outcomes = await stub.plugin('sweeper').kill([worker], signal);
    expect(outcomes.get(1)).to.deep.equal({ kind: 'gone' });
    expect([...stub.jobs.keys(), ...stub.pods.keys()]).to.deep.equal(['copy', 'copy-pod']);
  });

  it('is listed without an identity, so that it is an orphan', async () => {
    const found = await stub.plugin('sweeper').list(signal);
    const copy = found.find(({ place }) => place === 'grid/jobs/copy');
    expect(copy).to.deep.equal({ place: 'grid/jobs/copy', handle: { batchID: 'copy', uid: 'uid-of-copy' } });
  });
});

for (const [what, changes] of Object.entries(notOfJobs))
  describe(`a Pod with all marks of a worker, and with ${what}`, () => {
    let stub: KubernetesStub;
    const worker = workerOf(1, { handle: { batchID: 'factory-1', uid: 'uid-of-factory-1' } });

    beforeEach(async () => {
      stub = await KubernetesStub.start();
      stub.jobs.set('factory-1', { metadata: marked(1), status: { active: 1, ready: 1 } });
      const state = { running: { startedAt: new Date().toISOString() } };
      const spec = { containers: [{ name: 'pilot' }] };
      const status = { phase: 'Running', containerStatuses: [{ name: 'pilot', state }] };
      stub.pods.set('pod', { metadata: marked(1, { name: 'pod' }), spec, status });
      const identity = marksOf(workerOf(1), 'factory').annotations;
      const creationTimestamp = new Date().toISOString();
      const metadata = {
        ...marked(1, { name: 'other' }),
        ...changes,
        annotations: identity,
        creationTimestamp,
      };
      stub.pods.set('other', { metadata, spec, status: { phase: 'Failed' } });
    });

    afterEach(() => stub.stop());

    it('says nothing of that worker: neither to the watch nor in a look-up', async () => {
      const monitor = stub.plugin('monitor');
      await using watched = watch(monitor);
      await until('it is shown', () => watched.history.has(1));
      expect(watched.history.get(1)?.map(({ status }) => status)).to.deep.equal(['running']);
      const result = (await monitor.check([worker], signal)).get(1);
      expect(result?.kind === 'observed' && result.observation.status).to.equal('running');
    });

    it('is not killed with it, and is listed as an orphan', async () => {
      const sweeper = stub.plugin('sweeper');
      expect((await sweeper.kill([worker], signal)).get(1)).to.deep.equal({ kind: 'gone' });
      expect([...stub.jobs.keys(), ...stub.pods.keys()]).to.deep.equal(['other']);
      stub.jobs.set('factory-1', { metadata: marked(1), status: {} });
      const orphan = {
        place: 'grid/pods/other',
        handle: { batchID: 'other', podUid: 'uid-of-other' },
      };
      expect((await sweeper.list(signal)).find(({ place }) => place === orphan.place)).to.deep.equal(orphan);
    });
  });

const asksForStarter = ({ url }: { readonly url: string }) => /[?&]limit=1(?:&|$)/.test(url);

describe('what a sweeper lists', () => {
  let stub: KubernetesStub;
  const conditions = [{ type: 'Complete', status: 'True' }];

  beforeEach(async () => {
    stub = await KubernetesStub.start();
  });

  afterEach(() => stub.stop());

  const fill = (count: number) => {
    for (let id = 1; id <= count; id++)
      stub.jobs.set(`factory-${id}`, { metadata: marked(id), status: { conditions } });
  };

  for (const [count, lists] of [
    [30, 2],
    [1500, 2],
  ] as const) {
    it(`says how ${count} ended ones are by ${lists} lists of Jobs, and asks nothing more of those that live`, async () => {
      fill(count);
      const sweeper = stub.plugin('sweeper');
      // Beside these one question, whether a Job needs the starter of pilots.
      const listed = () => stub.count('list', 'jobs') - stub.requests.filter(asksForStarter).length;
      const found = await sweeper.list(signal);
      expect(found).to.have.length(count);
      expect(listed()).to.equal(lists);
      await sweeper.list(signal, () => true);
      expect(listed()).to.equal(lists + 1);
    });
  }
});
