import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { HtcJobReader } from '../../src/clients/htcjob/reading.ts';
import type { HtcJob } from '../../src/daemon/htcjobs.ts';
import { makeApp } from '../../src/http/app.ts';
import { HtcJobAnswer, HtcJobEventsAnswer, HtcJobsAnswer } from '../../src/http/htcjob-schemas.ts';
import { systemClock } from '../../src/util/clock.ts';
import { rememberSecret } from '../../src/util/own-secrets.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { htcJob } from '../support/htc-jobs.ts';
import { kubeconfig, writeKubeconfig } from '../support/kubernetes-client.ts';
import { files } from '../support/operator-files.ts';
import { workerOf } from '../support/samples.ts';
import { json, startScriptedServer } from '../support/scripted-server.ts';
import { ServedSample } from '../support/served.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const job: HtcJob = {
  ...htcJob({ queue: 3 }),
  status: {
    conditions: [
      { type: 'Waiting', status: 'True', reason: 'Paused', message: 'Q is paused', lastTransitionTime: '' },
    ],
    completedIndexes: '1',
  },
};
/** One with a mistake: it counts as failed, and none of its jobs ever had a worker. */
const wrong: HtcJob = {
  ...htcJob({}, 'wrong'),
  status: {
    conditions: [
      {
        type: 'Failed',
        status: 'True',
        reason: 'Invalid',
        message: 'image: write one',
        lastTransitionTime: '',
      },
    ],
    failedIndexes: '0',
  },
};
const events = [{ time: '2026-01-01T00:00:00Z', type: 'Normal', reason: 'Submitted', message: 'it was' }];

describe('HTCJobs by HTTP', () => {
  let served: ServedSample;
  let app: FastifyInstance;
  let asked: (string | undefined)[];

  beforeEach(async () => {
    served = await ServedSample.make();
    asked = [];
    served.htcJobs = {
      list: async (namespace) => {
        asked.push(namespace);
        return [job];
      },
      one: async (name) => {
        if (name === 'default/zero') return job;
        if (name === 'default/wrong') return wrong;
        throw new ThresherError('no-such-htcjob', `there is no HTCJob ${name}`);
      },
      events: async () => events,
    };
    const origin = { kind: 'htcjob', uid: job.metadata.uid, index: 0 };
    const again = { ...origin, index: 10_000 };
    const workers = [workerOf(1, { origin }), workerOf(2, { origin: again })];
    await served.store.workers.insert(workers, 'pending', 1, 'submitter');
    served.logs = {
      async *read({ workerId }, { stream, tail, follow }, signal) {
        yield Buffer.from(`${stream} of ${workerId}, ${tail ?? 'all'}\n`);
        if (follow && !signal.aborted) await once(signal, 'abort');
      },
    };
    app = await makeApp(served);
  });

  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  async function get(path: string) {
    const { statusCode, body, json } = await app.inject(`/api/htcjobs${path}`);
    return { statusCode, body, json };
  }

  const isLike = (schema: object, answer: unknown) => {
    const ajv = new Ajv2020({ strict: false });
    expect(ajv.validate(schema, answer), JSON.stringify(ajv.errors)).to.equal(true);
  };

  it('are listed, of all namespaces or of one', async () => {
    const { statusCode, json } = await get('');
    expect(statusCode).to.equal(200);
    expect(json()).to.deep.equal([job]);
    isLike(HtcJobsAnswer, json());
    await get('?namespace=mine');
    expect(asked).to.deep.equal([undefined, 'mine']);
  });

  it('are shown one by one, with their workers, and with their Events', async () => {
    const { json } = await get('/default/zero');
    const shown = json<HtcJob & { readonly workers: readonly { readonly workerID: number }[] }>();
    isLike(HtcJobAnswer, shown);
    expect(shown).to.deep.include({ metadata: job.metadata, spec: job.spec });
    expect(shown.workers.map(({ workerID }) => workerID)).to.deep.equal([1, 2]);
    const told: unknown = (await get('/default/zero/events')).json();
    expect(told).to.deep.equal(events);
    isLike(HtcJobEventsAnswer, told);
  });

  it('have the log of the last attempt at each job', async () => {
    expect((await get('/default/zero/logs')).body).to.equal('stdout of 2, 200\n');
    expect((await get('/default/zero/logs?stream=stderr&tail=3&index=0')).body).to.equal('stderr of 2, 3\n');
  });

  for (const [path, statusCode, code, message] of [
    ['/default/none', 404, 'no-such-htcjob', 'there is no HTCJob default/none'],
    ['/default/zero/logs?index=3', 404, 'no-such-worker', 'its jobs are 0 to 2'],
    ['/default/zero/logs?index=2', 404, 'no-such-worker', 'has no worker: Q is paused'],
    ['/default/zero/logs?index=1', 404, 'no-such-worker', 'it has ended, and its row was deleted'],
    ['/default/wrong/logs', 404, 'no-such-worker', 'is invalid, and none of its jobs ran: image: write one'],
    ['/default/zero/logs?index=x', 400, 'http-request-wrong', 'the number of a job, a whole number'],
    ['/default/zero/logs?follow=perhaps', 400, 'http-request-wrong', 'true or false'],
    ['/default/ZERO', 400, 'http-request-wrong', 'the name of a HTCJob'],
    ['?namespaces=x', 400, 'http-request-wrong', 'namespaces'],
  ] as const)
    it(`answers ${statusCode} to ${path}`, async () => {
      const answer = await get(path);
      expect([answer.statusCode, answer.json<{ code: string }>().code]).to.deep.equal([statusCode, code]);
      expect(answer.json<{ message: string }>().message).to.contain(message);
    });

  it('are not there where the daemon is no operator', async () => {
    served.htcJobs = undefined;
    const { statusCode, body } = await get('');
    expect(statusCode).to.equal(404);
    expect(body).to.contain('its settings have no sources.htcjob');
  });

  it('are asked about four times at once, also by questions that go on behind their deadline', async () => {
    const ends: (() => void)[] = [];
    const lists = () =>
      new Promise<never[]>((resolve) =>
        ends.push(() => {
          resolve([]);
        }),
      );
    served.htcJobs = { ...served.htcJobs!, list: lists };
    const asked = Array.from({ length: 4 }, () => get(''));
    await until('all four are under way', () => ends.length === 4);
    await served.clock.advance(10_000);
    expect((await Promise.all(asked)).map(({ statusCode }) => statusCode)).to.deep.equal([
      504, 504, 504, 504,
    ]);
    expect((await get('')).json()).to.deep.include({ code: 'log-busy' });
    for (const end of ends.splice(0)) end();
    const again = get('');
    await until('another is under way', () => ends.length === 1);
    ends[0]?.();
    expect((await again).statusCode).to.equal(200);
  });

  it('need the token of the server', async () => {
    await app.close();
    const read = { token: async () => 'the token of readers' };
    app = await makeApp(served, { read, write: undefined } as unknown as Parameters<typeof makeApp>[1]);
    for (const path of ['', '/default/zero', '/default/zero/events', '/default/zero/logs'])
      expect((await get(path)).statusCode).to.equal(401);
  });

  it('have logs that are followed, ten at a time, until their readers go', async () => {
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const heard: string[] = [];
    const follow = () => {
      const asked = request({ port, host: '127.0.0.1', path: '/api/htcjobs/default/zero/logs?follow=true' });
      asked.on('response', (answer) => {
        answer.on('data', (piece: Buffer) => heard.push(`${answer.statusCode ?? 0} ${piece.toString()}`));
        answer.on('error', () => undefined);
      });
      asked.on('error', () => undefined);
      asked.end();
      return asked;
    };
    const readers = Array.from({ length: 10 }, follow);
    await until('all ten hear the beginning', () => heard.length === 10);
    expect(new Set(heard)).to.deep.equal(new Set(['200 stdout of 2, 200\n']));
    const refused = await get('/default/zero/logs?follow=true');
    expect([refused.statusCode, refused.json<{ code: string }>().code]).to.deep.equal([503, 'log-busy']);
    for (const reader of readers) reader.destroy();
    await until('another may follow', async () => {
      const before = heard.length;
      const again = follow();
      await until('it is answered', () => heard.length > before);
      again.destroy();
      return heard.at(-1)?.startsWith('200') === true;
    });
  });
});

describe('HTCJobs by HTTP, of an API server that echoes our login', () => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { sub: 'system:serviceaccount:thresher', iss: 'https://iam', aud: ['https://kubernetes'] };
  const [head, payload, signature] = [
    part({ alg: 'RS256', kid: 'k' }),
    part(claims),
    randomBytes(256).toString('base64url'),
  ];
  const token = `${head}.${payload}.${signature}`;
  const echoes = {
    whole: token,
    'behind Bearer': `Bearer ${token}`,
    'without eyJ': token.slice(3),
    'from its payload on': `${payload}.${signature}`,
    signature,
  };
  const metadata = ['name', 'uid', 'namespace', 'resourceVersion', 'generateName', 'creationTimestamp'];
  const conditions = ['type', 'status', 'reason', 'message', 'lastTransitionTime'];
  const ofEvent = ['type', 'reason', 'message', 'lastTimestamp'];
  const plants: readonly (readonly [string, (text: string) => readonly object[]])[] = [
    ...metadata.map(
      (key) =>
        [
          key,
          (text: string): readonly object[] => [{ ...job, metadata: { ...job.metadata, [key]: text } }, {}],
        ] as const,
    ),
    ['labels', (text) => [{ ...job, metadata: { ...job.metadata, labels: { [text]: text } } }, {}]],
    ['spec', (text) => [{ ...job, spec: { ...job.spec, name: text, queueName: text, [text]: text } }, {}]],
    ['status', (text) => [{ ...job, status: { completedIndexes: text, jobid: [text], [text]: text } }, {}]],
    [
      'conditions',
      (text) => [
        {
          ...job,
          status: {
            conditions: [Object.fromEntries(conditions.map((key): [string, string] => [key, text]))],
          },
        },
        {},
      ],
    ],
    ['events', (text) => [job, Object.fromEntries(ofEvent.map((key) => [key, text]))]],
  ];

  it('show it in no field and no route, whole or without its beginning', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const login = kubeconfig({ server: server.url }, { token });
    const options = { k8s_config_file: writeKubeconfig(login, configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    const served = await ServedSample.make();
    served.htcJobs = reader;
    const app = await makeApp(served);
    try {
      const version = { resourceVersion: '1' };
      for (const [what, text] of Object.entries(echoes))
        for (const [field, plant] of plants) {
          const [item, event] = plant(text);
          server.always((response, request) => {
            const path = request.url.split('?')[0] ?? '';
            const items = path.endsWith('/events') ? [event] : [item];
            json(200, /\/(events|htcjobs)$/.test(path) ? { metadata: version, items } : (item ?? {}))(
              response,
              request,
            );
          });
          for (const route of ['', '/default/zero', '/default/zero/events', '/default/zero/logs']) {
            const { body } = await app.inject({
              url: `/api/htcjobs${route}`,
              headers: { host: '127.0.0.1' },
            });
            for (let at = 0; at + 24 <= text.length; at += 8)
              if (body.includes(text.slice(at, at + 24)))
                expect.fail(`${what} in ${field} by ${route}: ${body.slice(0, 2000)}`);
          }
        }
      // Its issuer may have spelled the name of an object in it.
      rememberSecret(
        `${head}.${Buffer.from('.{"a":"').toString('base64url')}alice-job-0f3a9c27d1${signature}`,
      );
      server.always(json(200, { metadata: version, items: [htcJob({}, 'alice-job-0f3a9c27d1')] }));
      const { body } = await app.inject({ url: '/api/htcjobs', headers: { host: '127.0.0.1' } });
      expect(body).to.include('"name":"alice-job-0f3a9c27d1"');
    } finally {
      await app.close();
      await served.store.close();
      await reader.close();
      await server.stop();
    }
  });
});
