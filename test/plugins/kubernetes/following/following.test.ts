import { expect } from 'chai';
import { Following, type OptionsOf } from '../../../../src/plugins/kubernetes/following/following.ts';
import type { Kept, KeptPod } from '../../../../src/plugins/kubernetes/following/records.ts';
import { at, condition, ended, job, ms, pod, running, waiting } from '../objects.ts';

const options: OptionsOf = () => ({ podQueueTimeLimit: 60 });
const kept = (uid: string, value: object): Kept => ({ workerId: 1, uid, text: JSON.stringify(value) });
const keptPod = (uid: string, maker: string, value: object): KeptPod => ({ ...kept(uid, value), maker });
const active = kept('job', job([], { status: { active: 1 } }));
const aPod = keptPod('pod', 'job', pod('Running', { containers: [running()] }));

const clock = { now: 0, monotonic: () => clock.now };

/** @param behind seconds by which the clock of the wall is behind */
function look(
  following: Following,
  seconds: number,
  { uid, behind = 0 }: { uid?: string; behind?: number } = {},
) {
  clock.now = seconds * 1000;
  return following.stateOf(1, ms(seconds - behind), options, uid);
}

describe('a worker whose Pod went away under its Job', () => {
  let following: Following;
  const state = (seconds: number) => look(following, seconds);
  const isGivenUp = (seconds: number) => state(seconds)?.verdict !== undefined;

  beforeEach(() => {
    following = new Following(clock);
    following.putJob(active);
    following.putPod(aPod);
    // It ran for long.
    expect(state(10_000)?.observation.status).to.equal('running');
    following.removePod(aPod);
  });

  it('waits for another one from when it was first seen without, not from the start of the Job', () => {
    expect(isGivenUp(10_100)).to.equal(false);
    expect(state(10_100)?.lookAgainAt).to.equal(ms(10_160));
    expect(isGivenUp(10_159)).to.equal(false);
    expect(isGivenUp(10_160)).to.equal(true);
  });

  it('begins anew when another one was there for a while', () => {
    expect(isGivenUp(10_100)).to.equal(false);
    following.putPod(aPod);
    expect(isGivenUp(10_150)).to.equal(false);
    following.removePod(aPod);
    expect(isGivenUp(10_170)).to.equal(false);
    expect(isGivenUp(10_230)).to.equal(true);
  });

  it('is judged so by a fresh look, too, which knows nothing of before', () => {
    expect(isGivenUp(10_100)).to.equal(false);
    const fresh = new Following(clock);
    fresh.putJob(active);
    fresh.countFrom(1, following);
    expect(look(fresh, 10_160)?.verdict).not.to.equal(undefined);
    // A look that is not told of it begins to count by itself.
    const alone = new Following(clock);
    alone.putJob(active);
    expect(look(alone, 10_160)?.verdict).to.equal(undefined);
  });
});

describe('a worker whose Pod runs in another cluster', () => {
  it('waits from when that is counted no more, not from when it was first seen', () => {
    const following = new Following(clock);
    const state = (seconds: number) => look(following, seconds);
    const spec = { managedBy: 'kueue.x-k8s.io/multikueue' };
    const put = (counts: object) => {
      following.putJob(kept('job', job([], { spec, status: { startTime: at(0), ...counts } })));
    };
    put({ active: 1, ready: 1 });
    expect(state(10)?.observation.nativeStatus).to.equal('RunningElsewhere');
    put({ active: 0, failed: 1 });
    expect([state(7200)?.verdict, state(7200)?.lookAgainAt]).to.deep.equal([undefined, ms(7260)]);
    put({ active: 1, ready: 0 });
    expect(state(7250)?.observation.nativeStatus).to.equal('ActiveElsewhere');
    put({ active: 0, terminating: 1 });
    expect(state(9000)?.verdict).to.equal(undefined);
    expect(state(9060)?.verdict?.observation.error?.code).to.equal('k8s-queue-time');
  });
});

describe('a worker beside whose Pod there is one of an earlier Job of its name', () => {
  const old = keptPod(
    'old',
    'old-job',
    pod('Failed', { name: 'old', created: 5000, containers: [ended(1)] }),
  );
  const state = (following: Following, uid?: string) =>
    look(following, 10_000, { ...(uid && { uid }) })?.observation.status;
  let following: Following;

  beforeEach(() => {
    following = new Following(clock);
    for (const one of [aPod, old]) following.putPod(one);
  });

  it('is judged by the Pod of its own Job alone, also after that is gone', () => {
    following.putJob(active);
    expect(state(following)).to.equal('running');
    following.replaceJobs([]);
    expect(state(following)).to.equal('running');
    following.removePod(aPod);
    expect(state(following)).to.equal(undefined);
  });

  it('is judged by all of them until its Job is seen, or its uid is told', () => {
    expect(state(following)).to.equal('failed');
    expect(state(following, 'job')).to.equal('running');
    following.putJob(active);
    expect(state(following)).to.equal('running');
  });

  it('has no Pod while only the earlier one has', () => {
    following.putJob(active);
    following.removePod(aPod);
    expect(look(following, 10_000)?.observation.nativeStatus).to.equal('NoPod');
    expect([...following.withoutPod(ms(10_000))]).to.deep.equal([['job', 1]]);
    following.explain(1, 'FailedCreate: exceeded quota');
    expect(look(following, 10_000)?.observation.nativeStatus).to.equal('NoPod:FailedCreate');
  });

  it('runs in another cluster as before', () => {
    const spec = { managedBy: 'kueue.x-k8s.io/multikueue' };
    following.removePod(aPod);
    following.putJob(kept('job', job([], { spec, status: { startTime: at(0), active: 1, ready: 1 } })));
    expect(look(following, 10_000)?.observation.nativeStatus).to.equal('RunningElsewhere');
  });

  it('goes with both of them', () => {
    following.putJob(active);
    expect(following.objectsOf(1).pods).to.have.length(2);
  });
});

describe('a worker whose labels thousands of Pods have', () => {
  it('hole 8: is judged by a thousand of them, and is there as long as one of these is', () => {
    const following = new Following(clock);
    const pods = Array.from({ length: 5000 }, (_, at) => ({ ...aPod, uid: `pod-${at}` }));
    following.replacePods(pods);
    expect(following.objectsOf(1).pods).to.have.length(1000);
    following.putPod({ ...aPod, uid: 'pod-7' });
    expect(following.objectsOf(1).pods).to.have.length(1000);
    expect(look(following, 10_000)?.observation.status).to.equal('running');
    for (const one of pods) following.removePod(one);
    expect(following.has(1)).to.equal(false);
  });
});

describe('a worker whose Pod has waited for a short time', () => {
  const waits = (created: number) => {
    const conditions = [
      condition('PodScheduled', 'Unschedulable', { status: 'False', lastTransitionTime: at(created) }),
    ];
    return keptPod('pod', 'job', pod('Pending', { created, conditions }));
  };
  const day = 86_400;
  let following: Following;

  beforeEach(() => {
    following = new Following(clock);
    following.putJob(active);
  });

  for (const isNew of [false, true])
    it(`is not given up when the clock is set right that was a day behind when it was made${isNew ? ', and that the Pod alone has a time of' : ''}`, () => {
      following.putPod(waits(10_000 - day), isNew);
      const behind = isNew ? 0 : day;
      expect(look(following, 10_000, { behind })?.verdict).to.equal(undefined);
      expect(look(following, 10_030)?.verdict).to.equal(undefined);
      expect(look(following, 10_030)?.lookAgainAt).to.equal(ms(10_060));
      expect(look(following, 10_060)?.verdict?.observation.error?.code).to.equal('k8s-queue-time');
    });

  it('is judged so by a fresh look, too, and not given up for a reason that is older than its Pod', () => {
    following.putPod(waits(10_000 - day), true);
    look(following, 10_000);
    const fresh = new Following(clock);
    fresh.putJob(active);
    const containers = [waiting('InvalidImageName'), waiting('ErrImagePull', 'beside')];
    fresh.putPod(keptPod('pod', 'job', pod('Pending', { created: 10_000 - day, containers })));
    fresh.countFrom(1, following);
    const rules = [{ reason: '.*', graceSeconds: 40, then: 'fail' as const }];
    const judged = (seconds: number) => {
      clock.now = seconds * 1000;
      return fresh.stateOf(1, ms(seconds), () => ({ podQueueTimeLimit: 60, pendingRules: rules }));
    };
    expect(judged(10_030)?.verdict).to.equal(undefined);
    expect(judged(10_040)?.verdict).not.to.equal(undefined);
  });

  it('is given up by the time of its Pod at the first look of a daemon', () => {
    following.putPod(waits(10_000 - day));
    expect(look(following, 10_000)?.verdict).not.to.equal(undefined);
  });
});
