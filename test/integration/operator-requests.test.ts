import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { RequestView } from '../../src/daemon/requests/request-view.ts';
import { operatorOutput, operatorSecret, operatorStatus, submitScript } from '../support/operator-script.ts';
import { runProgram, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('requests of operators on the local backend', () => {
  let site: Site;

  const submit = (...args: string[]) => site.run('submit', 'Q', ...args);
  const idOf = (text: string) => /request (\w+):/.exec(text)?.[1] ?? '';
  const request = async (id: string): Promise<RequestView> => {
    const { stdout } = await site.run('requests', id, '--output', 'json');
    const [view] = JSON.parse(stdout) as RequestView[];
    if (view === undefined) throw new Error(`no request ${id}`);
    return view;
  };
  const running = (id: string, count: number) =>
    until(`${count} workers of ${id} run`, async () => (await request(id)).workers.running === count);

  beforeEach(() => {
    // A queue whose own configuration asks for nothing.
    site = new Site({
      queues: { Q: { maxWorkers: 3, demand: 'none' } },
      settings: { submitter: { sleepTime: 30 } },
    });
  });
  afterEach(() => site.clean());

  /** A daemon that has looked at its queue. */
  async function started() {
    const daemon = site.start();
    await until('the queue runs', async () => (await site.queue('Q')).reasons[0]?.code === 'demand-none');
    return daemon;
  }

  it('a script runs with its arguments, variables and secret file as they were given, and its exit status comes back', async () => {
    const daemon = await started();
    const result = await runProgram('--config', site.config, ...submitScript(site, '--follow'));
    expect(result.stdout, result.stderr).to.equal(operatorOutput);
    expect(result.status).to.equal(operatorStatus);
    expect(result.stderr).to.match(/^worker \d+: failed, exit status 7 /m);
    const id = idOf(result.stderr);
    await until('the request is served', async () => (await request(id)).servedTime !== null);
    expect(await request(id)).to.deep.include({ state: 'ended', payload: ['files', 'argv', 'env'] });
    // The log of the database is written back at the end.
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    const secret = Buffer.from(operatorSecret).toString('base64').slice(0, -4);
    expect(bytesOfState(site)).to.not.contain(secret);
  });

  it('several workers of one request end with the worst of their statuses', async () => {
    await started();
    // The first of them fails.
    const once = `mkdir ${site.path('first')} 2>/dev/null && exit 3; exit 0`;
    const { status, stderr } = await submit('--count', '3', '--wait', '--', 'sh', '-c', once);
    expect(status, stderr).to.equal(3);
    expect(stderr.match(/^worker \d+: finished/gm)).to.have.length(2);
  });

  it('wait for a daemon that is down, which takes them up once', async () => {
    const first = await started();
    first.process.kill('SIGTERM');
    await first.ended;
    const { stdout } = await submit('--count', '2', '--', 'sleep', '1000');
    expect(stdout).to.contain('no daemon is running: it is taken up when one starts');
    const id = idOf(stdout);
    const second = site.start();
    await running(id, 2);
    second.process.kill('SIGKILL');
    await second.ended;
    site.start();
    await until('the daemon counts its workers', async () => (await site.queue('Q')).state === 'running');
    const other = idOf((await submit('--', 'sleep', '1000')).stdout);
    await running(other, 1);
    expect(await request(id)).to.deep.include({ count: 2, workers: { running: 2 } });
    expect(site.liveShims().size).to.equal(3);
  });

  it('are taken back: before their workers begin, and while these run', async () => {
    await started();
    const runs = idOf((await submit('--count', '3', '--', 'sleep', '1000')).stdout);
    await running(runs, 3);
    const waits = idOf((await submit('--', 'sleep', '1000')).stdout);
    await until('the request says why it waits', async () =>
      (await site.run('requests')).stdout.includes('3 of maxWorkers 3 are alive'),
    );
    await site.run('withdraw', waits);
    await site.run('withdraw', runs);
    await until('all workers ended', async () => (await request(runs)).workers.cancelled === 3);
    expect(site.liveShims().size).to.equal(0);
    const next = idOf((await submit('--', 'sleep', '1000')).stdout);
    await running(next, 1);
    expect(await request(waits)).to.deep.include({ state: 'withdrawn', workers: {} });
  });

  it("come before the queue's own demand, and end none of its workers", async () => {
    site.writeQueues({ Q: { maxWorkers: 2, nQueueLimitWorker: 2, demand: 'fill' } });
    site.start();
    const [first, second] = await until('the queue is full', async () => {
      const workers = await site.workers({ status: 'running' });
      return workers.length === 2 && workers;
    });
    const id = idOf((await submit('--count', '2', '--', 'sleep', '1000')).stdout);
    await until('it says why it waits', async () =>
      (await site.run('requests')).stdout.includes('2 of maxWorkers 2 are alive'),
    );
    expect((await request(id)).workers).to.deep.equal({});
    await site.run('kill', String(first?.workerID));
    await running(id, 1);
    await site.run('kill', String(second?.workerID));
    await running(id, 2);
    expect(await site.workers()).to.have.length(4);
  });

  it('go on after Ctrl-C of the one who waits, who is told how to take them back', async () => {
    await started();
    const waiting = site.startWith(['--config', site.config, 'submit', 'Q', '--wait', '--', 'sleep', '1000']);
    const id = await until('the request is stored', () => idOf(waiting.output()) || undefined);
    await running(id, 1);
    waiting.process.kill('SIGINT');
    expect(await waiting.ended).to.equal(130);
    expect(waiting.output()).to.contain(`request ${id} goes on; "thresher withdraw ${id}" takes it back`);
    expect((await request(id)).workers).to.deep.equal({ running: 1 });
  });
});

/** Everything in the files of the database. */
function bytesOfState(site: Site): string {
  return readdirSync(site.stateDir)
    .map((name) => join(site.stateDir, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('');
}
