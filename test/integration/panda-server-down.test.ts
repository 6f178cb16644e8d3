import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { expect } from 'chai';
import { PandaApi } from '../../src/clients/panda/api.ts';
import { PandaClient } from '../../src/clients/panda/client.ts';
import { PandaLogin } from '../../src/clients/panda/login.ts';
import { systemClock } from '../../src/util/clock.ts';
import { files } from '../support/operator-files.ts';
import { ownPanda, type PandaEnvironment } from '../support/panda.ts';
import { PandaSite } from '../support/panda-site.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

const ordered = 3;
const { signal } = new AbortController();

/** A server of its own: the other tests need the shared one all the time. */
describe('the link to a real PanDA server that goes and comes back', function () {
  this.timeout(240_000);
  let server: PandaEnvironment & AsyncDisposable;
  let panda: PandaSite;
  let daemon: RunningDaemon;
  let client: PandaClient;
  let api: PandaApi;

  before(async () => {
    server = await ownPanda();
    panda = await PandaSite.start({ at: server, queues: { A: {}, B: {}, C: {} } });
    daemon = panda.site.start();
    const { url, ca, production } = server.server();
    const source = { kind: 'x509', certFile: production.cert, keyFile: production.key } as const;
    const login = new PandaLogin(source, ca, { files, clock: systemClock });
    client = new PandaClient({ url, login, clock: systemClock, timeout: 60_000 });
    api = new PandaApi(client, 'none');
  });

  after(async () => {
    await client.close();
    await panda.clean();
    await server[Symbol.asyncDispose]();
  });

  const running = async () => (await panda.serverWorkers()).filter(({ status }) => status === 'running');

  it('hears of final statuses that came while its database was down, and orders on', async () => {
    panda.order({ SCORE: ordered }, 'A');
    await panda.untilServerHas(ordered, 'running');
    server.do('db', 'stop');
    try {
      expect(await api.acquireCommands(1, signal)).to.deep.include({
        code: 'panda-database',
        maybeDone: true,
      });
      panda.letEnd();
      await until('all workers have ended', async () => {
        const finished = await panda.site.workers({ status: 'finished' });
        return finished.length === ordered;
      });
      const reported = panda.proxy.count('update_workers', true);
      await until('reports failed', () => panda.proxy.count('update_workers', true) > reported);
    } finally {
      server.do('db', 'start');
    }
    await until('the server answers again', async () => (await api.acquireCommands(1, signal)).kind === 'ok');
    await panda.untilServerHas(ordered, 'finished');
    panda.order({ SCORE: ordered }, 'B');
    await panda.untilServerHas(2 * ordered, 'finished');
  });

  it('is stopped and started again while the daemon restarts, and hears of what it missed', async () => {
    rmSync(panda.site.path('go'));
    panda.order({ SCORE: ordered }, 'C');
    await until('they run', async () => (await running()).length === ordered);
    server.do('stop');
    panda.letEnd();
    await until('all workers have ended', async () => {
      const finished = await panda.site.workers({ status: 'finished' });
      return finished.length === 3 * ordered;
    });
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    daemon = panda.site.start();
    const since = panda.proxy.count();
    await until('the daemon asks in vain', () => panda.proxy.count() > since);
    server.do('start');
    await panda.untilServerHas(3 * ordered, 'finished');
    expect([...panda.site.starts().values()]).to.deep.equal(Array.from({ length: 3 * ordered }, () => 1));
  });

  it('begins anew where all that needed it were killed, as those of an earlier run of tests', async () => {
    const workers = async () => (await panda.serverWorkers()).length;
    server.do('stop');
    const other = spawn('sleep', ['1000']);
    server.do('start', '--for', String(other.pid));
    // The stop left nothing that needs the server, so this start is the first of a new run.
    expect(await workers()).to.equal(0);
    execFileSync(server.variable('PSQL'), ['-c', 'CREATE TABLE doma_panda.earlier_run (id integer)']);
    const known = async () =>
      (await server.rows("SELECT 1 FROM pg_tables WHERE tablename = 'earlier_run'")).length;
    server.do('start', '--for', String(process.pid));
    expect(await known(), 'one that needs it lives').to.equal(1);
    server.do('stop', '--for', String(process.pid));
    expect(server.do('status')).to.contain('running');
    other.kill('SIGKILL');
    await once(other, 'close');
    server.do('start', '--for', String(process.pid));
    expect(await known()).to.equal(0);
    server.do('stop', '--for', String(process.pid));
    expect(() => server.do('status')).to.throw();
  });
});
