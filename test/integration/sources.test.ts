import { join } from 'node:path';
import { expect } from 'chai';
import { readServices } from '../../src/daemon/services/service-file.ts';
import { stateDirAt } from '../../src/daemon/state-dir.ts';
import { Factory } from '../support/factory.ts';
import { desks } from '../support/plugins/odd-source.ts';
import { until } from '../support/until.ts';

const module = join(import.meta.dirname, '../support/plugins/odd-source.ts');
const limits = { maxWorkers: 5, nQueueLimitWorker: 5 };

describe('a daemon with a source of a third party', () => {
  let factory: Factory;

  afterEach(async () => {
    await factory.stop();
    await factory.site.clean();
  });

  async function start(life: string): Promise<void> {
    factory = new Factory(
      { Q: { ...limits, demand: 'odd' }, R: { ...limits, maxWorkers: 1, demand: 'fill' } },
      { sources: { odd: { module, life } }, master: { shutdownTimeout: 60 } },
    );
    await factory.start();
    await until('each queue has its worker', async () => (await factory.workers()).length === 2);
  }
  const written = () =>
    readServices(stateDirAt(factory.site.stateDir)).map(({ name, state }) => `${name} ${state}`);

  it('names its services, and writes their states down', async () => {
    await start('well');
    const { services } = factory.daemon;
    expect(services.map(({ name, state }) => `${name} ${state}`)).to.include.members([
      ...['credentials up', 'queues up', 'source odd up'],
    ]);
    await until('they are written', () => written().includes('source odd up'));
    await factory.stop();
    expect(new Set(written().map((line) => line.split(' ').at(-1)))).to.deep.equal(new Set(['stopped']));
  });

  it('serves all queues while the life of the source fails, and says so', async () => {
    await start('throws');
    const odd = await until('it is shown', () =>
      factory.daemon.services.find(({ name, state }) => name === 'source odd' && state === 'failing'),
    );
    expect(odd.reason?.message).to.contain('no route to its server');
    await until('it is written', () => written().includes('source odd failing'));
  });

  it('stops soon although the source never ends, and its workers are kept', async () => {
    await start('hangs');
    await factory.stop();
    // Without a deadline of its own the source would take all of shutdownTimeout, and end by force.
    expect(factory.log.map(({ message }) => message)).to.include('a source does not end; it is left alone');
  });

  it('tells the source that a queue does not exist, and wakes none for it', async () => {
    await start('well');
    const desk = desks.at(-1);
    expect(desk?.queues()).to.have.members(['Q', 'R']);
    desk?.wake('NOWHERE');
    expect(desk?.reasons('NOWHERE').map(({ code }) => code)).to.deep.equal(['no-such-queue']);
    expect(desk?.reasons('R').map(({ code }) => code)).to.deep.equal(['max-workers']);
  });

  it('ends a worker that the source takes back, and the origin never gets another', async () => {
    await start('well');
    const desk = desks.at(-1);
    await desk?.end([{ uid: 'Q', index: 0 }], 'not needed any more');
    const ended = await until('its worker has ended', async () => {
      const [worker] = await factory.workers('Q');
      return worker?.status === 'cancelled' && worker;
    });
    expect(ended.killReason).to.equal('not needed any more');
    desk?.wake('Q');
    const [news] = (await desk?.find([{ uid: 'Q' }])) ?? [];
    expect(news?.worker.status).to.equal('cancelled');
    expect(await factory.workers('Q')).to.have.length(1);
  });
});
