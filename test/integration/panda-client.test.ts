import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PandaApi } from '../../src/clients/panda/api.ts';
import { PandaClient } from '../../src/clients/panda/client.ts';
import { type LoginSource, PandaLogin } from '../../src/clients/panda/login.ts';
import type { PandaOutcome } from '../../src/clients/panda/outcome.ts';
import { readPandaTime } from '../../src/clients/panda/times.ts';
import { systemClock } from '../../src/util/clock.ts';
import { files } from '../support/operator-files.ts';
import { newPandaId, pandaAdmin, type PandaServer, pandaServer } from '../support/panda.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

/** Generous: the server's first answer after a restart of its database takes seconds. */
const timeout = 60_000;
const { signal } = new AbortController();
const version = { startTime: Date.UTC(2026, 10, 21), version: '1.0', commit: 'abc' };

describe('the client of a real PanDA server', () => {
  let server: PandaServer;
  let directory: string;
  const clients: PandaClient[] = [];

  before(() => {
    server = pandaServer();
    directory = temporaryDirectory();
  });

  after(async () => {
    await Promise.all(clients.map((client) => client.close()));
  });

  function clientWith(
    source: LoginSource,
    ca: string | undefined = server.ca,
    url = server.url,
  ): PandaClient {
    const login = new PandaLogin(source, ca, { files, clock: systemClock });
    const client = new PandaClient({ url, login, clock: systemClock, timeout });
    clients.push(client);
    return client;
  }

  const x509 = ({ cert, key }: PandaServer['production']): LoginSource => ({
    kind: 'x509',
    certFile: cert,
    keyFile: key,
  });

  /** An instance of its own, which the server knows from its first heartbeat on. */
  async function registered(source = x509(server.production)): Promise<{ id: string; api: PandaApi }> {
    const id = newPandaId('client');
    const api = new PandaApi(clientWith(source), id);
    await until('the heartbeat is taken', async () => (await api.heartbeat(version, signal)).kind === 'ok');
    return { id, api };
  }

  function dataOf<Data>(outcome: PandaOutcome<Data>): Data {
    if (outcome.kind === 'failed') throw new Error(`${outcome.code}: ${outcome.message}`);
    return outcome.data;
  }

  it('takes the first heartbeat of an instance for a failure that is to be repeated', async () => {
    const api = new PandaApi(clientWith(x509(server.production)), newPandaId('first'));
    expect(await api.heartbeat(version, signal)).to.deep.include({ code: 'panda-database', maybeDone: true });
    expect(await api.heartbeat(version, signal)).to.deep.equal({ kind: 'ok', data: null });
  });

  it('gets commands, each once, with the time at which the server made them', async () => {
    const { id, api } = await registered();
    pandaAdmin('command', id, 'SET_N_WORKERS_JOBTYPE:TEST', '{"managed":{"SCORE":3,"MCORE":1}}');
    const [command, ...others] = dataOf(await api.acquireCommands(10, signal));
    expect(others).to.deep.equal([]);
    expect(command).to.deep.include({
      command: 'SET_N_WORKERS_JOBTYPE:TEST',
      params: { managed: { SCORE: 3, MCORE: 1 } },
    });
    expect(readPandaTime(command?.creation_date)).to.be.closeTo(Date.now(), 3_600_000);
    expect(dataOf(await api.acknowledge([command?.command_id ?? 0], signal))).to.equal(null);
    expect(dataOf(await api.acquireCommands(10, signal))).to.deep.equal([]);
    expect(dataOf(await api.acknowledge([], signal))).to.equal(null);
  });

  it('reports workers with texts in many alphabets that are longer than the columns', async () => {
    const { id, api } = await registered();
    expect(dataOf(await api.currentWorkerId(signal))).to.equal(0);
    const worker = {
      workerID: 17,
      status: 'running',
      batchID: 'é'.repeat(200),
      nodeID: 'node-a',
      diagMessage: '🌾'.repeat(1000),
      startTime: Date.UTC(2026, 10, 21, 8, 42),
      nCore: 1,
    };
    const workers = [worker, { ...worker, workerID: 18 }];
    expect(dataOf(await api.updateWorkers(workers, signal))).to.deep.equal([true, true]);
    expect(dataOf(await api.currentWorkerId(signal))).to.equal(18);
    const rows = pandaAdmin(
      'sql',
      `SELECT workerid, status, nodeid, starttime FROM harvester_workers WHERE harvesterid = '${id}' ORDER BY 1`,
    );
    expect(rows).to.match(/17 \| running \| node-a \| 2026-11-21 08:42:00/);
    expect(dataOf(await api.updateWorkers([], signal))).to.deep.equal([]);
  });

  it('hole 7: refuses a highest worker id that leaves no room, which a report with a broken id makes', async () => {
    const { api } = await registered();
    const absurd = { workerID: Number.MAX_SAFE_INTEGER, status: 'running' };
    expect(dataOf(await api.updateWorkers([absurd], signal))).to.deep.equal([true]);
    const outcome = await api.currentWorkerId(signal);
    expect(outcome).to.include({ kind: 'failed', code: 'panda-worker-id' });
    expect(JSON.stringify(outcome)).to.include('9007199254740991');
  });

  it('reports statistics, dialogs and metrics of the service, and reads types of resources and jobs', async () => {
    const { api } = await registered();
    const statistics = { managed: { SCORE: { running: 2, submitted: 1 } } };
    expect(dataOf(await api.reportStatistics('TEST', statistics, signal))).to.equal(null);
    const dialog = {
      diagID: 1,
      moduleName: 'm'.repeat(200),
      identifier: 'TEST',
      creationTime: Date.now(),
      messageLevel: 'WARNING',
      diagMessage: 'a queue waits',
    } as const;
    expect(dataOf(await api.addDialogs([dialog], signal))).to.equal(null);
    expect(dataOf(await api.updateServiceMetrics('host', { rss_mib: 120.5 }, Date.now(), signal))).to.equal(
      null,
    );
    const types = dataOf(await api.resourceTypes(signal)).map(({ resource_name: name }) => name);
    expect(types).to.include.members(['SCORE', 'MCORE']);
    const site = newPandaId('CLIENT_JOBS');
    pandaAdmin('site', site, '--harvester', 'client');
    pandaAdmin('job', site, '--n', '3');
    expect(dataOf(await api.activeJobs(signal))[site]).to.deep.include({ activated: 3, running: 0 });
  });

  it('tells a certificate without the role from one that the server does not know', async () => {
    const { api } = await registered(x509(server.user));
    expect(await api.acquireCommands(10, signal)).to.deep.include({ code: 'panda-role', maybeDone: false });
    const none = new PandaApi(
      clientWith({ kind: 'oidc', token: { text: 'no.token.here' }, origin: server.origin }),
      'x',
    );
    expect(await none.heartbeat(version, signal)).to.deep.include({ code: 'panda-token' });
  });

  it('tells a token without an origin from a failure of the server', async () => {
    class WithoutOrigin extends PandaLogin {
      override async current() {
        const { headers, ...login } = await super.current();
        return { ...login, headers: { authorization: headers['authorization'] ?? '' } };
      }
    }
    const source: LoginSource = { kind: 'oidc', token: { file: server.tokenFile }, origin: '' };
    const login = new WithoutOrigin(source, server.ca, { files, clock: systemClock });
    const client = new PandaClient({ url: server.url, login, clock: systemClock, timeout });
    clients.push(client);
    expect(await new PandaApi(client, 'x').heartbeat(version, signal)).to.deep.include({
      code: 'panda-token',
      maybeDone: false,
    });
  });

  it('uses a token, and the next one as soon as its file has it', async () => {
    const file = join(directory, 'token');
    writeFileSync(file, 'bad.token.first');
    const api = new PandaApi(
      clientWith({ kind: 'oidc', token: { file }, origin: server.origin }),
      newPandaId('token'),
    );
    expect(await api.acquireCommands(1, signal)).to.deep.include({ code: 'panda-token' });
    writeFileSync(file, readFileSync(server.tokenFile));
    await until('the new token counts', async () => (await api.heartbeat(version, signal)).kind === 'ok');
    expect(dataOf(await api.acquireCommands(1, signal))).to.deep.equal([]);
  });

  it('gets the key of a token where the user may have it and the client has one', async () => {
    // The same in each run: the server looks at these tables every ten minutes.
    const key = '5e1f9c37-6d0a-4b52-8a1e-2c7d94b0f618';
    const [client, user] = ['client.of.test', 'PanDA Production'];
    const meta = 'doma_pandameta';
    pandaAdmin(
      'sql',
      `DELETE FROM ${meta}.users WHERE name = '${user}'; DELETE FROM ${meta}.proxykey WHERE dn = '${client}';
       INSERT INTO ${meta}.users (name, gridpref) VALUES ('${user}', 't');
       INSERT INTO ${meta}.proxykey (id, dn, credname, expires) VALUES (1, '${client}', '${key}', '2099-01-01')`,
    );
    const api = new PandaApi(clientWith(x509(server.production)), 'x');
    expect(await api.tokenKey(client, signal)).to.deep.equal({ kind: 'ok', data: key });
    const missing = await api.tokenKey('another.client', signal);
    expect(missing).to.deep.include({ code: 'panda-token-key', maybeDone: false });
    const denied = await new PandaApi(clientWith(x509(server.user)), 'x').tokenKey(client, signal);
    expect(denied).to.deep.include({ code: 'panda-token-key', maybeDone: false });
  });

  it('never speaks to a server whose certificate it cannot verify', async () => {
    const api = new PandaApi(
      new PandaClient({
        url: server.url,
        login: new PandaLogin(x509(server.production), undefined, { files, clock: systemClock }),
        clock: systemClock,
        timeout,
      }),
      'x',
    );
    const outcome = await api.heartbeat(version, signal);
    expect(outcome).to.deep.include({ code: 'panda-unreachable', maybeDone: false });
    expect(outcome)
      .to.have.property('message')
      .that.matches(/certificate.*: ca_cert in pandacon names the file of its authority$/);
  });
});
