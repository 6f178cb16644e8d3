import { expect } from 'chai';
import { KubernetesPair, leaseDuration } from '../support/kubernetes-pair.ts';
import { untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';
import { wrongClock } from '../support/wrong-clock.ts';

const hour = 3600;

interface Times {
  readonly id: number;
  /** Seconds that they are ahead of the server's clock. */
  readonly created: number;
  readonly submitted: number;
  readonly started: number;
}

describe('two daemons on one database, one of which has a clock that is an hour off', () => {
  let pair: KubernetesPair;

  beforeEach(async () => {
    pair = await KubernetesPair.make();
  });
  afterEach(async () => {
    await pair[Symbol.asyncDispose]();
  });

  const ahead = (column: string) =>
    `round(${column} / 1000.0 - extract(epoch FROM clock_timestamp()))::float8`;
  const timesOf = (ids: readonly number[]) =>
    pair.query<Times>(`SELECT worker_id AS id, ${ahead('creation_time')} AS created, ${ahead('submit_time')} AS submitted,
      ${ahead('start_time')} AS started FROM workers WHERE worker_id IN (${ids.join(', ')})`);
  /** A test takes some minutes at most: half an hour tells the two clocks apart. */
  const isBy = (offset: number, time: number) => Math.abs(time - offset) < hour / 2;

  /** Workers have the times of the daemon that made them, but begin by the clock of the cluster. */
  async function expectTimes(ids: readonly number[], offset: number): Promise<void> {
    const times = await timesOf(ids);
    expect(times.length).to.equal(ids.length);
    const wrong = times.filter(
      ({ created, submitted, started }) =>
        !isBy(offset, created) || !isBy(offset, submitted) || !isBy(0, started),
    );
    expect(wrong).to.deep.equal([]);
  }

  const cases: readonly (readonly [what: string, leader: number, standby: number])[] = [
    ['the leader is ahead', hour, 0],
    ['the leader is behind', -hour, 0],
    ['the standby is ahead', 0, hour],
    ['the standby is behind', 0, -hour],
  ];
  for (const [what, first, second] of cases)
    it(`lead one after the other, and each worker is there once: ${what}`, async () => {
      const [one, other] = pair.sites;
      const leader = one.start([], wrongClock(first));
      const ids = await pair.expectAllRun(leader);
      await expectTimes(ids, first);
      const standby = other.start([], wrongClock(second));
      await untilSaid(standby, 'standby: another daemon has the factory');
      await until('the leader has renewed its lease for some time', async () => {
        const rows = await pair.query<{ epoch: number }>(
          `SELECT epoch FROM leases WHERE expires_at > taken_at + interval '${4 * leaseDuration} s'`,
        );
        return rows.length === 1;
      });
      expect(await pair.query('SELECT epoch FROM leases')).to.deep.equal([{ epoch: 1 }]);
      expect(leader.output()).not.to.match(/lease-expired|store-taken/);

      process.kill(leader.pid, 'SIGKILL');
      await untilSaid(standby, 'no longer a standby');
      const taken = await pair.query<{ holder: string; since: number }>(
        `SELECT holder, extract(epoch FROM clock_timestamp() - taken_at)::float8 AS since FROM leases WHERE epoch = 2`,
      );
      expect(taken[0]?.holder).to.match(new RegExp(` pid ${standby.pid}$`));
      // By the server's clock: an hour off would be 3600 s.
      expect(taken[0]?.since).to.be.within(0, hour / 2);
      expect(await pair.expectAllRun(standby)).to.deep.equal(ids);

      const [gone = 0] = ids;
      expect((await other.run('kill', String(gone))).status).to.equal(0);
      const now = await until('another worker has taken its place', async () => {
        const running = (await other.workers({ status: 'running' })).map(({ workerID }) => workerID);
        return running.length === ids.length && !running.includes(gone) && running;
      });
      const fresh = now.filter((id) => !ids.includes(id));
      expect(fresh.length).to.equal(1);
      expect(fresh[0]).to.be.greaterThan(Math.max(...ids));
      await expectTimes(fresh, second);

      const former = one.start([], wrongClock(first));
      await untilSaid(former, 'standby: another daemon has the factory');
      process.kill(standby.pid, 'SIGTERM');
      expect(await standby.ended, standby.output()).to.equal(0);
      await untilSaid(former, 'no longer a standby');
      await untilSaid(former, ' started ');
      expect(await pair.expectAllRun(former)).to.deep.equal(now.sort());
      const ends = (await other.workers()).filter(({ status }) => status !== 'running');
      expect(ends.map(({ workerID, status }) => [workerID, status])).to.deep.equal([[gone, 'cancelled']]);
    });
});
