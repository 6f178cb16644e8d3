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
