import { expect } from 'chai';
import { nextLook, Looks } from '../../../src/sources/interlink/looks/looks.ts';
import { Peeks } from '../../../src/sources/interlink/looks/peeks.ts';
import type { ContainerReport, PodReport } from '../../../src/sources/interlink/pod/report.ts';
import type { PodRecord } from '../../../src/sources/interlink/pods/pod-record.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const container = (state: ContainerReport['state'], ready = state === 'running'): ContainerReport => ({
  init: false,
  state,
  ready,
  restarts: 0,
  ...(state === 'terminated' && { exitCode: 0 }),
});
const report = (containers: PodReport['containers']): PodReport => ({ version: 1, containers });

function recordOf(uid: string, names: readonly string[], isProbed = false): PodRecord {
  const containers = names.map((name) => ({ name, image: '', ...(isProbed && { isProbed: true as const }) }));
  return { version: 1, uid, name: uid, namespace: 'default', containers, initContainers: [], acceptedAt: 0 };
}

describe('looks at the reports of running jobs that tell nothing themselves', () => {
  const one = recordOf('one', ['main']);
  const two = recordOf('two', ['main', 'side']);
  const probed = recordOf('probed', ['main'], true);
  const running = report({ main: container('running') });

  const rows: readonly (readonly [
    title: string,
    given: Parameters<typeof nextLook>,
    seconds: number | undefined,
  ])[] = [
    ['a job that has begun is looked at soon', [one, undefined, 0, 0], 1],
    ['a job that tells nothing is looked at less and less', [one, undefined, 50, 500], 15],
    ['a single container that runs needs no further look', [one, running, 1, 2], undefined],
    ['a readiness probe may fail later', [probed, running, 1, 2], 2],
    [
      'a container that is not ready yet is looked at again',
      [one, report({ main: container('running', false) }), 1, 60],
      6,
    ],
    [
      'of several containers one may end before the job',
      [two, report({ main: container('running'), side: container('running') }), 9, 100],
      10,
    ],
    [
      'a long run is looked at twice a minute',
      [two, report({ main: container('running'), side: container('terminated') }), 9, 86_400],
      30,
    ],
    [
      'nothing can change once all have ended',
      [two, report({ main: container('terminated'), side: container('terminated') }), 9, 100],
      undefined,
    ],
  ];
  for (const [title, given, seconds] of rows)
    it(title, () => {
      expect(nextLook(...given)).to.equal(seconds);
    });

  const { signal } = new AbortController();
  let clock: ManualClock;
  let looked: number[];
  let answer: () => Promise<Uint8Array | undefined>;
  let looks: Looks;
  let logged: string[];
  let warnings: string[];

  beforeEach(() => {
    clock = new ManualClock();
    looked = [];
    logged = [];
    warnings = [];
    answer = async () => Buffer.from(JSON.stringify(running));
    const note = (message: string) => {
      logged.push(message);
    };
    const warn = (message: string) => {
      note(message);
      warnings.push(message);
    };
    const log = { debug: note, info: note, warn, error: note };
    const peeks = new Peeks();
    peeks.begin({
      peek: async (workerId) => {
        looked.push(workerId);
        return answer();
      },
    });
    looks = new Looks({ clock, log }, peeks);
  });

  function runningPods(count: number): TrackedPod[] {
    return Array.from({ length: count }, (_, index) => {
      const pod = new TrackedPod(recordOf(`pod-${index}`, ['main']));
      pod.take({
        workerId: index + 1,
        status: 'running',
        native: null,
        exitCode: null,
        message: null,
        batchId: '1.0',
        startTime: clock.now(),
        endTime: null,
      });
      return pod;
    });
  }

  it('of 500 plain Pods each gets one look, four of them in a pass', async () => {
    const pods = runningPods(500);
    await looks.pass(pods, signal);
    expect(looked).to.deep.equal([]);
    for (let pass = 0; pass < 200; pass++) {
      await clock.advance(1000);
      const before = looked.length;
      await looks.pass(pods, signal);
      expect(looked.length - before).to.be.at.most(4);
    }
    expect(new Set(looked).size).to.equal(500);
    expect(looked).to.have.length(500);
    expect(pods.every((pod) => pod.report?.containers['main']?.state === 'running')).to.equal(true);
  });

  it('a job that sends its reports gets no look, and no look takes back what it sent', async () => {
    const [pod] = runningPods(1);
    if (pod === undefined) throw new Error('no Pod');
    answer = async () => {
      looks.told(pod);
      pod.takeReport(report({ main: container('terminated') }));
      return Buffer.from(JSON.stringify(running));
    };
    await looks.look(pod, signal);
    expect(pod.report?.containers['main']?.state).to.equal('terminated');
    await clock.advance(60_000);
    await looks.pass([pod], signal);
    expect(looked).to.have.length(1);
  });

  it('a job whose files its backend never shows is looked at once, and says so in the log', async () => {
    const pods = runningPods(1);
    answer = () => Promise.reject(new ThresherError('no-log', 'it is not listed'));
    for (let pass = 0; pass < 5; pass++) {
      await clock.advance(60_000);
      await looks.pass(pods, signal);
    }
    expect(looked).to.have.length(1);
    expect(looks.isBlind(pods[0] as TrackedPod)).to.equal(true);
    expect(logged).to.deep.equal(['the report of a running Pod cannot be seen']);
  });

  it('a machine that does not answer is looked at again, and the log says so once', async () => {
    const pods = runningPods(1);
    answer = () => Promise.reject(new ThresherError('condor-given-up', 'no answer within 10 s'));
    for (let pass = 0; pass < 5; pass++) {
      await clock.advance(60_000);
      await looks.pass(pods, signal);
    }
    expect(looked).to.have.length(4);
    expect(looks.isBlind(pods[0] as TrackedPod)).to.equal(false);
    expect(warnings).to.deep.equal(['the report of a running Pod cannot be seen']);
  });

  it('half a report counts for nothing, and the next look finds the whole', async () => {
    const pods = runningPods(1);
    answer = async () => Buffer.from('{"version":1,"cont');
    await clock.advance(1000);
    await looks.pass(pods, signal);
    expect(pods[0]?.report).to.equal(undefined);
    answer = async () => Buffer.from(JSON.stringify(running));
    await clock.advance(1000);
    await looks.pass(pods, signal);
    expect(pods[0]?.report?.containers['main']?.state).to.equal('running');
  });
});
