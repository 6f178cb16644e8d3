import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { fetchFile, type WebRequest } from '../../../src/clients/web/fetch.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { FileServer } from '../../support/file-server.ts';

const tls = (name: string) => readFileSync(join(import.meta.dirname, '../../fixtures/tls', name), 'utf8');
const ca = tls('ca.crt');

describe('a file of a web server', () => {
  let server: FileServer;
  let other: FileServer;

  beforeEach(async () => {
    server = new FileServer();
    other = new FileServer({ cert: tls('server.crt'), key: tls('server.key') });
    await server.start();
    await other.start();
  });

  afterEach(async () => {
    await server.stop();
    await other.stop();
  });

  const get = (url: string, more: Partial<WebRequest> = {}) =>
    fetchFile({
      url,
      largest: 1000,
      timeout: 20_000,
      clock: systemClock,
      signal: new AbortController().signal,
      ...more,
    });

  const failureOf = async (got: Promise<unknown>): Promise<string> => {
    try {
      await got;
    } catch (error) {
      if (error instanceof ThresherError) return `${error.code}: ${error.message}`;
      throw error;
    }
    return 'none';
  };

  it('comes whole, and is not sent again while it is the same', async () => {
    server.serveJson('/q.json', { A: 1 });
    const first = await get(server.url('/q.json'));
    expect(first?.bytes.toString()).to.equal('{"A":1}');
    expect(await get(server.url('/q.json'), { known: first?.validators ?? {} })).to.equal(undefined);
    server.serveJson('/q.json', { A: 2 });
    const second = await get(server.url('/q.json'), { known: first?.validators ?? {} });
    expect(second?.bytes.toString()).to.equal('{"A":2}');
  });

  it('is kept without a mark that has our login in it', async () => {
    server.answers.set('/echo.json', (request, response) => {
      const sent = String(request.headers.authorization);
      response
        .writeHead(200, { etag: `"${sent}"`, 'last-modified': 'Wed, 21 Oct 2026 07:28:00 GMT' })
        .end('{}');
    });
    const got = await get(server.url('/echo.json').replace('//', '//bob:Zq7Hunter-9xKw2-mark@'));
    expect(got?.validators).to.deep.equal({ lastModified: 'Wed, 21 Oct 2026 07:28:00 GMT' });
  });

  it('is asked for by its time where the server gives no ETag', async () => {
    const time = 'Wed, 21 Oct 2026 07:28:00 GMT';
    server.answers.set('/q.json', (request, response) => {
      if (request.headers['if-modified-since'] === time) response.writeHead(304).end();
      else response.writeHead(200, { 'last-modified': time }).end('{}');
    });
    const first = await get(server.url('/q.json'));
    expect(first?.validators).to.deep.equal({ lastModified: time });
    expect(await get(server.url('/q.json'), { known: { lastModified: time } })).to.equal(undefined);
  });

  it('is unpacked where it comes packed', async () => {
    server.answers.set('/q.json', (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"packed":true}'));
    });
    expect((await get(server.url('/q.json')))?.bytes.toString()).to.equal('{"packed":true}');
  });

  it('is refused where it is gone', async () => {
    expect(await failureOf(get(server.url('/gone')))).to.match(
      /^web-refused: http.*\/gone answers with HTTP 404$/,
    );
  });

  it('hole 8: is put together of few pieces, also where each byte of it comes alone', async () => {
    server.answers.set('/bytes', (_, response) => {
      response.socket?.setNoDelay(true);
      response.writeHead(200).flushHeaders();
      const write = (left: number) => {
        if (left === 0) response.end();
        else response.write('x', () => setImmediate(write, left - 1));
      };
      write(900);
    });
    const pieces: number[] = [];
    const concat = Buffer.concat.bind(Buffer);
    Buffer.concat = (list, ...length) => {
      pieces.push(list.length);
      return concat(list, ...length);
    };
    try {
      expect((await get(server.url('/bytes')))?.bytes.toString()).to.equal('x'.repeat(900));
    } finally {
      Buffer.concat = concat;
    }
    expect(Math.max(0, ...pieces)).to.be.below(100);
  });

  it('is given up where it is too large, also once unpacked', async () => {
    server.answers.set('/huge', (_, response) => response.writeHead(200).end('x'.repeat(5000)));
    server.answers.set('/bomb', (_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(1_000_000))),
    );
    expect(await failureOf(get(server.url('/huge')))).to.match(/^web-too-large: /);
    expect(await failureOf(get(server.url('/bomb')))).to.match(/^web-too-large: /);
  });

  it('is given up where it does not come in time, before its head and in its midst', async () => {
    server.answers.set('/silent', () => undefined);
    server.answers.set('/stuck', (_, response) => response.writeHead(200).write('{"half":'));
    for (const path of ['/silent', '/stuck'])
      expect(await failureOf(get(server.url(path), { timeout: 300 }))).to.match(
        /^web-late: .* was not there whole within 0.3 s$/,
      );
  });

  it('counts for nothing where half of it came', async () => {
    server.answers.set('/half', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"half":', () => response.destroy());
    });
    const packed = gzipSync('{"packed":true}');
    server.answers.set('/half-packed', (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed.subarray(0, packed.length - 6));
    });
    expect(await failureOf(get(server.url('/half')))).to.match(/^web-unreachable: /);
    expect(await failureOf(get(server.url('/half-packed')))).to.match(/^web-unreachable: .*unexpected end/);
  });

  it('says that nobody listens', async () => {
    const url = server.url('/q.json');
    await server.stop();
    expect(await failureOf(get(url))).to.match(/^web-unreachable: .*ECONNREFUSED/);
    await server.start();
  });

  it('is found where the server leads to, but neither in a circle nor from TLS to none', async () => {
    server.serveJson('/there', { found: true });
    server.answers.set('/moved', (_, response) => response.writeHead(302, { location: '/there' }).end());
    server.answers.set('/circle', (_, response) => response.writeHead(302, { location: '/circle' }).end());
    other.answers.set('/down', (_, response) =>
      response.writeHead(302, { location: server.url('/there') }).end(),
    );
    expect((await get(server.url('/moved')))?.bytes.toString()).to.equal('{"found":true}');
    expect(await failureOf(get(server.url('/circle')))).to.match(/^web-redirect: .* more than 5 times/);
    expect(await failureOf(get(other.url('/down'), { ca }))).to.match(/^web-redirect: .* without TLS/);
  });

  it('is refused where the certificate of its server is not good', async () => {
    other.serveJson('/q.json', {});
    expect(await failureOf(get(other.url('/q.json')))).to.match(/^web-unreachable: /);
    expect(await failureOf(get(other.url('/q.json'), { ca: tls('other-ca.crt') }))).to.match(
      /^web-unreachable: /,
    );
    expect((await get(other.url('/q.json'), { ca }))?.bytes.toString()).to.equal('{}');
  });

  it('is refused for its certificate although the environment switches verification off', async () => {
    other.serveJson('/q.json', {});
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      expect(await failureOf(get(other.url('/q.json')))).to.match(/^web-unreachable: /);
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    }
  });

  it('gets the login of one server only from that one, also where another leads to it', async () => {
    const login = {
      origin: new URL(other.url('/')).origin,
      tls: { cert: tls('client.crt'), key: tls('client.key') },
      headers: { authorization: 'Bearer secret' },
    };
    other.serveJson('/ours', {});
    server.serveJson('/theirs', {});
    const third = new FileServer({ cert: tls('server.crt'), key: tls('server.key') });
    await third.start();
    try {
      other.answers.set('/away', (_, response) =>
        response.writeHead(302, { location: third.url('/elsewhere') }).end(),
      );
      third.serveJson('/elsewhere', {});
      await get(other.url('/ours'), { ca, logins: [login] });
      await get(server.url('/theirs'), { ca, logins: [login] });
      await get(other.url('/away'), { ca, logins: [login] });
      const shown = [...other.seen, ...server.seen, ...third.seen].map(
        ({ path, headers, hadCertificate }) => [path, headers.authorization, hadCertificate],
      );
      expect(shown).to.deep.equal([
        ['/ours', 'Bearer secret', true],
        ['/away', 'Bearer secret', true],
        ['/theirs', undefined, false],
        ['/elsewhere', undefined, false],
      ]);
    } finally {
      await third.stop();
    }
  });

  it('is asked for with the password of its URL, which no message shows', async () => {
    server.answers.set('/q.json', (request, response) => {
      response.writeHead(request.headers.authorization === undefined ? 401 : 503).end();
    });
    const url = server.url('/q.json').replace('http://', 'http://me:pa55@');
    const failure = await failureOf(get(url));
    expect(failure).to.match(/HTTP 503/);
    expect(failure).not.to.include('pa55');
    expect(server.seen[0]?.headers.authorization).to.equal(
      `Basic ${Buffer.from('me:pa55').toString('base64')}`,
    );
  });

  it('hole 3: is asked for with a token in its URL, which no message shows, also where the server leads to its login page', async () => {
    const token = 'glpat-Zq7webToken91xKd';
    other.answers.set(`/q.json?private_token=${token}`, (request, response) => {
      const back = encodeURIComponent(request.url ?? '');
      response.writeHead(302, { location: server.url(`/login?back=${back}&was=${token}`) }).end();
    });
    const failure = await failureOf(get(other.url(`/q.json?private_token=${token}`), { ca }));
    expect(failure).to.match(/^web-redirect: .* leads to .*\/login\?back=.*, without TLS$/);
    expect(failure).not.to.include(token);
  });
});
