import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { PodStatus } from '../../../src/clients/interlink/wire.ts';
import { bounds } from '../../../src/sources/interlink/bounds.ts';
import { InterlinkClient, podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { chunked, goJson, headOf, RawConnection, type Recorded } from '../../support/raw-http.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { decoded } from '../../support/virtual-kubelet.ts';

function recorded(name: string): Recorded {
  const file = join(import.meta.dirname, '../../fixtures/interlink', `${name}.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as Recorded;
}

/** In the order of a Pod's life. */
const names = [
  'GET-status-ping',
  'POST-create',
  'GET-status',
  'GET-getLogs0',
  'GET-getLogs1',
  'GET-getLogs2',
  'POST-delete',
] as const;

/** The bytes of a request as Go sent them. */
function bytesOf(name: (typeof names)[number]): { readonly head: string; readonly body: string } {
  const { method, path, headers, body } = recorded(name);
  const text = goJson(body);
  const length = String(Buffer.byteLength(text));
  // Tokens of a service account were cut out of the recorded /create: all others have the bytes that were counted then.
  if (name !== 'POST-create') expect(length, name).to.equal(headers['Content-Length']);
  return { head: headOf(method, path, { ...headers, 'Content-Length': length }), body: text };
}

describe('the wire between interLink and the sidecar', () => {
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  let port: number;
  const opened: RawConnection[] = [];

  before(async () => {
    sidecar = new SidecarUnderTest(temporaryDirectory());
    app = await sidecar.start();
    await app.listen({ host: '127.0.0.1', port: 0 });
    ({ port } = app.server.address() as AddressInfo);
  });
  afterEach(() => {
    for (const connection of opened.splice(0)) connection.close();
  });
  after(() => sidecar.stop());

  async function opens(): Promise<RawConnection> {
    const connection = await RawConnection.to({ port });
    opened.push(connection);
    return connection;
  }

  /** Goes through the life of the recorded Pod on one connection, as Go keeps it. */
  async function life(send: (connection: RawConnection, name: (typeof names)[number]) => void) {
    const connection = await opens();
    const bodies: Record<string, string> = {};
    for (const name of names) {
      send(connection, name);
      const answer = await connection.answer();
      expect(answer?.status, `${name}: ${answer?.body ?? 'no answer'}`).to.equal(200);
      bodies[name] = answer?.body ?? '';
      if (name === 'POST-create') await sidecar.tell(uid, { status: 'running', startTime: 0 });
    }
    return bodies;
  }

  const { uid } = (recorded('POST-delete').body as { metadata: { uid: string } }).metadata;

  it('each recorded request gets exactly 200, byte by byte on one connection, and an answer that Go reads', async () => {
    const bodies = await life((connection, name) => {
      const { head, body } = bytesOf(name);
      connection.send(head + body);
    });
    expect(decoded('ping', bodies['GET-status-ping'] ?? '')).to.have.property('status');
    const created = decoded('create', bodies['POST-create'] ?? '') as { PodUID: string; PodJID: string };
    expect(created.PodUID).to.equal(uid);
    const [status, ...more] = decoded('status', bodies['GET-status'] ?? '') as PodStatus[];
    expect(more).to.deep.equal([]);
    expect(status).to.include({ UID: uid, name: 'rich', namespace: 'default', JID: created.PodJID });
    expect(status?.containers.map(({ name }) => name)).to.deep.equal(['main', 'side']);
    expect(status?.initContainers.map(({ name }) => name)).to.deep.equal(['prepare']);
    await until('the Pod is gone', () => sidecar.book.get(uid) === undefined);
    sidecar.jobs.clear();
  });

  it('a body in chunks, one that waits for 100 Continue, and one in many small pieces are the same body', async () => {
    const ways: readonly ((connection: RawConnection, name: (typeof names)[number]) => void)[] = [
      (connection, name) => {
        const { head, body } = bytesOf(name);
        connection.send(head.replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked'));
        connection.send(Buffer.from(chunked(body, 4096), 'latin1'));
      },
      (connection, name) => {
        const { head, body } = bytesOf(name);
        connection.send(head.replace(/\r\n\r\n$/, '\r\nExpect: 100-continue\r\n\r\n'));
        connection.send(body);
      },
      (connection, name) => {
        const { head, body } = bytesOf(name);
        const bytes = Buffer.from(head + body);
        for (let at = 0; at < bytes.length; at += 701) connection.send(bytes.subarray(at, at + 701));
      },
    ];
    for (const way of ways) {
      await life(way);
      await until('the Pod is gone', () => sidecar.book.get(uid) === undefined);
      sidecar.jobs.clear();
    }
  });

  it('requests that are sent without a wait for the answers before are answered in their order', async () => {
    const connection = await opens();
    const pods = Array.from({ length: 20 }, (_, index) => podOf(`pod-${index}`, randomUUID(), 'true'));
    for (const pod of pods) {
      const body = goJson([pod]);
      const length = String(Buffer.byteLength(body));
      connection.send(headOf('GET', '/status', { Host: 'unix', 'Content-Length': length }) + body);
    }
    for (const pod of pods) {
      const [status] = decoded('status', (await connection.answer())?.body ?? '') as PodStatus[];
      expect(status?.UID).to.equal(pod.metadata.uid);
    }
  });

  it('a /create whose caller goes away is the same job for the next /create', async () => {
    sidecar.submits = false;
    const pod = podOf('lost', randomUUID(), 'true');
    const body = goJson({ pod, container: null, jobConfig: {} });
    const connection = await opens();
    const length = String(Buffer.byteLength(body));
    connection.send(headOf('POST', '/create', { Host: 'unix', 'Content-Length': length }) + body);
    await until('it is accepted', () => sidecar.book.get(pod.metadata.uid) !== undefined);
    connection.close();
    sidecar.submits = true;
    const client = new InterlinkClient({ port });
    // Another Pod has the factory look again at all that are asked for.
    await client.created(podOf('other', randomUUID(), 'true'));
    const created = await client.created(pod);
    expect(await client.created(pod)).to.deep.equal(created);
    expect([...sidecar.jobs.keys()].filter((one) => one === pod.metadata.uid)).to.have.length(1);
    expect((await client.remove(pod)).status).to.equal(200);
  });

  const ping = headOf('GET', '/status', { Host: 'unix', 'Content-Length': '2' });
  const oddities: readonly {
    readonly title: string;
    readonly bytes: string;
    readonly status: number;
    readonly sentence: RegExp;
  }[] = [
    {
      title: 'noise',
      bytes: '\u0000\u0001\u0002 hello\r\n\r\n',
      status: 400,
      sentence: /no request of HTTP/,
    },
    {
      title: 'a hello of TLS',
      bytes: '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\r\n\r\n',
      status: 400,
      sentence: /no request of HTTP/,
    },
    {
      title: 'a method that is none',
      bytes: 'JUMP /status HTTP/1.1\r\n\r\n',
      status: 400,
      sentence: /no request of HTTP/,
    },
    {
      title: 'headers without an end',
      bytes: `GET /status HTTP/1.1\r\nHost: unix\r\nX: ${'x'.repeat(bounds.headerBytes)}`,
      status: 431,
      sentence: /^the headers are longer than 16 KiB$/,
    },
    {
      title: 'two lengths',
      bytes: 'GET /status HTTP/1.1\r\nHost: unix\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[] ',
      status: 400,
      sentence: /no request of HTTP/,
    },
    {
      title: 'a length and chunks, which programs read in two ways',
      bytes:
        'POST /status HTTP/1.1\r\nHost: unix\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      status: 400,
      sentence: /no request of HTTP/,
    },
    {
      title: 'an expectation',
      bytes: 'GET /status HTTP/1.1\r\nHost: unix\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n',
      status: 417,
      sentence: /^thresher knows no expectation/,
    },
    {
      title: 'a body longer than the bound',
      bytes: headOf('POST', '/create', { Host: 'unix', 'Content-Length': String(bounds.bodyBytes + 1) }),
      status: 413,
      sentence: /^the body is longer than 16 MiB$/,
    },
    {
      title: 'a path that is none',
      bytes: headOf('GET', '/%zz', { Host: 'unix' }),
      status: 400,
      sentence: /%zz/,
    },
    {
      title: 'an unknown path',
      bytes: headOf('GET', '/v1/pods?x=1', { Host: 'unix' }),
      status: 404,
      sentence:
        /^there is no GET \/v1\/pods; there are \/create, \/delete, \/status, \/getLogs and \/system-info$/,
    },
    {
      title: 'an unknown method',
      bytes: headOf('PROPFIND', '/status', { Host: 'unix' }),
      status: 404,
      sentence: /^there is no PROPFIND \/status/,
    },
    {
      title: 'OPTIONS of a page',
      bytes: headOf('OPTIONS', '/create', { Host: 'unix', Origin: 'http://x' }),
      status: 403,
      sentence: /web page/,
    },
    {
      title: 'a name that a stranger pointed at the loopback',
      bytes: headOf('GET', '/system-info', { Host: 'evil.example:4000' }),
      status: 403,
      sentence: /"evil.example:4000"; on the loopback it must be 127.0.0.1/,
    },
  ];
  for (const { title, bytes, status, sentence } of oddities)
    it(`${title} is refused with ${status} in one sentence, and the next request is answered`, async () => {
      const connection = await opens();
      connection.send(Buffer.from(bytes, 'latin1'));
      const answer = await connection.answer();
      expect(answer?.status).to.equal(status);
      expect(answer?.body)
        .to.match(sentence)
        .and.match(/^[^\n]+$/);
      expect(answer?.headers['content-type']).to.match(/^text\/plain/);
      const next = await opens();
      next.send(`${ping}[]`);
      expect((await next.answer())?.status).to.equal(200);
    });

  for (const host of ['127.0.0.1:4000', 'localhost:4000', '[::1]:4000', 'plugin', 'a.localhost', 'LOCALHOST'])
    it(`the name ${host} is one of this machine`, async () => {
      const connection = await opens();
      connection.send(`${headOf('GET', '/status', { Host: host, 'Content-Length': '2' })}[]`);
      expect((await connection.answer())?.status).to.equal(200);
    });

  it('a hundred clients that stop in the middle of a request keep none from an answer', async () => {
    const { head, body } = bytesOf('POST-create');
    const halves = await Promise.all(Array.from({ length: 100 }, opens));
    halves.forEach((half, index) => {
      half.send((head + body).slice(0, 1 + index * 150));
      if (index % 3 === 0) half.finish();
    });
    const connection = await opens();
    connection.send(`${ping}[]`);
    expect((await connection.answer())?.status).to.equal(200);
    expect(sidecar.book.get(uid)).to.equal(undefined);
    expect(app.server.requestTimeout, 'a request that never ends is given up (ms)').to.equal(60_000);
  });

  it('a body of millions of values or of nested lists is refused with one sentence', async () => {
    const connection = await opens();
    const rows = [
      [
        `[${'1,'.repeat(6_000_000)}1]`,
        413,
        'the body has more than 250000 values: ask for fewer Pods at once, or give a Pod fewer',
      ],
      ['['.repeat(8_000_000), 400, 'the body has more than 100 lists and objects within each other'],
      [
        `[${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}]`,
        400,
        'the body has more than 100 lists and objects within each other',
      ],
      [`["${'['.repeat(5000)}\\"[[["]`, 400, '/0: pods[0] is'],
    ] as const;
    for (const [body, status, sentence] of rows) {
      connection.send(
        headOf('GET', '/status', { Host: 'unix', 'Content-Length': String(body.length) }) + body,
      );
      const answer = await connection.answer();
      expect(answer?.status).to.equal(status);
      expect(answer?.body).to.match(/^[^\n]{1,2000}$/);
      if (!sentence.startsWith('/')) expect(answer?.body).to.equal(sentence);
    }
  });

  it('hole 8: a Pod whose ConfigMaps have tens of thousands of keys is refused before it is checked', async () => {
    const data = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`k${at}`, '']));
    const body = JSON.stringify({ pod: {}, container: [{ name: 'c', configMaps: [{ data }] }] });
    const connection = await opens();
    const length = String(Buffer.byteLength(body));
    connection.send(headOf('POST', '/create', { Host: 'unix', 'Content-Length': length }) + body);
    const answer = await connection.answer();
    expect(answer?.status).to.equal(413);
    expect(answer?.body).to.include('more than 30000 values');
  });
});
