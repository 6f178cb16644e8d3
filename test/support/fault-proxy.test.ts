import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { FaultProxy, type Rule } from './fault-proxy.ts';
import { type ControlPlane, controlPlane, KubeClient } from './kubernetes.ts';
import { readKubeRequest } from './kube-request.ts';
import { until } from './until.ts';

interface Got {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  /** Whether the answer came to its end. */
  readonly whole: boolean;
}

/** What a client gets, also of an answer that breaks off. @throws if there was none at all. */
async function ask(url: string, method = 'GET', body?: string): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent: new Agent() }, (response) => {
      const { statusCode: status = 0, headers } = response;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('error', () => undefined);
      response.on('close', () => {
        resolve({ status, headers, text, whole: response.complete });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const refused = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: unknown) => (error as NodeJS.ErrnoException).code ?? '',
  );

const watchPath = '/api/v1/namespaces/n/pods?watch=true';
const line = (n: number) => `{"type":"ADDED","object":{"n":${n}}}\n`;

describe('the fault proxy, before a small server', () => {
  let server: Server;
  let served: string[];
  let proxy: FaultProxy;
  /** Watches that the server has open. */
  let watches: number;

  beforeEach(async () => {
    served = [];
    watches = 0;
    server = createServer((asked, response) => {
      let body = '';
      asked.on('data', (piece: Buffer) => (body += piece.toString()));
      asked.on('end', () => {
        served.push(`${asked.method ?? ''} ${asked.url ?? ''} ${body}`.trim());
        if (asked.url?.includes('watch=true') !== true) {
          response.end('the answer');
          return;
        }
        watches++;
        response.on('close', () => watches--);
        for (const n of [1, 2, 3]) response.write(line(n));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await FaultProxy.start({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    });
  });

  afterEach(async () => {
    await proxy[Symbol.asyncDispose]();
    server.closeAllConnections();
    server.close();
  });

  const get = (path = '/api/v1/pods') => ask(proxy.url + path);

  it('passes everything on when no rule says otherwise', async () => {
    expect(await ask(`${proxy.url}/api/v1/namespaces/n/pods?x=1`, 'POST', 'body')).to.include({
      status: 200,
      text: 'the answer',
      whole: true,
    });
    expect(served).to.deep.equal(['POST /api/v1/namespaces/n/pods?x=1 body']);
    expect(proxy.requests).to.have.length(1);
    expect(proxy.requests[0]).to.include({
      verb: 'create',
      resource: 'pods',
      namespace: 'n',
      status: 200,
    });
  });

  it('delays', async () => {
    proxy.inject({ fault: { kind: 'delay', ms: 300 } });
    const start = performance.now();
    expect((await get()).text).to.equal('the answer');
    expect(performance.now() - start).to.be.greaterThan(295);
  });

  it('carries out late what was asked by a client that has gone', async () => {
    const release = Promise.withResolvers<undefined>();
    proxy.inject({ times: 1, fault: { kind: 'late', until: release.promise } });
    const asked = ask(`${proxy.url}/api/v1/namespaces/n/pods`, 'POST', 'body');
    await until('it is held', () => proxy.requests.length === 1);
    proxy.cutAll();
    expect(await refused(asked)).to.equal('ECONNRESET');
    expect(served).to.deep.equal([]);
    release.resolve(undefined);
    await until('the server has answered', () => proxy.requests[0]?.status === 200);
    expect(served).to.deep.equal(['POST /api/v1/namespaces/n/pods body']);
    expect((await get()).text).to.equal('the answer');
  });

  for (const [status, reason] of [
    [403, 'Forbidden'],
    [410, 'Expired'],
    [429, 'TooManyRequests'],
    [500, 'InternalError'],
    [503, 'ServiceUnavailable'],
  ] as const) {
    it(`answers ${status} itself`, async () => {
      proxy.inject({ fault: { kind: 'status', status, retryAfter: 7 } });
      const got = await get();
      expect(got.status).to.equal(status);
      expect(got.headers['retry-after']).to.equal('7');
      expect(JSON.parse(got.text)).to.include({ kind: 'Status', code: status, reason });
      expect(served).to.deep.equal([]);
    });
  }

  it('cuts before the server saw anything, or after it has done everything', async () => {
    const before = proxy.inject({ fault: { kind: 'cut-before' } });
    expect(await refused(get('/api/v1/pods/before'))).to.equal('ECONNRESET');
    before.remove();
    proxy.inject({ fault: { kind: 'cut-after' } });
    expect(await refused(get('/api/v1/pods/after'))).to.equal('ECONNRESET');
    expect(served).to.deep.equal(['GET /api/v1/pods/after']);
    expect(proxy.requests.map(({ fault, status }) => [fault, status])).to.deep.equal([
      ['cut-before', undefined],
      ['cut-after', 200],
    ]);
  });

  it('cuts a watch in the middle of a line', async () => {
    proxy.inject({ verb: 'watch', fault: { kind: 'cut-line', lines: 2 } });
    const { text, whole } = await get(watchPath);
    expect(whole).to.equal(false);
    expect(text.startsWith(line(1) + line(2))).to.equal(true);
    const rest = text.slice(line(1).length * 2);
    expect(rest).to.not.equal('');
    expect(line(3).startsWith(rest) && rest.length < line(3).length, rest).to.equal(true);
    await until('the server is rid of it', () => watches === 0);
  });

  it('lets a watch stall and keeps it open on both sides', async () => {
    proxy.inject({ verb: 'watch', fault: { kind: 'stall', lines: 1 } });
    let text = '';
    let closed = false;
    const sent = request(proxy.url + watchPath, { agent: new Agent() }, (response) => {
      response.on('data', (piece: Buffer) => (text += piece.toString()));
      response.on('error', () => undefined);
      response.on('close', () => (closed = true));
    });
    sent.on('error', () => undefined);
    sent.end();
    await until('the first line came', () => text === line(1));
    // Long enough for the lines that the server has sent already.
    await ask(`${proxy.url}/api/v1/pods`);
    expect({ text, closed, watches }).to.deep.equal({ text: line(1), closed: false, watches: 1 });
    sent.destroy();
    await until('the server is rid of it', () => watches === 0);
  });

  it('lets a request stall before its answer', async () => {
    proxy.inject({ times: 1, fault: { kind: 'stall' } });
    const stalled = get().then(
      () => 'answered',
      () => 'cut',
    );
    expect((await get()).text).to.equal('the answer');
    proxy.cutAll();
    expect(await stalled).to.equal('cut');
    expect(served).to.have.length(1);
  });

  it('ends a watch with an ERROR event', async () => {
    proxy.inject({ verb: 'watch', fault: { kind: 'error-event', code: 410, lines: 1 } });
    const { text, whole, status } = await get(watchPath);
    const [first, second = '', ...more] = text.split('\n');
    expect({ status, whole, first: `${first ?? ''}\n`, more }).to.deep.equal({
      status: 200,
      whole: true,
      first: line(1),
      more: [''],
    });
    const event = JSON.parse(second) as { type: string; object: object };
    expect(event.type).to.equal('ERROR');
    expect(event.object).to.include({ code: 410, reason: 'Expired' });
    await until('the server is rid of it', () => watches === 0);
  });

  it('chooses by verb, resource, namespace and name, after some and for some', async () => {
    const rule: Rule = {
      verb: 'get',
      resource: 'jobs',
      namespace: 'n',
      name: /^a/,
      skip: 1,
      times: 2,
      fault: { kind: 'status', status: 500 },
    };
    const injected = proxy.inject(rule);
    const jobs = '/apis/batch/v1/namespaces/n/jobs';
    const statuses = [];
    for (const path of [
      jobs,
      `${jobs}/b`,
      `${jobs}/a1/status`,
      '/apis/batch/v1/namespaces/m/jobs/a',
      '/api/v1/namespaces/n/pods/a',
      ...[1, 2, 3, 4].map((n) => `${jobs}/a${n}`),
    ]) {
      statuses.push((await get(path)).status);
    }
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 200, 500, 500, 200]);
    expect(injected.hits).to.equal(2);
    expect(proxy.count({ resource: 'jobs', name: /^a/ })).to.equal(5);
  });

  it('heals', async () => {
    proxy.inject({ fault: { kind: 'status', status: 503 } });
    expect((await get()).status).to.equal(503);
    proxy.heal();
    expect((await get()).status).to.equal(200);
  });

  it('shows a dead server as a cut connection', async () => {
    server.close();
    server.closeAllConnections();
    expect(await refused(get())).to.equal('ECONNRESET');
  });

  it('refuses a rule that can hit no whole number of requests', () => {
    const fault = { kind: 'cut-before' } as const;
    expect(() => proxy.inject({ times: -1, fault })).to.throw('times of a rule is -1');
    expect(() => proxy.inject({ skip: 0.5, fault })).to.throw('skip of a rule is 0.5');
  });
});

describe('a request to an API server', () => {
  const table: readonly [method: string, url: string, expected: object][] = [
    ['GET', '/healthz', { verb: 'other', resource: '', namespace: '', name: '' }],
    ['GET', '/api/v1', { verb: 'other', resource: '' }],
    ['GET', '/api/v1/nodes', { verb: 'list', resource: 'nodes', namespace: '' }],
    ['GET', '/api/v1/namespaces', { verb: 'list', resource: 'namespaces' }],
    ['GET', '/api/v1/namespaces/n', { verb: 'get', resource: 'namespaces', name: 'n', namespace: '' }],
    ['PUT', '/api/v1/namespaces/n/finalize', { verb: 'update', resource: 'namespaces/finalize', name: 'n' }],
    ['GET', '/api/v1/namespaces/n/pods?watch=1', { verb: 'watch', resource: 'pods', namespace: 'n' }],
    ['GET', '/api/v1/namespaces/n/pods?watch=false', { verb: 'list', resource: 'pods' }],
    ['GET', '/api/v1/namespaces/n/pods/p/log?follow=true', { verb: 'get', resource: 'pods/log', name: 'p' }],
    ['POST', '/apis/batch/v1/namespaces/n/jobs', { verb: 'create', resource: 'jobs', namespace: 'n' }],
    ['PATCH', '/apis/batch/v1/namespaces/n/jobs/j', { verb: 'patch', resource: 'jobs', name: 'j' }],
    ['DELETE', '/apis/batch/v1/namespaces/n/jobs/j', { verb: 'delete', resource: 'jobs', name: 'j' }],
    ['DELETE', '/apis/batch/v1/namespaces/n/jobs', { verb: 'deletecollection', resource: 'jobs' }],
  ];
  for (const [method, url, expected] of table) {
    it(`${method} ${url} is understood`, () => {
      expect(readKubeRequest(method, url)).to.include(expected);
    });
  }
});

describe('the fault proxy, before a real API server', function () {
  this.timeout(900_000);
  let plane: ControlPlane;
  let proxy: FaultProxy;
  let client: KubeClient;

  before(async () => {
    plane = await controlPlane();
  });

  beforeEach(async () => {
    proxy = await FaultProxy.inFrontOf(plane, { tls: true });
    client = new KubeClient({ ...plane.client.access, server: proxy.url });
  });

  afterEach(async () => {
    client.close();
    await proxy[Symbol.asyncDispose]();
  });

  it('loses the answer to a Job that was created', async () => {
    await using space = await plane.namespace();
    const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'lost' } };
    const spec = { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'b' }] } } };
    proxy.inject({ verb: 'create', resource: 'jobs', times: 1, fault: { kind: 'cut-after' } });
    expect(await refused(client.create(space.jobs(), { ...job, spec }))).to.equal('ECONNRESET');
    expect(await space.client.find(space.jobs('lost'))).to.not.equal(undefined);
    const again = await client.raw('POST', space.jobs(), { ...job, spec });
    expect(again.status).to.equal(409);
    expect(proxy.requests.map(({ status }) => status)).to.deep.equal([201, 409]);
  });

  it('never lets a Job be created', async () => {
    await using space = await plane.namespace();
    proxy.inject({ verb: 'create', resource: 'jobs', fault: { kind: 'cut-before' } });
    expect(await refused(client.create(space.jobs(), {}))).to.equal('ECONNRESET');
    expect(await space.client.list(space.jobs())).to.deep.equal([]);
  });

  it('forbids a verb as the server would', async () => {
    await using space = await plane.namespace();
    proxy.inject({ verb: 'list', resource: 'pods', fault: { kind: 'status', status: 403 } });
    const answer = await client.raw('GET', space.core('pods'));
    expect(JSON.parse(answer.text)).to.include({ kind: 'Status', reason: 'Forbidden', code: 403 });
    expect((await client.raw('GET', space.jobs())).status).to.equal(200);
  });

  for (const [kind, lines] of [
    ['cut-line', 1],
    ['error-event', 1],
  ] as const) {
    it(`breaks a watch of real Pods: ${kind}`, async () => {
      await using space = await plane.namespace();
      for (const name of ['one', 'two']) await space.createJob({ name });
      await until('there are Pods', async () => (await space.client.list(space.core('pods'))).length === 2);
      const fault = kind === 'cut-line' ? { kind, lines } : { kind, lines, code: 410 };
      proxy.inject({ verb: 'watch', fault });
      const ca = readFileSync(join(plane.status.certificates, 'ca.crt'));
      const { text, whole } = await new Promise<{ text: string; whole: boolean }>((resolve, reject) => {
        const sent = secureRequest(`${proxy.url}${space.core('pods')}?watch=true`, { ca }, (response) => {
          let got = '';
          response.on('data', (piece: Buffer) => (got += piece.toString()));
          response.on('error', () => undefined);
          response.on('close', () => {
            resolve({ text: got, whole: response.complete });
          });
        });
        sent.on('error', reject);
        sent.end();
      });
      const [first = '', second = ''] = text.split('\n');
      expect(JSON.parse(first)).to.include({ type: 'ADDED' });
      if (kind === 'cut-line') {
        expect(whole).to.equal(false);
        expect(second).to.match(/^\{"type":/);
        expect(() => JSON.parse(second) as unknown).to.throw(SyntaxError);
      } else {
        expect(whole).to.equal(true);
        expect(JSON.parse(second)).to.include({ type: 'ERROR' });
      }
    });
  }

  it('speaks as who the client is, where it says so', async () => {
    await using space = await plane.namespace();
    const authorization = `Bearer ${await plane.token(space.name, 'default')}`;
    expect((await client.raw('GET', space.core('pods'), undefined, { authorization })).status).to.equal(403);
    expect((await client.raw('GET', space.core('pods'))).status).to.equal(200);
  });
});
