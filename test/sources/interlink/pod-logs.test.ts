import { writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { Looks } from '../../../src/sources/interlink/looks/looks.ts';
import { Peeks } from '../../../src/sources/interlink/looks/peeks.ts';
import { PodLogs } from '../../../src/sources/interlink/logs/pod-logs.ts';
import type { ContainerReport } from '../../../src/sources/interlink/pod/report.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { Refusal } from '../../../src/sources/interlink/refusal.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const opts = {
  Tail: 0,
  Bytes: 0,
  Timestamps: false,
  Follow: false,
  Previous: false,
  SinceSeconds: 0,
  SinceTime: '',
};

describe('A12: the log of a container that runs on another machine, where a look shows none', () => {
  const { signal } = new AbortController();

  /** Reads the log of a container in this state. @param peek the answer of the backend */
  async function textOf(
    state: ContainerReport['state'],
    peek: () => Promise<Uint8Array | undefined>,
  ): Promise<string> {
    const containers = [{ name: 'main', image: '' }];
    const identity = { uid: 'one', name: 'one', namespace: 'default' };
    const pod = new TrackedPod({ version: 1, ...identity, containers, initContainers: [], acceptedAt: 0 });
    pod.take({
      workerId: 1,
      status: 'running',
      native: null,
      exitCode: null,
      message: null,
      batchId: '1.0',
      startTime: 0,
      endTime: null,
    });
    const main = { init: false, state, ready: false, restarts: 0 };
    pod.takeReport({ version: 1, containers: { main } });
    const note = () => undefined;
    const host = { clock: systemClock, log: { debug: note, info: note, warn: note, error: note } };
    const peeks = new Peeks();
    peeks.begin({ peek });
    const directory = temporaryDirectory();
    const files = { outputOf: () => directory, logOf: () => `${directory}/main.log` };
    const logs = new PodLogs({ host, files, machines: { peeks, looks: new Looks(host, peeks) } });
    let text = '';
    for await (const piece of await logs.open(pod, 'main', opts, signal))
      text += Buffer.from(piece).toString();
    return text;
  }

  async function refusalOf(...of: Parameters<typeof textOf>): Promise<Refusal> {
    const refused = await textOf(...of).catch((error: unknown) => error);
    if (!(refused instanceof Refusal)) throw new Error(`no refusal: ${String(refused)}`);
    return refused;
  }

  it('is refused, since the log of a container that has begun is there', async () => {
    for (const state of ['running', 'terminated'] as const) {
      const { status, message } = await refusalOf(state, async () => undefined);
      expect([status, message]).to.deep.equal([
        503,
        'the log of the running container cannot be had now: the machine of its job shows no main.log; it comes with the end of the job',
      ]);
    }
  });

  it('is refused with the words of the backend when its command was given up', async () => {
    const givenUp = new ThresherError('condor-given-up', 'condor_tail was given up');
    const { status, message } = await refusalOf('running', () => Promise.reject(givenUp));
    expect([status, message]).to.deep.equal([
      503,
      'the log of the running container cannot be had now: condor_tail was given up',
    ]);
  });

  it('is empty for a container that has written nothing, and for one that has not begun', async () => {
    expect(await textOf('running', async () => new Uint8Array())).to.equal('');
    expect(await textOf('waiting', async () => undefined)).to.equal('');
  });
});

describe('hole 8: logs of Pods that very many read', () => {
  let root: string;
  let logs: PodLogs;
  let pods: readonly TrackedPod[];
  /** Calls to files that are under way, the most of them, and what lets them go on. */
  let [busy, most]: [number, number] = [0, 0];
  const note = () => undefined;

  beforeEach(() => {
    root = temporaryDirectory();
    pods = ['one', 'two', 'three', 'four'].map((uid) => {
      const containers = [{ name: 'main', image: '' }];
      const identity = { uid, name: uid, namespace: 'default' };
      return new TrackedPod({ version: 1, ...identity, containers, initContainers: [], acceptedAt: 0 });
    });
    for (const { record } of pods) writeFileSync(join(root, `${record.uid}.log`), 'a\n'.repeat(100_000));
    logs = new PodLogs({
      host: { clock: systemClock, log: { debug: note, info: note, warn: note, error: note } },
      files: { outputOf: () => root, logOf: (uid) => join(root, `${uid}.log`) },
    });
    [busy, most] = [0, 0];
  });

  async function counted(work: () => Promise<void>): Promise<void> {
    const handle = await open(join(root, 'one.log'));
    const prototype = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back, and called with its own `this`
    const { read } = prototype;
    prototype.read = async function (this: FileHandle, ...given: readonly unknown[]) {
      most = Math.max(most, ++busy);
      try {
        return (await Reflect.apply(read, this, given)) as never;
      } finally {
        busy--;
      }
    };
    try {
      await work();
    } finally {
      prototype.read = read;
    }
  }

  const read = async (pod: TrackedPod | undefined, signal = new AbortController().signal) => {
    if (pod === undefined) throw new Error('there is no such Pod');
    let bytes = 0;
    for await (const piece of await logs.open(pod, 'main', opts, signal)) bytes += piece.length;
    return bytes;
  };

  it('those of one Pod are read one call after the other, those of all two at once, and each is whole', async () => {
    await counted(async () => {
      const ofOne = await Promise.all(Array.from({ length: 50 }, () => read(pods[0])));
      expect([most, ...new Set(ofOne)]).to.deep.equal([1, 200_000]);
      const ofAll = await Promise.all(Array.from({ length: 80 }, (_, at) => read(pods[at % pods.length])));
      expect([most, ...new Set(ofAll)]).to.deep.equal([2, 200_000]);
    });
  });

  it('those of readers that have gone are read no more', async () => {
    const gone = new AbortController();
    gone.abort();
    await counted(async () => {
      const read200 = Array.from({ length: 200 }, () => read(pods[0], gone.signal));
      expect([...new Set(await Promise.all(read200))]).to.deep.equal([0]);
    });
    expect(most).to.equal(0);
  });
});
