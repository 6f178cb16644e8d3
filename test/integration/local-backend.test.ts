import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import { parseStat } from '../../src/plugins/local/processes.ts';
import type { WorkerStatus } from '../../src/worker/status.ts';
import { Site, type SiteOptions } from '../support/site.ts';
import { removeDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const one = { maxWorkers: 1, nQueueLimitWorker: 1 };
/** A queue whose pilots have their time to end on TERM, also on a busy machine. */
const patient = {
  ...one,
  monitor: { name: 'LocalMonitor', module: 'thresher/local', pollInterval: 0.1, killGrace: 60 },
  sweeper: { name: 'LocalSweeper', module: 'thresher/local', killGrace: 60 },
};
/** Shell words by which a pilot says that it is past all that stands before them: its row says earlier that it runs. */
const begins = ': >"$SITE_DIR/begun"';

describe('local backend', () => {
  let site: Site;

  function makeSite(options: Partial<SiteOptions>): Site {
    site = new Site({ queues: { Q: one }, ...options });
    return site;
  }

  afterEach(async () => {
    await site.clean();
  });

  const workersIn = (status: WorkerStatus) =>
    until(`a worker is ${status}`, async () => {
      const found = await site.workers({ status }).catch((): WorkerView[] => []);
      return found.length > 0 && found;
    });
  const untilBegun = () => until('the pilot has begun', () => existsSync(site.path('begun')));
  const shimClaim = (id: number) =>
    JSON.parse(readFileSync(join(site.stateDir, 'local', String(id), 'claim.1'), 'utf8')) as Record<
      string,
      unknown
    >;

  it('gives pilots the environment that Harvester gives them, and nothing of the daemon', async () => {
    makeSite({ pilot: 'env -0' });
    site.start([], { SECRET_OF_THE_DAEMON: 'x' });
    const [worker] = await workersIn('finished');
    const { stdout } = await site.run('logs', String(worker?.workerID));
    const env = Object.fromEntries(
      stdout.split('\0').map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    const id = String(worker?.workerID);
    expect(env).to.include({
      HARVESTER_ID: 'test-harvester',
      HARVESTER_WORKER_ID: id,
      PANDA_JSID: 'harvester-test-harvester',
      computingSite: 'Q',
      pandaQueueName: 'Q',
      resourceType: 'SCORE',
      workerID: id,
      prodSourceLabel: 'unified',
      jobType: 'unified',
      pilotType: 'PR',
      submit_mode: 'PULL',
      nCore: '1',
    });
    expect(env).not.to.have.property('SECRET_OF_THE_DAEMON');
    expect(worker?.nodeID).to.equal(env.PANDA_HOSTNAME);
  });

  for (const [what, pilot] of [
    ['a pipe', 'rm stdout; mkfifo stdout; echo ready >&2; exec sleep 1000'],
    ['a link', 'rm stdout; ln -s /etc/passwd stdout; echo ready >&2; exec sleep 1000'],
    ['a device', 'rm stdout; ln -s /dev/zero stdout; echo ready >&2; exec sleep 1000'],
  ] as const) {
    it(`reads no log where a pilot put ${what} in its place, and waits for nothing`, async () => {
      makeSite({ pilot: `cd "$THRESHER_WORKER_DIR"; ${pilot}` });
      site.start();
      const [worker] = await workersIn('running');
      const id = String(worker?.workerID);
      await until(
        'the pilot did it',
        async () => (await site.run('logs', id, '--stderr')).stdout === 'ready\n',
      );
      const { status, stdout, stderr } = await site.run('logs', id);
      expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' });
      expect(stderr).to.match(/ \[no-log\]\n$/);
    });
  }

  it('keeps the exit status of a worker that ended while no daemon ran, and goes on with one that did not', async () => {
    makeSite({
      pilot: 'exec sleep 1000',
      queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 } },
    });
    const first = site.start();
    const [a, b] = await until('two run', async () => {
      const running = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return running.length === 2 && running;
    });
    first.process.kill('SIGTERM');
    expect(await first.ended).to.equal(0);
    expect(site.liveShims().size, 'workers survive their daemon').to.equal(2);
    // The command of one ends now, by a signal of somebody else's; its shim writes that down.
    process.kill(await until('the command runs', () => commandOf(Number(a?.batchID), 'sleep')), 'SIGINT');
    await until('one process is left', () => site.liveShims().size === 1);
    site.writeQueues({ Q: { ...one, queueStatus: 'offline' } });
    site.start();
    const ended = await until('its end is known', async () =>
      (await site.workers()).find(({ workerID, status }) => workerID === a?.workerID && status === 'failed'),
    );
    expect(ended).to.include({ nativeExitCode: 130, errorCode: 'exit-status' });
    expect((await site.workers({ status: 'running' })).map(({ workerID }) => workerID)).to.deep.equal([
      b?.workerID,
    ]);
  });

  it('kills by TERM, grace and KILL to the whole group', async () => {
    makeSite({ pilot: `trap "" TERM; ${begins}; (trap "" TERM; sleep 1000) & sleep 1000` });
    site.start();
    const [worker] = await workersIn('running');
    await untilBegun();
    await site.run('pause', 'Q', '--reason', 'test');
    const killed = await site.run('kill', String(worker?.workerID));
    expect(killed.stdout).to.equal('1 of 1 workers are being ended\n');
    const [cancelled] = await workersIn('cancelled');
    expect(cancelled).to.include({ workerID: worker?.workerID, errorCode: 'killed', nativeExitCode: 137 });
    expect(site.liveProcesses()).to.equal(0);
  });

  it('kills also what cleaned its environment or left its process group', async () => {
    makeSite({ pilot: 'setsid sleep 98761 & exec env -i /bin/sleep 98762' });
    site.start();
    await workersIn('running');
    const sleeping = () => countCommands(/sleep\0?9876[12]\0$/);
    await until('both sleep', () => sleeping() === 2);
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', '--queue', 'Q');
    await workersIn('cancelled');
    expect(sleeping()).to.equal(0);
  });

  it('survives what a power cut leaves: empty claims and exit files', async () => {
    makeSite({ queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 } } });
    const daemon = site.start();
    const [a, b] = await until('two run', async () => {
      const running = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return running.length === 2 && running;
    });
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    site.killEverything();
    const file = (worker: WorkerView | undefined, name: string) =>
      join(site.stateDir, 'local', String(worker?.workerID), name);
    writeFileSync(file(a, 'claim.1'), '');
    writeFileSync(file(b, 'exit'), '');
    writeFileSync(join(site.stateDir, 'local', '77'), 'no directory');
    site.writeQueues({ Q: { ...one, queueStatus: 'offline' } });
    site.start();
    const failed = await until('both are known to have ended', async () => {
      const found = await site.workers({ status: 'failed' });
      return found.length === 2 && found;
    });
    expect(failed.map(({ errorCode }) => errorCode)).to.deep.equal(['exit-status-lost', 'exit-status-lost']);
  });

  it('lets a worker end by itself on TERM', async () => {
    makeSite({
      pilot: `trap "echo tidied up; exit 9" TERM; ${begins}; while :; do sleep 0.05; done`,
      queues: { Q: patient },
    });
    site.start();
    const [worker] = await workersIn('running');
    await untilBegun();
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', '--queue', 'Q', '--status', 'running');
    const [cancelled] = await workersIn('cancelled');
    expect(cancelled).to.include({ workerID: worker?.workerID, nativeExitCode: 9 });
    expect((await site.run('logs', String(worker?.workerID))).stdout).to.equal('tidied up\n');
  });

  it('ends a worker over its maxWalltime', async () => {
    makeSite({
      queues: {
        Q: {
          ...patient,
          submitter: {
            name: 'LocalSubmitter',
            module: 'thresher/local',
            templateFile: 'pilot.yaml',
            maxWalltime: 1,
          },
        },
      },
    });
    site.start();
    const [failed] = await workersIn('failed');
    expect(failed).to.include({ errorCode: 'walltime', nativeExitCode: 143 });
    expect(Date.parse(failed?.endTime ?? '') - Date.parse(failed?.startTime ?? '')).to.be.greaterThan(1000);
  });

  it('never takes a reused pid for the worker', async () => {
    makeSite({});
    const daemon = site.start();
    const [worker] = await workersIn('running');
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    site.killEverything();
    // The pid in the claim is now this very test's: alive, but started at another time.
    const path = join(site.stateDir, 'local', String(worker?.workerID), 'claim.1');
    const claim = shimClaim(worker?.workerID ?? 0);
    writeFileSync(path, JSON.stringify({ ...claim, pid: process.pid }));
    site.writeQueues({ Q: { ...one, queueStatus: 'offline' } });
    site.start();
    const [failed] = await workersIn('failed');
    expect(failed).to.include({ workerID: worker?.workerID, errorCode: 'exit-status-lost' });
    // A kill of it would have ended this test.
    expect((await site.run('kill', String(worker?.workerID))).stdout).to.equal(
      '0 of 1 workers are being ended\n',
    );
  });

  it('takes nothing of an earlier boot for alive', async () => {
    makeSite({});
    const daemon = site.start();
    const [worker] = await workersIn('running');
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    // After a restart of the machine the numbers of the claim belong to this test, by chance to the tick.
    site.killEverything();
    const path = join(site.stateDir, 'local', String(worker?.workerID), 'claim.1');
    const { startTicks } = parseStat(readFileSync('/proc/self/stat', 'utf8'));
    const claim = {
      ...shimClaim(worker?.workerID ?? 0),
      pid: process.pid,
      startTicks,
      bootId: 'another-boot',
    };
    writeFileSync(path, JSON.stringify(claim));
    site.writeQueues({ Q: { ...one, queueStatus: 'offline' } });
    site.start();
    expect((await workersIn('failed'))[0]).to.include({ errorCode: 'exit-status-lost' });
  });

  it('goes on with a command whose shim was killed, and says that its exit status is lost', async () => {
    makeSite({ pilot: `${begins}; while [ ! -e $SITE_DIR/end ]; do sleep 0.05; done` });
    site.start();
    const [worker] = await workersIn('running');
    await untilBegun();
    await site.run('pause', 'Q', '--reason', 'test');
    process.kill(Number(worker?.batchID), 'SIGKILL');
    await until('the shim is gone', () => site.liveShims().size === 0);
    expect((await site.workers())[0]?.status).to.equal('running');
    writeFileSync(site.path('end'), '');
    expect((await workersIn('failed'))[0]).to.include({ errorCode: 'exit-status-lost' });
  });

  it('replaces no worker whose directory was removed under it, also after a restart without the database', async () => {
    const full = { maxWorkers: 2, nQueueLimitWorker: 2 };
    makeSite({ queues: { Q: full }, settings: { monitor: { missingGrace: 0.2 } } });
    const first = site.start();
    const running = () =>
      until('two run', async () => {
        const found = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
        return found.length === 2 && found.map(({ workerID }) => workerID).sort();
      });
    const ids = await running();
    for (const id of ids) removeDirectory(join(site.stateDir, 'local', String(id)));
    first.process.kill('SIGKILL');
    await first.ended;
    site.removeDatabase();
    site.start();
    expect(await running()).to.deep.equal(ids);
    await until('both count', async () => (await site.queue('Q')).reasons[0]?.code === 'max-workers');
    expect([...site.liveShims().keys()].sort()).to.deep.equal(ids);
    await site.run('pause', 'Q', '--reason', 'test');
    await site.run('kill', '--queue', 'Q');
    await until('both are dead', () => site.liveProcesses() === 0);
  });

  it('shares maxSlots between queues, and says who is too many', async () => {
    const submitter = {
      name: 'LocalSubmitter',
      module: 'thresher/local',
      templateFile: 'slots.yaml',
      maxSlots: 3,
    };
    makeSite({
      queues: {
        A: { maxWorkers: 5, nQueueLimitWorker: 5, submitter },
        B: { maxWorkers: 5, nQueueLimitWorker: 5, submitter: { ...submitter, nCore: 2 } },
      },
    });
    writeFileSync(site.path('slots.yaml'), 'command: sleep\nargs: ["1000"]\n');
    site.start();
    const messages = await until(
      'both queues are out of room, and none of their workers is on its way',
      async () => {
        const queues = await site.queues().catch(() => []);
        const reasons = queues.map((queue) => queue.reasons[0]);
        const workers = await site.workers();
        const settled = workers.length > 0 && workers.every(({ status }) => status === 'running');
        const full = reasons.length === 2 && reasons.every((reason) => reason?.code === 'backend-room');
        return full && settled && reasons.map((reason) => reason?.message);
      },
    );
    const alive = await site.workers();
    const cores = alive.reduce((sum, { queueName }) => sum + (queueName === 'A' ? 1 : 2), 0);
    expect(cores).to.be.within(2, 3);
    expect(messages[0]).to.match(/of maxSlots 3 cores are taken, a worker needs 1/);
  });

  it('stops a queue whose template was broken by an edit, and goes on when it is mended', async () => {
    makeSite({ pilot: 'sleep 0.2' });
    site.start();
    await workersIn('finished');
    const good = readFileSync(site.path('pilot.yaml'), 'utf8');
    writeFileSync(site.path('pilot.yaml'), 'command: [\n');
    const queue = await until('the reason is shown', async () => {
      const shown = await site.queue('Q');
      return shown.reasons[0]?.code === 'preflight' && shown;
    });
    expect(queue.reasons[0]?.message).to.contain('pilot.yaml').and.to.contain('not valid YAML');
    writeFileSync(site.path('pilot.yaml'), good);
    const before = (await site.workers()).length;
    await until('it goes on', async () => (await site.workers()).length > before);
  });

  it('names a command that is not there before a single worker is made of it', async () => {
    makeSite({});
    writeFileSync(site.path('pilot.yaml'), 'command: no-such-pilot\n');
    site.start();
    const queue = await until('the reason is shown', async () => {
      const shown = await site.queue('Q').catch(() => undefined);
      return shown?.reasons[0]?.code === 'preflight' && shown;
    });
    expect(queue.reasons[0]?.message).to.equal('the template\'s command "no-such-pilot" was not found');
    expect(await site.workers()).to.deep.equal([]);
  });

  for (const [how, sweeper] of [
    ['by sleepTime', { keepFinished: 0 }],
    ['by its cron expression', { keepFinished: 0, sleepTime: 100_000, cron: '* * * * * *' }],
  ] as const)
    it(`leaves nothing of a swept worker: ${how}`, async () => {
      makeSite({ pilot: 'exit 0', settings: { sweeper } });
      site.start();
      await until('one is swept', async () => {
        const [worker] = (await site.workers({ status: 'finished' }).catch((): WorkerView[] => [])).slice(-1);
        if (worker === undefined) return false;
        const { stdout } = await site.run('worker', String(worker.workerID), '--output', 'json');
        return (
          !stdout.includes('"sweptTime": null') &&
          !readdirSync(join(site.stateDir, 'local')).includes(String(worker.workerID))
        );
      });
    });
});

/** Living processes whose command line (arguments ended by NUL) matches. */
function countCommands(pattern: RegExp): number {
  return readdirSync('/proc').filter((entry) => {
    try {
      return /^\d+$/.test(entry) && pattern.test(readFileSync(`/proc/${entry}/cmdline`, 'utf8'));
    } catch {
      return false;
    }
  }).length;
}

/** The process of a group that runs this program; undefined while its shim or its shell has not begun it. */
function commandOf(group: number, name: string): number | undefined {
  const found = readdirSync('/proc').find((entry) => {
    try {
      const [, command, rest = ''] = /\((.*)\) (.*)/s.exec(readFileSync(`/proc/${entry}/stat`, 'utf8')) ?? [];
      return command === name && Number(rest.split(' ')[2]) === group;
    } catch {
      return false;
    }
  });
  return found === undefined ? undefined : Number(found);
}
