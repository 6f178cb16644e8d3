import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { makeApp } from '../../src/http/app.ts';
import type { SourceHttpRequest } from '../../src/plugins/contracts/index.ts';
import { ServedSample } from '../support/served.ts';

describe('the door of a source in the HTTP server', () => {
  let served: ServedSample;
  let app: FastifyInstance;
  let asked: { readonly kind: string; readonly request: SourceHttpRequest }[];

  beforeEach(async () => {
    served = await ServedSample.make();
    asked = [];
    served.askSource = async (kind, request) => {
      asked.push({ kind, request });
      if (kind === 'broken') throw new Error('a secret of the source');
      if (kind !== 'toy') return undefined;
      return { status: 202, headers: { 'x-own': 'yes', 'Set-Cookie': 'a=b' }, body: '{"taken":true}' };
    };
  });
  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  it('hands on method, path, headers and bytes, and brings back the answer', async () => {
    app = await makeApp(served);
    const payload = Buffer.from([0, 255, 10]);
    const headers = { 'ce-type': 'x', 'content-type': 'application/octet-stream' };
    const answer = await app.inject({ method: 'PUT', url: '/sources/toy/a/b%20c?d=e', headers, payload });
    expect(answer.statusCode).to.equal(202);
    expect(answer.body).to.equal('{"taken":true}');
    expect(answer.headers).to.include({ 'x-own': 'yes', 'x-content-type-options': 'nosniff' });
    expect(answer.headers).to.not.have.property('set-cookie');
    const [{ kind, request } = { kind: '', request: undefined }] = asked;
    expect(kind).to.equal('toy');
    expect(request).to.include({ method: 'PUT', path: 'a/b c' });
    expect(request?.headers).to.include(headers);
    expect(Buffer.from(request?.body ?? [])).to.deep.equal(payload);
  });

  it('asks for no token of the server, and opens no other path', async () => {
    const read = { token: async () => 'the token of readers' };
    app = await makeApp(served, { read, write: undefined } as unknown as Parameters<typeof makeApp>[1]);
    const named = { host: 'any.name.at.all', origin: 'https://else.where' };
    const status = async (url: string, method: 'GET' | 'POST' = 'GET') =>
      (await app.inject({ url, method, headers: named, ...(method === 'POST' && { payload: '{}' }) }))
        .statusCode;
    expect(await status('/sources/toy/x', 'POST')).to.equal(202);
    expect(await status('/sources/toy/x')).to.equal(202);
    for (const path of [
      '/api/queues',
      '/sources',
      '/sources/toy',
      '/sources/../api/queues',
      '/sourcesx/toy/a',
    ])
      expect(await status(path), path).to.equal(401);
    expect(asked).to.have.length(2);
  });

  it('answers for sources that have none', async () => {
    app = await makeApp(served);
    const { statusCode, body } = await app.inject('/sources/fill/x');
    expect([statusCode, JSON.parse(body)]).to.deep.equal([
      404,
      { code: 'http-not-found', message: 'no source answers at /sources/fill/' },
    ]);
  });

  it('tells nothing of the error of a source that fails', async () => {
    app = await makeApp(served);
    const { statusCode, body } = await app.inject('/sources/broken/x');
    expect(statusCode).to.equal(502);
    expect(body).to.not.contain('secret');
  });

  it('takes no more than a source would', async () => {
    app = await makeApp(served);
    const send = async (bytes: number) =>
      app.inject({ method: 'POST', url: '/sources/toy/x', payload: Buffer.alloc(bytes, 'x') });
    expect((await send(64 * 1024)).statusCode).to.equal(202);
    const { statusCode, body } = await send(64 * 1024 + 1);
    expect(statusCode).to.equal(413);
    expect(JSON.parse(body)).to.deep.equal({
      code: 'http-body-too-long',
      message: 'the body is longer than the 64 KiB that a source takes',
    });
    expect(asked).to.have.length(1);
  });
});
