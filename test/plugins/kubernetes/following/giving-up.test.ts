import { expect } from 'chai';
import { recordingLog } from '../../../support/samples.ts';
import { watch } from '../../../support/kubernetes-backend.ts';
import { KubernetesStub, marked } from '../../../support/kubernetes-stub.ts';
import { json } from '../../../support/scripted-server.ts';
import { until } from '../../../support/until.ts';

const longAgo = new Date(Date.now() - 3_600_000).toISOString();

/** A Job that has waited for its first Pod, an hour if nothing else is said. */
const waitingJob = (workerId: number, marks: Parameters<typeof marked>[1] = {}, since = longAgo) => ({
  metadata: { ...marked(workerId, marks), creationTimestamp: since },
  status: { startTime: since },
});

describe('workers that have waited too long', () => {
  let stub: KubernetesStub;
  let log: ReturnType<typeof recordingLog>;

  beforeEach(async () => {
    log = recordingLog();
    stub = await KubernetesStub.start({ log });
  });

  afterEach(() => stub.stop());

  const put = (...jobs: ReturnType<typeof waitingJob>[]) => {
    for (const job of jobs) stub.jobs.set(job.metadata.name, job);
  };

  it('are looked up two hundred at once, however many are due in the same moment', async () => {
    put(...Array.from({ length: 300 }, (_, index) => waitingJob(index + 1)));
    await using watched = watch(stub.plugin('monitor', { podQueueTimeLimit: 60 }));
    await until('all are given up', () => {
      const ended = [...watched.history.values()].filter((seen) => seen.at(-1)?.status === 'failed');
      return ended.length === 300;
    });
    // One listing and two parts: 200 and 100, each of Jobs and of Pods. The first may go by itself.
    expect(stub.count('list', 'jobs')).to.be.at.most(1 + 3);
    expect(stub.count('list', 'pods')).to.be.at.most(1 + 3);
    expect(stub.count('list', 'events')).to.be.at.most(3);
    expect(stub.count('delete', 'jobs')).to.equal(300);
    const lines = log.lines.filter(({ message }) => message === 'workers given up');
    expect(lines.length).to.be.at.most(3);
  });

  it('end with what the cluster warned of last about them, each with its own', async () => {
    put(waitingJob(1), waitingJob(2), waitingJob(3));
    const event = (workerId: number, reason: string, minute: number) => ({
      involvedObject: { uid: `uid-of-factory-${workerId}` },
      reason,
      message: `of ${workerId}`,
      lastTimestamp: `2026-01-01T00:0${minute}:00Z`,
    });
    const items = [event(1, 'FailedCreate', 2), event(1, 'Older', 1), event(2, 'Quota', 1), event(9, 'X', 9)];
    stub.answer = (response, { verb, resource }, seen) => {
      if (verb !== 'list' || resource !== 'events') return false;
      json(200, { metadata: { resourceVersion: '1' }, items })(response, seen);
      return true;
    };
    await using watched = watch(stub.plugin('monitor', { podQueueTimeLimit: 60 }));
    const ends = () => [1, 2, 3].map((id) => watched.history.get(id)?.at(-1)?.error?.message ?? '');
    await until('all are given up', () => ends().every((message) => message !== ''));
    expect(ends().map((message) => message.replace(/^.*? for \d+ s/, ''))).to.deep.equal([
      '; FailedCreate: of 1',
      '; Quota: of 2',
      '',
    ]);
  });

  for (const [hours, why] of [
    [72, 'what is before the API server may have written it'],
    [-72, 'the clock of this machine may be ahead'],
  ] as const)
    it(`hole 8: are measured by the clock that is behind while answers have a date that is ${hours} h ahead: ${why}`, async () => {
      const ahead = hours * 3_600_000;
      stub.answer = (response) => {
        response.setHeader('date', new Date(Date.now() + ahead).toUTCString());
        return false;
      };
      const before = (ms: number) => new Date(Date.now() + Math.min(0, ahead) - ms).toISOString();
      put(waitingJob(1, {}, before(60_000)), waitingJob(2, {}, before(2 * 3_600_000)));
      await using watched = watch(stub.plugin('monitor', { podQueueTimeLimit: 3600 }));
      const statusOf = (id: number) => watched.history.get(id)?.at(-1)?.status;
      await until('the older one is given up', () => statusOf(2) === 'failed');
      const told = () => log.lines.filter(({ message }) => message.startsWith('the clocks of this machine'));
      await until('the difference is told', () => told().length > 0);
      expect([...stub.jobs.keys()]).to.deep.equal(['factory-1']);
      expect(statusOf(1)).to.equal('submitted');
      expect(told().map(({ level }) => level)).to.deep.equal(['warn']);
      expect(told()[0]?.facts['secondsAhead']).to.be.closeTo(hours * 3600, 5);
    });

  it('are told of in one line where none of them can be deleted', async () => {
    put(...Array.from({ length: 20 }, (_, index) => waitingJob(index + 1)));
    stub.answer = (response, { verb }) => {
      if (verb !== 'delete') return false;
      response.writeHead(500).end('broken');
      return true;
    };
    await using watched = watch(stub.plugin('monitor', { podQueueTimeLimit: 60 }));
    await until('all were tried', () => stub.count('delete', 'jobs') === 20);
    const failures = () => log.lines.filter(({ message }) => message === 'workers could not be given up');
    await until(
      'it is told',
      () => failures().reduce((sum, { facts }) => sum + Number(facts.workers), 0) === 20,
    );
    // The first one that is due may be alone in its turn.
    expect(failures().length).to.be.at.most(2);
    const last = [...watched.history.values()].map((seen) => seen.at(-1)?.status);
    expect(new Set(last)).to.deep.equal(new Set(['submitted']));
  });

  it('are those of the limit that their own configuration of the queue has', async () => {
    const monitor = stub.plugin('monitor', { podQueueTimeLimit: 60 }, { configId: 1 });
    stub.plugin('monitor', { podQueueTimeLimit: 86_400 }, { configId: 2 });
    put(waitingJob(1, { configId: 1 }), waitingJob(2, { configId: 2 }));
    // A configuration that nobody has any more counts as the newest.
    put(waitingJob(3, { configId: 7 }));
    await using watched = watch(monitor);
    await until('that of the first is given up', () => watched.history.get(1)?.at(-1)?.status === 'failed');
    await until('the others were shown', () => watched.history.has(2) && watched.history.has(3));
    expect([2, 3].map((id) => watched.history.get(id)?.at(-1)?.status)).to.deep.equal([
      'submitted',
      'submitted',
    ]);
    expect([...stub.jobs.keys()]).to.deep.equal(['factory-2', 'factory-3']);
  });

  it('c09: end as their pilots did where containers beside these go on', async () => {
    const endedAt = { startedAt: longAgo, finishedAt: longAgo };
    for (const [workerId, exitCode] of [
      [1, 0],
      [2, 7],
    ] as const) {
      put({ ...waitingJob(workerId), status: { startTime: longAgo } });
      const name = `pod-${workerId}`;
      stub.pods.set(name, {
        metadata: {
          ...marked(workerId, { name }),
          labels: { ...marked(workerId).labels, 'job-name': `factory-${workerId}` },
          creationTimestamp: longAgo,
        },
        spec: { containers: [{ name: 'pilot' }, { name: 'istio-proxy' }] },
        status: {
          phase: 'Running',
          containerStatuses: [
            { name: 'istio-proxy', state: { running: { startedAt: longAgo } } },
            { name: 'pilot', state: { terminated: { exitCode, ...endedAt } } },
          ],
        },
      });
    }
    await using watched = watch(stub.plugin('monitor', {}));
    const lastOf = (workerId: number) => watched.history.get(workerId)?.at(-1);
    await until('both have ended', () => lastOf(1)?.exitCode === 0 && lastOf(2)?.exitCode === 7);
    expect([lastOf(1)?.status, lastOf(1)?.error, lastOf(2)?.status, lastOf(2)?.error?.code]).to.deep.equal([
      'finished',
      undefined,
      'failed',
      'exit-status',
    ]);
    expect(stub.count('delete', 'jobs')).to.equal(2);
    expect(log.lines.map(({ message }) => message)).to.not.include('workers given up');
  });

  it('are none of a queue that the monitor does not know: a second name of the same place', async () => {
    put(waitingJob(1, { queue: 'ELSEWHERE' }), waitingJob(2));
    const image = { name: 'pilot', state: { waiting: { reason: 'InvalidImageName' } } };
    stub.pods.set('pod', {
      metadata: { ...marked(3, { name: 'pod', queue: 'ELSEWHERE' }), creationTimestamp: longAgo },
      spec: { containers: [{ name: 'pilot' }] },
      status: { phase: 'Pending', startTime: longAgo, containerStatuses: [image] },
    });
    await using watched = watch(stub.plugin('monitor', { podQueueTimeLimit: 60 }));
    await until('the known one is given up', () => watched.history.get(2)?.at(-1)?.status === 'failed');
    expect(watched.history.get(1)?.at(-1)?.status).to.equal('submitted');
    expect(watched.history.get(3)?.at(-1)?.status).to.equal('idle');
    expect([...stub.jobs.keys(), ...stub.pods.keys()]).to.deep.equal(['factory-1', 'pod']);
  });
});
