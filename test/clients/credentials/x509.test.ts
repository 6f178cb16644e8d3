import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { readCredential } from '../../../src/clients/credentials/credential.ts';
import { readX509 } from '../../../src/clients/credentials/x509.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import {
  type Authority,
  issue,
  type Issued,
  makeAuthority,
  makeProxy,
  makeVomsProxy,
  openssl,
  proxyText,
  rfcProxy,
  vomsExtension,
} from '../../support/credentials.ts';

const hour = 3_600_000;
const jane = '/DC=org/DC=test/CN=Jane Doe';

function complaint(text: string): string {
  try {
    readX509(text, 'the proxy');
  } catch (error) {
    expect(error).to.be.instanceOf(ThresherError);
    expect((error as ThresherError).code).to.equal('credential-wrong');
    return (error as ThresherError).message;
  }
  throw new Error('it was accepted');
}

describe('reading an X.509 credential', () => {
  let ca: Authority;
  let user: Issued;
  let proxy: Issued;

  before(() => {
    ca = makeAuthority();
    user = issue(ca.directory, ca, { name: jane });
    proxy = issue(ca.directory, user, { name: `${jane}/CN=77`, extensions: rfcProxy });
  });

  const hoursLeft = (expiresAt: number) => Math.round((expiresAt - Date.now()) / hour);
  const read = (path: string) => readX509(readFileSync(path, 'utf8'), path);

  const kinds: [title: string, tool: string, options: string[], kind: string, limited: boolean][] = [
    ['RFC 3820 proxy of voms-proxy-init', 'voms-proxy-init', ['-rfc'], 'rfc', false],
    ['limited RFC 3820 proxy of voms-proxy-init', 'voms-proxy-init', ['-rfc', '-limited'], 'rfc', true],
    ['RFC 3820 proxy of grid-proxy-init', 'grid-proxy-init', ['-rfc'], 'rfc', false],
    ['draft (GT3) proxy', 'grid-proxy-init', ['-draft'], 'draft', false],
    ['limited draft (GT3) proxy', 'grid-proxy-init', ['-draft', '-limited'], 'draft', true],
    ['legacy (GT2) proxy', 'grid-proxy-init', ['-old'], 'legacy', false],
    ['limited legacy (GT2) proxy', 'voms-proxy-init', ['-old', '-limited'], 'legacy', true],
  ];
  for (const [title, tool, options, kind, limited] of kinds) {
    it(`knows a ${title}`, () => {
      const found = read(makeProxy(ca, user, tool, ...options, '-valid', '5:00'));
      expect(found).to.include({ kind, limited, identity: jane, issuer: jane, hasKey: true });
      expect(found.subject.startsWith(`${jane}/CN=`)).to.be.true;
      expect(hoursLeft(found.expiresAt)).to.equal(5);
      expect(found.voms).to.deep.equal([]);
    });
  }

  it('knows proxies of elliptic curve keys', () => {
    const ec = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=Curve', key: 'ec' });
    const made = makeProxy(ca, ec, 'voms-proxy-init', '-rfc', '-valid', '3:00');
    expect(read(made)).to.include({ kind: 'rfc', identity: '/DC=org/DC=test/CN=Curve' });
    const byHand = issue(ca.directory, ec, {
      name: '/DC=org/DC=test/CN=Curve/CN=1',
      extensions: rfcProxy,
      key: 'ec',
    });
    expect(readX509(proxyText(byHand, ec), 'x')).to.include({ kind: 'rfc', hasKey: true });
  });

  it('ends with the shortest of a chain of three, whatever order the chain has', () => {
    const until = Math.floor((Date.now() + 7 * hour) / 1000) * 1000;
    const middle = issue(ca.directory, user, { name: `${jane}/CN=1`, extensions: rfcProxy, until });
    const leaf = issue(ca.directory, middle, { name: `${jane}/CN=1/CN=2`, extensions: rfcProxy });
    for (const chain of [
      [middle, user],
      [user, middle],
      [ca, user, middle],
    ]) {
      expect(readX509(proxyText(leaf, ...chain), 'x')).to.include({
        kind: 'rfc',
        subject: `${jane}/CN=1/CN=2`,
        identity: jane,
        expiresAt: until,
      });
    }
  });

  it('takes no notice of an expired authority that is in the file too', () => {
    const old = issue(ca.directory, ca, { name: '/CN=Old', until: Date.now() - 60_000 });
    expect(hoursLeft(readX509(proxyText(proxy, user, old), 'x').expiresAt)).to.equal(720);
  });

  it('is limited when a proxy in the middle of its chain is', () => {
    const middle = issue(ca.directory, user, {
      name: `${jane}/CN=3`,
      extensions: ['proxyCertInfo=critical,language:1.3.6.1.4.1.3536.1.1.1.9'],
    });
    const leaf = issue(ca.directory, middle, { name: `${jane}/CN=3/CN=4`, extensions: rfcProxy });
    expect(readX509(proxyText(leaf, middle, user), 'x').limited).to.be.true;
  });

  it('tells when an expired one ended and when one begins that is not valid yet', () => {
    const past = Math.floor((Date.now() - 2 * hour) / 1000) * 1000;
    const future = Math.floor((Date.now() + 2 * hour) / 1000) * 1000;
    const expired = issue(ca.directory, user, {
      name: `${jane}/CN=5`,
      extensions: rfcProxy,
      from: past - hour,
      until: past,
    });
    expect(readX509(proxyText(expired, user), 'x').expiresAt).to.equal(past);
    const later = issue(ca.directory, user, { name: `${jane}/CN=6`, extensions: rfcProxy, from: future });
    expect(readX509(proxyText(later, user), 'x').notBefore).to.equal(future);
  });

  it('reads what a VO says, and ends with it where it ends first', () => {
    const roles = ['-fqan', '/atlas/Role=production', '-fqan', '/atlas'];
    const found = read(makeVomsProxy(ca, user, 'atlas', ...roles, '-hours', '10', '-vomslife', '2'));
    expect(found.voms).to.have.length(1);
    expect(found.voms[0]).to.deep.include({
      vo: 'atlas',
      fqans: ['/atlas/Role=production', '/atlas'],
      server: 'atlas.example.org:15001',
    });
    expect(hoursLeft(found.expiresAt)).to.equal(2);
    expect(found.expiresAt).to.equal(found.voms[0]?.expiresAt);
  });

  it('reads several VOs of one proxy, and those further down the chain', () => {
    const acs = vomsExtension(ca, user, ['atlas', 'cms']);
    const both = issue(ca.directory, user, { name: `${jane}/CN=8`, extensions: [...rfcProxy, acs] });
    expect(readX509(proxyText(both, user), 'x').voms.map(({ vo }) => vo)).to.deep.equal(['atlas', 'cms']);
    const leaf = issue(ca.directory, both, { name: `${jane}/CN=8/CN=9`, extensions: rfcProxy });
    const found = readX509(proxyText(leaf, both, user), 'x');
    expect(found.voms.map(({ fqans }) => fqans[0])).to.deep.equal(['/atlas/Role=pilot', '/cms/Role=pilot']);
    expect(readCredential(Buffer.from(proxyText(leaf, both, user)), 'x')).to.include({ vo: 'atlas' });
  });

  it('leaves out what an attribute certificate does not say in a readable way', () => {
    const extension = '1.3.6.1.4.1.8005.100.100.5=DER:3004020101FF';
    const odd = issue(ca.directory, user, { name: `${jane}/CN=10`, extensions: [...rfcProxy, extension] });
    expect(readX509(proxyText(odd, user), 'x').voms).to.deep.equal([]);
  });

  it('reads a certificate without its key, and one whose key is encrypted', () => {
    const certificate = readFileSync(user.certificate, 'utf8');
    expect(readX509(certificate, 'x')).to.include({ kind: 'certificate', hasKey: false, subject: jane });
    for (const form of [['pkey'], ['rsa', '-traditional']]) {
      const key = openssl(...form, '-in', user.key, '-aes256', '-passout', 'pass:secret');
      expect(readX509(certificate + key, 'x')).to.include({ kind: 'certificate', hasKey: true });
    }
  });

  it('reading an X.509 credential names the fault of a file', () => {
    const pem = (path: string) => readFileSync(path, 'utf8');
    expect(complaint(' \n')).to.equal('the proxy is empty');
    expect(complaint('hello')).to.contain('has no certificate in PEM');
    expect(complaint(pem(user.key))).to.contain('has no certificate in PEM');
    expect(complaint(proxyText(proxy))).to.equal(
      `the proxy lacks the certificate of ${jane}, which made the proxy`,
    );
    expect(complaint(pem(proxy.certificate) + pem(user.certificate))).to.contain('has no whole private key');
    expect(complaint(pem(proxy.certificate) + pem(user.key) + pem(user.certificate))).to.contain(
      'has a private key that is not that of its first certificate',
    );
    const impostor = issue(ca.directory, ca, { name: jane });
    expect(complaint(proxyText(proxy, impostor))).to.contain(`a certificate of ${jane} that did not sign`);
    const text = proxyText(proxy, user);
    expect(complaint(text.slice(0, -100))).to.contain('is cut off');
    expect(complaint(text.replace(/KEY-----\n.{10}/, 'KEY-----\nAAAAAAAAAA'))).to.contain('cannot be read');
  });

  it('takes the right one of two certificates with one name', () => {
    const renewed = issue(ca.directory, ca, { name: jane, until: Date.now() + 2 * hour });
    expect(hoursLeft(readX509(proxyText(proxy, renewed, user), 'x').expiresAt)).to.equal(720);
  });

  it('reads a certificate whose subject is empty', () => {
    const nobody = join(ca.directory, 'nobody.pem');
    openssl('req', '-x509', '-key', user.key, '-subj', '/', '-out', nobody);
    expect(readX509(readFileSync(nobody, 'utf8'), 'x').subject).to.equal('/');
  });

  it('an error about an X.509 credential never shows a piece of the key, however the file is cut or mangled', () => {
    const text = proxyText(proxy, user);
    const key = readFileSync(proxy.key, 'utf8');
    const body = key.replace(/-----.*-----/g, '').replace(/\s/g, '');
    fc.assert(
      fc.property(
        fc.nat(text.length),
        fc.nat(text.length),
        fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\n', '-', '-----END CERTIFICATE-----')),
        fc.boolean(),
        (from, to, put, cut) => {
          const mangled = cut ? text.slice(0, from) + put : text.slice(0, from) + put + text.slice(to);
          let message: string;
          try {
            message = JSON.stringify(readCredential(Buffer.from(mangled), 'the proxy'));
          } catch (error) {
            expect((error as ThresherError).code).to.equal('credential-wrong');
            const { cause } = error as Error;
            message = `${(error as Error).message} ${cause instanceof Error ? cause.message : ''}`;
          }
          // The digest is hex, of which eight in a row are no piece of base64 by chance.
          for (let at = 0; at + 12 <= body.length; at += 4)
            if (message.includes(body.slice(at, at + 12))) throw new Error(`shows the key: ${message}`);
        },
      ),
      { numRuns: 300 },
    );
  });
});
