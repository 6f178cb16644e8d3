import { expect } from 'chai';
import { Pace } from '../../../../src/sources/interlink/pods/pace.ts';
import type { PodRecord } from '../../../../src/sources/interlink/pods/pod-record.ts';
import { TrackedPod } from '../../../../src/sources/interlink/pods/tracked-pod.ts';
import { ThresherError } from '../../../../src/worker/errors.ts';
import { recordingLog } from '../../../support/samples.ts';

const second = 1000;
const podOf = (uid: string, more: Partial<PodRecord> = {}) =>
  new TrackedPod({
    version: 1,
    uid,
    name: 'pod',
    namespace: 'default',
    containers: [],
    initContainers: [],
    acceptedAt: 0,
    ...more,
  });

describe('the pace of the looks at Pods', () => {
  let log: ReturnType<typeof recordingLog>;
  let pace: Pace;

  beforeEach(() => {
    log = recordingLog();
    pace = new Pace(second, log);
  });

  /** Times of the looks at a Pod in a time, s. */
  async function looks(pod: TrackedPod, seconds: number): Promise<number[]> {
    const times: number[] = [];
    for (let now = 0; now < seconds; now++) {
      if (!pace.isDue(pod, now * second)) continue;
      times.push(now);
      await pace.look(
        pod,
        () => now * second,
        async () => undefined,
      );
    }
    return times;
  }
  const failing = (code: 'interlink-files' | 'interlink-lost') => async () => {
    throw new ThresherError(code, `${code} happened`);
  };
  const look = (pod: TrackedPod, work: () => Promise<void> = async () => undefined) =>
    pace.look(pod, () => 0, work);

  it('is the usual one for a Pod whose job runs', async () => {
    expect(await looks(podOf('a'), 100)).to.have.length(100);
  });

  it('slows down for a deleted Pod that does not go, to a look a minute', async () => {
    const times = await looks(podOf('a', { deleted: true }), 3600);
    expect(times.slice(0, 5)).to.deep.equal([0, 1, 2, 3, 4]);
    expect(times.length).to.be.within(60, 90);
    const pauses = times.map((time, index) => time - (times[index - 1] ?? 0));
    expect(Math.max(...pauses)).to.equal(60);
  });

  it('shows an end whose files come late within ten seconds', async () => {
    const pod = podOf('a');
    pod.ending = { facts: { ...({} as NonNullable<TrackedPod['facts']>) }, since: 0, heardAt: 0 };
    const times = await looks(pod, 1000);
    const pauses = times.map((time, index) => time - (times[index - 1] ?? 0));
    expect(Math.max(...pauses)).to.equal(10);
  });

  it('tells of one trouble of many Pods when it begins and when it has ended', async () => {
    const pods = Array.from({ length: 300 }, (_, index) => podOf(`${index}`, { deleted: true }));
    for (let again = 0; again < 3; again++)
      for (const pod of pods) await look(pod, failing('interlink-files'));
    for (const pod of pods) await look(pod);
    expect(log.lines.map(({ level, message, facts }) => [level, message, facts.code])).to.deep.equal([
      ['warn', 'a Pod could not be looked after', 'interlink-files'],
      ['info', 'Pods are looked after again', 'interlink-files'],
    ]);
  });

  it('tells of another trouble beside it', async () => {
    const pod = podOf('a');
    await look(pod, failing('interlink-files'));
    await look(pod, failing('interlink-lost'));
    expect(log.lines.map(({ facts }) => facts.code)).to.deep.equal([
      ...['interlink-files', 'interlink-files', 'interlink-lost'],
    ]);
  });

  it('looks at no Pod twice at once: a file that hangs holds its own Pod alone', async () => {
    const [hanging, other] = [podOf('a'), podOf('b')];
    const end = Promise.withResolvers<undefined>();
    let begun = 0;
    const work = async () => {
      begun++;
      await end.promise;
    };
    const first = look(hanging, work);
    await look(hanging, work);
    expect(begun).to.equal(1);
    expect(pace.isDue(hanging, 0)).to.equal(false);
    expect(pace.isDue(other, 0)).to.equal(true);
    end.resolve(undefined);
    await first;
    expect(pace.isDue(hanging, 0)).to.equal(true);
  });
});
