import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { KubernetesPair } from '../support/kubernetes-pair.ts';
import { untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Longer than the lease, than the server waits within a transaction, and than connections are kept open. */
const pause = 62_000;

describe('a leader that stands still for a minute', () => {
  it('submits nothing of what it had recorded, and each worker is there once', async () => {
    await using pair = await KubernetesPair.make();
    const [one, other] = pair.sites;
    const paused = one.startPausingAt('submit:after-intent');
    await until(
      () => `it stands still:\n${paused.output()}`,
      () => readFileSync(`/proc/${paused.pid}/stat`, 'utf8').includes(') T '),
    );
    const since = performance.now();
    const next = other.start();
    // Where it begins late the lease has run out already, and it never waits.
    await untilSaid(next, ' started ');
    const ids = await pair.expectAllRun(next);
    await until('a minute is over', async () => {
      await pair.remember();
      return performance.now() - since > pause;
    });
    process.kill(paused.pid, 'SIGCONT');
    expect(await paused.ended, paused.output()).to.equal(1);
    expect(paused.output()).to.contain('another daemon has taken over the factory two');
    expect(await pair.expectAllRun(next)).to.deep.equal(ids);
  });
});
