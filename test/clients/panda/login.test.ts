import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { join } from 'node:path';
import { expect } from 'chai';
import { PandaClient } from '../../../src/clients/panda/client.ts';
import { type LoginSource, PandaLogin } from '../../../src/clients/panda/login.ts';
import type { PandaOutcome } from '../../../src/clients/panda/outcome.ts';
import { type Authority, issue, type Issued, makeAuthority } from '../../support/credentials.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { files } from '../../support/operator-files.ts';
import {
  json,
  type Respond,
  type ScriptedServer,
  startScriptedServer,
} from '../../support/scripted-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const call = { method: 'POST', path: 'harvester/heartbeat', body: { text: 'x'.repeat(5000) } } as const;
const { signal } = new AbortController();
const good = json(200, { success: true, message: '', data: null });

describe('the login to a PanDA server', () => {
  let ca: Authority;
  let server: Issued;
  let user: Issued;
  let other: Issued;
  let directory: string;
  let clock: ManualClock;
  const ends: (() => Promise<unknown>)[] = [];

  before(() => {
    ca = makeAuthority();
    const extensions = ['subjectAltName=IP:127.0.0.1'];
    server = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=server', extensions });
    user = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=user' });
    other = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=other' });
  });

  beforeEach(() => {
    directory = temporaryDirectory();
    clock = new ManualClock();
    copyFileSync(user.certificate, at('cert.pem'));
    copyFileSync(user.key, at('key.pem'));
    copyFileSync(ca.certificate, at('ca.pem'));
  });

  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  const at = (name: string) => join(directory, name);

  function clientOf(url: string, source?: LoginSource): PandaClient {
    const x509: LoginSource = { kind: 'x509', certFile: at('cert.pem'), keyFile: at('key.pem') };
    const login = new PandaLogin(source ?? x509, at('ca.pem'), { files, clock });
    const client = new PandaClient({ url, login, clock, timeout: 60_000 });
    ends.push(() => client.close());
    return client;
  }

  async function tlsServer(options: TlsOptions = {}): Promise<ScriptedServer> {
    const own = { cert: readFileSync(server.certificate), key: readFileSync(server.key) };
    const scripted = await startScriptedServer({
      ...own,
      ca: readFileSync(ca.certificate),
      requestCert: true,
      ...options,
    });
    scripted.always(good);
    ends.push(() => scripted.stop());
    return scripted;
  }

  async function bytesServer(speak: (socket: Socket) => void): Promise<string> {
    const plain = createServer((socket) => {
      socket.on('error', () => undefined);
      speak(socket);
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    ends.push(() => new Promise((resolve) => plain.close(resolve)));
    return `https://127.0.0.1:${(plain.address() as AddressInfo).port}`;
  }

  const toldOf = (outcome: PandaOutcome<unknown>) =>
    outcome.kind === 'ok' ? 'ok' : `${outcome.code} ${outcome.maybeDone ? 'maybe done' : 'not done'}`;
  const messageOf = (outcome: PandaOutcome<unknown>) => (outcome.kind === 'ok' ? '' : outcome.message);

  describe('B2: with files that a renewer has half written', () => {
    const rows: readonly (readonly [title: string, spoil: () => void, says: string])[] = [
      [
        'half a certificate',
        () => {
          half('cert.pem');
        },
        'cert.pem',
      ],
      [
        'half a key',
        () => {
          half('key.pem');
        },
        'key.pem',
      ],
      [
        'half a file of authorities',
        () => {
          half('ca.pem');
        },
        'half a certificate',
      ],
      [
        'an authority, and half of the next',
        () => {
          appendFileSync(at('ca.pem'), readFileSync(ca.certificate).subarray(0, 300));
        },
        'half a certificate',
      ],
      [
        'an empty file of authorities',
        () => {
          writeFileSync(at('ca.pem'), '');
        },
        'no certificate',
      ],
      [
        'the key of another certificate',
        () => {
          copyFileSync(other.key, at('key.pem'));
        },
        'key values mismatch',
      ],
      [
        'no certificate any more',
        () => {
          writeFileSync(at('cert.pem'), '');
        },
        'no certificate',
      ],
    ];
    const half = (name: string) => {
      const text = readFileSync(at(name));
      writeFileSync(at(name), text.subarray(0, text.length / 2));
    };

    for (const [title, spoil, says] of rows) {
      it(`goes on with the last good ones beside ${title}, says so where a call fails, and takes the next good ones`, async () => {
        const scripted = await tlsServer({ rejectUnauthorized: true });
        const client = clientOf(scripted.url);
        expect(toldOf(await client.call(call, signal))).to.equal('ok');
        spoil();
        await clock.advance(10_000);
        expect(toldOf(await client.call(call, signal))).to.equal('ok');
        scripted.next(json(401, 'no'));
        const refused = await client.call(call, signal);
        expect(toldOf(refused)).to.equal('panda-token not done');
        expect(messageOf(refused)).to.include('the login is an older one').and.to.include(says);
        copyFileSync(other.certificate, at('cert.pem'));
        copyFileSync(other.key, at('key.pem'));
        copyFileSync(ca.certificate, at('ca.pem'));
        await clock.advance(10_000);
        expect(toldOf(await client.call(call, signal))).to.equal('ok');
        scripted.next(json(401, 'no'));
        expect(messageOf(await client.call(call, signal))).not.to.include('older');
      });

      it(`names ${title} where there never was a good one`, async () => {
        spoil();
        const outcome = await clientOf('https://127.0.0.1:9').call(call, signal);
        expect(toldOf(outcome)).to.equal('panda-credentials not done');
        expect(messageOf(outcome)).to.include(says);
      });
    }
  });

  describe('B2: where no TLS comes about', () => {
    const token: LoginSource = { kind: 'oidc', token: { text: 'a.b.c' }, origin: 'vo.production' };

    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      it(`says that the server may want a certificate, with ${maxVersion}, where the login is a token`, async () => {
        const { url } = await tlsServer({ maxVersion, rejectUnauthorized: true });
        const outcome = await clientOf(url, token).call(call, signal);
        const expected =
          maxVersion === 'TLSv1.3' ? 'panda-certificate not done' : 'panda-unreachable not done';
        expect(toldOf(outcome)).to.equal(expected);
        expect(messageOf(outcome)).to.include('client certificate').and.not.to.include('openssl');
      });
    }

    for (const alert of [42, 43, 44, 45, 46, 48, 49])
      it(`takes alert ${alert} for a refused certificate`, async () => {
        const url = await bytesServer((socket) => {
          socket.once('data', () => {
            socket.end(Buffer.from([21, 3, 3, 0, 2, 2, alert]));
          });
        });
        expect(toldOf(await clientOf(url).call(call, signal))).to.equal('panda-certificate not done');
      });

    it('names the setting with the authority of the server where that is not known, and not an option of Node', async () => {
      const { url } = await tlsServer();
      const stranger = makeAuthority();
      copyFileSync(stranger.certificate, at('ca.pem'));
      const outcome = await clientOf(url).call(call, signal);
      expect(toldOf(outcome)).to.equal('panda-unreachable not done');
      expect(messageOf(outcome))
        .to.match(/certificate.*: ca_cert in pandacon names the file of its authority$/)
        .and.not.to.include('Node.js');
    });

    const others: readonly (readonly [title: string, answer: Buffer, says: RegExp])[] = [
      ['a plain HTTP server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), /speaks no TLS, see the port/],
      ['a server of SSH', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'), /speaks no TLS, see the port/],
      ['one with other versions of TLS', Buffer.from([21, 3, 3, 0, 2, 2, 70]), /alert protocol version/],
      ['one that closes at once', Buffer.alloc(0), /before secure TLS connection/],
    ];
    for (const [title, answer, says] of others)
      it(`says what is wrong with ${title}, and that nothing was done`, async () => {
        const url = await bytesServer((socket) => {
          socket.once('data', () => {
            socket.end(answer);
          });
        });
        const outcome = await clientOf(url).call(call, signal);
        expect(toldOf(outcome)).to.equal('panda-unreachable not done');
        expect(messageOf(outcome)).to.match(says);
      });

    it('takes a connection that ends after a request for one whose outcome is unknown', async () => {
      const scripted = await tlsServer();
      scripted.always((response) => {
        response.destroy();
      });
      expect(toldOf(await clientOf(scripted.url).call(call, signal))).to.equal('panda-no-answer maybe done');
    });
  });

  describe("B2: of the server's clock", () => {
    /** Answers after so long, ms, with a date so far ahead, s. */
    async function answered(client: PandaClient, scripted: ScriptedServer, lasts: number, ahead: number) {
      let answer: Parameters<Respond> | undefined;
      scripted.next((...request) => {
        answer = request;
      });
      const outcome = client.call(call, signal);
      await until('the request is there', () => answer !== undefined);
      await clock.advance(lasts);
      answer?.[0].setHeader('date', new Date(clock.now() - lasts / 2 + ahead * 1000).toUTCString());
      if (answer !== undefined) good(...answer);
      expect(toldOf(await outcome)).to.equal('ok');
    }

    it('knows the difference by a slow answer too, within its duration', async () => {
      const scripted = await tlsServer();
      const client = clientOf(scripted.url);
      await answered(client, scripted, 20_000, 180);
      expect(client.serverAhead?.within).to.equal(10_500);
      expect(client.serverAhead?.ahead).to.be.closeTo(180_000, 1000);
      await answered(client, scripted, 400, 180);
      expect(client.serverAhead?.within).to.equal(700);
      await answered(client, scripted, 30_000, 181);
      expect(client.serverAhead?.within).to.equal(700);
      await clock.advance(300_000);
      await answered(client, scripted, 30_000, 181);
      expect(client.serverAhead?.within).to.equal(15_500);
    });

    it('takes a slow answer at once where one of the clocks was set', async () => {
      const scripted = await tlsServer();
      const client = clientOf(scripted.url);
      await answered(client, scripted, 0, 0);
      await answered(client, scripted, 4000, 3600);
      expect(client.serverAhead?.ahead).to.be.closeTo(3_600_000, 1000);
    });
  });

  it('hole 8: has no token that is longer than any server takes', async () => {
    const origin = 'vo.production';
    writeFileSync(at('token'), 't'.repeat(16_385));
    for (const token of [{ text: 't'.repeat(16_385) }, { file: at('token') }]) {
      const login = new PandaLogin({ kind: 'oidc', token, origin }, undefined, { files, clock });
      const why = await login.current().catch((error: unknown) => String(error));
      expect(why).to.match(/more than (the )?16384 (characters|bytes)/);
    }
    const token = { text: 't'.repeat(16_384) };
    const login = new PandaLogin({ kind: 'oidc', token, origin }, undefined, { files, clock });
    expect(await login.current()).to.have.nested.property('headers.origin', origin);
  });
});
