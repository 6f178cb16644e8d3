import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { readQueueFile } from '../../../src/config/queues/queues.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { LocalSubmitter } from '../../../src/plugins/local/submitter.ts';
import { LocalHost } from '../../../src/plugins/local/host.ts';
import { readMounts } from '../../../src/util/mounts.ts';
import { OperatorFiles } from '../../../src/util/operator-files.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** A directory stands for a network file system whose server is gone: no call about it ever comes back. */
class DeadMount extends OperatorFiles {
  readonly #mount: string;

  constructor(mount: string, timeoutMs: number) {
    super({ clock: systemClock, timeoutMs, mounts: () => [...readMounts(), mount] });
    this.#mount = mount;
  }

  override run<T>(path: string, what: string, call: () => Promise<T>): Promise<T> {
    const dead = path.startsWith(`${this.#mount}/`);
    return super.run(path, what, dead ? () => new Promise<never>(() => undefined) : call);
  }
}

describe('queues whose files are on a file system that hangs', () => {
  const local = (name: string) => ({ name, module: 'thresher/local' });
  const queue = (templateFile: string) => ({
    maxWorkers: 1,
    mapType: 'NoJob',
    submitter: { ...local('LocalSubmitter'), templateFile },
    monitor: local('LocalMonitor'),
    sweeper: local('LocalSweeper'),
  });
  let directory: string;
  let dead: string;

  beforeEach(() => {
    directory = temporaryDirectory();
    dead = join(directory, 'nfs');
    mkdirSync(dead);
    writeFileSync(join(directory, 'pilot.yaml'), 'command: /bin/true\n');
  });

  it('are said to wait for it after one deadline, however many they are, and the others are ready', async () => {
    const names = Array.from({ length: 30 }, (_, at) => `DEAD_${at}`);
    const queues = Object.fromEntries(names.map((name) => [name, queue(join(dead, `${name}.yaml`))]));
    const file = join(directory, 'queues.json');
    writeFileSync(file, JSON.stringify({ ...queues, GOOD: queue('pilot.yaml') }));
    const files = new DeadMount(dead, 500);
    const catalogue = await loadPlugins([], directory, files);
    const options = { stateDir: directory, files, defaultDemand: undefined, queueList: undefined };
    const { verdicts } = await readQueueFile(file, catalogue, options);
    const states = Object.fromEntries(verdicts.map(({ name, state }) => [name, state]));
    expect(states.GOOD).to.equal('ready');
    for (const name of names) expect(states[name]).to.equal('incomplete');
    const messages = verdicts.flatMap(({ problems }) => problems.map(({ message }) => message));
    expect(messages[0]).to.contain(`(the file system at ${dead}) did not come back within 0.5 s`);
    expect(messages.at(-1)).to.contain(`the file system at ${dead} has not answered earlier calls yet`);
    // Each of these waited for a deadline, side by side with a few others: all one after the other would take thirty.
    const late = messages.filter((message) => message.includes('did not come back'));
    expect(late).to.have.length.within(1, 16);
  });

  it('submit nothing and say why, without a pause of the daemon', async () => {
    const files = new DeadMount(dead, 300);
    const context = pluginContext({ files, configDir: directory, stateDir: directory });
    const config = { templateFile: join(dead, 'pilot.yaml'), pidNamespace: 'none' } as const;
    const host = new LocalHost(join(directory, 'local'), context);
    const submitter = new LocalSubmitter(host, config, context);
    let over = false as boolean;
    const looking = submitter.preflight().finally(() => {
      over = true;
    });
    // The event loop turns all the while.
    let turns = 0;
    for (; !over; turns++) await sleep(10);
    const { problems } = await looking;
    expect(problems.map(({ code }) => code)).to.deep.equal(['preflight']);
    expect(problems[0]?.message).to.contain(`the file system at ${dead}`);
    expect(turns).to.be.above(5);
  });
});
