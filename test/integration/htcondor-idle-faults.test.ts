import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { whereIs } from '../../src/clients/htcondor/classad.ts';
import { CondorTools } from '../../src/clients/htcondor/tools.ts';
import { drainStartd } from '../../src/clients/htcondor/drain.ts';
import { drainCheck } from '../../src/sources/htcondor-idle/shrink/drainer.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type BedOptions, PoolBed, type SlotRow } from '../campaign/pool/bed.ts';
import { JobBook } from '../campaign/pool/book.ts';
import type { Caps } from '../campaign/pool/caps-kept.ts';
import { Census } from '../campaign/pool/census.ts';
import type { ToolFault } from '../campaign/pool/faulty-tools.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Workers stay until they are told to leave. A big one would end its jobs at once when it drains. */
const worker = {
  noClaim: 600,
  more: ['MAXJOBRETIREMENTTIME = ifThenElse("$POOL_SHAPE" == "big", 0, 2592000)'],
};
const options: BedOptions = { interval: 0.3, joinTimeout: 5, worker };
const caps = { Q: { small: 4, big: 2 } };

/** A job that a small worker takes, and one that a big worker alone takes. */
const small = { cpus: 1, memory: 128 };
const big = { cpus: 4, memory: 128 };

const { signal } = new AbortController();

describe('a pool of workers by demand', () => {
  let bed: PoolBed;
  let daemon: RunningDaemon;

  before(async () => {
    bed = await PoolBed.start(options);
    bed.writeCaps(caps);
    daemon = bed.startDaemon();
  });

  after(async () => {
    await bed[Symbol.asyncDispose]();
  });

  afterEach(async () => {
    bed.tools.heal();
    for (const kind of ['local', 'remote'] as const)
      await bed.client(kind).act('remove', 'true', 'the test is over', signal);
    await bed.site.run('drain', 'Q');
    await until('all workers have left', () => living().length === 0);
    bed.writeCaps(caps);
    await bed.site.run('resume', 'Q');
  });

  const living = () => [...bed.site.liveShims().keys()];
  /** Those of a shape that live. */
  const livingOf = async (shape: string) => {
    const alive = bed.site.liveShims();
    return (await bed.recorded()).filter((one) => one.shape === shape && alive.has(one.workerId));
  };
  const shapes = async () => ({
    small: (await livingOf('small')).length,
    big: (await livingOf('big')).length,
  });
  const reasons = async () => (await bed.site.queue('Q')).reasons.map(({ message }) => message).join('\n');

  /** Waits until the source has looked at the pool so often from now on. */
  async function looks(count: number): Promise<void> {
    const schedds = () => bed.tools.calls('condor_status').filter((call) => call.includes('-schedd')).length;
    const before = schedds();
    // One look is under way, and may have asked already what is to fail.
    await until(`the pool is looked at ${count} times`, () => schedds() > before + count);
  }

  /** Writes other caps, and waits until the daemon goes by them. */
  async function changeCaps(others: Caps): Promise<void> {
    const readings = () => daemon.output().match(/the queue file was read again/g)?.length ?? 0;
    await until('the daemon has started', () => /INFO {2}started /.test(daemon.output()));
    const before = readings();
    bed.writeCaps(others);
    await until('the caps are read', () => readings() > before);
  }

  async function unservable(): Promise<{ readonly end: unknown; readonly said: string }> {
    const asked = bed.site.startWith(['--config', bed.site.config, 'pool', 'unservable'], bed.environment);
    return { end: await asked.ended, said: asked.output() };
  }

  /** Workers whose startd takes no further jobs. */
  async function leavingSlots(): Promise<number[]> {
    const where = ['-constraint', 'ThresherWorker =!= undefined && Draining is true'];
    const text = await bed.condor('condor_status', ...where, '-af', 'ThresherWorker');
    return text.trim().split('\n').map(Number);
  }

  /** Asks a startd to leave, as the source does. */
  const askToLeave = (slot: SlotRow, claims: number, factory = slot.factory) =>
    drainStartd(
      new CondorTools({
        place: { pool: bed.pool.pool, toolDirectory: bed.pool.programs },
        clock: systemClock,
        environment: { ...process.env, ...bed.environment },
      }),
      {
        slot: slot.name,
        check: drainCheck(factory, { workerId: slot.worker, claims }),
        reason: 'a "test"',
      },
      signal,
    );

  it('gets no worker for a schedd whose answers are lost, loses none, and says so; the other schedd goes on', async () => {
    const unheard = 'local@pool.test';
    bed.tools.set('condor_q', 'refused', unheard);
    await bed.submit('local', { ...big, seconds: 1 });
    await bed.submit('remote', { ...small, seconds: 600 });
    // The cycle of negotiation that has passed over this one has passed over the other one as well.
    await until('the job of the other schedd runs', async () => (await bed.running()) === 1);
    const drains = bed.tools.calls('condor_drain').length;
    for (const fault of ['refused', 'lost', 'cut'] as const satisfies readonly ToolFault[]) {
      bed.tools.set('condor_q', fault, unheard);
      await looks(1);
      expect(await shapes(), fault).to.deep.equal({ small: 1, big: 0 });
      expect(await reasons(), fault).to.contain(unheard);
    }
    const { end, said } = await unservable();
    expect(end).to.equal(1);
    expect(said).to.match(/; not all of the pool answered$/m);
    expect(said).to.match(/schedd local@pool\.test gave no answer/);
    expect(bed.tools.calls('condor_drain'), 'orders to leave').to.have.length(drains);
    bed.tools.heal();
    await until('its job has its worker', async () => (await shapes()).big === 1);
  });

  it('gets no worker and loses none while the answers of its collector are lost', async () => {
    await bed.submit('local', { ...small, seconds: 600 }, 2);
    await until('both run', async () => (await bed.running()) === 2);
    bed.tools.set('condor_status', 'refused');
    await bed.submit('local', { ...big, seconds: 1 });
    for (const fault of ['refused', 'empty', 'cut'] as const satisfies readonly ToolFault[]) {
      bed.tools.set('condor_status', fault);
      await looks(1);
      expect(await shapes(), fault).to.deep.equal({ small: 2, big: 0 });
    }
    bed.tools.heal();
    await until('the waiting job has its worker', async () => (await shapes()).big === 1);
    expect(await shapes()).to.deep.equal({ small: 2, big: 1 });
  });

  it('gets no worker while its collector has just started, and one for each job afterwards', async () => {
    const known = new Set((await bed.site.workers()).map(({ workerID }) => workerID));
    const killed = Date.now();
    process.kill(bed.pidOf('condor_collector'), 'SIGKILL');
    await bed.submit('local', { ...small, seconds: 1 });
    await until('the queue says why it does not grow', async () =>
      (await reasons()).includes('the collector started'),
    );
    const grown = await until('a worker is submitted', async () => {
      const found = (await bed.site.workers()).filter(({ workerID }) => !known.has(workerID));
      return found.length > 0 && found.every(({ submitTime }) => submitTime !== null) && found;
    });
    // The times of the workers tell what was made while the queue said so: reading both would show two moments. The collector tells its
    // start in whole seconds.
    const held = grown.map(({ submitTime }) => Date.parse(submitTime ?? '') - killed);
    expect(Math.min(...held), 'ms after the end of the collector').to.be.at.least(
      (options.joinTimeout - 1) * 1000,
    );
    await until('no job waits', async () => (await bed.waiting()) === 0);
  });

  it('hole 8: has a worker for a job beside others whose sizes HTCondor evaluates without end', async () => {
    // Each attribute is twice the one behind it, so that 2 to the 40th are added up. Nothing but thresher asks for it.
    const chain = Array.from({ length: 40 }, (_, at) => `+A${at} = A${at + 1} + A${at + 1}`);
    const usual = [
      'executable = /bin/true',
      'transfer_executable = false',
      'request_memory = 128',
      'hold = true',
    ];
    const client = bed.client('local');
    for (const cpus of [1, 4]) {
      const lines = [
        ...usual,
        'request_disk = 1',
        `request_cpus = ${cpus}`,
        ...chain,
        '+A40 = 1',
        'queue',
        '',
      ];
      await client.submit(lines.join('\n'), {}, signal);
    }
    // condor_submit itself would not end.
    await client.qedit('true', { RequestFoo: 'A0' }, signal);
    await client.act('release', 'true', 'a test', signal);
    await bed.submit('local', { ...small, seconds: 600 });
    // Five commands wait for their time limit of 15 s before.
    await until('the job runs', async () => (await bed.running()) > 0, 240_000);
    await until('the others are said to be left out', async () => (await reasons()).includes('are left out'));
  });

  it('has workers that finish their job before they leave, and that refuse an order that would cost the job', async () => {
    const book = new JobBook(bed);
    const gate = bed.site.path('gate');
    await book.submit('local', { ...small, seconds: 0, gate }, true);
    await book.submit('local', { ...big, seconds: 0, gate }, true);
    const slotOf = (shape: string) =>
      until(`a slot of ${shape} is claimed`, async () => {
        const [one] = await livingOf(shape);
        const slots = (await bed.slots()).filter((slot) => slot.worker === one?.workerId);
        const isBusy = slots.some(({ dynamic, state }) => dynamic && state === 'Claimed');
        return isBusy && slots.find(({ dynamic }) => !dynamic);
      });
    const [patient, harsh] = [await slotOf('small'), await slotOf('big')];
    await until('both jobs run', async () => (await bed.running()) === 2);
    expect(await askToLeave(patient, 0), 'as one that a stale look shows idle').to.equal('refused');
    expect(await askToLeave(patient, 1, 'another'), "as another factory's").to.equal('refused');
    // For the first moments of a job its slot tells no retirement time yet: the order is refused until it does.
    await until('the order is taken', async () => (await askToLeave(patient, 1)) === 'draining');
    for (let times = 0; times < 3; times++)
      expect(await askToLeave(harsh, 1), 'without retirement').to.equal('refused');
    expect(await bed.running()).to.equal(2);
    writeFileSync(gate, '');
    await until('the jobs have ended', async () => (await book.ended()).size === 2);
    expect(await book.broken()).to.deep.equal([]);
    await until('the worker that was asked has left', () => !living().includes(patient.worker));
    expect(living()).to.deep.equal([harsh.worker]);
  });

  it('loses its idle workers first after a lowered cap, and no job', async () => {
    const book = new JobBook(bed);
    for (let job = 0; job < 3; job++) await book.submit('local', { ...small, seconds: 600 }, true);
    await until('all three run', async () => (await bed.running()) === 3);
    expect(living()).to.have.length(3);
    const claimed = async () =>
      (await bed.slots()).filter(({ dynamic, state }) => dynamic && state === 'Claimed');
    // The collector hears of a job later than the schedd.
    await until('the collector shows all three', async () => (await claimed()).length === 3);
    const [one, two] = [...book.jobs.values()];
    for (const { cluster } of [one, two].filter((job) => job !== undefined))
      await bed.client('local').act('remove', whereIs('ClusterId', cluster), 'a test', signal);
    const busy = await until('one worker is busy', async () => {
      const found = await claimed();
      return found.length === 1 && found.map(({ worker }) => worker);
    });
    bed.writeCaps({ Q: { small: 1, big: 2 } });
    await until('one is left', () => living().length <= 1);
    expect(living()).to.deep.equal(busy);
    // A drained queue loses this one as well, but not before its job has ended.
    await bed.site.run('drain', 'Q');
    await until('it takes no further job', async () => (await leavingSlots()).includes(busy[0] ?? 0));
    expect(await bed.running()).to.equal(1);
  });

  it('would break the promise if busy workers were killed: the book of jobs sees it; the ad of a dead worker is no machine', async () => {
    const book = new JobBook(bed);
    await book.submit('local', { ...small, seconds: 600 }, true);
    await until('it runs', async () => (await bed.running()) === 1);
    const dead = living();
    // HTCondor itself would give the next job to a dead slot whose ad still offers something.
    await until('the collector shows nothing free there', async () => {
      const whole = `ThresherWorker =?= ${dead[0] ?? 0} && SlotType =!= "Dynamic"`;
      return (await bed.condor('condor_status', '-constraint', whole, '-af', 'Cpus')).trim() === '0';
    });
    bed.site.killEverything();
    await until('the book sees it', async () => (await book.broken()).length > 0);
    await bed.client('local').act('remove', 'true', 'its machine is dead', signal);
    await bed.submit('remote', { ...small, seconds: 600 });
    await until('a worker comes for another job', () => living().length === 1);
    const shown = new Set((await bed.slots()).map(({ worker }) => worker));
    expect([...shown], 'workers that the collector still shows').to.include.members(dead);
    await until('the job runs', async () => (await bed.running()) === 1);
  });

  it('stays within its caps while its daemon is killed again and again', async () => {
    const known = new Set((await bed.site.workers()).map(({ workerID }) => workerID));
    const census = new Census(bed);
    census.begin();
    try {
      await bed.submit('local', { ...small, seconds: 1 }, 5);
      await bed.submit('remote', { ...big, seconds: 1 }, 3);
      const moments = {
        'a worker is recorded': async () =>
          (await bed.site.workers()).some(({ workerID }) => !known.has(workerID)),
        'a job runs': async () => (await bed.running()) > 0,
      };
      for (const [moment, isReached] of Object.entries(moments)) {
        await until(moment, isReached);
        daemon.process.kill('SIGKILL');
        await daemon.ended;
        daemon = bed.startDaemon();
      }
      await until('no job waits', async () => (await bed.waiting()) === 0);
    } finally {
      await census.end();
    }
    expect(await census.broken()).to.deep.equal([]);
    expect(census.workers.size, 'workers that were seen').to.be.within(2, 6);
  });

  it('serves two factories, each within its own caps, and neither ends workers of the other', async () => {
    await using other = bed.beside();
    const one = { Q: { small: 1, big: 0 } };
    await changeCaps(one);
    other.writeCaps(one);
    other.startDaemon();
    const theirs = () => other.site.liveShims().size;
    await bed.submit('local', { ...small, seconds: 600 }, 3);
    await until('two jobs run', async () => (await bed.running()) === 2);
    await looks(2);
    expect([living().length, theirs()]).to.deep.equal([1, 1]);
    await bed.client('local').act('remove', 'true', 'both are idle now', signal);
    bed.writeCaps({ Q: { small: 0, big: 0 } });
    await until('the worker of the one has left', () => living().length === 0);
    expect(theirs(), 'workers of the other').to.equal(1);
  });
});
