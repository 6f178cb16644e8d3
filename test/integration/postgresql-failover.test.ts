import { expect } from 'chai';
import { openStore } from '../../src/store/store.ts';
import type { ThresherError } from '../../src/worker/errors.ts';
import { newDatabase, PostgresqlServer } from '../support/postgresql.ts';
import { type Cut, CuttingProxy } from '../support/postgresql-proxy.ts';
import { type RunningDaemon, untilSaid } from '../support/site.ts';
import { StandingIn } from '../support/standing-in.ts';
import { until } from '../support/until.ts';

const first = 3;
const wanted = 9;
const more = 12;

const commit = /^SELECT 1 .*; COMMIT$/s;
const intents = /^INSERT INTO "workers"/;
const outcomes = /UPDATE workers SET status/;
/** Moments of a batch at which the server is lost. */
const moments = {
  'before the commit of its intents': { statement: commit, following: intents, when: 'before' },
  'after the commit of its intents': { statement: commit, following: intents, when: 'after' },
  'before the commit of its outcomes': { statement: commit, following: outcomes, when: 'before' },
  'before a transaction begins': { statement: /^BEGIN/, following: intents, when: 'before' },
} as const satisfies Record<string, Cut>;
const eachMoment = Object.keys(moments) as (keyof typeof moments)[];

describe('a factory whose PostgreSQL server is killed in the middle of a batch', () => {
  let own: StandingIn;
  let proxy: CuttingProxy;
  let server: PostgresqlServer;
  let replica: PostgresqlServer | undefined;
  let database: string;

  beforeEach(async () => {
    server = new PostgresqlServer();
    await server.start();
    database = await newDatabase(server);
    proxy = new CuttingProxy(server.directory);
    await proxy.start();
    const url = proxy.url(database);
    own = new StandingIn([url, url], first);
  });

  afterEach(async () => {
    await own.clean();
    proxy.close();
    await server.stop();
    await replica?.stop();
    replica = undefined;
  });

  /** Makes a standby of the server. */
  async function copied(): Promise<PostgresqlServer> {
    replica = new PostgresqlServer({}, { primary: server });
    await replica.start();
    return replica;
  }

  /** What a cluster manager does: the address of the database leads to the standby, which is a primary now. */
  async function failOver(): Promise<void> {
    await server.killed();
    await replica?.promote();
    proxy.leadTo(replica?.directory ?? '');
  }

  const killedAt = (moment: keyof typeof moments, also: () => void = () => undefined): Promise<unknown> => {
    proxy.cutAt({
      ...moments[moment],
      act() {
        server.kill();
        also();
      },
    });
    return until('the server is killed', () => proxy.cuts > 0);
  };

  for (const moment of eachMoment)
    it(`has each worker once when the server has recovered: ${moment}`, async () => {
      const served = own.serve(0);
      await own.expectOneEach();
      const killed = killedAt(moment);
      own.want(wanted, served.daemon);
      await killed;
      await server.killed();
      await server.start();
      await own.expectOneEach();
    });

  for (const moment of eachMoment)
    it(`has each worker once when a synchronous replica is promoted: ${moment}`, async () => {
      await copied();
      await server.requireStandby();
      const served = own.serve(0);
      await own.expectOneEach();
      const killed = killedAt(moment);
      own.want(wanted, served.daemon);
      await killed;
      await failOver();
      await own.expectOneEach();
      own.want(more, served.daemon);
      await own.expectOneEach();
    });

  it('has each worker once when a synchronous replica is promoted and a standby takes over', async () => {
    await copied();
    await server.requireStandby();
    const leader = own.start(0);
    await own.expectOneEach();
    const standby = own.start(1);
    await untilSaid(standby, 'standby: another daemon has the factory');
    const killed = killedAt('after the commit of its intents', () => process.kill(leader.pid, 'SIGKILL'));
    own.want(wanted, leader);
    await killed;
    await failOver();
    await untilSaid(standby, 'no longer a standby');
    await own.expectOneEach();
    own.want(more, standby);
    await own.expectOneEach();
  });

  const adopted = 'adopted workers without a row';

  /** Lets the factory make workers that the replica knows nothing of. */
  async function makeUnknown(daemon: RunningDaemon): Promise<void> {
    await (await copied()).leavePrimary();
    own.want(wanted, daemon);
    const ids = await own.expectOneEach();
    const known = await replica?.query<{ id: number }>('SELECT worker_id AS id FROM workers', database);
    expect(known?.length).to.equal(first);
    expect(ids.length).to.equal(wanted);
  }

  it('finds the workers that an asynchronous replica has lost, while the daemon has nothing to do', async () => {
    const served = own.serve(0);
    await own.expectOneEach();
    await makeUnknown(served.daemon);
    server.kill();
    await failOver();
    await until('the daemon has started anew', () => served.output().includes('[store-promoted]'));
    await own.expectOneEach();
    expect(served.output()).to.contain(adopted);
    own.want(more, served.daemon);
    await own.expectOneEach();
  });

  for (const moment of ['after the commit of its intents', 'before the commit of its outcomes'] as const)
    it(`finds the workers that an asynchronous replica has lost: ${moment}`, async () => {
      const served = own.serve(0);
      await own.expectOneEach();
      await makeUnknown(served.daemon);
      const killed = killedAt(moment);
      own.want(more, served.daemon);
      await killed;
      await failOver();
      await own.expectOneEach();
      expect(served.output()).to.contain(adopted);
    });

  it('finds the workers that an asynchronous replica has lost, when a standby takes over', async () => {
    const leader = own.start(0);
    await own.expectOneEach();
    const standby = own.start(1);
    await untilSaid(standby, 'standby: another daemon has the factory');
    await makeUnknown(leader);
    process.kill(leader.pid, 'SIGKILL');
    server.kill();
    await failOver();
    await untilSaid(standby, 'no longer a standby');
    await own.expectOneEach();
    expect(standby.output()).to.contain(adopted);
    own.want(more, standby);
    await own.expectOneEach();
  });

  it('lets a store that was promoted be used no more, and one whose server only started anew', async () => {
    const told: string[] = [];
    const place = { ...server.options(database), host: proxy.directory };
    const store = await openStore(place, 'factory', { mustEnd: ({ code }) => told.push(code) });
    try {
      await store.ids.raise(1);
      await copied();
      const answers = () =>
        store.ids.take(1).then(
          () => true,
          (error: unknown) => (error as ThresherError).code,
        );
      await server.stop();
      expect(await answers()).to.equal('store-unreachable');
      await server.start();
      await until('it goes on', async () => (await answers()) === true);
      await replica?.promote();
      proxy.leadTo(replica?.directory ?? '');
      proxy.cutAll();
      await until('it is told of the promotion', async () => (await answers()) === 'store-promoted');
      expect(told).to.deep.equal(['store-promoted']);
    } finally {
      await store.close();
    }
  });
});
