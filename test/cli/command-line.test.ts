import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { withStore } from '../../src/cli/opened.ts';
import type { QueueView, WorkerView } from '../../src/daemon/view.ts';
import { runHere } from '../support/command-line.ts';
import { program } from '../support/program.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('command line, on a running daemon', () => {
  let site: Site;
  let running: WorkerView[];

  before(async () => {
    site = new Site({
      pilot: 'echo out; echo err >&2; exec sleep 1000',
      queues: { Q: { maxWorkers: 2, nQueueLimitWorker: 2 }, OFF: { maxWorkers: 5, queueStatus: 'offline' } },
    });
    site.start();
    running = await until('two workers run', async () => {
      const found = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return found.length === 2 && found;
    });
    // A worker counts as running before its pilot writes anything, and before the next pass of its queue.
    for (const { workerID } of running)
      await until(
        'its pilot has written',
        async () => (await site.run('logs', String(workerID), '--stderr')).stdout === 'err\n',
      );
    await until(
      'the queue has counted them',
      async () => (await site.queue('Q')).reasons[0]?.code === 'max-workers',
    );
  });

  after(async () => {
    await site.clean();
  });

  it('queues: counts, limits, and why no more, as a table and as JSON with the documented fields', async () => {
    const queues = JSON.parse((await site.run('queues', '--output', 'json')).stdout) as QueueView[];
    expect(queues.find(({ name }) => name === 'Q')).to.deep.equal({
      name: 'Q',
      queueStatus: 'online',
      state: 'running',
      counts: { running: 2 },
      limits: { maxWorkers: 2, nQueueLimitWorker: 2, maxNewWorkersPerCycle: 0 },
      reasons: [{ code: 'max-workers', message: '2 of maxWorkers 2 are alive' }],
    });
    expect(queues.find(({ name }) => name === 'OFF')).to.deep.include({ state: 'offline' });
    const table = (await site.run('queues')).stdout.split('\n');
    expect(table[0]).to.match(
      /^QUEUE +STATE +QUEUED +RUNNING +FINISHED +FAILED +OTHER +LIMITS +WHY NO MORE$/,
    );
    expect(table[2]).to.match(/^Q +running +0 +2 +0 +0 +0 +queued<=2 alive<=2 +2 of maxWorkers 2 are alive$/);
  });

  it('workers: newest first, with the documented fields, filtered', async () => {
    const { stdout } = await site.run('workers', '--output', 'json');
    const workers = JSON.parse(stdout) as Record<string, unknown>[];
    expect(Object.keys(workers[0] ?? {})).to.deep.equal([
      ...[
        'workerID',
        'batchID',
        'queueName',
        'computingSite',
        'status',
        'nativeStatus',
        'nativeExitCode',
        'errorCode',
      ],
      ...['diagMessage', 'submitTime', 'startTime', 'endTime', 'nodeID', 'computingElement'],
      ...['nCore', 'resourceType'],
    ]);
    expect(workers[0]?.startTime).to.match(iso);
    expect(Number(workers[0]?.workerID)).to.be.greaterThan(Number(workers[1]?.workerID));
    const json = async (...args: string[]) =>
      JSON.parse((await site.run(...args, '--output', 'json')).stdout) as unknown;
    expect(await json('workers', '--status', 'finished,failed')).to.deep.equal([]);
    expect(await json('workers', '--status', 'finished,running')).to.have.length(2);
    expect(await json('workers', '--queue', 'OFF')).to.deep.equal([]);
    expect(await json('workers', '--queue', 'Q', '--status', 'failed')).to.deep.equal([]);
    expect(await site.run('workers', '--queue', 'NOPE')).to.include({
      status: 1,
      stdout: '',
      stderr: 'thresher: there is no queue NOPE; there are OFF, Q [no-such-queue]\n',
    });
    expect(JSON.parse((await site.run('workers', '--limit', '1', '--output', 'json')).stdout)).to.have.length(
      1,
    );
  });

  it('worker: all facts and the history of transitions', async () => {
    const id = String(running[0]?.workerID);
    const [worker] = JSON.parse((await site.run('worker', id, '--output', 'json')).stdout) as {
      history: { from: string | null; to: string; source: string; time: string }[];
      placement: string;
    }[];
    expect(worker?.history.map(({ from, to, source }) => [from, to, source])).to.deep.equal([
      [null, 'pending', 'submitter'],
      ['pending', 'submitted', 'submitter'],
      ['submitted', 'running', 'monitor'],
    ]);
    expect(worker?.history[0]?.time).to.match(iso);
    expect(worker?.placement).to.equal(`local:${join(site.stateDir, 'local')}`);
    const table = (await site.run('worker', id)).stdout;
    expect(table)
      .to.match(/^status +running$/m)
      .and.to.match(/pending +submitted +submitter/);
  });

  it('logs: standard output, standard error, the tail, and none', async () => {
    const id = String(running[0]?.workerID);
    const listeners = process.listenerCount('SIGINT');
    expect((await site.run('logs', id)).stdout).to.equal('out\n');
    expect((await site.run('logs', id, '--stderr')).stdout).to.equal('err\n');
    const none = await site.run('logs', '1');
    expect(none).to.include({
      status: 1,
      stdout: '',
      stderr: 'thresher: there is no worker 1 [no-such-worker]\n',
    });
    expect(process.listenerCount('SIGINT'), 'what listened for the end of --follow').to.equal(listeners);
  });

  it('pause and resume: taken up by themselves, with the reason shown', async () => {
    const paused = await site.run('pause', 'Q', '--reason', 'cooling broken');
    expect(paused).to.include({ status: 0, stdout: 'Q is paused\n' });
    const queue = await until('the pause is shown', async () => {
      const shown = await site.queue('Q');
      return shown.state === 'paused' && shown.reasons.some(({ code }) => code === 'paused') && shown;
    });
    expect(queue.reasons[0]?.message).to.match(/^paused since .*Z: cooling broken$/);
    expect((await site.run('resume', 'Q')).stdout).to.equal('Q is resumed\n');
    await until('it is running again', async () => (await site.queue('Q')).state === 'running');
  });

  it('drain: what runs may end, nothing new comes', async () => {
    expect((await site.run('drain', 'Q')).stdout).to.match(
      /^Q is draining; 0 queued workers are cancelled\n$/,
    );
    await until('it is shown', async () => (await site.queue('Q')).state === 'draining');
    await site.run('kill', '--queue', 'Q');
    await until('it is drained', async () => (await site.queue('Q')).state === 'drained');
    await site.run('resume', 'Q');
    await until('it fills up again', async () => (await site.queue('Q')).counts.running === 2);
  });

  it('sweep and orphans answer', async () => {
    expect((await site.run('sweep')).stdout).to.equal('0 workers were swept\n');
    expect(JSON.parse((await site.run('orphans', '--output', 'json')).stdout)).to.deep.equal([]);
  });

  it('survives a reader that closes early', async () => {
    const shell = spawn('sh', ['-c', `"${program()}" --config "${site.config}" workers | head -1`]);
    let stdout = '';
    shell.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()));
    const status = await new Promise((done) => shell.once('close', done));
    expect(status).to.equal(0);
    expect(stdout).to.match(/^WORKERID/);
  });
});

describe('command line, while no daemon runs', () => {
  it('reads everything, says that it is down, and keeps commands for the next start', async () => {
    const site = new Site({
      pilot: 'echo done',
      queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 }, BAD: { maxWorkers: 'x' } },
    });
    try {
      const daemon = site.start();
      const [worker] = await until('a worker has finished', async () => {
        const finished = await site.workers({ status: 'finished' }).catch((): WorkerView[] => []);
        return finished.length > 0 && finished;
      });
      daemon.process.kill('SIGTERM');
      expect(await daemon.ended, daemon.output()).to.equal(0);
      expect(worker).to.include({ nativeExitCode: 0 });
      expect((await site.run('logs', String(worker?.workerID))).stdout).to.equal('done\n');
      const queue = await site.queue('Q');
      expect(queue.state).to.equal('stopped');
      expect(queue.reasons[0]?.code).to.equal('daemon-not-running');
      expect((await site.run('queues')).stdout).to.match(
        /^BAD +refused .* no daemon runs on this state directory; when one last did: \S+json:\d+ \/BAD\/maxWorkers: maxWorkers is "x"/m,
      );

      await withStore({ config: site.config }, 'write', async ({ store }) => {
        const place = { connection: 'elsewhere', place: 'job-7', workerId: 7, queue: 'Q', seenTime: 1000 };
        const why = 'refused: password=hunter7-0123456789';
        await store.orphans.replace('elsewhere', [{ ...place, why }]);
      });
      for (const args of [[], ['--output', 'json']]) {
        const { status, stdout } = await site.run('orphans', ...args);
        expect(status).to.equal(0);
        expect(stdout)
          .to.match(/job-7.*refused: /s)
          .and.not.contain('hunter7');
      }

      const paused = await site.run('pause', 'Q', '--reason', 'maintenance');
      expect(paused).to.include({
        status: 0,
        stdout: 'no daemon is running: this will be done when it starts\n',
      });
      // Commands keep their order: the last word is a pause.
      await site.run('resume', 'Q');
      await site.run('pause', 'Q', '--reason', 'maintenance');
      const before = (await site.workers()).length;
      const again = site.start(['--for', '2s']);
      expect(await again.ended).to.equal(0);
      expect(await site.workers(), 'nothing was submitted before the pause was taken up').to.have.length(
        before,
      );
      // A pause outlives daemons, also one that could not read the queue file.
      const sound = readFileSync(site.queueFile, 'utf8');
      writeFileSync(site.queueFile, '{ "Q": ');
      expect(await site.start(['--for', '1s']).ended).to.equal(0);
      const refused = await site.queue('Q');
      expect(refused.state).to.equal('refused');
      expect(refused.reasons[1]?.message).to.match(/panda_queueconfig\.json:1( \/\S+)?: not valid JSON/);
      writeFileSync(site.queueFile, sound);
      const third = site.start(['--for', '1s']);
      expect(await third.ended).to.equal(0);
      expect((await site.workers()).length).to.equal(before);
      expect((await site.queue('Q')).reasons.map(({ code }) => code)).to.include('paused');
    } finally {
      await site.clean();
    }
  });
});

describe('command line, used wrongly', () => {
  const site = new Site({ queues: { Q: {} } });
  const wrong: [what: string, args: string[], says: RegExp][] = [
    ['an unknown subcommand', ['quueues'], /unknown command 'quueues' \(Did you mean queues\?\)/],
    ['an unknown option', ['queues', '--quiet'], /unknown option '--quiet'/],
    ['no worker id', ['worker'], /missing required argument 'id'/],
    ['a worker id that is none', ['worker', 'abc'], /'abc' is invalid.*A worker id is a whole number/],
    ['a negative worker id', ['logs', '0'], /'0' is invalid/],
    [
      'a status that is none',
      ['workers', '--status', 'done'],
      /'done' is invalid.*one or more of pending,submitted/,
    ],
    ['a limit that is none', ['workers', '--limit', '-1'], /'-1' is invalid.*whole number from 1/],
    ['an output that is none', ['queues', '--output', 'xml'], /'xml' is invalid.*table, json/],
    ['a pause without a reason', ['pause', 'Q'], /required option '--reason <text>' not specified/],
    ['kill of nothing', ['kill'], /kill takes worker ids, or --queue/],
    ['kill of both', ['kill', '5', '--queue', 'Q'], /kill takes worker ids, or --queue/],
    ['kill by status without a queue', ['kill', '5', '--status', 'running'], /--status goes with --queue/],
    ['a duration that is none', ['run', '--for', 'ever'], /'ever' is invalid.*20s, 5m or 1h30m/],
    ['too many arguments', ['queues', 'Q'], /too many arguments/],
  ];
  for (const [what, args, says] of wrong) {
    it(`${what}: one clear line and exit status 2`, async () => {
      const { status, stdout, stderr } = await site.run(...args);
      expect(stderr)
        .to.match(/^thresher: [^\n]+\n$/)
        .and.to.match(says);
      expect({ status, stdout }).to.deep.equal({ status: 2, stdout: '' });
    });
  }

  it('a state directory on which no daemon ever ran', async () => {
    const { status, stderr } = await site.run('queues');
    expect(status).to.equal(1);
    expect(stderr).to.match(/^thresher: no daemon ever ran on the state directory .* \[store-missing\]\n$/);
  });

  it('a settings file that is not there', async () => {
    const missing = join(temporaryDirectory(), 'none.yaml');
    const { status, stderr } = await runHere('--config', missing, 'queues');
    expect(status).to.equal(1);
    expect(stderr).to.match(
      /^thresher: \S*none\.yaml: error: cannot read the file: [^\n]* \[file-unreadable\]\n$/,
    );
  });

  it('an output before a command that prints nothing of the kind', async () => {
    const { status, stderr } = await site.run('--output', 'json', 'pause', 'Q', '--reason', 'x');
    expect({ status, stderr }).to.deep.equal({
      status: 2,
      stderr: 'thresher: pause has no option --output [usage]\n',
    });
  });

  it('C5: --version shows the same, before any command', async () => {
    const shown = await runHere('version');
    for (const words of [['--version'], ['--version', 'queues'], ['--config', '/none', '--version']])
      expect(await runHere(...words)).to.deep.equal(shown);
  });

  it('version works without any configuration', async () => {
    const { status, stdout } = await runHere('version');
    expect(status).to.equal(0);
    expect(stdout).to.match(/^thresher \d+\.\d+\.\d+ \(Node 24\.\d+\.\d+\)\n$/);
  });
});
