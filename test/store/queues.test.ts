import { expect } from 'chai';
import type { Store } from '../../src/store/store.ts';
import { onEachDatabase } from '../support/each-database.ts';

onEachDatabase('the store of queues', (database) => {
  let store: Store;

  beforeEach(async () => {
    store = await database.openNew();
  });

  afterEach(async () => {
    await store.close();
  });

  const report = (queue: string, message = 'full') =>
    store.queues.report({
      queue,
      queueStatus: 'online',
      limits: { maxWorkers: 3, x: null },
      reasons: [{ code: 'queue-limit', message }],
      reportTime: 5,
    });

  it('lets equal configurations of a queue share one id, and no others', async () => {
    const first = await store.queues.configId('Q', '{"a":1}', 1);
    expect(await store.queues.configId('Q', '{"a":1}', 99)).to.equal(first);
    const others = [
      await store.queues.configId('Q', '{"a":2}', 1),
      await store.queues.configId('R', '{"a":1}', 1),
    ];
    expect(new Set([first, ...others]).size).to.equal(3);
    expect(await store.queues.configId('Q', '{"a":1}', 100)).to.equal(first);
    expect(await store.queues.snapshot(first)).to.deep.equal({ queue: 'Q', snapshot: '{"a":1}' });
    expect(await store.queues.snapshot(1000)).to.equal(undefined);
  });

  it('keeps the last report of each queue, by name', async () => {
    await report('R');
    await report('Q');
    await report('Q', 'still full');
    expect((await store.queues.all()).map(({ queue }) => queue)).to.deep.equal(['Q', 'R']);
    expect((await store.queues.all())[0]).to.deep.equal({
      queue: 'Q',
      queueStatus: 'online',
      limits: { maxWorkers: 3, x: null },
      reasons: [{ code: 'queue-limit', message: 'still full' }],
      reportTime: 5,
    });
  });

  it('keeps what an operator said through every report, until it is taken back', async () => {
    await report('Q');
    const control = { mode: 'paused', reason: 'downtime', since: 7 } as const;
    expect(await store.queues.setControl('Q', control)).to.equal(true);
    await report('Q');
    expect(await store.queues.control('Q')).to.deep.equal(control);
    expect(await store.queues.setControl('Q', null)).to.equal(true);
    expect(await store.queues.control('Q')).to.equal(undefined);
  });

  it('says when there is no such queue', async () => {
    expect(await store.queues.setControl('Q', null)).to.equal(false);
    await report('Q');
    await store.queues.forget('Q');
    expect(await store.queues.all()).to.deep.equal([]);
  });
});

onEachDatabase('the store of commands', (database) => {
  it('shows a command until it has its result, also when a daemon took it up and died', async () => {
    const store = await database.openNew();
    const pause = { kind: 'pause', queue: 'Q', reason: 'x' } as const;
    const kill = { kind: 'kill', ids: [1, 2] } as const;
    const first = await store.commands.add(pause, 1);
    const second = await store.commands.add(kill, 2);
    await store.commands.take(first, 3);
    expect(await store.commands.open()).to.deep.equal([
      { id: first, command: pause },
      { id: second, command: kill },
    ]);
    expect(await store.commands.result(first)).to.equal(undefined);
    await store.commands.finish(first, { ok: true, message: 'paused' });
    expect(await store.commands.open()).to.deep.equal([{ id: second, command: kill }]);
    expect(await store.commands.result(first)).to.deep.equal({ ok: true, message: 'paused' });
    await store.close();
  });
});

onEachDatabase('the store of orphans', (database) => {
  it('has what the last listing of each connection found', async () => {
    const store = await database.openNew();
    const orphan = (connection: string, place: string) => ({
      connection,
      place,
      workerId: null,
      queue: null,
      why: 'no row',
      seenTime: 1,
    });
    await store.orphans.replace('a', [orphan('a', '/2'), orphan('a', '/1')]);
    await store.orphans.replace('b', [orphan('b', '/1')]);
    await store.orphans.replace('a', [orphan('a', '/1')]);
    expect(await store.orphans.all()).to.deep.equal([orphan('a', '/1'), orphan('b', '/1')]);
    await store.orphans.replace('a', []);
    expect(await store.orphans.all()).to.deep.equal([orphan('b', '/1')]);
    await store.close();
  });
});
