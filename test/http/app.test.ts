import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { queueViews, workerDetails, workerView } from '../../src/daemon/view.ts';
import { makeApp } from '../../src/http/app.ts';
import { htcJob } from '../support/htc-jobs.ts';
import { workerOf } from '../support/samples.ts';
import { linkedView, loopHealth, ServedSample } from '../support/served.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
}
interface Operation {
  readonly summary?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
  }[];
  readonly responses: Record<
    string,
    { readonly description?: string; readonly content?: Record<string, { readonly schema: object }> }
  >;
}

/** Every path, with one that is served there. */
const paths: Readonly<Record<string, string>> = {
  '/': '/',
  '/workers/{id}': '/workers/1',
  '/workers/{id}/stdout': '/workers/1/stdout',
  '/workers/{id}/stderr': '/workers/1/stderr',
  '/workers/{id}/job-log': '/workers/1/job-log',
  '/workers/{id}/rendered': '/workers/1/rendered',
  '/healthz': '/healthz',
  '/readyz': '/readyz',
  '/metrics': '/metrics',
  '/api/queues': '/api/queues',
  '/api/workers': '/api/workers',
  '/api/workers/{id}': '/api/workers/2',
  '/api/workers/{id}/log': '/api/workers/1/log',
  '/api/requests': '/api/requests',
  '/api/requests/{request}': '/api/requests/abc',
  '/api/panda': '/api/panda',
  '/api/htcjobs': '/api/htcjobs',
  '/api/htcjobs/{namespace}/{name}': '/api/htcjobs/default/zero',
  '/api/htcjobs/{namespace}/{name}/events': '/api/htcjobs/default/zero/events',
  '/api/htcjobs/{namespace}/{name}/logs': '/api/htcjobs/default/zero/logs',
  '/api/openapi.json': '/api/openapi.json',
};
/** What else than GET is answered there. */
const writing: Readonly<Record<string, readonly string[]>> = {
  '/api/requests': ['post'],
  '/api/requests/{request}': ['delete'],
};

describe('the HTTP server', () => {
  let served: ServedSample;
  let app: FastifyInstance;

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    served.logs = {
      async *read(worker, { stream, tail }) {
        yield Buffer.from(`${stream} of ${worker.workerId}, ${tail ?? 'all'}: <script>alert(1)</script>\n`);
      },
    };
    const request = { id: 'abc', queue: 'Q', count: 2, by: 'http', requirements: { nCore: 2 } } as const;
    await served.store.requests.add({ ...request, payload: { argv: ['x'] } }, served.clock.now());
    app = await makeApp(served, undefined);
  });

  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  const get = async (url: string) => {
    const { statusCode, body, headers } = await app.inject(url);
    return { status: statusCode, body, headers };
  };
  const json = async (url: string): Promise<unknown> => JSON.parse((await get(url)).body);

  it('shows queues as the command line does', async () => {
    expect(await json('/api/queues')).to.deep.equal(
      JSON.parse(JSON.stringify(await queueViews(served.store, 'unknown'))),
    );
  });

  it('the HTTP server counts queues once for many requests, and again a second later', async () => {
    await json('/api/queues');
    await served.store.queues.forget('Q');
    expect(await json('/api/queues')).to.have.length(2);
    await served.clock.advance(1000);
    expect(await json('/api/queues')).to.have.length(1);
  });

  it('shows workers as the command line does, newest first', async () => {
    const views = (await served.store.workers.list({})).map(workerView);
    expect(await json('/api/workers')).to.deep.equal(views);
    expect(views.map(({ workerID }) => workerID)).to.deep.equal([3, 2, 1]);
  });

  it('shows the link to the PanDA server as the command line does', async () => {
    expect(await json('/api/panda')).to.deep.equal(served.link);
    served.link = linkedView(served.clock.now());
    expect(await json('/api/panda')).to.deep.equal(served.link);
  });

  for (const [query, ids] of [
    ['?queue=Q', [3, 2, 1]],
    ['?queue=NONE', []],
    ['?status=running', [1]],
    ['?status=failed,pending', [3, 2]],
    ['?limit=1', [3]],
    ['?queue=Q&status=pending,running&limit=1000', [3, 1]],
  ] as const) {
    it(`filters workers by ${query}`, async () => {
      const views = (await json(`/api/workers${query}`)) as { workerID: number }[];
      expect(views.map(({ workerID }) => workerID)).to.deep.equal(ids);
    });
  }

  it('shows all facts of one worker', async () => {
    const record = await served.store.workers.byId(2);
    expect(await json('/api/workers/2')).to.deep.equal(await workerDetails(served.store, record!));
  });

  it('gives the end of a log as text that no browser runs', async () => {
    const { status, body, headers } = await get('/api/workers/1/log?stream=stderr&tail=7');
    expect([status, body]).to.deep.equal([200, 'stderr of 1, 7: <script>alert(1)</script>\n']);
    expect(headers['content-type']).to.equal('text/plain; charset=utf-8');
    expect((await get('/api/workers/1/log')).body).to.contain('stdout of 1, 200:');
  });

  const limit = (given: string) => `limit is ${given}; it must be a whole number from 1 to 1000`;
  const id = (given: string) => `id is "${given}"; it must be a worker id, which is a whole number`;
  const status = (given: string) =>
    `status is "${given}"; it must be one or more of pending,submitted,idle,ready,running,finished,failed,cancelled,missed`;
  const none = (path: string) => `there is nothing at ${path}; /api/openapi.json lists all paths`;
  const wrong: readonly (readonly [url: string, status: number, code: string, message: string])[] = [
    ['/api/workers/999', 404, 'no-such-worker', 'there is no worker 999'],
    ['/api/workers/999/log', 404, 'no-such-worker', 'there is no worker 999'],
    ['/api/workers/one', 400, 'http-request-wrong', id('one')],
    ['/api/workers/0', 400, 'http-request-wrong', id('0')],
    ['/api/workers/-1/log', 400, 'http-request-wrong', id('-1')],
    ['/api/workers/9999999999999999', 400, 'http-request-wrong', id('9999999999999999')],
    ['/api/workers?limit=0', 400, 'http-request-wrong', limit('0')],
    ['/api/workers?limit=1001', 400, 'http-request-wrong', limit('1001')],
    ['/api/workers?limit=many', 400, 'http-request-wrong', limit('"many"')],
    ['/api/workers?limit=', 400, 'http-request-wrong', limit('""')],
    ['/api/workers?limit=1&limit=2', 400, 'http-request-wrong', limit('["1","2"]')],
    ['/api/workers?status=dead', 400, 'http-request-wrong', status('dead')],
    ['/api/workers?status=running,', 400, 'http-request-wrong', status('running,')],
    ['/api/workers?status=', 400, 'http-request-wrong', status('')],
    [
      '/api/workers?stauts=failed',
      ...([400, 'http-request-wrong'] as const),
      'there is no parameter "stauts"; known are queue, status, limit',
    ],
    ['/api/queues?queue=Q', 400, 'http-request-wrong', 'there is no parameter "queue"; there are none here'],
    [
      '/api/workers/1/log?stream=stdin',
      ...([400, 'http-request-wrong'] as const),
      'stream is "stdin"; it must be stdout or stderr',
    ],
    [
      '/api/workers/1/log?tail=0',
      ...([400, 'http-request-wrong'] as const),
      'tail is 0; it must be a whole number of lines from 1 to 10000',
    ],
    ['/api/nothing', 404, 'http-not-found', none('/api/nothing')],
    ['/api/queues/', 404, 'http-not-found', none('/api/queues/')],
    ['/../etc/passwd', 404, 'http-not-found', none('/etc/passwd')],
    ['/%zz', 400, 'http-request-wrong', "'/%zz' is not a valid url component"],
  ];
  for (const [url, expected, code, message] of wrong) {
    it(`answers ${url} with ${expected} ${code}`, async () => {
      const answer = await get(url);
      expect(JSON.parse(answer.body)).to.deep.equal({ code, message });
      expect(answer.status).to.equal(expected);
      expect(answer.headers['x-content-type-options']).to.equal('nosniff');
    });
  }

  for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'] as const) {
    it(`answers ${method} with 405, whatever the path`, async () => {
      for (const url of ['/api/queues', '/nothing']) {
        const { statusCode, headers } = await app.inject({ method, url });
        expect([statusCode, headers.allow]).to.deep.equal([405, 'GET']);
      }
    });
  }

  it('the HTTP server says why it cannot read a log', async () => {
    served.logs = (await ServedSample.make()).logs;
    const { status, body } = await get('/api/workers/1/log');
    expect([status, JSON.parse(body)]).to.deep.equal([404, { code: 'no-log', message: 'there is none' }]);
  });

  it('the HTTP server reports a failed plugin as a failure of the backend', async () => {
    served.logs = {
      async *read() {
        throw new TypeError('no such thing');
      },
    };
    const { status, body } = await get('/api/workers/1/log');
    const message = 'log of worker 1 could not be read: no such thing';
    expect([status, JSON.parse(body)]).to.deep.equal([502, { code: 'plugin-failed', message }]);
  });

  it('logs its own defects, and answers them with 500', async () => {
    served.health = () => {
      throw new TypeError('no such thing');
    };
    const { status, body } = await get('/readyz');
    const message = 'this could not be answered: no such thing';
    expect([status, JSON.parse(body)]).to.deep.equal([500, { code: 'http-failed', message }]);
    expect(served.log.lines).to.deep.equal([
      { level: 'error', message: 'request failed', facts: { url: '/readyz', error: 'no such thing' } },
    ]);
  });

  it('answers others while a log read hangs, begins no more than two of them, and gives each up in time', async () => {
    served.logs = {
      async *read() {
        await new Promise(() => undefined);
      },
    };
    const hanging = Array.from({ length: 2 }, () => get('/api/workers/1/log'));
    // Each is at its deadline's sleep by now.
    while (served.clock.sleeping.length < 2) await served.clock.settle();
    expect((await get('/api/workers/2')).status).to.equal(200);
    expect((await get('/healthz')).status).to.equal(200);
    const third = await get('/api/workers/3/log');
    expect([third.status, JSON.parse(third.body)]).to.deep.equal([
      503,
      {
        code: 'log-busy',
        message: '2 log reads from local:/work are under way; none of them has come back yet',
      },
    ]);
    await served.clock.advance(10_000);
    for (const { status, body } of await Promise.all(hanging)) {
      const message = 'log of worker 1 did not come back within 10 s';
      expect([status, JSON.parse(body)]).to.deep.equal([504, { code: 'plugin-timeout', message }]);
    }
    // They still hang: that a deadline passed brings no slot back.
    expect((await get('/api/workers/1/log')).status).to.equal(503);
  });

  it('is healthy while loops get on, also when their backends are down', async () => {
    served.loops = [loopHealth('submit Q', { failures: 9, lastError: { code: 'x', message: 'y' } })];
    const body = '{"status":"ok","stuck":[],"services":[{"name":"queues","state":"up"}]}';
    expect(await get('/healthz')).to.include({ status: 200, body });
  });

  it('names a service that fails, without its reason, and stays healthy', async () => {
    const reason = { code: 'source-failed', message: 'the password is wrong' };
    served.at = [{ name: 'source toy', state: 'failing', since: 1, reason }];
    const { status, body } = await get('/healthz');
    expect(status).to.equal(200);
    expect(body).to.equal('{"status":"ok","stuck":[],"services":[{"name":"source toy","state":"failing"}]}');
  });

  it('is not healthy when a loop is stuck, and says which and for how long', async () => {
    served.loops = [loopHealth('submit Q', { stuckFor: 61_234 }), loopHealth('sweep Q')];
    expect(await get('/healthz')).to.include({
      status: 503,
      body: '{"status":"stuck","stuck":[{"loop":"submit Q","seconds":61}],"services":[{"name":"queues","state":"up"}]}',
    });
    expect((await get('/')).body).to.contain('submit Q has made no progress for 61 s');
    expect((await get('/metrics')).body).to.contain('thresher_loop_stuck{kind="submit",target="Q"} 1');
  });

  it('is ready once every connection was listed or tried, and no longer when it stops', async () => {
    served.loops = [
      loopHealth('list here', { endedAt: undefined }),
      loopHealth('list there', { failures: 1 }),
    ];
    expect(await get('/readyz')).to.include({
      status: 503,
      body: '{"status":"starting","waiting":["here"]}',
    });
    served.loops = [loopHealth('list here'), loopHealth('list there', { failures: 1 })];
    expect(await get('/readyz')).to.include({ status: 200, body: '{"status":"ready","waiting":[]}' });
    served.ended = true;
    expect(await get('/readyz')).to.include({ status: 503, body: '{"status":"stopping","waiting":[]}' });
  });

  it('a standby is ready for readers, and names the leader', async () => {
    served.loops = [];
    served.holder = { holder: 'ce02 pid 812', since: '2026-11-23T10:00:00Z' };
    expect(await get('/readyz')).to.include({
      status: 200,
      body: '{"status":"standby","leader":"ce02 pid 812","waiting":[]}',
    });
  });

  it('the HTTP server is not ready before its loops began', async () => {
    served.loops = [loopHealth('commands', { startedAt: undefined, endedAt: undefined })];
    expect((await get('/readyz')).status).to.equal(503);
  });

  it('sends on every answer what keeps browsers from trusting it', async () => {
    for (const url of [...Object.values(paths), '/nothing', '/%zz', '/workers/x']) {
      const { headers } = await get(url);
      expect(headers, url).to.include({
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      });
    }
  });

  it('refuses names that a foreign site may have', async () => {
    const ask = async (host: string) => {
      const { statusCode, body } = await app.inject({ url: '/api/queues', headers: { host } });
      return [statusCode, body];
    };
    const message = `no token is asked for here, so the name evil.example:80 is refused: it may be a foreign site's`;
    expect(await ask('evil.example:80')).to.deep.equal([
      403,
      JSON.stringify({ code: 'http-host-refused', message }),
    ]);
    expect((await ask('this-host:25085'))[0]).to.equal(200);
    expect((await ask('[::1]:25085'))[0]).to.equal(200);
  });

  describe('its description', () => {
    const read = async () => (await json('/api/openapi.json')) as Document;

    it('has all routes and no others, each with its answers', async () => {
      const document = await read();
      expect(document.openapi).to.equal('3.1.0');
      expect(Object.keys(document.paths)).to.have.members(Object.keys(paths));
      const routes = app
        .printRoutes({ commonPrefix: false })
        .split('\n')
        .filter((line) => /\(.*GET.*\)/.test(line)).length;
      // A source describes its own door: all doors are one route.
      expect(routes).to.equal(Object.keys(paths).length + 1);
      for (const [path, methods] of Object.entries(document.paths)) {
        expect(Object.keys(methods), path).to.have.members(['get', ...(writing[path] ?? [])]);
        for (const { summary } of Object.values(methods)) expect(summary, path).to.be.a('string');
        const { summary, parameters = [], responses } = methods.get!;
        expect(summary, path).to.be.a('string');
        const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        expect(
          parameters.filter((one) => one.in === 'path').map(({ name }) => name),
          path,
        ).to.deep.equal(inPath);
        for (const { description } of parameters) expect(description, path).to.be.a('string');
        for (const [status, { description, content = {} }] of Object.entries(responses)) {
          expect(status).to.match(/^(\d\d\d|[45]XX|default)$/);
          expect(description, `${path} ${status}`).to.be.a('string');
          expect(Object.keys(content), `${path} ${status}`).to.not.be.empty;
        }
      }
    });

    it('the OpenAPI document describes the answers as they are', async () => {
      served.htcJobs = { list: async () => [htcJob()], one: async () => htcJob(), events: async () => [] };
      const origin = { kind: 'htcjob', uid: htcJob().metadata.uid, index: 0 };
      await served.store.workers.insert([workerOf(4, { origin })], 'pending', 1, 'submitter');
      served.rendered = async () => 'universe = vanilla\n';
      const { paths: described } = await read();
      const ajv = new Ajv2020({ strict: false, allErrors: true });
      const agree = async (url: string, path: string, key: string) => {
        const { headers, body } = await get(url);
        const content = described[path]?.get?.responses[key]?.content ?? {};
        const [type = ''] = String(headers['content-type']).split(';');
        expect(Object.keys(content), url).to.deep.equal([type]);
        if (type !== 'application/json') return;
        const validate = ajv.compile(content[type]!.schema);
        validate(JSON.parse(body));
        expect(validate.errors, url).to.equal(null);
      };
      for (const [path, url] of Object.entries(paths)) await agree(url, path, '200');
      await agree('/api/workers/1', '/api/workers/{id}', '200');
      await agree('/api/workers/999', '/api/workers/{id}', '4XX');
      await agree('/workers/999', '/workers/{id}', 'default');
      served.loops = [loopHealth('list here', { endedAt: undefined, stuckFor: 1 })];
      await agree('/healthz', '/healthz', '503');
      await agree('/readyz', '/readyz', '503');
    });
  });
});
