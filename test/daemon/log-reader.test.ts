import { expect } from 'chai';
import type { QueueRuntime } from '../../src/agents/queue-runtime.ts';
import type { PluginCatalogue, QueueConfig } from '../../src/config/queues/queues.ts';
import { LogReaders } from '../../src/daemon/log-reader.ts';
import type { Monitor } from '../../src/plugins/contracts/index.ts';
import type { WorkerRecord } from '../../src/store/rows.ts';
import type { Store } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { workerOf } from '../support/samples.ts';

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof ThresherError ? error.code : error),
  );
const monitor = (logs = true) => ({ ...(logs && { logs: {} }) }) as Monitor;
const worker = (configId: number, placement = 'here') => workerOf(1, { configId, placement }) as WorkerRecord;

describe('the logs that a daemon reads', () => {
  let running: QueueRuntime[];
  let made: string[];
  /** The configurations that were read from the database. */
  let taken: number[];
  /** By configuration and placement, as the plugins keeps them while their connections are there. */
  let there: Map<string, Monitor>;
  let readers: LogReaders;

  const runtime = (configId: number, ...connected: [placement: string, monitor: Monitor][]) =>
    ({
      configId,
      connected: new Map(connected.map(([placement, its]) => [placement, { monitor: its }])),
    }) as unknown as QueueRuntime;

  beforeEach(() => {
    running = [];
    made = [];
    taken = [];
    there = new Map();
    const snapshot = async (configId: number) => {
      taken.push(configId);
      return configId === 404 ? undefined : { snapshot: JSON.stringify({ name: String(configId) }) };
    };
    readers = new LogReaders({
      store: { queues: { snapshot } } as unknown as Pick<Store, 'queues'>,
      running: () => running,
      plugins: {
        monitorAt: ({ name }: QueueConfig, placement: string) => {
          const key = `${name} ${placement}`;
          const known =
            there.get(key) ?? (placement === 'nowhere' ? undefined : monitor(placement !== 'silent'));
          if (!there.has(key)) made.push(key);
          if (known !== undefined) there.set(key, known);
          return known;
        },
      },
      cataloguePastOf: async () => ({}) as PluginCatalogue,
    });
  });

  it('come through the monitor of the configuration that runs, and no other is made', async () => {
    const [here, there] = [monitor(), monitor()];
    running = [runtime(1, ['here', monitor()]), runtime(2, ['there', there], ['here', here])];
    expect(await readers.of(worker(2))).to.equal(here.logs);
    expect(await readers.of(worker(2, 'there'))).to.equal(there.logs);
    expect(made).to.deep.equal([]);
  });

  it('come through one monitor for all requests where their configuration does not run any more', async () => {
    running = [runtime(2, ['here', monitor()])];
    const all = await Promise.all([readers.of(worker(1)), readers.of(worker(1))]);
    expect(new Set([...all, await readers.of(worker(1))]).size).to.equal(1);
    expect(made).to.deep.equal(['1 here']);
  });

  it('come through a new monitor once the connection of the former one is gone', async () => {
    const before = await readers.of(worker(1));
    there.clear();
    expect(await readers.of(worker(1))).not.to.equal(before);
    expect(taken).to.deep.equal([1]);
  });

  it('keep the last configurations that were asked for, and not all', async () => {
    await readers.of(worker(1000));
    for (let configId = 1; configId <= 31; configId++) await readers.of(worker(configId));
    await readers.of(worker(1000));
    expect(taken).to.have.length(32);
    await readers.of(worker(32));
    await readers.of(worker(1));
    expect(taken.slice(32)).to.deep.equal([32, 1]);
  });

  it('are refused where the configuration is gone, leads elsewhere or has no logs', async () => {
    running = [runtime(5, ['silent', monitor(false)])];
    for (const one of [worker(404), worker(1, 'nowhere'), worker(1, 'silent'), worker(5, 'silent')])
      expect(await codeOf(readers.of(one))).to.equal('no-log');
  });
});
