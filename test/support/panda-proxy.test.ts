import { expect } from 'chai';
import { PandaApi } from '../../src/clients/panda/api.ts';
import { PandaClient } from '../../src/clients/panda/client.ts';
import { PandaLogin } from '../../src/clients/panda/login.ts';
import type { PandaOutcome } from '../../src/clients/panda/outcome.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { Fault } from './fault-proxy.ts';
import { files } from './operator-files.ts';
import { newPandaId, type PandaServer, pandaRows, pandaServer } from './panda.ts';
import { PandaProxy } from './panda-proxy.ts';
import { until } from './until.ts';

const { signal } = new AbortController();

describe('the fault proxy before a real PanDA server', () => {
  let server: PandaServer;
  let proxy: PandaProxy;
  let client: PandaClient;
  let api: PandaApi;
  let id: string;

  before(async () => {
    server = pandaServer();
    proxy = await PandaProxy.inFrontOf(server);
    const { cert, key } = server.production;
    const source = { kind: 'x509', certFile: cert, keyFile: key } as const;
    const login = new PandaLogin(source, server.ca, { files, clock: systemClock });
    client = new PandaClient({ url: proxy.url, login, clock: systemClock, timeout: 60_000 });
    id = newPandaId('proxy');
    api = new PandaApi(client, id);
    const data = { startTime: Date.UTC(2026, 10, 22), version: '1.0', commit: '' };
    await until('the heartbeat is taken', async () => (await api.heartbeat(data, signal)).kind === 'ok');
  });

  afterEach(() => {
    proxy.heal();
  });

  after(async () => {
    await client.close();
    await proxy[Symbol.asyncDispose]();
  });

  let workerId = 0;
  /** Reports a worker of its own through a fault, and looks whether the server has it. */
  async function reported(fault: Fault): Promise<{ outcome: PandaOutcome<unknown>; stored: boolean }> {
    const injected = proxy.inject('update_workers', fault, { times: 1 });
    const worker = { workerID: ++workerId, status: 'running', computingSite: 'PROXY' };
    const outcome = await api.updateWorkers([worker], signal);
    expect(injected.hits, 'the fault did not hit').to.equal(1);
    const rows = await pandaRows<{ workerid: number }>(
      `SELECT workerid FROM harvester_workers WHERE harvesterid = '${id}' AND workerid = ${workerId}`,
    );
    return { outcome, stored: rows.length === 1 };
  }

  const cases: readonly (readonly [title: string, fault: Fault, code: string, stored: boolean])[] = [
    ['a request that is cut', { kind: 'cut-before' }, 'panda-no-answer', false],
    ['an answer that is cut', { kind: 'cut-after' }, 'panda-no-answer', true],
    ['half an answer', { kind: 'half' }, 'panda-no-answer', true],
    ['half a line of an answer', { kind: 'cut-line' }, 'panda-no-answer', true],
    ['an error inside', { kind: 'text', status: 500, text: 'boom' }, 'panda-server-error', false],
    ['a page of a gateway', { kind: 'text', status: 200, text: '<html>' }, 'panda-no-api', false],
  ];
  for (const [title, fault, code, stored] of cases) {
    it(`makes ${title}`, async () => {
      expect(await reported(fault)).to.deep.nested.include({ 'outcome.code': code, stored });
    });
  }

  it('passes on the rest, slowly where it is told to', async () => {
    const { outcome, stored } = await reported({ kind: 'delay', ms: 300 });
    expect({ outcome, stored }).to.deep.equal({ outcome: { kind: 'ok', data: [true] }, stored: true });
    expect(proxy.count('update_workers', true)).to.be.greaterThan(0);
  });
});
