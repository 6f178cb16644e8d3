import { expect } from 'chai';
import type { QueueRuntime } from '../../src/agents/queue-runtime.ts';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import { Homes } from '../../src/daemon/homes.ts';
import { systemClock } from '../../src/util/clock.ts';
import { recordingLog } from '../support/samples.ts';

/** A configuration whose submitter leads to these places. */
const config = (name: string, ...places: string[]): QueueConfig => {
  const plugin = { module: `of ${name}`, name: 'x', config: { places } };
  const plugins = { submitter: plugin, monitor: plugin, sweeper: plugin, messenger: plugin };
  return { name, configDir: `/etc/${name}`, demand: 'fill', plugins } as unknown as QueueConfig;
};
const placesOf = ({ plugins }: QueueConfig) =>
  (plugins.submitter?.config as unknown as { places: string[] }).places;
const runtime = (configId: number, of: QueueConfig) =>
  ({
    config: of,
    configId,
    connected: new Map(placesOf(of).map((place) => [place, {}])),
  }) as unknown as QueueRuntime;

describe('a configuration for workers that are where their queue leads no more', () => {
  let running: QueueRuntime[];
  let snapshots: { configId: number; config: QueueConfig }[];
  let followed: { config: QueueConfig; configId: number }[];
  let homes: Homes;
  let held: number[];
  const hold = { keep: (configId: number) => held.push(configId) };

  beforeEach(() => {
    running = [];
    snapshots = [];
    followed = [];
    held = [];
    homes = new Homes({
      queues: {
        configId: async () => 99,
        snapshotsOf: async (queue) =>
          snapshots
            .filter((one) => one.config.name === queue)
            .map((one) => ({ configId: one.configId, snapshot: JSON.stringify(one.config) })),
      },
      clock: systemClock,
      log: recordingLog(),
      placementsOf: (one) => {
        const places = placesOf(one);
        if (places.includes('gone')) throw new Error('its plugin is gone');
        return places;
      },
      running: () => running,
      follow: (one, configId) => {
        if (one.name === 'BROKEN') return undefined;
        followed.push({ config: one, configId });
        return runtime(configId, one);
      },
    });
  });

  it('is one of the queue that runs, where that leads there', async () => {
    running = [
      runtime(1, config('Q', 'new')),
      runtime(2, config('Q', 'old')),
      runtime(3, config('N', 'old')),
    ];
    expect(await homes.configFor('Q', 'old')).to.equal(2);
    expect(followed).to.deep.equal([]);
  });

  it('else the last earlier one of the queue that leads there', async () => {
    running = [runtime(1, config('Q', 'new')), runtime(3, config('N', 'old'))];
    const earlier = [config('Q', 'gone'), config('Q', 'other'), config('Q', 'old'), config('Q', 'old', 'b')];
    snapshots = earlier.map((one, at) => ({ configId: 10 + at, config: one }));
    expect(await homes.configFor('Q', 'old')).to.equal(12);
    expect(followed.map(({ configId }) => configId)).to.deep.equal([12]);
  });

  it("else the queue's own with the plugins of another that is there", async () => {
    running = [runtime(1, config('Q', 'new')), runtime(3, config('N', 'old'))];
    expect(await homes.configFor('Q', 'old')).to.equal(99);
    const [lent] = followed;
    expect(lent?.config).to.include({ name: 'Q', configDir: '/etc/N' });
    const modules = Object.entries(lent?.config.plugins ?? {}).map(([kind, { module }]) => [kind, module]);
    expect(Object.fromEntries(modules)).to.deep.equal({
      submitter: 'of N',
      monitor: 'of N',
      sweeper: 'of N',
      messenger: 'of Q',
    });
  });

  it('is there for a queue that runs no more, too', async () => {
    running = [runtime(3, config('N', 'old'))];
    expect(await homes.configFor('Q', 'old')).to.equal(99);
    expect(followed[0]?.config).to.include({ name: 'Q' });
  });

  it('is held from the moment on in which it is found, on every path', async () => {
    running = [runtime(1, config('Q', 'new')), runtime(3, config('N', 'old'))];
    snapshots = [{ configId: 10, config: config('Q', 'earlier') }];
    for (const place of ['new', 'earlier', 'old', 'elsewhere']) await homes.configFor('Q', place, hold);
    expect(held).to.deep.equal([1, 10, 99]);
  });

  it('is held for a pass of a listing until the pass releases it, and given for configured queues only', async () => {
    running = [runtime(1, config('Q', 'new'))];
    const pass = homes.forPass('new', (queue) => queue === 'Q');
    expect([await pass.configFor('Q'), await pass.configFor('GONE')]).to.deep.equal([1, undefined]);
    expect(pass.runtimeOf?.(1), 'hole 8: the access points of an adopted worker are those of it').to.equal(
      running[0],
    );
    expect(pass.runtimeOf?.(2)).to.equal(undefined);
    homes.held.take();
    expect([...homes.held.take()]).to.deep.equal([1]);
    pass.release();
    homes.held.take();
    expect([...homes.held.take()]).to.deep.equal([]);
  });

  it('is none where nothing leads there, or where its plugins cannot be made', async () => {
    running = [runtime(1, config('Q', 'new')), runtime(3, config('N', 'old'))];
    expect(await homes.configFor('Q', 'elsewhere')).to.equal(undefined);
    expect(await homes.configFor('BROKEN', 'old')).to.equal(undefined);
  });
});
