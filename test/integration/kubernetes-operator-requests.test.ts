import { expect } from 'chai';
import type { RequestView } from '../../src/daemon/requests/request-view.ts';
import { kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { type Namespace, realNode } from '../support/kubernetes.ts';
import { operatorOutput, operatorSecret, operatorStatus, submitScript } from '../support/operator-script.ts';
import { runProgram, type Site } from '../support/site.ts';
import { until } from '../support/until.ts';

describe('a request of an operator on Kubernetes', function () {
  this.timeout(300_000);
  let space: Namespace;
  let site: Site;

  before(async () => {
    const plane = await realNode();
    space = await plane.namespace('operator');
    const submitter = { cpuAdjustRatio: 1, memoryAdjustRatio: 1 };
    // A queue whose own configuration asks for nothing.
    const queue = { demand: 'none', queueStatus: 'online' };
    site = kubernetesSite(plane, { queues: { Q: kubernetesQueue(space, { submitter, queue }) } });
  });

  after(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  it('runs its script with arguments, variables and secret file as they were given, shows its log and returns its exit status', async () => {
    site.start();
    await until('the queue runs', async () => (await site.queue('Q')).reasons[0]?.code === 'demand-none');
    const result = await runProgram('--config', site.config, ...submitScript(site, '--follow'));
    expect(result.stdout, result.stderr).to.equal(operatorOutput);
    expect(result.status).to.equal(operatorStatus);
    expect(result.stderr).to.match(/^worker \d+: failed, exit status 7 /m);
    const id = /request (\w+):/.exec(result.stderr)?.[1] ?? '';
    const { stdout } = await site.run('requests', id, '--output', 'json');
    expect((JSON.parse(stdout) as RequestView[])[0]).to.deep.include({ count: 1, workers: { failed: 1 } });
    // Only the Secret has what is secret.
    const [pods, jobs] = [space.core('pods'), space.jobs()];
    const shown = JSON.stringify([await space.client.list(pods), await space.client.list(jobs)]);
    expect(shown).not.to.include(Buffer.from(operatorSecret).toString('base64').slice(0, -4));
    expect(shown).not.to.include(operatorSecret);
  });

  it('ends with 0 where the worker finishes, and its log is there afterwards', async () => {
    const ran = await runProgram(
      ...['--config', site.config, 'submit', 'Q', '--wait', '--', 'sh', '-c', 'echo "$0"', '$(HOME) "x"'],
    );
    expect(ran.status, ran.stderr).to.equal(0);
    const worker = /^worker (\d+): finished/m.exec(ran.stderr)?.[1] ?? '';
    expect(await site.run('logs', worker)).to.deep.include({ status: 0, stdout: '$(HOME) "x"\n' });
  });
});
