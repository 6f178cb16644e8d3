import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const limit = { maxWorkers: 1, nQueueLimitWorker: 1 };
const own = (templateFile: string) => ({
  ...limit,
  submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile },
});

describe('a pipe in the place of the template of one queue', () => {
  let site: Site;

  beforeEach(() => {
    site = new Site({ queues: { GOOD: limit, BAD: own('bad.yaml') } });
    writeFileSync(site.path('bad.yaml'), 'command: /bin/sleep\nargs: ["1000"]\ncpu: 0\n');
  });
  afterEach(() => site.clean());

  const pipe = () => {
    execFileSync('mkfifo', [site.path('pipe')]);
    renameSync(site.path('pipe'), site.path('bad.yaml'));
  };
  const alive = async (queue: string) => {
    const workers = await site.workers({ queue });
    return workers.filter(({ status }) => status === 'running' || status === 'submitted');
  };
  /** Ends the worker of a queue and waits for the next one. */
  const replaced = async (queue: string) => {
    const [before] = await alive(queue);
    await site.run('kill', String(before?.workerID));
    await until(`${queue} has a new worker`, async () => {
      const now = await alive(queue);
      return now.some(({ workerID }) => workerID !== before?.workerID);
    });
  };

  it('stops that queue with its reason while the others go on, and the daemon ends on SIGTERM', async () => {
    const daemon = site.start();
    await until('both queues have a worker', async () => {
      return (await alive('GOOD')).length === 1 && (await alive('BAD')).length === 1;
    });
    pipe();
    await site.run('kill', String((await alive('BAD'))[0]?.workerID));
    await until('the reason is shown', async () => {
      const { reasons } = await site.queue('BAD');
      return reasons.some(({ message }) => message.includes('bad.yaml:0: it is a pipe, not a regular file'));
    });
    await replaced('GOOD');
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended).to.equal(0);
    expect(daemon.output()).to.contain('stopped');
  });

  it('does not keep the daemon from starting and reloading, and counts as a template as soon as it is one', async () => {
    pipe();
    const daemon = site.start();
    await until('the other queue has a worker', async () => (await alive('GOOD')).length === 1);
    await until('the queue says why', async () => {
      const [first, ...more] = (await site.queue('BAD')).reasons.map(({ code }) => code);
      return first === 'queue-incomplete' && more.length === 0;
    });
    rmSync(site.path('bad.yaml'));
    writeFileSync(site.path('bad.yaml'), 'command: /bin/sleep\nargs: ["1000"]\ncpu: 0\n');
    daemon.process.kill('SIGHUP');
    await until('the queue has a worker', async () => (await alive('BAD')).length === 1);
    await replaced('GOOD');
  });
});
