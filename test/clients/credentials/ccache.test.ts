import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { readCcache } from '../../../src/clients/credentials/ccache.ts';
import { readCredential } from '../../../src/clients/credentials/credential.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { type Kdc, ownKdc } from '../../support/kdc.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const hour = 3_600_000;
const sessionKey = 'the session key of the user';

const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const data = (text: string) => Buffer.concat([u32(Buffer.byteLength(text)), Buffer.from(text)]);
const principal = (realm: string, ...parts: string[]) =>
  Buffer.concat([u32(1), u32(parts.length), data(realm), ...parts.map(data)]);

interface Made {
  readonly server: string;
  /** Seconds since 1970. */
  readonly times: readonly [auth: number, start: number, end: number, renew: number];
}

/** A cache as "Credential cache file format" of MIT Kerberos says, by hand. */
function makeCache(tickets: readonly Made[], name = ['pilot']): Buffer {
  const header = Buffer.concat([u16(1), u16(8), u32(0), u32(0)]);
  return Buffer.concat([
    ...[u16(0x0504), u16(header.length), header, principal('EXAMPLE.ORG', ...name)],
    ...tickets.map(({ server, times }) =>
      Buffer.concat([
        principal('EXAMPLE.ORG', ...name),
        principal('EXAMPLE.ORG', ...server.split('/')),
        ...[u16(18), data(sessionKey), ...times.map(u32), Buffer.from([0]), u32(0)],
        // One address, and no authorization data.
        ...[u32(1), u16(2), data('\u007f\0\0\u0001'), u32(0), data('the ticket'), data('')],
      ]),
    ),
  ]);
}

const granting = 'krbtgt/EXAMPLE.ORG';

function complaint(bytes: Buffer): string {
  try {
    readCcache(bytes, 'the cache');
  } catch (error) {
    expect((error as ThresherError).code).to.equal('credential-wrong');
    return (error as ThresherError).message;
  }
  throw new Error('it was accepted');
}

describe('reading a Kerberos credential cache', () => {
  it('ends with the ticket-granting ticket, and not with what was got by it', () => {
    const cache = makeCache([
      { server: granting, times: [1000, 2000, 9000, 20_000] },
      { server: 'host/a.example.org', times: [1000, 2000, 3000, 0] },
    ]);
    expect(readCcache(cache, 'x')).to.deep.include({
      principal: 'pilot@EXAMPLE.ORG',
      notBefore: 2_000_000,
      expiresAt: 9_000_000,
      renewableUntil: 20_000_000,
    });
    expect(readCredential(cache, 'x')).to.include({ kind: 'kerberos', subject: 'pilot@EXAMPLE.ORG' });
  });

  it('takes the longest of several, its beginning from the login where it has none', () => {
    const cache = makeCache(
      [
        { server: granting, times: [1000, 0, 5000, 0] },
        { server: granting, times: [1500, 0, 7000, 0] },
        { server: granting, times: [1000, 0, 6000, 0] },
      ],
      ['host', 'a.example.org'],
    );
    expect(readCcache(cache, 'x')).to.deep.include({
      principal: 'host/a.example.org@EXAMPLE.ORG',
      notBefore: 1_500_000,
      expiresAt: 7_000_000,
      renewableUntil: undefined,
    });
  });

  it('reading a Kerberos credential cache names the fault of a file', () => {
    expect(complaint(Buffer.alloc(0))).to.equal('the cache is empty');
    expect(complaint(Buffer.from('hello'))).to.contain('no Kerberos credential cache (version 4)');
    expect(complaint(makeCache([]))).to.equal('the cache has no ticket-granting ticket');
    const other = makeCache([{ server: 'host/a', times: [1, 1, 1, 1] }]);
    expect(complaint(other)).to.equal('the cache has no ticket-granting ticket');
    const odd = makeCache([{ server: granting, times: [1, 1, 1, 1] }], ['pi\u0001lot']);
    expect(complaint(odd)).to.contain('its principal is no name');
  });

  it('refuses it wherever it is cut, and shows no piece of a key', () => {
    const cache = makeCache([{ server: granting, times: [1, 2, 3, 4] }]);
    for (let length = 0; length < cache.length; length++) {
      expect(complaint(cache.subarray(0, length))).to.match(/is empty|is cut off|has no ticket/);
    }
    fc.assert(
      fc.property(fc.nat(cache.length - 1), fc.nat(255), fc.nat(cache.length), (at, byte, end) => {
        const mangled = Buffer.from(cache);
        mangled[at] = byte;
        let shown: string;
        try {
          shown = JSON.stringify(readCcache(mangled.subarray(0, end), 'x'));
        } catch (error) {
          expect(error).to.be.instanceOf(ThresherError);
          shown = (error as Error).message;
        }
        expect(shown).to.not.contain('session key');
      }),
      { numRuns: 3000 },
    );
  });

  describe('a credential cache of a real KDC', () => {
    let kdc: Kdc;
    before(async () => {
      kdc = await ownKdc();
    });
    after(() => kdc.stop());

    it('agrees with what kinit asked for', () => {
      const path = join(temporaryDirectory(), 'cache');
      const before = Date.now();
      kdc.kinit(path, '-l', '3h', '-r', '2d');
      const after = Date.now();
      const bytes = readFileSync(path);
      const found = readCcache(bytes, path);
      const hours = (at = 0) => Math.round((at - Date.now()) / hour);
      expect(found.principal).to.equal('pilot@EXAMPLE.ORG');
      expect(hours(found.expiresAt)).to.equal(3);
      expect(hours(found.renewableUntil)).to.equal(48);
      // Whole seconds.
      expect(found.notBefore).to.be.within(before - 1000, after);
      for (let length = 0; length < 400; length += 7) {
        expect(complaint(bytes.subarray(0, length))).to.match(/is empty|is cut off|has no ticket/);
      }
    });
  });
});
