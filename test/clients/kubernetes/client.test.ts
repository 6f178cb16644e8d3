import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { isKubernetesError, type KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import { Pacer } from '../../../src/clients/kubernetes/pacer.ts';
import { collectionPath, jobs, objectPath, pods } from '../../../src/clients/kubernetes/paths.ts';
import { type Clock, systemClock } from '../../../src/util/clock.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { kubeconfig, makeClient, rejection, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import {
  cut,
  json,
  lines,
  type Respond,
  type ScriptedServer,
  startScriptedServer,
  status,
} from '../../support/scripted-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const tls = resolve(import.meta.dirname, '../../fixtures/tls');
const pem = (name: string) => readFileSync(join(tls, name), 'utf8');
const signal = new AbortController().signal;
const path = collectionPath(jobs, 'grid');
const one = objectPath(jobs, 'grid', 'a');
const log = objectPath(pods, 'grid', 'a', 'log');
const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' } };

async function failure(promise: Promise<unknown>): Promise<KubernetesError> {
  const error = await rejection(promise);
  if (isKubernetesError(error)) return error;
  throw error;
}

async function all<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of iterable) found.push(value);
  return found;
}

describe('a client of the Kubernetes API', () => {
  let server: ScriptedServer;
  const clients: KubernetesClient[] = [];
  const connect = (...[file, options]: Partial<Parameters<typeof makeClient>>) => {
    const client = makeClient(
      file ?? writeKubeconfig(kubeconfig({ server: server.url }, { token: 'secret' })),
      options,
    );
    clients.push(client);
    return client;
  };
  /** `limit` of each list. */
  const limits = () =>
    server.requests.map(({ url }) => Number(new URL(url, server.url).searchParams.get('limit')));

  beforeEach(async () => {
    server = await startScriptedServer();
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await server.stop();
  });

  it("knows by every answer how far the server's clock is ahead, and takes less than two seconds for none", async () => {
    const now = Date.UTC(2026, 0, 1, 12);
    const clock: Clock = { ...systemClock, now: () => now, monotonic: () => 0 };
    const client = connect(undefined, { clock });
    const offsets: number[] = [client.clockOffset];
    // The header has whole seconds: half of one is what is to be expected of the rest.
    for (const ahead of [7_200_000, -7_200_000, 2000, 1000, 0, -2000, -3000]) {
      const date = new Date(now + ahead).toUTCString();
      // Refusals are answers, too.
      server.next(
        ahead > 0 ? json(200, job, { date }) : status(404, 'NotFound', 'no', { name: 'a' }, { date }),
      );
      await client.get(one, { signal }).catch(() => undefined);
      offsets.push(client.clockOffset);
    }
    expect(offsets).to.deep.equal([0, 7_200_500, -7_199_500, 2500, 0, 0, 0, -2500]);
    server.next(json(200, job, { date: 'yesterday' }));
    await client.get(one, { signal });
    expect(client.clockOffset).to.equal(-2500);
  });

  it("knows how far the server's clock is ahead of ours also where ours was set since the last answer", async () => {
    let [now, monotonic] = [Date.UTC(2026, 0, 1, 12), 5000];
    const clock: Clock = { ...systemClock, now: () => now, monotonic: () => monotonic };
    const client = connect(undefined, { clock });
    server.next(json(200, job, { date: new Date(now).toUTCString() }));
    await client.get(one, { signal });
    expect(client.clockOffset).to.equal(0);
    [now, monotonic] = [now + 3_610_000, monotonic + 10_000];
    expect(client.clockOffset).to.equal(-3_599_500);
  });

  it('sends plain JSON with its login, over connections that it keeps', async () => {
    server.always(json(201, { ...job, metadata: { name: 'a', uid: 'u' } }));
    const client = connect();
    const made = await client.create(path, job, { signal });
    expect(made.metadata).to.deep.equal({ name: 'a', uid: 'u' });
    for (let n = 0; n < 10; n++) await client.get(one, { signal });
    const [first, second] = server.requests;
    expect(first).to.deep.include({ method: 'POST', url: path, body: JSON.stringify(job), connection: 1 });
    expect(first!.headers).to.include({
      accept: 'application/json',
      'content-type': 'application/json',
      authorization: 'Bearer secret',
      'user-agent': 'thresher/test',
    });
    expect(second).to.include({ method: 'GET', url: one });
    // The next request may go out a moment before its connection is seen to be free again.
    expect(new Set(server.requests.map(({ connection }) => connection)).size).to.be.at.most(2);
  });

  describe('where an object is known by a secret of ours', () => {
    const secret = 'opaque-1f7c9a0e5b3d4826';
    const of = (metadata: object) => ({ ...job, metadata: { name: 'a', ...metadata } });
    const odd = [
      of({ uid: `u-${secret}` }),
      of({ name: `a-${secret}` }),
      of({ namespace: `n-${secret}` }),
      of({ resourceVersion: `7${secret}` }),
    ];

    beforeEach(() => {
      rememberSecret(secret);
    });

    for (const [what, call] of [
      ['created', (client: KubernetesClient) => client.create(path, job, { signal })],
      ['read', (client: KubernetesClient) => client.get(one, { signal })],
      ['changed', (client: KubernetesClient) => client.patch(one, {}, { kind: 'merge', signal })],
    ] as const)
      it(`takes no answer about one that was ${what}, and what became of it is not known`, async () => {
        const client = connect();
        for (const object of odd) {
          server.next(json(200, object));
          const error = await failure(call(client));
          expect(error).to.include({ code: 'kubernetes-secret-name', maybeDone: true });
          expect(error.message).to.contain('(hidden)').and.not.contain(secret);
        }
      });

    it('takes a name that it asked for itself: a password may be as a namespace', async () => {
      const client = connect();
      const object = of({ namespace: secret, name: `job-${secret}` });
      server.next(json(200, object));
      expect(await client.get(objectPath(jobs, secret, `job-${secret}`), { signal })).to.deep.equal(object);
    });
  });

  it('asks for metadata alone where the rest is of no use', async () => {
    server.always(json(200, { metadata: { resourceVersion: '1' }, items: [] }));
    const client = connect();
    await client.create(path, job, { signal, metadataOnly: true });
    await client.list(path, { signal, metadataOnly: true }, (object) => object);
    await client.list(path, { signal }, (object) => object);
    expect(server.requests.map(({ headers }) => headers.accept)).to.deep.equal([
      'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json',
      'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
      'application/json',
    ]);
  });

  it('finds an API behind a path', async () => {
    server.always(json(200, job));
    await connect(writeKubeconfig(kubeconfig({ server: `${server.url}/k8s/clusters/x/` }))).get(one, {
      signal,
    });
    expect(server.requests[0]!.url).to.equal(`/k8s/clusters/x${one}`);
  });

  it('opens no more connections than it may, and answers all the same', async () => {
    server.always((response, request) =>
      setTimeout(() => {
        json(200, job)(response, request);
      }, 5),
    );
    const client = connect(undefined, { connections: 3 });
    await Promise.all(Array.from({ length: 30 }, () => client.get(one, { signal })));
    expect(new Set(server.requests.map(({ connection }) => connection)).size).to.equal(3);
  });

  it('deletes one object, of this identity, as it is told', async () => {
    server.always(json(200, { kind: 'Status', status: 'Success' }));
    await connect().delete(one, { signal, uid: 'u', propagationPolicy: 'Background', gracePeriodSeconds: 0 });
    expect(server.requests[0]).to.include({ method: 'DELETE', url: one });
    expect(JSON.parse(server.requests[0]!.body)).to.deep.equal({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'u' },
      propagationPolicy: 'Background',
      gracePeriodSeconds: 0,
    });
  });

  it('the client keeps its connections also after deletes', async () => {
    server.always(json(200, { kind: 'Status', status: 'Success' }));
    const client = connect();
    for (let n = 0; n < 10; n++) await client.delete(one, { signal, uid: 'u' });
    expect(new Set(server.requests.map(({ connection }) => connection)).size).to.be.at.most(2);
  });

  it('the client of the Kubernetes API never deletes a collection', async () => {
    const error = await rejection(connect().delete(path, { signal }));
    expect(error)
      .to.be.instanceOf(TypeError)
      .with.property('message')
      .that.contains('not the path of one object');
    expect(server.requests).to.deep.equal([]);
  });

  it('patches in each of the ways there are', async () => {
    server.always(json(200, job));
    const client = connect();
    await client.patch(one, { a: 1 }, { signal, kind: 'merge' });
    await client.patch(one, { a: 1 }, { signal, kind: 'strategic' });
    await client.patch(one, { a: 1 }, { signal, kind: 'apply', fieldManager: 'thresher', force: true });
    expect(server.requests.map(({ headers }) => headers['content-type'])).to.deep.equal([
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
      'application/apply-patch+yaml',
    ]);
    expect(server.requests[2]!.url).to.equal(`${one}?fieldManager=thresher&force=true`);
    expect(await rejection(client.patch(one, {}, { signal, kind: 'apply' }))).to.be.instanceOf(TypeError);
  });

  it('asks what a create would do, and shows the warnings', async () => {
    server.next(json(201, job, { warning: '299 - "unknown field \\"spec.a\\"", 299 - "b, c"' }));
    const { object, warnings } = await connect().dryRun(path, job, { signal });
    expect(object).to.deep.equal(job);
    expect(warnings).to.deep.equal(['unknown field "spec.a"', 'b, c']);
    expect(server.requests[0]!.url).to.equal(`${path}?dryRun=All&fieldValidation=Strict`);
  });

  it('a refusal has the words of the API, once', async () => {
    server.always(status(422, 'Invalid', 'Job.batch "a" is invalid: spec.template: Required value'));
    const error = await failure(connect().create(path, job, { signal }));
    expect(error).to.include({
      code: 'kubernetes-invalid',
      status: 422,
      reason: 'Invalid',
      maybeDone: false,
    });
    expect(error.message).to.contain(server.url).and.contain('spec.template: Required value');
    expect(server.requests).to.have.length(1);
  });

  it('hole 3: shows nothing of a Secret that a webhook repeats when it refuses it, whole or cut off', async () => {
    const value = Buffer.from('the password of this and of that').toString('base64');
    const pem = Buffer.from('-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n').toString(
      'base64',
    );
    const secret = { metadata: { name: 's' }, data: { word: value, key: pem, short: 'YQ==' } };
    const says = `denied the request: {"word":"${value}","key":"${pem}"} and ${value.slice(0, 20)}`;
    server.always(status(403, 'Forbidden', says));
    const secrets = '/api/v1/namespaces/n/secrets';
    const errors = [
      await failure(connect().create(secrets, secret, { signal })),
      await failure(connect().patch(`${secrets}/s`, secret, { kind: 'merge', signal })),
    ];
    for (const { message } of errors) {
      expect(message).to.contain('HTTP 403 (Forbidden); what it says is not shown, as it may have contents');
      expect(message).to.not.contain(value.slice(0, 16));
    }
  });

  it('hole 3: shows no part of a Secret, in whatever lines, cuts and forms a webhook repeats it', async () => {
    const body = Buffer.from(Array.from({ length: 600 }, (_, at) => (at * 73 + 11) % 251)).toString('base64');
    const lines = body.match(/.{1,64}/g) ?? [];
    const pem = `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
    const plain = 'zq8WvTn4Lr2Kx9Pb7Mc';
    const yaml = 'user: me\npassword: hunter22hunter22\n';
    const [key, word, text] = [pem, plain, yaml].map((one) => Buffer.from(one).toString('base64'));
    const data = { key, word, text, pin: Buffer.from('1234567').toString('base64') };
    const wrapped = (key ?? '').match(/.{1,76}/g) ?? [];
    const asUrl = Buffer.from(pem).toString('base64url');
    for (const says of [
      ...[wrapped.join('\n'), wrapped.join('\\n'), `...${(key ?? '').slice(40)}`, asUrl.slice(3)],
      ...[
        pem.slice(30),
        `key word has the value ${plain}`,
        `cut ${plain.slice(4, 15)}`,
        yaml,
        'the pin 1234567',
      ],
      JSON.stringify({ stringData: { key: pem } }),
    ]) {
      server.always(status(403, 'Forbidden', `kyverno denied it: ${says}`));
      for (const secret of [
        { metadata: { name: 's' }, data },
        { stringData: { key: pem, word: plain, text: yaml, pin: '1234567' } },
      ]) {
        const { message } = await failure(
          connect().create('/api/v1/namespaces/n/secrets', secret as never, { signal }),
        );
        expect(message, says).to.contain('HTTP 403 (Forbidden)').and.contain('is not shown');
        const parts = [
          plain,
          'hunter22hunter22',
          '1234567',
          ...lines.slice(0, -1),
          ...wrapped.slice(0, -1),
          asUrl,
        ];
        for (const part of parts)
          for (let at = 0; at + 8 <= part.length; at += 4)
            expect(message, says).to.not.contain(part.slice(at, at + 8));
        expect(message).to.not.contain('1234567');
      }
    }
  });

  it('hole 3: nothing of an answer about Secrets is shown, whatever is asked and answered', async () => {
    const plain = 'hunter2-Very-Private-Value';
    const value = Buffer.from(plain).toString('base64');
    const parts = [
      value.slice(0, 12),
      value.slice(-12),
      plain.slice(0, 8),
      Buffer.from(plain).toString('hex'),
    ];
    const said = `got {"data":{"cfg":"${value}"}} ${plain} ${Buffer.from(plain).toString('hex')}`;
    const refused = (code: number, reason: string, message = said) => status(code, reason, message);
    const one = '/api/v1/namespaces/alice/secrets/db';
    const all = '/api/v1/namespaces/alice/secrets';
    const text =
      (code: number, body: string): Respond =>
      (response) => {
        response.writeHead(code, { 'content-type': 'application/json' });
        response.end(body);
      };
    const watching = { signal, resourceVersion: '1', timeoutSeconds: 60, silence: 90_000 };
    const answers: readonly Respond[] = [
      text(200, `{"data":{"cfg":"${value}"},"kind":"Secret","metadata":{"name":`),
      text(200, `{"data":{"cfg":"${value}"}}{"data":{}}`),
      text(200, `apiVersion: v1\ndata:\n  cfg: ${value}\nkind: Secret\n`),
      text(200, `"${value}"`),
      text(400, `rejected response: {"data":{"cfg":"${value}"},"kind":"Secret"}`),
      text(502, plain),
      refused(422, 'Invalid', `conversion webhook failed: ${said}`),
      refused(403, 'Forbidden', `filter hid ${plain}`),
      refused(403, 'Forbidden', `admission webhook "w.site.org" denied the request: ${said}`),
      refused(422, 'Invalid', `Secret "db" is invalid: data[cfg]: Invalid value: "${value}"`),
      refused(500, value, plain),
      refused(404, 'NotFound', `secrets "db" not found in ${plain}`),
      refused(404, 'NotFound', `secrets "db" not found${plain}`),
    ];
    const calls: readonly ((client: KubernetesClient) => Promise<unknown>)[] = [
      (client) => client.get(one, { signal }),
      (client) => client.list(all, { signal }, (object) => object),
      (client) => client.list('/api/v1/secrets', { signal }, (object) => object),
      (client) => client.create(all, {}, { signal }),
      (client) => client.dryRun(all, {}, { signal }),
      (client) => client.patch(one, {}, { kind: 'merge', signal }),
    ];
    for (const answer of answers)
      for (const call of calls) {
        server.always(answer);
        const error = await failure(call(connect()));
        for (const part of parts) {
          expect(error.message).to.not.contain(part);
          expect(String(error.reason)).to.not.contain(part);
        }
      }
    server.always(answers[4]!);
    const deletion = await failure(connect().delete(one, { signal }));
    expect(deletion.message).to.match(/HTTP 400 to DELETE \/api\/v1\/namespaces\/alice\/secrets\/db$/);
    const event = { type: 'ERROR', object: { kind: 'Status', code: 500, message: said } };
    server.always(text(200, `${JSON.stringify(event)}\n`));
    const watched = await failure(connect().watch(all, watching).next());
    expect(watched.message).to.match(
      /: HTTP 500; what it says is not shown, as it may have contents of a Secret$/,
    );
  });

  it('a namespace that is called secrets has answers as all others', async () => {
    for (const path of ['/api/v1/namespaces/secrets', '/api/v1/namespaces/secrets/pods/p']) {
      server.always(status(403, 'Forbidden', 'filter hid pods from others'));
      expect((await failure(connect().get(path, { signal }))).message).to.contain(
        'filter hid pods from others',
      );
    }
  });

  it('hole 8: takes no more of an answer than an API server would say', async () => {
    const endless =
      (code: number): Respond =>
      (response) => {
        response.writeHead(code, { 'content-type': 'application/json' });
        const piece = Buffer.alloc(4 * 1024 * 1024, ' ');
        const go = () => {
          if (!response.destroyed) response.write(piece, go);
        };
        go();
      };
    const client = connect();
    for (const code of [200, 500]) {
      server.next(endless(code));
      const { code: is, message, maybeDone } = await failure(client.create(path, job, { signal }));
      expect([is, maybeDone]).to.deep.equal(['kubernetes-too-large', true]);
      expect(message).to.match(code === 200 ? /more than 8388608 bytes/ : /more than 1048576 bytes/);
    }
    server.next(endless(500));
    await failure(
      all(client.watch(path, { signal, resourceVersion: '5', timeoutSeconds: 300, silence: 60_000 })),
    );
    expect(server.requests).to.have.length(3);
  });

  it('hole 8: takes no answer of millions of values, and no list without end', async () => {
    const client = connect();
    const list = () => failure(client.list(path, { signal }, ({ metadata }) => metadata?.name));
    const millions = json(200, {
      metadata: { resourceVersion: '1' },
      items: Array.from({ length: 1_600_000 }, () => ({})),
    });
    server.always(millions);
    const { code, message } = await list();
    expect([code, message]).to.deep.equal([
      'kubernetes-too-large',
      message.match(
        /^one object of \S+\/jobs alone is too large: .*more than 300000 lists and objects.*/,
      )?.[0],
    ]);
    // The last one asks who it is.
    expect(limits()).to.deep.equal([250, 125, 62, 31, 15, 7, 3, 1, 1]);
    const ids = Array.from({ length: 10_000 }, (_, at) => `1.${at}`);
    const jobs = {
      status: {
        jobid: ids,
        jobIds: ids,
        returnCodes: ids.map((_, index) => ({ index, exitCode: 1, reported: 1 })),
      },
      source: `"\\",{[`.repeat(100_000),
    };
    server.next(json(200, { metadata: { resourceVersion: '1' }, items: [jobs] }));
    const { items } = await client.list(path, { signal }, () => 1);
    expect(items, 'a HTCJob as large as it may be').to.have.length(1);
    server.always(
      json(200, { metadata: { resourceVersion: '1', continue: 'x' }, items: [{ metadata: { name: 'a' } }] }),
    );
    expect((await list()).message).to.contain('a page behind which one comes that was there before');
    // The one after it was asked for while it was read.
    expect(server.requests.length).to.be.within(12, 13);
  });

  it('hole 8: takes no list in a circle, and none of empty pages without end', async () => {
    const client = connect();
    let pages = 0;
    const serve = (next: () => string, items: readonly object[]) => {
      pages = 0;
      server.always((response, seen) => {
        pages++;
        json(200, { metadata: { resourceVersion: '1', continue: next() }, items })(response, seen);
      });
    };
    const list = () => failure(client.list(path, { signal }, ({ metadata }) => metadata?.name));
    for (const length of [1, 2, 3, 7])
      for (const before of [0, 3]) {
        const next = () => (pages <= before ? `to ${pages}` : `in ${(pages - before) % length}`);
        serve(next, [{ metadata: { name: 'a' } }]);
        expect((await list()).message).to.contain('one comes that was there before');
        expect(pages, `of ${length} pages behind ${before}`).to.be.at.most(3 * (length + before) + 1);
      }
    serve(() => String(pages), []);
    const { code, message } = await list();
    expect([code, message.includes('more than 1000 pages without an object')]).to.deep.equal([
      'kubernetes-no-api',
      true,
    ]);
    expect(pages).to.be.lessThan(1010);
  });

  it('hole 8: takes no list whose tokens and versions are longer than those of a server, or no texts', async () => {
    const client = connect();
    const list = () => client.list(path, { signal }, ({ metadata }) => metadata?.name);
    const items = [{ metadata: { name: 'a' } }];
    const token = 't'.repeat(10_000);
    const said = [{ continue: token, resourceVersion: 'v'.repeat(253) }, { resourceVersion: '1' }];
    server.next(...said.map((metadata) => json(200, { metadata, items })));
    expect(await list()).to.deep.equal({ items: ['a', 'a'], resourceVersion: '1' });
    for (const metadata of [
      ...[`${token}t`, 'x'.repeat(1_000_000), { a: 1 }, ['x'], 7, true].map((next) => ({ continue: next })),
      ...['v'.repeat(254), { a: 1 }, ['1'], 1, null].map((resourceVersion) => ({ resourceVersion })),
    ]) {
      const before = server.requests.length;
      server.always(json(200, { metadata: { resourceVersion: '1', ...metadata }, items }));
      for (const call of [
        list,
        () => client.version(path, { signal }),
        () => client.exists(path, { signal }),
      ]) {
        const { code, message } = await failure(call());
        expect(code, JSON.stringify(metadata).slice(0, 80)).to.equal('kubernetes-no-api');
        expect(message.length, 'nothing of it is shown').to.be.lessThan(300);
      }
      // The page behind one may be asked for while that one is read.
      expect(server.requests.length - before, 'requests').to.be.at.most(4);
    }
  });

  it('hole 7: takes no items that are no list of objects for none, nor for some', async () => {
    const client = connect();
    const metadata = { resourceVersion: '1' };
    for (const items of ['', 'abc', 0, false, {}, { a: 1 }, [null], ['a'], [[]]]) {
      server.always(json(200, { metadata, items }));
      for (const call of [
        () => client.list(path, { signal }, () => 1),
        () => client.exists(path, { signal }),
      ])
        expect((await failure(call())).code, JSON.stringify(items)).to.equal('kubernetes-no-api');
    }
    // So Go writes a list without elements.
    server.always(json(200, { metadata, items: null }));
    expect(await client.list(path, { signal }, () => 1)).to.deep.equal({ items: [], resourceVersion: '1' });
    expect(await client.exists(path, { signal })).to.equal(false);
  });

  describe('hole 8: that lists objects whose page is too large', () => {
    /** A collection of objects, of which the page that begins at `continue` has `limit`. */
    const serve = (objects: readonly object[]) => {
      const texts = objects.map((object) => JSON.stringify(object));
      server.always((response, { url }) => {
        const { searchParams } = new URL(url, server.url);
        const from = Number(searchParams.get('continue') ?? 0);
        const to = from + Number(searchParams.get('limit'));
        const next = to < texts.length ? { continue: String(to) } : {};
        const metadata = JSON.stringify({ resourceVersion: '9', ...next });
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"metadata":${metadata},"items":[${texts.slice(from, to).join(',')}]}`);
      });
    };
    const names = Array.from({ length: 100 }, (_, at) => `j${at}`);
    const listed = async () => {
      const client = connect();
      return (await client.list(path, { signal }, ({ metadata }) => metadata?.name)).items;
    };

    it('asks for the same page with fewer objects where they have too many bytes', async () => {
      const source = 'x'.repeat(200_000);
      serve(names.map((name) => ({ metadata: { name }, spec: { source } })));
      expect(await listed()).to.deep.equal(names);
      expect(limits().slice(0, 3)).to.deep.equal([250, 125, 62]);
      expect(server.requests.length).to.be.at.most(8);
    });

    it('asks for the same page with fewer objects where they have too many values', async () => {
      const ownerReferences = Array.from({ length: 5000 }, () => ({}));
      serve(names.map((name) => ({ metadata: { name, ownerReferences } })));
      expect(await listed()).to.deep.equal(names);
      expect(limits().slice(0, 3)).to.deep.equal([250, 125, 62]);
    });

    it('asks for pages that are read in moments where all objects are full of texts, and tries no larger ones each time', async () => {
      const jobIds = Array.from({ length: 20_000 }, (_, at) => `1.${at}`);
      serve(names.map((name) => ({ metadata: { name }, status: { jobIds } })));
      expect(await listed()).to.deep.equal(names);
      expect(limits().slice(0, 3)).to.deep.equal([250, 125, 62]);
      const sizes = limits().filter((size) => size < 31);
      expect(sizes.filter((size) => size > 15)).to.deep.equal([30]);
      expect(sizes.length).to.be.at.most(10);
    });

    it('asks for more objects again behind one that is large', async () => {
      const many = Array.from({ length: 250_000 }, () => []);
      const more = Array.from({ length: 600 }, (_, at) => `k${at}`);
      serve([{ metadata: { name: 'large' }, many }, ...more.map((name) => ({ metadata: { name } }))]);
      expect(await listed()).to.deep.equal(['large', ...more]);
      expect(server.requests.length).to.be.at.most(30);
    });

    it('asks for the page behind a good one again, and not for the good one', async () => {
      const many = Array.from({ length: 200_000 }, () => []);
      const large = (name: string) => ({ metadata: { name }, spec: { many } });
      const small = (name: string) => ({ metadata: { name } });
      const objects = Array.from({ length: 252 }, (_, at) => (at < 250 ? small : large)(`j${at}`));
      serve(objects);
      expect(await listed()).to.deep.equal(objects.map(({ metadata }) => metadata.name));
      const tokens = server.requests.map(({ url }) => new URL(url, server.url).searchParams.get('continue'));
      expect(tokens.filter((token) => token === null)).to.have.length(1);
    });

    it('reads an object that has as many values as are read in a moment, also by itself and in a watch', async () => {
      const many = Array.from({ length: 290_000 }, () => []);
      const large = { metadata: { name: 'large' }, spec: { many } };
      const versioned = { ...large, metadata: { name: 'large', resourceVersion: '6' } };
      serve([{ metadata: { name: 'a' } }, large, { metadata: { name: 'b' } }]);
      expect(await listed()).to.deep.equal(['a', 'large', 'b']);
      const client = connect();
      server.next(
        json(200, large),
        lines([{ type: 'ADDED', object: versioned }], (response) => response.end()),
      );
      expect(await client.get(one, { signal })).to.have.nested.property('metadata.name', 'large');
      const options = { signal, resourceVersion: '5', timeoutSeconds: 300, silence: 60_000 };
      expect(await all(client.watch(path, options))).to.have.length(1);
    });
  });

  describe('hole 8: that reads what takes long to read', () => {
    const many = (length: number, piece: (at: number) => string) =>
      Array.from({ length }, (_, at) => piece(at));
    const keysOf = (length: number) => many(length, (at) => `"${at.toString(36)}":1`).join(',');
    const textOf = (part: string) =>
      `{"metadata":{"name":"large","namespace":"user","resourceVersion":"1"},${part}}`;
    const answers =
      (body: string): Respond =>
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(body);
      };
    const tooLong = {
      'many keys': textOf(`"status":{${keysOf(41_000)}}`),
      'objects of which each has another key': textOf(
        `"status":[${many(41_000, (at) => `{"${at.toString(36)}":1}`).join(',')}]`,
      ),
      'more lists than are read at once': textOf(`"status":[${many(310_000, () => '[]').join(',')}]`),
      'more values than are read at once': textOf(`"status":[${many(410_000, () => '1').join(',')}]`),
      'blanks without end': textOf(`"status":${' '.repeat(2_100_000)}1`),
      'a number without end': textOf(`"status":${'1'.repeat(2_100_000)}`),
    };
    for (const [what, text] of Object.entries(tooLong))
      it(`refuses an object with ${what}, by itself, in a watch and in a list, which names it`, async () => {
        const client = connect();
        const options = { signal, resourceVersion: '5', timeoutSeconds: 300, silence: 60_000 };
        server.next(answers(text));
        expect((await failure(client.get(one, { signal }))).code).to.equal('kubernetes-too-large');
        server.next(answers(`{"type":"ADDED","object":${text}}\n`));
        expect((await failure(all(client.watch(path, options)))).code).to.equal('kubernetes-too-large');
        server.always((response, seen) => {
          const isOfMetadata = String(seen.headers.accept).includes('PartialObjectMetadataList');
          const item = isOfMetadata ? textOf('"kind":"PartialObjectMetadata"') : text;
          answers(`{"metadata":{"resourceVersion":"9"},"items":[${item}]}`)(response, seen);
        });
        const { code, message } = await failure(client.list(path, { signal }, () => 1));
        expect(code).to.equal('kubernetes-too-large');
        expect(message).to.match(/^object user\/large of \S+ alone is too large: /);
      });

    const filled = {
      labels: `"labels":{${keysOf(200_000)}}`,
      annotations: `"annotations":{${keysOf(60_000)}}`,
      owners: `"ownerReferences":[${many(20_000, () => '{"apiVersion":"v1","kind":"A","name":"b","uid":"c"}').join(',')}]`,
      'a command of objects': `"command":{"}]":{${keysOf(100_000)}}}`,
      'managed fields that seem to end early': `"a":1,"managedFields":[{"fieldsV1":{"f:}]":{},${keysOf(200_000)}}}]`,
    };
    for (const [what, part] of Object.entries(filled))
      it(`reads an object that its author filled with ${what} without them, and the others of its page`, async () => {
        server.next(
          answers(
            `{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"large",${part}},"spec":1},{"metadata":{"name":"b"}}]}`,
          ),
        );
        const { items } = await connect().list(path, { signal }, (object) => object);
        expect(items.map(({ metadata }) => metadata?.name)).to.deep.equal(['large', 'b']);
        expect(JSON.stringify(items).length).to.be.lessThan(200);
        expect(items[0]).to.have.property('spec', 1);
        expect(limits()).to.deep.equal([250]);
      });

    it('reads labels, annotations, owners and commands that are as many as objects have', async () => {
      const labels = Object.fromEntries(many(500, String).map((name) => [name, '{"labels":{']));
      const ownerReferences = [{ kind: 'Job', name: 'a', labels: null }];
      const object = {
        metadata: { name: 'a', labels, annotations: labels, ownerReferences },
        spec: { command: many(99_000, String), labels: 'text', annotations: null },
      };
      server.next(json(200, object));
      expect(await connect().get(one, { signal })).to.deep.equal(object);
    });

    it('keeps no more of a list than the memory of the daemon has room for', async () => {
      server.always((response, seen) => {
        const { searchParams } = new URL(seen.url, server.url);
        const next = String(Number(searchParams.get('continue') ?? 0) + 1);
        const items = [{ metadata: { name: next } }];
        json(200, { metadata: { resourceVersion: '1', continue: next }, items })(response, seen);
      });
      // One text is there once, and counts for each object that it is kept of.
      const text = 'x'.repeat(64 * 1024 * 1024);
      const { code, message } = await failure(connect().list(path, { signal }, () => ({ text })));
      expect(code).to.equal('kubernetes-too-large');
      expect(message).to.contain('more than 536870912 characters that would be kept in memory');
      expect(server.requests.length).to.be.at.most(12);
    });

    const events = {
      'long ones': { many: 8, text: 'x'.repeat(70_000), takes: 20 },
      'short ones': { many: 2000, text: '', takes: 0.5 },
    };
    for (const [what, { many, text, takes }] of Object.entries(events))
      it(`gives others their turn between the lines of a watch, by the time that they take: ${what}`, async () => {
        const event = { type: 'MODIFIED', object: { metadata: { name: 'a', resourceVersion: '6', text } } };
        server.next(lines([`${JSON.stringify(event)}\n`.repeat(many)], (response) => response.end()));
        const options = { signal, resourceVersion: '5', timeoutSeconds: 300, silence: 60_000 };
        let [seen, inTurn, most] = [0, 0, 0];
        const clock = { ...systemClock, monotonic: () => seen * takes };
        for await (const one of connect(undefined, { clock }).watch(path, options)) {
          expect(one.type).to.equal('MODIFIED');
          if (inTurn === 0) setImmediate(() => (inTurn = 0));
          seen++;
          inTurn++;
          most = Math.max(most, inTurn);
        }
        expect(seen).to.equal(many);
        expect(most * takes, 'ms in one turn').to.be.at.most(21);
      });
  });

  it('hole 7: takes the first of two headers that a gateway and the API server both send', async () => {
    const client = connect();
    const [ahead, behind] = [3_600_000, -3_600_000].map((by) => new Date(Date.now() + by).toUTCString());
    server.always((response) => {
      response.writeHead(504, ['Retry-After', '3', 'Retry-After', '7', 'Date', ahead!, 'Date', behind!]);
      response.end('upstream timeout');
    });
    for (const call of [
      () => client.create(path, job, { signal }),
      () => client.delete(one, { signal }),
      () => client.list(path, { signal }, () => 1),
      () => all(client.logs(log, { signal })),
    ]) {
      const { code, maybeDone, retryAfter } = await failure(call());
      expect([code, maybeDone, retryAfter]).to.deep.equal(['kubernetes-server-error', true, 3000]);
    }
    expect(client.clockOffset, "the clock's lead").to.be.greaterThan(1_800_000);
    server.next((response) => {
      response.writeHead(201, ['Warning', '299 - "a"', 'Warning', '299 - "b"']);
      response.end(JSON.stringify(job));
    });
    expect((await client.dryRun(path, job, { signal })).warnings).to.deep.equal(['a', 'b']);
  });

  it('hole 7: leaves open what became of a request whose answer it fails at, whatever fails', async () => {
    // Read for the date in the header, and so first behind an answer.
    const now = () => {
      if (server.requests.length > 0) throw new TypeError('a fault of our own');
      return systemClock.now();
    };
    const client = connect(undefined, { clock: { ...systemClock, now } });
    server.always(status(503, 'ServiceUnavailable', 'later', {}, { 'retry-after': '1' }));
    const { code, maybeDone, message } = await failure(client.create(path, job, { signal }));
    expect([code, maybeDone]).to.deep.equal(['kubernetes-no-api', true]);
    expect(message).to.contain('cannot be read: a fault of our own');
  });

  it('does not take a yes that is no answer of the API for one', async () => {
    const client = connect();
    server.next((response) => {
      response.end('<html>welcome</html>');
    });
    expect(await failure(client.create(path, job, { signal }))).to.include({
      code: 'kubernetes-no-api',
      maybeDone: true,
    });
    server.next(json(200, {}));
    expect(await failure(client.list(path, { signal }, () => 1))).to.have.property(
      'code',
      'kubernetes-no-api',
    );
    server.next((response) => response.writeHead(302, { location: 'https://login' }).end());
    expect(await failure(client.get(one, { signal }))).to.have.property('code', 'kubernetes-no-api');
  });

  describe('with credentials that are refused', () => {
    it('a client with refused credentials reads them again and asks once more', async () => {
      const token = join(temporaryDirectory(), 'token');
      writeFileSync(token, 'old');
      const client = connect(writeKubeconfig(kubeconfig({ server: server.url }, { tokenFile: token })));
      server.next(
        (response, request) => {
          writeFileSync(token, 'new');
          status(401, 'Unauthorized', 'Unauthorized')(response, request);
        },
        json(200, job),
      );
      expect(await client.get(one, { signal })).to.deep.equal(job);
      expect(server.requests.map(({ headers }) => headers.authorization)).to.deep.equal([
        'Bearer old',
        'Bearer new',
      ]);
    });

    it('a client with refused credentials asks no third time, however long ago the first was', async () => {
      const clock = new ManualClock();
      const client = connect(undefined, { clock, timeout: 60_000 });
      await clock.advance(1000);
      server.always((response, request) => {
        clock.advance(6000).then(
          () => {
            status(401, 'Unauthorized', 'Unauthorized')(response, request);
          },
          () => undefined,
        );
      });
      expect(await failure(client.get(one, { signal }))).to.have.property('code', 'kubernetes-unauthorized');
      expect(server.requests).to.have.length(2);
    });

    it('a client gives up when the new credentials are refused too', async () => {
      server.always(status(401, 'Unauthorized', 'Unauthorized'));
      expect(await failure(connect().get(one, { signal }))).to.include({
        code: 'kubernetes-unauthorized',
        status: 401,
      });
      expect(server.requests).to.have.length(2);
    });
  });

  describe('that is asked for patience', () => {
    const full = status(429, 'TooManyRequests', 'slow down', {}, { 'retry-after': '7' });

    it('the client waits as long as the server says, and so do all callers of that cluster', async () => {
      const clock = new ManualClock();
      const pacer = new Pacer({ perSecond: 1000, burst: 1000 }, clock, () => 0);
      await clock.advance(1000);
      const file = writeKubeconfig(kubeconfig({ server: server.url }));
      const [a, b] = [connect(file, { clock, pacer }), connect(file, { clock, pacer })];
      server.next(full);
      server.always(json(200, job));
      const first = a.get(one, { signal });
      await until('it waits', () => clock.sleeping.includes(7000));
      const second = b.get(one, { signal });
      await clock.advance(6999);
      expect(server.requests).to.have.length(1);
      await clock.advance(1);
      expect(await Promise.all([first, second])).to.deep.equal([job, job]);
      expect(server.requests).to.have.length(3);
    });

    it('the client gives up after several 429s, or at once if the wait is too long', async () => {
      server.always(status(429, 'TooManyRequests', 'slow down', {}, { 'retry-after': '0' }));
      expect(await failure(connect().get(one, { signal }))).to.include({
        code: 'kubernetes-too-many-requests',
        maybeDone: false,
      });
      expect(server.requests).to.have.length(5);
      server.always(status(429, 'TooManyRequests', 'slow down', {}, { 'retry-after': '3600' }));
      const error = await failure(connect().get(one, { signal }));
      expect(error.message).to.match(/asked for 300 s without requests/);
      expect(error.retryAfter).to.be.within(290_000, 300_000);
      expect(server.requests).to.have.length(6);
    });
  });

  describe('that gets no answer', () => {
    it('the error says that nothing was done when no server listens', async () => {
      const { url } = server;
      await server.stop();
      const error = await failure(
        connect(writeKubeconfig(kubeconfig({ server: url }))).create(path, job, { signal }),
      );
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: false });
      expect(error.message).to.equal(`${url} refuses connections: nothing listens there`);
    });

    it('the error says that the name of the server does not exist', async () => {
      const client = connect(writeKubeconfig(kubeconfig({ server: 'http://no-such-name.invalid' })));
      const error = await failure(client.create(path, job, { signal }));
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: false });
      expect(error.message).to.contain('http://no-such-name.invalid cannot be found');
    });

    it('the error says that the request may be done when the connection broke after it was sent', async () => {
      server.always(cut);
      const error = await failure(connect().create(path, job, { signal }));
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: true });
      expect(error.message).to.contain('closed the connection before its answer was complete');
      expect(server.requests, 'it is not sent twice').to.have.length(1);
    });

    it('the error says that the request may be done when the answer was cut off', async () => {
      server.always((response) => {
        response.writeHead(201, { 'content-length': '1000' });
        response.write('{"kind":', () => response.destroy());
      });
      expect(await failure(connect().create(path, job, { signal }))).to.include({
        code: 'kubernetes-unreachable',
        maybeDone: true,
      });
    });

    it('a request without an answer waits no longer than its timeout', async () => {
      const clock = new ManualClock();
      const client = connect(undefined, { clock, timeout: 9000 });
      await clock.advance(1000);
      const waiting = failure(client.create(path, job, { signal }));
      await until('it was sent', () => server.requests.length === 1 && clock.sleeping.includes(9000));
      await clock.advance(9000);
      const error = await waiting;
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: true });
      expect(error.message).to.contain(`did not answer POST ${path} within 9 s`);
      await until('the connection is closed', () => server.connections === 0);
    });

    it('a request that its caller gives up ends at once, and says whether it was sent', async () => {
      const client = connect(undefined, { connections: 1 });
      const abort = new AbortController();
      const sent = failure(client.create(path, job, { signal: abort.signal }));
      await until('it was sent', () => server.requests.length === 1);
      const waiting = failure(client.create(path, job, { signal: abort.signal }));
      await systemClock.sleep(20);
      abort.abort();
      expect(await sent).to.include({ code: 'kubernetes-given-up', maybeDone: true });
      expect(await waiting).to.include({ code: 'kubernetes-given-up', maybeDone: false });
      expect(await failure(client.get(one, { signal: abort.signal }))).to.include({
        code: 'kubernetes-given-up',
        maybeDone: false,
      });
      server.always(json(200, job));
      expect(await client.get(one, { signal }), 'others go on').to.deep.equal(job);
      expect(
        server.requests.filter(({ method }) => method === 'POST'),
        'what was given up never goes out',
      ).to.have.length(1);
    });

    it('a request does not wait for another one that hangs', async () => {
      const client = connect(undefined, { timeout: 20_000 });
      server.next(() => undefined);
      const hanging = failure(client.get(one, { signal }));
      await until('it was sent', () => server.requests.length === 1);
      server.always(json(200, job));
      expect(await client.get(one, { signal })).to.deep.equal(job);
      await client.close();
      expect(await hanging).to.have.property('code', 'kubernetes-unreachable');
      expect(await failure(client.get(one, { signal }))).to.have.property('code', 'kubernetes-given-up');
    });
  });

  describe('that gets objects with managedFields', () => {
    const fields = (key: string) => [
      { manager: 'a', fieldsV1: { 'f:spec': { [key]: {} } } },
      { manager: 'b', subresource: 'status', fieldsV1: { 'f:status': {} } },
    ];
    const object = (metadata: object) => ({ kind: 'Job', metadata, spec: { text: ',"managedFields":[' } });

    it('managedFields are left out of one object and of each in a list', async () => {
      const managed = object({ name: 'a', managedFields: fields('k:{"name":"pilot"}'), labels: { a: 'b' } });
      server.next(json(200, managed));
      expect(await connect().get(one, { signal })).to.deep.equal(object({ name: 'a', labels: { a: 'b' } }));
      const items = [managed, object({ name: 'b' }), object({ name: 'c', managedFields: fields('f:x') })];
      server.next(json(200, { kind: 'JobList', metadata: { resourceVersion: '9' }, items }));
      const found = await connect().list(path, { signal }, (each) => each);
      expect(found.items).to.deep.equal([
        object({ name: 'a', labels: { a: 'b' } }),
        ...['b', 'c'].map((name) => object({ name })),
      ]);
    });

    it('an object has all the rest if a text in its managedFields looks like their end', async () => {
      server.next(json(200, object({ name: 'a', managedFields: fields('v:"}]"') })));
      expect(await connect().get(one, { signal })).to.deep.equal(object({ name: 'a' }));
    });
  });

  describe('that lists', () => {
    const page = (names: string[], next?: string) =>
      json(200, {
        kind: 'JobList',
        metadata: { resourceVersion: '9', ...(next && { continue: next }) },
        items: names.map((name) => ({ metadata: { name } })),
      });
    const names = (client: KubernetesClient) =>
      client.list(path, { signal, labelSelector: 'a=b', limit: 2 }, ({ metadata }) =>
        metadata?.name === 'skip' ? undefined : metadata?.name,
      );

    it('a listing takes all pages, and keeps the wanted parts', async () => {
      server.next(page(['a', 'skip'], 'next/1'), page(['b'], 'next/2'), page([]));
      expect(await names(connect())).to.deep.equal({ items: ['a', 'b'], resourceVersion: '9' });
      expect(server.requests.map(({ url }) => url)).to.deep.equal([
        `${path}?labelSelector=a%3Db&limit=2`,
        `${path}?labelSelector=a%3Db&limit=2&continue=next%2F1`,
        `${path}?labelSelector=a%3Db&limit=2&continue=next%2F2`,
      ]);
    });

    it('a listing requests the next page while it reads one', async () => {
      server.next(page(['a'], 'next/1'), page(['b']));
      const asked: number[] = [];
      const { items } = await connect().list(path, { signal }, ({ metadata }) => {
        const before = Date.now();
        // Its own loop stands still: what arrives is what was sent before.
        while (Date.now() - before < 20);
        asked.push(server.requests.length);
        return metadata?.name;
      });
      expect(items).to.deep.equal(['a', 'b']);
      expect(asked.at(-1)).to.equal(2);
      expect(server.requests).to.have.length(2);
    });

    it('a listing begins again when the version of its first page is gone', async () => {
      const gone = status(410, 'Expired', 'the provided continue parameter is too old');
      server.next(page(['a', 'b'], 'x'), gone, page(['b', 'c'], 'y'), page(['d']));
      expect((await names(connect())).items).to.deep.equal(['b', 'c', 'd']);
      expect(server.requests[2]!.url).not.to.contain('continue');
    });

    it('a listing does not begin again for ever', async () => {
      const gone = status(410, 'Expired', 'too old');
      server.always((response, request) => {
        (request.url.includes('continue') ? gone : page(['a'], 'x'))(response, request);
      });
      expect(await failure(names(connect()))).to.have.property('code', 'kubernetes-gone');
      expect(server.requests).to.have.length(6);
    });

    it('a listing that broke shows nothing', async () => {
      server.next(page(['a'], 'x'), cut);
      expect(await failure(names(connect()))).to.have.property('code', 'kubernetes-unreachable');
    });
  });

  describe('that reads a log', () => {
    it('a log is passed on as it comes, whole characters only', async () => {
      const clock = systemClock.now();
      const euro = Buffer.from('1 €\n');
      server.next((response) => {
        response.write(euro.subarray(0, 3));
        setTimeout(() => response.end(euro.subarray(3)), 20);
      });
      const options = { signal, container: 'pilot', tailLines: 5, sinceTime: clock, follow: true };
      expect((await all(connect().logs(log, options))).join('')).to.equal('1 €\n');
      const { searchParams } = new URL(server.requests[0]!.url, server.url);
      expect(Object.fromEntries(searchParams)).to.deep.equal({
        container: 'pilot',
        follow: 'true',
        tailLines: '5',
        sinceTime: new Date(clock).toISOString(),
      });
    });

    it('a long log comes at the pace of its reader', async () => {
      const megabytes = 64;
      let written = 0;
      server.next((response) => {
        const piece = Buffer.alloc(1024 * 1024, 'x');
        const write = () => {
          while (written < megabytes) {
            written++;
            if (!response.write(piece)) {
              response.once('drain', write);
              return;
            }
          }
          response.end();
        };
        write();
      });
      let read = 0;
      for await (const text of connect().logs(log, { signal })) {
        if (read === 0) {
          await until('the server can write no more', async () => {
            const before = written;
            await systemClock.sleep(250);
            return written === before;
          });
          expect(written).to.be.lessThan(megabytes / 2);
        }
        read += text.length;
      }
      expect(read).to.equal(megabytes * 1024 * 1024);
    });

    it('a failed read of a log says why', async () => {
      server.next(
        status(400, 'BadRequest', 'container "pilot" in pod "a" is waiting to start: ContainerCreating'),
      );
      const error = await failure(all(connect().logs(log, { signal })));
      expect(error.code).to.equal('kubernetes-refused');
      expect(error.message).to.contain('is waiting to start');
    });

    it('the connection of a log closes when its reader has enough, and when the reader gives up', async () => {
      server.always(lines(['line\n']));
      const client = connect();
      for await (const text of client.logs(log, { signal, follow: true })) {
        expect(text).to.equal('line\n');
        break;
      }
      await until('the connection is closed', () => server.connections === 0);
      const abort = new AbortController();
      const followed = failure(all(client.logs(log, { signal: abort.signal, follow: true })));
      await until('it follows', () => server.connections === 1);
      abort.abort();
      expect(await followed).to.have.property('code', 'kubernetes-given-up');
    });

    it('a log that was cut off ends with an error', async () => {
      server.always(lines(['line\n'], cut));
      expect(await failure(all(connect().logs(log, { signal })))).to.have.property(
        'code',
        'kubernetes-unreachable',
      );
    });
  });

  describe('that watches', () => {
    const watch = { signal, resourceVersion: '5', timeoutSeconds: 300, silence: 60_000 };
    const event = (type: string, name: string) => ({
      type,
      object: { metadata: { name, resourceVersion: '6' } },
    });

    it('a watch passes changes on, and asks for bookmarks', async () => {
      server.next(lines([event('ADDED', 'a'), event('BOOKMARK', '')], (response) => response.end()));
      const events = await all(connect().watch(path, { ...watch, labelSelector: 'a=b' }));
      expect(events.map(({ type }) => type)).to.deep.equal(['ADDED', 'BOOKMARK']);
      const { searchParams } = new URL(server.requests[0]!.url, server.url);
      expect(Object.fromEntries(searchParams)).to.deep.equal({
        watch: 'true',
        allowWatchBookmarks: 'true',
        labelSelector: 'a=b',
        resourceVersion: '5',
        timeoutSeconds: '300',
      });
    });

    it('a watch does not take half a line for a change', async () => {
      server.next(
        lines([event('ADDED', 'a'), '{"type":"DELETED","object":{"metadata"'], (response) => response.end()),
      );
      expect((await all(connect().watch(path, watch))).length).to.equal(1);
    });

    it('a watch fails with the error that the server sends, and for a line that is no JSON', async () => {
      const gone = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
      server.next(
        lines([{ type: 'ERROR', object: gone }]),
        lines(['no json\n']),
        status(410, 'Expired', 'too old'),
      );
      const client = connect();
      for (const code of ['kubernetes-gone', 'kubernetes-no-api', 'kubernetes-gone']) {
        expect(await failure(all(client.watch(path, watch)))).to.have.property('code', code);
      }
    });

    it('a watch fails for an event that has no version', async () => {
      const client = connect();
      for (const object of [
        undefined,
        null,
        {},
        { metadata: null },
        { metadata: { resourceVersion: { a: 1 } } },
        { metadata: { resourceVersion: '' } },
        { metadata: { resourceVersion: '1'.repeat(10_001) } },
      ])
        for (const type of ['ADDED', 'BOOKMARK', undefined]) {
          server.next(lines([event('ADDED', 'a'), { type, object }]));
          const { code, status: said } = await failure(all(client.watch(path, watch)));
          expect([code, said]).to.deep.equal(['kubernetes-no-api', undefined]);
        }
    });

    it('watches do not keep requests waiting, however many there are', async () => {
      server.always((response, request) => {
        (request.url.includes('watch') ? lines([]) : json(200, job))(response, request);
      });
      const client = connect(undefined, { connections: 1 });
      const abort = new AbortController();
      const watching = Array.from({ length: 5 }, () =>
        rejection(all(client.watch(path, { ...watch, signal: abort.signal }))),
      );
      await until('they watch', () => server.requests.length === 5);
      expect(await client.get(one, { signal })).to.deep.equal(job);
      abort.abort();
      await Promise.all(watching);
    });

    it('a watch notices that the other end is gone', async () => {
      const clock = new ManualClock();
      server.next(lines([event('ADDED', 'a')]));
      const client = connect(undefined, { clock });
      await clock.advance(1000);
      let seen = 0;
      const watching = failure(
        (async () => {
          for await (const { type } of client.watch(path, watch)) seen += type === 'ADDED' ? 1 : 0;
        })(),
      );
      await until('it has seen the first', () => seen === 1 && clock.sleeping.includes(60_000));
      await clock.advance(60_000);
      const error = await watching;
      expect(error.code).to.equal('kubernetes-unreachable');
      expect(error.message).to.contain('has been silent for 60 s');
    });
  });
});

describe('the TLS of a client', () => {
  async function against(
    serverName: string,
    cluster: Record<string, unknown>,
    user: Record<string, unknown> = {},
    options = {},
  ): Promise<{ readonly error?: KubernetesError; readonly peer?: string }> {
    let peer: string | undefined;
    const server = await startScriptedServer({
      cert: pem(`${serverName}.crt`),
      key: pem(`${serverName}.key`),
      ca: pem('ca.crt'),
      requestCert: true,
      rejectUnauthorized: false,
      ...options,
    });
    server.always((response, request) => {
      const socket = response.socket as unknown as { getPeerCertificate(): { subject?: { CN?: string } } };
      peer = socket.getPeerCertificate().subject?.CN;
      json(200, job)(response, request);
    });
    const client = makeClient(writeKubeconfig(kubeconfig({ server: server.url, ...cluster }, user)));
    try {
      await client.get(one, { signal });
      return { ...(peer !== undefined && { peer }) };
    } catch (error) {
      if (!isKubernetesError(error)) throw error;
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: false });
      return { error };
    } finally {
      await client.close();
      await server.stop();
    }
  }
  const ca = { 'certificate-authority': join(tls, 'ca.crt') };

  it('shows who it is', async () => {
    const user = { 'client-certificate': join(tls, 'client.crt'), 'client-key': join(tls, 'client.key') };
    expect(await against('server', ca, user)).to.deep.equal({ peer: 'jane' });
  });

  it('the error names the fault of the certificate of the server', async () => {
    const message = async (...args: Parameters<typeof against>) => (await against(...args)).error?.message;
    expect(await message('server', {})).to.contain(
      'certificate of an unknown CA; name that in `certificate-authority`',
    );
    expect(await message('server', { 'certificate-authority': join(tls, 'other-ca.crt') })).to.contain(
      'certificate of an unknown CA',
    );
    expect(await message('expired', ca)).to.contain('a certificate that has expired');
    expect(await message('elsewhere', ca))
      .to.contain('certificate of another name')
      .and.contain('tls-server-name');
  });

  it('may expect another name, or be told not to look', async () => {
    expect(await against('elsewhere', { ...ca, 'tls-server-name': 'elsewhere.test' })).to.not.have.property(
      'error',
    );
    expect(await against('expired', { 'insecure-skip-tls-verify': true })).to.not.have.property('error');
  });

  it('tells where TLS meets none', async () => {
    const plain = await startScriptedServer();
    const secure = await startScriptedServer({ cert: pem('server.crt'), key: pem('server.key') });
    const a = makeClient(
      writeKubeconfig(
        kubeconfig({ server: plain.url.replace('http:', 'https:'), 'insecure-skip-tls-verify': true }),
      ),
    );
    const b = makeClient(writeKubeconfig(kubeconfig({ server: secure.url.replace('https:', 'http:') })));
    try {
      expect((await failure(a.get(one, { signal }))).message).to.contain('does not speak TLS');
      expect((await failure(b.get(one, { signal }))).code).to.be.oneOf([
        'kubernetes-unreachable',
        'kubernetes-no-api',
      ]);
    } finally {
      await Promise.all([a.close(), b.close(), plain.stop(), secure.stop()]);
    }
  });

  it('is that of the new certificate after it was replaced', async () => {
    const directory = temporaryDirectory();
    const [certificate, key] = [join(directory, 'crt'), join(directory, 'key')];
    const put = (name: string) => {
      writeFileSync(certificate, pem(`${name}.crt`));
      writeFileSync(key, pem(`${name}.key`));
    };
    put('client');
    const server = await startScriptedServer({
      cert: pem('server.crt'),
      key: pem('server.key'),
      ca: pem('ca.crt'),
      requestCert: true,
      rejectUnauthorized: false,
    });
    const seen: unknown[] = [];
    server.always((response, request) => {
      const socket = response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } };
      const who = socket.getPeerCertificate().subject.CN;
      seen.push(who);
      if (who === 'jane') put('client2');
      (who === 'jane' ? status(401, 'Unauthorized', 'Unauthorized') : json(200, job))(response, request);
    });
    const user = { 'client-certificate': certificate, 'client-key': key };
    const client = makeClient(writeKubeconfig(kubeconfig({ server: server.url, ...ca }, user)));
    try {
      await client.get(one, { signal });
      expect(seen).to.deep.equal(['jane', 'joan']);
      await until('the old connection is closed', () => server.connections === 1);
    } finally {
      await client.close();
      await server.stop();
    }
  });
});

describe('a proxy before the API', () => {
  it('hole 3: gets a login that no error shows, however the proxy says it back', async () => {
    const [password, written] = ['Zq7/proxyPw@91xKd', 'Zq7%2FproxyPw%4091xKd'];
    const sent = Buffer.from(`bob:${password}`).toString('base64');
    const logins: (string | undefined)[] = [];
    const proxy = await startScriptedServer();
    proxy.always((response, { headers }) => {
      logins.push(headers['proxy-authorization']);
      response.writeHead(403, { 'content-type': 'text/plain' });
      response.end(`bob with ${password} (${written}, ${sent}) may not reach this site`);
    });
    const cluster = {
      server: 'http://api.example.org:6443',
      'proxy-url': proxy.url.replace('//', `//bob:${written}@`),
    };
    const client = makeClient(writeKubeconfig(kubeconfig(cluster)));
    try {
      const { message } = await failure(client.get(one, { signal }));
      expect(logins).to.deep.equal([`Basic ${sent}`]);
      expect(message).to.contain('bob with (hidden) ((hidden), (hidden)) may not reach this site');
    } finally {
      await Promise.all([client.close(), proxy.stop()]);
    }
  });

  it('is asked for a tunnel, and its refusal is told', async () => {
    const server = await startScriptedServer({ cert: pem('server.crt'), key: pem('server.key') });
    server.always(json(200, job));
    const asked: string[] = [];
    const sockets = new Set<Socket>();
    let refuse = false;
    const proxy = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('data', (head) => {
        asked.push(head.toString('latin1').split('\r\n', 1)[0] ?? '');
        if (refuse) {
          socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
          return;
        }
        const upstream = connectTo(Number(new URL(server.url).port), '127.0.0.1', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n');
          socket.pipe(upstream).pipe(socket);
        });
        sockets.add(upstream);
        upstream.on('error', () => undefined);
      });
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const cluster = {
      server: server.url,
      'certificate-authority': join(tls, 'ca.crt'),
      'proxy-url': `http://127.0.0.1:${port}`,
    };
    const client = makeClient(writeKubeconfig(kubeconfig(cluster)));
    const refused = makeClient(writeKubeconfig(kubeconfig(cluster)));
    try {
      expect(await client.get(one, { signal })).to.deep.equal(job);
      expect(asked).to.deep.equal([`CONNECT ${new URL(server.url).host} HTTP/1.1`]);
      refuse = true;
      const error = await failure(refused.get(one, { signal }));
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: false });
      expect(error.message).to.contain('407');
    } finally {
      await Promise.all([client.close(), refused.close(), server.stop()]);
      for (const socket of sockets) socket.destroy();
      proxy.close();
    }
  });
});
