import { join } from 'node:path';
import { expect } from 'chai';
import { runHere } from '../support/command-line.ts';
import { type ControlPlane, type KubeObject, type Pod, realNode } from '../support/kubernetes.ts';
import { DemandSite } from '../support/pool-demand.ts';
import { poolImage } from '../support/pool-image.ts';
import { PoolSite } from '../support/pool-site.ts';
import type { RunningDaemon } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

interface Secret extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}

const job = (seconds: number, ...more: readonly string[]) => [
  ...['executable = /bin/sleep', 'transfer_executable = false', `arguments = ${seconds}`, ...more],
];
/** A job for workers of one queue. */
const jobOf = (name: string, seconds: number, queue = 'queue') =>
  job(seconds, `requirements = TARGET.ThresherQueue == "${name.toUpperCase()}"`, queue);
const isReady = ({ status }: Pod) =>
  status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
const lives = ({ status }: Pod) => !['Succeeded', 'Failed'].includes(status.phase);

/** The part of a token that says what it is good for. */
function claimsOf(token: string): { readonly iat: number; readonly exp: number; readonly sub: string } {
  const [, claims = ''] = token.split('.');
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as never;
}

/** One pool for all of them: its head takes 10 s to start. */
describe('a pool of HTCondor on a real node that grows by its own demand', () => {
  let plane: ControlPlane;
  let pool: PoolSite;
  let demand: DemandSite;
  let daemon: RunningDaemon;

  const workers = () => pool.pods('demand-worker');
  const waiting = async () => (await pool.queue('-af', 'ClusterId', 'ProcId')).length;
  const idle = (more: object) => ({ name: 'htcondor-idle', ...more });
  const few = { maxWorkers: 2, nQueueLimitWorker: 2 };
  const workersOf = async (name: string) => demand.site.workers({ queue: name });
  const tokens = async () => {
    const secrets = await pool.space.client.list<Secret>(pool.space.core('secrets'));
    return secrets.filter(({ metadata }) => metadata.name.startsWith('thresher-'));
  };
  /** `until`, whose failure also says what thresher did. */
  const untilIn: typeof until = (what, condition, deadline) =>
    until(what, condition, deadline).catch(async (error: unknown) => {
      const queues = (await demand.site.queues()).map(({ name, reasons }) => ({ name, reasons }));
      const all = (await demand.site.workers({ queue: 'PATIENT' })).map(
        ({ workerID, status, diagMessage }) => `${workerID} ${status}: ${diagMessage ?? ''}`,
      );
      const slots = await pool.status('-af', 'Name', 'ThresherWorker', 'State', 'Draining', 'Start');
      const said = daemon.output().slice(-3000);
      throw new Error(
        `${String(error)}; ${JSON.stringify({ all, slots, queues })}; the daemon said: ${said}`,
      );
    });

  before(async () => {
    plane = await realNode();
    pool = await PoolSite.make(plane, await poolImage());
    await pool.createSecrets();
    const other = join(temporaryDirectory(), 'other-pool');
    await runHere('pool', 'init', '--directory', other);
    await pool.createSecret('wrong-token', 'token', join(other, 'worker/token'));
    await pool.apply();
    await pool.pod('central-manager');
    demand = await DemandSite.make(pool, {
      templates: {
        'worker.yaml': {},
        'patient.yaml': { noClaim: 600 },
        'wrong.yaml': { noClaim: 600, tokenSecret: 'wrong-token' },
        'nowhere.yaml': { noClaim: 600, condorHost: '10.96.255.254' },
        'image.yaml': { image: 'docker.io/library/busybox:latest' },
      },
      settings: {
        sweeper: { keepFinished: 0.001 },
        submitter: { blackHoleLifetime: 1, blackHoleWorkers: 5 },
      },
    });
    daemon = demand.start();
  });

  after(async () => {
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    await pool[Symbol.asyncDispose]();
  });

  it('C1: with tokens that a key signs, the daemons are in condor_status -any', async () => {
    const lines = await pool.untilDaemons('all daemons are listed', (all) =>
      [
        'Collector ',
        'Negotiator ',
        'Scheduler ',
        'Machine slot1@htcondor-worker-',
        ...['central-manager', 'schedd', 'worker'].map((role) => `DaemonMaster htcondor-${role}`),
      ].every((start) => all.some((line) => line.startsWith(start))),
    );
    expect(lines.filter((line) => line.startsWith('DaemonMaster htcondor-'))).to.have.lengthOf(3);
  });

  it('learns the template of its workers from the worker that is there', async () => {
    const [startd = ''] = (await pool.slots()).map((slot) => slot.replace(/^slot1@/, ''));
    const out = demand.site.path('small.ad');
    expect(await demand.run('pool', 'learn', '--startd', startd, '--out', out)).to.include('small.ad');
    // From now on there are no machines but thresher's.
    await pool.scale('htcondor-worker', 0);
    await until('the fixed worker is gone', async () => (await pool.slots()).length === 0);
  });

  it('C5: idle jobs get Pods, never more than maxWorkers and perCycle, and none while one waits', async () => {
    demand.writeQueues({
      POOL: {
        ...few,
        template: 'worker.yaml',
        demand: idle({ slotAd: 'small.ad', perCycle: 1, nonePending: true }),
      },
    });
    await pool.submit(job(6, 'queue 4'));
    let most = 0;
    const seen = new Map<string, Secret>();
    await untilIn(
      'all jobs have run',
      async () => {
        most = Math.max(most, (await workers()).filter(lives).length);
        for (const secret of await tokens()) seen.set(secret.metadata.name, secret);
        return (await waiting()) === 0;
      },
      120_000,
    );
    expect(most).to.equal(2);
    const made = (await demand.site.workers()).toSorted((one, other) => one.workerID - other.workerID);
    const times = made.map(({ submitTime, startTime }) => ({ submitTime, startTime }));
    for (const [index, { submitTime }] of times.slice(1).entries()) {
      // To the second, as Kubernetes has the start.
      const started = Math.floor(Date.parse(times[index]?.startTime ?? '') / 1000);
      expect(Math.floor(Date.parse(submitTime ?? '') / 1000), JSON.stringify(times)).to.be.at.least(started);
    }
    expect(seen.size, 'a token for each worker').to.equal(2);
    for (const { data, metadata } of seen.values()) {
      expect(
        metadata.ownerReferences?.map(({ name }) => made.some(({ batchID }) => batchID === name)),
      ).to.deep.equal([true]);
      const [token = ''] = Object.values(data).map((value) => Buffer.from(value, 'base64').toString());
      const { sub, iat, exp } = claimsOf(token);
      // A worker whose maxWalltime is 0 may live for long: a week, and a day.
      expect({ sub, lifetime: exp - iat }).to.deep.equal({
        sub: 'worker@htcondor-pool',
        lifetime: 8 * 86_400,
      });
    }
  });

  it('C6: a worker without jobs for STARTD_NOCLAIM_SHUTDOWN completes, and the sweeper removes it with its token', async () => {
    await untilIn('all workers are gone', async () => {
      const ended = (await demand.site.workers()).every(({ status }) => status === 'finished');
      return ended && (await workers()).length === 0 && (await tokens()).length === 0;
    });
    expect(await pool.slots()).to.deep.equal([]);
    expect(await demand.site.workers()).to.have.lengthOf(2);
  });

  it('brings Pods for 50 jobs of three shapes, runs them, lets the Pods leave, and explains a job that fits none', async () => {
    demand.resized('small.ad', 'wide.ad', { Cpus: 2 });
    demand.resized('small.ad', 'large.ad', { Memory: 2048 });
    const size = { minRamCount: 1024 };
    const shapes = [
      { name: 'small', slotAd: 'small.ad', nCore: 1, cost: 1, most: 2, ...size },
      { name: 'wide', slotAd: 'wide.ad', nCore: 2, cost: 3, most: 1, ...size },
      { name: 'large', slotAd: 'large.ad', nCore: 1, cost: 4, most: 1, minRamCount: 2048 },
    ];
    demand.writeQueues({
      WALK: { template: 'worker.yaml', maxWorkers: 4, nQueueLimitWorker: 4, demand: idle({ shapes }) },
    });
    // The queue of before would take some of the jobs.
    await untilIn('the daemon has read the file', async () => (await demand.site.queue('WALK')).state !== '');
    await pool.submit(job(0, 'queue 30'));
    await pool.submit(job(0, 'request_cpus = 2', 'queue 15'));
    await pool.submit(job(0, 'request_memory = 1500', 'queue 5'));
    const impossible = await pool.submit(job(0, 'request_gpus = 2', 'queue'), 'bob');
    const used = new Set<string>();
    await untilIn(
      'all but one have run',
      async () => {
        const names = (await pool.status('-af', 'ThresherShape')).split('\n').filter((name) => name !== '');
        for (const name of names) used.add(name);
        return (await waiting()) === 1;
      },
      150_000,
    );
    expect([...used].sort()).to.deep.equal(['large', 'small', 'wide']);
    const explained = await demand.run('pool', 'unservable');
    expect(explained).to.match(/bob +1 .*RequestGPUs >= 2/);
    await untilIn('the Pods have left', async () => (await workers()).length === 0);
    expect(await pool.queue('-af', 'ClusterId')).to.deep.equal([String(impossible)]);
  });

  /** These are waited for together, since most of it is waiting. Each job is for one queue. */
  describe('busy workers, and workers that never join', function () {
    this.timeout(500_000);
    const five = { maxWorkers: 5, nQueueLimitWorker: 5 };
    const patient = (most: number) => ({
      PATIENT: { ...few, template: 'patient.yaml', demand: idle({ slotAd: 'patient.ad', most }) },
    });
    const never = Object.fromEntries(
      ['wrong', 'nowhere', 'image'].map((kind) => [
        kind.toUpperCase(),
        { ...five, template: `${kind}.yaml`, demand: idle({ slotAd: `${kind}.ad` }) },
      ]),
    );
    let short: number;
    let long: number;
    let busy: readonly Pod[];

    const statesOf = async (cluster: number) =>
      pool.queue('-af', 'JobStatus', 'NumJobStarts', '-constraint', `ClusterId == ${cluster}`);
    const patients = async () => {
      const names = (await workersOf('PATIENT')).map(({ batchID }) => batchID ?? '');
      return (await workers()).filter(({ metadata }) => names.some((name) => metadata.name.startsWith(name)));
    };

    before(async () => {
      for (const kind of ['patient', 'wrong', 'nowhere', 'image'])
        demand.ofQueue('small.ad', `${kind}.ad`, kind.toUpperCase());
      demand.writeQueues({ ...patient(2), ...never });
      short = await pool.submit(jobOf('patient', 15));
      // It must outlive all that is done to the short one's worker, also on a busy machine.
      long = await pool.submit(jobOf('patient', 120));
      busy = await untilIn('both have a job', async () => {
        const found = (await patients()).filter(isReady);
        return found.length === 2 && found;
      });
      for (const kind of ['wrong', 'nowhere', 'image']) await pool.submit(jobOf(kind, 1, 'queue 5'));
    });

    it('lets no drain of a node take a Pod with a job, also without the daemon', async () => {
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      for (const pod of busy)
        await until('the budget knows of it', async () => (await pool.eviction(pod)) === 429, 20_000);
      daemon = demand.start();
    });

    it('lets it take one whose job is over, which `most` then drains, and no busy one', async () => {
      await untilIn('the short job is over', async () => (await statesOf(short)).length === 0);
      const unready = await until('a worker is unready again', async () =>
        (await patients()).find((pod) => !isReady(pod) && lives(pod)),
      );
      expect(await pool.eviction(unready)).to.equal(201);
      demand.writeQueues({ ...patient(1), ...never });
      await untilIn('it has left by a drain, since it has 600 s without a claim', async () => {
        const found = await workersOf('PATIENT');
        return found.some(
          ({ batchID, status }) => status === 'finished' && unready.metadata.name.startsWith(batchID ?? ' '),
        );
      });
      demand.writeQueues({ ...patient(0), ...never });
      expect(await statesOf(long), 'the long job goes on').to.have.lengthOf(1);
      await untilIn(
        'the busy one is told to leave',
        // The pool shows it only until the job is over.
        async () =>
          /a worker leaves its pool .*claims=1/.test(daemon.output()) ||
          (await pool.status('-af', 'Name', '-constraint', 'Draining =?= True')) !== '',
      );
      // It runs for 120 s, and a claim may wait for its start on a busy machine.
      await untilIn('the long job is over', async () => (await statesOf(long)).length === 0, 240_000);
      for (const cluster of [short, long]) {
        const ended = await pool.exec(
          'schedd',
          'condor_history',
          String(cluster),
          '-af',
          'JobStatus',
          'ExitCode',
          'NumJobStarts',
        );
        expect(ended.trim()).to.equal('4 0 1');
      }
      await untilIn('its worker has left', async () =>
        (await workersOf('PATIENT')).every(({ status }) => status === 'finished'),
      );
    });

    const refused = {
      'C7: a worker with a token of another key': 'WRONG',
      'a worker without a route to the central manager': 'NOWHERE',
    };
    for (const [what, name] of Object.entries(refused))
      it(`${what} ends with a failure that says why, and the guard against black holes counts it`, async () => {
        const failed = await untilIn('five have failed', async () => {
          const found = (await workersOf(name)).filter(({ status }) => status === 'failed');
          return found.length >= 5 && found;
        });
        for (const worker of failed) {
          expect(worker).to.include({ nativeExitCode: 69 });
          expect(worker.diagMessage).to.match(/did not join the pool at .* within 30 s: .*\(.*\w.*\)/);
        }
        await held(name);
      });

    it('a worker of an image without HTCondor fails, and the guard against black holes counts it', async () => {
      await untilIn(
        'five have failed',
        async () => (await workersOf('IMAGE')).filter(({ status }) => status === 'failed').length >= 5,
      );
      await held('IMAGE');
    });

    async function held(name: string): Promise<void> {
      await untilIn('the guard holds the queue back', async () =>
        (await demand.site.queue(name)).reasons.some(({ code }) => code.startsWith('black-hole')),
      );
      const named = (await pool.status('-af', 'ThresherQueue')).split('\n');
      expect(named).not.to.include(name);
    }

    after(async () => {
      await pool.exec('schedd', 'condor_rm', '-all');
    });
  });
});
