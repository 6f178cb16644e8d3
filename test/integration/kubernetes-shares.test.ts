import { expect } from 'chai';
import { type ControlPlane, controlPlane } from '../support/kubernetes.ts';
import { workersWithJobs } from '../support/kubernetes-history.ts';
import { MemberSites } from '../support/member-sites.ts';
import { sharedPostgresql } from '../support/postgresql.ts';
import { type RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Seconds: little more than the shortest that there is, since a daemon that starts on a busy machine may stand still for a while. */
const leaseDuration = 8;
const queueNames = MemberSites.queues;

describe('daemons that share the queues of a factory', () => {
  let plane: ControlPlane;
  let bed: MemberSites;
  let sites: MemberSites['sites'];

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    bed = await MemberSites.open(plane, leaseDuration);
    ({ sites } = bed);
  });

  afterEach(() => bed[Symbol.asyncDispose]());

  const expectAllRun = (site?: Site) => bed.expectAllRun(site);
  const members = () => bed.members();
  const untilHave = (counts: Record<string, number>) => bed.untilHave(counts);

  const queuesOf = async (member: string): Promise<readonly string[]> => (await members())[member] ?? [];

  const end = async (daemon: RunningDaemon, signal: NodeJS.Signals): Promise<void> => {
    process.kill(daemon.pid, signal);
    await daemon.ended;
  };

  it('have half each, give and take as others join, leave and are killed, and make each worker once', async () => {
    const one = sites[0].start();
    await untilHave({ one: 4 });
    await expectAllRun();
    const two = sites[1].start();
    await untilHave({ one: 2, two: 2 });
    await expectAllRun();
    let shown = '';
    await until(
      () => `the status shows who has what:\n${shown}\n${one.output()}`,
      async () => {
        shown = (await sites[0].run('status')).stdout;
        const isShown = (name: string) =>
          new RegExp(`\n${name} +up +\\S+ pid \\d+ +.*Q\\d, Q\\d\n`).test(shown);
        return /\nMEMBER +STATE +DAEMON +HAS\n/.test(shown) && isShown('one') && isShown('two');
      },
    );
    expect((await sites[0].run('queues')).stdout).to.match(/^QUEUE +MEMBER +STATE.*\nQ1 +(one|two) +running/);
    const before = await members();
    await end(one, 'SIGKILL');
    const left = await untilHave({ two: 4 });
    expect(left.two).to.include.members([...(before.two ?? [])]);
    await expectAllRun();

    const three = sites[2].start();
    await untilHave({ three: 2, two: 2 });
    const again = sites[0].start();
    const each = await until('each has something', async () => {
      const now = await members();
      return ['one', 'two', 'three'].every((name) => (now[name]?.length ?? 0) > 0) && now;
    });
    expect(
      Object.values(each)
        .map(({ length }) => length)
        .sort(),
    ).to.deep.equal([1, 1, 2]);
    await end(two, 'SIGTERM');
    await untilHave({ one: 2, three: 2 });
    await expectAllRun();
    for (const daemon of [three, again])
      expect(daemon.output()).not.to.match(/factory-shared|orphans found|\[internal/);
    expect(again.output()).not.to.contain('adopted workers without a row');
  });

  it('carry out what operators ask of queues of any of them', async () => {
    sites[0].start();
    await untilHave({ one: 4 });
    sites[1].start();
    await untilHave({ one: 2, two: 2 });
    await expectAllRun();
    for (const site of [sites[0], sites[1]])
      for (const member of ['one', 'two']) {
        const [queue = ''] = await queuesOf(member);
        const [first] = (await sites[0].workers({ queue })).filter(({ status }) => status === 'running');
        const id = first?.workerID ?? 0;
        const killed = await site.run('kill', String(id));
        expect([killed.status, killed.stdout], killed.stderr).to.deep.equal([
          0,
          '1 of 1 workers are being ended\n',
        ]);
        await until(`worker ${id} of ${queue} is cancelled`, async () => {
          const workers = await sites[0].workers({ queue });
          return workers.some(({ workerID, status }) => workerID === id && status === 'cancelled');
        });
        await expectAllRun();
        const paused = await site.run('pause', queue, '--reason', 'test');
        expect(paused.stdout, paused.stderr).to.equal(`${queue} is paused\n`);
        await until(`${queue} shows its pause`, async () => (await site.queue(queue)).state === 'paused');
        await site.run('resume', queue);
        await until(`${queue} goes on`, async () => (await site.queue(queue)).state !== 'paused');
      }
  });

  it('serve requests of operators for queues of any of them', async () => {
    sites[0].start();
    await untilHave({ one: 4 });
    sites[1].start();
    await untilHave({ one: 2, two: 2 });
    await expectAllRun();
    for (const queue of queueNames) await sites[0].run('pause', queue, '--reason', 'room for requests');
    for (const { workerID } of await sites[0].workers()) await sites[0].run('kill', String(workerID));
    await until('all have ended', async () => (await workersWithJobs(bed.space)).length === 0);
    // Requests come before the demand of the queue, which would take all room.
    for (const [at, queue] of queueNames.entries()) {
      const { status, stderr } = await sites[at % 2 === 0 ? 0 : 1].run('submit', queue, '--', '/bin/true');
      expect(status, stderr).to.equal(0);
    }
    for (const queue of queueNames) await sites[0].run('resume', queue);
    await until('no request waits any more', async () => {
      const { stdout } = await sites[0].run('requests', '--waiting', '--output', 'json');
      return /^[\s[\]]*$/.test(stdout);
    });
    const all = (await sites[0].run('requests', '--output', 'json')).stdout;
    for (const queue of queueNames) expect(all).to.contain(queue);
  });

  it('make each worker once while one stands still beyond its lease, and when it goes on', async () => {
    const one = sites[0].start();
    await untilHave({ one: 4 });
    const two = sites[1].start();
    await untilHave({ one: 2, two: 2 });
    await expectAllRun();
    process.kill(one.pid, 'SIGSTOP');
    await untilHave({ two: 4 });
    for (const { workerID } of await sites[0].workers()) await sites[0].run('kill', String(workerID));
    await expectAllRun();
    process.kill(one.pid, 'SIGCONT');
    expect(await one.ended, one.output()).to.equal(1);
    expect(one.output()).to.contain('[store-taken]');
    await expectAllRun();
    expect(two.output()).not.to.contain('factory-shared');
  });

  it('make each worker once while the network parts one and the database, and when it heals', async () => {
    const one = sites[0].start();
    await untilHave({ one: 4 });
    sites[1].start();
    await untilHave({ one: 2, two: 2 });
    bed.proxy.silence();
    await untilHave({ two: 4 });
    for (const { workerID } of await sites[1].workers()) await sites[1].run('kill', String(workerID));
    await expectAllRun(sites[1]);
    bed.proxy.heal();
    expect(await one.ended, one.output()).to.equal(1);
    await expectAllRun(sites[1]);
  });

  it('never work beside a daemon that has all of the factory', async () => {
    sites[0].start();
    await untilHave({ one: 4 });
    const settings = {
      database: { url: (await sharedPostgresql()).url(bed.database), sslmode: 'disable', leaseDuration },
    };
    const alone = new Site({ settings: { master: { factoryId: 'many' }, ...settings }, queues: {} });
    try {
      const waiting = alone.start();
      await until('it waits', () => waiting.output().includes('standby: another daemon has the factory'));
      expect(await queuesOf('one')).to.have.length(4);
    } finally {
      await alone.clean();
    }
  });
});
