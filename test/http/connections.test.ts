import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { makeApp, type Patience } from '../../src/http/app.ts';
import { boundConnections } from '../../src/http/connections.ts';
import { ServedSample } from '../support/served.ts';
import { until } from '../support/until.ts';

/** A server that closes nothing within any test. */
const never: Patience = { request: 600_000, answer: 600_000, keepAlive: 600_000, look: 600_000 };

describe('connections of the HTTP server', () => {
  let served: ServedSample;
  let app: FastifyInstance;
  let clients: Socket[];

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    clients = [];
    await serve();
  });

  /** Listens with this patience in the place of the usual one. */
  async function serve(patience?: Patience): Promise<void> {
    app = await makeApp(served, undefined, patience);
    await app.listen({ host: '127.0.0.1', port: 0 });
  }

  async function serveAnew(patience: Patience): Promise<void> {
    await app.close();
    await serve(patience);
  }

  afterEach(async () => {
    for (const client of clients) client.destroy();
    await app.close();
    await served.store.close();
  });

  const port = () => (app.server.address() as AddressInfo).port;
  const connections = () => promisify(app.server.getConnections.bind(app.server))();

  /** A client that sends this and then neither sends nor reads anything. */
  async function clientThatSends(text: string): Promise<void> {
    const client = connect(port(), '127.0.0.1').on('error', () => undefined);
    clients.push(client);
    await once(client, 'connect');
    client.pause().write(text);
  }

  async function halfOpen(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, () => clientThatSends('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n')),
    );
  }

  it('answers a client although 300 others hold back the rest of their requests', async () => {
    await halfOpen(300);
    const answer = await fetch(`http://127.0.0.1:${port()}/healthz`);
    expect(answer.status).to.equal(200);
  });

  it('hole 8: takes a hundred requests of a client that sends thousands at once, and goes on with others', async () => {
    let taken = 0;
    app.server.on('request', () => taken++);
    const sender = connect(port(), '127.0.0.1').on('error', () => undefined);
    clients.push(sender);
    sender.resume().write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(5000));
    await new Promise((resolve) => sender.once('close', resolve));
    expect(taken).to.equal(100);
    const asked = Array.from({ length: 300 }, () => fetch(`http://127.0.0.1:${port()}/healthz`));
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).to.deep.equal(new Set([200]));
  });

  it('answers the first hundred of the requests that come at once, however many follow', async () => {
    for (const count of [100, 101, 150]) {
      const sender = connect(port(), '127.0.0.1').on('error', () => undefined);
      clients.push(sender);
      let heard = '';
      sender.on('data', (piece: Buffer) => (heard += piece.toString()));
      sender.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(count));
      await new Promise((resolve) => sender.once('close', resolve));
      expect(heard.match(/HTTP\/1\.1 200/g), String(count)).to.have.length(100);
    }
  });

  it('waits 10 s for a request and 15 s for its answer to be taken', () => {
    expect(app.initialConfig).to.include({ requestTimeout: 10_000, connectionTimeout: 15_000 });
  });

  it('closes connections whose requests are not complete in time, and not before', async () => {
    await serveAnew({ ...never, request: 1500, look: 100 });
    const before = performance.now();
    await halfOpen(20);
    await until('all are closed', async () => (await connections()) === 0);
    expect(performance.now() - before).to.be.greaterThan(1400);
  });

  it('closes a connection whose answers are not taken in time, and not before', async () => {
    await serveAnew({ ...never, answer: 1500 });
    served.logs = {
      async *read() {
        yield Buffer.alloc(1024 * 1024, 'x\n');
      },
    };
    const before = performance.now();
    const ask = 'GET /api/workers/1/log?tail=10000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
    // More than the buffers of both ends hold.
    await clientThatSends(ask.repeat(40));
    await until('it is closed', async () => (await connections()) === 0);
    expect(performance.now() - before).to.be.greaterThan(1400);
  });
});

describe('connections whose answers nobody takes', () => {
  it('keep out no client that asks, and one whose answer is still made is kept', async () => {
    let slow: ServerResponse | undefined;
    const large = Buffer.alloc(16 * 1024 * 1024);
    let asked = 0;
    const server = createServer(({ url }, response) => {
      asked++;
      if (url === '/slow') slow = response;
      else if (url === '/large') response.end(large);
      else if (url === '/endless') response.write(large);
      else if (url === '/half') return;
      else response.end('quick');
    });
    boundConnections(server, 4);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const clients: Socket[] = [];
    const stalled = ['large', 'endless', 'half'].map((what) => `/${what} HTTP/1.1\r\nHost: a`);
    stalled.push(`${stalled.pop() ?? ''}\r\nContent-Length: 9`);
    try {
      const slowAnswer = fetch(`http://127.0.0.1:${port}/slow`);
      await until('it is asked', () => asked === 1);
      for (let at = 0; at < 20; at++) {
        const client = connect(port, '127.0.0.1').on('error', () => undefined);
        clients.push(client.pause());
        client.write(`POST ${stalled[at % 3] ?? ''}\r\n\r\n`);
        await until('it is asked', () => asked === 2 + at);
      }
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
      expect(await answer.text()).to.equal('quick');
      slow?.end('slow');
      expect(await (await slowAnswer).text()).to.equal('slow');
    } finally {
      for (const client of clients) client.destroy();
      server.closeAllConnections();
      server.close();
    }
  });
});
