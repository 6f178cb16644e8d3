import { expect } from 'chai';
import { PgBouncer } from '../support/pgbouncer.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import { Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';
import { StandingIn } from '../support/standing-in.ts';

/** Without hearing of it, a daemon finds a command after so long, s. */
const lookAnyway = 30;

describe('a daemon behind PgBouncer', () => {
  for (const mode of ['transaction', 'statement'] as const)
    it(`is refused in ${mode} mode, and says which mode it needs`, async () => {
      const server = await sharedPostgresql();
      const pooler = new PgBouncer(server, mode);
      await pooler.start();
      const database = await newDatabase();
      const site = new Site({
        queues: { Q: {} },
        settings: { database: { url: pooler.url(database), sslmode: 'disable' } },
      });
      try {
        const daemon = site.start();
        expect(await daemon.ended, daemon.output()).to.equal(1);
        expect(daemon.output()).to.contain(
          'cannot be used: a pooler seems to lend its sessions for single transactions; use its session mode, or none [store-unfit]',
        );
        const tables = await server.query(`SELECT FROM pg_tables WHERE schemaname = 'public'`, database);
        expect(tables, 'it made no table').to.have.length(0);
      } finally {
        await site.clean();
        await pooler.stop();
      }
    });

  it('works in session mode: it submits, hears commands, and is taken over from', async () => {
    const pooler = new PgBouncer(await sharedPostgresql(), 'session');
    await pooler.start();
    const url = pooler.url(await newDatabase());
    const own = new StandingIn([url, url], 3);
    try {
      const leader = own.start(0);
      await own.expectOneEach();
      const standby = own.start(1);
      await untilSaid(standby, 'standby: another daemon has the factory');
      await until('a command is carried out before the leader would look anyway', async () => {
        const asked = performance.now();
        const { status, stdout } = await own.site().run('pause', 'Q', '--reason', 'test');
        expect([status, stdout]).to.deep.equal([0, 'Q is paused\n']);
        const took = performance.now() - asked;
        expect((await own.site().run('resume', 'Q')).status).to.equal(0);
        return took / 1000 < lookAnyway;
      });
      own.want(6, leader);
      await own.expectOneEach();
      process.kill(leader.pid, 'SIGKILL');
      await untilSaid(standby, 'no longer a standby');
      await untilSaid(standby, 'started');
      own.want(9, standby);
      await own.expectOneEach();
    } finally {
      await own.clean();
      await pooler.stop();
    }
  });
});
