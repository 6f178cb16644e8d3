import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { RetrievedPodData } from '../../../src/clients/interlink/wire.ts';
import { bounds } from '../../../src/sources/interlink/bounds.ts';
import { batchInterval, PodRequests } from '../../../src/sources/interlink/requests.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { podOf } from '../../support/interlink-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { until } from '../../support/until.ts';

const data = { pod: podOf('one', randomUUID(), 'true'), container: null, jobConfig: {} } as RetrievedPodData;

/** One after a restart: its body is in its file. */
function unreadPod(bytes = 100): TrackedPod {
  const identity = { uid: randomUUID(), name: 'one', namespace: 'default' };
  const record = { version: 1, ...identity, containers: [], initContainers: [], acceptedAt: 0 } as const;
  return new TrackedPod(record, bytes);
}

function waitingPod(bytes?: number): TrackedPod {
  const pod = unreadPod(bytes);
  pod.body = data;
  return pod;
}

describe('the requests of Pods that wait for jobs', () => {
  let clock: ManualClock;
  /** UIDs, one for each plan that was made. */
  let planned: string[];
  let wakes: number;
  let requests: PodRequests;
  /** UIDs of the Pods whose files are read, and how each read ends. */
  let reads: { readonly uid: string; readonly end: PromiseWithResolvers<RetrievedPodData> }[];
  let log: ReturnType<typeof recordingLog>;

  beforeEach(() => {
    clock = new ManualClock();
    planned = [];
    wakes = 0;
    reads = [];
    log = recordingLog();
    requests = new PodRequests({
      host: { clock, log },
      batchInterval,
      read: ({ record: { uid } }) => {
        const end = Promise.withResolvers<RetrievedPodData>();
        reads.push({ uid, end });
        return end.promise;
      },
      plan: ({ origin }) => {
        planned.push(origin.uid);
        return { origin };
      },
    });
  });

  const ask = (pods: readonly TrackedPod[]) => requests.of(pods, () => wakes++);

  it('have one plan for each Pod, however often and beside however many others it waits', async () => {
    const pods: TrackedPod[] = [];
    for (let nth = 0; nth < 50; nth++) {
      pods.push(waitingPod());
      ask(pods);
      await clock.advance(batchInterval);
    }
    const [before, after] = [ask(pods), ask(pods)];
    expect(planned).to.deep.equal(pods.map(({ origin }) => origin.uid));
    // The daemon looks at a request again only if it is another object.
    for (const [nth, request] of after.entries()) expect(request).to.equal(before[nth]);
  });

  it('come at once after a pause, and then in batches: 500 Pods at 20 a second are at most five submissions a second', async () => {
    const pods: TrackedPod[] = [];
    let asked = 0;
    let batches = 0;
    const pass = () => {
      const now = ask(pods).length;
      if (now > asked) batches++;
      asked = now;
    };
    for (let nth = 0; nth < 500; nth++) {
      pods.push(waitingPod());
      pass();
      if (nth === 0) expect(asked).to.equal(1);
      await clock.advance(50);
    }
    await clock.advance(batchInterval);
    pass();
    expect(asked).to.equal(500);
    expect(batches).to.be.at.most((500 * 50 + batchInterval) / batchInterval + 1);
  });

  it('of a batch that is not due yet ask for one pass as soon as it is', async () => {
    const pods = [waitingPod()];
    ask(pods);
    pods.push(waitingPod(), waitingPod());
    expect(ask(pods)).to.have.length(1);
    ask(pods);
    expect(clock.sleeping).to.deep.equal([batchInterval]);
    expect(wakes).to.equal(0);
    await clock.advance(batchInterval);
    expect(wakes).to.equal(1);
    expect(ask(pods)).to.have.length(3);
  });

  it('hole 8: of Pods that take long to plan come in several batches, so that the daemon goes on between them', async () => {
    let spent = 0;
    const slow = new PodRequests({
      host: {
        log,
        clock: {
          now: () => clock.now(),
          monotonic: () => clock.monotonic() + spent,
          sleep: (ms, signal) => clock.sleep(ms, signal),
        },
      },
      batchInterval,
      read: () => Promise.reject(new Error('it is in memory')),
      plan: ({ origin }) => {
        spent += 20;
        return { origin };
      },
    });
    const pods = Array.from({ length: 8 }, () => waitingPod());
    const sizes: number[] = [];
    while (sizes.length < 3) {
      sizes.push(slow.of(pods, () => wakes++).length);
      await clock.advance(batchInterval);
    }
    expect(sizes).to.deep.equal([3, 6, 8]);
    expect(wakes).to.equal(2);
  });

  it('are forgotten as soon as their Pods wait no more, since they hold Secrets', async () => {
    const pod = waitingPod();
    ask([pod]);
    expect(pod.body).to.equal(undefined);
    ask([]);
    await clock.advance(batchInterval);
    pod.body = data;
    ask([pod]);
    expect(planned).to.deep.equal([pod.origin.uid, pod.origin.uid]);
  });

  describe('whose bodies lie in their files', () => {
    const uids = (pods: readonly TrackedPod[]) => pods.map(({ origin }) => origin.uid);
    const asked = (pods: readonly TrackedPod[]) => ask(pods).map(({ origin }) => origin.uid);

    it('come when those are read, one file after the other, and beside the passes: the file system may hang', async () => {
      const pods = [unreadPod(), unreadPod()];
      const [first, second] = uids(pods);
      const inMemory = waitingPod();
      expect(asked([...pods, inMemory])).to.deep.equal(uids([inMemory]));
      expect(asked([...pods, inMemory])).to.deep.equal(uids([inMemory]));
      expect(reads.map(({ uid }) => uid)).to.deep.equal([first]);
      reads[0]?.end.resolve(data);
      await until('the next one is read', () => reads.length === 2);
      expect(reads[1]?.uid).to.equal(second);
      reads[1]?.end.resolve(data);
      await until('the queue is told', () => wakes > 0);
      await clock.advance(batchInterval);
      expect(asked([...pods, inMemory])).to.deep.equal(uids([...pods, inMemory]));
      expect(reads).to.have.length(2);
    });

    it('wait for no file of another that is damaged, and that one is read again later', async () => {
      const pods = [unreadPod(), unreadPod()];
      const [damaged, good] = uids(pods);
      ask(pods);
      reads[0]?.end.reject(new ThresherError('interlink-files', 'it is damaged'));
      await until('the next one is read', () => reads.length === 2);
      reads[1]?.end.resolve(data);
      await until('the queue is told', () => wakes > 0);
      expect(asked(pods)).to.deep.equal([good]);
      expect(log.lines.map(({ level, facts }) => [level, facts['pods'], facts['code']])).to.deep.equal([
        ['warn', [damaged], 'interlink-files'],
      ]);
      await clock.advance(9000);
      ask(pods);
      expect(reads).to.have.length(2);
      await clock.advance(1000);
      ask(pods);
      expect(reads.map(({ uid }) => uid)).to.deep.equal([damaged, good, damaged]);
    });

    it('of a file system that hangs are not all tried', async () => {
      const pods = [unreadPod(), unreadPod()];
      ask(pods);
      reads[0]?.end.reject(new ThresherError('file-timeout', 'it hangs'));
      await until('that is told', () => log.lines.length > 0);
      ask(pods);
      expect(reads).to.have.length(1);
      await clock.advance(10_000);
      ask(pods);
      expect(reads).to.have.length(2);
    });

    it('are not kept of a Pod that waits no more when its file has been read', async () => {
      const pod = unreadPod();
      ask([pod]);
      const nothing = { native: null, exitCode: null, message: null, startTime: null, endTime: null };
      pod.take({ ...nothing, workerId: 1, status: 'submitted', batchId: '1.0' });
      reads[0]?.end.resolve(data);
      await until('the queue is told', () => wakes > 0);
      expect(pod.body).to.equal(undefined);
    });
  });

  describe('hole 8: whose bodies are more than memory has room for', () => {
    const most = bounds.waitingBytes;

    it('wait, the largest first, until others have their jobs; the reason says so', async () => {
      const large = [waitingPod(most / 2), waitingPod(most / 2), waitingPod(most / 2 + 1)];
      const small = [waitingPod(100), waitingPod(100)];
      const pods = [...large, ...small];
      const [first, second] = large.slice(0, 2).map(({ origin }) => origin.uid);
      const asked = ask(pods).map(({ origin }) => origin.uid);
      // Of two alike, the later one has to wait, too: the small ones have room beside the other.
      expect(asked).to.deep.equal([first, ...small.map(({ origin }) => origin.uid)]);
      expect(pods.map(({ body }) => body)).to.deep.equal(pods.map(() => undefined));
      expect(requests.reason).to.deep.include({ code: 'interlink-memory' });
      expect(requests.reason?.message).to.match(/^2 Pods wait until others have their jobs: .* 128 MiB$/);
      expect(reads).to.deep.equal([]);
      ask([...large.slice(1, 2), ...small]);
      expect(requests.reason).to.equal(undefined);
      expect(reads.map(({ uid }) => uid)).to.deep.equal([second]);
    });
  });
});
