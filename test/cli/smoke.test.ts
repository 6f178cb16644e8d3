import { expect } from 'chai';
import { subcommands } from '../../src/cli/commands.ts';
import type { WorkerView } from '../../src/daemon/view.ts';
import { runProgram, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

interface Smoke {
  readonly args: (worker: string, request: string) => readonly string[];
  readonly says: RegExp;
}

/** Each subcommand once, in the order in which one site can bear them. Other tests run them in their own process. */
const smokes: readonly (readonly [name: string, smoke: Smoke])[] = [
  ['status', { args: () => [], says: /^daemon running[^]*\nQ +running[^]*\nno troubles\n$/ }],
  ['submit', { args: () => ['Q', '--', 'true'], says: /^request \w+: 1 worker of Q\n$/ }],
  ['requests', { args: () => [], says: /^REQUEST [^]* Q +waiting +1 / }],
  ['withdraw', { args: (_, id) => [id], says: /^request \w+ is withdrawn: it has no living workers\n$/ }],
  ['queues', { args: () => [], says: /^QUEUE [^]*\nQ +running/ }],
  ['workers', { args: () => ['--queue', 'Q'], says: /^WORKERID [^]* running / }],
  ['worker', { args: (id) => [id], says: /^status +running$/m }],
  ['logs', { args: (id) => [id], says: /^out\n$/ }],
  ['pause', { args: () => ['Q', '--reason', 'smoke'], says: /^Q is paused\n$/ }],
  ['resume', { args: () => ['Q'], says: /^Q is resumed\n$/ }],
  ['drain', { args: () => ['Q'], says: /^Q is draining/ }],
  ['kill', { args: (id) => [id], says: /1 worker/ }],
  ['sweep', { args: () => [], says: /workers? (was|were) swept\n$/ }],
  ['orphans', { args: () => ['--output', 'json'], says: /^\[\]\n$/ }],
  ['credentials', { args: () => ['--output', 'json'], says: /^\[\]\n$/ }],
  ['panda', { args: () => [], says: /^the settings name no PanDA server with a login/ }],
  ['cacher', { args: () => [], says: /^the settings name no file/ }],
  ['htcjob', { args: () => ['crd'], says: /^apiVersion: apiextensions.k8s.io\/v1$/m }],
  ['pool', { args: () => ['manifests'], says: /^kind: StatefulSet$/m }],
  // It runs until it is ended: htcondor-interlink-command.test.ts starts it.
  ['interlink', { args: () => ['--help'], says: /--schedd-host <host>/ }],
  ['check-config', { args: () => [], says: /^Q +ready/m }],
  ['explain', { args: () => ['Q'], says: /maxWorkers/ }],
  ['render', { args: () => ['Q'], says: /echo out/ }],
  ['db', { args: () => ['check'], says: /\S/ }],
  ['completion', { args: () => ['bash'], says: /complete .*thresher/ }],
  ['__complete', { args: () => ['queues'], says: /^Q$/m }],
  ['man', { args: () => [], says: /\.TH / }],
  ['version', { args: () => [], says: /^thresher \d+\.\d+\.\d+ \(Node 24\.\d+\.\d+\)\n$/ }],
];

describe('the program, in a process of its own', () => {
  let site: Site;
  let worker = '';
  let request = '';

  before(async () => {
    site = new Site({
      pilot: 'echo out; exec sleep 1000',
      queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } },
    });
    // This is the smoke test of `run`.
    site.start();
    const running = await until('its worker runs', async () => {
      const [found] = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return found;
    });
    worker = String(running.workerID);
    await until('its pilot has written', async () => (await site.run('logs', worker)).stdout === 'out\n');
  });

  after(async () => {
    await site.clean();
  });

  for (const [name, { args, says }] of smokes) {
    it(`runs ${name}`, async () => {
      const typed = ['--config', site.config, name, ...args(worker, request)];
      const { status, stdout, stderr } = await runProgram(...typed);
      request = /^request (\w+):/.exec(stdout)?.[1] ?? request;
      expect(stdout, stderr).to.match(says);
      expect(status).to.equal(0);
    });
  }

  it('has each of its subcommands tried here', () => {
    expect(['run', ...smokes.map(([name]) => name)]).to.have.members(subcommands.map(({ name }) => name));
  });
});
