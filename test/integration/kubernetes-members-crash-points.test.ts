import { expect } from 'chai';
import { type ControlPlane, controlPlane } from '../support/kubernetes.ts';
import { MemberSites } from '../support/member-sites.ts';
import { sharedPostgresql } from '../support/postgresql.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Seconds. */
const leaseDuration = 6;

describe('daemons that share queues, of which one is killed at a step of a move,', () => {
  let plane: ControlPlane;
  let bed: MemberSites;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    bed = await MemberSites.open(plane, leaseDuration);
  });

  afterEach(() => bed[Symbol.asyncDispose]());

  const dies = async (daemon: RunningDaemon) => {
    expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
  };

  async function untilThere(member: string): Promise<void> {
    const server = await sharedPostgresql();
    await until(`${member} has its lease`, async () => {
      const rows = await server.query(
        `SELECT FROM leases WHERE shard = 'member ${member}' AND expires_at > clock_timestamp()`,
        bed.database,
      );
      return rows.length > 0;
    });
  }

  for (const [description, step] of [
    ['before it takes queues', 'share:before-take'],
    ['after it took queues', 'share:after-take'],
    ['before its first pass for queues that it took', 'share:before-work'],
  ] as const)
    it(`make each worker once and forget none: killed ${description}`, async () => {
      const [first, second] = bed.sites;
      const one = first.start();
      await bed.untilHave({ one: 4 });
      const two = second.startCrashingAt(step);
      await untilThere('two');
      one.process.kill('SIGKILL');
      await dies(two);
      second.start();
      await bed.untilHave({ two: 4 });
      await bed.expectAllRun();
    });

  for (const [description, step] of [
    ['before it gives queues', 'share:before-give'],
    ['after it gave queues', 'share:after-give'],
  ] as const)
    it(`make each worker once and forget none: killed ${description}`, async () => {
      const [first, second] = bed.sites;
      const one = first.startCrashingAt(step);
      await bed.untilHave({ one: 4 });
      second.start();
      await dies(one);
      await bed.untilHave({ two: 4 });
      await bed.expectAllRun();
    });

  for (const [description, step] of [
    ['after the rows', 'submit:after-intent'],
    ['before the outcomes are written', 'submit:before-outcome'],
  ] as const)
    it(`make each worker once and forget none: killed in a submission, ${description}, and the other one takes over`, async () => {
      const [first, second] = bed.sites;
      const one = first.startCrashingAt(step);
      await dies(one);
      second.start();
      await bed.untilHave({ two: 4 });
      await bed.expectAllRun();
    });

  it('make each worker once and forget none: one stands still in a submission while the other one takes over, and goes on', async () => {
    const [first, second] = bed.sites;
    const one = first.startPausingAt('submit:before-outcome');
    await bed.untilHave({ one: 4 });
    second.start();
    await bed.untilHave({ two: 4 });
    await bed.expectAllRun();
    one.process.kill('SIGCONT');
    expect(await one.ended, one.output()).to.equal(1);
    expect(one.output()).to.match(/store-taken|store-outcome-unknown/);
    await bed.expectAllRun();
  });
});
