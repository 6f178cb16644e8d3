import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { makeApp } from '../../src/http/app.ts';
import { TokenFile } from '../../src/http/token-file.ts';
import { files } from '../support/operator-files.ts';
import { ServedSample } from '../support/served.ts';
import { temporaryDirectory } from '../support/temporary.ts';

interface Answer {
  readonly id: string;
  readonly state: string;
  readonly code: string;
  readonly message: string;
  readonly reasons: readonly { readonly code: string }[];
}

const bearer = { authorization: 'Bearer secret-1' };

describe('requests for workers over HTTP', () => {
  let served: ServedSample;
  let app: FastifyInstance;

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    const token = join(temporaryDirectory(), 'token');
    writeFileSync(token, 'secret-1\n');
    app = await makeApp(served, new TokenFile(token, files));
  });

  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  const send = async (
    method: 'POST' | 'GET' | 'DELETE',
    url: string,
    payload?: object | string,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const body = payload === undefined ? {} : { payload };
    const answer = await app.inject({ method, url, headers: { ...bearer, ...headers }, ...body });
    return {
      status: answer.statusCode,
      headers: answer.headers,
      answer: JSON.parse(answer.body) as Answer,
    };
  };
  const post = (payload: object | string, headers?: Readonly<Record<string, string>>) =>
    send('POST', '/api/requests', payload, headers);
  const work = { argv: ['./run.sh', "it's"], files: [{ name: 'run.sh', mode: 493, content: 'ZWNobw==' }] };

  it('are stored, wake their queue, and are shown with their place', async () => {
    const { status, headers, answer } = await post({ queue: 'Q', count: 2, payload: work });
    expect([status, headers.location]).to.deep.equal([201, `/api/requests/${answer.id}`]);
    expect(answer).to.deep.include({ state: 'waiting', count: 2, by: 'http', payload: ['files', 'argv'] });
    expect(answer.reasons.map(({ code }) => code)).to.deep.equal(['max-workers', 'paused']);
    expect(served.woken).to.deep.equal(['Q']);
    const [open] = await served.requests.open('Q');
    expect(open?.payload).to.deep.equal(work);
    const listed = await send('GET', '/api/requests');
    expect(listed.answer).to.have.length(1);
    const one = await send('GET', `/api/requests/${answer.id}`);
    expect(one.answer).to.deep.equal({ ...answer, shownWorkers: [] });
  });

  it('are made once for one key, and the same key for something else is refused', async () => {
    const key = { 'idempotency-key': 'job-17' };
    const first = await post({ queue: 'Q', payload: work }, key);
    const again = await post({ queue: 'Q', payload: work }, key);
    expect([first.status, again.status]).to.deep.equal([201, 200]);
    expect(again.answer.id).to.equal(first.answer.id);
    const other = await post({ queue: 'Q', payload: { ...work, argv: ['./other.sh'] } }, key);
    expect([other.status, other.answer.code]).to.deep.equal([409, 'request-key-taken']);
    // The content is wiped by then, and the key goes on to count.
    await served.requests.served([first.answer.id]);
    expect((await post({ queue: 'Q', payload: work }, key)).status).to.equal(200);
    expect((await post({ queue: 'Q' }, key)).status).to.equal(409);
    expect(await served.store.requests.list({ limit: 10 })).to.have.length(1);
  });

  it('are taken back, once and for good', async () => {
    const { answer } = await post({ queue: 'Q', payload: work });
    const gone = await send('DELETE', `/api/requests/${answer.id}?reason=enough`);
    expect([gone.status, gone.answer.state]).to.deep.equal([200, 'withdrawn']);
    expect(await served.requests.open('Q')).to.deep.equal([]);
    expect(await served.store.requests.toEnd()).to.deep.equal([
      { id: answer.id, count: 1, reason: 'enough' },
    ]);
    expect((await send('DELETE', `/api/requests/${answer.id}?reason=late`)).status).to.equal(200);
    expect((await served.store.requests.toEnd())[0]?.reason).to.equal('enough');
  });

  for (const [what, body, status, code, message] of [
    ['an unknown queue', { queue: 'QQ' }, 400, 'no-such-queue', 'there is no queue QQ; did you mean Q?'],
    ['no queue', { count: 1 }, 400, 'http-request-wrong', '"queue" is missing'],
    [
      'a count of 0',
      { queue: 'Q', count: 0 },
      400,
      'http-request-wrong',
      'count is 0; it must be a whole number from 1 to 10000',
    ],
    [
      'a huge count',
      { queue: 'Q', count: 1e9 },
      400,
      'http-request-wrong',
      'count is 1000000000; it must be a whole number from 1 to 10000',
    ],
    [
      'an unknown key',
      { queue: 'Q', argv: ['x'] },
      400,
      'http-request-wrong',
      'there is no parameter "argv"; known are queue, count, requirements, payload',
    ],
    ['a list', [], 400, 'http-request-wrong', 'the body is a list; it must be a JSON object'],
    [
      'a payload with an absolute name',
      { queue: 'Q', payload: { files: [{ name: '/etc/passwd', mode: 0, content: '' }] } },
      400,
      'payload-wrong',
      'payload/files/0/name: the name is "/etc/passwd", an absolute path; write a relative one',
    ],
    [
      'a number among the arguments',
      { queue: 'Q', payload: { argv: ['sleep', 5] } },
      400,
      'payload-wrong',
      'payload/argv/1: it is a number; it must be a text',
    ],
  ] as const) {
    it(`with ${what} are refused, and say what is right`, async () => {
      const refused = await post(body);
      expect([refused.status, refused.answer.code]).to.deep.equal([status, code]);
      expect(refused.answer.message).to.equal(message);
      expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
    });
  }

  it('with a body that is too long, or no JSON, are refused', async () => {
    const long = await post({ queue: 'Q', payload: { values: { x: 'y'.repeat(3 * 1024 * 1024) } } });
    expect(long.status).to.equal(413);
    const text = await post('{"queue":"Q"}', { 'content-type': 'text/plain' });
    expect(text.status).to.equal(415);
    const form = await post('queue=Q', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(form.status).to.equal(415);
    expect((await post('{"queue":', { 'content-type': 'application/json' })).status).to.equal(400);
    expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
  });

  it('without a token are refused, also with a wrong one', async () => {
    for (const authorization of ['', 'Bearer wrong']) {
      expect((await post({ queue: 'Q' }, { authorization })).status).to.equal(401);
      expect((await send('DELETE', '/api/requests/abc', undefined, { authorization })).status).to.equal(401);
    }
    expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
  });

  for (const [what, headers, status] of [
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a page of a sister site', { 'sec-fetch-site': 'same-site' }, 403],
    ['a foreign origin', { origin: 'https://evil.example', host: '127.0.0.1:25085' }, 403],
    ['a page without an origin of its own', { origin: 'null' }, 403],
    ['another port of this host', { origin: 'http://127.0.0.1:1', host: '127.0.0.1:25085' }, 403],
    ['a page of ours', { origin: 'http://127.0.0.1:25085', host: '127.0.0.1:25085' }, 201],
    ['a browser that calls itself', { 'sec-fetch-site': 'same-origin' }, 201],
    ['a program', {}, 201],
  ] as const) {
    it(`from ${what} get ${status}`, async () => {
      const authorization = `Basic ${Buffer.from('me:secret-1').toString('base64')}`;
      const { status: got, answer } = await post({ queue: 'Q' }, { authorization, ...headers });
      expect(got).to.equal(status);
      if (status === 403) expect(answer.code).to.equal('http-foreign-page');
    });
  }

  it('that are not there are named', async () => {
    const missing = await send('GET', '/api/requests/abc');
    expect([missing.status, missing.answer.code]).to.deep.equal([404, 'no-such-request']);
    expect((await send('DELETE', '/api/requests/abc')).status).to.equal(404);
    expect((await send('GET', '/api/requests/ABC')).answer.message).to.contain('the id of a request');
  });
});

describe('a server without a token', () => {
  it('shows requests, and refuses to change any, whatever the address', async () => {
    const served = await ServedSample.make();
    await served.fill();
    const app = await makeApp(served, undefined);
    try {
      expect((await app.inject('/api/requests')).statusCode).to.equal(200);
      for (const method of ['POST', 'DELETE'] as const) {
        const url = method === 'POST' ? '/api/requests' : '/api/requests/abc';
        const refused = await app.inject({ method, url, payload: { queue: 'Q' } });
        expect(refused.statusCode).to.equal(403);
        const { code, message } = JSON.parse(refused.body) as Answer;
        expect(code).to.equal('http-write-refused');
        expect(message).to.contain('set http.tokenFile');
      }
      expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
    } finally {
      await app.close();
      await served.store.close();
    }
  });
});
