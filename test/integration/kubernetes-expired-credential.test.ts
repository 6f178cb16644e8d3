import { expect } from 'chai';
import { controlPlane } from '../support/kubernetes.ts';
import { hour, makeUser, SecretSite } from '../support/secret-site.ts';
import { until } from '../support/until.ts';

describe('an expired credential on Kubernetes', () => {
  it('stops its queue over three hundred passes, and lets it go on at once when it is good', async () => {
    await using at = await SecretSite.on(await controlPlane(), makeUser());
    at.begin(
      { credmanagers: [at.inQueue()] },
      { submitter: { sleepTime: 0.05 }, http: { enabled: true, port: 0 } },
    );
    at.renew(-hour / 2);
    at.start();
    await until('the queue says why', async () => (await at.reasons()).includes('credential-bad'));
    const passes = async () => {
      const count = /^thresher_loop_duration_seconds_count\{kind="submit",target="Q"\} (\d+)/m;
      return Number(count.exec(await at.metrics())?.[1]);
    };
    await until('three hundred passes are over', async () => (await passes()) > 300, 150_000);
    expect(at.proxy.count({ verb: 'create', resource: 'jobs' })).to.equal(0);
    expect(await at.site.workers()).to.be.empty;
    expect(at.patches()).to.equal(0);

    const good = at.renew(12 * hour);
    // The next renewal by time is far away: the change of the file is enough.
    await until('the good one is pushed', at.hasText(good));
    await until('there is a Job', async () => (await at.jobs()).length > 0);
    const pushes = at.patches();

    // One too short is not pushed: the good one stays, and so does submission.
    at.renew(60_000);
    await until('it is said', () => at.daemon.output().includes('it is not pushed'));
    expect(await at.hasText(good)()).to.equal(true);
    expect(at.patches()).to.equal(pushes);
  }).timeout(240_000);
});
