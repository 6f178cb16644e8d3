import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { isLoopback, isOurName, isSameToken, tokenIn } from '../../src/http/access.ts';
import { makeApp } from '../../src/http/app.ts';
import { TokenFile } from '../../src/http/token-file.ts';
import { rejection } from '../support/kubernetes-client.ts';
import { files } from '../support/operator-files.ts';
import { ServedSample } from '../support/served.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('access over HTTP', () => {
  it('only an address that is certainly loopback counts as such', () => {
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost', 'LocalHost']) {
      expect(isLoopback(host), host).to.equal(true);
    }
    for (const host of [
      '0.0.0.0',
      '::',
      '10.0.0.1',
      '128.0.0.1',
      'localhost.evil.example',
      '127.evil.example',
    ])
      expect(isLoopback(host), host).to.equal(false);
  });

  it('knows its own names', () => {
    const own = ['configured.example', 'Host'];
    const safe = ['127.0.0.1:1', '[::1]', '[fe80::1]:2', '10.1.2.3', 'localhost:25085', 'x.localhost'];
    for (const header of [...safe, 'configured.example.', 'CONFIGURED.example:1', 'host', undefined]) {
      expect(isOurName(header, own), header).to.equal(true);
    }
    for (const header of [
      'evil.example',
      '127.0.0.1.evil.example',
      'localhost.evil.example:25085',
      '[::1].evil.example',
      '[::1].evil.example:25085',
      '[127.0.0.1]x',
      'x[::1]',
      '',
      'hostx',
    ])
      expect(isOurName(header, own), header).to.equal(false);
  });

  it('finds the token of a bearer and in a password', () => {
    expect(tokenIn('Bearer abc')).to.equal('abc');
    expect(tokenIn('bearer   abc ')).to.equal('abc');
    expect(tokenIn(basic('anybody', 'a:b'))).to.equal('a:b');
    expect(tokenIn(basic('', 'abc'))).to.equal('abc');
    for (const header of [undefined, '', 'Bearer', 'Bearer a b', 'Basic', 'Basic !', 'Digest abc', 'abc'])
      expect(tokenIn(header), header).to.equal(undefined);
  });

  it('two tokens are the same only if their texts are equal', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (a, b) => isSameToken(a, b) === (a === b)));
  });

  describe('with a token', () => {
    let served: ServedSample;
    let file: string;

    beforeEach(async () => {
      served = await ServedSample.make();
      file = join(temporaryDirectory(), 'token');
      writeFileSync(file, 'secret-1\n');
    });

    afterEach(() => served.store.close());

    async function asking(
      use: (ask: (url: string, authorization?: string) => Promise<Asked>) => Promise<void>,
    ) {
      const app = await makeApp(served, { read: new TokenFile(file, files) });
      try {
        await use(async (url, authorization) => {
          const headers = { host: 'any.example', ...(authorization !== undefined && { authorization }) };
          const { statusCode, body, headers: given } = await app.inject({ url, headers });
          return { status: statusCode, body, challenge: given['www-authenticate'] };
        });
      } finally {
        await app.close();
      }
    }
    interface Asked {
      readonly status: number;
      readonly body: string;
      readonly challenge: unknown;
    }

    it('a client with the token gets in under any user name, and every other client is asked for it', async () => {
      await asking(async (ask) => {
        for (const url of ['/', '/metrics', '/readyz', '/api/queues', '/api/openapi.json', '/nothing']) {
          const refused = await ask(url);
          expect(refused.status, url).to.equal(401);
          expect(refused.challenge).to.equal('Basic realm="thresher", charset="UTF-8"');
          expect((await ask(url, 'Bearer secret-2')).status, url).to.equal(401);
          expect((await ask(url, 'Bearer secret-1x')).status, url).to.equal(401);
          expect((await ask(url, basic('secret-1', ''))).status, url).to.equal(401);
          expect((await ask(url, 'Bearer secret-1')).status, url).to.be.oneOf([200, 404]);
          expect((await ask(url, basic('me', 'secret-1'))).status, url).to.be.oneOf([200, 404]);
        }
        expect(JSON.parse((await ask('/api/queues', 'Bearer x')).body)).to.deep.equal({
          code: 'http-token-refused',
          message:
            'the request brought a wrong token; send "Authorization: Bearer TOKEN", or the token as the password',
        });
        expect((await ask('/')).body).to.contain('the request brought no token');
      });
    });

    it('a client without the token may ask for the health', async () => {
      await asking(async (ask) => {
        expect((await ask('/healthz')).status).to.equal(200);
      });
    });

    it('a rotated token counts at once, and the old one no more', async () => {
      await asking(async (ask) => {
        expect((await ask('/api/queues', 'Bearer secret-1')).status).to.equal(200);
        // As long as the old one, and within the same tick of many clocks.
        writeFileSync(`${file}.new`, 'secret-2\n');
        renameSync(`${file}.new`, file);
        expect((await ask('/api/queues', 'Bearer secret-1')).status).to.equal(401);
        expect((await ask('/api/queues', 'Bearer secret-2')).status).to.equal(200);
      });
    });

    it('every client is refused when the token was taken away, and the answer says so', async () => {
      await asking(async (ask) => {
        rmSync(file);
        const { status, body } = await ask('/api/queues', 'Bearer secret-1');
        expect(status).to.equal(503);
        expect(body).to.contain('http-token-unreadable').and.contain('ENOENT');
        expect((await ask('/healthz')).status).to.equal(200);
      });
    });

    const wrong: readonly (readonly [what: string, make: () => void, message: string])[] = [
      [
        'empty',
        () => {
          writeFileSync(file, ' \n');
        },
        ' is empty',
      ],
      [
        'more than a word',
        () => {
          writeFileSync(file, 'two words\n');
        },
        ' holds more than one word of plain ASCII characters, which no request can bring',
      ],
      [
        'far too long',
        () => {
          writeFileSync(file, 'x'.repeat(5000));
        },
        ': it has more than the 4096 bytes that are read of it, and no token is that large: name the right file',
      ],
      [
        'a directory',
        () => {
          rmSync(file);
          mkdirSync(file);
        },
        ': it is a directory, not a regular file: name the file of the token',
      ],
      [
        'a device',
        () => {
          file = '/dev/zero';
        },
        ': it is a device, not a regular file: name the file of the token',
      ],
    ];
    for (const [what, make, message] of wrong) {
      it(`a token file that is ${what} is not used`, async () => {
        make();
        const error = await rejection(new TokenFile(file, files).token());
        expect((error as Error).message).to.equal(
          `http.tokenFile ${file}${message}; it must hold the token, in one line`,
        );
      });
    }
  });
});
