import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { makeApp } from '../../src/http/app.ts';
import { TokenFile } from '../../src/http/token-file.ts';
import { files } from '../support/operator-files.ts';
import { workerOf } from '../support/samples.ts';
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
  let readToken: string;
  let writeToken: string;
  const tokens = () => ({
    read: new TokenFile(readToken, files),
    write: new TokenFile(writeToken, files, 'http.writeTokenFile'),
  });

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    readToken = join(temporaryDirectory(), 'read');
    writeToken = join(temporaryDirectory(), 'write');
    writeFileSync(readToken, 'reader\n');
    writeFileSync(writeToken, 'secret-1\n');
    app = await makeApp(served, tokens());
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
    expect(answer.reasons).to.deep.equal([]);
    expect(served.woken).to.deep.equal(['Q']);
    const [open] = await served.requests.open('Q');
    expect(open?.payload).to.deep.equal(work);
    const listed = await send('GET', '/api/requests');
    expect(listed.answer).to.have.length(1);
    const one = await send('GET', `/api/requests/${answer.id}`);
    expect(one.answer).to.deep.equal({ ...answer, shownWorkers: [] });
  });

  it('are shown with the reasons of their own, and not with those of other requests or of the queue', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await post({ queue: 'Q', count: 2 })).answer.id);
    const waiting = (at: number, index: number) => ({ origin: { uid: ids[at] ?? '', index } });
    const refused = { code: 'payload-unsupported', message: 'no files here' };
    const full = { code: 'max-workers', message: '2 of 2 are alive' };
    const why = [
      { kind: 'request', requests: [waiting(0, 0), waiting(0, 1)], reason: refused },
      { kind: 'request', requests: [waiting(1, 1)], reason: full },
    ];
    served.board.set('Q', { why, counts: new Map([['request', 3]]) });
    const reasons = async (at: number) =>
      (await send('GET', `/api/requests/${ids[at] ?? ''}`)).answer.reasons;
    expect(await reasons(0)).to.deep.equal([refused]);
    expect(await reasons(1)).to.deep.equal([full]);
    expect(await reasons(2)).to.deep.equal([]);
    const failure = { code: 'status-unknown', message: 'the backend does not answer' };
    served.board.failed('Q', failure);
    expect(await reasons(2)).to.deep.equal([failure]);
  });

  it('to a queue that does not run wait for what the queue says', async () => {
    const { answer } = await post({ queue: 'Q' });
    const wrong = { code: 'queue-refused', message: 'maxWorkers is "3", a string' };
    const report = { queue: 'Q', limits: {}, reportTime: 1, queueStatus: 'refused', reasons: [wrong] };
    await served.store.queues.report(report);
    await served.clock.advance(1000);
    expect((await send('GET', `/api/requests/${answer.id}`)).answer.reasons).to.deep.equal([wrong]);
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

  for (const [what, body, message] of [
    [
      'a count in quotes',
      { queue: 'Q', count: '3' },
      'count is "3"; it must be a whole number from 1 to 10000',
    ],
    [
      'a count of true',
      { queue: 'Q', count: true },
      'count is true; it must be a whole number from 1 to 10000',
    ],
    [
      'a count of null',
      { queue: 'Q', count: null },
      'count is null; it must be a whole number from 1 to 10000',
    ],
    ['a queue in a list', { queue: ['Q'] }, 'queue is ["Q"]; it must be the name of a queue'],
  ] as const) {
    it(`with ${what} are refused: a body is taken as it is`, async () => {
      const refused = await post(body);
      expect([refused.status, refused.answer.message]).to.deep.equal([400, message]);
    });
  }

  it('that are over stay as they ended when they are taken back', async () => {
    const { answer } = await post({ queue: 'Q' });
    const origin = { kind: 'request', uid: answer.id, index: 0 };
    await served.store.workers.insert([workerOf(9, { origin })], 'pending', 1, 'submitter');
    await served.requests.served([answer.id]);
    await served.store.workers.apply([
      { workerId: 9, at: 2, source: 'monitor', from: 'pending', to: 'finished' },
    ]);
    const late = await send('DELETE', `/api/requests/${answer.id}`);
    expect([late.status, late.answer.state]).to.deep.equal([200, 'ended']);
    expect(await served.store.requests.toEnd()).to.deep.equal([]);
  });

  it('with a body that is too long, or no JSON, are refused', async () => {
    const long = await post({ queue: 'Q', payload: { values: { x: 'y'.repeat(3 * 1024 * 1024) } } });
    expect([long.status, long.answer.code]).to.deep.equal([413, 'http-body-too-long']);
    expect(long.answer.message).to.contain('2 MiB');
    const text = await post('{"queue":"Q"}', { 'content-type': 'text/plain' });
    expect(text.status).to.equal(415);
    const form = await post('queue=Q', { 'content-type': 'application/x-www-form-urlencoded' });
    expect([form.status, form.answer.code]).to.deep.equal([415, 'http-body-no-json']);
    expect(form.answer.message).to.contain('Content-Type: application/json');
    expect((await post('{"queue":', { 'content-type': 'application/json' })).status).to.equal(400);
    expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
  });

  it('with the token that only reads are refused, and the one that writes also reads', async () => {
    const reader = { authorization: 'Bearer reader' };
    for (const [method, url] of [
      ['POST', '/api/requests'],
      ['DELETE', '/api/requests/abc'],
    ] as const) {
      const refused = await send(method, url, method === 'POST' ? { queue: 'Q' } : undefined, reader);
      expect([refused.status, refused.answer.code]).to.deep.equal([403, 'http-write-refused']);
      expect(refused.answer.message).to.contain('http.writeTokenFile');
    }
    expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
    for (const headers of [reader, bearer])
      expect((await send('GET', '/api/requests', undefined, headers)).status).to.equal(200);
  });

  it('are refused while both tokens are the same, or the one that writes cannot be read', async () => {
    writeFileSync(writeToken, 'reader\n');
    const same = await post({ queue: 'Q' }, { authorization: 'Bearer reader' });
    expect([same.status, same.answer.code]).to.deep.equal([503, 'http-tokens-same']);
    rmSync(writeToken);
    const gone = await post({ queue: 'Q' }, { authorization: 'Bearer reader' });
    expect([gone.status, gone.answer.code]).to.deep.equal([503, 'http-token-unreadable']);
    expect(gone.answer.message).to.contain('http.writeTokenFile');
    expect(
      (await send('GET', '/api/requests', undefined, { authorization: 'Bearer reader' })).status,
    ).to.equal(200);
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

describe('a server with a token for writing alone', () => {
  it('shows requests to all who may reach it, and lets only that token change any', async () => {
    const served = await ServedSample.make();
    await served.fill();
    const file = join(temporaryDirectory(), 'token');
    writeFileSync(file, 'secret-1');
    const app = await makeApp(served, { write: new TokenFile(file, files, 'http.writeTokenFile') });
    try {
      expect((await app.inject('/api/requests')).statusCode).to.equal(200);
      const post = async (headers: Readonly<Record<string, string>>) =>
        (await app.inject({ method: 'POST', url: '/api/requests', headers, payload: { queue: 'Q' } }))
          .statusCode;
      expect(await post({})).to.equal(401);
      expect(await post({ authorization: 'Bearer wrong' })).to.equal(401);
      expect(await post(bearer)).to.equal(201);
    } finally {
      await app.close();
      await served.store.close();
    }
  });
});

describe('a server without a token for writing', () => {
  for (const [what, token, headers] of [
    ['without any token', undefined, {}],
    ['with the token of readers', 'secret-1', bearer],
  ] as const) {
    it(`shows requests, and refuses to change any, ${what}`, () => refusesToChange(token, headers));
  }

  async function refusesToChange(token: string | undefined, headers: Readonly<Record<string, string>>) {
    const served = await ServedSample.make();
    await served.fill();
    const file = join(temporaryDirectory(), 'token');
    writeFileSync(file, token ?? '');
    const app = await makeApp(served, token === undefined ? {} : { read: new TokenFile(file, files) });
    try {
      expect((await app.inject({ url: '/api/requests', headers })).statusCode).to.equal(200);
      for (const method of ['POST', 'DELETE'] as const) {
        const url = method === 'POST' ? '/api/requests' : '/api/requests/abc';
        const refused = await app.inject({ method, url, headers, payload: { queue: 'Q' } });
        expect(refused.statusCode).to.equal(403);
        const { code, message } = JSON.parse(refused.body) as Answer;
        expect(code).to.equal('http-write-refused');
        expect(message).to.contain('set http.writeTokenFile');
      }
      expect(await served.store.requests.list({ limit: 1 })).to.deep.equal([]);
    } finally {
      await app.close();
      await served.store.close();
    }
  }
});
